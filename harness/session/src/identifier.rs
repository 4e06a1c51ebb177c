//! Drawing identifiers: from a generator that the operating system seeds, each once in a session.

use muster_core::case::Identifier;
use std::{
    collections::HashSet,
    sync::{
        LazyLock, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

/// Eight letters, each as likely as any other.
pub fn random() -> Identifier {
    Identifier::from_letters(std::array::from_fn(|_| rand::random_range(0..26)))
}

/// Tests make clashes of it: a debug build draws what `RFM_IDENTIFIERS=abcdefgh,ijklmnop` names before it draws by chance.
static NAMED: LazyLock<Vec<Identifier>> = LazyLock::new(|| {
    let named = std::env::var("RFM_IDENTIFIERS").ok().filter(|_| cfg!(debug_assertions)).unwrap_or_default();
    named.split(',').filter_map(Identifier::parse).collect()
});

/// So many identifiers there are.
const ALL: u64 = 26_u64.pow(8);

/// Gives each attempt of a session its identifier. A session may have millions of attempts, and remembers none of them: it goes
/// through all identifiers in steps of a random length, from a random one. The length has no divisor in common with their number,
/// so that none comes twice.
#[derive(Debug)]
pub(crate) struct Identifiers {
    step: u64,
    last: AtomicU64,
    /// Those of another process of this session.
    learned: Mutex<HashSet<Identifier>>,
    /// How many of `NAMED` were drawn.
    named: AtomicUsize,
}

impl Default for Identifiers {
    fn default() -> Self {
        let steps = std::iter::repeat_with(|| rand::random_range(1..ALL));
        let step = steps.into_iter().find(|step| step % 2 != 0 && step % 13 != 0).unwrap_or(1);
        let last = AtomicU64::new(rand::random_range(0..ALL));
        Self { step, last, learned: Mutex::default(), named: AtomicUsize::new(0) }
    }
}

impl Identifiers {
    /// Another process of this session has drawn it.
    pub(crate) fn learn(&self, identifier: &Identifier) {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner).insert(identifier.clone());
    }

    /// One that no other attempt of this session has.
    pub(crate) fn draw(&self) -> Identifier {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let identifier = NAMED.get(self.named.fetch_add(1, Relaxed)).cloned().unwrap_or_else(|| self.next());
            if !learned.contains(&identifier) {
                return identifier;
            }
        }
    }

    fn next(&self) -> Identifier {
        let next = |last: u64| (last + self.step) % ALL;
        let number = next(self.last.update(Relaxed, Relaxed, next));
        let letter = |place: usize| number / 26_u64.pow(u32::try_from(place).unwrap_or(0)) % 26;
        Identifier::from_letters(std::array::from_fn(|place| u8::try_from(letter(place)).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There is no seed to set: two sessions that are alike in everything do not draw alike.
    #[test]
    fn ten_thousand_identifiers_are_distinct_and_no_session_draws_what_another_did() {
        let session = || {
            let identifiers = Identifiers::default();
            (0..10_000).map(|_| identifiers.draw()).collect::<Vec<_>>()
        };
        let (one, other) = (session(), session());
        assert_eq!(one.iter().collect::<HashSet<_>>().len(), 10_000);
        assert!(one.iter().zip(&other).all(|(one, other)| one != other));
    }
}

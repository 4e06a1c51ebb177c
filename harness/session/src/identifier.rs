//! Drawing identifiers: from a generator that the operating system seeds, each once in a session.

use muster_core::case::Identifier;
use std::{
    collections::HashSet,
    sync::{LazyLock, Mutex, PoisonError},
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

/// The identifiers that a session has drawn.
#[derive(Debug, Default)]
pub(crate) struct Identifiers {
    drawn: Mutex<HashSet<Identifier>>,
}

impl Identifiers {
    /// Another process of this session has drawn it.
    pub(crate) fn learn(&self, identifier: &Identifier) {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner).insert(identifier.clone());
    }

    /// One that no other case of this session has.
    pub(crate) fn draw(&self) -> Identifier {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let identifier = NAMED.iter().find(|identifier| !drawn.contains(*identifier)).cloned().unwrap_or_else(random);
            if drawn.insert(identifier.clone()) {
                return identifier;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There is no seed to set: two sessions that are alike in everything do not draw alike.
    #[test]
    fn a4_ten_thousand_identifiers_are_distinct_and_no_session_draws_what_another_did() {
        let session = || {
            let identifiers = Identifiers::default();
            (0..10_000).map(|_| identifiers.draw()).collect::<Vec<_>>()
        };
        let (one, other) = (session(), session());
        assert_eq!(one.iter().collect::<HashSet<_>>().len(), 10_000);
        assert!(one.iter().zip(&other).all(|(one, other)| one != other));
    }
}

//! Drawing identifiers: from the operating system's randomness only, each once in a session.

use muster_core::case::Identifier;
use rand::{TryRng, rngs::SysRng};
use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

/// The operating system has no randomness to give.
#[derive(Debug, thiserror::Error)]
#[error("read the operating system's random numbers")]
pub struct NoRandomness(#[source] rand::rngs::SysError);

/// Eight letters, each as likely as any other.
///
/// # Errors
/// When the operating system has no randomness to give.
pub fn random() -> Result<Identifier, NoRandomness> {
    letters(|bytes| SysRng.try_fill_bytes(bytes)).map(Identifier::from_letters).map_err(NoRandomness)
}

/// Tests make clashes of it: a debug build draws what `RFM_IDENTIFIERS=abcdefgh,ijklmnop` names before it draws by chance.
#[cfg(debug_assertions)]
fn foretold() -> &'static [Identifier] {
    static FORETOLD: std::sync::LazyLock<Vec<Identifier>> = std::sync::LazyLock::new(|| {
        let named = std::env::var("RFM_IDENTIFIERS").unwrap_or_default();
        named.split(',').filter_map(Identifier::parse).collect()
    });
    &FORETOLD
}

#[cfg(not(debug_assertions))]
fn foretold() -> &'static [Identifier] {
    &[]
}

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
    pub(crate) fn draw(&self) -> Result<Identifier, NoRandomness> {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let identifier = match foretold().iter().find(|identifier| !drawn.contains(*identifier)) {
                Some(identifier) => identifier.clone(),
                None => random()?,
            };
            if drawn.insert(identifier.clone()) {
                return Ok(identifier);
            }
        }
    }
}

/// Eight numbers below 26, each as likely as any other: 234 to 255 would favour the first letters and are drawn again.
fn letters<E>(mut fill: impl FnMut(&mut [u8]) -> Result<(), E>) -> Result<[u8; 8], E> {
    const FAIR: u8 = 9 * 26;
    let mut letters = [0; 8];
    let mut found = 0;
    let mut bytes = [0; 16];
    while found < letters.len() {
        fill(&mut bytes)?;
        for byte in bytes.into_iter().filter(|byte| *byte < FAIR).take(letters.len() - found) {
            letters[found] = byte % 26;
            found += 1;
        }
    }
    Ok(letters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn numbers_that_would_favour_some_letters_are_drawn_again() {
        let mut rounds = 0;
        let drawn = letters(|bytes| -> Result<(), Infallible> {
            rounds += 1;
            // The first round has three fair numbers, the second has enough.
            bytes.fill(if rounds == 1 { 234 } else { 27 });
            if rounds == 1 {
                bytes[..3].copy_from_slice(&[0, 233, 25]);
            }
            Ok(())
        });
        assert_eq!(drawn, Ok([0, 25, 25, 1, 1, 1, 1, 1]));
        assert_eq!(rounds, 2);
    }

    /// There is no seed to set: two sessions that are alike in everything do not draw alike.
    #[test]
    fn a4_ten_thousand_identifiers_are_distinct_and_no_session_draws_what_another_did() {
        let session = || {
            let identifiers = Identifiers::default();
            (0..10_000).map(|_| identifiers.draw().expect("randomness")).collect::<Vec<_>>()
        };
        let (one, other) = (session(), session());
        assert_eq!(one.iter().collect::<HashSet<_>>().len(), 10_000);
        assert!(one.iter().zip(&other).all(|(one, other)| one != other));
    }
}

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

/// The identifiers that a session has drawn.
#[derive(Debug, Default)]
pub(crate) struct Identifiers {
    drawn: Mutex<HashSet<Identifier>>,
}

impl Identifiers {
    /// One that no other case of this session has.
    pub(crate) fn draw(&self) -> Result<Identifier, NoRandomness> {
        loop {
            let identifier = random()?;
            if self.drawn.lock().unwrap_or_else(PoisonError::into_inner).insert(identifier.clone()) {
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

    #[test]
    fn no_identifier_is_drawn_twice() {
        let identifiers = Identifiers::default();
        let drawn: HashSet<_> = (0..2_000).map(|_| identifiers.draw().expect("randomness")).collect();
        assert_eq!(drawn.len(), 2_000);
    }
}

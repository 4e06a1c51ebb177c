//! The identity of a case: names, hash, identifier.

pub mod matcher;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{borrow::Cow, fmt};

/// Eight lower-case letters that mark everything one attempt of one case creates (label and tag `rfm`).
///
/// The letters come from the operating system's randomness, in the runner; a seedable generator would let two
/// parametrised cases adopt each other's pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Identifier(String);

impl Identifier {
    /// Eight letters, one for each number, taken modulo 26.
    pub fn from_letters(letters: [u8; 8]) -> Self {
        Self(letters.iter().map(|n| char::from(b'a' + n % 26)).collect())
    }

    /// Reads an identifier back from a label or a database row.
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 8 && text.bytes().all(|b| b.is_ascii_lowercase())).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One invocation of `muster -r`: label and tag `rfm-session`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub String);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// SHA-256 of a check's name and its sorted `parameter=value` pairs: the same case has the same hash tomorrow,
/// wherever its parameter values stand in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CaseHash([u8; 32]);

impl CaseHash {
    /// Hashes a check's name and its parameters as they are displayed.
    pub fn of<'a>(check: &str, parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut pairs: Vec<_> = parameters.into_iter().collect();
        pairs.sort_unstable();
        let mut hasher = Sha256::new();
        hasher.update(check.as_bytes());
        for (name, value) in pairs {
            for piece in [b"\n", name.as_bytes(), b"=", value.as_bytes()] {
                hasher.update(piece);
            }
        }
        Self(hasher.finalize().into())
    }

    fn hex(self, digits: usize) -> String {
        self.0
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .take(digits)
            .map(|n| char::from_digit(n.into(), 16).unwrap_or('0'))
            .collect()
    }

    /// A pseudo-random number.
    pub fn number(self) -> u64 {
        self.0.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Eight hex digits, for people.
    pub fn short(self) -> String {
        self.hex(8)
    }

    /// Sixteen hex digits, for folders and keys.
    pub fn long(self) -> String {
        self.hex(16)
    }
}

/// `nbody %num_bodies=512000 @eidf:gpu-service+default`: one case, in one session unique.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CaseName {
    /// The check and its parameters: `nbody %num_bodies=512000`. The key of a history.
    pub display: String,
    /// `nbody`
    pub check: String,
    /// Eight hex digits of the case's hash.
    pub hash: String,
    pub system: String,
    pub partition: String,
    pub environ: String,
    /// Distinguishes copies of a case in one session (`--repeat`, `--distribute`): `%.repeat_no=1`.
    /// Not part of hash and history. Empty for a single copy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hidden: String,
}

/// The check of a case as displayed: `nbody` of `nbody %num_bodies=512000`.
pub fn check_of(display: &str) -> &str {
    display.split_once(' ').map_or(display, |(check, _)| check)
}

impl CaseName {
    /// `eidf:gpu-service+default`
    pub fn place(&self) -> String {
        format!("{}:{}+{}", self.system, self.partition, self.environ)
    }

    /// Returns whether it is a fixture, which runs for others: its display ends in its scope, as in `build ~eidf`.
    pub fn is_fixture(&self) -> bool {
        self.display.rsplit(' ').next().is_some_and(|last| last.starts_with('~'))
    }

    /// The display, and what is hidden in a history: `nbody %num_bodies=512000 %.repeat_no=1`.
    pub fn title(&self) -> Cow<'_, str> {
        if self.hidden.is_empty() {
            return Cow::Borrowed(&self.display);
        }
        Cow::Owned(format!("{} {}", self.display, self.hidden))
    }

    /// `eidf:gpu-service`
    pub fn system_partition(&self) -> String {
        format!("{}:{}", self.system, self.partition)
    }
}

impl fmt::Display for CaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} @{}", self.title(), self.place())
    }
}

/// A digest of a set of cases by their names, whatever their order, and of the settings that change what they run: sessions that do
/// the same work have the same.
pub fn selection<'a>(names: impl IntoIterator<Item = &'a CaseName>, settings: &[String]) -> String {
    let names: Vec<String> = names.into_iter().map(ToString::to_string).collect();
    let names = CaseHash::of("", names.iter().map(|name| (name.as_str(), ""))).hex(32);
    if settings.is_empty() { names } else { format!("{names}+{}", CaseHash::of(&settings.join("\0"), []).hex(32)) }
}

/// The part of a digest that depends on the cases alone.
pub fn cases_of(selection: &str) -> &str {
    selection.split_once('+').map_or(selection, |(cases, _)| cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_of_a_case_is_its_first_word() {
        assert_eq!(["nbody %num_bodies=512000 %x=1", "nbody", ""].map(check_of), ["nbody", "nbody", ""]);
    }

    #[test]
    fn a_hash_does_not_depend_on_the_order_of_parameters() {
        let one = CaseHash::of("nbody", [("a", "1"), ("b", "2")]);
        let other = CaseHash::of("nbody", [("b", "2"), ("a", "1")]);
        assert_eq!(one, other);
        assert_ne!(one, CaseHash::of("nbody", [("a", "1"), ("b", "3")]));
        assert!(one.long().starts_with(&one.short()));
    }

    #[test]
    fn a_selection_is_a_set_of_names() {
        let name = |display: &str, hidden: &str| CaseName {
            display: display.into(),
            check: display.into(),
            hash: String::new(),
            system: "s".into(),
            partition: "p".into(),
            environ: "e".into(),
            hidden: hidden.into(),
        };
        let (one, two, copy) = (name("a", ""), name("b", ""), name("b", "%.repeat_no=1"));
        let set = |settings: &[&str]| settings.iter().map(|set| (*set).to_owned()).collect::<Vec<_>>();
        assert_eq!(selection([&one, &two], &[]), selection([&two, &one], &[]));
        assert_eq!(selection([&one], &[]).len(), 32);
        let all = [
            selection([], &[]),
            selection([&one], &[]),
            selection([&one], &set(&["-S n=1"])),
            selection([&one], &set(&["-S n=2"])),
            selection([&one], &set(&["-S n=1", "-S n=2"])),
            selection([&one, &two], &[]),
            selection([&one, &copy], &[]),
        ];
        assert_eq!(cases_of(&all[1]), cases_of(&all[2]));
        assert_ne!(cases_of(&all[1]), cases_of(&all[5]));
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
    }

    #[test]
    fn an_identifier_is_eight_lower_case_letters() {
        let id = Identifier::from_letters([0, 25, 26, 255, 1, 2, 3, 4]);
        assert_eq!(Identifier::parse(id.as_str()), Some(id));
        assert_eq!(Identifier::parse("abc"), None);
        assert_eq!(Identifier::parse("ABCDEFGH"), None);
    }
}

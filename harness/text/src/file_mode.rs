//! The mode of the files that Muster creates: who beside their owner may read them.

use crate::{
    Value,
    decode::{Context, Decode},
    yaml::{Kind, Node},
};
use serde_json::json;
use std::{fmt, str::FromStr};

/// Permission bits of a file. A folder gets `x` where a file gets `r`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(u32);

impl FileMode {
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl Default for FileMode {
    /// Access for the owner only.
    fn default() -> Self {
        Self(0o600)
    }
}

impl FromStr for FileMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}` is not a file mode: {why}");
        let digits = text.strip_prefix("0o").unwrap_or(text);
        let is_octal = (3..=4).contains(&digits.len()) && digits.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
        let mode = u32::from_str_radix(digits, 8).ok().filter(|mode| is_octal && *mode <= 0o777);
        match mode {
            None => Err(wrong("write an octal mode, such as 0640")),
            Some(mode) if mode & 0o600 != 0o600 => Err(wrong("the owner reads and writes, so it begins with 6")),
            Some(mode) if mode & 0o002 != 0 => Err(wrong("others must not write what is run and judged")),
            Some(mode) if mode & 0o111 != 0 => Err(wrong("folders get x where files get r")),
            Some(mode) => Ok(Self(mode)),
        }
    }
}

impl fmt::Display for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl Decode for FileMode {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match context.kind(node)? {
            // As it is written: 0640 is octal here, whatever it is in YAML.
            Kind::Scalar { text, .. } if !node.is_null() => match text.parse() {
                Ok(mode) => Some(mode),
                Err(message) => context.wrong(node, message, None),
            },
            _ => context.expected(node, "a file mode", Some("write octal digits, such as 0640")),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "type": "integer" }, { "type": "string", "pattern": "^(0o|0)?6[0246][04]$" }] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_mode_is_what_chmod_takes_for_a_file_that_its_owner_writes() {
        let shown = |text: &str| text.parse::<FileMode>().map_or_else(|why| why, |mode| mode.to_string());
        for (text, mode) in [("0640", "0640"), ("640", "0640"), ("0o640", "0640"), ("600", "0600"), ("0664", "0664")] {
            assert_eq!(shown(text), mode);
        }
        insta::assert_snapshot!(shown("0750"), @"`0750` is not a file mode: folders get x where files get r");
        insta::assert_snapshot!(shown("0440"), @"`0440` is not a file mode: the owner reads and writes, so it begins with 6");
        insta::assert_snapshot!(shown("0666"), @"`0666` is not a file mode: others must not write what is run and judged");
        for text in ["", "6", "0648", "4640", "06400", "u+r", "+640", "416.0"] {
            assert!(shown(text).ends_with("write an octal mode, such as 0640"), "{text}");
        }
        assert_eq!(FileMode::default().to_string(), "0600");
    }
}

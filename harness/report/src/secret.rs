//! Secrets that a job printed, or that stand on a command line, do not go on into reports that are passed around.
//!
//! Muster itself never writes the values of environment variables. This is the second line: what is *named* a secret
//! (`DB_PASSWORD=...`, `token: ...`), what an `Authorization` header or an address carries, and the token formats that
//! are recognised by their prefix. A secret that looks like nothing in particular cannot be found.

use regex::{Captures, Regex};
use std::{borrow::Cow, sync::LazyLock};

/// What stands in a secret's place.
pub const MASK: &str = "***";

/// Shorter values are counts and words, not secrets.
const LEAST: usize = 6;

static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names = "password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?";
    // Names are ASCII, and so are their letters here: those of all of Unicode take 30 ms to compile.
    compiled(&format!(r#"(?i)(?-u:\b)((?:(?-u:[\w.-])*[_.-])?(?:{names})(?-u:\w)*["']?\s*[=:]\s*["']?)([^\s"'<>,;&]+)"#))
});

static KNOWN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i:(?-u:\b)(?:bearer|basic)\s+)[A-Za-z0-9+/=._~-]{8,}",
        r"|://[^/\s:@]*:[^/\s@]+@",
        r"|(?-u:\b(?:gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}))",
        r"|(?-u:\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)",
    ))
});

fn compiled(pattern: &str) -> Option<Regex> {
    // The patterns are ours and a test compiles them.
    Regex::new(pattern).ok()
}

/// The text with `***` in the place of what looks like a secret.
pub fn masked(text: &str) -> Cow<'_, str> {
    let text = replaced(&KNOWN, Cow::Borrowed(text), |found| {
        let whole = &found[0];
        match whole.split_once(char::is_whitespace) {
            Some((scheme, _)) => format!("{scheme} {MASK}"),
            None if whole.starts_with("://") => format!("://{MASK}@"),
            None => MASK.to_owned(),
        }
    });
    replaced(&NAMED, text, |found| {
        let (name, value) = (&found[1], &found[2]);
        let is_harmless = value.len() < LEAST || value.parse::<f64>().is_ok() || value.starts_with(['$', '*']);
        if is_harmless { found[0].to_owned() } else { format!("{name}{MASK}") }
    })
}

/// Whether there is something to mask.
pub fn has_secret(text: &str) -> bool {
    masked(text) != text
}

fn replaced<'a>(pattern: &LazyLock<Option<Regex>>, text: Cow<'a, str>, with: impl Fn(&Captures<'_>) -> String) -> Cow<'a, str> {
    match pattern.as_ref().filter(|pattern| pattern.is_match(&text)) {
        Some(pattern) => Cow::Owned(pattern.replace_all(&text, with).into_owned()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_a_secret_is_masked() {
        let rows = [
            ("export DB_PASSWORD=correct-horse", "export DB_PASSWORD=***"),
            ("AWS_SECRET_ACCESS_KEY: wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY: ***"),
            (r#"{"api_key": "0123456789abcdef"}"#, r#"{"api_key": "***"}"#),
            ("-S token='abcdef123'", "-S token='***'"),
            ("Authorization: Bearer abc.def-123456", "Authorization: Bearer ***"),
            ("https://ada:enigma99@git.example/x", "https://***@git.example/x"),
            ("glpat-abcdefghij0123456789", "***"),
            ("pushing with ghp_abcdefghijklmnopqrstuvwxyz012345 now", "pushing with *** now"),
            ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ", "***"),
        ];
        for (text, shown) in rows {
            assert_eq!(masked(text), shown);
            assert_eq!(masked(shown), shown, "masking twice changes nothing");
        }
    }

    #[test]
    fn what_only_sounds_like_one_stays() {
        for text in [
            "tokens: 1234567",
            "output tokens/s = 98765.4321",
            "token=$CI_TOKEN_VALUE",
            "password: none",
            "the secret of speed",
            "basic block 12",
            "nodes: a:b@c",
            "P: tokens_per_second: 120 tok/s (r:100)",
        ] {
            assert_eq!(masked(text), text);
        }
    }
}

//! Secrets in texts: which names they have, and where they are.
//!
//! ```text
//! source    the text of a file, and its tree: a mistake can be shown without them
//! printed   what a job or a command line says: reports are passed around
//! ```

mod printed;
mod source;
mod tree;

pub use printed::masked;
pub(crate) use source::{places, starred};

use regex::Regex;

/// Replaces a secret.
pub const MASK: &str = "***";

/// Shorter values are words and counts, too: people would not know what they replaced in a sentence.
pub const LEAST: usize = 4;

/// How the name of a secret ends, without the marks between its words.
const ENDINGS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "secretkey",
    "credential",
    "credentials",
];

/// Returns whether a variable or key of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let last = name.rsplit(['.', '_', '-']).next().unwrap_or_default();
    // `dbPwd`
    let inner = last
        .char_indices()
        .skip(1)
        .filter(|(at, c)| c.is_ascii_uppercase() && last[..*at].ends_with(|c: char| c.is_ascii_lowercase()));
    let last = inner.last().map_or(last, |(at, _)| &last[at..]).to_ascii_lowercase();
    let whole = name.to_ascii_lowercase().replace(['.', '_', '-'], "");
    let whole = whole.trim_end_matches(|c: char| c.is_ascii_digit());
    ["pw", "pwd"].contains(&last.as_str()) || ENDINGS.iter().any(|end| whole.ends_with(end))
}

/// Whether a text is read from elsewhere, `${{ vars.token }}` or `$TOKEN`, and has nothing of its own.
fn is_reference(text: &str) -> bool {
    let mut rest = text.trim();
    while let Some(after) = rest.strip_prefix('$') {
        let end = match after.as_bytes() {
            [b'(', ..] => return true,
            [b'{', b'{', ..] => after.find("}}").map(|at| at + 2),
            [b'{', ..] => after.find('}').map(|at| at + 1),
            _ => after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').or(Some(after.len())).filter(|end| *end > 0),
        };
        let Some(end) = end else { return false };
        rest = after[end..].trim_start();
    }
    rest.is_empty() && !text.trim().is_empty()
}

/// Where a quoted text ends: at its second quote that is not escaped.
fn closing(line: &str, quote: char) -> usize {
    let mut letters = line.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if quote == '"' => drop(letters.next()),
            '\'' if quote == '\'' && letters.next_if(|(_, next)| *next == '\'').is_some() => {}
            letter if letter == quote => return at,
            _ => {}
        }
    }
    line.len()
}

/// So many lines of a list are looked at.
const LINES_OF_A_LIST: usize = 50;

/// The items of a list in brackets, without their quotes, and of the lists in it. `text` begins with its bracket. A list that does not
/// end, or goes on behind other words, is a part of a sentence and has none.
fn items(text: &str) -> Vec<std::ops::Range<usize>> {
    let end = text.match_indices('\n').nth(LINES_OF_A_LIST - 1).map_or(text.len(), |(end, _)| end);
    let (found, length) = listed(&text[..end]);
    let line = text.lines().next().unwrap_or_default();
    let goes_on = line.trim_end().ends_with(['[', ',']);
    if length.is_some_and(|length| length <= line.len() || goes_on) { found } else { Vec::new() }
}

/// The items, and where the list ends.
fn listed(text: &str) -> (Vec<std::ops::Range<usize>>, Option<usize>) {
    let (mut found, mut depth, mut at) = (Vec::new(), 0_usize, 0);
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match letter {
            '[' => {
                depth += 1;
                1
            }
            ']' if depth <= 1 => return (found, Some(at)),
            ']' => {
                depth -= 1;
                1
            }
            quote @ ('"' | '\'') => {
                let end = closing(rest, quote);
                found.push(at + 1..at + end);
                (end + 1).min(rest.len())
            }
            letter if letter.is_whitespace() || letter == ',' => letter.len_utf8(),
            _ => {
                let end = rest.find([',', ']', '[', '\n']).unwrap_or(rest.len());
                found.push(at..at + rest[..end].trim_end().len());
                end
            }
        };
        at += length;
    }
    (found, None)
}

fn compiled(pattern: &str) -> Option<Regex> {
    // The patterns are ours and tests use them.
    Regex::new(pattern).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_of_a_name_says_whether_it_is_a_secret() {
        for name in ["DB_PASSWORD", "dbPassword", "dbPwd", "db_pw", "MYSQL_PWD", "token2", "sec.api-key", "AWS_SECRET_ACCESS_KEY"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["max_tokens", "secretName", "OLDPWD", "key", "primary_key", "passwordless"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn what_is_read_from_elsewhere_is_no_secret() {
        for text in ["$TOKEN", "${TOKEN}", "${{ vars.token }}", "${A}$B", "$(cat /run/token)"] {
            assert!(is_reference(text), "{text}");
        }
        for text in ["", "hunter2", "${X}hunter2", "$", "${{ a }}b", "${open"] {
            assert!(!is_reference(text), "{text}");
        }
    }
}

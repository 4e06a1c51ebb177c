//! Pieces of the sentences that a judgement consists of.

use crate::job::stdout::Stdout;
use std::fmt::Write;

/// How much of a log, a pattern or an expression a sentence quotes, in characters.
const QUOTE: usize = 200;

/// How many things of a kind a sentence names before it counts the rest.
const NAMED: usize = 3;

/// Text from a log in backticks: one line, trimmed, shortened, control characters made visible.
pub(super) fn quote(text: impl AsRef<[u8]>) -> String {
    let text = text.as_ref().trim_ascii();
    // A capture may be a gigabyte; four bytes a character is the most that can be shown.
    let shown = String::from_utf8_lossy(&text[..text.len().min(4 * QUOTE + 4)]);
    let mut quoted = String::from("`");
    for c in shown.chars().take(QUOTE) {
        match c {
            '\t' => quoted.push(' '),
            c if c.is_control() => {
                let _ = write!(quoted, "{}", c.escape_default());
            }
            c => quoted.push(c),
        }
    }
    quoted.push_str(if text.len() > shown.len() || shown.chars().nth(QUOTE).is_some() { "...`" } else { "`" });
    quoted
}

/// `once`, `3 times`.
pub(super) fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// ` in pod-a on node01` where there are several sections, or it is a file, ` on node01` where there is one; the node only if
/// known.
pub(super) fn in_section(stdout: &Stdout, section: usize) -> String {
    let several = stdout.sections().len() > 1;
    let Some(section) = stdout.sections().get(section) else { return String::new() };
    let origin = &section.origin;
    let title = if several || section.is_file { format!(" in {}", origin.title()) } else { String::new() };
    origin.node.as_ref().map_or(title.clone(), |node| format!("{title} on {node}"))
}

/// Joins the first few with `; ` and counts the rest: `a; b; c; and 4 more`.
pub(super) fn list(items: &[String], separator: &str, most: usize) -> String {
    let mut line = items[..items.len().min(most)].join(separator);
    if items.len() > most {
        let _ = write!(line, "{separator}and {} more", items.len() - most);
    }
    line
}

pub(super) fn sentences(items: &[String]) -> String {
    list(items, "; ", NAMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_one_short_line_without_control_characters() {
        let long = [b'x'; 5000];
        let rows: [(&[u8], &str); 5] = [
            (b"  plain text \r\n", "`plain text`"),
            (b"a\tb\nc", r"`a b\nc`"),
            (b"\x1b[31mred\x07", r"`\u{1b}[31mred\u{7}`"),
            (b"caf\xc3\xa9 \xff", "`café \u{fffd}`"),
            (b"", "``"),
        ];
        for (text, quoted) in rows {
            assert_eq!(quote(text), quoted);
        }
        assert_eq!(quote(long), format!("`{}...`", "x".repeat(200)));
        assert_eq!(quote(&long[..200]), format!("`{}`", "x".repeat(200)));
        assert_eq!(quote(&long[..201]), format!("`{}...`", "x".repeat(200)));
    }

    #[test]
    fn a_list_names_a_few_and_counts_the_rest() {
        let items: Vec<_> = ["a", "b", "c", "d", "e"].map(str::to_owned).into();
        assert_eq!(sentences(&items[..2]), "a; b");
        assert_eq!(sentences(&items), "a; b; c; and 2 more");
        assert_eq!(times(1), "once");
        assert_eq!(times(0), "0 times");
    }
}

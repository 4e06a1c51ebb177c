//! Questions as people write them: which results, how they are aggregated, which columns are shown.
//!
//! ```text
//! COMPARISON = [SELECTION "/"] SELECTION "/" AGGREGATION "/" COLUMNS
//! SELECTION  = [TERM {"," TERM}] ["?" CEL]
//! TERM       = SESSION | "latest" | NIGHT | NIGHT ".." NIGHT | MOMENT ":" MOMENT
//!            | ("night" | "system" | "partition" | "tag" | "check") "=" VALUE
//! AGGREGATION = FUNCTION {"," FUNCTION} ":" [COLUMNS]      FUNCTION = NAME | NAME "(" COLUMN ")"
//! COLUMNS    = {"+" COLUMN} | COLUMN {"," COLUMN}          the default and these | these
//! ```
//! It is ReFrame's syntax, with nights and filters added, and with CEL in place of Python. Every text is either read or refused: nothing
//! here panics, and nothing depends on a clock.

mod aggregate;
mod condition;
mod select;
mod unknown;

pub use aggregate::{Aggregation, Call, Columns, Function};
pub use condition::{CaseCounts, NAMES};
pub use select::{Filter, Filters, Range, Selection, When};

/// A mistake in a question: a lower-case fragment that says what to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub String);

/// Two sets of results, how each is aggregated, and which columns are shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The new side; `None`: the session that has just run.
    pub lhs: Option<Selection>,
    pub rhs: Selection,
    pub aggregation: Aggregation,
    pub columns: Columns,
}

impl Comparison {
    /// Reads `SELECTION/SELECTION/AGGREGATION/COLUMNS`.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let parts = split(text, '/');
        match &parts[..] {
            [lhs, rhs, aggregation, columns] => Self::of(Some(lhs), rhs, aggregation, columns),
            _ => Err(SpecError(format!(
                "`{text}` is not a comparison: write NEW/OLD/AGGREGATION/COLUMNS, as in now-1d:now/now-8d:now-1d/median:/+result"
            ))),
        }
    }

    /// Reads `SELECTION/AGGREGATION/COLUMNS`: with one set.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse_with_one_set(text: &str) -> Result<Self, SpecError> {
        let parts = split(text, '/');
        match &parts[..] {
            [rhs, aggregation, columns] => Self::of(None, rhs, aggregation, columns),
            _ => Err(SpecError(format!(
                "`{text}` is not SELECTION/AGGREGATION/COLUMNS, as in now-1d:now/last:/+job_nodelist+result"
            ))),
        }
    }

    fn of(lhs: Option<&str>, rhs: &str, aggregation: &str, columns: &str) -> Result<Self, SpecError> {
        Ok(Self {
            lhs: lhs.map(Selection::parse).transpose()?,
            rhs: Selection::parse(rhs)?,
            aggregation: Aggregation::parse(aggregation)?,
            columns: Columns::parse(columns)?,
        })
    }
}

/// The parts between separators that are in no quotes and no brackets.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0_usize, None);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => _ = chars.next(),
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, c) if c == separator && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            (Some(_) | None, _) => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reframes_comparisons_are_read() {
        let rows = [
            ("now-1d:now/now-1w:now-1d/median:/+result", "now-1d:now", "now-1w:now-1d"),
            ("20261101:20261108/20261115:20261122/max(pval),min:+job_nodelist/", "20261101:20261108", "20261115:20261122"),
            (r#"?version == "1/2"/now-1d:now?user == 'a/b'/p05:/a,b_L"#, r#"?version == "1/2""#, "now-1d:now?user == 'a/b'"),
            ("20261124-0715/latest/mean:/", "20261124-0715", "latest"),
        ];
        for (text, lhs, rhs) in rows {
            let read = Comparison::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(
                (read.lhs.map(|lhs| lhs.to_string()).as_deref(), read.rhs.to_string().as_str()),
                (Some(lhs), rhs),
                "{text}"
            );
        }
        let one = Comparison::parse_with_one_set("now-1d:now/last:/+job_nodelist+result").expect("one set");
        assert_eq!((one.lhs, one.columns), (None, Columns::Extend(vec!["job_nodelist".into(), "result".into()])));
    }

    #[test]
    fn a_mistake_says_what_to_write() {
        let lines: Vec<String> = [
            "now-1d:now",
            "now-1d:now/last:/x",
            "now-1d:now/now-2d:now-1d/avg:/",
            "now-1d:now/now-2d:now-1d/median/",
            "now-1d:now/now-2d:now-1d/median(pval:/",
            "now-1d:now/now-2d:now-1d/:/",
            "now-1d:now/now-2d:now-1d/p100:/",
            "now-1d:now/now-2d:now-1d/median:/a,,b",
            "now-1d:now/now-2d:now-1d/median:/a+b",
            "now-1d:now/yesterday:now/median:/",
        ]
        .iter()
        .map(|text| Comparison::parse(text).expect_err(text).to_string())
        .collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn separators_in_quotes_and_brackets_do_not_separate() {
        let rows: [(&str, &[&str]); 6] = [
            ("", &[""]),
            ("a/b", &["a", "b"]),
            ("'a/b'/c", &["'a/b'", "c"]),
            (r#""a\"/b"/c"#, &[r#""a\"/b""#, "c"]),
            ("f(a/b)/c", &["f(a/b)", "c"]),
            ("'a/b", &["'a/b"]),
        ];
        for (text, parts) in rows {
            assert_eq!(split(text, '/'), parts, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_question_is_too_strange(text in ".*", odd in r#"[-+a-z0-9/:,?=.()'"\\ é]*"#) {
            for text in [&text, &odd] {
                let _ = Comparison::parse(text);
                let _ = Comparison::parse_with_one_set(text);
                let _ = Selection::parse(text);
            }
        }
    }
}

//! The reach of a pattern decides whether a log may be searched block by block, and what a lint says.

use regex_syntax::{
    ParserBuilder,
    hir::{
        Class, Hir, HirKind, Look,
        literal::{ExtractKind, Extractor},
    },
};

/// The part of a text on which a pattern's matches can depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// One line and its borders: any block of whole lines gives the matches of the whole text.
    Line,
    /// The whole text: a match may hold a newline, or the pattern asks where the text begins or ends.
    Text,
}

/// Parses as the search will: multi-line, and bytes that need not be UTF-8.
#[expect(clippy::result_large_err, reason = "the regex crate's own error, turned into ours by every caller")]
pub(super) fn parse(pattern: &str) -> Result<Hir, regex_syntax::Error> {
    ParserBuilder::new().multi_line(true).utf8(false).build().parse(pattern)
}

impl Reach {
    pub(super) fn of(hir: &Hir) -> Self {
        let sees_text = match hir.kind() {
            HirKind::Empty => false,
            HirKind::Literal(literal) => literal.0.contains(&b'\n'),
            HirKind::Class(class) => holds(class, '\n'),
            // `(?R)` treats `\r\n` as one: cut between the two, `$` would match twice.
            HirKind::Look(look) => matches!(look, Look::Start | Look::End | Look::StartCRLF | Look::EndCRLF),
            HirKind::Repetition(_) | HirKind::Capture(_) | HirKind::Concat(_) | HirKind::Alternation(_) => {
                return children(hir).map(Self::of).find(|reach| *reach == Self::Text).unwrap_or(Self::Line);
            }
        };
        if sees_text { Self::Text } else { Self::Line }
    }
}

/// The text that every match begins with, if there is one.
pub(super) fn start(hir: &Hir) -> Option<Vec<u8>> {
    let literals = Extractor::new().kind(ExtractKind::Prefix).extract(hir);
    literals.longest_common_prefix().filter(|literal| !literal.is_empty()).map(<[u8]>::to_vec)
}

fn children(hir: &Hir) -> impl Iterator<Item = &Hir> {
    let all: &[Hir] = match hir.kind() {
        HirKind::Repetition(repetition) => std::slice::from_ref(&*repetition.sub),
        HirKind::Capture(capture) => std::slice::from_ref(&*capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts,
        _ => &[],
    };
    all.iter()
}

/// Whether a class holds this ASCII character.
pub(super) fn holds(class: &Class, wanted: char) -> bool {
    match class {
        Class::Unicode(class) => class.iter().any(|range| (range.start()..=range.end()).contains(&wanted)),
        Class::Bytes(class) => class.iter().any(|range| (range.start()..=range.end()).contains(&(wanted as u8))),
    }
}

/// Whether the group of that number may match the empty text; 0 is the whole match.
pub(super) fn group_can_be_empty(hir: &Hir, group: usize) -> bool {
    match hir.kind() {
        _ if group == 0 => hir.properties().minimum_len() == Some(0),
        HirKind::Capture(capture) if capture.index as usize == group => capture.sub.properties().minimum_len() == Some(0),
        _ => children(hir).any(|child| group_can_be_empty(child, group)),
    }
}

/// Returns the danger of a pattern that compiles: a piece that may run over the whole log. Such a
/// search ends at `judge_limit` at the latest, but it is slow: `(?s)step(.*)tokens` took 51 s on 1 GiB.
pub fn lint(pattern: &str) -> Option<String> {
    let hir = parse(pattern).ok()?;
    swallows(&hir, false).then(|| {
        "it may swallow the whole log: `.*` with `(?s)`, or `[\\s\\S]*`, is greedy or is in a group; bound it, \
         as in `[\\s\\S]{0,500}?`, or keep to one line"
            .to_owned()
    })
}

/// A repetition without end of something that matches nearly everything, newlines included. The lazy one outside a
/// group is the accepted way to say "some lines later".
fn swallows(hir: &Hir, captured: bool) -> bool {
    match hir.kind() {
        HirKind::Repetition(repetition) if repetition.max.is_none() && (captured || repetition.greedy) => {
            anything(&repetition.sub) || swallows(&repetition.sub, captured)
        }
        HirKind::Capture(capture) => swallows(&capture.sub, true),
        _ => children(hir).any(|child| swallows(child, captured)),
    }
}

/// A class that leaves out hardly a character: `(?s).`, `[\s\S]`. Not `[^"]`, which ends at the next quote.
fn anything(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Class(class) => (' '..='~').chain(['\n', '\t']).all(|c| holds(class, c)),
        HirKind::Capture(capture) => anything(&capture.sub),
        HirKind::Alternation(branches) => branches.iter().any(anything),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_of_the_line_unless_it_can_see_a_newline() {
        use Reach::{Line, Text};
        let rows = [
            ("", Line),
            ("a.b", Line),
            ("^x$", Line),
            ("^$", Line),
            (r"\bfoo\b", Line),
            (r"\<foo\>", Line),
            (r"\w+", Line),
            (r"a[ \t]*=[ \t]*(\S+)x", Line),
            (r"[[:blank:]]", Line),
            (r"(?i)error|xid", Line),
            (r"a\sb", Text),
            (r"a\s*=\s*(\S+)", Text),
            (r"[^:]+:", Text),
            (r"(?-u)[^x]", Text),
            ("(?s)a.b", Text),
            (r"\Aid", Text),
            (r"end\z", Text),
            ("(?-m)^id", Text),
            ("(?-m)end$", Text),
            (r"a\nb", Text),
            ("a$\n^b", Text),
            (r"\W", Text),
            (r"[[:space:]]", Text),
            (r"(?R)^x$", Text),
            (r"READ[\s\S]*?(\d+)", Text),
            (r"(?:a|(b\n))?", Text),
        ];
        for (pattern, reach) in rows {
            assert_eq!(parse(pattern).map(|hir| Reach::of(&hir)), Ok(reach), "{pattern}");
        }
    }

    #[test]
    fn what_every_match_begins_with() {
        let rows = [
            (r"READ[\s\S]*?(\d+)", Some("READ")),
            (r"^READ\s", Some("READ")),
            (r"\bRE(?:AD|D)[\s\S]", Some("RE")),
            (r"(READ)(?s:.)", Some("READ")),
            (r"(?:READ){2,}\s", Some("READREAD")),
            (r"(?i)read\s", None),
            (r"(?:READ)?[\s\S]x", None),
            (r"(?:READ|WRITE)\s", None),
            (r"\s*READ", None),
            (r"\A", None),
            ("", None),
        ];
        for (pattern, expected) in rows {
            let found = start(&parse(pattern).unwrap()).map(|literal| String::from_utf8(literal).unwrap());
            assert_eq!(found.as_deref(), expected, "{pattern}");
        }
    }

    #[test]
    fn a_capture_without_bounds_gets_a_lint() {
        for pattern in [
            "(?s)step(.*)tokens",
            "(?s)host(.*?)NEVERX|gpu1",
            r"a([\s\S]*?)b",
            r"READ[\s\S]*(\d+)",
            "(?s)a.+b",
            r"(x(?:a|[\d\D])*?)",
        ] {
            assert!(lint(pattern).is_some(), "{pattern}");
        }
        for pattern in
            ["a(.*)b", r"READ[\s\S]*?(\d+)", "(?s)a(.{0,200})b", r#"name="([^"]*)""#, r"a(\s*)b", "(", r"^(?<key>\d+)\s+(\S+)$"]
        {
            assert_eq!(lint(pattern), None, "{pattern}");
        }
        insta::assert_snapshot!(lint("(?s)x(.*)y").unwrap(), @r"it may swallow the whole log: `.*` with `(?s)`, or `[\s\S]*`, is greedy or is in a group; bound it, as in `[\s\S]{0,500}?`, or keep to one line");
    }
}

//! Words for patterns that do not compile: what is wrong, where, and what to write instead.

use super::PatternError;
use regex_syntax::ast::{self, ErrorKind, Span};
use std::ops::Range;

/// What YAML makes of escapes within double quotes, where regexes give the same letters another meaning. The rest
/// either means the same (`\n`, `\t`, `\x41`) or is a YAML error of its own (`\d`, `\s`).
const EATEN: [(char, &str); 2] = [('\u{8}', r"\b"), ('\u{2029}', r"\P")];

/// A control character that is not typed: YAML's double quotes made it of an escape.
pub(super) fn refuse_eaten_escapes(pattern: &str) -> Result<(), PatternError> {
    let eaten = |c: char| EATEN.iter().find(|(control, _)| *control == c).map(|(_, escape)| *escape);
    match pattern.char_indices().find_map(|(at, c)| eaten(c).map(|escape| (at, c, escape))) {
        None => Ok(()),
        Some((at, c, escape)) => Err(PatternError {
            message: format!("the pattern holds the control character U+{:04X}", u32::from(c)),
            hint: Some(format!("write patterns in single quotes: within double quotes YAML eats `{escape}`")),
            at: Some(at..at + c.len_utf8()),
        }),
    }
}

/// Explains what the parser refused.
pub(super) fn explain(pattern: &str, error: &regex_syntax::Error) -> PatternError {
    match error {
        regex_syntax::Error::Parse(error) => explain_syntax(pattern, error),
        regex_syntax::Error::Translate(error) => {
            PatternError { message: error.kind().to_string(), hint: None, at: Some(range(error.span())) }
        }
        other => PatternError { message: last_line(&other.to_string()), hint: None, at: None },
    }
}

/// Explains what only showed when the parsed pattern was compiled.
pub(super) fn explain_build(error: &regex::Error) -> PatternError {
    match error {
        regex::Error::CompiledTooBig(limit) => PatternError {
            message: format!("the compiled pattern is larger than {} MiB", limit >> 20),
            hint: Some("a count such as `{500}` repeats what it follows: lower it, or write `[0-9A-Za-z_]` for `\\w`".to_owned()),
            at: None,
        },
        other => PatternError { message: last_line(&other.to_string()), hint: None, at: None },
    }
}

fn explain_syntax(pattern: &str, error: &ast::Error) -> PatternError {
    let mut at = range(error.span());
    let (message, hint) = match error.kind() {
        ErrorKind::UnsupportedLookAround => (
            "look-ahead and look-behind are not supported".to_owned(),
            Some("match the surroundings too and put what you want in a group, or say `not_found` of what must not be there"),
        ),
        ErrorKind::UnsupportedBackreference => (
            "back-references are not supported".to_owned(),
            Some("capture both places and compare them in an `assert`; a backslash itself is `\\\\`"),
        ),
        kind if let Some(brace) = brace(kind, pattern, &at) => {
            at = brace..brace + 1;
            (
                "`{` begins a count such as `{2,5}`, and this is not a count".to_owned(),
                Some("write `\\{` for the character itself, `{0,5}` for at most five"),
            )
        }
        ErrorKind::FlagUnrecognized if pattern[..at.end].ends_with("(?P") => {
            ("back-references are not supported".to_owned(), Some("write `(?P<name>` to name a group"))
        }
        ErrorKind::FlagUnrecognized if pattern[..at.end].ends_with("(?>") => {
            ("atomic groups are not supported".to_owned(), Some("write `(?:`: no search backtracks here"))
        }
        ErrorKind::EscapeUnrecognized if pattern.get(at.clone()) == Some("\\Z") => {
            ("`\\Z` is Python's".to_owned(), Some("write `\\z` for the end of the text, `$` for the end of a line"))
        }
        kind @ ErrorKind::GroupUnclosed => (kind.to_string(), Some("close it with `)`, or write `\\(` for the character itself")),
        kind @ ErrorKind::GroupUnopened => (kind.to_string(), Some("write `\\)` for the character itself")),
        kind @ ErrorKind::ClassUnclosed => (kind.to_string(), Some("close it with `]`, or write `\\[` for the character itself")),
        kind @ ErrorKind::RepetitionMissing => (kind.to_string(), Some("write a backslash before it for the character itself")),
        kind => (kind.to_string(), None),
    };
    PatternError { message, hint: hint.map(str::to_owned), at: Some(at) }
}

/// The place of a brace that was meant literally: ReFrame's Python takes it as such when no count follows.
fn brace(kind: &ErrorKind, pattern: &str, at: &Range<usize>) -> Option<usize> {
    let before = || pattern[..at.end].rfind('{');
    match kind {
        ErrorKind::RepetitionCountUnclosed | ErrorKind::RepetitionCountDecimalEmpty | ErrorKind::DecimalInvalid => before(),
        ErrorKind::RepetitionMissing if pattern[at.start..].starts_with('{') => Some(at.start),
        ErrorKind::RepetitionMissing if pattern[..at.start].ends_with('{') => before(),
        _ => None,
    }
}

fn range(span: &Span) -> Range<usize> {
    span.start.offset..span.end.offset
}

/// The regex crates print a drawing; its last line is the sentence.
fn last_line(text: &str) -> String {
    text.lines().next_back().unwrap_or(text).trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use crate::pattern::Pattern;

    fn say(pattern: &str) -> String {
        let Err(error) = Pattern::compile(pattern) else { return format!("{pattern:?} compiles") };
        let at = error.at.clone().map_or_else(|| "nowhere".to_owned(), |at| format!("`{}`", pattern[at].escape_debug()));
        assert_eq!(error.message.lines().count(), 1, "{}", error.message);
        let hint = error.hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
        format!("{pattern:?}: {error}, at {at}{hint}")
    }

    #[test]
    fn a_pattern_that_does_not_compile_gets_a_hint() {
        let patterns = [
            r"x(?=y)",
            r"(?<!x)y",
            r"(a) \1",
            r"(?P<q>a)(?P=q)",
            "{x}",
            "data: {x}",
            "a{",
            "a{2,",
            "a{,5}",
            "|{x}",
            "a{5,2}",
            "\u{8}word\u{8}",
            "\u{2029}{L}",
            r"end\Z",
            "(?>a)",
            "(a",
            "a)",
            "[a",
            r"\p{Nonsense}",
            r"\q",
            "*a",
            r"(?<a>x)(?<a>y)",
            r"\w{1000}{100}",
        ];
        let lines: Vec<_> = patterns.into_iter().map(say).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        "x(?=y)": look-ahead and look-behind are not supported, at `(?=`; match the surroundings too and put what you want in a group, or say `not_found` of what must not be there
        "(?<!x)y": look-ahead and look-behind are not supported, at `(?<!`; match the surroundings too and put what you want in a group, or say `not_found` of what must not be there
        "(a) \\1": back-references are not supported, at `\\1`; capture both places and compare them in an `assert`; a backslash itself is `\\`
        "(?P<q>a)(?P=q)": back-references are not supported, at `P`; write `(?P<name>` to name a group
        "{x}": `{` begins a count such as `{2,5}`, and this is not a count, at `{`; write `\{` for the character itself, `{0,5}` for at most five
        "data: {x}": `{` begins a count such as `{2,5}`, and this is not a count, at `{`; write `\{` for the character itself, `{0,5}` for at most five
        "a{": `{` begins a count such as `{2,5}`, and this is not a count, at `{`; write `\{` for the character itself, `{0,5}` for at most five
        "a{2,": `{` begins a count such as `{2,5}`, and this is not a count, at `{`; write `\{` for the character itself, `{0,5}` for at most five
        "a{,5}": `{` begins a count such as `{2,5}`, and this is not a count, at `{`; write `\{` for the character itself, `{0,5}` for at most five
        "|{x}": `{` begins a count such as `{2,5}`, and this is not a count, at `{`; write `\{` for the character itself, `{0,5}` for at most five
        "a{5,2}": invalid repetition count range, the start must be <= the end, at `{5,2}`
        "\u{8}word\u{8}": the pattern holds the control character U+0008, at `\u{8}`; write patterns in single quotes: within double quotes YAML eats `\b`
        "\u{2029}{L}": the pattern holds the control character U+2029, at `\u{2029}`; write patterns in single quotes: within double quotes YAML eats `\P`
        "end\\Z": `\Z` is Python's, at `\\Z`; write `\z` for the end of the text, `$` for the end of a line
        "(?>a)": atomic groups are not supported, at `>`; write `(?:`: no search backtracks here
        "(a": unclosed group, at `(`; close it with `)`, or write `\(` for the character itself
        "a)": unopened group, at `)`; write `\)` for the character itself
        "[a": unclosed character class, at `[`; close it with `]`, or write `\[` for the character itself
        "\\p{Nonsense}": Unicode property not found, at `\\p{Nonsense}`
        "\\q": unrecognized escape sequence, at `\\q`
        "*a": repetition operator missing expression, at ``; write a backslash before it for the character itself
        "(?<a>x)(?<a>y)": duplicate capture group name, at `a`
        "\\w{1000}{100}": the compiled pattern is larger than 10 MiB, at nowhere; a count such as `{500}` repeats what it follows: lower it, or write `[0-9A-Za-z_]` for `\w`
        "#);
    }
}

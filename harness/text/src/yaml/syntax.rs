//! Syntax errors in plain words, with advice: translates the messages of the parser.

use granit_parser::ErrorKind;

/// What to do about a placeholder that YAML takes apart.
pub(super) const QUOTE_PLACEHOLDER: &str = "put the whole value in quotes: a placeholder needs them inside [ ] and { }, and \
                                            where its expression contains `: ` or ` #`";

/// Where the placeholder begins that byte `at` lies in, if it lies in one. YAML may have stopped at its first brace.
pub(super) fn placeholder_around(text: &str, at: usize) -> Option<usize> {
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    let line = &text[line_start..line_end];
    let starts = line.match_indices("${{").map(|(start, _)| line_start + start);
    // Up to `}}`, or to the end of the line.
    let holds = |start: &usize| *start <= at && !text[*start..at].contains("}}");
    starts.filter(holds).last()
}

/// The parser's error at byte `at` of `text`, in plain words, and advice.
pub(super) fn explain(kind: &ErrorKind, text: &str, at: usize) -> (String, Option<&'static str>) {
    let line_before = text[..at].rsplit('\n').next().unwrap_or_default();
    let line_after = text[at..].lines().next().unwrap_or_default();
    match (words(kind), kind) {
        (Some((message, hint)), _) => (message.to_owned(), Some(hint)),
        (None, ErrorKind::UnexpectedCharacter { .. }) => match line_after.chars().next() {
            Some(c @ ('%' | '@' | '`')) => (format!("a value cannot begin with `{c}`"), Some("put the value in quotes")),
            Some(c) => (format!("unexpected character `{}`", c.escape_debug()), None),
            None => (kind.to_string(), None),
        },
        (None, ErrorKind::UndeclaredTagHandle) if line_before.contains('!') || line_after.starts_with('!') => {
            ("`!` begins a tag".to_owned(), Some("a value that begins with `!` needs quotes"))
        }
        (None, _) => (kind.to_string(), None),
    }
}

fn words(kind: &ErrorKind) -> Option<(&'static str, &'static str)> {
    use ErrorKind as E;
    Some(match kind {
        E::TabInIndentation | E::TabInBlockIndentation | E::TabNotAllowed | E::TabAtBlockScalarStart => {
            ("a tab cannot indent", "YAML is indented with spaces")
        }
        E::MappingValueNotAllowed | E::MappingKeyNotAllowed => {
            ("a key is not possible here", "a value that contains `: ` needs quotes; or a `:` is missing in the line above")
        }
        E::SimpleKeyExpected | E::InvalidSimpleKey => ("a `:` is missing after the key", "write `key: value`"),
        E::MissingAnchorOrAliasName => {
            ("`*` and `&` begin an alias and an anchor", "a value that begins with `*` or `&` needs quotes")
        }
        E::UnclosedQuotedScalar => ("a quote is never closed", "in single quotes, write ' as ''"),
        E::UnknownQuotedScalarEscape | E::InvalidQuotedScalarHexEscape => {
            ("unknown escape in a text in double quotes", "write patterns and other texts with backslashes in single quotes")
        }
        E::InvalidTrailingSingleQuotedScalar | E::InvalidTrailingDoubleQuotedScalar => {
            ("text follows after the closing quote", "put the whole value in quotes")
        }
        E::InvalidQuotedScalarIndent => ("a quote above is never closed", "close it; in single quotes, write ' as ''"),
        E::InvalidColonPlacement => ("`:` is not possible here", "is a ] or } missing above?"),
        E::MisplacedFlowCollectionEnd | E::MismatchedFlowCollectionEnd { .. } => {
            ("this bracket closes nothing", "remove it, or put the value in quotes")
        }
        E::UnclosedFlowCollection { .. }
        | E::UnexpectedEofFlowSequence
        | E::UnexpectedEofFlowMapping
        | E::UnexpectedEofImplicitFlowMapping => ("a bracket is never closed", "close it with ] or }"),
        E::ExpectedFlowMappingSeparator => ("expected `,` or `}`", "a value with {, }, [, ] or a comma needs quotes here"),
        E::ExpectedFlowSequenceSeparator => ("expected `,` or `]`", "a value with {, }, [, ] or a comma needs quotes here"),
        E::ExpectedBlockMappingKey | E::ExpectedBlockSequenceEntry | E::InvalidIndentation => {
            ("this line does not belong to the lines above it", "indent it like the key or item that it belongs to")
        }
        E::BlockSequenceEntryNotAllowed | E::InvalidBlockEntryWhitespace => {
            ("a list item is not possible here", "start it on a line of its own, with `- `")
        }
        _ => return None,
    })
}

//! Mistakes as text for a person: message, place, line, caret, hint. What a file contains never reaches a terminal as
//! a control character, and a secret in it never does.

use super::{Diagnostic, Severity, Source, Sources, Span, masked::masked};
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use std::{borrow::Cow, collections::BTreeSet, ops::Range};

/// Two places of one file are shown in one picture if at most so many lines lie between them.
const NEAR_LINES: usize = 20;

/// How many diagnostics are shown with source lines. Each has to find its position in the text again.
const PICTURES: usize = 50;

/// All mistakes with their lines, in the order of files and places, equal ones once, and a line that counts them.
/// After the first fifty, one line each.
pub fn render(diagnostics: &[Diagnostic], sources: &Sources, color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut text = String::new();
    let (diagnostics, sources) = &masked(diagnostics, sources);
    let sorted = sorted(diagnostics);
    let (pictured, rest) = sorted.split_at(sorted.len().min(PICTURES));
    for diagnostic in pictured {
        text.push_str(&renderer.render(&[group(diagnostic, sources)]));
        if let (None, Some(hint)) = (diagnostic.span, &diagnostic.hint) {
            // Without a picture the renderer has no place for it.
            text.push_str("\n  = help: ");
            text.push_str(&harmless(hint));
        }
        text.push_str("\n\n");
    }
    for diagnostic in rest {
        text.push_str(&short(diagnostic, sources));
    }
    if !rest.is_empty() {
        text.push('\n');
    }
    if let Some(summary) = summary(&sorted) {
        text.push_str(&renderer.render(&[Group::with_title(Level::ERROR.primary_title(summary))]));
        text.push('\n');
    }
    text
}

/// One line each: `file:line:column: error: message (hint)`.
pub fn render_short(diagnostics: &[Diagnostic], sources: &Sources) -> String {
    let (diagnostics, sources) = &masked(diagnostics, sources);
    sorted(diagnostics).into_iter().map(|diagnostic| short(diagnostic, sources)).collect()
}

fn short(diagnostic: &Diagnostic, sources: &Sources) -> String {
    let place = diagnostic.span.and_then(|span| sources.position(span));
    let place = place.map(|(path, line, column)| format!("{path}:{line}:{column}: ")).unwrap_or_default();
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let hint = diagnostic.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{}\n", harmless(&format!("{place}{severity}: {}{hint}", diagnostic.message)))
}

/// Without a place first, then by file and place; each once.
fn sorted(diagnostics: &[Diagnostic]) -> Vec<&Diagnostic> {
    let mut sorted: Vec<_> = diagnostics.iter().collect();
    let rank = |d: &Diagnostic| (d.span, d.severity, d.message.clone(), d.hint.clone(), d.related.clone());
    sorted.sort_by_cached_key(|diagnostic| rank(diagnostic));
    sorted.dedup();
    sorted
}

fn summary(diagnostics: &[&Diagnostic]) -> Option<String> {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let count = errors.clone().count();
    let files: BTreeSet<_> = errors.filter_map(|diagnostic| diagnostic.span).map(|span| span.file).collect();
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let mistakes = plural(count, "mistake");
    match files.len() {
        _ if count == 0 => None,
        // One sentence needs no counting.
        0 if diagnostics.len() == 1 => None,
        0 => Some(mistakes),
        files => Some(format!("{mistakes} in {}", plural(files, "file"))),
    }
}

fn group<'a>(diagnostic: &'a Diagnostic, sources: &'a Sources) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(harmless(&diagnostic.message)));
    let primary = diagnostic.span.map(|span| (span, AnnotationKind::Primary, None));
    let related = diagnostic.related.as_ref().map(|(span, label)| (*span, AnnotationKind::Context, Some(label.as_str())));
    let mut places: Vec<Place<'_>> = primary.into_iter().chain(related).filter_map(|place| Place::find(place, sources)).collect();
    let one_picture = matches!(&places[..], [one, other] if one.is_near(other));
    if one_picture {
        group = group.element(picture(&places));
    } else {
        for place in places.drain(..) {
            group = group.element(picture(&[place]));
        }
    }
    match &diagnostic.hint {
        Some(hint) if diagnostic.span.is_some() => group.element(Level::HELP.message(harmless(hint))),
        _ => group,
    }
}

/// A place in a source: its first line, and the bytes to underline in it.
struct Place<'a> {
    source: &'a Source,
    span: Span,
    line: Range<usize>,
    bytes: Range<usize>,
    kind: AnnotationKind,
    label: Option<&'a str>,
}

impl<'a> Place<'a> {
    fn find((span, kind, label): (Span, AnnotationKind, Option<&'a str>), sources: &'a Sources) -> Option<Self> {
        let source = sources.get(span.file)?;
        let start = source.until(span.start).len();
        let line_start = source.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let rest = &source.text[start..];
        let line_end = start + rest.find('\n').unwrap_or(rest.len());
        // Of a value over several lines, its first line says enough.
        let shown = source.until(span.end).len().clamp(start, line_end);
        let end = start + source.text[start..shown].trim_end().len();
        Some(Self { source, span, line: line_start..line_end, bytes: start..end, kind, label })
    }

    fn is_near(&self, other: &Self) -> bool {
        let between = self.line.start.min(other.line.start)..self.line.end.max(other.line.end);
        self.span.file == other.span.file && self.source.text[between].matches('\n').take(NEAR_LINES + 1).count() <= NEAR_LINES
    }
}

/// The lines from the first to the last of these places, which are of one source.
fn picture<'a>(places: &[Place<'a>]) -> Snippet<'a, Annotation<'a>> {
    let start = places.iter().map(|place| place.line.start).min().unwrap_or(0);
    let end = places.iter().map(|place| place.line.end).max().unwrap_or(start);
    let Some(first) = places.first() else { return Snippet::source("") };
    let text = &first.source.text;
    let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..start]).count() + 1;
    let annotations = places
        .iter()
        .map(|place| place.kind.span(place.bytes.start - start..place.bytes.end - start).label(place.label.map(harmless)));
    Snippet::source(same_length(&text[start..end])).line_start(line).path(harmless(&first.source.path)).annotations(annotations)
}

/// The text without control characters.
fn harmless(text: &str) -> Cow<'_, str> {
    if text.contains(char::is_control) {
        text.chars()
            .map(|c| {
                if c == '\n' {
                    ' '
                } else if c.is_control() {
                    '\u{fffd}'
                } else {
                    c
                }
            })
            .collect()
    } else {
        text.into()
    }
}

/// Source text without the control characters that the renderer leaves alone (U+0080 to U+009F), each byte in its
/// place.
fn same_length(text: &str) -> Cow<'_, str> {
    let is_c1 = |c: char| ('\u{80}'..='\u{9f}').contains(&c);
    if text.contains(is_c1) { text.replace(is_c1, "\u{bf}").into() } else { text.into() }
}

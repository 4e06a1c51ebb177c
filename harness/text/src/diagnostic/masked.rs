//! Mistakes without the secrets of the lines where they are.

use super::{Diagnostic, FileId, Sources, Span};
use crate::secret::{self, LEAST, MASK};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

/// Stars in the source lines, each in the place of one byte so that columns stay, and a mask in what is said about them.
pub(super) fn masked(diagnostics: &[Diagnostic], sources: &Sources) -> (Vec<Diagnostic>, Sources) {
    let files: BTreeSet<FileId> = diagnostics.iter().flat_map(spans).map(|span| span.file).collect();
    let places_of = |file| Some((file, secret::places(&sources.get(file)?.text)));
    let places: BTreeMap<_, _> = files.into_iter().filter_map(places_of).filter(|(_, places)| !places.is_empty()).collect();
    let mut starred = sources.clone();
    for (file, places) in &places {
        if let Some(source) = sources.get(*file) {
            starred.replace(*file, secret::starred(&source.text, places));
        }
    }
    (diagnostics.iter().map(|diagnostic| without_secrets(diagnostic, sources, &places)).collect(), starred)
}

fn spans(diagnostic: &Diagnostic) -> impl Iterator<Item = Span> {
    diagnostic.span.into_iter().chain(diagnostic.related.iter().map(|(span, _)| *span))
}

fn without_secrets(diagnostic: &Diagnostic, sources: &Sources, places: &BTreeMap<FileId, Vec<Range<usize>>>) -> Diagnostic {
    let mut secrets: Vec<&str> = spans(diagnostic)
        .filter_map(|span| Some((span, places.get(&span.file)?, sources.get(span.file)?)))
        .flat_map(|(span, places, source)| {
            let (start, end) = (source.until(span.start).len(), source.until(span.end).len());
            let start = source.text[..start].rfind('\n').map_or(0, |at| at + 1);
            let end = source.text[end..].find('\n').map_or(source.text.len(), |at| end + at);
            let is_here = move |place: &&Range<usize>| place.start < end && place.end > start;
            places.iter().filter(is_here).map(|place| &source.text[place.clone()])
        })
        .filter(|secret| secret.chars().count() >= LEAST)
        .collect();
    // Of two that begin alike the longer one goes first, so that nothing of it stays.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let hide = |text: &str| secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, MASK));
    Diagnostic {
        message: hide(&diagnostic.message),
        hint: diagnostic.hint.as_deref().map(hide),
        related: diagnostic.related.as_ref().map(|(span, label)| (*span, hide(label))),
        ..diagnostic.clone()
    }
}

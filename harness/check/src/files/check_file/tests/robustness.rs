//! No file makes the reader panic, and a large tree is read fast.

use super::*;
use crate::testing::schedulers;
use muster_text::{
    diagnostic::{FileId, render},
    yaml::{merge, to_parameter_value, to_value},
};
use proptest::prelude::*;
use std::time::Instant;

/// What YAML and Muster care about.
const PIECES: [&str; 34] = [
    "", "\n", "  ", "\t", ":", ": ", "- ", "[", "]", "{", "}", "'", "\"", "#", " #", "&a ", "*a", "!x ", "|", ">", "<<: ", "?",
    "${{", "}}", "+", "null", "---\n", "...\n", "%", "\\", "é", "\u{1b}", "\u{feff}", "\r",
];

/// Reads, decodes, merges, converts and renders a text: whatever it is, that ends, and nothing of it moves a cursor.
fn survives(text: &str) -> Result<(), String> {
    let mut sources = Sources::default();
    let file = sources.add("check.yaml", text);
    let parsed = parse(file, text);
    let mut all = parsed.diagnostics;
    for placeholders in [Placeholders::Defer, Placeholders::Refuse] {
        let mut context = Context::with(placeholders, schedulers().own_keys().clone());
        for document in &parsed.documents {
            CheckFile::decode(document, &mut context);
        }
        all.append(&mut context.diagnostics);
    }
    for document in &parsed.documents {
        let both = merge(document, document, &mut all);
        all.extend(to_value(&both).err().unwrap_or_default());
        all.extend(to_parameter_value(&both).err().unwrap_or_default());
    }
    let rendered = render(&all, &sources, false);
    let harmless = !rendered.contains(|c: char| c.is_control() && c != '\n') && rendered.is_empty() == all.is_empty();
    if harmless { Ok(()) } else { Err(format!("{text:?} {rendered:?}")) }
}

/// Replaces up to `length` bytes of a text from `start` on.
fn changed(text: &str, start: usize, length: usize, piece: &str) -> String {
    let boundary = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (start, end) = (boundary(start), boundary(start + length));
    [&text[..start], piece, &text[end..]].concat()
}

#[test]
fn no_single_change_to_a_small_file_makes_it_panic() {
    let small = "name: &n a\ntags: ['y']\nwhen:\n  - { system: *n, with: {a: 1} }\nsanity: [{ found: x }]\n---\ndescr: |\n  é\n";
    for start in 0..=small.len() {
        let letters = PIECES.iter().filter(|piece| piece.len() <= 1);
        for (length, piece) in letters.flat_map(|piece| [(0, piece), (1, piece)]) {
            assert_eq!(survives(&changed(small, start, length, piece)), Ok(()));
        }
    }
}

proptest! {
    #[test]
    fn no_change_to_a_good_file_makes_it_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, prop::sample::select(&PIECES[..])), 1..6)
    ) {
        let change = |text: String, (at, length, piece): (prop::sample::Index, usize, &str)| {
            changed(&text, at.index(text.len() + 1), length, piece)
        };
        let text = changes.into_iter().fold(NBODY.to_owned(), change);
        prop_assert_eq!(survives(&text), Ok(()));
    }
}

/// Only a release build is held to these; run with `cargo test --release -p muster-core a_large -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement, for release builds"]
fn a_large_file_is_read_in_the_blink_of_an_eye() {
    let values: Vec<_> = (0..10_000).map(|n| n.to_string()).collect();
    let text = format!("name: a\nparameters: {{ x: [{}] }}\n", values.join(", "));
    let started = Instant::now();
    let parsed = parse(FileId::default(), &text);
    let parsing = started.elapsed();
    assert!(parsed.diagnostics.is_empty());

    let nbody = parse(FileId::default(), NBODY).documents.swap_remove(0);
    let started = Instant::now();
    for _ in 0..10_000 {
        CheckFile::decode(&nbody, &mut Context::with(Placeholders::Defer, schedulers().own_keys().clone()));
    }
    let decoding = started.elapsed();
    println!("parsing 10,000 values: {parsing:?}; decoding {} keys 10,000 times: {decoding:?}", nbody.entries().len());
    assert!(parsing < Duration::from_millis(20) && decoding < Duration::from_millis(300));
}

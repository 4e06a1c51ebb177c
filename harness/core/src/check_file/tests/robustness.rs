//! No file makes the reader panic, and a large tree is read fast.

use super::*;
use crate::diagnostic::{FileId, render};
use proptest::prelude::*;
use std::time::Instant;

/// One change to a text: bytes left out, repeated, or replaced by what YAML cares about.
fn change() -> impl Strategy<Value = (prop::sample::Index, usize, String)> {
    let pieces = prop::sample::select(vec![
        "", "", "\n", "  ", "\t", ":", ": ", "- ", "[", "]", "{", "}", "'", "\"", "#", " #", "&a ", "*a", "!x ", "|", ">",
        "<<: ", "?", "${{", "}}", "+", "null", "---\n", "...\n", "%", "\\", "é", "\u{1b}", "\u{feff}", "\r", "0", "x",
    ]);
    (any::<prop::sample::Index>(), 0..12_usize, pieces.prop_map(str::to_owned))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_change_to_a_good_file_makes_it_panic(changes in prop::collection::vec(change(), 1..6)) {
        let mut text = NBODY.to_owned();
        for (at, length, piece) in changes {
            let boundary = |mut at: usize| { while !text.is_char_boundary(at) { at -= 1 } at };
            let start = boundary(at.index(text.len() + 1));
            let end = boundary((start + length).min(text.len())).max(start);
            text.replace_range(start..end, &piece);
        }
        let mut sources = Sources::default();
        let file = sources.add("check.yaml", text.as_str());
        let parsed = parse(file, &text);
        for placeholders in [Placeholders::Defer, Placeholders::Refuse] {
            let mut context = Context::new(placeholders);
            for document in &parsed.documents {
                CheckFile::decode(document, &mut context);
            }
            let all: Vec<_> = parsed.diagnostics.iter().chain(&context.diagnostics).cloned().collect();
            let rendered = render(&all, &sources, false);
            prop_assert!(!rendered.contains(|c: char| c.is_control() && c != '\n'), "{rendered:?}");
            prop_assert_eq!(rendered.is_empty(), all.is_empty());
        }
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
        CheckFile::decode(&nbody, &mut Context::new(Placeholders::Defer));
    }
    let decoding = started.elapsed();
    println!("parsing 10,000 values: {parsing:?}; decoding {} keys 10,000 times: {decoding:?}", nbody.entries().len());
    assert!(parsing < Duration::from_millis(20) && decoding < Duration::from_millis(300));
}

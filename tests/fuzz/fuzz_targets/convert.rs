//! ReFrame's Python to checks: no panic, twice the same, and what is written can be read.

#![no_main]

mod schedulers;

use libfuzzer_sys::fuzz_target;
use muster_convert::{Manifests, Source, convert};
use muster_text::{yaml, diagnostic::FileId};

fuzz_target!(|text: &str| {
    let source = || [Source { path: "check.py".to_owned(), text: text.to_owned(), ..Source::default() }];
    let schedulers = schedulers::schedulers();
    let (one, other) = (convert(&source(), &Nothing, &schedulers), convert(&source(), &Nothing, &schedulers));
    assert_eq!(one.refusals.len(), other.refusals.len());
    for (output, again) in one.outputs.iter().zip(&other.outputs) {
        assert_eq!(output.text, again.text);
        let parsed = yaml::parse(FileId::default(), &output.text);
        assert!(parsed.diagnostics.is_empty(), "{:?}\n{}", parsed.diagnostics, output.text);
    }
});

/// No file is there.
#[derive(Debug)]
struct Nothing;

impl Manifests for Nothing {
    fn read(&self, _: &str, _: &str) -> Option<String> {
        None
    }

    fn folder(&self, _: &str) -> Result<bool, String> {
        Ok(false)
    }
}

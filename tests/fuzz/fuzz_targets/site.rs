//! A site file: no panic, and every mistake stands within the text.

#![no_main]

mod schedulers;

use libfuzzer_sys::fuzz_target;
use muster_text::{yaml, decode::{Context, Placeholders}, diagnostic::FileId};
use muster_check::site::file as site_file;

fuzz_target!(|text: &str| {
    let parsed = yaml::parse(FileId::default(), text);
    let mut context = Context::new(Placeholders::Refuse);
    for document in &parsed.documents {
        site_file::read(document, &schedulers::schedulers(), &mut context);
    }
    for span in parsed.diagnostics.iter().chain(&context.diagnostics).filter_map(|diagnostic| diagnostic.span) {
        assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} of {} bytes", text.len());
    }
});

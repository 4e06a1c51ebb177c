use super::*;
use crate::site::System;
use crate::testing::schedulers;
use muster_text::{
    decode::{Context, Placeholders},
    diagnostic::{Diagnostic, Sources, render_short},
    yaml::parse,
};
use serde_json::json;

mod mistakes;
mod picking;
mod reading;

/// Reads a site file, with its mistakes in short.
fn read_site(text: &str) -> (Option<System>, String) {
    let mut sources = Sources::default();
    let file = sources.add("site.yaml", text);
    let parsed = parse(file, text);
    let mut context = Context::new(Placeholders::Refuse);
    context.diagnostics = parsed.diagnostics;
    let system = parsed.documents.first().and_then(|document| read(document, &schedulers(), &mut context));
    (system, render_short(&context.diagnostics, &sources))
}

/// A system that must be read without a mistake.
fn good(text: &str) -> System {
    let (system, mistakes) = read_site(text);
    assert_eq!(mistakes, "");
    system.unwrap()
}

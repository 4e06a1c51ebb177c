use super::*;
use muster_text::{
    decode::Placeholders,
    diagnostic::{Sources, render_short},
    yaml::parse,
};

mod mistakes;
mod reading;
mod robustness;
mod schema;

pub(crate) use schema::assert_fresh;

const NBODY: &str = include_str!("nbody.yaml");

/// Decodes every document of a text, with its mistakes in short.
fn read_all(text: &str, placeholders: Placeholders) -> (Vec<Option<CheckFile>>, String) {
    let mut sources = Sources::default();
    let file = sources.add("check.yaml", text);
    let parsed = parse(file, text);
    let mut context = Context::with(placeholders, crate::testing::schedulers().own_keys().clone());
    context.diagnostics = parsed.diagnostics;
    let checks = parsed.documents.iter().map(|document| CheckFile::decode(document, &mut context)).collect();
    (checks, render_short(&context.diagnostics, &sources))
}

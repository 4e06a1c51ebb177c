//! A check file, from its text to rendered cases: no panic, every mistake stands within the text, and no two cases of a
//! check have one name.

#![no_main]

mod schedulers;

use libfuzzer_sys::fuzz_target;
use muster_check::{site::{file as site_file, facts::{KnownSystems, SystemFacts}}, cases::{check::Check, test_case::LaunchFacts}, files::load::Loader};
use muster_text::{yaml, decode::{Context, Placeholders}, diagnostic::{Diagnostic, FileId, Severity, Sources, render}};
use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
};

const SITE: &str = "
name: s
partitions:
  - { name: l, scheduler: local, environs: [e], features: [gpu], extras: { cores: 64 }, time_limit: 30m }
  - { name: k, scheduler: k8s, environs: [e, f] }
  - { name: x, scheduler: local, environs: [f] }
environments: [{ name: e, features: [mpi] }, { name: f }]
";

static FACTS: LazyLock<SystemFacts> = LazyLock::new(|| {
    let parsed = yaml::parse(FileId::default(), SITE);
    let mut context = Context::new(Placeholders::Refuse);
    let system = site_file::read(&parsed.documents[0], &schedulers::schedulers(), &mut context).expect("a sound site");
    let known = KnownSystems::of([&system]);
    SystemFacts::new(Arc::new(system), known)
});

fuzz_target!(|text: &str| {
    let mut loader = Loader::new(schedulers::schedulers());
    loader.add("check.yaml", text);
    for path in loader.wanted() {
        loader.provide(&path, Ok("kind: Pod\nspec: { containers: [{ name: a, image: '${{ name }}' }] }\n".to_owned()));
    }
    let read = loader.finish();
    let mut diagnostics = read.diagnostics;
    for document in &read.checks {
        let Some(check) = Check::new(document, None, read.manifests.clone(), &FACTS.known, &mut diagnostics) else { continue };
        let cases = Arc::new(check).cases(&FACTS, &mut diagnostics);
        let is_sound = diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error);
        let names: HashSet<String> = cases.iter().map(|case| case.name.to_string()).collect();
        assert!(!is_sound || names.len() == cases.len(), "{names:?}");
        for case in cases.iter().take(8) {
            if let Err(mistakes) = case.render(&LaunchFacts::rehearsal()) {
                // What is wrong with every case was reported when the check was read.
                assert!(!mistakes.is_empty() || !is_sound);
                diagnostics.extend(mistakes);
            }
        }
    }
    shown(&diagnostics, text);
});

/// What is wrong can be shown, wherever it stands.
fn shown(diagnostics: &[Diagnostic], text: &str) {
    for span in diagnostics.iter().filter_map(|diagnostic| diagnostic.span).filter(|span| span.file == FileId::default()) {
        assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} of {} bytes", text.len());
    }
    let mut sources = Sources::default();
    sources.add("check.yaml", text);
    let few = &diagnostics[..diagnostics.len().min(16)];
    let in_file: Vec<Diagnostic> =
        few.iter().filter(|d| d.span.is_none_or(|span| span.file == FileId::default())).cloned().collect();
    render(&in_file, &sources, false);
}

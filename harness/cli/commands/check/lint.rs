//! `muster check lint`: what is probably not meant, on all systems that the site files describe.

use crate::{
    args::{Cli, LintArgs, LintFormat},
    inputs::{
        expansion::{self, Depth, errors},
        files,
        selection::with_detected_processor,
    },
    terminal::Terminal,
};
use anyhow::bail;
use muster_check::{
    cases::{check::Check, dependencies::Planned, test_case::TestCase},
    files::{load, needs},
    lint::{self, Finding, LINTS, Loaded, Silence},
    site::{
        System,
        facts::{KnownSystems, SystemFacts},
        file as site_file,
    },
};
use muster_core::decisions::pipeline::EXIT_USAGE;
use muster_text::diagnostic::{self, Diagnostic, Severity, Sources};
use serde_json::json;
use std::{collections::BTreeSet, sync::Arc};

/// Looks at checks. 0: nothing was found, 1: something was, 2: the files have mistakes.
pub fn lint(cli: &Cli, args: &LintArgs, terminal: Terminal) -> anyhow::Result<u8> {
    if args.explain {
        let widest = LINTS.iter().map(|lint| lint.name.len()).max().unwrap_or(0);
        let lines = LINTS.iter().map(|lint| format!("{:widest$}  {}\n", lint.name, lint.summary));
        terminal.print(&lines.collect::<String>());
        return Ok(0);
    }
    if let Some(name) = args.allow.iter().find(|name| !LINTS.iter().any(|lint| lint.name == **name)) {
        let near = diagnostic::nearest(name, LINTS.iter().map(|lint| lint.name));
        bail!("--allow {name}: there is no such lint{}", near.map(|near| format!("; did you mean {near}?")).unwrap_or_default());
    }
    let paths = super::paths(&args.paths, cli);
    let sites = files::sites(&cli.files.config_file, &paths, &cli.files.schedulers)?;
    if sites.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        terminal.diagnostics(&sites.diagnostics, &sites.sources);
        return Ok(EXIT_USAGE);
    }
    let knows_sites = !sites.systems.is_empty();
    let systems =
        if knows_sites { sites.systems } else { site_file::pick(&[], &cli.files.schedulers, "", None).into_iter().collect() };
    let loaded = files::checks_of("check lint", &paths, &cli.files.schedulers)?;
    let (findings, mistakes) = look(&loaded, systems, knows_sites);
    let silence = Silence::of(&loaded.sources);
    let is_reported = |finding: &Finding| !silence.covers(finding) && !args.allow.iter().any(|name| name == finding.lint);
    let reported: Vec<Finding> = silence.unknown.iter().cloned().chain(findings).filter(is_reported).collect();
    match args.format {
        LintFormat::Text => {
            let summary = if mistakes.is_empty() { summary(&loaded, reported.len()) } else { String::new() };
            terminal.print(&(text(&reported, &loaded.sources, terminal) + &summary));
            terminal.diagnostics(&mistakes, &loaded.sources);
        }
        LintFormat::Json => terminal.print(&json(&reported, &mistakes, &loaded.sources)?),
    }
    Ok(if mistakes.is_empty() { u8::from(!reported.is_empty()) } else { EXIT_USAGE })
}

/// All findings, and all mistakes on any of the systems, each once.
fn look(loaded: &load::Loaded, systems: Vec<System>, knows_sites: bool) -> (Vec<Finding>, Vec<Diagnostic>) {
    let known = KnownSystems::of(&systems);
    let systems = systems.into_iter().map(|system| SystemFacts::new(Arc::new(with_detected_processor(system)), known.clone()));
    let systems: Vec<SystemFacts> = systems.collect();
    let mut mistakes = loaded.diagnostics.clone();
    // Those with a mistake in the check itself: each of its variants would have it again.
    let mut unsound = BTreeSet::new();
    let mut read = Vec::new();
    for document in &loaded.checks {
        let before = errors(&mistakes);
        read.extend(Check::new(document, None, loaded.manifests.clone(), &known, &mut mistakes).map(|check| (document, check)));
        if errors(&mistakes) > before || !document.is_whole {
            unsound.insert(document.name.clone());
        }
    }
    needs::check(read.iter().map(|(_, check)| (&*check.name, &check.needs)), &mut mistakes);
    let fixtures = needs::used_as_fixtures(read.iter().map(|(_, check)| &check.needs));
    let fixtures: BTreeSet<String> = fixtures.into_iter().map(str::to_owned).collect();
    let mut checks = Vec::new();
    for (document, check) in read {
        let check = Arc::new(check);
        let has_cases = check.runs_by_itself() || !fixtures.contains(&*check.name);
        let systems = systems.iter().filter(|_| has_cases);
        let before = errors(&mistakes);
        let cases: Vec<TestCase> = systems.flat_map(|system| check.cases(system, &mut mistakes)).collect();
        if errors(&mistakes) > before {
            unsound.insert(check.name.clone());
        }
        look_at_variants(&cases, &mut unsound, &mut mistakes);
        checks.push(Loaded { document, check, cases });
    }
    // What loading warns of is a finding.
    mistakes.retain(|mistake| mistake.severity == Severity::Error);
    (lint::lint(&checks, &loaded.manifests, knows_sites.then_some(&known)), mistakes)
}

/// What is wrong with some variants only. Cases that need others are not rendered: what these leave is not known here.
fn look_at_variants(cases: &[TestCase], unsound: &mut BTreeSet<Arc<str>>, mistakes: &mut Vec<Diagnostic>) {
    let alone = cases.iter().filter(|case| !case.check.needs.any());
    let planned: Vec<Planned> = alone.map(|case| Planned { case: case.clone(), needs: Vec::new() }).collect();
    expansion::look_at(&planned, unsound, Depth::Every, mistakes);
}

/// `3 checks in 2 files: no findings`
fn summary(loaded: &load::Loaded, findings: usize) -> String {
    let files: BTreeSet<&str> = loaded.checks.iter().map(|document| &*document.path).collect();
    let count = |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
    let findings = if findings == 0 { "no findings".to_owned() } else { count(findings, "finding") };
    format!("{} in {}: {findings}\n", count(loaded.checks.len(), "check"), count(files.len(), "file"))
}

/// With line and hint; the name of the lint follows the message.
fn text(findings: &[Finding], sources: &Sources, terminal: Terminal) -> String {
    let named = |finding: &Finding| {
        let message = format!("{} [{}]", finding.diagnostic.message, finding.lint);
        Diagnostic { message, ..finding.diagnostic.clone() }
    };
    let named: Vec<Diagnostic> = findings.iter().map(named).collect();
    diagnostic::render(&named, sources, terminal.color)
}

fn json(findings: &[Finding], mistakes: &[Diagnostic], sources: &Sources) -> serde_json::Result<String> {
    let entry = |lint: Option<&str>, diagnostic: &Diagnostic| {
        let place = diagnostic.span.and_then(|span| sources.position(span));
        json!({
            "severity": if lint.is_some() { "warning" } else { "error" },
            "lint": lint,
            "message": diagnostic.message,
            "hint": diagnostic.hint,
            "path": place.map(|(path, ..)| path),
            "line": place.map(|(_, line, _)| line),
            "column": place.map(|(.., column)| column),
        })
    };
    let findings = findings.iter().map(|finding| entry(Some(finding.lint), &finding.diagnostic));
    let all: Vec<_> = mistakes.iter().map(|mistake| entry(None, mistake)).chain(findings).collect();
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

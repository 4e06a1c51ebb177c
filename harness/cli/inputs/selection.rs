//! Turns the options into the selected cases: sites, checks, overrides, expansion, filters.

use crate::{
    args::{Cli, Files, Filter},
    inputs::{
        expansion::{self, errors},
        files::{self, Sites},
    },
    terminal::Terminal,
};
use anyhow::{anyhow, bail};
use muster_check::{
    cases::{
        check::Check,
        dependencies::{self, Edge, Planned},
        other_files,
        test_case::TestCase,
    },
    files::{load::Document, overrides::Overrides},
    selection::select::{self, Filters},
    site::{
        Partition, System,
        facts::{KnownSystems, SystemFacts},
        file as site_file,
    },
};
use muster_core::{case::matcher::Matcher, decisions::pipeline::EXIT_USAGE};
use muster_report::secret::masked_setting;
use muster_session::{case::judging, front::libtest};
use muster_text::{
    diagnostic::{self, Diagnostic, Severity, Sources},
    expr::Effort,
    file_mode::FileMode,
    yaml::Node,
};
use std::{collections::BTreeSet, fmt::Display, sync::Arc, time::Duration};

pub use crate::inputs::expansion::Depth;

#[derive(Debug)]
pub struct Selection {
    pub system: Arc<System>,
    /// A digest of what its site file says of it; `None`: it is built in.
    pub site_hash: Option<String>,
    /// The number of checks in the files, abstract ones and broken ones included.
    pub num_documents: usize,
    /// The number of concrete checks in the files.
    pub num_checks: usize,
    /// The number of their cases on this system, before any filter.
    pub num_expanded: usize,
    /// If the filters leave none of them: why, a sentence each.
    why_none: Vec<String>,
    /// The selected cases in file order, each after the cases that it needs.
    pub cases: Vec<TestCase>,
    pub needs: Vec<Vec<Edge>>,
    /// The checks with mistakes.
    pub unsound: BTreeSet<Arc<str>>,
    /// All mistakes and warnings, of all files.
    pub diagnostics: Vec<Diagnostic>,
    pub sources: Sources,
}

impl Selection {
    /// Returns whether any diagnostic is an error.
    pub fn has_errors(&self) -> bool {
        errors(&self.diagnostics) > 0
    }

    /// The partitions of its cases, each once.
    pub fn partitions(&self) -> Vec<&Partition> {
        let mut seen = BTreeSet::new();
        let all = self.cases.iter().map(|case| &case.place.partition);
        all.filter(|partition| seen.insert(Arc::as_ptr(partition))).map(|partition| &**partition).collect()
    }

    /// Reports an empty selection, which is bad usage. Returns the exit code.
    pub fn report_if_empty(&self, terminal: Terminal) -> u8 {
        if !self.cases.is_empty() {
            return 0;
        }
        terminal.note(&format!("error: {}", self.why_empty()));
        EXIT_USAGE
    }

    /// Why nothing is selected, and what to look at.
    fn why_empty(&self) -> String {
        if self.num_documents == 0 {
            return "the files are empty: there is no check in them".to_owned();
        }
        if self.num_checks == 0 {
            return "the files hold no check that can run: all are `abstract`".to_owned();
        }
        if self.num_expanded == 0 {
            if self.system.partitions.is_empty() {
                return format!("system `{}` has no partitions to run on", self.system.name);
            }
            let parts: Vec<&str> = self.system.partitions.iter().map(|partition| partition.name.as_str()).collect();
            let (system, parts) = (&self.system.name, parts.join(", "));
            return format!(
                "none of the {} check(s) is for system `{system}` ({parts}): choose another with --system, or look at `valid_systems`",
                self.num_checks
            );
        }
        let (count, system) = (self.num_expanded, &self.system.name);
        let none = format!("none of the {count} case(s) on system `{system}` passes the filters");
        match &self.why_none[..] {
            [] => format!("{none}, each of which admits some: `-l` without them lists all"),
            why => why.iter().fold(none, |text, why| format!("{text}\n  = help: {why}")),
        }
    }
}

/// The site files and the system to use.
#[derive(Debug)]
pub struct Site {
    pub sites: Sites,
    /// The one to use.
    pub system: Arc<System>,
}

impl Site {
    /// The system as written; `None` for the built-in one.
    pub fn document(&self) -> Option<&Node> {
        self.sites.documents.iter().find(|document| document.get("name").and_then(Node::text) == Some(&self.system.name))
    }

    /// The mode of files that the site sets, and where.
    pub fn file_mode(&self) -> Option<(FileMode, String)> {
        let place = self.document().and_then(|document| document.entry("file_mode")).and_then(|entry| self.place(entry));
        Some((self.system.file_mode?, place.unwrap_or_default()))
    }

    /// `site.yaml:6:5`, of a key as written.
    pub fn place(&self, (name, _): &(Node, Node)) -> Option<String> {
        let (path, line, column) = self.sites.sources.position(name.span)?;
        Some(format!("{path}:{line}:{column}"))
    }
}

/// Reads the site files and picks the system.
pub fn site(files: &Files, color: bool) -> anyhow::Result<Site> {
    picked(files::sound_sites(files, color)?, files, color)
}

/// Reads the site without the files that have mistakes, and the mistakes. Who names a system wants all of them to be right.
pub fn site_without_broken_files(files: &Files, color: bool) -> anyhow::Result<(Site, Option<String>)> {
    if files.system.is_some() {
        return Ok((site(files, color)?, None));
    }
    let mut sites = files::sites(&files.config_file, &files.checkpath, &files.schedulers)?;
    let mistakes = sites.leave_out_broken();
    let mistakes = (!mistakes.is_empty()).then(|| diagnostic::render(&mistakes, &sites.sources, color));
    Ok((picked(sites, files, color)?, mistakes))
}

fn picked(sites: Sites, files: &Files, color: bool) -> anyhow::Result<Site> {
    let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
    match site_file::pick(&sites.systems, &files.schedulers, &hostname, files.system.as_deref()) {
        Ok(system) => Ok(Site { system: Arc::new(with_detected_processor(system)), sites }),
        Err(mistake) => bail!("{}", diagnostic::render(&[mistake], &sites.sources, color)),
    }
}

/// Fills in what a `local` partition's site file leaves out about this machine's processors.
pub fn with_detected_processor(mut system: System) -> System {
    for partition in &mut system.partitions {
        let Some(complete) = partition.scheduler.complete_processor else { continue };
        let partition = Arc::make_mut(partition);
        partition.processor = complete(&partition.processor);
    }
    system
}

/// How long a placeholder, a condition or a filter may take.
const EVALUATION_LIMIT: Duration = Duration::from_secs(10);

/// Reads everything and selects.
pub fn select(cli: &Cli, depth: Depth, color: bool) -> anyhow::Result<Selection> {
    let site = site(&cli.files, color)?;
    let filters = filters(&cli.filter)?;
    let loaded = files::checks(&cli.files.checkpath, &cli.files.schedulers)?;
    let (mut sources, mut diagnostics) = (loaded.sources, loaded.diagnostics);
    diagnostics.extend(unused_sites(&cli.files, &site));
    let mut overrides = Overrides::parse(
        &cli.files.setvar,
        &cli.files.parameterize,
        |setting| masked_setting(setting).into_owned(),
        (&loaded.checks, cli.files.schedulers.own_keys()),
        &mut sources,
        &mut diagnostics,
    );

    // `--system SYS:PART` leaves one partition, but checks may name the others. The built-in system is in no file.
    let known = KnownSystems::of([&*site.system].into_iter().chain(&site.sites.systems));
    let facts = SystemFacts::bounded(site.system.clone(), known, Effort::timed(judging::monotonic, EVALUATION_LIMIT));
    let mut checks: Vec<Arc<Check>> = Vec::new();
    let mut unsound: BTreeSet<Arc<str>> = BTreeSet::new();
    for document in &loaded.checks {
        let before = errors(&diagnostics);
        let overlay = overrides.of(document, &mut diagnostics);
        let check = Check::new(document, overlay, loaded.manifests.clone(), &facts.known, &mut diagnostics);
        if errors(&diagnostics) > before {
            unsound.insert(document.name.clone());
        }
        checks.extend(check.map(Arc::new));
    }
    let all = expansion::expand(&checks, &facts, &mut unsound, &mut diagnostics);
    let wrong = |message| wrong_filter("-E", message);
    select::check_names(&filters.expressions, || all.iter()).map_err(wrong)?;
    let mut selected = Vec::new();
    // What a tool asked for that takes us for a test binary.
    let asked = |case: &TestCase| {
        let scheduler = case.place.partition.scheduler;
        cli.output.libtest.as_ref().is_none_or(|arguments| libtest::is_selected(arguments, &case.name, &scheduler.as_name()))
    };
    for case in &all {
        if asked(case) && filters.admit(case).map_err(wrong)? {
            selected.push(case.clone());
        }
    }
    let why_none = if selected.is_empty() { filters.why_none(&all) } else { Vec::new() };
    let planned = dependencies::resolve(selected, &all, &mut diagnostics);
    let mut facts = expansion::look_at(&planned, &mut unsound, depth, &mut diagnostics);
    unsound.extend(wrong_before_they_are_read(&loaded.checks));
    overrides.unused(&loaded.checks, &mut diagnostics);
    let (num_documents, num_checks, num_expanded) = (loaded.num_documents, checks.len(), all.len());
    let names: Vec<_> = planned.iter().map(|planned| planned.case.name.clone()).collect();
    let mut other_files = other_files::other_files(&planned, &checks);
    let after = |(at, Planned { case, needs }): (usize, Planned)| {
        let after = needs.iter().map(|edge| edge.need(names[edge.at].clone())).collect();
        let case = case.after(after, facts.remove(&at)).with_other_files(std::mem::take(&mut other_files[at]));
        (case, needs)
    };
    let (cases, needs) = planned.into_iter().enumerate().map(after).unzip();
    let site_hash = site.sites.hash_of(&site.system.name);
    Ok(Selection {
        system: site.system,
        site_hash,
        num_documents,
        num_checks,
        num_expanded,
        why_none,
        cases,
        needs,
        unsound,
        diagnostics,
        sources,
    })
}

/// Checks whose mistake is none of their own text, which is read as far as it goes: a base that is missing, a name that two have.
fn wrong_before_they_are_read(documents: &[Document]) -> impl Iterator<Item = Arc<str>> {
    let mut names = BTreeSet::new();
    let wrong = documents.iter().filter(move |document| !names.insert(&document.name) || !document.is_whole);
    wrong.map(|document| document.name.clone())
}

/// Site files that are named, though no system of them is used: cases would run on this machine, not on the cluster.
pub fn unused_sites(files: &Files, site: &Site) -> Option<Diagnostic> {
    let is_built_in = site.system.span.is_none();
    if files.config_file.is_empty() || files.system.is_some() || !is_built_in || site.sites.systems.is_empty() {
        return None;
    }
    let names: Vec<String> = site.sites.systems.iter().map(|system| format!("--system {}", system.name)).collect();
    let message =
        format!("no `hostnames` of the site files match this host: checks run in the built-in system `{}`", site.system.name);
    let hint = format!("use {}, or set `hostnames` in the site file", names.join(" or "));
    Some(Diagnostic { severity: Severity::Warning, ..Diagnostic::general(message).hint(hint) })
}

fn wrong_filter(flag: &str, message: impl Display) -> anyhow::Error {
    anyhow!("{flag} {message}")
}

fn filters(filter: &Filter) -> anyhow::Result<Filters> {
    let matchers = |flag: &'static str, texts: &[String], hashes: bool| {
        let parse = |text: &String| Matcher::parse(text, hashes).map_err(|message| wrong_filter(flag, message));
        texts.iter().map(parse).collect::<Result<Vec<_>, _>>()
    };
    let expression = |text: &String| select::expression(text).map_err(|message| wrong_filter("-E", message));
    Ok(Filters {
        names: matchers("-n", &filter.name, true)?,
        not_names: matchers("-x", &filter.exclude, true)?,
        tags: matchers("-t", &filter.tag, false)?,
        not_tags: matchers("-T", &filter.exclude_tag, false)?,
        environs: matchers("-p", &filter.prgenv, false)?,
        expressions: filter.filter_expr.iter().map(expression).collect::<Result<_, _>>()?,
    })
}

//! From the options to the selected cases: sites, checks, overrides, expansion, filters.

use crate::{
    args::{Cli, Filter},
    files::{self, FilesError, Sites},
};
use muster_core::{
    check::Check,
    diagnostic::{Diagnostic, Severity, Sources},
    overrides::Overrides,
    select::{self, Filters, Matcher},
    site::{SchedulerKind, System},
    site_facts::{KnownSystems, SystemFacts},
    site_file,
    test_case::{LaunchFacts, TestCase},
};
use muster_runner::local::detect;
use std::{path::PathBuf, sync::Arc};

/// What one invocation is about.
#[derive(Debug)]
pub struct Selection {
    /// The system.
    pub system: Arc<System>,
    /// The site files that were read.
    pub sites: Vec<String>,
    /// How many checks the files hold, abstract ones and broken ones included.
    pub num_documents: usize,
    /// How many concrete checks the files hold.
    pub num_checks: usize,
    /// How many cases they have on this system, before any filter.
    pub num_expanded: usize,
    /// The selected cases, in file order.
    pub cases: Vec<TestCase>,
    /// All mistakes and warnings, of all files.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts they point into.
    pub sources: Sources,
}

/// Why there is no selection at all.
#[derive(Debug, thiserror::Error)]
pub enum SelectionError {
    /// A path of the command line.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// A filter of the command line.
    #[error("{flag} {message}")]
    Filter {
        /// The flag.
        flag: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// A mistake in the site files, or an unknown `--system`.
    #[error("{rendered}")]
    Site {
        /// The mistakes, rendered.
        rendered: String,
    },
}

impl Selection {
    /// Whether any diagnostic is an error.
    pub fn has_errors(&self) -> bool {
        errors(&self.diagnostics) > 0
    }

    /// Why nothing is selected, and what to look at.
    pub fn why_empty(&self) -> String {
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
        format!(
            "none of the {} case(s) on system `{}` passes the filters: `-l` without them lists all",
            self.num_expanded, self.system.name
        )
    }
}

/// The site files and the system to use.
#[derive(Debug)]
pub struct Site {
    /// Everything that was read.
    pub sites: Sites,
    /// The one to use.
    pub system: Arc<System>,
}

/// Reads the site files and picks the system.
///
/// # Errors
/// Paths that cannot be read, mistakes in site files, a system that nobody defines.
pub fn site(config: &[PathBuf], checks: &[PathBuf], wanted: Option<&str>, color: bool) -> Result<Site, SelectionError> {
    let mut sites = files::sites(config, checks)?;
    let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let picked = if sites.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        Err(std::mem::take(&mut sites.diagnostics))
    } else {
        site_file::pick(&sites.systems, &hostname, wanted).map_err(|diagnostic| vec![diagnostic])
    };
    match picked {
        Ok(system) => Ok(Site { system: Arc::new(with_detected_processor(system)), sites }),
        Err(diagnostics) => {
            Err(SelectionError::Site { rendered: muster_core::diagnostic::render(&diagnostics, &sites.sources, color) })
        }
    }
}

/// Fills in what a `local` partition's site file leaves out about this machine's processors.
pub(crate) fn with_detected_processor(mut system: System) -> System {
    let local = system.partitions.iter_mut().filter(|partition| partition.scheduler == SchedulerKind::Local);
    for partition in local {
        let partition = Arc::make_mut(partition);
        partition.processor = detect::complete(&partition.processor);
    }
    system
}

/// How thoroughly the selected cases are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// One case of every check on every partition and environment: a listing has to be quick.
    Sample,
    /// Every case, since any of them may be launched.
    Every,
}

/// Reads everything and selects.
///
/// # Errors
/// See [`SelectionError`]; mistakes in checks are in the selection's diagnostics.
pub fn select(cli: &Cli, depth: Depth, color: bool) -> Result<Selection, SelectionError> {
    let site = site(&cli.files.config_file, &cli.files.checkpath, cli.files.system.as_deref(), color)?;
    let filters = filters(&cli.filter)?;
    let loaded = files::checks(&cli.files.checkpath)?;
    let (mut sources, mut diagnostics) = (loaded.sources, loaded.diagnostics);
    let mut overrides =
        Overrides::parse(&cli.files.setvar, &cli.files.parameterize, &loaded.checks, &mut sources, &mut diagnostics);

    let known = KnownSystems::of(site.sites.systems.iter().chain([&*site.system]));
    let facts = SystemFacts::new(site.system.clone(), known);
    let mut checks: Vec<Expanded> = Vec::new();
    for document in &loaded.checks {
        let overlay = overrides.of(document, &mut diagnostics);
        let before = errors(&diagnostics);
        let Some(check) = Check::new(document, overlay, loaded.manifests.clone(), &facts.known, &mut diagnostics) else {
            continue;
        };
        let cases = Arc::new(check).cases(&facts, &mut diagnostics);
        checks.push(Expanded { cases, is_sound: errors(&diagnostics) == before });
    }
    let num_expanded = checks.iter().map(|check| check.cases.len()).sum();
    let wrong = |message| SelectionError::Filter { flag: "-E", message };
    select::check_names(&filters.expressions, || checks.iter().flat_map(|check| &check.cases)).map_err(wrong)?;
    let (mut cases, num_checks) = (Vec::new(), checks.len());
    for mut check in checks {
        let mut failed = None;
        check.cases.retain(|case| filters.admit(case).map_err(|message| failed.get_or_insert(message)).unwrap_or(false));
        if let Some(message) = failed {
            return Err(wrong(message));
        }
        // What is wrong with the check as such would be told again for each of its cases.
        if check.is_sound {
            look_at(&check.cases, depth, &mut diagnostics);
        }
        cases.append(&mut check.cases);
    }
    overrides.unused(&loaded.checks, &mut diagnostics);
    let num_documents = loaded.num_documents;
    Ok(Selection {
        system: site.system,
        sites: site.sites.paths,
        num_documents,
        num_checks,
        num_expanded,
        cases,
        diagnostics,
        sources,
    })
}

/// A check's cases on this system, before any filter.
struct Expanded {
    cases: Vec<TestCase>,
    /// No mistake was found so far.
    is_sound: bool,
}

fn errors(diagnostics: &[Diagnostic]) -> usize {
    diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count()
}

/// Renders cases for their mistakes only.
fn look_at(cases: &[TestCase], depth: Depth, diagnostics: &mut Vec<Diagnostic>) {
    let facts = LaunchFacts::rehearsal();
    let mut last = None;
    for case in cases {
        let place = Arc::as_ptr(&case.place);
        if depth == Depth::Sample && last.replace(place) == Some(place) {
            continue;
        }
        if let Err(mut mistakes) = case.render(&facts) {
            // What fails for one case and not for the one before it, fails because of its parameters or its place.
            for mistake in mistakes.iter_mut().filter(|mistake| mistake.hint.is_none()) {
                mistake.hint = Some(format!("it is so for {}", case.name));
            }
            let is_known = |mistake: &Diagnostic| {
                diagnostics.iter().any(|known| known.span == mistake.span && known.message == mistake.message)
            };
            mistakes.retain(|mistake| !is_known(mistake));
            diagnostics.append(&mut mistakes);
        }
        // A thousand cases with the same mistake are one mistake; what differs with a parameter shows in a few.
        if errors(diagnostics) > 100 {
            return;
        }
    }
}

fn filters(filter: &Filter) -> Result<Filters, SelectionError> {
    let matchers = |flag: &'static str, texts: &[String], hashes: bool| {
        let parse = |text: &String| Matcher::parse(text, hashes).map_err(|message| SelectionError::Filter { flag, message });
        texts.iter().map(parse).collect::<Result<Vec<_>, _>>()
    };
    let expression = |text: &String| select::expression(text).map_err(|message| SelectionError::Filter { flag: "-E", message });
    Ok(Filters {
        names: matchers("-n", &filter.name, true)?,
        not_names: matchers("-x", &filter.exclude, true)?,
        tags: matchers("-t", &filter.tag, false)?,
        not_tags: matchers("-T", &filter.exclude_tag, false)?,
        environs: matchers("-p", &filter.prgenv, false)?,
        expressions: filter.filter_expr.iter().map(expression).collect::<Result<_, _>>()?,
    })
}

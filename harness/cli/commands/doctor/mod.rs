//! `muster doctor`: what would keep the selected checks from running, asked before anything is launched. It changes nothing.
//!
//! ```text
//! machine   the questions about this machine: limits, folders, database
//! files     those about files that flags name: reports, lists of quarantine
//! rights    what the user of a database server may do there
//! ask       asks the questions of a part one after the other, each within its limit
//! watchdog  ends the process when even that is not over
//! ```
//! The questions about a partition are its scheduler's own: [`Scheduler::probes`].

mod ask;
mod files;
mod machine;
mod rights;
mod watchdog;

use crate::{
    args::{Cli, DoctorArgs},
    commands::session::plan,
    inputs::selection::{self, Depth},
    settings::Places,
    terminal::Terminal,
    wiring::{self, secrets},
};
use anyhow::anyhow;
use ask::Asker;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use muster_check::{
    cases::test_case::TestCase,
    selection::adjust::Adjustments,
    site::{Partition, System},
};
use muster_core::{
    decisions::pipeline::EXIT_USAGE,
    job::{
        inventory::{Examined, Workloads},
        scheduler::Scheduler,
        workload::Workload,
    },
    probe::{Level, Probed, seconds},
};
use muster_report::doctor::{self, Part};
use muster_session::runtime;
use std::{collections::BTreeMap, iter, sync::Arc, time::Duration};

/// More than all questions may take together.
const LIMIT: Duration = Duration::from_secs(70);
/// The exit code if something is wrong.
const EXIT_ERRORS: u8 = 1;

/// A scheduler, or why it cannot be connected to.
type Connected = Result<Arc<dyn Scheduler>, String>;

/// What is examined.
struct Subject {
    system: Arc<System>,
    cases: Vec<TestCase>,
    adjustments: Adjustments,
}

pub fn doctor(cli: &Cli, args: DoctorArgs, terminal: Terminal) -> anyhow::Result<u8> {
    // Files, names of hosts and clients of servers are asked by calls that no timer ends.
    let _guard = watchdog::Watchdog::start(LIMIT, move || {
        let limit = seconds(LIMIT);
        terminal.error(&anyhow!("no end after {limit}: a file, a pipe or a file system that was asked last does not answer"));
        EXIT_ERRORS
    });
    let Some(subject) = subject(cli, terminal)? else { return Ok(EXIT_USAGE) };
    let places = Places::of(cli);
    let secrets = secrets::of(cli);
    let printed = |mut text: String| {
        secrets.hide(&mut text);
        terminal.print(&text);
    };
    let screen = terminal.screen();
    let asker = Asker::new(terminal);
    let connections = subject.connections();
    let runtime = runtime::build()?;
    let of_machine = machine::questions(&places).into_iter().chain(files::questions(cli)).collect();
    let parts = runtime.block_on(async {
        let here = async { Part { partition: None, found: asker.ask("this machine", of_machine).await } };
        let of_partitions =
            subject.system.partitions.iter().map(|partition| subject.part(partition, &connections, &asker).boxed());
        let parts: Vec<BoxFuture<'_, Part>> = iter::once(here.boxed()).chain(of_partitions).collect();
        // All at once, and printed in their order.
        let at_once = parts.len();
        let mut all = stream::iter(parts).buffered(at_once);
        let mut parts = Vec::new();
        while let Some(part) = all.next().await {
            if !args.json {
                printed(doctor::part(&part, &screen));
            }
            parts.push(part);
        }
        parts
    });
    printed(if args.json { doctor::json(&subject.system.name, &parts)? } else { doctor::summary(&parts, &screen) });
    Ok(if doctor::worst(&parts) == Level::Error { EXIT_ERRORS } else { 0 })
}

/// The selected partitions, and if checks are named, the selected cases. `None`: there are mistakes in files, or no case is selected,
/// and that was said.
fn subject(cli: &Cli, terminal: Terminal) -> anyhow::Result<Option<Subject>> {
    if cli.files.checkpath.is_empty() {
        let site = selection::site(&cli.files, terminal.live)?;
        return Ok(Some(Subject { system: site.system, cases: Vec::new(), adjustments: Adjustments::default() }));
    }
    let selection = selection::select(cli, Depth::Every, terminal.live)?;
    terminal.diagnostics(&selection.diagnostics, &selection.sources);
    if selection.has_errors() || selection.report_if_empty(terminal) != 0 {
        return Ok(None);
    }
    let adjustments = plan::adjustments(cli, &selection, terminal)?;
    Ok(Some(Subject { system: selection.system, cases: selection.cases, adjustments }))
}

impl Subject {
    /// One connection for all partitions of a scheduler.
    fn connections(&self) -> BTreeMap<&'static str, Connected> {
        let harness = wiring::harness();
        let mut connections = BTreeMap::new();
        for named in self.system.partitions.iter().map(|partition| partition.scheduler) {
            let connect = || (named.connect)(&harness).map_err(|error| error.to_string());
            connections.entry(named.own_name()).or_insert_with(connect);
        }
        connections
    }

    async fn part(&self, partition: &Partition, connections: &BTreeMap<&'static str, Connected>, asker: &Asker) -> Part {
        let title = format!("{}:{}", self.system.name, partition.name);
        let found = match connections.get(partition.scheduler.own_name()) {
            None => Vec::new(),
            Some(Err(why)) => vec![Probed::error("scheduler", why.clone(), None)],
            Some(Ok(scheduler)) => {
                let is_here = |case: &&TestCase| case.name.partition == partition.name;
                let workloads = Rendered { cases: self.cases.iter().filter(is_here).collect(), adjustments: &self.adjustments };
                let examined = Examined { options: &partition.sched_options, workloads: &workloads };
                asker.ask(&title, scheduler.probes(examined)).await
            }
        };
        Part { partition: Some((title, partition.scheduler.name.to_owned())), found }
    }
}

/// The cases of a partition, rendered one after the other.
struct Rendered<'a> {
    cases: Vec<&'a TestCase>,
    adjustments: &'a Adjustments,
}

impl Workloads for Rendered<'_> {
    fn all(&self) -> Box<dyn Iterator<Item = Workload> + Send + '_> {
        let rendered = self.cases.iter().filter_map(|case| self.adjustments.rehearsed(case));
        Box::new(rendered.filter(|rendered| rendered.skip.is_none()).map(|rendered| rendered.workload))
    }
}

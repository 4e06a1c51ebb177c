//! `muster doctor`: what would keep the selected checks from running, asked before anything is launched. It changes nothing.
//!
//! ```text
//! machine   the questions about this machine: limits, folders, database
//! files     those about files that flags name: reports, lists of quarantine
//! rights    what the user of a database server may do there
//! ask       asks the questions of a part one after the other, each within its limit, on threads that may be left behind
//! watchdog  ends the process when a file that is read before the questions does not answer, or its time is over
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
    inputs::{
        selection::{self, Depth},
        unanswered::{Looking, no_answer},
    },
    settings::Places,
    terminal::Terminal,
    wiring::{self, secrets},
};
use anyhow::anyhow;
use ask::{Asker, on_a_thread};
use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, Shared},
    stream,
};
use muster_check::{
    cases::test_case::TestCase,
    selection::adjust::Adjustments,
    site::{Partition, System},
};
use muster_core::{
    decisions::pipeline::EXIT_USAGE,
    job::{
        descriptor::NamedScheduler,
        inventory::{Examined, Workloads},
        scheduler::Scheduler,
        workload::Workload,
    },
    probe::{EACH, Level, Probe, Probed, WHOLE, seconds},
};
use muster_report::doctor::{self, Part};
use muster_session::runtime;
use std::{collections::BTreeMap, iter, sync::Arc, time::Instant};
use tokio::time::timeout;
use watchdog::Watchdog;

/// The exit code if something is wrong.
const EXIT_ERRORS: u8 = 1;

/// A scheduler, or why it cannot be connected to.
type Connected = Result<Arc<dyn Scheduler>, String>;
type Connecting = Shared<BoxFuture<'static, Connected>>;

/// What is examined.
struct Subject {
    system: Arc<System>,
    cases: Vec<TestCase>,
    adjustments: Adjustments,
}

pub fn doctor(cli: &Cli, args: DoctorArgs, terminal: Terminal) -> anyhow::Result<u8> {
    // What `-r` refuses.
    cli.rounds.policy()?;
    let started = Instant::now();
    let _guard = Watchdog::start(move || {
        let is_late = started.elapsed() >= WHOLE;
        is_late.then(|| {
            terminal.error(&anyhow!("no end after {}", seconds(WHOLE)));
            EXIT_ERRORS
        })
    });
    let read = {
        let _files = Watchdog::start(move || {
            let path = Looking::for_longer_than(EACH)?;
            terminal.error(&anyhow!("{}: {}", path.display(), no_answer(EACH)));
            Some(EXIT_USAGE)
        });
        subject(cli, terminal)?
    };
    // A question may hold its thread, and what it reads, until the process ends.
    let Some(subject) = read.map(|subject| &*Box::leak(Box::new(subject))) else { return Ok(EXIT_USAGE) };
    let runtime = Box::leak(Box::new(runtime::build()?));
    let places = Places::of(cli);
    let secrets = secrets::of(cli);
    let printed = |mut text: String| {
        secrets.hide(&mut text);
        terminal.print(&text);
    };
    let screen = terminal.screen();
    let asker = Asker::new(started, terminal);
    let of_machine = machine::questions(&places).into_iter().chain(files::questions(cli)).collect();
    let parts = runtime.block_on(async {
        let connections = subject.connections();
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
        terminal.diagnostics(selection::unused_sites(&cli.files, &site).as_slice(), &site.sites.sources);
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
    fn connections(&self) -> BTreeMap<&'static str, Connecting> {
        let mut connections = BTreeMap::new();
        for named in self.system.partitions.iter().map(|partition| partition.scheduler) {
            connections.entry(named.own_name()).or_insert_with(|| connection(named).boxed().shared());
        }
        connections
    }

    async fn part(
        &'static self,
        partition: &'static Partition,
        connections: &BTreeMap<&'static str, Connecting>,
        asker: &Asker,
    ) -> Part {
        let title = format!("{}:{}", self.system.name, partition.name);
        let found = match connections.get(partition.scheduler.own_name()).cloned() {
            None => Vec::new(),
            Some(connecting) => match connecting.await {
                Err(why) => vec![Probed::error("scheduler", why, None)],
                Ok(scheduler) => asker.ask(&title, self.questions(partition, Box::leak(Box::new(scheduler)))).await,
            },
        };
        Part { partition: Some((title, partition.scheduler.name.to_owned())), found }
    }

    fn questions(&'static self, partition: &'static Partition, scheduler: &'static Arc<dyn Scheduler>) -> Vec<Probe<'static>> {
        let is_here = |case: &&TestCase| case.name.partition == partition.name;
        let cases = self.cases.iter().filter(is_here).collect();
        let workloads = &*Box::leak(Box::new(Rendered { cases, adjustments: &self.adjustments }));
        scheduler.probes(Examined { options: &partition.sched_options, shared: &partition.shared, workloads })
    }
}

/// It reads files, and starts programs that give credentials.
async fn connection(named: NamedScheduler) -> Connected {
    let connect = move || (named.connect)(&wiring::harness()).map_err(|error| error.to_string());
    let connected = timeout(EACH, on_a_thread(EACH, async move { connect() })).await;
    connected.ok().and_then(Result::ok).unwrap_or_else(|| Err(no_answer(EACH)))
}

/// The cases of a partition, rendered one after the other.
struct Rendered {
    cases: Vec<&'static TestCase>,
    adjustments: &'static Adjustments,
}

impl Workloads for Rendered {
    fn all(&self) -> Box<dyn Iterator<Item = Workload> + Send + '_> {
        let rendered = self.cases.iter().filter_map(|case| self.adjustments.rehearsed(case));
        Box::new(rendered.filter(|rendered| rendered.skip.is_none()).map(|rendered| rendered.workload))
    }
}

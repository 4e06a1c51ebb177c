//! Connects a session to schedulers, clusters and the database.

pub mod budget;
pub mod database;
pub mod owners;
pub mod patience;
pub mod plans;
pub mod scope;
pub mod secrets;

use crate::terminal::Terminal;
use anyhow::{Context, anyhow};
use futures_util::future::join_all;
use muster_core::{
    case::SessionId,
    error::chain,
    job::{
        descriptor::{Connect, Descriptor, Harness, NamedScheduler, Schedulers},
        inventory::Removed,
        scheduler::Scheduler,
    },
};
use muster_host::file_limit;
use muster_session::{
    case::judging::JudgeProgram,
    ownership::{InScope, closed, heartbeat, sweep::deleted},
};
use muster_store::{JobRow, Store};
use muster_text::time::format_duration;
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    io,
    path::{self, Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// What a scheduler gets to end in when the session should have ended already.
const LAST_MOMENT: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Wired {
    /// The schedulers by partition.
    pub schedulers: BTreeMap<String, Arc<dyn Scheduler>>,
    /// Those that serve several partitions: they share connections and watches.
    shared: BTreeMap<&'static str, Arc<dyn Scheduler>>,
    /// The partitions whose jobs continue when the process ends that launched them.
    outlives: BTreeSet<String>,
}

impl Wired {
    /// Launches nothing more. `over`: all jobs of this session have ended. Returns what they had left running. All at once, so that the
    /// silent ones take no longer than one; after `by`, a moment for each.
    pub async fn close(&self, over: Option<&SessionId>, by: Option<Instant>, terminal: Terminal) -> Vec<Removed> {
        let close = |(name, scheduler): (&&'static str, &Arc<dyn Scheduler>)| {
            let (name, scheduler) = (*name, Arc::clone(scheduler));
            async move {
                let left = by.map_or(Duration::MAX, |by| by.saturating_duration_since(Instant::now()).max(LAST_MOMENT));
                let limit = scheduler.limits().cleanup.min(left);
                let told = || format!("{name}: the end of the session waits for it, {} at most", format_duration(limit));
                let ended = patience::told(terminal, told, closed(&scheduler, over, limit)).await;
                ended.unwrap_or_else(|error| {
                    terminal.note(&format!("warning: {name}: {}", chain(&error)));
                    Vec::new()
                })
            }
        };
        join_all(self.shared.iter().map(close)).await.concat()
    }

    /// Ends jobs of a process that is gone. Returns those that could not be ended, and why.
    pub async fn end<'a>(&self, rows: &'a [JobRow], store: &Store) -> Vec<(&'a JobRow, String)> {
        let mut left = Vec::new();
        for row in rows.iter().filter(|row| self.outlives.contains(&row.name.partition)) {
            let Some(scheduler) = self.schedulers.get(&row.name.partition) else { continue };
            match timeout(scheduler.limits().cleanup, deleted(&**scheduler, &row.job)).await {
                Ok(items) if items.is_empty() => store.cleaned(&row.job),
                Ok(items) => left.push((row, items.join("; "))),
                Err(_) => left.push((row, "no answer".to_owned())),
            }
        }
        left
    }
}

/// The partitions of stored jobs, each with its scheduler.
pub fn partitions<'a>(
    rows: impl Iterator<Item = &'a JobRow>,
    schedulers: &Schedulers,
) -> impl Iterator<Item = (String, NamedScheduler)> {
    rows.filter_map(|row| Some((row.name.partition.clone(), schedulers.find(&row.job.scheduler)?)))
}

/// A scheduler for every partition; partitions whose jobs outlive this process share one.
pub fn schedulers(partitions: impl Iterator<Item = (String, NamedScheduler)>) -> anyhow::Result<Wired> {
    schedulers_with(Vec::new(), partitions)
}

/// Assigns schedulers to partitions, with connections that hold Leases already.
pub fn schedulers_with(
    connected: Vec<InScope>,
    partitions: impl Iterator<Item = (String, NamedScheduler)>,
) -> anyhow::Result<Wired> {
    let shared = connected.into_iter().map(|InScope { name, scheduler, .. }| (name, scheduler)).collect();
    let (harness, mut wired) = (harness(), Wired { shared, ..Wired::default() });
    for (partition, named) in partitions {
        if wired.schedulers.contains_key(&partition) {
            continue;
        }
        let scheduler = match wired.shared.get(named.own_name()).map(Arc::clone) {
            Some(known) => known,
            None => (named.connect)(&harness)
                .map_err(|error| anyhow!(error))
                .with_context(|| format!("partition {partition} runs on `{named}`"))?,
        };
        if named.outlives_harness {
            wired.shared.insert(named.own_name(), Arc::clone(&scheduler));
            wired.outlives.insert(partition.clone());
        }
        wired.schedulers.insert(partition, scheduler);
    }
    Ok(wired)
}

/// One connection to each of some schedulers, which serves all their partitions.
#[derive(Default)]
pub struct Connections(BTreeMap<&'static str, Arc<dyn Scheduler>>);

impl Connections {
    /// Connects each scheduler with what `how` chooses, such as [`Descriptor::look`]. One without it is left out.
    pub fn new(
        schedulers: impl Iterator<Item = NamedScheduler>,
        how: fn(&Descriptor) -> Option<Connect>,
    ) -> anyhow::Result<Self> {
        let mut connections = BTreeMap::new();
        for named in schedulers {
            if let (Entry::Vacant(entry), Some(connect)) = (connections.entry(named.own_name()), how(&named)) {
                entry.insert(connect(&harness()).map_err(|error| anyhow!(error))?);
            }
        }
        Ok(Self(connections))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each with its own name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &dyn Scheduler)> {
        self.0.iter().map(|(name, scheduler)| (*name, &**scheduler))
    }

    pub fn get(&self, named: NamedScheduler) -> Option<&Arc<dyn Scheduler>> {
        self.0.get(named.own_name())
    }
}

/// Returns the facts about this process for schedulers.
pub fn harness() -> Harness {
    let program = PROGRAM.get().cloned().map_or_else(std::env::current_exe, Ok).ok();
    Harness { program, open_files: file_limit::raise(), heartbeat_limit: heartbeat::timing().limit }
}

/// The path of `muster`, where another program runs: a test binary.
pub static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The only argument of a judge process. No check or flag has this name.
pub const JUDGE: &str = "@judge";

/// Returns the command by which a session starts its judges: this same program, even if its file has been replaced.
///
/// # Errors
/// The path of this program is unknown. No session starts without judges: nothing else can stop a pattern that never ends.
pub fn judge_program() -> io::Result<JudgeProgram> {
    let running = Path::new("/proc/self/exe");
    let itself = || if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() };
    let path = path::absolute(PROGRAM.get().cloned().map_or_else(itself, Ok)?)?;
    Ok(JudgeProgram { path, arguments: vec![JUDGE.into()] })
}

//! What a session is connected to: schedulers, clusters, the database.

pub mod database;
pub mod k8s_plans;
pub mod owners;
pub mod scope;

use anyhow::{Context, bail};
use muster_check::cases::test_case::TestCase;
use muster_core::{
    case::SessionId,
    error::chain,
    job::{
        inventory::Removed,
        scheduler::{Disposition, Scheduler},
        scheduler_kind::SchedulerKind,
    },
};
use muster_fake::FakeScheduler;
use muster_host::file_limit;
use muster_k8s::{ContextError, Contexts, Kubernetes};
use muster_local::LocalScheduler;
use muster_session::{case::judging::JudgeProgram, heartbeat};
use muster_store::{JobRow, Store};
use scope::InScope;
use std::{
    collections::BTreeMap,
    io,
    path::{self, Path, PathBuf},
    sync::{Arc, OnceLock},
};
use tokio::time::timeout;

#[derive(Default)]
pub struct Wired {
    /// By partition.
    pub schedulers: BTreeMap<String, Arc<dyn Scheduler>>,
    /// Those that serve several partitions: they share connections and watches.
    shared: BTreeMap<SchedulerKind, Arc<dyn Scheduler>>,
}

impl Wired {
    /// Launches nothing more. `over`: all jobs of this session have ended. Returns what they had left running.
    pub async fn close(&self, over: Option<&SessionId>) -> Vec<Removed> {
        close(self.shared.values(), over).await
    }

    /// Ends jobs of a process that is gone. Returns those that could not be ended, and why.
    pub async fn end<'a>(&self, rows: &'a [JobRow], store: &Store) -> Vec<(&'a JobRow, String)> {
        let mut left = Vec::new();
        for row in rows.iter().filter(|row| !dies_with_the_harness(row.job.scheduler)) {
            let Some(scheduler) = self.schedulers.get(&row.name.partition) else { continue };
            match timeout(scheduler.limits().cleanup, scheduler.cleanup(&row.job, Disposition::Delete)).await {
                Ok(Ok(leftovers)) if leftovers.items.is_empty() => store.cleaned(&row.job),
                Ok(Ok(leftovers)) => left.push((row, leftovers.items.join("; "))),
                Ok(Err(error)) => left.push((row, chain(&error))),
                Err(_) => left.push((row, "no answer".to_owned())),
            }
        }
        left
    }
}

/// Closes each of these schedulers.
pub async fn close<'a>(schedulers: impl IntoIterator<Item = &'a Arc<dyn Scheduler>>, over: Option<&SessionId>) -> Vec<Removed> {
    let mut removed = Vec::new();
    for scheduler in schedulers {
        match scheduler.close(over).await {
            Ok(ended) => removed.extend(ended),
            Err(error) => tracing::debug!(error = chain(&error), "a scheduler was not closed"),
        }
    }
    removed
}

/// The Kubernetes scheduler for these contexts, with this process's limits.
pub fn kubernetes(contexts: Contexts) -> Kubernetes {
    Kubernetes::new(contexts).within_open_files(file_limit::raise()).with_heartbeat(heartbeat::timing())
}

/// The partitions of cases, each with its scheduler.
pub fn partitions(cases: &[TestCase]) -> impl Iterator<Item = (String, SchedulerKind)> {
    cases.iter().map(|case| (case.place.partition.name.clone(), case.place.partition.scheduler))
}

/// Whether a job ends with the process that launched it.
pub fn dies_with_the_harness(kind: SchedulerKind) -> bool {
    kind == SchedulerKind::Fake
}

/// A scheduler for every partition; partitions of one machine share one.
pub fn schedulers(partitions: impl Iterator<Item = (String, SchedulerKind)>) -> anyhow::Result<Wired> {
    schedulers_with(Vec::new(), partitions)
}

/// The same, with connections that hold Leases already.
pub fn schedulers_with(
    connected: Vec<InScope>,
    partitions: impl Iterator<Item = (String, SchedulerKind)>,
) -> anyhow::Result<Wired> {
    let shared = connected.into_iter().map(|InScope { kind, scheduler, .. }| (kind, scheduler)).collect();
    let mut wired = Wired { shared, ..Wired::default() };
    for (partition, kind) in partitions {
        if wired.schedulers.contains_key(&partition) {
            continue;
        }
        let kind = shared_name(kind);
        let known = wired.shared.get(&kind).map(Arc::clone);
        let scheduler = match known {
            Some(known) => known,
            None => connect(&partition, kind)?,
        };
        if !dies_with_the_harness(kind) {
            wired.shared.insert(kind, Arc::clone(&scheduler));
        }
        wired.schedulers.insert(partition, scheduler);
    }
    Ok(wired)
}

/// The name under which partitions share a scheduler.
pub fn shared_name(kind: SchedulerKind) -> SchedulerKind {
    if kind.is_kubernetes() { SchedulerKind::K8s } else { kind }
}

/// The scheduler of a partition.
fn connect(partition: &str, kind: SchedulerKind) -> anyhow::Result<Arc<dyn Scheduler>> {
    Ok(match kind {
        SchedulerKind::Local => Arc::new(local_scheduler()),
        SchedulerKind::Fake => Arc::new(FakeScheduler::default()),
        SchedulerKind::K8s | SchedulerKind::Ipu => {
            let contexts = || {
                let contexts = Contexts::load()?;
                if contexts.is_empty() {
                    // The error names the places where a kubeconfig was looked for.
                    contexts.place(None, None)?;
                }
                Ok::<_, ContextError>(contexts)
            };
            let missing = || format!("partition {partition} runs on Kubernetes, but no cluster is configured");
            Arc::new(kubernetes(contexts().with_context(missing)?))
        }
        SchedulerKind::Ec2 => bail!(
            "partition {partition} runs on `{kind}`, which Muster can list and check but not launch on yet: leave it out with \
             --system or -n"
        ),
    })
}

/// A scheduler that launches nothing, perhaps without any cluster. `None`: it cannot be asked yet.
pub fn connect_to_look(kind: SchedulerKind) -> Option<anyhow::Result<Arc<dyn Scheduler>>> {
    Some(match kind {
        SchedulerKind::Local => Ok(Arc::new(local_scheduler())),
        SchedulerKind::Fake => Ok(Arc::new(FakeScheduler::default())),
        SchedulerKind::K8s | SchedulerKind::Ipu => match Contexts::load() {
            Ok(contexts) => Ok(Arc::new(kubernetes(contexts))),
            Err(error) => Err(error.into()),
        },
        SchedulerKind::Ec2 => return None,
    })
}

/// The path of `muster`, where another program runs: a test binary.
pub static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The only argument of a judge process. No check or flag has this name.
pub const JUDGE: &str = "@judge";

/// How a session starts its judges: this same program, even if its file has been replaced.
///
/// # Errors
/// The path of this program is unknown. No session starts without judges: nothing else can stop a pattern that never ends.
pub fn judge_program() -> io::Result<JudgeProgram> {
    let running = Path::new("/proc/self/exe");
    let itself = || if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() };
    let path = path::absolute(PROGRAM.get().cloned().map_or_else(itself, Ok)?)?;
    Ok(JudgeProgram { path, arguments: vec![JUDGE.into()] })
}

/// Local jobs get the path of this program as `$MUSTER`: its kernels measure machines on which nothing else is installed.
fn local_scheduler() -> LocalScheduler {
    match PROGRAM.get().cloned().map_or_else(std::env::current_exe, Ok) {
        Ok(program) => LocalScheduler::default().with_harness(program),
        Err(_) => LocalScheduler::default(),
    }
}

//! What a session is connected to: schedulers, clusters, the database.

pub mod database;
pub mod k8s_plans;
pub mod owners;

use anyhow::{Context, bail};
use muster_check::cases::test_case::TestCase;
use muster_core::{
    error::chain,
    job::{
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
use std::{
    collections::BTreeMap,
    io,
    path::{self, Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::timeout;

/// How long the end of one job of a process that is gone may take.
const END_LIMIT: Duration = Duration::from_mins(1);

#[derive(Default)]
pub struct Wired {
    /// By partition.
    pub schedulers: BTreeMap<String, Arc<dyn Scheduler>>,
    kubernetes: Option<Arc<Kubernetes>>,
}

impl Wired {
    /// Ends the connections: nothing of the session waits in a cluster any more.
    pub async fn close(&self) {
        if let Some(kubernetes) = &self.kubernetes {
            kubernetes.close().await;
            tracing::debug!(requests = %kubernetes.requests(), "the clusters were asked");
        }
    }

    /// Ends jobs of a process that is gone. Returns those that could not be ended, and why.
    pub async fn end<'a>(&self, rows: &'a [JobRow], store: &Store) -> Vec<(&'a JobRow, String)> {
        let mut left = Vec::new();
        for row in rows.iter().filter(|row| !dies_with_the_harness(row.job.scheduler)) {
            let Some(scheduler) = self.schedulers.get(&row.name.partition) else { continue };
            match timeout(END_LIMIT, scheduler.cleanup(&row.job, Disposition::Delete)).await {
                Ok(Ok(leftovers)) if leftovers.items.is_empty() => store.cleaned(&row.job),
                Ok(Ok(leftovers)) => left.push((row, leftovers.items.join("; "))),
                Ok(Err(error)) => left.push((row, chain(&error))),
                Err(_) => left.push((row, "no answer".to_owned())),
            }
        }
        left
    }

    /// One for all partitions on Kubernetes: they share connections and watches.
    fn kubernetes(&mut self) -> Result<Arc<Kubernetes>, ContextError> {
        if let Some(kubernetes) = &self.kubernetes {
            return Ok(Arc::clone(kubernetes));
        }
        let contexts = Contexts::load()?;
        if contexts.is_empty() {
            // The error names the places where a kubeconfig was looked for.
            contexts.place(None, None)?;
        }
        let kubernetes = Arc::new(kubernetes(contexts));
        self.kubernetes = Some(Arc::clone(&kubernetes));
        Ok(kubernetes)
    }
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
    schedulers_with(None, partitions)
}

/// The same, with connections that hold Leases already.
pub fn schedulers_with(
    kubernetes: Option<Arc<Kubernetes>>,
    partitions: impl Iterator<Item = (String, SchedulerKind)>,
) -> anyhow::Result<Wired> {
    let mut wired = Wired { kubernetes, ..Wired::default() };
    let mut local: Option<Arc<dyn Scheduler>> = None;
    for (partition, kind) in partitions {
        if wired.schedulers.contains_key(&partition) {
            continue;
        }
        let scheduler: Arc<dyn Scheduler> = match kind {
            SchedulerKind::Local => local.get_or_insert_with(|| Arc::new(local_scheduler())).clone(),
            SchedulerKind::Fake => Arc::new(FakeScheduler::default()),
            SchedulerKind::K8s | SchedulerKind::Ipu => wired
                .kubernetes()
                .with_context(|| format!("partition {partition} runs on Kubernetes, but no cluster is configured"))?,
            SchedulerKind::Ec2 => bail!(
                "partition {partition} runs on `{kind}`, which Muster can list and check but not launch on yet: leave it out with \
                 --system or -n"
            ),
        };
        wired.schedulers.insert(partition, scheduler);
    }
    Ok(wired)
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

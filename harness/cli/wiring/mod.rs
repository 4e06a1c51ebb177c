//! Which scheduler serves which partition.

pub mod owners;

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

/// Ending one job of a process that is gone takes no longer.
const END_LIMIT: Duration = Duration::from_mins(1);

/// Why a partition cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// This build cannot drive its scheduler.
    #[error(
        "partition {partition} runs on `{kind}`, which Muster can list and check but not launch on yet: leave it out with --system or -n"
    )]
    NotYet {
        /// Its name.
        partition: String,
        /// Its scheduler.
        kind: SchedulerKind,
    },
    /// The kubeconfig cannot be used.
    #[error("partition {partition} runs on Kubernetes, and nobody says where that is")]
    Contexts {
        /// Its name.
        partition: String,
        /// Why.
        #[source]
        cause: ContextError,
    },
}

/// The schedulers of a session.
#[derive(Default)]
pub struct Wired {
    /// By partition.
    pub schedulers: BTreeMap<String, Arc<dyn Scheduler>>,
    kubernetes: Option<Arc<Kubernetes>>,
}

impl Wired {
    /// The session is over: nothing holds a place in a cluster any more.
    pub async fn close(&self) {
        if let Some(kubernetes) = &self.kubernetes {
            kubernetes.close().await;
            tracing::debug!(requests = %kubernetes.requests(), "the clusters were asked");
        }
    }

    /// Ends jobs of a process that is gone; those that could not be ended, and why.
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
            // It says where it has looked.
            contexts.place(None, None)?;
        }
        let kubernetes =
            Arc::new(Kubernetes::new(contexts).within_open_files(file_limit::raise()).with_pulse(heartbeat::pulse()));
        self.kubernetes = Some(Arc::clone(&kubernetes));
        Ok(kubernetes)
    }
}

/// The partitions of cases, each with its scheduler.
pub fn partitions(cases: &[TestCase]) -> impl Iterator<Item = (String, SchedulerKind)> {
    cases.iter().map(|case| (case.place.partition.name.clone(), case.place.partition.scheduler))
}

/// Whether nothing of a job is left when the harness is gone.
pub fn dies_with_the_harness(kind: SchedulerKind) -> bool {
    kind == SchedulerKind::Fake
}

/// A scheduler for every partition; partitions of one machine share one.
///
/// # Errors
/// The first partition that cannot be served.
pub fn schedulers(partitions: impl Iterator<Item = (String, SchedulerKind)>) -> Result<Wired, WireError> {
    schedulers_with(None, partitions)
}

/// The same with connections that hold Leases already.
///
/// # Errors
/// As [`schedulers`].
pub fn schedulers_with(
    kubernetes: Option<Arc<Kubernetes>>,
    partitions: impl Iterator<Item = (String, SchedulerKind)>,
) -> Result<Wired, WireError> {
    let mut wired = Wired { kubernetes, ..Wired::default() };
    let mut local: Option<Arc<dyn Scheduler>> = None;
    for (partition, kind) in partitions {
        if wired.schedulers.contains_key(&partition) {
            continue;
        }
        let scheduler: Arc<dyn Scheduler> = match kind {
            SchedulerKind::Local => local.get_or_insert_with(|| Arc::new(local_scheduler())).clone(),
            SchedulerKind::Fake => Arc::new(FakeScheduler::default()),
            SchedulerKind::K8s | SchedulerKind::Ipu => match wired.kubernetes() {
                Ok(kubernetes) => kubernetes,
                Err(cause) => return Err(WireError::Contexts { partition, cause }),
            },
            SchedulerKind::Ec2 => return Err(WireError::NotYet { partition, kind }),
        };
        wired.schedulers.insert(partition, scheduler);
    }
    Ok(wired)
}

/// The program itself, where it is not the one that runs: in a test binary.
pub static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// What makes the program a judge: its only argument. No check or flag is called so.
pub const JUDGE: &str = "@judge";

/// How a session starts its judges: this very program, also when its file was replaced since.
///
/// # Errors
/// Nobody says where this program is: without judges no session begins, for nothing else could stop a pattern that takes for ever.
pub fn judge_program() -> io::Result<JudgeProgram> {
    let running = Path::new("/proc/self/exe");
    let itself = || if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() };
    let path = path::absolute(PROGRAM.get().cloned().map_or_else(itself, Ok)?)?;
    Ok(JudgeProgram { path, arguments: vec![JUDGE.into()] })
}

/// Local jobs find this very program as `$MUSTER`: its kernels measure a machine that has nothing else installed.
fn local_scheduler() -> LocalScheduler {
    match PROGRAM.get().cloned().map_or_else(std::env::current_exe, Ok) {
        Ok(program) => LocalScheduler::new().with_harness(program),
        Err(_) => LocalScheduler::new(),
    }
}

//! The trait of all schedulers, and the contract of each of its methods. Authors of a scheduler read this.
//!
//! A scheduler acts and reports; it decides nothing. Limits, retries, keep-or-delete, what a sweep removes are functions of
//! `decisions`.
//!
//! ```text
//!            plan       stage, launch           wait ...                cleanup
//! Workload --------> Job ---------------> Job --------> JobStatus --> Leftovers (none, or named)
//!           (stored)                        \ collect_logs --> Chunks
//! nodes, before the plan; inventory, leases, take_over: what other processes have launched; close: the end
//! ```
//!
//! - **The identifier finds everything.** `plan` does no I/O, and its result is stored before `launch`. All that `launch` creates
//!   carries the identifier and the session (label, tag, name, environment variable), in the request that creates it. So a
//!   process that is killed at any step leaves what `inventory` finds, and `cleanup` works from the plan alone.
//! - **A launch may be lost.** An answer that does not come proves nothing: the job may exist. `launch` is called again with the
//!   same job, and has to find what it created before, not create it twice. [`SchedulerError::nothing_created`] is a promise.
//! - **Cancelling is dropping.** `stage`, `wait` and `collect_logs` may be dropped at any point and called again. `launch` and
//!   `cleanup` run on after their case was cancelled, until the limit in [`CallLimits`], and are dropped then.
//! - **A status is a level**, with the scheduler's own times, and a function of what is there: another process that calls `wait` for
//!   the stored job sees the same. `NotSeen` is not `Gone`.
//! - **An end by a limit of the scheduler's own** (Slurm's TIMEOUT, `activeDeadlineSeconds`) has [`Ending::limit`]: the
//!   outcome is `timeout`, whatever the exits are.
//! - **Errors have a class** that decides on retries; callers retry, never the scheduler, except for what is quicker than a case.

use crate::{
    case::{Identifier, SessionId},
    error::{SchedulerError, chain},
    job::{
        descriptor::{SchedulerName, Schedulers},
        handle::JobHandle,
        inventory::{Inventory, Lease, Removed, Scope},
        stdout::SectionOrigin,
        workload::Workload,
    },
    probe::{Probe, Probed, named},
    secret::Secrets,
    usage::Usage,
};
use futures_core::Stream;
use muster_text::{Value, diagnostic::Diagnostic, time::Timestamp, words};
use serde::{Deserialize, Serialize};
use std::{future::Future, path::PathBuf, pin::Pin, time::Duration};

pub use crate::job::inventory::{Examined, Nodes, Workloads};
pub use crate::job::status::{Disruption, Ending, Exit, JobPod, JobStatus, NodeSeen, SectionExit, Signal};

pub type Fut<'a, T> = Pin<Box<dyn Future<Output = Result<T, SchedulerError>> + Send + 'a>>;

pub type Chunks<'a> = Pin<Box<dyn Stream<Item = Result<Chunk, SchedulerError>> + Send + 'a>>;

/// The topic of `preflight` in `muster doctor`.
pub const CASES: &str = "cases";

/// Returns what `preflight` finds of the workloads of a partition.
pub async fn asked_by_preflight<S: Scheduler + ?Sized>(scheduler: &S, examined: Examined<'_>) -> Vec<Probed> {
    let mut names = Vec::new();
    let mut workloads = examined.workloads.all().inspect(|workload| names.push(workload.case.display.clone()));
    let answer = scheduler.preflight(&mut workloads).await;
    // Those that it did not want to see.
    workloads.by_ref().for_each(drop);
    drop(workloads);
    probed_cases(&names, answer)
}

/// The findings about some cases, as lines of `muster doctor`.
pub fn probed_cases(names: &[String], answer: Result<Vec<Finding>, SchedulerError>) -> Vec<Probed> {
    let findings = match answer {
        Ok(findings) => findings,
        Err(error) => return vec![Probed::error(CASES, chain(&error), None)],
    };
    let concerned = findings.into_iter().filter(|finding| !finding.workloads.is_empty());
    let found =
        |Finding { workloads, what, hint }: Finding| Probed::error(CASES, format!("{}: {what}", named(names, &workloads)), hint);
    let found: Vec<Probed> = concerned.map(found).collect();
    match (found.is_empty(), names.len()) {
        (false, _) => found,
        (true, 0) => vec![Probed::fine(CASES, "none is selected")],
        (true, count) => vec![Probed::fine(CASES, format!("nothing is known that keeps {count} case(s) from running"))],
    }
}

/// One instance for all partitions of a session that share it. Other processes have instances of their own.
pub trait Scheduler: Send + Sync {
    /// Returns how long calls may take here. Constant.
    fn limits(&self) -> CallLimits {
        CallLimits::default()
    }

    /// Turns a workload into a job that can be found again. No I/O: the result is stored before `launch`, and
    /// `--dry-run` prints it.
    ///
    /// # Errors
    /// Every reason why this workload cannot run here.
    fn plan(&self, workload: &Workload) -> Result<Job, Vec<Diagnostic>>;

    /// Checks that a workload can be planned, where only that is asked. Called on what the descriptor's `planner` gives.
    ///
    /// # Errors
    /// Those of `plan`. What is only a warning ends no other cases than those that it is about.
    fn check(&self, workload: &Workload) -> Result<(), Vec<Diagnostic>> {
        self.plan(workload).map(drop)
    }

    /// Returns the text of `--dry-run` for a workload: all that would be created, in full. `None`: the script and the scheduler's
    /// own keys are all. No I/O. Called on what the descriptor's `planner` gives.
    ///
    /// # Errors
    /// Those of `plan`.
    fn preview(&self, workload: &Workload) -> Result<Option<String>, Vec<Diagnostic>> {
        self.plan(workload).map(|_| None)
    }

    /// Has the server check what a workload would create, without creating it, for `--dry-run=server`. Returns its warnings.
    /// `None`: there is no server that checks.
    fn dry_run<'a>(&'a self, _workload: &'a Workload) -> Fut<'a, Option<Vec<String>>> {
        Box::pin(async { Ok(None) })
    }

    /// Everything that can be known before the first of these workloads is launched: names, rights, quotas, queues. Called once
    /// before each round, for all of it; each finding ends its cases as `error{config}`, and nothing of them is launched. So it
    /// finds what would certainly fail, not what may pass: a server that does not answer, or may not be asked, finds nothing, and
    /// what cannot be planned is left to `plan`. As few requests as possible, whatever the number, and an answer within [`probe::EACH`].
    ///
    /// [`probe::EACH`]: crate::probe::EACH
    fn preflight<'a>(&'a self, _workloads: &'a mut (dyn Iterator<Item = Workload> + Send)) -> Fut<'a, Vec<Finding>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// The questions of `muster doctor` about a partition and what would run there: versions, rights, room, clocks. They are asked one
    /// after the other, each for [`probe::EACH`] at most, and change nothing of a cluster. By default, what `preflight` finds.
    ///
    /// [`probe::EACH`]: crate::probe::EACH
    fn probes<'a>(&'a self, examined: Examined<'a>) -> Vec<Probe<'a>> {
        vec![Probe::new(CASES, asked_by_preflight(self, examined))]
    }

    /// Brings to where the job will run what it needs there, before it is launched and as long as that takes. `None`: there
    /// is nothing to bring. It may be dropped at any point and called again; it ends soon after `cancelled`.
    fn stage<'a>(&'a self, _job: &'a Job, _cancelled: Pin<Box<dyn Future<Output = ()> + Send + 'a>>) -> Option<Staged<'a>> {
        None
    }

    /// One attempt to create what was planned, within `limits().launch`. Called again after an error that may pass, after
    /// `NotNow`, and, with `stage` before it, by a process that takes over what may have been launched, unless the descriptor's
    /// `finds_launched` is false: what exists of this job already is found, by its identifier, and not created twice.
    fn launch<'a>(&'a self, job: &'a Job) -> Fut<'a, Launch>;

    /// Returns as soon as the status differs from `seen`; at once if `seen` is `None`.
    fn wait<'a>(&'a self, job: &'a Job, seen: Option<&'a JobStatus>) -> Fut<'a, JobStatus>;

    /// The log of every section from the marks on, while the job runs and after it. Ends when every section has ended. Who waits for
    /// its turn, or for a server, sends `Alive`: a log that is silent after its job for longer than `limits().silence` is given up.
    fn collect_logs<'a>(&'a self, job: &'a Job, from: LogMarks) -> Chunks<'a>;

    /// Ends the compute, and with `Delete` removes the objects, within `limits().cleanup`. Works from labels alone, even when `launch`
    /// never answered; returns when they are verified stopped or absent. What is already gone is fine. What cannot be
    /// removed is named in the answer, with the command that removes it.
    fn cleanup<'a>(&'a self, job: &'a Job, how: Disposition) -> Fut<'a, Leftovers>;

    /// The instances that a job has used, as this process has seen it. Asked once, after the last `cleanup` of it: what is kept counts
    /// until then. Empty: nothing here is paid by time.
    fn usage(&self, _job: &Job) -> Usage {
        Usage::default()
    }

    /// Returns the most that one attempt of a workload may use: from the launch until whatever is left ends by itself. Called on
    /// what the descriptor's `planner` gives.
    fn most_usage(&self, _workload: &Workload) -> Usage {
        Usage::default()
    }

    /// The nodes on which a copy of this workload can be pinned (`sched_options.node`), for `--distribute=STATE`. `state`: one of
    /// the descriptor's `node_states`. Called for every case: what a server has said is kept.
    fn nodes<'a>(&'a self, _workload: &'a Workload, _state: &'a str) -> Fut<'a, Nodes> {
        Box::pin(async { Ok(Nodes::default()) })
    }

    /// Returns what distinguishes its nodes from earlier ones of the same names, and what may explain a change of their figures. `partitions`:
    /// the `sched_options` of those with cases. Asked once a session, before the first launch, and for seconds only: one question
    /// a place; a place that does not answer, or may not be asked, gives nothing.
    fn describe_nodes<'a>(&'a self, _partitions: &'a [Value]) -> Fut<'a, Vec<NodeSeen>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Everything with our label, of whichever session: in the places of the scope, and in those that the scheduler knows by
    /// itself. Changes nothing, and takes no look that others pay for more than once a place. `cleanup` accepts each job of it.
    fn inventory<'a>(&'a self, scope: &'a Scope) -> Fut<'a, Inventory>;

    /// The Leases of a session in the places of the scope. A place that does not answer within seconds counts as one
    /// without. None, where an owner has no sign of life but that in the database.
    fn leases<'a>(&'a self, _scope: &'a Scope, _session: &'a SessionId) -> Fut<'a, Vec<Lease>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Makes this process the owner of a session: in the places of `jobs`, and where there are Leases, in the version in which
    /// they were seen. It holds them until `close`. `false`: another process was faster, or the owner lives.
    fn take_over<'a>(&'a self, _session: &'a SessionId, _jobs: &'a [Job], _seen: &'a [Lease]) -> Fut<'a, bool> {
        Box::pin(async { Ok(true) })
    }

    /// Removes the Lease of an abandoned session of which nothing is left, in the version that was seen: a later one is another
    /// owner's.
    fn delete_lease<'a>(&'a self, _lease: &'a Lease) -> Fut<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// This process launches nothing more here: releases Leases and connections. `over`: all jobs of this session have ended, and
    /// what they have left running outside of themselves ends now; `None`: its jobs may run on. Returns what it has ended.
    fn close<'a>(&'a self, _over: Option<&'a SessionId>) -> Fut<'a, Vec<Removed>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// The times after which nobody waits for the answer of a call any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// One attempt to launch. Then the case is `error{infra}`, and `cleanup` follows.
    pub launch: Duration,
    /// Silence of a log after its job has ended. Then it has a gap there.
    pub silence: Duration,
    /// One cleanup, with its retries. Then what may be left is named in the result.
    pub cleanup: Duration,
    /// A server that does not answer a question is given up after this, retries included: for telling people, nobody ends it.
    pub answer: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            launch: Duration::from_mins(1),
            silence: Duration::from_secs(30),
            cleanup: Duration::from_mins(1),
            answer: Duration::from_mins(1),
        }
    }
}

/// A planned or launched workload: plain data, enough to find, watch, read and delete it from the store alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub identifier: Identifier,
    pub session: SessionId,
    /// The displayed name, for people.
    pub case: String,
    pub scheduler: SchedulerName,
    pub stage: PathBuf,
    /// The part that only its scheduler understands.
    pub handle: JobHandle,
}

impl Job {
    /// The job of a workload, with what its scheduler has planned.
    pub fn of(workload: &Workload, scheduler: &'static str, handle: JobHandle) -> Self {
        Self {
            identifier: workload.identifier.clone(),
            session: workload.session.clone(),
            case: workload.case.to_string(),
            scheduler: scheduler.into(),
            stage: workload.stage.clone(),
            handle,
        }
    }

    /// The job with the handle that its launch has completed.
    #[must_use]
    pub fn with(&self, handle: JobHandle) -> Self {
        let Self { identifier, session, case, scheduler, stage, handle: _ } = self;
        Self {
            identifier: identifier.clone(),
            session: session.clone(),
            case: case.clone(),
            scheduler: scheduler.clone(),
            stage: stage.clone(),
            handle,
        }
    }

    /// Returns whether both are one attempt: an identifier alone is unique within its session only.
    pub fn is_same(&self, other: &Self) -> bool {
        self.identifier == other.identifier && self.session == other.session
    }

    /// The job as it is stored: its handle without secrets, but for what it is found by. A later launch renders it again.
    #[must_use]
    pub fn without(&self, secrets: &Secrets, schedulers: &Schedulers) -> Self {
        let mut handle = self.handle.clone().into_value();
        let never_masked = schedulers.find(&self.scheduler).map_or(&[][..], |scheduler| scheduler.never_masked);
        secrets.hide_in(&mut handle, never_masked);
        self.with(handle.into())
    }
}

/// A problem of some workloads, as known before their launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Positions in what `preflight` was given.
    pub workloads: Vec<usize>,
    /// One sentence, without its full stop.
    pub what: String,
    /// A suggestion of what to do.
    pub hint: Option<String>,
}

pub struct Staged<'a> {
    /// A fragment for the progress line.
    pub what: String,
    /// Resolves when the files are in place.
    pub done: Fut<'a, ()>,
}

/// The result of one launch attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Launch {
    /// The job exists. It may hold more details than the plan.
    Launched(Job),
    /// There is no room now (quota, capacity).
    NotNow {
        /// One sentence for the progress line and the report.
        why: String,
        retry_after: Duration,
        /// The part that was created and not removed, such as half of the instances. `cleanup` removes it before the next attempt:
        /// who waits for room holds none. `None`: nothing was created.
        created: Option<Box<Job>>,
    },
    /// Something live that is not this session's has its identifier, and was left alone. Plan again with another
    /// identifier, after a `cleanup`: the job may have been created in part.
    Taken {
        /// The owner of the identifier and its place, as a fragment: `pods rfm-x-abcdefgh in namespace n`.
        by: String,
    },
}

words! {
    /// The treatment of a job's objects.
    pub enum Disposition {
        /// End the compute and keep the objects for inspection, but for those that would start again: `Leftovers::is_gone`.
        Stop = "stop",
        Delete = "delete",
    }
}

/// The remains after a cleanup. No items is success.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftovers {
    /// The objects that could not be removed or stopped; one line each: the object, its place, and the command that removes it.
    pub items: Vec<String>,
    /// `Stop` has left nothing to look at, as of a process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_gone: bool,
    /// The commands that show what `Stop` kept.
    pub look: Vec<String>,
    /// The commands that remove what `Stop` kept.
    pub delete: Vec<String>,
    /// The time when what `Stop` kept is removed by itself, as people read it. Until then only a sweep removes all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// The part of each section's log that is on disk.
pub type LogMarks = Vec<LogMark>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogMark {
    pub section: String,
    /// Bytes on disk.
    pub offset: u64,
    /// The last line's time, where the source has one.
    pub time: Option<Timestamp>,
}

/// The kind of a section. Stored nowhere: a reader handles each kind in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// The output of the job: a section of its stdout, which is judged.
    Log,
}

/// A piece of a job's log.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// A new section. Sent once, before any other chunk of it but `Grows`.
    Open(Channel, SectionOrigin),
    /// Bytes of a section, in order.
    Bytes {
        section: String,
        /// Offset of the first byte in the section.
        at: u64,
        data: Vec<u8>,
        /// The last line's time, where the source has one.
        time: Option<Timestamp>,
    },
    /// The file in which a section grows while its job runs, after the framing of a log with one section. `Open` and `File` follow
    /// when the job has ended.
    Grows { origin: SectionOrigin, path: PathBuf },
    /// The whole section is this part of a file that is no longer written; nothing was copied.
    File {
        section: String,
        path: PathBuf,
        /// Offset of the section's first byte in the file.
        start: u64,
        len: u64,
    },
    /// Bytes were lost here: the case becomes `invalid{logs}`.
    Gap { section: String, why: String },
    /// Bytes may have been lost here, and the partition or check wants a warning instead of a failure.
    Warning { section: String, why: String },
    /// The section is complete.
    End { section: String },
    /// No data, but reading continues: it waits for its turn, or skips known data. The sender has a limit of its own.
    Alive,
}

//! The trait of all schedulers: launch, wait, logs and cleanup.
//!
//! A scheduler acts and reports; it decides nothing. Limits, retries, keep-or-delete are functions of `pipeline`.
//!
//! ```text
//!            plan       stage, launch           wait ...                cleanup
//! Workload --------> Job ---------------> Job --------> JobStatus --> Leftovers (none, or named)
//!           (stored)      (at most 60 s)    \ collect_logs --> Chunks
//! ```

use crate::{
    case::{Identifier, SessionId},
    error::SchedulerError,
    job::{
        scheduler_kind::SchedulerKind,
        workload::{Clock, Workload},
    },
    secret::Secrets,
};
use futures_core::Stream;
use muster_text::{Value, diagnostic::Diagnostic, time::Timestamp, words};
use serde::{Deserialize, Serialize};
use std::{fmt, future::Future, path::PathBuf, pin::Pin, time::Duration};

pub type Fut<'a, T> = Pin<Box<dyn Future<Output = Result<T, SchedulerError>> + Send + 'a>>;

pub type Chunks<'a> = Pin<Box<dyn Stream<Item = Result<Chunk, SchedulerError>> + Send + 'a>>;

/// One instance per (kind, endpoint, namespace or region).
///
/// Cancelling is dropping: `wait` and `collect_logs` may be dropped at any point and called again. `launch` is
/// idempotent for an identifier and is awaited once it has started.
pub trait Scheduler: Send + Sync {
    /// Turns a workload into a job that can be found again. No I/O: the result is stored before `launch`, and
    /// `--dry-run` prints it.
    ///
    /// # Errors
    /// Every reason why this workload cannot run here.
    fn plan(&self, workload: &Workload) -> Result<Job, Vec<Diagnostic>>;

    /// Brings to where the job will run what it needs there, before it is launched and as long as that takes. `None`: there
    /// is nothing to bring. It may be dropped at any point and called again; it ends soon after `cancelled`.
    fn stage<'a>(&'a self, _job: &'a Job, _cancelled: Pin<Box<dyn Future<Output = ()> + Send + 'a>>) -> Option<Staged<'a>> {
        None
    }

    /// One attempt to create what was planned, of at most 60 s.
    fn launch<'a>(&'a self, job: &'a Job) -> Fut<'a, Launch>;

    /// Returns as soon as the status differs from `seen`; at once if `seen` is `None`.
    fn wait<'a>(&'a self, job: &'a Job, seen: Option<&'a JobStatus>) -> Fut<'a, JobStatus>;

    /// The log of every section from `from` on. Ends when every section has ended.
    fn collect_logs<'a>(&'a self, job: &'a Job, from: LogMarks) -> Chunks<'a>;

    /// Ends the compute, and with `Delete` removes the objects. Works from labels alone, even when `launch` never
    /// answered; returns when they are verified stopped or absent. What is already gone is fine.
    fn cleanup<'a>(&'a self, job: &'a Job, how: Disposition) -> Fut<'a, Leftovers>;
}

/// A planned or launched workload: plain data, enough to find, watch, read and delete it from the store alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub identifier: Identifier,
    pub session: SessionId,
    /// The displayed name, for people.
    pub case: String,
    pub scheduler: SchedulerKind,
    pub stage: PathBuf,
    /// What only its scheduler understands: objects and uids, a pid and its start time, instance ids.
    pub handle: Value,
}

impl Job {
    /// Whether both are one attempt: an identifier alone is unique within its session only.
    pub fn is_same(&self, other: &Self) -> bool {
        self.identifier == other.identifier && self.session == other.session
    }

    /// The job as it is stored, without secrets in what it runs: the script of a local job, and objects but for their metadata.
    /// A later launch renders it again.
    #[must_use]
    pub fn without(&self, secrets: &Secrets) -> Self {
        let mut job = self.clone();
        if let Some(script) = job.handle.get_mut("script") {
            secrets.hide_in(script);
        }
        let objects = job.handle.get_mut("objects").and_then(Value::as_array_mut);
        let manifests = objects.into_iter().flatten().filter_map(|object| object.get_mut("manifest")?.as_object_mut());
        for (key, value) in manifests.flatten() {
            if !["apiVersion", "kind", "metadata"].contains(&key.as_str()) {
                secrets.hide_in(value);
            }
        }
        job
    }
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
    /// There is no room now (quota, capacity); nothing was created.
    NotNow {
        /// One sentence for the progress line and the report.
        why: String,
        retry_after: Duration,
    },
    /// Something live that is not this session's has its identifier, and was left alone. Plan again with another
    /// identifier, after a `cleanup`: the job may have been created in part.
    Taken {
        /// What has it and where, as a fragment: `pods rfm-x-abcdefgh in namespace n`.
        by: String,
    },
}

/// What is known of a job now: a level, not an event. Times are the scheduler's, not this machine's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum JobStatus {
    /// Not seen yet: the watch may lag behind the launch. Not the same as `Gone`.
    NotSeen,
    /// It waits, and for what: `image pull`, `0/3 nodes have a free GPU`.
    Pending {
        /// One fragment for the progress line.
        why: String,
    },
    /// At least one of its tasks runs.
    Running {
        since: Timestamp,
        /// Known nodes.
        nodes: Vec<String>,
        /// What part of it has ended already, as a fragment: `container main of pod x has exited with 0, mesh still runs`.
        #[serde(default)]
        partly_ended: Option<String>,
    },
    Ended(Ending),
    /// The job existed and no longer does.
    Gone {
        why: Disruption,
        cause: String,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// Start of the first task.
    pub started: Timestamp,
    /// End of the last task.
    pub ended: Timestamp,
    /// The exit of every section that is judged, in stdout order.
    pub exits: Vec<SectionExit>,
    /// Its pods that had started, where it has pods: they alone say which sections are judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<JobPod>,
    /// The exits of pods that others replaced under the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub superseded: Vec<SectionExit>,
    /// Set when the site ended it.
    pub disruption: Option<Disruption>,
    /// Set when the scheduler ended it at a limit of ours: it is a timeout, whatever its exits are.
    #[serde(default)]
    pub limit: Option<Clock>,
    /// One sentence when the exits do not say it all: `OOMKilled: used more than 4Gi`.
    pub cause: Option<String>,
    /// What is worth knowing even if it passes, one sentence each: `1 failed attempt before: ...`.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A pod of a job, as it was known when the job had ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobPod {
    /// Distinguishes pods of the same name.
    pub uid: String,
    /// A pod of this name with an unknown uid was created later, and is not part of the job.
    pub name: String,
    /// Number of later pods with the same name.
    pub later: u32,
    /// Its log is judged; else another that had its name is judged in its place.
    pub judged: bool,
}

/// The exit of one container, process or instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionExit {
    pub section: String,
    /// Set if it differs from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section_id: Option<String>,
    pub node: Option<String>,
    pub exit: Exit,
}

impl SectionExit {
    /// What the section is called whose end this is: names may be those of several.
    pub fn id(&self) -> &str {
        self.section_id.as_deref().unwrap_or(&self.section)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// The exit status is unknown.
    Unknown,
}

impl Exit {
    /// The status a shell would report: 128 + the signal's number.
    pub fn status(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(signal) => Some(128 + signal),
            Self::Unknown => None,
        }
    }
}

/// `exit status 7`, `killed by signal 9 (SIGKILL)`.
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "killed by {}", Signal(signal)),
            Self::Unknown => f.write_str("ended with unknown exit status"),
        }
    }
}

/// A signal for people: `signal 9 (SIGKILL)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal(pub i32);

impl Signal {
    /// Its name, if it has one: those that have the same number on every POSIX system, and on Linux those of Linux.
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            1 => "SIGHUP",
            2 => "SIGINT",
            3 => "SIGQUIT",
            4 => "SIGILL",
            5 => "SIGTRAP",
            6 => "SIGABRT",
            8 => "SIGFPE",
            9 => "SIGKILL",
            11 => "SIGSEGV",
            13 => "SIGPIPE",
            14 => "SIGALRM",
            15 => "SIGTERM",
            24 => "SIGXCPU",
            25 => "SIGXFSZ",
            7 if cfg!(target_os = "linux") => "SIGBUS",
            10 if cfg!(target_os = "linux") => "SIGUSR1",
            12 if cfg!(target_os = "linux") => "SIGUSR2",
            31 if cfg!(target_os = "linux") => "SIGSYS",
            _ => return None,
        })
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "signal {}", self.0)?;
        self.name().map_or(Ok(()), |name| write!(f, " ({name})"))
    }
}

words! {
    /// Why the site ended a job.
    pub enum Disruption {
        Preempted = "preempted",
        /// Node pressure or the eviction API.
        Evicted = "evicted",
        /// The node was lost.
        Node = "node",
        Deleted = "deleted",
    }

    /// What to do with the objects of a job.
    pub enum Disposition {
        /// End the compute and keep the objects for inspection.
        Stop = "stop",
        Delete = "delete",
    }
}

/// What a cleanup left. No items is success.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftovers {
    /// What could not be removed or stopped; one line each: what it is, where, and the command that removes it.
    pub items: Vec<String>,
    /// The commands that show what `Stop` kept.
    pub look: Vec<String>,
    /// The commands that remove what `Stop` kept.
    pub delete: Vec<String>,
}

/// How much of each section's log is on disk.
pub type LogMarks = Vec<LogMark>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogMark {
    pub section: String,
    /// Bytes on disk.
    pub offset: u64,
    /// The last line's time, where the source has one.
    pub time: Option<Timestamp>,
}

/// A piece of a job's log.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// A new section. Sent once, before any other chunk of it.
    Open(crate::job::stdout::SectionOrigin),
    /// Bytes of a section, in order.
    Bytes {
        section: String,
        /// Offset of the first byte in the section.
        at: u64,
        data: Vec<u8>,
        /// The last line's time, where the source has one.
        time: Option<Timestamp>,
    },
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

//! The status of a job: its state, and how it ended.

use crate::job::workload::Clock;
use muster_text::{time::Timestamp, words};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// The state of a job now: a level, not an event. Times are the scheduler's, not this machine's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum JobStatus {
    /// The job was not seen yet: the watch may lag behind the launch. Not the same as `Gone`.
    NotSeen,
    /// It waits, and for what: `image pull`, `0/3 nodes have a free GPU`.
    Pending {
        /// One fragment for the progress line.
        why: String,
    },
    /// One of its tasks runs, or several.
    Running {
        since: Timestamp,
        /// Known nodes.
        nodes: Vec<String>,
        /// A fragment on the part that has ended or cannot start: `container main of pod x has exited with 0, mesh still runs`.
        #[serde(default)]
        partly_ended: Option<String>,
        /// Its tasks have ended, and how is not known yet: its limit counts no longer. The scheduler does not wait for ever.
        #[serde(default)]
        has_ended: bool,
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
    /// Its nodes, where it may end before it was seen at work and its sections do not name all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// The facts about its nodes, where they exist for it alone: nobody can describe them before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub described: Vec<NodeSeen>,
    /// Its pods that had started, where it has pods: they alone say which sections are judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<JobPod>,
    /// The exits of pods that are not judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub superseded: Vec<SectionExit>,
    /// Set when the site ended it.
    pub disruption: Option<Disruption>,
    /// Set when the scheduler ended it at a limit of ours: it is a timeout, whatever its exits are.
    #[serde(default)]
    pub limit: Option<Clock>,
    /// One sentence when the exits do not say it all: `OOMKilled: used more than 4Gi`.
    pub cause: Option<String>,
    /// The notes that matter even if it passes, one sentence each: `1 failed attempt before: ...`.
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
    /// Its log is judged. Else another was in its place, or the end came without it.
    pub judged: bool,
}

/// The exit of one container, process or instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionExit {
    pub section: String,
    /// Set if it differs from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section_id: Option<String>,
    pub node: Option<String>,
    pub exit: Exit,
    /// The image that really ran, with its digest: `docker.io/library/busybox@sha256:...`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The time when it began; `ended` when it ended. Both may be unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
}

impl SectionExit {
    /// Returns the id of the section whose end this is: names may be those of several.
    pub fn id(&self) -> &str {
        self.section_id.as_deref().unwrap_or(&self.section)
    }
}

/// A node as its scheduler knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSeen {
    pub name: String,
    /// The identity that distinguishes it from another machine that had its name.
    pub uid: String,
    /// Nodes of one class may be compared; empty: nobody says.
    pub class: String,
    /// The facts by name: `kernel`, `kubelet`, `label.NAME`.
    pub facts: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// Its status is 0, but its node killed it or a process of it, or that cannot be excluded.
    NoSuccess,
    /// The exit status is unknown.
    #[default]
    Unknown,
}

impl Exit {
    /// The status a shell would report: 128 + the signal's number.
    pub fn status(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(signal) => Some(128 + signal),
            Self::NoSuccess | Self::Unknown => None,
        }
    }

    /// Returns the usual meaning of a status of a shell's own. A program may end with it, too.
    pub fn of_shell(self) -> Option<&'static str> {
        match self {
            Self::Code(126) => Some("usually a command that may not be executed"),
            Self::Code(127) => Some("usually a command that was not found"),
            Self::Code(_) | Self::Signal(_) | Self::NoSuccess | Self::Unknown => None,
        }
    }
}

/// `exit status 7`, `killed by signal 9 (SIGKILL)`.
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "killed by {}", Signal(signal)),
            Self::NoSuccess => f.write_str("exit status 0 without success"),
            Self::Unknown => f.write_str("ended with unknown exit status"),
        }
    }
}

/// A signal for people: `signal 9 (SIGKILL)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal(pub i32);

impl Signal {
    /// Returns the signal that sh reports with this status, if it is that of a signal.
    pub fn of_status(status: i32) -> Option<Self> {
        status.checked_sub(128).map(Self).filter(|signal| signal.name().is_some())
    }

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
    /// The reason why the site ended a job.
    pub enum Disruption {
        Preempted = "preempted",
        /// Node pressure or the eviction API.
        Evicted = "evicted",
        /// The node was lost.
        Node = "node",
        Deleted = "deleted",
    }
}

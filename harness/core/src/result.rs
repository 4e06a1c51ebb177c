//! How cases and sessions ended: what is stored and rendered.

use crate::{
    case::{CaseName, Identifier, SessionId},
    job::{
        outputs::CaseOutputs,
        scheduler::{Disruption, SectionExit},
        scheduler_kind::SchedulerKind,
        workload::Clock,
    },
    rules::perf::Measurement,
};
use muster_text::{
    decode::Words,
    time::{Date, Timestamp},
};
use serde::{Deserialize, Serialize};
use std::{fmt, path::PathBuf, time::Duration};

/// A step in the life of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Plan,
    /// Copying files to where the job runs.
    Stage,
    Launch,
    Run,
    Sanity,
    Performance,
    Cleanup,
}

impl Phase {
    /// The word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Stage => "stage",
            Self::Launch => "launch",
            Self::Run => "run",
            Self::Sanity => "sanity",
            Self::Performance => "performance",
            Self::Cleanup => "cleanup",
        }
    }
}

/// How a case ended. What each counts in the exit code is decided in [`crate::decisions::pipeline`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Pass,
    Skip,
    /// It failed as expected.
    Xfail,
    /// It passed, though a failure was expected.
    Xpass,
    /// The check judged the system, or its workload failed.
    Fail(Failure),
    /// It ran and cannot be judged.
    Invalid(Invalid),
    Timeout(Clock),
    /// The site ended the job: preemption, eviction, a lost node.
    Disrupted(Disruption),
    /// An error before judging.
    Error(Fault),
    Abort,
    /// Ended early by a rule of the check.
    Stopped(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    Sanity,
    Performance,
    Workload,
}

/// Why a case cannot be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Invalid {
    /// Its log lost lines.
    Logs,
    /// A variable was not found.
    Metrics,
    /// The run was not what it claims to be.
    Validity,
}

/// What caused an error before judging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The request is invalid: a retry cannot help.
    Config,
    /// The infrastructure failed.
    Infra,
}

impl Outcome {
    /// The word before the brace: `fail`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Skip => "skip",
            Self::Xfail => "xfail",
            Self::Xpass => "xpass",
            Self::Fail(_) => "fail",
            Self::Invalid(_) => "invalid",
            Self::Timeout(_) => "timeout",
            Self::Disrupted(_) => "disrupted",
            Self::Error(_) => "error",
            Self::Abort => "abort",
            Self::Stopped(_) => "stopped",
        }
    }

    /// The word within the brace: `sanity`.
    pub fn detail(&self) -> Option<&str> {
        Some(match self {
            Self::Pass | Self::Skip | Self::Xfail | Self::Xpass | Self::Abort => return None,
            Self::Fail(Failure::Sanity) => "sanity",
            Self::Fail(Failure::Performance) => "performance",
            Self::Fail(Failure::Workload) => "workload",
            Self::Invalid(Invalid::Logs) => "logs",
            Self::Invalid(Invalid::Metrics) => "metrics",
            Self::Invalid(Invalid::Validity) => "validity",
            Self::Timeout(Clock::Pending) => "pending",
            Self::Timeout(Clock::Run) => "run",
            Self::Disrupted(Disruption::Preempted) => "preempted",
            Self::Disrupted(Disruption::Evicted) => "evicted",
            Self::Disrupted(Disruption::Node) => "node",
            Self::Disrupted(Disruption::Deleted) => "deleted",
            Self::Error(Fault::Config) => "config",
            Self::Error(Fault::Infra) => "infra",
            Self::Stopped(rule) => rule,
        })
    }

    /// Whether the outcome counts as a success.
    pub fn is_fine(&self) -> bool {
        matches!(self, Self::Pass | Self::Skip | Self::Xfail | Self::Stopped(_))
    }
}

/// `fail{sanity}`
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        self.detail().map_or(Ok(()), |detail| write!(f, "{{{detail}}}"))
    }
}

/// Everything that is known of one attempt of one case when it is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    pub name: CaseName,
    pub about: About,
    /// `None` if the attempt was never planned.
    pub identifier: Option<Identifier>,
    /// 1, 2, ... within a session.
    pub attempt: u32,
    pub outcome: Outcome,
    /// The phase that decided it.
    pub phase: Phase,
    /// One sentence, for every outcome but a pass.
    pub cause: Option<String>,
    /// One line each; they do not affect the outcome.
    pub warnings: Vec<String>,
    pub nodes: Vec<String>,
    /// How each section ended.
    pub exits: Vec<SectionExit>,
    pub measurements: Vec<Measurement>,
    pub times: Times,
    /// The folder of its script and log.
    pub folder: Option<PathBuf>,
    /// The last lines of its log, for a non-pass.
    pub log_tail: Option<String>,
    /// Commands that inspect what was kept.
    pub look: Vec<String>,
    /// Commands that delete what was kept.
    pub delete: Vec<String>,
    /// Objects that could not be removed.
    pub leftovers: Vec<String>,
    /// It is well now, after an attempt of the same session that was not (`--max-retries`).
    pub flaky: bool,
    /// Set if the outcome is reported and does not count.
    pub quarantine: Option<Quarantine>,
    /// The session in which it ran; `None`: in the one whose result it is (`--restore-session`).
    pub restored_from: Option<SessionId>,
    /// What it has left for the cases that depend on it, if any do.
    #[serde(rename = "provides", default)]
    pub outputs: Option<Box<CaseOutputs>>,
    /// The case that did not pass, for want of which this one was skipped: the first of the chain.
    #[serde(default)]
    pub blocked_by: Option<String>,
}

/// Why the outcome of a case does not count, and how long it does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantine {
    /// One sentence for people: a ticket.
    pub reason: String,
    /// The last day, UTC.
    pub until: Date,
}

/// Which attempts of a case count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// The last one: those before it were retried.
    #[default]
    Last,
    /// All of them: the session was run several times (`--reruns`, `--duration`).
    Every,
}

impl Counting {
    /// The word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::Every => "every",
        }
    }
}

/// What to do with a case whose job the site ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDisruption {
    Fail,
    /// Retry, also without `--max-retries`.
    Retry,
}

impl Words for OnDisruption {
    const WORDS: &'static [(&'static str, Self)] = &[("fail", Self::Fail), ("retry", Self::Retry)];
}

/// Facts of the check, for reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    pub descr: String,
    pub tags: Vec<String>,
    pub maintainers: Vec<String>,
    pub file: String,
    /// Its parameters as displayed, in order.
    pub parameters: Vec<(String, String)>,
    pub scheduler: SchedulerKind,
    pub num_tasks: u32,
    /// `on_disruption`; `None`: the check says nothing, and it is retried like any failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disruption: Option<OnDisruption>,
}

/// Times of the steps; `None` for a step that did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Times {
    pub begun: Timestamp,
    pub launched: Option<Timestamp>,
    /// The first task ran (the scheduler's time).
    pub started: Option<Timestamp>,
    /// The last task ended (the scheduler's time).
    pub ended: Option<Timestamp>,
    pub finished: Timestamp,
}

impl Times {
    pub fn total(&self) -> Duration {
        self.finished.since(self.begun)
    }
}

/// Whether a session has ended, and if not, whether its owner lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// Its end is stored. A signal may have interrupted it before.
    Ended,
    Running,
    /// Its owner is dead, and has not stored its end.
    Interrupted,
    /// It has not ended, and its owner is not visible from here.
    Unknown,
}

impl SessionState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Unknown => "unknown",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub id: SessionId,
    pub started: Timestamp,
    /// When it ended; `None` while it runs, and for ever if it was killed.
    pub ended: Option<Timestamp>,
    /// The command line, as typed.
    pub command: Vec<String>,
    pub system: String,
    pub user: String,
    pub host: String,
    pub workdir: PathBuf,
    pub version: String,
    pub num_cases: u32,
    /// Whether a signal ended it early.
    pub interrupted: bool,
    /// Which attempts of its cases count.
    pub counting: Counting,
    /// `--session-extras`, in order.
    pub extras: Vec<(String, String)>,
    /// Which cases were selected, see [`crate::case::selection`]; empty: an older muster did not write that down.
    #[serde(default)]
    pub selection: String,
}

//! How cases and sessions ended: what is stored and rendered.

use crate::{
    case::{CaseName, Identifier, SessionId},
    job::{
        outputs::Provides,
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

/// Where in its life a case was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Rendering and planning.
    Plan,
    /// Bringing what it needs to where it will run.
    Stage,
    /// Creating.
    Launch,
    /// Waiting and running.
    Run,
    /// Judging the text.
    Sanity,
    /// Judging the figures.
    Performance,
    /// Removing what was created.
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
    /// All is well.
    Pass,
    /// Not run, and why.
    Skip,
    /// It failed as expected.
    Xfail,
    /// It passed, though a failure was expected.
    Xpass,
    /// The check judged the system, or its workload failed.
    Fail(Failure),
    /// It ran and cannot be judged.
    Invalid(Invalid),
    /// It took too long.
    Timeout(Clock),
    /// The site took it away.
    Disrupted(Disruption),
    /// Nothing was judged.
    Error(Fault),
    /// Cancelled.
    Abort,
    /// Ended early by a rule of the check.
    Stopped(String),
}

/// What failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// A sanity item.
    Sanity,
    /// A reference.
    Performance,
    /// The workload's exit status.
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

/// Whose fault it is that nothing was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The request can never work.
    Config,
    /// The machinery.
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

    /// Whether the case counts as neither failed nor lost.
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
    /// The case.
    pub name: CaseName,
    /// What the check says of itself.
    pub about: About,
    /// This attempt's mark; `None` if it was never planned.
    pub identifier: Option<Identifier>,
    /// 1, 2, ... within a session.
    pub attempt: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// The phase that decided it.
    pub phase: Phase,
    /// One sentence, for every outcome but a pass.
    pub cause: Option<String>,
    /// Things worth a line that did not decide anything.
    pub warnings: Vec<String>,
    /// Where it ran.
    pub nodes: Vec<String>,
    /// How each section ended.
    pub exits: Vec<SectionExit>,
    /// The figures.
    pub measurements: Vec<Measurement>,
    /// When things happened.
    pub times: Times,
    /// Where its script and log are now.
    pub folder: Option<PathBuf>,
    /// The last lines of its log, for a non-pass.
    pub log_tail: Option<String>,
    /// Exact commands: look further.
    pub look: Vec<String>,
    /// Exact commands: delete what was kept.
    pub delete: Vec<String>,
    /// What could not be removed.
    pub leftovers: Vec<String>,
    /// It is well now, after an attempt of the same session that was not (`--max-retries`).
    pub flaky: bool,
    /// Its outcome is reported, and does not count.
    pub quarantine: Option<Quarantine>,
    /// The session in which it ran; `None`: in the one whose result it is (`--restore-session`).
    pub restored_from: Option<SessionId>,
    /// What it has left for the cases that depend on it, if any do.
    #[serde(default)]
    pub provides: Option<Box<Provides>>,
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

/// What to do with a case that the site took away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDisruption {
    /// Leave it at that.
    Fail,
    /// Run it again, also without `--max-retries`.
    Retry,
}

impl Words for OnDisruption {
    const WORDS: &'static [(&'static str, Self)] = &[("fail", Self::Fail), ("retry", Self::Retry)];
}

/// What a check says of itself, and where it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// `descr`
    pub descr: String,
    /// `tags`
    pub tags: Vec<String>,
    /// `maintainers`
    pub maintainers: Vec<String>,
    /// The check file.
    pub file: String,
    /// Its parameters as displayed, in order.
    pub parameters: Vec<(String, String)>,
    /// The scheduler.
    pub scheduler: SchedulerKind,
    /// Tasks asked for.
    pub num_tasks: u32,
    /// `on_disruption`; `None`: the check says nothing, and it is retried like any failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disruption: Option<OnDisruption>,
}

/// When things happened. What never happened is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Times {
    /// The case got its turn.
    pub begun: Timestamp,
    /// The launch was answered.
    pub launched: Option<Timestamp>,
    /// The first task ran (the scheduler's time).
    pub started: Option<Timestamp>,
    /// The last task ended (the scheduler's time).
    pub ended: Option<Timestamp>,
    /// The result was there.
    pub finished: Timestamp,
}

impl Times {
    /// From its turn to its result.
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

/// One invocation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Its name in the store.
    pub id: SessionId,
    /// When it began.
    pub started: Timestamp,
    /// When it ended; `None` while it runs, and for ever if it was killed.
    pub ended: Option<Timestamp>,
    /// The command line, as typed.
    pub command: Vec<String>,
    /// The system.
    pub system: String,
    /// Who began it, where.
    pub user: String,
    /// The machine it ran on.
    pub host: String,
    /// The folder it was started in.
    pub workdir: PathBuf,
    /// Muster's version.
    pub version: String,
    /// How many cases were selected.
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

//! The results of cases and sessions: what is stored and rendered.
//!
//! Longer than other files: the table of outcomes is beside them.

use crate::{
    case::{CaseName, Identifier, SessionId},
    job::{
        descriptor::SchedulerName,
        outputs::CaseOutputs,
        scheduler::{Disruption, NodeSeen, SectionExit},
        workload::Clock,
    },
    night::FigureRules,
    rules::perf::Measurement,
    secret::Secrets,
    usage::Usage,
};
use muster_text::{
    Value,
    time::{Date, Timestamp},
    words,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

words! {
    /// A step in the life of a case.
    #[derive(Default)]
    pub enum Phase {
        #[default]
        Plan = "plan",
        /// Copying files to where the job runs.
        Stage = "stage",
        Launch = "launch",
        Run = "run",
        Sanity = "sanity",
        Performance = "performance",
        Cleanup = "cleanup",
    }
}

/// The end of a case. [`Outcome::row`] has what follows from each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    #[default]
    Abort,
    /// Ended early by a rule of the check.
    Stopped(String),
}

words! {
    pub enum Failure {
        Sanity = "sanity",
        Performance = "performance",
        Workload = "workload",
    }

    /// The reason why a case cannot be judged.
    pub enum Invalid {
        /// Its log lost lines.
        Logs = "logs",
        /// A variable was not found.
        Metrics = "metrics",
        /// The run was not what it claims to be.
        Validity = "validity",
    }

    /// The cause of an error before judging.
    pub enum Fault {
        /// The request is invalid: a retry cannot help.
        Config = "config",
        /// The infrastructure failed.
        Infra = "infra",
    }
}

/// The grade of an outcome, for colours and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    Good,
    /// Neither: expected, skipped, worth a look.
    Odd,
    Bad,
}

/// The end of a case, as far as those that depend on it are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// The case passed: its outputs are there.
    Passed,
    /// It did not pass, or its outcome is unknown.
    Failed,
    /// It did not run, or was expected to fail and did.
    Skipped,
    /// The session ends.
    Aborted,
}

/// The properties of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomeRow {
    /// The word before the brace: `fail`.
    pub word: &'static str,
    /// The word in the brackets of a progress line: at most nine letters.
    pub bracket: &'static str,
    pub grade: Grade,
    pub completion: Completion,
    /// The exit code of a session if nothing is worse: 1 if it was judged, 3 if it was not.
    pub exit_code: u8,
    /// Another run may change it: `--max-retries` runs it again.
    pub is_retried: bool,
}

impl Outcome {
    /// The table of outcomes.
    pub fn row(&self) -> OutcomeRow {
        use Completion::{Aborted, Failed, Passed, Skipped};
        use Grade::{Bad, Good, Odd};
        let (word, bracket, grade, completion, exit_code, is_retried) = match self {
            Self::Pass => ("pass", "OK", Good, Passed, 0, false),
            Self::Skip => ("skip", "SKIP", Odd, Skipped, 0, false),
            // As in ReFrame: after an expected failure there is nothing to build on.
            Self::Xfail => ("xfail", "XFAIL", Odd, Skipped, 0, false),
            Self::Xpass => ("xpass", "XPASS", Bad, Failed, 1, true),
            Self::Fail(_) => ("fail", "FAIL", Bad, Failed, 1, true),
            Self::Invalid(_) => ("invalid", "INVALID", Bad, Failed, 1, true),
            Self::Timeout(Clock::Run) => ("timeout", "TIMEOUT", Bad, Failed, 1, true),
            Self::Timeout(Clock::Pending) => ("timeout", "TIMEOUT", Bad, Failed, 3, true),
            Self::Disrupted(_) => ("disrupted", "DISRUPTED", Bad, Failed, 3, true),
            Self::Error(Fault::Config) => ("error", "ERROR", Bad, Failed, 3, false),
            Self::Error(Fault::Infra) => ("error", "ERROR", Bad, Failed, 3, true),
            Self::Abort => ("abort", "ABORT", Odd, Aborted, 3, false),
            Self::Stopped(_) => ("stopped", "STOPPED", Odd, Passed, 0, false),
        };
        OutcomeRow { word, bracket, grade, completion, exit_code, is_retried }
    }

    /// The word within the brace: `sanity`.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::Pass | Self::Skip | Self::Xfail | Self::Xpass | Self::Abort => None,
            Self::Fail(failure) => Some(failure.as_str()),
            Self::Invalid(why) => Some(why.as_str()),
            Self::Timeout(clock) => Some(clock.as_str()),
            Self::Disrupted(why) => Some(why.as_str()),
            Self::Error(fault) => Some(fault.as_str()),
            Self::Stopped(rule) => Some(rule),
        }
    }

    /// Returns whether the figures of such an attempt are those of the system: it ran to its end and was judged.
    pub fn is_measured(&self) -> bool {
        match self {
            Self::Pass | Self::Xfail | Self::Xpass | Self::Fail(Failure::Performance) => true,
            Self::Skip
            | Self::Fail(Failure::Sanity | Failure::Workload)
            | Self::Invalid(_)
            | Self::Timeout(_)
            | Self::Disrupted(_)
            | Self::Error(_)
            | Self::Abort
            | Self::Stopped(_) => false,
        }
    }

    /// Returns whether the outcome counts as a success.
    pub fn is_fine(&self) -> bool {
        self.row().exit_code == 0
    }
}

/// `fail{sanity}`
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().word)?;
        self.detail().map_or(Ok(()), |detail| write!(f, "{{{detail}}}"))
    }
}

/// Everything that is known of one attempt of one case when it is over. The default is one that was never planned.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// The facts about those of its nodes that were there for it alone.
    #[serde(default)]
    pub described: Vec<NodeSeen>,
    /// The ends of its sections.
    pub exits: Vec<SectionExit>,
    pub measurements: Vec<Measurement>,
    pub times: Times,
    /// The folder of its script and log.
    pub folder: Option<PathBuf>,
    /// The last lines of its log, for a non-pass.
    pub log_tail: Option<String>,
    /// More of the end of its log, for the store, which takes it out.
    #[serde(skip)]
    pub log: Option<Box<LogEnd>>,
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
    /// The outputs for the cases that depend on it, if any do.
    #[serde(rename = "provides", default)]
    pub outputs: Option<Box<CaseOutputs>>,
    /// The case whose failure caused the skip of this one: the first of the chain.
    #[serde(default)]
    pub blocked_by: Option<String>,
    /// The purpose of the attempt.
    #[serde(default)]
    pub purpose: Purpose,
    /// The instances that it has used, where they are paid by time. What is kept of a failure counts until the case has ended.
    #[serde(default)]
    pub usage: Usage,
}

/// The end of a log that is kept with a result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEnd {
    /// The length of the whole log.
    pub bytes: u64,
    /// The last bytes, at most [`LogEnd::BYTES`].
    pub tail: String,
}

impl LogEnd {
    pub const BYTES: usize = 64 * 1024;
}

impl CaseResult {
    /// Masks secrets in what people read of it. Its outputs stay: other cases use them.
    pub fn hide(&mut self, secrets: &Secrets) {
        if secrets.is_empty() {
            return;
        }
        self.about.hide(secrets);
        let lists = [&mut self.warnings, &mut self.look, &mut self.delete, &mut self.leftovers].into_iter().flatten();
        let keys = self.measurements.iter_mut().filter_map(|measurement| measurement.key.as_mut());
        let log = self.log.as_mut().map(|log| &mut log.tail);
        let texts = [&mut self.cause, &mut self.log_tail].into_iter().flatten().chain(log);
        lists.chain(keys).chain(texts).for_each(|text| secrets.hide(text));
    }
}

/// The reason why the outcome of a case does not count, and the last day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantine {
    /// One sentence for people: a ticket.
    pub reason: String,
    /// The last day, UTC.
    pub until: Date,
}

words! {
    /// The attempts of a case that count.
    #[derive(Default)]
    pub enum Counting {
        /// The last one: those before it were retried.
        #[default]
        Last = "last",
        /// All of them: the session was run several times (`--reruns`, `--duration`).
        Every = "every",
    }

    /// The purpose of an attempt. Only a run is part of the history of a figure.
    #[derive(Default)]
    pub enum Purpose {
        #[default]
        Run = "run",
        /// To find the best parameters.
        Tune = "tune",
    }

    /// The treatment of a case whose job the site ended.
    pub enum OnDisruption {
        Fail = "fail",
        /// Retry, also without `--max-retries`.
        Retry = "retry",
    }

    /// The state of a session: its end, or whether its owner lives.
    pub enum SessionState {
        /// Its end is stored. A signal may have interrupted it before.
        Ended = "ended",
        Running = "running",
        /// Its owner has ended and has not stored the end of the session.
        Interrupted = "interrupted",
        /// It has not ended, and its owner is not visible from here.
        Unknown = "unknown",
    }
}

/// Facts of the check, for reports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    pub descr: String,
    pub tags: Vec<String>,
    pub maintainers: Vec<String>,
    pub file: String,
    /// The other files that hold what it needs: a run of this case alone has to name them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_files: Vec<String>,
    /// Its parameters as displayed, in order.
    pub parameters: Vec<(String, String)>,
    pub scheduler: SchedulerName,
    pub num_tasks: u32,
    /// `on_disruption`; `None`: the check says nothing, and it is retried like any failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disruption: Option<OnDisruption>,
    /// A digest of what its check says, without comments; empty: an older muster did not write that down.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub check_hash: String,
    /// The digest of its manifest; empty: it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest_hash: String,
    /// The rules for the verdicts of its figures.
    #[serde(default, skip_serializing_if = "FigureRules::is_silent")]
    pub night: FigureRules,
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

impl About {
    /// Masks secrets in what its check says. Its name and its parameters are names of cases, which others compare.
    pub fn hide(&mut self, secrets: &Secrets) {
        let texts = self.tags.iter_mut().chain(&mut self.maintainers).chain([&mut self.descr]);
        texts.for_each(|text| secrets.hide(text));
    }
}

impl Times {
    pub fn total(&self) -> Duration {
        self.finished.since(self.begun)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub id: SessionId,
    pub started: Timestamp,
    /// The time when it ended; `None` while it runs, and for ever if it was killed.
    pub ended: Option<Timestamp>,
    /// The command line, as typed.
    pub command: Vec<String>,
    pub system: String,
    pub user: String,
    pub host: String,
    pub workdir: PathBuf,
    pub version: String,
    pub num_cases: u32,
    /// A signal ended it early.
    pub interrupted: bool,
    /// The attempts of its cases that count.
    pub counting: Counting,
    /// `--fail-on-skip`: a case that is skipped fails it.
    #[serde(default)]
    pub fail_on_skip: bool,
    /// `--session-extras`, in order.
    pub extras: Vec<(String, String)>,
    /// The cases that were selected, see [`crate::case::selection`]; empty: an older muster did not write that down.
    #[serde(default)]
    pub selection: String,
    /// The date of the night in which it started; `None`: an older muster did not write that down.
    #[serde(default)]
    pub night: Option<Date>,
    /// The facts that may explain a change, by name: `site_hash`, `cluster.PARTITION`.
    #[serde(default)]
    pub facts: BTreeMap<String, String>,
    /// The source of its cases; `None`: an older muster did not write that down.
    #[serde(default)]
    pub source: Option<SourceDefinition>,
}

/// The source of a session's cases, as another process makes it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceDefinition {
    /// The name of its kind: `rounds`.
    pub kind: String,
    /// The settings that this kind is made from.
    pub definition: Value,
}

impl Session {
    /// Returns whether it ran in ReFrame and was imported.
    pub fn is_of_reframe(&self) -> bool {
        self.version.starts_with("ReFrame ")
    }
}

//! Turns the facts about a job into a status: pure. Longer than other files: the table of ends is one function.
//!
//! ```text
//! who took it away    Slurm's state: from squeue while it lists the job, else from the accounting or the controller
//! how it ended        the exit file in the stage folder; the state alone is not enough for a pass
//! ```
//! The exit file is there where accounting is off, and before it where accounting is late. But it is not enough alone, either: a
//! program that Slurm ends may end with 0, and its script may not have seen why.

mod pending;

pub(crate) use pending::{Decision, decide, words};

use crate::{
    answers::{
        State,
        jobs::{Record, Row},
    },
    files::{ExitFile, SECTION, STILL},
    log_tail::LogTail,
    plan::Handle,
};
use muster_core::{
    error::Class,
    job::{
        scheduler::{Disruption, Ending, Exit, JobStatus, SectionExit, Signal},
        workload::Clock,
    },
};
use muster_text::{
    node_list::expand,
    time::{Timestamp, format_duration},
};
use std::{path::Path, time::Duration};

/// A job that was launched may be listed only after this time.
const FIRST_SIGHT: Duration = Duration::from_secs(10);
/// It is not gone before.
const NOT_GONE: Duration = Duration::from_secs(30);
/// A job that Slurm may run again is listed again by then.
const REQUEUED: Duration = Duration::from_secs(30);
/// How long it is asked who took a job away.
const WHO: Duration = Duration::from_secs(10);
/// How long a job is looked for that nobody knows, and how long an epilogue is waited for.
const UNKNOWN: Duration = Duration::from_mins(5);
/// An epilogue of so long is not waited for where the accounting can be asked.
const EPILOGUE: Duration = Duration::from_secs(10);
/// So much later than its script a job has to be taken away if the script's status is to count. Clocks of machines differ.
const APART: Duration = Duration::from_secs(30);
/// Slurm's times are whole seconds.
const ROUNDED: Duration = Duration::from_secs(1);
/// What Slurm reports if a node could not enter the folder of a job, or open its log.
const NO_FOLDER: i32 = 53;

/// All that is known.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub handle: &'a Handle,
    pub stage: &'a Path,
    /// The row of the queue now.
    pub row: Option<&'a Row>,
    /// The last row of the queue.
    pub last: Option<&'a Row>,
    pub record: Option<&'a Record>,
    pub exit: Option<&'a ExitFile>,
    /// Its cleanup has begun.
    pub is_ending: bool,
    pub log_tail: &'a LogTail,
    /// The time for which the log has not grown.
    pub log_still_for: Duration,
    /// The time since when its script runs, as its file says.
    pub runner: Option<Timestamp>,
    /// The time since its launch.
    pub age: Duration,
    /// The time for which it has not been listed, or has been in its last state.
    pub over_for: Duration,
    /// The time for which it has been listed as COMPLETING.
    pub completing_for: Duration,
    pub accounting: bool,
    /// The time for which it was suspended.
    pub suspended: Duration,
    pub now: Timestamp,
}

/// What follows from it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// A status. The second: all of it is over, and nothing runs.
    Status(JobStatus, bool),
    /// It waits: see its reason.
    Waits,
    /// Nothing new is known.
    Same,
    /// Somebody has to say how it ended: the accounting, or without one the controller.
    Ask,
    Failed(Class, String),
}

/// What a job is.
pub(crate) fn judge(facts: &Facts<'_>) -> Verdict {
    let Some(row) = facts.row else { return facts.vanished() };
    match row.state {
        State::Pending => Verdict::Waits,
        State::Starting => Verdict::Status(JobStatus::Pending { why: "its nodes are being started".to_owned() }, false),
        State::Running | State::Suspended => facts.running(),
        State::Completing => facts.completing(),
        state => facts.over(state),
    }
}

impl Facts<'_> {
    /// Its processes end, or its epilogue runs. Whether Slurm has ended them shows with the final state.
    ///
    /// The accounting knows that before the epilogue is over. One that never ends hides no result for ever.
    fn completing(&self) -> Verdict {
        let Some(exit) = self.exit else { return self.running() };
        let verdict = match self.record.filter(|record| record.state.is_final()) {
            Some(record) => self.over(record.state),
            None if exit.ended.is_none_or(|ended| self.now.since(ended.plus(self.behind())) > UNKNOWN) => self.untold(exit),
            None if self.accounting && self.completing_for >= EPILOGUE => Verdict::Ask,
            None => self.running(),
        };
        match verdict {
            Verdict::Status(status, _) => Verdict::Status(status, false),
            other => other,
        }
    }

    /// Nobody says how it ended, and its script has left a status.
    fn untold(&self, exit: &ExitFile) -> Verdict {
        if exit.signalled || self.log_tail.was_ended {
            return Verdict::Status(self.unexplained(), true);
        }
        self.over(State::Completed)
    }

    fn running(&self) -> Verdict {
        let since = self.started().unwrap_or(self.now);
        let partly_ended = (self.row.is_some_and(|row| row.state == State::Suspended)).then(|| "suspended".to_owned());
        // Its script has left its file: only Slurm's last word on it is missing, after the epilog.
        let has_ended = self.exit.is_some() && self.row.is_some_and(|row| row.state == State::Completing);
        Verdict::Status(JobStatus::Running { since, nodes: self.nodes(), partly_ended, has_ended }, false)
    }

    /// It is not listed.
    fn vanished(&self) -> Verdict {
        let was_seen = self.last.is_some();
        let may_be_requeued = |state: State| self.handle.policy.requeue && state.may_be_requeued();
        if let Some(record) = self.record.filter(|record| record.state.is_final()) {
            let waits = may_be_requeued(record.state) && self.over_for < REQUEUED;
            return if waits { Verdict::Same } else { self.over(record.state) };
        }
        let last = self.last.filter(|last| last.state.is_final());
        if let Some(exit) = self.exit {
            // Slurm may have ended the script: then that is what to say.
            let is_open = last.is_none() || exit.is_doubtful();
            if is_open && self.accounting && self.log_tail.over_memory.is_none() && self.over_for < WHO {
                return Verdict::Ask;
            }
            return last.map_or_else(|| self.untold(exit), |last| self.over(last.state));
        }
        if let Some(last) = last {
            let waits = may_be_requeued(last.state) && self.over_for < REQUEUED;
            return if waits { Verdict::Same } else { self.over(last.state) };
        }
        if !was_seen && self.age < FIRST_SIGHT {
            return Verdict::Status(JobStatus::NotSeen, false);
        }
        let patience = if self.accounting { UNKNOWN } else { self.handle.policy.file_latency.max(NOT_GONE) };
        if self.over_for.min(self.age) < patience {
            return if self.accounting { Verdict::Ask } else { Verdict::Same };
        }
        let job = self.handle.id.as_deref().map_or_else(|| format!("job {}", self.handle.name), |id| format!("job {id}"));
        if self.accounting {
            let cause = format!("neither squeue nor sacct knows {job}");
            return Verdict::Status(JobStatus::Gone { why: Disruption::Deleted, cause }, true);
        }
        // Nobody was seen to end it.
        let what = format!(
            "{job} left the queue{} without an exit file, and there is no accounting: how it ended is not known. It was cancelled, or {} is \
             not on a file system that its nodes see",
            self.place(),
            self.stage.display()
        );
        Verdict::Failed(Class::Infra, what)
    }

    /// It has ended, in this state.
    fn over(&self, state: State) -> Verdict {
        if self.is_ending && self.exit.is_none() && state.is_final() {
            // Its script found the tombstone: no file will come.
            return Verdict::Status(JobStatus::Gone { why: Disruption::Deleted, cause: self.cancelled() }, true);
        }
        let requeue = self.handle.policy.requeue && state.may_be_requeued() && self.row.is_some();
        if requeue && self.over_for < REQUEUED {
            return Verdict::Same;
        }
        let is_late = self.over_for >= self.handle.policy.file_latency;
        let status = self.exit.map(|exit| exit.status);
        // It ended because it was about to be preempted: only the controller knows that.
        let state = self.record.filter(|record| record.state == State::Preempted).map_or(state, |record| record.state);
        let may_be_preempted = matches!(state, State::Completed | State::Failed) && self.log_tail.was_ended;
        if may_be_preempted && self.record.is_none() && self.over_for < WHO {
            return Verdict::Ask;
        }
        let done = |status| Verdict::Status(status, true);
        let gone = |why, cause| done(JobStatus::Gone { why, cause });
        match (state, status) {
            (State::OutOfMemory, _) => done(self.out_of_memory()),
            (State::Timeout, status) => {
                let cause = format!("TIMEOUT: {}{}", self.limit_reached(), self.place());
                let ending = self.ending(status.map_or(Exit::Signal(15), Exit::Code), Some(cause), vec![]);
                done(JobStatus::Ended(Ending { limit: Some(Clock::Run), ..ending }))
            }
            (State::Deadline, _) => {
                let cause = "DEADLINE: its deadline passed before it ended".to_owned();
                let ending = self.ending(Exit::Unknown, Some(cause), vec![]);
                done(JobStatus::Ended(Ending { limit: Some(Clock::Pending), ..ending }))
            }
            (State::NodeLost | State::Cancelled, Some(status)) if self.had_ended_before() => {
                let what = if state == State::Cancelled { "the job was cancelled" } else { "a node was lost" };
                // Of what Muster has cancelled itself nobody has to be told.
                let note = (!self.is_ending).then(|| format!("{what} after its script ended"));
                done(self.ended(Exit::Code(status), None, note.into_iter().collect()))
            }
            (State::NodeLost, _) => gone(Disruption::Node, format!("{}: a node was lost{}", self.word(state), self.place())),
            (State::Preempted, _) => {
                gone(Disruption::Preempted, format!("PREEMPTED by a job of higher priority{}", self.place()))
            }
            (State::Cancelled, _) if self.by_whom().is_none() && self.may_be_told_by_whom() => Verdict::Ask,
            (State::Cancelled, _) => gone(Disruption::Deleted, self.cancelled()),
            // Killed, or ended by srun together with a task that was.
            (_, None | Some(137 | 143)) if self.log_tail.over_memory.is_some() => done(self.out_of_memory()),
            // The log says what the signal was, and a file server may show its end later.
            (_, Some(status)) if is_signal(status) && !is_late && !self.has_whole_log() => Verdict::Same,
            (_, Some(status)) => done(self.with_status(status)),
            (State::Completed, None) if is_late => {
                let latency = format_duration(self.handle.policy.file_latency);
                let what = format!(
                    "job {} ended{}, and its exit file did not come to {} within {latency}: is that on a file system that its nodes see, and has it room?",
                    self.id(),
                    self.place(),
                    self.stage.display()
                );
                Verdict::Failed(Class::Infra, what)
            }
            (State::Completed, None) => Verdict::Same,
            _ => self.failed(is_late),
        }
    }

    /// The limit that ended it: that of the job, unless somebody has shortened it since.
    fn limit_reached(&self) -> String {
        let Some(minutes) = self.handle.minutes else { return "Slurm's time limit was reached".to_owned() };
        let listed = self.row.or(self.last).filter(|row| row.state.is_final());
        let ended = listed.and_then(|row| row.ended).or_else(|| self.record?.ended);
        match self.started().zip(ended).map(|(started, ended)| ended.since(started)) {
            // Slurm looks for what is over its limit every 30 s, and never ends it sooner.
            Some(ran) if ran + APART < Duration::from_mins(minutes) => format!(
                "Slurm's time limit was reached after {}: it is shorter than the {minutes} min that were asked for",
                format_duration(ran)
            ),
            Some(_) | None => format!("Slurm's time limit of {minutes} min was reached"),
        }
    }

    /// Whether its script had ended when it was taken away. A program may end with 0 because it is told to end, and its script not
    /// have seen that: only the times show it. What Muster has cancelled had ended, or is not judged.
    fn had_ended_before(&self) -> bool {
        let Some(exit) = self.exit.filter(|exit| !exit.is_doubtful()) else { return false };
        let listed = self.row.or(self.last).filter(|row| row.state.is_final()).and_then(|row| row.ended);
        let taken = listed.or_else(|| self.record?.ended);
        self.is_ending || exit.ended.zip(taken).is_some_and(|(ended, taken)| taken.since(ended) >= APART)
    }

    /// Slurm killed it. Without cgroups the state does not say so, but the log does.
    fn out_of_memory(&self) -> JobStatus {
        let exit = self.exit.map(|exit| exit.status).filter(|status| *status != 0).map_or(Exit::Signal(9), Exit::Code);
        let how = match (self.log_tail.over_memory, &self.handle.memory) {
            (Some(over), _) => format!("used {} MiB, and may use {} MiB", over.used >> 20, over.allowed >> 20),
            (None, Some(asked)) => format!("used more memory than it asked for: {asked}"),
            (None, None) => "used more memory than it may use".to_owned(),
        };
        self.ended(exit, Some(format!("OUT_OF_MEMORY{}: {how}", self.place())), vec![])
    }

    /// Where srun has ended the tasks that were left, its status is theirs: that of a signal, which says nothing.
    fn with_status(&self, status: i32) -> JobStatus {
        let first = self.log_tail.first_failed.as_ref().filter(|task| is_signal(status) && task.others.contains(&status));
        if let Some(first) = first {
            let note = format!("{}; srun ended the other tasks", first.what);
            return self.ended(Exit::Code(first.status), None, vec![note]);
        }
        let not_started = self.log_tail.not_started.as_ref().filter(|_| status != 0);
        let cause = not_started.map(|what| format!("srun has not started {what}"));
        let cause = cause.or_else(|| Exit::Code(status).of_shell().map(str::to_owned));
        self.ended(Exit::Code(status), cause, vec![])
    }

    fn has_whole_log(&self) -> bool {
        self.exit.is_none_or(|exit| exit.has_log_of(self.log_tail.bytes))
    }

    /// FAILED, and no exit file: its script was killed, or never started.
    fn failed(&self, is_late: bool) -> Verdict {
        let Some(record) = self.record.filter(|record| record.state.is_final()) else {
            if !is_late {
                return Verdict::Ask;
            }
            let cause = format!("Slurm says {} of job {}{}", self.word(State::Failed), self.id(), self.place());
            return Verdict::Status(self.ended(Exit::Unknown, Some(cause), vec![]), true);
        };
        let reason = if record.reason.is_empty() { String::new() } else { format!(" ({})", record.reason) };
        match record.exit {
            _ if record.reason == "BadConstraints" && self.nodes().is_empty() => {
                Verdict::Failed(Class::Config, format!("Slurm refused job {}: BadConstraints", self.id()))
            }
            Some((_, NO_FOLDER)) => Verdict::Failed(
                Class::Infra,
                format!(
                    "job {} did not start{}{reason}: is {} on a file system that the node sees?",
                    self.id(),
                    self.place(),
                    self.stage.display()
                ),
            ),
            // The log says what the signal was, and nothing says how long that is.
            Some((0, signal)) if signal > 0 && !is_late && self.log_still_for < STILL => Verdict::Same,
            Some((0, signal)) if signal > 0 => {
                let cause = format!("{} ended the script of job {}{}{reason}", Signal(signal), self.id(), self.place());
                Verdict::Status(self.ended(Exit::Signal(signal), Some(cause), vec![]), true)
            }
            Some((code, _)) if is_late => {
                let note = "its exit file did not come: the status is Slurm's".to_owned();
                Verdict::Status(self.ended(Exit::Code(code), None, vec![note]), true)
            }
            _ => Verdict::Same,
        }
    }

    fn ended(&self, exit: Exit, cause: Option<String>, notes: Vec<String>) -> JobStatus {
        JobStatus::Ended(self.ending(exit, cause, notes))
    }

    fn ending(&self, exit: Exit, cause: Option<String>, mut notes: Vec<String>) -> Ending {
        let started = self.started().unwrap_or(self.now);
        let of_file = self.exit.and_then(|exit| exit.ended);
        let ended = of_file.or_else(|| self.record?.ended).map_or(self.now, |at| at.plus(self.behind())).max(started);
        if !self.suspended.is_zero() {
            notes.push(format!("suspended for {}: figures are not comparable", format_duration(self.suspended)));
        }
        if self.exit.is_some_and(|exit| exit.restarts > 0) {
            notes.push("Slurm started the job again: log and status are those of its last start".to_owned());
        }
        let all = self.nodes();
        let exits = vec![SectionExit { section: SECTION.to_owned(), node: all.first().cloned(), exit, ..SectionExit::default() }];
        Ending { started, ended, exits, nodes: all, cause, notes, ..Ending::default() }
    }

    fn started(&self) -> Option<Timestamp> {
        let ran = |row: &&Row| row.state != State::Pending;
        let listed = self.row.or(self.last).filter(ran).and_then(|row| row.started);
        listed.or_else(|| self.record?.started).or(self.runner).map(|at| at.plus(self.behind()))
    }

    /// How far the clock of the cluster is behind this one, at least: no job is submitted before its launch begins.
    ///
    /// A limit that counts from a time of the cluster would else be over too early. A clock that is ahead is not corrected: the request
    /// may have been slow, and the limit is over too late at worst. Where an answer was lost, the job may come from an earlier request.
    fn behind(&self) -> Duration {
        if self.handle.doubtful {
            return Duration::ZERO;
        }
        let submitted = self.row.or(self.last).and_then(|row| row.submitted).or_else(|| self.record?.submitted);
        let Some((launched, submitted)) = self.handle.launched.zip(submitted) else { return Duration::ZERO };
        launched.since(submitted).saturating_sub(ROUNDED)
    }

    fn nodes(&self) -> Vec<String> {
        let listed = self.row.or(self.last).map(|row| row.nodes.as_str()).filter(|nodes| !nodes.is_empty());
        let nodes = listed.or_else(|| self.record.map(|record| record.nodes.as_str()));
        let nodes = nodes.map(expand).unwrap_or_default();
        if nodes.is_empty() { self.exit.map(|exit| expand(&exit.nodes)).unwrap_or_default() } else { nodes }
    }

    /// ` on n1`, ` on n1 and 3 more`
    fn place(&self) -> String {
        match &self.nodes()[..] {
            [] => String::new(),
            [node] => format!(" on {node}"),
            [node, others @ ..] => format!(" on {node} and {} more", others.len()),
        }
    }

    fn id(&self) -> &str {
        self.handle.id.as_deref().unwrap_or(&self.handle.name)
    }

    /// The state as Slurm calls it.
    fn word(&self, state: State) -> String {
        let listed = self.row.or(self.last).filter(|row| row.state == state).map(|row| row.word.clone());
        listed.or_else(|| Some(self.record?.word.clone())).unwrap_or_else(|| format!("{state:?}").to_uppercase())
    }

    /// Something ended the script, and nobody says what: its status is not that of a program which ran to its end.
    fn unexplained(&self) -> JobStatus {
        let cause = format!("a signal ended the script of job {}{}, and its last state was not seen", self.id(), self.place());
        JobStatus::Gone { why: Disruption::Deleted, cause }
    }

    fn cancelled(&self) -> String {
        let by = self.by_whom().map_or_else(String::new, |name| format!(" by {name}"));
        format!("CANCELLED: job {} was cancelled{by}{}", self.id(), self.place())
    }

    /// Only the accounting knows the user. The controller, which is asked while that is late, does not.
    fn by_whom(&self) -> Option<&str> {
        self.record?.by.as_deref()
    }

    fn may_be_told_by_whom(&self) -> bool {
        self.accounting && !self.is_ending && self.over_for < WHO
    }
}

/// Whether sh reports a signal with this status.
fn is_signal(status: i32) -> bool {
    Signal::of_status(status).is_some()
}

#[cfg(test)]
mod tests;

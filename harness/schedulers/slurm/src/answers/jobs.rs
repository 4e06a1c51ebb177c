//! Reads what squeue, sacct and scontrol print of jobs. The formats are the same in every version since 20.11; JSON is not.

use super::state::State;
use muster_text::time::Timestamp;

/// `squeue -o`: the reason is free text, and stands last.
pub(crate) const QUEUE: &str = "%A|%T|%V|%S|%e|%N|%j|%r";
/// `sacct -o`
pub(crate) const RECORDS: &str = "jobidraw,submit,start,end,state,exitcode,nodelist,jobname";

/// A job as the queue lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub id: String,
    pub state: State,
    /// The state as Slurm writes it.
    pub word: String,
    pub submitted: Option<Timestamp>,
    /// The start; of a job that waits, the expected one.
    pub started: Option<Timestamp>,
    /// The end; of a job that has not ended, the end of its time limit.
    pub ended: Option<Timestamp>,
    /// A node list.
    pub nodes: String,
    pub name: String,
    pub reason: String,
}

impl Row {
    /// The remains of a refused sbatch: a job that has ended and never ran.
    pub(crate) fn was_refused(&self) -> bool {
        self.state == State::Failed && self.reason == "BadConstraints"
    }
}

/// The jobs of an answer of squeue.
pub(crate) fn queue(text: &str) -> Vec<Row> {
    text.lines().filter_map(row).collect()
}

/// `12|RUNNING|1795331056|1795331057|1795334657|n[1-2]|rfm-x-abcdefgh|None`
fn row(line: &str) -> Option<Row> {
    let mut fields = line.splitn(8, '|');
    let mut field = || fields.next().map(str::trim);
    let (id, word) = (field()?, field()?);
    Some(Row {
        id: id.to_owned(),
        state: State::of(word),
        word: word.to_owned(),
        submitted: time(field()?),
        started: time(field()?),
        ended: time(field()?),
        nodes: field()?.to_owned(),
        name: field()?.to_owned(),
        reason: field()?.to_owned(),
    })
}

/// How a job ended, of the accounting or of the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub id: String,
    pub name: String,
    pub state: State,
    pub word: String,
    pub submitted: Option<Timestamp>,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    /// Exit code and signal of the script.
    pub exit: Option<(i32, i32)>,
    pub nodes: String,
    pub reason: String,
    /// The name of who has cancelled it: Slurm gives the number.
    pub by: Option<String>,
}

impl Record {
    /// The same, as the accounting has it.
    pub(crate) fn was_refused(&self) -> bool {
        self.state == State::Failed && self.started.is_none()
    }
}

/// The jobs of an answer of sacct.
pub(crate) fn records(text: &str) -> Vec<Record> {
    text.lines().filter_map(record).collect()
}

/// `12|1795331057|1795331058|1795331060|CANCELLED by 7001|0:15|n2|rfm-x-abcdefgh`
fn record(line: &str) -> Option<Record> {
    let mut fields = line.splitn(8, '|');
    let mut field = || fields.next().map(str::trim);
    let id = field()?;
    let (submitted, started, ended) = (time(field()?), time(field()?), time(field()?));
    let word = field()?;
    Some(Record {
        id: id.to_owned(),
        state: State::of(word),
        word: word.to_owned(),
        submitted,
        started,
        ended,
        exit: exit(field()?),
        nodes: field()?.to_owned(),
        name: field()?.to_owned(),
        reason: String::new(),
        by: None,
    })
}

/// The line of `scontrol -o show job`: `JobId=12 JobName=.. JobState=FAILED Reason=NonZeroExitCode ..`.
pub(crate) fn shown(text: &str) -> Option<Record> {
    let line = text.lines().find(|line| line.contains("JobId="))?;
    let value = |key: &str| words(line).find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let started = value("StartTime").and_then(time);
    // One that ends while it has grace keeps the state of its script. The time may be that of an earlier start.
    let is_preempted = value("PreemptTime").and_then(time).zip(started).is_some_and(|(preempted, started)| preempted >= started);
    let said = value("JobState")?;
    let has_ended = matches!(State::of(said), State::Completing | State::Completed | State::Failed);
    let word = if is_preempted && has_ended { "PREEMPTED" } else { said };
    Some(Record {
        id: value("JobId")?.to_owned(),
        name: value("JobName").unwrap_or_default().to_owned(),
        state: State::of(word),
        word: word.to_owned(),
        submitted: value("SubmitTime").and_then(time),
        started,
        ended: value("EndTime").and_then(time),
        exit: value("ExitCode").and_then(exit),
        nodes: value("NodeList").unwrap_or_default().to_owned(),
        reason: value("Reason").unwrap_or_default().to_owned(),
        by: None,
    })
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace()
}

/// Seconds since 1970; none for `N/A`, `Unknown`, and what was never reached.
pub(crate) fn time(text: &str) -> Option<Timestamp> {
    text.parse::<i64>().ok().filter(|seconds| *seconds > 0).map(Timestamp::of_seconds)
}

/// `1:0`, `0:15`
fn exit(text: &str) -> Option<(i32, i32)> {
    let (code, signal) = text.split_once(':')?;
    Some((code.parse().ok()?, signal.split(':').next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_reason_last_whatever_that_holds() {
        let text = "12|RUNNING|1795331056|1795331057|1795334657|n[1-2]|rfm-x-abcdefgh|None\n\
                    13|PENDING|1795331056|N/A|N/A||rfm-y-abcdefgi|Nodes required for job are DOWN, a|b\n\
                    broken\n";
        let rows = queue(text);
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].state, rows[0].started, &*rows[0].nodes),
            (State::Running, Some(Timestamp(1_795_331_057_000_000)), "n[1-2]")
        );
        assert_eq!((rows[1].started, &*rows[1].reason), (None, "Nodes required for job are DOWN, a|b"));
    }

    #[test]
    fn a_record_says_how_a_job_ended() {
        let text = "12|1795331057|1795331058|1795331060|CANCELLED by 7001|0:15|n2|rfm-x-abcdefgh\n\
                    13|1795331057|Unknown|1795331060|FAILED|1:0|None assigned|rfm-y-abcdefgi\n";
        let records = records(text);
        assert_eq!(
            (records[0].state, &*records[0].word, records[0].exit),
            (State::Cancelled, "CANCELLED by 7001", Some((0, 15)))
        );
        assert_eq!((records[1].started, records[1].exit), (None, Some((1, 0))));
        let line = "JobId=14 JobName=rfm-z-abcdefgj UserId=user1(7001) JobState=FAILED Reason=NonZeroExitCode Dependency=(null) \
                    ExitCode=0:53 SubmitTime=1795331057 StartTime=1795331058 EndTime=1795331058 NodeList=n1 BatchHost=n1\n";
        let shown = shown(line).unwrap();
        assert_eq!(
            (shown.state, shown.exit, &*shown.reason, &*shown.nodes),
            (State::Failed, Some((0, 53)), "NonZeroExitCode", "n1")
        );
    }

    #[test]
    fn a_job_that_ends_while_it_has_grace_was_preempted() {
        let state = |state: &str, started: &str, preempted: &str| {
            let line = format!("JobId=14 JobName=rfm-z-abcdefgj JobState={state} StartTime={started} PreemptTime={preempted}\n");
            super::shown(&line).unwrap().state
        };
        assert_eq!(state("COMPLETED", "1795331058", "1795331060"), State::Preempted);
        assert_eq!(state("RUNNING", "1795331058", "1795331060"), State::Running, "it has grace");
        assert_eq!(state("COMPLETED", "1795331058", "1795331050"), State::Completed, "that was an earlier start");
        assert_eq!(state("COMPLETED", "1795331058", "None"), State::Completed);
    }
}

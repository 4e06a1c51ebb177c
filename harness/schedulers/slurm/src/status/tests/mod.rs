//! The table of states and exit files: what each pair is as a status. `doubt`: whether a status is that of a program which ran to its end.

mod doubt;

use super::*;
use crate::log_tail::{FailedTask, OverMemory};

const DAY: i64 = 86_400_000_000;
const SECOND: Duration = Duration::from_secs(1);
/// The log says nothing of the end.
const SILENT: &LogTail = &LogTail { bytes: 1, was_ended: false, over_memory: None, not_started: None, first_failed: None };

/// A job that is over its limit has run for so long.
fn ended(word: &str) -> Timestamp {
    Timestamp(DAY + if word == "TIMEOUT" { 361_000_000 } else { 9 })
}

fn row(word: &str) -> Row {
    Row {
        id: "12".to_owned(),
        state: State::of(word),
        word: word.to_owned(),
        submitted: Some(Timestamp(DAY)),
        started: Some(Timestamp(DAY + 1)),
        ended: Some(ended(word)),
        nodes: "n[1-2]".to_owned(),
        name: "rfm-x-aotugiob".to_owned(),
        reason: String::new(),
    }
}

fn record(word: &str, exit: (i32, i32)) -> Record {
    Record {
        id: "12".to_owned(),
        name: "rfm-x-aotugiob".to_owned(),
        state: State::of(word),
        word: word.to_owned(),
        submitted: None,
        started: Some(Timestamp(DAY + 1)),
        ended: Some(ended(word)),
        exit: Some(exit),
        nodes: "n3".to_owned(),
        reason: String::new(),
        by: word.strip_prefix("CANCELLED by ").map(|uid| format!("uid {uid}")),
    }
}

fn exit(status: i32) -> ExitFile {
    ExitFile { status, bytes: Some(1), ended: Some(Timestamp(DAY + 5)), restarts: 0, signalled: false, nodes: "n1".to_owned() }
}

/// Everything that a row of a table may say.
#[derive(Default)]
struct Given {
    listed: Option<&'static str>,
    last: Option<&'static str>,
    record: Option<(&'static str, (i32, i32))>,
    exit: Option<i32>,
    over_memory: Option<OverMemory>,
    age: u64,
    over_for: u64,
    no_accounting: bool,
    requeue: bool,
}

fn verdict(given: &Given) -> Verdict {
    let mut handle =
        Handle { id: Some("12".to_owned()), minutes: Some(6), memory: Some("4G on each node".to_owned()), ..Handle::default() };
    handle.policy.requeue = given.requeue;
    let (listed, last) = (given.listed.map(row), given.last.map(row));
    let (record, exit) = (given.record.map(|(word, status)| record(word, status)), given.exit.map(exit));
    judge(&Facts {
        row: listed.as_ref(),
        last: last.as_ref().or(listed.as_ref()),
        record: record.as_ref(),
        exit: exit.as_ref(),
        log_tail: &LogTail { over_memory: given.over_memory, ..SILENT.clone() },
        age: SECOND * u32::try_from(given.age.max(given.over_for)).unwrap(),
        over_for: Duration::from_secs(given.over_for),
        accounting: !given.no_accounting,
        ..facts(&handle)
    })
}

/// Nothing is known.
fn facts(handle: &Handle) -> Facts<'_> {
    Facts {
        handle,
        stage: Path::new("/stage"),
        row: None,
        last: None,
        record: None,
        exit: None,
        is_ending: false,
        log_tail: SILENT,
        log_still_for: STILL,
        runner: None,
        age: SECOND,
        over_for: SECOND,
        completing_for: Duration::ZERO,
        accounting: true,
        suspended: Duration::ZERO,
        now: Timestamp(2 * DAY),
    }
}

/// One line for a verdict.
fn line(given: &Given) -> String {
    match verdict(given) {
        Verdict::Status(status, over) => {
            let over = if over { "over: " } else { "" };
            match status {
                JobStatus::NotSeen => format!("{over}not seen"),
                JobStatus::Pending { why } => format!("{over}pending {why}"),
                JobStatus::Running { nodes, has_ended, .. } => {
                    format!("{over}running on {}{}", nodes.join("+"), if has_ended { ", over" } else { "" })
                }
                JobStatus::Gone { why, cause } => format!("{over}gone {why}: {cause}"),
                JobStatus::Ended(Ending { exits, nodes, limit, cause, notes, .. }) => {
                    let limit = limit.map_or_else(String::new, |clock| format!(" at the limit {clock}"));
                    let cause = cause.map_or_else(String::new, |cause| format!("; {cause}"));
                    assert_eq!(exits[0].node.as_ref(), nodes.first());
                    format!("{over}{} on {}{limit}{cause}{}", exits[0].exit, nodes.join("+"), notes.concat())
                }
            }
        }
        Verdict::Failed(class, why) => format!("{class:?}: {why}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn what_the_queue_lists_is_what_the_job_is() {
    let rows = [
        ("PENDING", None, 0, "Waits"),
        ("REQUEUE_HOLD", Some(143), 0, "Waits"),
        ("CONFIGURING", None, 0, "pending its nodes are being started"),
        ("RUNNING", None, 0, "running on n1+n2"),
        ("RUNNING", Some(0), 0, "running on n1+n2"),
        ("COMPLETING", None, 0, "running on n1+n2"),
        // Its epilogue never ends.
        ("COMPLETING", Some(0), 0, "exit status 0 on n1+n2"),
        ("COMPLETED", Some(0), 0, "over: exit status 0 on n1+n2"),
        ("COMPLETED", Some(3), 0, "over: exit status 3 on n1+n2"),
        ("COMPLETED", None, 1, "Same"),
        (
            "COMPLETED",
            None,
            60,
            "Infra: job 12 ended on n1 and 1 more, and its exit file did not come to /stage within 1m: is that on a file system that its nodes see, and has it room?",
        ),
        ("FAILED", Some(3), 0, "over: exit status 3 on n1+n2"),
        ("FAILED", None, 0, "Ask"),
        (
            "OUT_OF_MEMORY",
            Some(0),
            0,
            "over: killed by signal 9 (SIGKILL) on n1+n2; OUT_OF_MEMORY on n1 and 1 more: used more memory than it asked for: 4G on each node",
        ),
        (
            "OUT_OF_MEMORY",
            Some(137),
            0,
            "over: exit status 137 on n1+n2; OUT_OF_MEMORY on n1 and 1 more: used more memory than it asked for: 4G on each node",
        ),
        (
            "TIMEOUT",
            Some(143),
            0,
            "over: exit status 143 on n1+n2 at the limit run; TIMEOUT: Slurm's time limit of 6 min was reached on n1 and 1 more",
        ),
        ("PREEMPTED", None, 0, "over: gone preempted: PREEMPTED by a job of higher priority on n1 and 1 more"),
        ("PREEMPTED", Some(143), 0, "over: gone preempted: PREEMPTED by a job of higher priority on n1 and 1 more"),
        ("PREEMPTED", Some(0), 0, "over: gone preempted: PREEMPTED by a job of higher priority on n1 and 1 more"),
        ("CANCELLED", Some(3), 10, "over: gone deleted: CANCELLED: job 12 was cancelled on n1 and 1 more"),
        ("NODE_FAIL", None, 0, "over: gone node: NODE_FAIL: a node was lost on n1 and 1 more"),
        ("NODE_FAIL", Some(2), 0, "over: gone node: NODE_FAIL: a node was lost on n1 and 1 more"),
        ("NODE_FAIL", Some(143), 0, "over: gone node: NODE_FAIL: a node was lost on n1 and 1 more"),
        ("CANCELLED", None, 0, "Ask"),
        ("CANCELLED", None, 10, "over: gone deleted: CANCELLED: job 12 was cancelled on n1 and 1 more"),
    ];
    for (word, exit, over_for, expected) in rows {
        let given = Given { listed: Some(word), exit, over_for, ..Given::default() };
        assert_eq!(line(&given), expected, "{word} {exit:?} {over_for}");
    }
}

#[test]
fn a_limit_that_somebody_has_shortened_is_not_the_one_that_was_asked_for() {
    let cause = |minutes| {
        let handle = Handle { minutes, ..Handle::default() };
        let (row, exit) = (row("TIMEOUT"), exit(143));
        match judge(&Facts { row: Some(&row), exit: Some(&exit), ..facts(&handle) }) {
            Verdict::Status(JobStatus::Ended(ending), _) => ending.cause.unwrap(),
            other => panic!("{other:?}"),
        }
    };
    let place = "on n1 and 1 more";
    assert_eq!(cause(Some(6)), format!("TIMEOUT: Slurm's time limit of 6 min was reached {place}"));
    let shorter = "was reached after 6m: it is shorter than the 10 min that were asked for";
    assert_eq!(cause(Some(10)), format!("TIMEOUT: Slurm's time limit {shorter} {place}"));
    assert_eq!(cause(None), format!("TIMEOUT: Slurm's time limit was reached {place}"));
}

#[test]
fn a_job_that_is_not_listed_is_not_gone_at_once() {
    let known = |last, exit, age, over_for| Given { last, exit, age, over_for, ..Given::default() };
    let rows = [
        (known(None, None, 1, 1), "not seen"),
        (known(None, None, 11, 11), "Ask"),
        (known(None, Some(0), 1, 1), "Ask"),
        (known(Some("RUNNING"), Some(0), 30, 0), "Ask"),
        (known(Some("COMPLETED"), Some(0), 30, 0), "over: exit status 0 on n1+n2"),
        // The accounting does not answer, and the log has no word of Slurm's.
        (known(None, Some(0), 11, 10), "over: exit status 0 on n1"),
        (known(Some("RUNNING"), Some(143), 30, 1), "Ask"),
        (known(Some("RUNNING"), Some(143), 30, 10), "over: exit status 143 on n1+n2"),
        (known(Some("RUNNING"), None, 30, 1), "Ask"),
        (known(Some("RUNNING"), None, 999, 300), "over: gone deleted: neither squeue nor sacct knows job 12"),
    ];
    for (given, expected) in rows {
        assert_eq!(line(&given), expected);
    }
    let done = Given { last: Some("RUNNING"), exit: Some(0), no_accounting: true, ..Given::default() };
    assert_eq!(line(&done), "over: exit status 0 on n1+n2");
    let without = |over_for| Given { last: Some("RUNNING"), age: 999, over_for, no_accounting: true, ..Given::default() };
    assert_eq!(line(&without(59)), "Same");
    // Nobody was seen to end it.
    let unknown = line(&without(60));
    assert!(unknown.contains("Infra") && unknown.contains("is not on a file system that its nodes see"), "{unknown}");
}

#[test]
fn the_accounting_says_who_took_a_job_away() {
    let of = |record, exit| Given { last: Some("RUNNING"), record: Some(record), exit, over_for: 2, ..Given::default() };
    let rows = [
        (
            of(("CANCELLED by 4999", (0, 15)), Some(143)),
            "over: gone deleted: CANCELLED: job 12 was cancelled by uid 4999 on n1 and 1 more",
        ),
        (
            of(("TIMEOUT", (0, 15)), Some(143)),
            "over: exit status 143 on n1+n2 at the limit run; TIMEOUT: Slurm's time limit of 6 min was reached on n1 and 1 more",
        ),
        (
            of(("FAILED", (0, 9)), None),
            "over: killed by signal 9 (SIGKILL) on n1+n2; signal 9 (SIGKILL) ended the script of job 12 on n1 and 1 more",
        ),
        (
            of(("FAILED", (0, 53)), None),
            "Infra: job 12 did not start on n1 and 1 more: is /stage on a file system that the node sees?",
        ),
        (of(("RUNNING", (0, 0)), None), "Ask"),
        // The controller has answered, since the accounting was late. It does not know who it was.
        (of(("CANCELLED", (0, 15)), None), "Ask"),
        (
            Given { over_for: 10, ..of(("CANCELLED", (0, 15)), None) },
            "over: gone deleted: CANCELLED: job 12 was cancelled on n1 and 1 more",
        ),
    ];
    for (given, expected) in rows {
        assert_eq!(line(&given), expected);
    }
    let by_controller = (row("CANCELLED"), record("CANCELLED", (0, 15)), exit(143), Handle::default());
    let cancelled = Facts {
        row: Some(&by_controller.0),
        record: Some(&by_controller.1),
        exit: Some(&by_controller.2),
        is_ending: true,
        ..facts(&by_controller.3)
    };
    assert!(matches!(judge(&cancelled), Verdict::Status(JobStatus::Gone { .. }, true)), "Muster has cancelled it itself");
    let first = FailedTask { what: "task 1 on n1: Exited with exit code 7".to_owned(), status: 7, others: vec![143] };
    let log_tail = LogTail { first_failed: Some(first), ..SILENT.clone() };
    let of_step =
        (row("FAILED"), record("FAILED", (143, 0)), exit(143), Handle { id: Some("12".to_owned()), ..Handle::default() });
    let failed = Facts {
        row: Some(&of_step.0),
        record: Some(&of_step.1),
        exit: Some(&of_step.2),
        log_tail: &log_tail,
        ..facts(&of_step.3)
    };
    let Verdict::Status(JobStatus::Ended(ending), true) = judge(&failed) else { panic!("an end") };
    assert_eq!(ending.exits[0].exit, Exit::Code(7), "the status of srun is that of the tasks that it has ended");
    assert_eq!(ending.notes, ["task 1 on n1: Exited with exit code 7; srun ended the other tasks"]);
    let segfault = exit(139);
    let JobStatus::Ended(other) = (match judge(&Facts { exit: Some(&segfault), ..failed }) {
        Verdict::Status(status, true) => status,
        verdict => panic!("{verdict:?}"),
    }) else {
        panic!("an end")
    };
    assert_eq!(other.exits[0].exit, Exit::Code(139), "srun has not ended a task so: it is the status of something else");
    let late = Given { over_for: 60, ..of(("FAILED", (7, 0)), None) };
    assert_eq!(line(&late), "over: exit status 7 on n1+n2its exit file did not come: the status is Slurm's");
}

#[test]
fn without_cgroups_the_log_says_that_memory_was_over() {
    let over_memory = Some(OverMemory { used: 465 << 20, allowed: 50 << 20 });
    let given = |listed, exit| Given { listed: Some(listed), exit, over_memory, ..Given::default() };
    let over = "OUT_OF_MEMORY on n1 and 1 more: used 465 MiB, and may use 50 MiB";
    let rows = [
        (given("FAILED", None), format!("over: killed by signal 9 (SIGKILL) on n1+n2; {over}")),
        (given("FAILED", Some(137)), format!("over: exit status 137 on n1+n2; {over}")),
        (given("COMPLETED", Some(137)), format!("over: exit status 137 on n1+n2; {over}")),
        // The script went on after a step of it was killed.
        (given("COMPLETED", Some(0)), "over: exit status 0 on n1+n2".to_owned()),
        (given("FAILED", Some(3)), "over: exit status 3 on n1+n2".to_owned()),
        (given("RUNNING", None), "running on n1+n2".to_owned()),
    ];
    for (given, expected) in rows {
        assert_eq!(line(&given), expected);
    }
    let vanished = Given { last: Some("RUNNING"), exit: Some(137), over_memory, over_for: 1, ..Given::default() };
    assert_eq!(line(&vanished), format!("over: exit status 137 on n1+n2; {over}"), "nobody has to be asked");
}

/// A program may end with 0 because it is told to end, before its script is told.
/// A job that is about to be preempted has some time: one that ends within it keeps the state of its script.
#[test]
fn of_a_job_that_is_cleaned_up_no_exit_file_is_waited_for() {
    let handle = Handle::default();
    let verdict = |word: &str, is_ending| {
        let row = row(word);
        judge(&Facts { row: Some(&row), is_ending, ..facts(&handle) })
    };
    assert_eq!(verdict("COMPLETED", false), Verdict::Same);
    for word in ["COMPLETED", "CANCELLED", "FAILED", "PREEMPTED"] {
        assert!(matches!(verdict(word, true), Verdict::Status(JobStatus::Gone { .. }, true)), "{word}");
    }
    for word in ["RUNNING", "COMPLETING", "PENDING"] {
        assert!(!matches!(verdict(word, true), Verdict::Status(_, true)), "{word}");
    }
}

#[test]
fn a_job_that_was_started_again_says_so() {
    let exit = ExitFile { restarts: 1, ..exit(0) };
    let (handle, row) = (Handle::default(), row("COMPLETED"));
    let verdict = judge(&Facts { row: Some(&row), exit: Some(&exit), ..facts(&handle) });
    let Verdict::Status(JobStatus::Ended(Ending { notes, .. }), true) = verdict else { panic!("{verdict:?}") };
    assert_eq!(notes, ["Slurm started the job again: log and status are those of its last start"]);
}

#[test]
fn a_job_that_slurm_may_run_again_is_waited_for() {
    let listed = |over_for| Given { listed: Some("PREEMPTED"), requeue: true, over_for, ..Given::default() };
    assert_eq!(line(&listed(5)), "Same");
    assert!(line(&listed(30)).starts_with("over: gone preempted"));
    let vanished = |over_for| Given { last: Some("NODE_FAIL"), requeue: true, over_for, age: 99, ..Given::default() };
    assert_eq!(line(&vanished(5)), "Same");
    assert!(line(&vanished(31)).starts_with("over: gone node"));
}

#[test]
fn times_of_a_cluster_whose_clock_is_behind_are_corrected() {
    let started_and_ended = |ahead: i64, doubtful: bool| {
        let launched = Some(Timestamp(DAY + ahead * 1_000_000));
        let handle = Handle { id: Some("12".to_owned()), launched, doubtful, ..Handle::default() };
        let (row, exit) = (row("COMPLETED"), exit(0));
        let verdict = judge(&Facts { row: Some(&row), last: Some(&row), exit: Some(&exit), ..facts(&handle) });
        let Verdict::Status(JobStatus::Ended(Ending { started, ended, .. }), true) = verdict else { panic!("{verdict:?}") };
        (started.0 - (DAY + 1), ended.0 - (DAY + 5))
    };
    let minutes = 600 * 1_000_000;
    let rows = [
        // Seconds that this clock is ahead of that of the cluster, and by how much the times move.
        ((0, false), 0),
        ((1, false), 0),
        ((601, false), minutes),
        // A request that took long looks like a clock that is ahead: nothing moves.
        ((-600, false), 0),
        ((601, true), 0),
    ];
    for ((ahead, doubtful), moved) in rows {
        assert_eq!(started_and_ended(ahead, doubtful), (moved, moved), "{ahead} s ahead");
    }
}

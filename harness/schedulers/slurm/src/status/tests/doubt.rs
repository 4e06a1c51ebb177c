//! Tests whether a status is that of a program which ran to its end: Slurm may have ended it.

use super::*;

#[test]
fn a_script_that_was_signalled_ends_as_slurm_says() {
    let said = |word: &str, status: i32, signalled: bool, minutes: i64, no_accounting: bool| {
        let ended = Some(Timestamp(2 * DAY - minutes * 60_000_000));
        let (exit, row) = (ExitFile { ended, signalled, ..exit(status) }, row(word));
        let handle = Handle::default();
        match judge(&Facts { row: Some(&row), exit: Some(&exit), accounting: !no_accounting, ..facts(&handle) }) {
            Verdict::Status(JobStatus::Running { has_ended: true, .. }, _) => "awaited".to_owned(),
            Verdict::Status(JobStatus::Ended(Ending { exits, .. }), _) => exits[0].exit.to_string(),
            Verdict::Status(JobStatus::Gone { why, .. }, _) => why.to_string(),
            other => format!("{other:?}"),
        }
    };
    let rows = [
        // The state that names the reason comes after the epilog.
        (said("COMPLETING", 143, true, 1, false), "awaited"),
        (said("COMPLETING", 137, false, 1, false), "awaited"),
        (said("COMPLETING", 0, true, 1, false), "awaited"),
        (said("COMPLETING", 143, true, 6, false), "deleted"),
        (said("COMPLETING", 137, false, 6, false), "exit status 137"),
        (said("PREEMPTED", 143, true, 1, false), "preempted"),
        (said("NODE_FAIL", 0, true, 1, false), "node"),
        (said("CANCELLED", 0, true, 1, true), "deleted"),
        (said("COMPLETED", 0, true, 1, false), "exit status 0"),
        (said("FAILED", 143, true, 1, false), "exit status 143"),
    ];
    for (said, expected) in rows {
        assert_eq!(said, expected);
    }
}

#[test]
fn a_script_that_was_signalled_does_not_pass_because_its_last_state_was_missed() {
    let handle = Handle { id: Some("12".to_owned()), ..Handle::default() };
    let vanished = |last: &str, signalled, accounting, over_for| {
        let (exit, last) = (ExitFile { signalled, ..exit(0) }, row(last));
        let facts = Facts { last: Some(&last), exit: Some(&exit), accounting, over_for, ..facts(&handle) };
        match judge(&facts) {
            Verdict::Status(JobStatus::Gone { cause, .. }, true) => cause,
            Verdict::Status(JobStatus::Ended(ending), true) => ending.exits[0].exit.to_string(),
            other => format!("{other:?}"),
        }
    };
    let unexplained = "a signal ended the script of job 12 on n1 and 1 more, and its last state was not seen";
    assert_eq!(vanished("COMPLETING", true, false, SECOND), unexplained);
    assert_eq!(vanished("COMPLETING", true, true, SECOND), "Ask");
    assert_eq!(vanished("COMPLETING", true, true, SECOND * 10), unexplained);
    assert_eq!(vanished("COMPLETED", true, false, SECOND), "exit status 0");
    assert_eq!(vanished("COMPLETING", false, false, SECOND), "exit status 0");
}

#[test]
fn a_status_counts_only_if_its_script_ended_long_before_the_job_was_taken_away() {
    let handle = Handle { id: Some("12".to_owned()), ..Handle::default() };
    let said = |word: &str, seconds: Option<i64>| {
        let (at, before) = (Timestamp(2 * DAY), seconds.map(|seconds| Timestamp(2 * DAY - seconds * 1_000_000)));
        let (row, exit) = (Row { ended: Some(at), ..row(word) }, ExitFile { ended: before, ..exit(0) });
        let facts = Facts { row: Some(&row), exit: Some(&exit), accounting: false, ..facts(&handle) };
        match judge(&facts) {
            Verdict::Status(JobStatus::Gone { why, .. }, true) => why.to_string(),
            Verdict::Status(JobStatus::Ended(Ending { exits, notes, .. }), true) => {
                format!("{}, {}", exits[0].exit, notes.concat())
            }
            other => format!("{other:?}"),
        }
    };
    let rows = [
        // Seconds from the end of the script to that of the job; below zero, the node's clock is ahead.
        ("CANCELLED", Some(0), "deleted"),
        ("CANCELLED", Some(29), "deleted"),
        ("CANCELLED", Some(-60), "deleted"),
        ("CANCELLED", None, "deleted"),
        ("CANCELLED", Some(30), "exit status 0, the job was cancelled after its script ended"),
        ("NODE_FAIL", Some(0), "node"),
        ("NODE_FAIL", Some(300), "exit status 0, a node was lost after its script ended"),
        // Slurm may have told it long before, and then ended it.
        ("PREEMPTED", Some(300), "preempted"),
    ];
    for (word, seconds, expected) in rows {
        assert_eq!(said(word, seconds), expected, "{word} {seconds:?}");
    }
    let (row, exit) = (Row { ended: None, ..row("CANCELLED") }, exit(0));
    let unknown = Facts { row: Some(&row), exit: Some(&exit), accounting: false, ..facts(&handle) };
    assert!(matches!(judge(&unknown), Verdict::Status(JobStatus::Gone { .. }, true)), "nobody knows when");
}

#[test]
fn while_an_epilogue_runs_the_accounting_is_asked_how_the_job_ended() {
    let handle = Handle { id: Some("12".to_owned()), ..Handle::default() };
    let (row, exit) = (row("COMPLETING"), ExitFile { ended: Some(Timestamp(2 * DAY)), ..exit(0) });
    let completing = |seconds, accounting, record: Option<&Record>, was_ended, minutes: i64| {
        let log_tail = LogTail { was_ended, ..SILENT.clone() };
        let now = Timestamp(2 * DAY + minutes * 60_000_000);
        let known = Facts { row: Some(&row), record, exit: Some(&exit), log_tail: &log_tail, accounting, now, ..facts(&handle) };
        match judge(&Facts { completing_for: SECOND * seconds, over_for: Duration::ZERO, ..known }) {
            Verdict::Status(JobStatus::Running { has_ended: true, .. }, false) => "awaited".to_owned(),
            Verdict::Status(JobStatus::Ended(Ending { exits, .. }), false) => exits[0].exit.to_string(),
            Verdict::Status(JobStatus::Gone { why, .. }, false) => why.to_string(),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(completing(9, true, None, false, 0), "awaited");
    assert_eq!(completing(10, true, None, false, 0), "Ask");
    assert_eq!(completing(99, false, None, false, 4), "awaited");
    assert_eq!(completing(10, true, Some(&record("COMPLETED", (0, 0))), false, 0), "exit status 0");
    assert_eq!(completing(10, true, Some(&record("CANCELLED by 0", (0, 15))), false, 0), "deleted");
    // The epilogue never ends, and nobody says more.
    assert_eq!(completing(999, false, None, false, 6), "exit status 0");
    assert_eq!(completing(999, false, None, true, 6), "deleted");
}

#[test]
fn of_a_job_that_slurm_has_told_to_end_the_controller_knows_whether_it_was_preempted() {
    let (handle, row, exit) = (Handle::default(), row("COMPLETED"), exit(0));
    let told = LogTail { was_ended: true, ..SILENT.clone() };
    let known = |record| Facts { row: Some(&row), record, exit: Some(&exit), log_tail: &told, ..facts(&handle) };
    assert_eq!(judge(&known(None)), Verdict::Ask);
    let preempted = record("PREEMPTED", (0, 0));
    let verdict = judge(&known(Some(&preempted)));
    assert!(matches!(verdict, Verdict::Status(JobStatus::Gone { why: Disruption::Preempted, .. }, true)), "{verdict:?}");
    // A step that the check itself has ended.
    let completed = record("COMPLETED", (0, 0));
    assert!(matches!(judge(&known(Some(&completed))), Verdict::Status(JobStatus::Ended(_), true)));
    assert!(matches!(judge(&Facts { over_for: WHO, ..known(None) }), Verdict::Status(JobStatus::Ended(_), true)));
}

#[test]
fn without_an_exit_file_a_log_that_grows_is_waited_for() {
    let (handle, row, record) = (Handle::default(), row("FAILED"), record("FAILED", (0, 9)));
    let killed = |log_still_for, over_for| {
        judge(&Facts { row: Some(&row), record: Some(&record), log_still_for, over_for, ..facts(&handle) })
    };
    assert_eq!(killed(SECOND, SECOND), Verdict::Same);
    assert!(matches!(killed(STILL, SECOND), Verdict::Status(JobStatus::Ended(_), true)));
    assert!(matches!(killed(SECOND, SECOND * 60), Verdict::Status(JobStatus::Ended(_), true)), "it grows for ever");
}

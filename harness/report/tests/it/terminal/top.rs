//! The view of a session that runs elsewhere: its lines at two sizes, as one line, as JSON, and its last words.

use insta::assert_snapshot;
use muster_core::{
    case::{CaseName, SessionId},
    live::{CaseProgress, CaseState, LiveCase},
    result::{Failure, Outcome, Quarantine, Session, SessionState},
};
use muster_report::{
    Paint,
    live::{Size, Top},
};
use muster_text::time::{Date, Timestamp};
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

const fn seconds(count: i64) -> Timestamp {
    Timestamp(1_767_596_592_000_000 + count * 1_000_000)
}

fn size(columns: usize, rows: usize) -> Size {
    Size { columns, rows, unicode: true }
}

fn case(check: &str, number: usize, partition: &str) -> LiveCase {
    let (check, partition) = (check.to_owned(), partition.to_owned());
    let display = format!("{check} %msg_size=1048576 %n={number}");
    let (system, environ) = ("eidf".to_owned(), "default".to_owned());
    LiveCase { name: CaseName { display, check, system, partition, environ, ..CaseName::default() }, ..LiveCase::default() }
}

fn in_state(case: LiveCase, state: CaseState, since: i64, note: Option<&str>, nodes: &[&str]) -> LiveCase {
    let (note, nodes) = (note.map(Into::into), nodes.iter().map(|node| (*node).to_owned()).collect());
    LiveCase { progress: CaseProgress { attempt: 1, state, since: seconds(since), note, nodes }, ..case }
}

fn ended(case: LiveCase, outcome: Outcome) -> LiveCase {
    LiveCase { outcome: Some(outcome), ..in_state(case, CaseState::Ended, 90, None, &["gpu-07"]) }
}

fn failed(case: LiveCase) -> LiveCase {
    let why = "pattern 'Max Write' was not found in what the job printed";
    LiveCase { cause: Some(why.to_owned()), ..ended(case, Outcome::Fail(Failure::Sanity)) }
}

fn session() -> Session {
    Session {
        id: SessionId("20260105T070312-3fa2".into()),
        started: seconds(0),
        system: "eidf".into(),
        user: "ada".into(),
        host: "login1".into(),
        num_cases: 61,
        ..Session::default()
    }
}

/// Sixty cases on two partitions: twelve are over, two badly; six run; twenty are pending for four reasons.
fn top() -> Top {
    let mut top = Top::new(session());
    for number in 0..40 {
        top.update(in_state(case("allreduce_bandwidth", number, "gpu-service"), CaseState::Waiting, 0, None, &[]));
    }
    for number in 0..12 {
        let case = case("allreduce_bandwidth", number, "gpu-service");
        top.update(if number % 6 == 5 { failed(case) } else { ended(case, Outcome::Pass) });
    }
    let nodes = ["gpu-17", "gpu-18", "gpu-19"];
    for number in 12..17 {
        let case = case("allreduce_bandwidth", number, "gpu-service");
        let note = (number == 14).then_some("sanity");
        top.update(in_state(case, CaseState::Running, 100 - i64::try_from(number).unwrap(), note, &nodes[..=(number % 3)]));
    }
    top.update(in_state(case("osu_latency", 1, "cpu"), CaseState::Running, 20, None, &[]));
    for number in 2..22 {
        let reasons =
            [Some("0/12 nodes have a free GPU"), Some("queue nightly is full"), None, Some("image pull"), Some("quota")];
        let reason = reasons[if number < 10 { 0 } else { number % 5 }];
        top.update(in_state(case("osu_latency", number, "cpu"), CaseState::Pending, 60, reason, &[]));
    }
    top
}

#[test]
fn a_view_of_eighty_columns() {
    assert_snapshot!(top().frame(seconds(200), SessionState::Running, size(80, 24), Paint::OFF).join("\n"), @"
    session 20260105T070312-3fa2 on eidf, by ada on login1: running, 3m20s
    FAIL allreduce_bandwidth %n=11 @gpu-service: pattern 'Max Write' was not found…
    FAIL allreduce_bandwidth %n=5 @gpu-service: pattern 'Max Write' was not found …
    ⠦ osu_latency %msg_size=1048576 %n=1 @cpu  running                           3m
    ⠦ allreduce_bandwidth %n=16 @gpu-service   running on gpu-17 and 1 more   1m56s
    ⠦ allreduce_bandwidth %n=15 @gpu-service   running on gpu-17              1m55s
    ⠦ allreduce_bandwidth %n=14 @gpu-service   sanity (gpu-17 and 2 more)     1m54s
    ⠦ allreduce_bandwidth %n=13 @gpu-service   running on gpu-17 and 1 more   1m53s
    ⠦ allreduce_bandwidth %n=12 @gpu-service   running on gpu-17              1m52s
    pending  11 0/12 nodes have a free GPU
    pending   3 queue nightly is full
    pending   2 image pull
    pending   4 for 2 other reasons
    nodes    3: gpu-17 5, gpu-18 3, gpu-19 1
    eidf:cpu          ▒░░░░░░░░  0/21  1 running  20 pending
    eidf:gpu-service  ███▒░░░░░  12/40  5 running  2 failed
    total             ██▒░░░░░░  12/61  6 running  20 pending  2 failed  23 waiting
    ");
}

#[test]
fn a_small_terminal_keeps_the_title_and_the_last_bar() {
    assert_snapshot!(top().frame(seconds(200), SessionState::Unknown, size(60, 6), Paint::OFF).join("\n"), @"
    session 20260105T070312-3fa2 on eidf, by ada on login1: un…
      … and 6 more running
    eidf:cpu          ▒░░░░░░░  0/21  1 running  20 pending
    eidf:gpu-service  ███▒░░░░  12/40  5 running  2 failed
    total             ██▒░░░░░  12/61  6 running  20 pending  …
    ");
    assert!(top().frame(seconds(200), SessionState::Running, size(20, 24), Paint::OFF).is_empty());
}

#[test]
fn one_line_and_the_last_words() {
    let mut top = top();
    let line = top.lines(seconds(200));
    top.update(failed(case("osu_latency", 1, "cpu")));
    let abandoned = top.end(seconds(200), SessionState::Interrupted, "muster attach 20260105 --db r.db");
    top.session(Session { ended: Some(seconds(300)), ..session() });
    let over = top.end(seconds(900), SessionState::Ended, "");
    top.session(Session { ended: Some(seconds(300)), interrupted: true, ..session() });
    let interrupted = top.end(seconds(900), SessionState::Ended, "");
    assert_snapshot!([line, abandoned, over, interrupted].concat(), @"
    FAIL allreduce_bandwidth %msg_size=1048576 %n=5 @eidf:gpu-service+default: pattern 'Max Write' was not found in what the job printed
    FAIL allreduce_bandwidth %msg_size=1048576 %n=11 @eidf:gpu-service+default: pattern 'Max Write' was not found in what the job printed
    3m20s  12/61  6 running  20 pending  2 failed  23 waiting  on 3 node(s)  longest: osu_latency %msg_size=1048576 %n=1 @eidf:cpu+default 3m  pending: 11 0/12 nodes have a free GPU
    FAIL osu_latency %msg_size=1048576 %n=1 @eidf:cpu+default: pattern 'Max Write' was not found in what the job printed
    session 20260105T070312-3fa2 was interrupted: its process is gone. 48 of 61 cases have no result; `muster attach 20260105 --db r.db` goes on with it
    session 20260105T070312-3fa2 has ended after 5m: 10 passed, 3 failed, 0 neither, of 61 cases
    session 20260105T070312-3fa2 was interrupted after 5m: 10 passed, 3 failed, 0 neither, of 61 cases
    ");
}

#[test]
fn one_object_for_a_program() {
    let mut top = Top::new(session());
    top.update(in_state(case("hpl", 1, "gpu-service"), CaseState::Running, 20, None, &["gpu-17"]));
    top.update(in_state(case("hpl", 2, "gpu-service"), CaseState::Pending, 30, Some("quota"), &[]));
    top.update(ended(case("hpl", 3, "gpu-service"), Outcome::Pass));
    top.update(failed(case("hpl", 4, "gpu-service")));
    assert_snapshot!(top.json(SessionState::Running).unwrap(), @r#"
    {
      "session": {
        "id": "20260105T070312-3fa2",
        "state": "running",
        "interrupted": false,
        "system": "eidf",
        "user": "ada",
        "host": "login1",
        "started": "2026-01-05T07:03:12.000000Z",
        "ended": null
      },
      "cases": {
        "total": 61,
        "waiting": 57,
        "pending": 1,
        "running": 1,
        "ended": 2,
        "passed": 1,
        "failed": 1,
        "other": 0
      },
      "running": [
        {
          "case": "hpl %msg_size=1048576 %n=1 @eidf:gpu-service+default",
          "attempt": 1,
          "since": "2026-01-05T07:03:32.000000Z",
          "note": null,
          "nodes": [
            "gpu-17"
          ]
        }
      ],
      "pending": [
        {
          "case": "hpl %msg_size=1048576 %n=2 @eidf:gpu-service+default",
          "attempt": 1,
          "since": "2026-01-05T07:03:42.000000Z",
          "note": "quota",
          "nodes": []
        }
      ],
      "failed": [
        {
          "case": "hpl %msg_size=1048576 %n=4 @eidf:gpu-service+default",
          "attempt": 1,
          "outcome": "fail{sanity}",
          "cause": "pattern 'Max Write' was not found in what the job printed"
        }
      ],
      "reasons": [
        {
          "reason": "quota",
          "cases": 1
        }
      ],
      "nodes": [
        {
          "node": "gpu-17",
          "cases": 1
        }
      ]
    }
    "#);
}

#[test]
fn a_case_is_counted_where_it_is_now() {
    let mut top = Top::new(Session { num_cases: 1, ..session() });
    let case = || case("hpl", 1, "gpu-service");
    let quarantine = Some(Quarantine { reason: "x".into(), until: Date::of(seconds(0)) });
    let fails = || Outcome::Fail(Failure::Sanity);
    let rows = [
        (in_state(case(), CaseState::Waiting, 1, None, &[]), "0/1  1 waiting"),
        (in_state(case(), CaseState::Pending, 2, None, &[]), "0/1  1 pending  pending: 1 launching"),
        (
            in_state(case(), CaseState::Running, 3, None, &[]),
            "0/1  1 running  longest: hpl %msg_size=1048576 %n=1 @eidf:gpu-service+default 7s",
        ),
        (ended(case(), fails()), "1/1  1 failed"),
        // It has a line of its own once.
        (ended(case(), fails()), "1/1  1 failed"),
        (in_state(case(), CaseState::Waiting, 5, None, &[]), "0/1  1 waiting"),
        (LiveCase { quarantine, ..ended(case(), fails()) }, "1/1"),
    ];
    let mut named = Vec::new();
    for (state, line) in rows {
        top.update(state);
        let lines = top.lines(seconds(10));
        let (failures, last) = lines.trim_end().rsplit_once('\n').unwrap_or(("", lines.trim_end()));
        assert_eq!(last, format!("10s  {line}"));
        named.push(failures.to_owned());
    }
    let failure = "FAIL hpl %msg_size=1048576 %n=1 @eidf:gpu-service+default";
    assert_eq!(named, ["", "", "", failure, "", "", ""]);
}

proptest! {
    #[test]
    fn no_line_is_wider_than_the_terminal(columns in 0..250_usize, rows in 0..80_usize, evil in "\\PC{0,30}", unicode: bool) {
        let mut top = top();
        top.session(Session { user: evil.clone(), ..session() });
        top.update(in_state(case(&evil, 3, &evil), CaseState::Running, 3, Some(&evil), &[&evil]));
        top.update(in_state(case(&evil, 4, &evil), CaseState::Pending, 3, Some(&evil), &[]));
        let lines = top.frame(seconds(200), SessionState::Running, Size { columns, rows, unicode }, Paint::OFF);
        prop_assert!(lines.len() < rows.max(1), "{lines:#?}");
        for line in &lines {
            prop_assert!(line.width() < columns.max(1), "{} of {columns}: {line}", line.width());
        }
    }
}

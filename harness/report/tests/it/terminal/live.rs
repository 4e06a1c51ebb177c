//! The live view: its lines at two widths, its limits, and that nothing in them is wider than the terminal.

use crate::sample::case;
use insta::assert_snapshot;
use muster_core::{
    case::CaseName,
    job::workload::Clock,
    result::{CaseResult, Failure, Outcome, Phase},
};
use muster_report::{
    Paint,
    live::{Board, Size},
};
use proptest::prelude::*;
use std::{sync::Arc, time::Duration};
use unicode_width::UnicodeWidthStr;

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn size(columns: usize, rows: usize) -> Size {
    Size { columns, rows, unicode: true }
}

fn name(check: &str, number: usize, partition: &str) -> Arc<CaseName> {
    let mut name = case(check, &[("n", &number.to_string())], Outcome::Pass, Phase::Sanity).name;
    name.partition = partition.into();
    Arc::new(name)
}

fn over(name: &CaseName, outcome: Outcome, cause: Option<&str>) -> CaseResult {
    let result = case(&name.check, &[], outcome, Phase::Sanity);
    CaseResult { name: name.clone(), cause: cause.map(Into::into), ..result }
}

/// Sixty cases on two partitions; twenty-two are over, three badly, six run.
fn board() -> Board {
    let mut board = Board::new(60, 0);
    let gpu: Vec<_> = (0..40).map(|n| name("nbody", n, "gpu-service")).collect();
    let cpu: Vec<_> = (0..20).map(|n| name("osu_latency", n, "cpu")).collect();
    board.planned(gpu.iter().chain(&cpu).map(Arc::as_ref));
    for (number, name) in gpu.iter().take(12).chain(cpu.iter().take(10)).enumerate() {
        board.begin(name, seconds(1));
        let bad = number % 8 == 7;
        let outcome = if bad { Outcome::Fail(Failure::Sanity) } else { Outcome::Pass };
        let cause = "pattern 'Max Write: .* MiB/sec' was not found in any of 2 sections\n\u{1b}[2J of the log";
        board.finish(&over(name, outcome, bad.then_some(cause)));
    }
    let limit = |clock, minutes| Some((clock, Some(Duration::from_mins(minutes))));
    for (number, name) in gpu.iter().skip(12).take(5).enumerate() {
        board.begin(name, seconds(20 + number as u64));
        board.phase(name, Phase::Run, Some("0/12 nodes have a free GPU"), limit(Clock::Pending, 120), seconds(30));
    }
    board.phase(&gpu[12], Phase::Run, Some("running on gpu-17"), limit(Clock::Run, 10), seconds(60));
    board.phase(&gpu[13], Phase::Run, Some("running on gpu-18 and 3 more"), limit(Clock::Run, 3), seconds(50));
    board.begin(&cpu[10], seconds(170));
    board.phase(&cpu[10], Phase::Sanity, None, None, seconds(171));
    board
}

#[test]
fn a_view_of_eighty_columns() {
    assert_snapshot!(board().frame(seconds(200), size(80, 24), Paint::OFF).join("\n"), @"
    FAIL nbody %n=7 @gpu-service+default: pattern 'Max Write: .* MiB/sec' was not …
    FAIL osu_latency %n=3 @cpu+default: pattern 'Max Write: .* MiB/sec' was not fo…
    ⠦ nbody %n=12 @gpu-service+default  running on gpu-17                 2m20s/10m
    ⠦ nbody %n=13 @gpu-service+default  running on gpu-18 and 3 more       2m30s/3m
    ⠦ nbody %n=14 @gpu-service+default  0/12 nodes have a free GPU         2m50s/2h
    ⠦ nbody %n=15 @gpu-service+default  0/12 nodes have a free GPU         2m50s/2h
    ⠦ nbody %n=16 @gpu-service+default  0/12 nodes have a free GPU         2m50s/2h
    ⠦ osu_latency %n=10 @cpu+default    sanity                                  30s
    slowest: nbody %n=0 @gpu-service 12s, nbody %n=1 @gpu-service 12s
    eidf:cpu          █████████▒░░░░░░░░░  10/20  1 running  1 failed
    eidf:gpu-service  ██████▒▒░░░░░░░░░░░  12/40  5 running  1 failed
    total             ███████▒░░░░░░░░░░░  22/60  6 running  2 failed  3m20s
    ");
}

#[test]
fn after_an_interrupt_nothing_says_that_it_still_runs() {
    let mut board = board();
    board.cancelled();
    let frame = board.frame(seconds(200), size(80, 24), Paint::OFF);
    let stopping = |line: &&String| line.starts_with('⠦');
    assert_eq!(frame.iter().filter(stopping).count(), 6);
    assert!(frame.iter().filter(stopping).all(|line| line.contains("stopping") && !line.contains('/')), "{frame:#?}");
}

#[test]
fn a_view_of_two_hundred_columns() {
    assert_snapshot!(board().frame(seconds(200), size(200, 50), Paint::OFF).join("\n"), @"
    FAIL nbody %n=7 @gpu-service+default: pattern 'Max Write: .* MiB/sec' was not found in any of 2 sections  of the log
    FAIL osu_latency %n=3 @cpu+default: pattern 'Max Write: .* MiB/sec' was not found in any of 2 sections  of the log
    ⠦ nbody %n=12 @gpu-service+default  running on gpu-17                                                          2m20s/10m
    ⠦ nbody %n=13 @gpu-service+default  running on gpu-18 and 3 more                                                2m30s/3m
    ⠦ nbody %n=14 @gpu-service+default  0/12 nodes have a free GPU                                                  2m50s/2h
    ⠦ nbody %n=15 @gpu-service+default  0/12 nodes have a free GPU                                                  2m50s/2h
    ⠦ nbody %n=16 @gpu-service+default  0/12 nodes have a free GPU                                                  2m50s/2h
    ⠦ osu_latency %n=10 @cpu+default    sanity                                                                           30s
    eidf:cpu          ████████████████████████▒▒░░░░░░░░░░░░░░░░░░░░░░  10/20  1 running  1 failed
    eidf:gpu-service  ██████████████▒▒▒▒▒▒░░░░░░░░░░░░░░░░░░░░░░░░░░░░  12/40  5 running  1 failed
    total             █████████████████▒▒▒▒▒░░░░░░░░░░░░░░░░░░░░░░░░░░  22/60  6 running  2 failed  3m20s  slowest: nbody %n=0 @gpu-service 12s, nbody %n=1 @gpu-service 12s, nbody %n=2 @gpu-service 12s
    ");
}

#[test]
fn a_small_terminal_keeps_the_last_bar() {
    assert_snapshot!(board().frame(seconds(200), size(60, 5), Paint::OFF).join("\n"), @"
      … and 6 more running
    total             ███▒░░░░  22/60  6 running  2 failed  3m…
    ");
    assert!(board().frame(seconds(200), size(20, 24), Paint::OFF).is_empty());
}

#[test]
fn without_unicode_it_is_ascii() {
    let size = Size { unicode: false, ..size(80, 14) };
    let text = board().frame(seconds(200), size, Paint::OFF).join("\n");
    assert!(text.is_ascii(), "{text}");
    assert_snapshot!(text, @"
    FAIL osu_latency %n=3 @cpu+default: pattern 'Max Write: .* MiB/sec' was not fo~
    | nbody %n=12 @gpu-service+default  running on gpu-17                 2m20s/10m
      ... and 5 more running
    slowest: nbody %n=0 @gpu-service 12s, nbody %n=1 @gpu-service 12s
    eidf:cpu          ########!+.........  10/20  1 running  1 failed
    eidf:gpu-service  #####!++...........  12/40  5 running  1 failed
    total             ######!+...........  22/60  6 running  2 failed  3m20s
    ");
}

#[test]
fn a_clock_runs_from_where_its_state_began_and_warns_before_its_end() {
    let mut board = Board::new(1, 0);
    let name = name("soak", 1, "cpu");
    board.begin(&name, seconds(0));
    let line = |board: &Board, at| board.frame(seconds(at), size(60, 24), Paint::ON).first().cloned().unwrap();
    board.phase(&name, Phase::Run, Some("queued"), Some((Clock::Pending, Some(seconds(100)))), seconds(2));
    assert!(line(&board, 12).ends_with("10s/1m40s"), "{}", line(&board, 12));
    board.phase(&name, Phase::Run, Some("still queued"), Some((Clock::Pending, Some(seconds(100)))), seconds(50));
    assert!(line(&board, 90).ends_with("\u{1b}[33m1m28s/1m40s\u{1b}[0m"), "{}", line(&board, 90));
    board.phase(&name, Phase::Run, Some("running"), Some((Clock::Run, Some(seconds(600)))), seconds(90));
    assert!(line(&board, 95).ends_with("5s/10m"), "{}", line(&board, 95));
    board.phase(&name, Phase::Sanity, None, None, seconds(100));
    assert!(line(&board, 101).ends_with("1m41s"), "{}", line(&board, 101));
}

#[test]
fn a_case_that_runs_shows_the_last_line_of_its_log_behind_where_it_runs() {
    let mut board = Board::new(1, 0);
    let name = name("soak", 1, "cpu");
    board.begin(&name, seconds(0));
    let line = |board: &Board| board.frame(seconds(9), size(80, 24), Paint::OFF).first().cloned().unwrap();
    board.says(&name, "before it runs");
    assert!(!line(&board).contains("before"), "{}", line(&board));
    board.phase(&name, Phase::Run, Some("running on n1"), None, seconds(1));
    board.says(&name, "step 1");
    board.says(&name, "step 2\u{1b}[2J");
    assert!(line(&board).contains("  running on n1: step 2  "), "{}", line(&board));
    board.says(&name, "pass\u{1b}[0mword=hunter2secret");
    assert!(line(&board).contains("  running on n1: password=***  "), "{}", line(&board));
    board.says(&name, &"長".repeat(9000));
    assert!(line(&board).contains(": 長") && line(&board).width() < 80, "{}", line(&board));
    board.phase(&name, Phase::Sanity, None, None, seconds(2));
    board.says(&name, "late");
    assert!(line(&board).contains("  sanity  "), "{}", line(&board));
}

#[test]
fn ten_thousand_cases_are_as_quick_to_draw_as_ten() {
    let mut board = Board::new(10_000, 0);
    let names: Vec<_> = (0..10_000).map(|n| name("x", n, "gpu-service")).collect();
    board.planned(names.iter().map(Arc::as_ref));
    for name in &names {
        board.begin(name, seconds(0));
    }
    let lines = board.frame(seconds(9), size(80, 24), Paint::OFF);
    assert_eq!(lines.len(), 12);
    assert!(lines[10].contains("and 9990 more running"), "{lines:#?}");
    for name in &names {
        board.finish(&over(name, Outcome::Pass, None));
    }
    assert_eq!(board.frame(seconds(9), size(80, 24), Paint::OFF).len(), 2, "the slowest, and one bar");
}

proptest! {
    #[test]
    fn no_line_is_wider_than_the_terminal(columns in 0..250_usize, rows in 0..80_usize, evil in "\\PC{0,30}", unicode: bool) {
        let mut board = board();
        let mut odd = (*name(&evil, 3, &evil)).clone();
        odd.hidden.clone_from(&evil);
        let odd = Arc::new(odd);
        board.planned([&*odd]);
        board.begin(&odd, seconds(3));
        board.phase(&odd, Phase::Run, Some(&evil), None, seconds(4));
        board.finish(&over(&name(&evil, 4, "cpu"), Outcome::Fail(Failure::Sanity), Some(&evil)));
        let lines = board.frame(seconds(200), Size { columns, rows, unicode }, Paint::OFF);
        prop_assert!(lines.len() <= (rows / 2).max(2), "{lines:#?}");
        for line in &lines {
            prop_assert!(line.width() < columns.max(1), "{} of {columns}: {line}", line.width());
        }
    }
}

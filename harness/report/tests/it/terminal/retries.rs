//! The retry report and the statistics of failures.

use crate::sample::{case, screen, session, with, with_only};
use insta::assert_snapshot;
use muster_core::result::{CaseResult, Counting, Failure, Outcome, Phase, Session};
use muster_report::{Results, retries, statistics};

#[test]
fn a_pass_after_a_failure_is_flaky_and_keeps_its_first_attempt() {
    assert_snapshot!(with(|results| retries::report(results, &screen(80))), @"
    ============================== SUMMARY OF RETRIES ==============================
    * smoke /04d588cb @eidf:gpu-service+default was retried 1 time(s) and passed (flaky)
        1. fail{workload} (16.8s): exit status 7
        2. pass (29.8s)
    ================================================================================
    ");
}

#[test]
fn without_retries_there_is_nothing_to_say() {
    assert_eq!(with_only(&["nbody"], |results| retries::report(results, &screen(80))), "");
}

#[test]
fn failures_are_counted_by_phase_place_node_and_cause() {
    let failed = |check: &str, node: &str, value: &str| CaseResult {
        nodes: vec![node.into()],
        cause: Some(format!("bandwidth: {value} GB/s, expected 12")),
        ..case(check, &[], Outcome::Fail(Failure::Performance), Phase::Performance)
    };
    let good =
        |check: &str, node: &str| CaseResult { nodes: vec![node.into()], ..case(check, &[], Outcome::Pass, Phase::Sanity) };
    let mut cases: Vec<_> = (0..4).map(|n| failed(&format!("bad{n}"), "gpu-18", &format!("{n}.25"))).collect();
    cases.push(failed("once", "gpu-17", "3"));
    cases.push(CaseResult { cause: None, ..case("mute", &[], Outcome::Fail(Failure::Sanity), Phase::Sanity) });
    cases.extend((0..5).map(|n| good(&format!("good{n}"), "gpu-17")));
    cases.push(case("absent", &[], Outcome::Skip, Phase::Plan));
    let session = Session { num_cases: 12, ..session() };
    assert_snapshot!(statistics::report(&Results::new(&session, &cases), &screen(80)), @"
    ============================== FAILURE STATISTICS ==============================
    6 of 11 cases failed

    phase        outcome            failed  cases
    ────────────────────────────────────────────────────────────────────
    sanity       fail{sanity}            1  mute
    performance  fail{performance}       5  bad0, bad1, bad2, bad3, once

    partition         failed  of  share
    ───────────────────────────────────
    eidf:gpu-service       6  11   54 %

    node    failed  of  share
    ─────────────────────────
    gpu-18       4   4  100 %
    gpu-17       1   6   16 %

    common cause                   failed
    ─────────────────────────────────────
    bandwidth: # GB/s, expected #       5
    ================================================================================
    ");
}

#[test]
fn a_session_that_was_run_again_in_any_case_has_no_retries() {
    let session = Session { counting: Counting::Every, ..session() };
    let cases = crate::sample::cases();
    assert_eq!(retries::report(&Results::new(&session, &cases), &screen(80)), "");
}

#[test]
fn without_failures_the_statistics_are_a_line() {
    assert_snapshot!(with_only(&["nbody"], |results| statistics::report(results, &screen(80))), @"
    ============================== FAILURE STATISTICS ==============================
    0 of 2 cases failed
    ================================================================================
    ");
}

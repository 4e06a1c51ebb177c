use super::*;
use crate::{
    case::SessionId,
    job::{outputs::Binding, scheduler::Disruption, workload::Clock},
    result::{About, Failure, Fault, Invalid, Phase, Quarantine, Times},
};
use muster_text::time::Date;
use std::{collections::HashMap, sync::Arc};

const FAIL: Outcome = Outcome::Fail(Failure::Sanity);
const EVICTED: Outcome = Outcome::Disrupted(Disruption::Evicted);

fn result(case: &str, attempt: u32, outcome: Outcome) -> CaseResult {
    let text = String::new;
    CaseResult {
        name: CaseName {
            display: case.to_owned(),
            check: text(),
            hash: text(),
            system: text(),
            partition: text(),
            environ: text(),
            hidden: text(),
        },
        about: About {
            descr: text(),
            tags: vec![],
            maintainers: vec![],
            file: text(),
            other_files: Vec::new(),
            parameters: vec![],
            scheduler: "fake".into(),
            num_tasks: 1,
            ..About::default()
        },
        identifier: None,
        attempt,
        outcome,
        phase: Phase::Run,
        cause: None,
        warnings: vec![],
        nodes: vec![],
        exits: vec![],
        measurements: vec![],
        times: Times::default(),
        folder: None,
        log_tail: None,
        look: vec![],
        delete: vec![],
        leftovers: vec![],
        flaky: false,
        quarantine: None,
        restored_from: None,
        outputs: None,
        ..CaseResult::default()
    }
}

fn on_disruption(on: OnDisruption, result: CaseResult) -> CaseResult {
    CaseResult { about: About { on_disruption: Some(on), ..result.about }, ..result }
}

fn quarantined(result: CaseResult) -> CaseResult {
    let until = Date::parse("2026-12-31").unwrap();
    CaseResult { quarantine: Some(Quarantine { reason: "ticket 1".into(), until }), ..result }
}

/// The names that run again after a round, or why the session is over.
fn after(policy: Policy, number: u32, results: &[CaseResult]) -> String {
    after_a_while(policy, number, Duration::ZERO, results)
}

fn after_a_while(policy: Policy, number: u32, elapsed: Duration, results: &[CaseResult]) -> String {
    let results: Vec<&CaseResult> = results.iter().collect();
    match next(policy, Round { number, results: &results, elapsed, cut_short: false }) {
        Next::Again(names) => {
            let attempt = |(name, attempt): (CaseName, u32)| {
                if attempt == number + 1 { name.display } else { format!("{} as {attempt}", name.display) }
            };
            names.into_iter().map(attempt).collect::<Vec<_>>().join(" ")
        }
        Next::Over(why) => format!("over{}", why.map_or_else(String::new, |why| format!(": {why}"))),
    }
}

fn retries(max: u32) -> Policy {
    Policy::Retry { max, threshold: Threshold::Percent(1000) }
}

#[test]
fn only_what_another_run_can_change_is_retried() {
    let rows = [
        (Outcome::Pass, false),
        (Outcome::Skip, false),
        (Outcome::Xfail, false),
        (Outcome::Stopped("enough".into()), false),
        (Outcome::Abort, false),
        (Outcome::Error(Fault::Config), false),
        (Outcome::Error(Fault::Infra), true),
        (FAIL, true),
        (Outcome::Fail(Failure::Performance), true),
        (Outcome::Fail(Failure::Workload), true),
        (Outcome::Xpass, true),
        (Outcome::Invalid(Invalid::Logs), true),
        (Outcome::Timeout(Clock::Run), true),
        (Outcome::Timeout(Clock::Pending), true),
        (EVICTED, true),
    ];
    for (outcome, again) in rows {
        let results = [result("a", 1, outcome.clone())];
        assert_eq!(after(retries(1), 1, &results), if again { "a" } else { "over" }, "{outcome}");
        assert_eq!(is_settled(retries(1), &results[0]), !again, "{outcome}");
        assert_eq!(after(retries(0), 1, &results), "over", "{outcome}");
    }
}

#[test]
fn retries_go_on_with_what_failed_last_and_end_at_their_number() {
    let mut results = vec![result("a", 1, FAIL), result("b", 1, Outcome::Pass), result("c", 1, FAIL)];
    assert_eq!(after(retries(2), 1, &results), "a c");
    results.extend([result("c", 2, FAIL), result("a", 2, Outcome::Pass)]);
    assert_eq!(after(retries(2), 2, &results), "c");
    results.push(result("c", 3, FAIL));
    assert_eq!(after(retries(2), 3, &results), "over");
}

#[test]
fn too_many_failures_of_the_first_round_are_not_retried() {
    let results = [result("a", 1, FAIL), result("b", 1, FAIL), result("c", 1, Outcome::Pass), result("d", 1, Outcome::Pass)];
    for (threshold, again) in [("2", true), ("1", false), ("50%", true), ("49%", false), ("0", false), ("1000%", true)] {
        let policy = Policy::Retry { max: 3, threshold: Threshold::parse(threshold).unwrap() };
        let decision = after(policy, 1, &results);
        assert_eq!(decision == "a b", again, "{threshold}: {decision}");
    }
    insta::assert_snapshot!(
        after(Policy::Retry { max: 1, threshold: Threshold::Percent(49) }, 1, &results),
        @"over: nothing is retried: 2 of 4 case(s) failed, more than --retries-threshold=49%"
    );
    // What is in quarantine says nothing of the system.
    let mut results = results.to_vec();
    results[0] = quarantined(results[0].clone());
    assert_eq!(after(Policy::Retry { max: 1, threshold: Threshold::Count(1) }, 1, &results), "a b");
}

#[test]
fn a_threshold_is_a_number_or_a_percentage() {
    for text in ["", "%", "many", "-1", "1.5", "10 %"] {
        assert!(Threshold::parse(text).is_err(), "{text}");
    }
    assert_eq!(Threshold::parse("15%").map(|threshold| threshold.to_string()), Ok("15%".into()));
}

#[test]
fn what_waited_in_vain_is_retried_with_what_it_waited_for() {
    let skipped = |case, by: &CaseResult| CaseResult { blocked_by: Some(by.name.to_string()), ..result(case, 1, Outcome::Skip) };
    let [failed, hopeless] = [result("a", 1, FAIL), result("b", 1, Outcome::Error(Fault::Config))];
    let results = [
        failed.clone(),
        hopeless.clone(),
        skipped("after a", &failed),
        skipped("after b", &hopeless),
        result("c", 1, Outcome::Skip),
    ];
    assert_eq!(after(retries(1), 1, &results), "a after a");
    assert_eq!(after(retries(0), 1, &results), "over");
}

#[test]
fn a_check_says_what_a_disruption_means() {
    let lost = |on, attempt| [on_disruption(on, result("a", attempt, EVICTED))];
    assert_eq!(after(retries(5), 1, &lost(OnDisruption::Fail, 1)), "over");
    for (number, again) in [(1, "a"), (2, "a"), (3, "over")] {
        assert_eq!(after(retries(0), number, &lost(OnDisruption::Retry, number)), again, "{number}");
    }
    assert_eq!(after(retries(5), 3, &lost(OnDisruption::Retry, 3)), "a");
    // It is about disruptions alone.
    assert_eq!(after(retries(0), 1, &[on_disruption(OnDisruption::Retry, result("a", 1, FAIL))]), "over");
}

#[test]
fn a_rerun_is_of_everything_whatever_came_of_it() {
    let results = [result("a", 1, FAIL), result("b", 1, Outcome::Pass), result("c", 1, Outcome::Error(Fault::Config))];
    assert_eq!(after(Policy::Rerun { times: 2 }, 2, &results), "a b c");
    assert_eq!(after(Policy::Rerun { times: 2 }, 3, &results), "over");
    let minute = Duration::from_mins(1);
    assert_eq!(after_a_while(Policy::Until(minute), 7, minute / 2, &results), "a b c");
    assert_eq!(after_a_while(Policy::Until(minute), 7, minute, &results), "over");
}

#[test]
fn nothing_follows_a_round_that_was_cut_short() {
    let failed = result("a", 1, FAIL);
    let round = Round { number: 1, results: &[&failed], elapsed: Duration::ZERO, cut_short: true };
    for policy in [retries(1), Policy::Rerun { times: 1 }, Policy::Until(Duration::from_mins(1))] {
        assert_eq!(next(policy, round), Next::Over(None));
    }
}

#[test]
fn a_pass_after_a_retry_is_flaky_and_a_pass_after_a_rerun_is_not() {
    let rows = [
        (Counting::Last, 1, Outcome::Pass, false),
        (Counting::Last, 2, Outcome::Pass, true),
        (Counting::Last, 2, Outcome::Xfail, true),
        (Counting::Last, 2, Outcome::Skip, false),
        (Counting::Last, 2, FAIL, false),
        (Counting::Every, 2, Outcome::Pass, false),
    ];
    for (counting, attempt, outcome, flaky) in rows {
        assert_eq!(is_flaky(counting, &result("a", attempt, outcome.clone())), flaky, "{counting:?} {attempt} {outcome}");
    }
}

fn session(counting: Counting) -> Session {
    Session {
        id: crate::case::SessionId("before".into()),
        started: muster_text::time::Timestamp(0),
        ended: None,
        command: vec![],
        system: String::new(),
        user: String::new(),
        host: String::new(),
        workdir: "/".into(),
        version: String::new(),
        num_cases: 1,
        interrupted: false,
        counting,
        extras: vec![],
        ..Session::default()
    }
}

#[test]
fn another_session_goes_on_where_an_earlier_one_ended() {
    let past = [
        result("passed", 1, Outcome::Pass),
        result("failed", 1, FAIL),
        result("flaky", 1, FAIL),
        result("flaky", 2, Outcome::Pass),
        result("aborted", 1, Outcome::Abort),
        result("elsewhere", 1, FAIL),
        result("elsewhere aborted", 1, Outcome::Abort),
    ];
    let selected = ["passed", "failed", "flaky", "aborted", "new"].map(|name| result(name, 1, Outcome::Pass).name);
    let selected: Vec<&CaseName> = selected.iter().collect();
    let killed = session(Counting::Last);
    let ended = Session { ended: Some(muster_text::time::Timestamp(1)), ..killed.clone() };
    let signalled = Session { interrupted: true, ..ended.clone() };
    let rows = [
        (&killed, false, "aborted new", "elsewhere failed flaky passed"),
        (&signalled, false, "aborted new", "elsewhere failed flaky passed"),
        (&killed, true, "aborted failed new", "elsewhere flaky passed"),
        (&ended, false, "aborted failed flaky new passed", "elsewhere"),
        (&ended, true, "aborted failed new", "elsewhere flaky passed"),
    ];
    for (before, failed, runs, kept) in rows {
        let restored = restore(&selected, before, &past, failed);
        let again: Vec<_> = restored.again.iter().map(|name| name.display.as_str()).collect();
        let results: Vec<_> = restored.results.iter().map(|result| result.name.display.as_str()).collect();
        assert_eq!((again.join(" ").as_str(), results.join(" ").as_str()), (runs, kept), "{before:?} {failed}");
        assert!(restored.results.iter().all(|result| result.attempt == 1 && result.restored_from == Some(before.id.clone())));
    }
}

#[test]
fn only_the_same_cases_of_the_same_system_of_the_last_twelve_hours_are_of_the_same_night() {
    let at = |hours: i64| muster_text::time::Timestamp(hours * 3_600_000_000);
    let now = Session { started: at(12), selection: "abc".into(), ..session(Counting::Last) };
    let past = Session { started: at(0), ..now.clone() };
    let rows = [
        (past.clone(), true),
        (Session { started: muster_text::time::Timestamp(-1), ..past.clone() }, false),
        (Session { selection: "abc+d".into(), ..past.clone() }, true),
        (Session { selection: "abd".into(), ..past.clone() }, false),
        (Session { system: "other".into(), ..past.clone() }, false),
        (Session { counting: Counting::Every, ..past.clone() }, false),
    ];
    for (past, same) in rows {
        assert_eq!(is_same_run(&past, &now), same, "{past:?}");
    }
    let unknown = Session { selection: String::new(), ..now };
    assert!(!is_same_run(&unknown, &unknown), "an older muster did not say which cases those were");
}

#[test]
fn a_process_that_takes_over_a_session_plans_the_same_second_round() {
    let results = [result("a", 1, FAIL), result("b", 1, FAIL), result("a", 2, Outcome::Pass)];
    assert_eq!(after(retries(1), 1, &results), "a b");
    assert_eq!(after(retries(1), 2, &results), "over");
}

#[test]
fn what_was_made_again_for_others_within_a_round_is_retried_like_any_case() {
    // The first attempt passed, and what it left is gone: another process may remember it or not.
    let failed = [result("a", 2, FAIL), result("b", 1, FAIL)];
    let remembered = [result("a", 1, Outcome::Pass), failed[0].clone(), failed[1].clone()];
    for results in [&failed[..], &remembered] {
        assert_eq!(after(retries(1), 1, results), "a as 3 b");
        let threshold = |count| Policy::Retry { max: 1, threshold: Threshold::Count(count) };
        assert_eq!(after(threshold(2), 1, results), "a as 3 b");
        assert!(after(threshold(1), 1, results).contains("2 of 2 case(s) failed"));
        let again = [results, &[result("a", 3, FAIL), result("b", 2, Outcome::Pass)]].concat();
        assert_eq!(after(retries(1), 1, &again), "a as 3 b");
        assert_eq!(after(retries(1), 2, &again), "over");
        assert_eq!(after(retries(2), 2, &again), "a as 4");
    }
}

#[test]
fn the_exit_code_is_that_of_what_counts() {
    let rows = [
        (Counting::Last, vec![result("a", 1, FAIL), result("a", 2, Outcome::Pass)], 0),
        (Counting::Every, vec![result("a", 1, FAIL), result("a", 2, Outcome::Pass)], 1),
        (Counting::Last, vec![result("a", 2, FAIL), result("a", 1, Outcome::Pass)], 1),
        (Counting::Last, vec![quarantined(result("a", 1, FAIL)), result("b", 1, Outcome::Pass)], 0),
        (Counting::Last, vec![quarantined(result("a", 1, FAIL)), result("b", 1, EVICTED)], 3),
        (Counting::Last, vec![result("a", 1, Outcome::Skip), result("b", 1, Outcome::Skip)], 3),
        (Counting::Last, vec![result("a", 1, Outcome::Skip), quarantined(result("b", 1, FAIL))], 0),
        (Counting::Last, vec![result("a", 1, Outcome::Skip), restored("b", Outcome::Pass)], 0),
        // A fixture ran for the one that was skipped.
        (Counting::Last, vec![result("a", 1, Outcome::Skip), result("b ~s", 1, Outcome::Pass)], 3),
        (
            Counting::Last,
            vec![result("a %x=~s", 1, Outcome::Pass), result("b ~s", 1, Outcome::Pass), result("c", 1, Outcome::Skip)],
            0,
        ),
        (Counting::Last, vec![result("a", 1, Outcome::Skip), result("b ~s", 1, FAIL)], 1),
        (Counting::Last, vec![result("a", 1, Outcome::Skip), restored("b", Outcome::Skip)], 3),
        (Counting::Every, vec![result("a", 1, Outcome::Skip), result("a", 2, Outcome::Skip)], 3),
    ];
    for (counting, results, code) in rows {
        assert_eq!(end(&session(counting), &results, &Dropped::default()).0, code, "{counting:?} {results:?}");
    }
    let strict = Session { fail_on_skip: true, ..session(Counting::Last) };
    let results = [result("a", 1, Outcome::Skip), result("b", 1, Outcome::Pass)];
    assert_eq!(end(&strict, &results, &Dropped::default()), (3, Skips::Refused));
}

fn restored(case: &str, outcome: Outcome) -> CaseResult {
    CaseResult { restored_from: Some(SessionId("earlier".into())), ..result(case, 1, outcome) }
}

fn need(check: &str) -> Need {
    let case = CaseName {
        display: check.into(),
        check: check.into(),
        hash: "0".into(),
        system: "s".into(),
        partition: "p".into(),
        environ: "e".into(),
        hidden: String::new(),
    };
    Need { case: Arc::new(case), binding: Binding::Check(check.into()), is_one_of_many: false }
}

#[test]
fn what_is_gone_runs_again_with_what_it_needs_and_what_is_there_does_not() {
    let wanted = [need("a"), need("a")];
    // a needs b and c, b needs d, c needs e.
    let needs = HashMap::from([("a", vec![need("b"), need("c")]), ("b", vec![need("d")]), ("c", vec![need("e")])]);
    let needs_of = |name: &CaseName| needs.get(&*name.check).map(Vec::as_slice).unwrap_or_default();
    let rows: [(&[&str], &[&str]); 4] = [
        (&[], &[]),
        (&["a", "b", "d"], &["a", "b", "d"]),
        // No case that runs needs `d` or `e`.
        (&["a", "d", "e"], &["a"]),
        (&["b", "c", "d", "e"], &[]),
    ];
    for (gone, expected) in rows {
        let again = needed_again(&wanted, needs_of, |name| gone.contains(&&*name.check));
        assert_eq!(again.iter().map(|name| &*name.check).collect::<Vec<_>>(), expected, "{gone:?}");
    }
}

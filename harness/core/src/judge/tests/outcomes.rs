use super::*;
use crate::result::{Outcome, Phase};

/// Plain variables `p`, `q` and marked ones `x`, `y`, all expected to be 100.
fn marked() -> Rules {
    let mut rules =
        perf(["p", "q", "x", "y"].map(|name| PerfVariable { optional: true, ..first(name, &format!("{name}=(.*)")) }));
    rules.references = ["p", "q", "x", "y"].map(|name| row(name, 100.0, -0.1, 0.1)).into();
    for reference in &mut rules.references[2..] {
        reference.reference.xfail = Some("firmware bug 12".into());
    }
    rules
}

#[test]
fn outcomes_follow_reframes_order() {
    // 100 meets a reference, 1 misses it.
    let rows = [
        ("p=100 q=100", "pass", "pass"),
        ("p=1 q=100", "fail{performance}", "pass"),
        ("p=100 x=1", "xfail", "xfail"),
        ("p=100 x=100", "xpass", "xpass"),
        ("p=100 x=1 y=100", "xpass", "xpass"),
        ("p=100 x=1 y=1", "xfail", "xfail"),
        ("p=1 x=100", "fail{performance}", "xpass"),
        ("p=1 x=1", "fail{performance}", "xfail"),
        ("p=1 x=1 y=100", "fail{performance}", "xpass"),
        ("p=nan", "fail{performance}", "pass"),
        ("x=nan", "xfail", "xfail"),
    ];
    for (text, strict, lenient) in rows {
        for (is_strict, expected) in [(true, strict), (false, lenient)] {
            let rules = Rules { strict: is_strict, ..marked() };
            let judgement = judge_text(&rules, &text.replace(' ', "\n"));
            assert_eq!(judgement.outcome.to_string(), expected, "{text}, strict: {is_strict}");
            assert_eq!(judgement.phase, Phase::Performance);
        }
    }
}

#[test]
fn reasons_stand_in_the_cause() {
    let judged = |text: &str| say(&judge_text(&marked(), text));
    insta::assert_snapshot!(judged("x=1\n"), @"xfail: missed reference(s) as expected: x=1 GB/s, expected 100 (l=90, u=110): firmware bug 12");
    insta::assert_snapshot!(judged("x=100\ny=1\n"), @"xpass: met reference(s) that it was expected to miss: x=100 GB/s, expected 100 (l=90, u=110): firmware bug 12");
    let lenient = Rules { strict: false, ..marked() };
    insta::assert_snapshot!(say(&judge_text(&lenient, "p=1\nq=2\n")), @"
    pass
    warning: failed to meet reference(s): p=1 GB/s, expected 100 (l=90, u=110); q=2 GB/s, expected 100 (l=90, u=110) (not strict)
    ");
}

#[test]
fn an_expected_failure_of_the_case_turns_failure_and_success_round() {
    let rules =
        |items: Vec<Assertion>, reason: Option<&str>| Rules { sanity: items, xfail: reason.map(str::to_owned), ..marked() };
    let judged = |items, exit, text: &str| {
        let judgement = judge(&rules(items, Some("issue 5")), &Stdout::of(text), &ended(exit));
        format!("{} in {}", say(&judgement), judgement.phase.as_str())
    };
    insta::assert_snapshot!(judged(vec![found("z")], Exit::Code(0), "p=100"), @"xfail: failed as expected: issue 5 (`z` not found) in sanity");
    insta::assert_snapshot!(judged(vec![], Exit::Code(2), "p=100"), @"xfail: failed as expected: issue 5 (exit status 2) in run");
    insta::assert_snapshot!(judged(vec![], Exit::Code(0), "p=1"), @"xfail: failed as expected: issue 5 (failed to meet reference(s): p=1 GB/s, expected 100 (l=90, u=110)) in performance");
    insta::assert_snapshot!(judged(vec![], Exit::Code(0), "p=100"), @"xpass: passed, though a failure was expected: issue 5 in performance");
    // What cannot be judged did not fail, and a reference that is marked itself keeps its own words.
    insta::assert_snapshot!(judged(vec![], Exit::Code(0), "p=abc"), @"invalid{metrics}: `p`: `abc` is not a number in performance");
    insta::assert_snapshot!(judged(vec![], Exit::Code(0), "x=1"), @"xfail: missed reference(s) as expected: x=1 GB/s, expected 100 (l=90, u=110): firmware bug 12 in performance");
    insta::assert_snapshot!(judged(vec![], Exit::Code(0), "x=100"), @"xpass: met reference(s) that it was expected to miss: x=100 GB/s, expected 100 (l=90, u=110): firmware bug 12 in performance");
}

#[test]
fn a_lack_outweighs_a_miss_and_both_are_told() {
    let mut rules = marked();
    rules.perf_variables[1].optional = false;
    rules.perf_variables[2].optional = false;
    insta::assert_snapshot!(say(&judge_text(&rules, "p=1\ny=1\n")), @"invalid{metrics}: nothing found for `q`; nothing found for `x`; failed to meet reference(s): p=1 GB/s, expected 100 (l=90, u=110)");
}

#[test]
fn a_gap_in_the_log_leaves_nothing_to_rely_on_but_everything_is_said() {
    let with_gap = |log: &str| {
        let stdout = pods(&[("pod-a", "node01", "fine\n"), ("pod-b", "node02", log)]);
        let mut sections = stdout.sections().to_vec();
        sections[1].gaps = vec!["the connection was lost for 5 s".into()];
        Stdout::new(std::sync::Arc::new(stdout.bytes().to_vec()), sections)
    };
    let judged = |items: Vec<Assertion>, exit, log: &str| {
        let rules = Rules { sanity: items, ..marked() };
        let judgement = judge(&rules, &with_gap(log), &ended(exit));
        format!("{}, {} figures", say(&judgement), judgement.measurements.len())
    };
    insta::assert_snapshot!(judged(vec![], Exit::Code(0), "p=100\n"), @"invalid{logs}: the log of pod-b has a gap: the connection was lost for 5 s, 1 figures");
    insta::assert_snapshot!(judged(vec![], Exit::Code(0), "p=1\nq=100\n"), @"invalid{logs}: the log of pod-b has a gap: the connection was lost for 5 s; failed to meet reference(s): p=1 GB/s, expected 100 (l=90, u=110), 2 figures");
    insta::assert_snapshot!(judged(vec![found("z")], Exit::Code(0), "p=1\n"), @"invalid{logs}: the log of pod-b has a gap: the connection was lost for 5 s; sanity: `z` not found, 0 figures");
    insta::assert_snapshot!(judged(vec![found("z")], Exit::Code(7), "p=1\n"), @"invalid{logs}: the log of pod-b has a gap: the connection was lost for 5 s; exit status 7; sanity: `z` not found, 0 figures");
}

#[test]
fn a_pass_was_decided_where_judging_ended() {
    assert_eq!(judge_text(&sanity([found("a")]), "a").phase, Phase::Sanity);
    let judgement = judge_text(&perf([first("a", "a=(.*)")]), "a=1");
    assert_eq!((judgement.outcome, judgement.phase, judgement.cause), (Outcome::Pass, Phase::Performance, None));
}

use super::*;
use crate::{
    result::{Fault, Outcome, Phase},
    rules::sanity::ExitRule,
};
use std::cell::Cell;

#[test]
fn sanity_items_hold_or_say_why_not() {
    let log = "step 1\nstep 2\nerr = 5\n\nResult: OK\n";
    let with_msg = Assertion { msg: Some("the solver diverged".into()), ..found("converged") };
    let rows = [
        vec![],
        vec![found("^Result: OK$"), not_found("CUDA error"), count("^step", 2)],
        vec![found(r"step 2\nerr")],
        vec![count("nothing", 0)],
        vec![found("FAILED")],
        vec![not_found("err = .")],
        vec![not_found(r"1\s+step")],
        vec![count("^step", 3)],
        vec![count("OK", 2)],
        vec![with_msg],
        vec![not_found("step 2"), found("Result"), found("x"), found("y"), count("^", 1), found("z")],
    ];
    let sentences: Vec<_> = rows.into_iter().map(|items| say(&judge_text(&sanity(items), log))).collect();
    insta::assert_snapshot!(sentences.join("\n"), @r"
    pass
    pass
    pass
    pass
    fail{sanity}: `FAILED` not found
    fail{sanity}: `err = .` found in line 3: `err = 5`
    fail{sanity}: `1\s+step` found in line 1: `step 1`
    fail{sanity}: `^step` found 2 times, expected 3
    fail{sanity}: `OK` found once, expected 2
    fail{sanity}: the solver diverged (`converged` not found)
    fail{sanity}: `step 2` found in line 2: `step 2`; `x` not found; `y` not found; and 2 more
    ");
}

#[test]
fn what_must_not_be_there_is_told_with_its_place() {
    let stdout = pods(&[
        ("pod-a", "node01", "fine\nfine\n"),
        ("pod-b", "node02", "fine\n\n  Xid 79: the GPU \x1b[1mfell\x1b[0m off the bus\r\nfine\nXid 80\n"),
    ]);
    insta::assert_snapshot!(say(&judge_stdout(&sanity([not_found("Xid")]), &stdout)), @r"fail{sanity}: `Xid` found in pod-b on node02, line 3: `Xid 79: the GPU \u{1b}[1mfell\u{1b}[0m off the bus`");
    insta::assert_snapshot!(say(&judge_stdout(&sanity([not_found(r"(?s)fine.{1,5}Xid")]), &stdout)), @"fail{sanity}: `(?s)fine.{1,5}Xid` found in pod-b on node02, line 1: `fine`");
    let long = format!("{}error{}", "x".repeat(9000), "y".repeat(500));
    insta::assert_snapshot!(say(&judge_text(&sanity([not_found("error")]), &long)), @"fail{sanity}: `error` found in line 1: `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxerroryyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy...`");
}

#[test]
fn a_match_never_spans_two_sections() {
    let stdout = pods(&[("a", "n", "begin\n"), ("b", "n", "end\n")]);
    let rules = |item| sanity([item]);
    assert_eq!(judge_stdout(&rules(found(r"begin[\s\S]*end")), &stdout).outcome.to_string(), "fail{sanity}");
    assert_eq!(judge_stdout(&rules(count(r"\A", 2)), &stdout).outcome, Outcome::Pass);
    assert_eq!(judge_stdout(&rules(count("^(begin|end)$", 2)), &stdout).outcome, Outcome::Pass);
}

#[test]
fn the_exit_status_comes_first_and_sanity_enriches_it() {
    let say = |items: Vec<Assertion>, exit| say(&judge(&sanity(items), &Stdout::of("log\n"), &ended(exit)));
    insta::assert_snapshot!(say(vec![found("log")], Exit::Code(7)), @"fail{workload}: exit status 7");
    insta::assert_snapshot!(say(vec![found("x"), found("y")], Exit::Signal(9)), @"fail{workload}: killed by signal 9 (SIGKILL); sanity: `x` not found; `y` not found");
    let killed = item(Claim::Exit(ExitRule::OneOf(vec![137])));
    insta::assert_snapshot!(say(vec![found("log"), killed.clone()], Exit::Signal(9)), @"pass");
    insta::assert_snapshot!(say(vec![found("x"), killed], Exit::Code(137)), @"fail{sanity}: `x` not found");
}

#[test]
fn a_bad_exit_status_hides_the_figures() {
    let rules = perf([first("a", "a=(.*)")]);
    let judgement = judge(&rules, &Stdout::of("a=1\n"), &ended(Exit::Code(1)));
    assert_eq!((judgement.outcome.to_string().as_str(), judgement.phase), ("fail{workload}", Phase::Run));
    assert!(judgement.measurements.is_empty());
}

#[test]
fn a_pattern_that_a_placeholder_broke_is_an_error_of_the_check() {
    let judgement = judge_text(&sanity([found("(open")]), "log");
    assert_eq!((&judgement.outcome, judgement.phase), (&Outcome::Error(Fault::Config), Phase::Sanity));
    insta::assert_snapshot!(say(&judgement), @"error{config}: pattern `(open`: unclosed group");
    let mut broken = first("a", "a");
    broken.source = Source::Pattern { pattern: "(a)".into(), tag: Some("2".into()), pick: Pick::Item(0) };
    let judgement = judge_text(&perf([broken]), "log");
    assert_eq!(judgement.phase, Phase::Performance);
    insta::assert_snapshot!(say(&judgement), @"error{config}: pattern `(a)`: the pattern has no group `2`");
}

#[test]
fn judging_that_takes_too_long_is_an_error_that_names_the_pattern() {
    let rules = Rules { perf_variables: vec![first("a", "never (.)")], ..sanity([found("not there")]) };
    let stdout = pods(&[("pod-a", "n", &"line\n".repeat(100)), ("pod-b", "n", "x")]);
    let stopped = |rules: &Rules, when: usize| {
        let (reported, left) = (Cell::new(Position::Rules), Cell::new(when));
        let at = |at| match left.get().checked_sub(1) {
            Some(fewer) => left.set(fewer),
            None => reported.set(if reported.get() == Position::Rules { at } else { reported.get() }),
        };
        super::super::judge(rules, &stdout, &ended(Exit::Code(0)), &Monitor { report: &at, ..Monitor::default() });
        reported.get().too_long(rules, stdout.sections())
    };
    // Both patterns are compiled first.
    let first = stopped(&rules, 2);
    assert_eq!((&first.outcome, first.phase), (&Outcome::Error(Fault::Config), Phase::Sanity));
    insta::assert_snapshot!(say(&first), @"error{config}: judging took longer than judge_limit: it was searching pod-a for `not there`");
    let slow = sanity([item(Claim::Assert { expression: "true".into() })]);
    insta::assert_snapshot!(say(&stopped(&slow, 0)), @"error{config}: judging took longer than judge_limit: it was evaluating `true`");
    assert_eq!(stopped(&rules, 5).phase, Phase::Performance);
    insta::assert_snapshot!(say(&stopped(&rules, 5)), @"error{config}: judging took longer than judge_limit: it was searching pod-b for `never (.)`, for `a`");
}

#[test]
fn an_assert_sees_the_text_the_facts_and_the_figures() {
    let log = "err = 1e-9\nerr = 3e-7\nranks 4\nnan nan\n";
    let mut rules = perf([
        variable("ranks", r"ranks (\d+)", "", Pick::Item(0)),
        variable("err", r"^(?<key>err) = (\S+)", "", Pick::Reduce(Reduce::Max)),
        variable("gone", r"gone (\d+)", "", Pick::Item(0)),
    ]);
    rules.perf_variables[2].optional = true;
    rules.facts.insert("num_tasks".into(), 4.into());
    rules.facts.insert("partition".into(), serde_json::json!({ "name": "gpu", "extras": { "cores": 128 } }));
    let mut sentences = Vec::new();
    for expression in [
        "max(extractall(r'err = ([0-9.e-]+)')) < 1e-6",
        "count('^err') / 2 == 1",
        "perf['ranks'] == num_tasks && partition.extras.cores / 3 > 42.5",
        "perf['err[err]'] > 2e-7",
        "max(extractall(r'err = ([0-9.e-]+)')) < 1e-8",
        "count('^err') == 2 && extractsingle('ranks (.)') == '3'",
        "perf['gone'] > 1",
        "extractall(r'err = ([0-9.e-]+)')[7] > 0",
        "perf['ranks']",
        "nope == 1",
        "1 +",
    ] {
        rules.sanity = vec![item(Claim::Assert { expression: expression.into() })];
        sentences.push(say(&judge_text(&rules, log)));
    }
    insta::assert_snapshot!(sentences.join("\n"), @r#"
    pass
    pass
    pass
    pass
    fail{sanity}: `max(extractall(r'err = ([0-9.e-]+)')) < 1e-8` is false: 3e-7 < 1e-8
    fail{sanity}: `count('^err') == 2 && extractsingle('ranks (.)') == '3'` is false: "4" == "3" in `extractsingle('ranks (.)') == '3'`
    fail{sanity}: `perf['gone'] > 1`: there is no key `gone` here
    fail{sanity}: `extractall(r'err = ([0-9.e-]+)')[7] > 0`: the list has no element 7
    fail{sanity}: `perf['ranks']`: the result is a double, not true or false
    fail{sanity}: `nope == 1`: there is no `nope` here
    fail{sanity}: `1 +`: the expression ends too early
    "#);
}

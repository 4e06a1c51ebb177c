//! A carriage return ends a line: a log is judged as the text in which `\r\n` and every other `\r` are `\n`.

use super::*;
use crate::job::{
    outputs::read_outputs,
    stdout::{Files, Section},
};
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc};

fn assert(expression: &str) -> Assertion {
    item(Claim::Assert { expression: expression.into() })
}

#[test]
fn a_pattern_meets_no_carriage_return() {
    let seen = "Loading 100%\rERROR: device lost\ntest FAILED\r\n";
    let rows = [
        (seen, not_found("FAILED$"), "fail{sanity}: `FAILED$` found in line 3: `test FAILED`"),
        (seen, not_found("^ERROR"), "fail{sanity}: `^ERROR` found in line 2: `ERROR: device lost`"),
        (seen, found("^test FAILED$"), "pass"),
        (seen, found(r"\r"), r"fail{sanity}: `\r` not found"),
        ("a\r\nb", found(r"a\nb"), "pass"),
        ("a\rb", found(r"a\nb"), "pass"),
        ("a\r\nb", found(r"a\n\nb"), r"fail{sanity}: `a\n\nb` not found"),
        ("a\r\n\r\n\r\rb\r\n", count("^$", 4), "pass"),
        ("a\r\n\r\n\r\rb\r\n", count(r"[^\n]+", 2), "pass"),
        ("a\r\n\r\n\r\rb\r\n", count(r"\s", 5), "pass"),
        ("a\r\nb\r\n", count("", 5), "pass"),
        ("v 3.10\r\nend\r\n", assert(r"extractsingle(r'v (.*)$') == extractsingle(r'v (\S+)')"), "pass"),
        ("v x\r\nend\r\n", assert(r"extractsingle(r'v (.*)$') == 'x' && extractsingle(r'(x\s+e)') == 'x\ne'"), "pass"),
        ("a\r\nb\rc", assert(r"findall(r'(?s).+')[0][0] == 'a\nb\nc' && sections('*')[0] == 'a\nb\nc'"), "pass"),
        ("a\r\nb\rc", assert(r"count(r'^.$') == 3 && count(r'\n') == 2 && extractall('(.)$') == ['a', 'b', 'c']"), "pass"),
    ];
    for (log, item, expected) in rows {
        assert_eq!(say(&judge_text(&sanity([item.clone()]), log)), expected, "{item:?} in {log:?}");
    }
}

#[test]
fn figures_outputs_and_files_meet_none_either() {
    let log = "rate 7\r\nrate 8\rrate n/a\r\n<k\rq> 5\r\n";
    let figures = |text: &str, pattern: &str, pick| {
        let judgement = judge_text(&perf([variable("x", pattern, "", pick)]), text);
        judgement.measurements.iter().map(|found| format!("{} {}", found.label(), found.value)).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(figures(log, r"rate (\d+)$", Pick::Reduce(Reduce::Sum)), "x 15");
    assert_eq!(figures(log, r"rate (.*)$", Pick::Item(1)), "x 8");
    assert_eq!(figures(log, r"<(?<key>[^>]+)> (?<value>\S+)$", Pick::Item(0)), "x[k\nq] 5");
    let unusable = judge_text(&perf([variable("x", "rate (n.*)$", "", Pick::Item(0))]), log);
    assert_eq!(say(&unusable), "invalid{metrics}: `x`: `n/a` is not a number");

    let wanted = BTreeMap::from([("dir".to_owned(), "DIR=(?s)(.*?)END".to_owned())]);
    let outputs = read_outputs(&wanted, &Stdout::of("DIR=/a\r\n/b\rEND\r\n"), &|_| {}).unwrap();
    assert_eq!(outputs["dir"], "/a\n/b");

    let text = b"log\na\r\nb\r\n";
    let file = Section { is_file: true, ..Section::new(SectionOrigin::new("x.txt"), 4, 6) };
    let stdout = Stdout::new(Arc::new(text.to_vec()), [Section::new(SectionOrigin::new("stdout"), 0, 4)]);
    let stdout = stdout.with_files(Files { sections: vec![file], unread: Vec::new() });
    let rules = sanity([Assertion { file: Some("*.txt".into()), ..not_found(r"a\nb$") }]);
    assert_eq!(say(&judge_stdout(&rules, &stdout)), r"fail{sanity}: `a\nb$` found in x.txt, line 1: `a`");
}

#[test]
fn the_end_of_a_section_ends_its_line() {
    let stdout = pods(&[("one", "n1", "a\r"), ("two", "n2", "\nb")]);
    assert_eq!(
        say(&judge_stdout(&sanity([count(r"\n", 2), count("^$", 2), not_found("b")]), &stdout)),
        "fail{sanity}: `b` found in two on n2, line 2: `b`"
    );
}

fn pattern() -> impl Strategy<Value = String> {
    let pieces = r"a 1 . ^ $ \s \n [^\n] [^a] \b \B (.*) (\S+) (\d+) (?s:.) \s* b? | \r? (?<key>\w+\s) [\s\S]*? \z \A";
    prop::collection::vec(prop::sample::select(pieces.split(' ').collect::<Vec<_>>()), 0..5).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_log_is_judged_as_its_text_with_newlines(
        patterns in prop::collection::vec(pattern(), 2),
        log in prop::collection::vec(prop::sample::select(vec!["a", "b", "1", " 2", "\n", "\r", "\r\n", "é", "aé 1"]), 0..30),
        size in 1_usize..24,
    ) {
        let log = log.concat();
        let quoted = format!("r'{}'", patterns[0]);
        let expressions = [
            format!("count({quoted}) == 3"),
            format!("findall({quoted}) == [['a']]"),
            format!("string(extractall({quoted})[0]) == 'a\\na'"),
            format!("string(extractsingle({quoted}, 0, -1)) == 'a'"),
            "size(sections('*')[0]) == 9".to_owned(),
        ];
        let mut items: Vec<_> = patterns.iter().flat_map(|pattern| [found(pattern), not_found(pattern), count(pattern, 3)]).collect();
        items.extend(expressions.iter().map(|expression| assert(expression)));
        let picks = [Pick::Item(-1), Pick::Reduce(Reduce::Count), Pick::Reduce(Reduce::Sum)];
        let figures = patterns.iter().zip(picks).map(|(pattern, pick)| variable("x", pattern, "", pick));
        let [in_sanity, in_figures] = [sanity(items), perf(figures)];
        for rules in [in_sanity.sanity.into_iter().map(|item| sanity([item])).collect(), vec![in_figures]].concat() {
            let judge = |log: &str| judge_in_blocks(&rules, &Stdout::of(log), &ended(Exit::Code(0)), &Monitor::default(), size);
            let expected = judge(&log.replace("\r\n", "\n").replace('\r', "\n"));
            prop_assert_eq!(format!("{:?}", judge(&log)), format!("{expected:?}"), "{:?}", rules);
        }
    }
}

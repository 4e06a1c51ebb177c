use super::*;
use crate::{result::Outcome, rules::perf::VALUES_LIMIT};
use proptest::prelude::*;

/// What one variable makes of a log: its value, or the cause.
fn value(variable: PerfVariable, text: &str) -> String {
    let judgement = judge_text(&perf([variable]), text);
    match (judgement.measurements.as_slice(), &judgement.cause) {
        ([], None) => "none".to_owned(),
        ([only], None) => only.value.to_string(),
        (_, Some(cause)) => format!("{}: {cause}", judgement.outcome),
        (rows, None) => rows.iter().map(|row| format!("{}={}", row.label(), row.value)).collect::<Vec<_>>().join(" "),
    }
}

#[test]
fn each_way_of_picking_gives_its_figure() {
    use Pick::{Item, Reduce as By};
    use Reduce::{Count, First, Last, Max, Mean, Median, Min, Sum};
    let log = "x 3\nx 1\nnoise\nx 4\nx 1.5\n";
    let nan = "x 3\nx nan\nx 1\n";
    let not_all = "x 3\nx three\nx 1\n";
    let rows = [
        (Item(0), log, "3"),
        (Item(2), log, "4"),
        (Item(-1), log, "1.5"),
        (Item(-4), log, "3"),
        (Item(4), log, "invalid{metrics}: nothing found for `a`"),
        (Item(-5), log, "invalid{metrics}: nothing found for `a`"),
        (By(First), log, "3"),
        (By(Last), log, "1.5"),
        (By(Min), log, "1"),
        (By(Max), log, "4"),
        (By(Mean), log, "2.375"),
        (By(Median), log, "2.25"),
        (By(Median), "x 3\nx 1\nx 2\n", "2"),
        (By(Median), "x 7", "7"),
        (By(Sum), log, "9.5"),
        (By(Count), log, "4"),
        (By(Sum), "", "0"),
        (By(Count), "", "0"),
        (By(Mean), "", "invalid{metrics}: nothing found for `a`"),
        (By(Median), "", "invalid{metrics}: nothing found for `a`"),
        (By(Min), "", "invalid{metrics}: nothing found for `a`"),
        (Item(0), "", "invalid{metrics}: nothing found for `a`"),
        // A value that is no number only matters where it is used.
        (Item(0), not_all, "3"),
        (Item(-1), not_all, "1"),
        (By(Count), not_all, "3"),
        (Item(1), not_all, "invalid{metrics}: `a`: `three` is not a number"),
        (By(Max), not_all, "invalid{metrics}: `a`: `three` is not a number"),
        (By(Median), not_all, "invalid{metrics}: `a`: `three` is not a number"),
        // NaN is a figure. It wins over all others and fails.
        (By(Count), nan, "3"),
        (By(First), nan, "3"),
        (By(Min), nan, "fail{performance}: failed to meet reference(s): a=NaN GB/s, which is not a number"),
        (By(Max), nan, "fail{performance}: failed to meet reference(s): a=NaN GB/s, which is not a number"),
        (By(Sum), nan, "fail{performance}: failed to meet reference(s): a=NaN GB/s, which is not a number"),
        (By(Median), nan, "fail{performance}: failed to meet reference(s): a=NaN GB/s, which is not a number"),
        (By(Max), "x 1\nx inf\n", "inf"),
    ];
    for (pick, text, expected) in rows {
        assert_eq!(value(variable("a", r"^x (\S+)", "GB/s", pick), text), expected, "{pick:?} of {text:?}");
        // The same through a whole-text search.
        assert_eq!(value(variable("a", r"^x\s(\S+)", "GB/s", pick), text), expected, "{pick:?} of {text:?}, whole text");
    }
}

#[test]
fn optional_excuses_absence_but_not_nonsense() {
    let optional = |pattern| PerfVariable { optional: true, ..first("a", pattern) };
    assert_eq!(value(optional("x=(.*)"), "y=1"), "none");
    assert_eq!(value(optional("x=(.*)"), "x=1"), "1");
    assert_eq!(value(optional("x=(.*)"), "x=-"), "invalid{metrics}: `a`: `-` is not a number");
}

#[test]
fn a_match_in_which_the_value_takes_no_part_is_none() {
    let by = |pick| variable("a", r"up (\d)|down", "", pick);
    assert_eq!(value(by(Pick::Item(0)), "down\nup 4\n"), "4");
    assert_eq!(value(by(Pick::Item(-1)), "up 4\ndown\n"), "4");
    assert_eq!(value(by(Pick::Reduce(Reduce::Last)), "up 3\nup 4\ndown\n"), "4");
    assert_eq!(value(by(Pick::Reduce(Reduce::Count)), "down\nup 4\n"), "1");
    let either = variable("a", r"up (\d)|(down)", "", Pick::Item(-1));
    assert_eq!(value(either, "up 3\nup 4\ndown\n"), "4", "as many groups in every match, but not the same");
}

#[test]
fn a_unit_in_the_text_is_converted() {
    let rows = [
        ("READ: 1.5 GB/s", "1.5"),
        ("READ: 1500 MB/s", "1.5"),
        ("READ: 1 GiB/s", "1.073741824"),
        ("READ: 12 Gbit/s", "1.5"),
        ("READ:\n   2 TB/s", "2000"),
        ("READ: 5 parsec", "invalid{metrics}: `a`: no conversion from `parsec` in the text to `GB/s`"),
        ("READ: 5 GFLOP/s", "invalid{metrics}: `a`: no conversion from `GFLOP/s` in the text to `GB/s`"),
    ];
    for (text, expected) in rows {
        assert_eq!(value(first("a", r"READ:\s+(?<value>\S+) (?<unit>\S+)"), text), expected, "{text}");
    }
    let sum = variable("a", r"(?<value>\d+) (?<unit>[KM]?B/s)", "KB/s", Pick::Reduce(Reduce::Sum));
    assert_eq!(value(sum, "1 MB/s\n1 KB/s\n500 B/s\n2 MB/s\n"), "3001.5");
    assert_eq!(value(first("a", r"(?<value>\d+)(?: (?<unit>MB/s))?$"), "7\n"), "7", "no unit in the text: the variable's");
}

#[test]
fn a_key_makes_a_table() {
    let log = "# size us\n1  0.9\n8 1.0\n1024 3.5\n8 1.2\n";
    let table = |pick| variable("latency", r"^(?<key>\d+)\s+(?<value>\S+)$", "us", pick);
    let rows = [
        (Pick::Item(0), "latency[1]=0.9 latency[8]=1 latency[1024]=3.5"),
        (Pick::Item(-1), "latency[1]=0.9 latency[8]=1.2 latency[1024]=3.5"),
        (Pick::Reduce(Reduce::Max), "latency[1]=0.9 latency[8]=1.2 latency[1024]=3.5"),
        (Pick::Reduce(Reduce::Count), "latency[1]=1 latency[8]=2 latency[1024]=1"),
        (Pick::Item(1), "invalid{metrics}: nothing found for `latency[1]`; nothing found for `latency[1024]`"),
    ];
    for (pick, expected) in rows {
        assert_eq!(value(table(pick), log), expected, "{pick:?}");
    }
    for pick in [Pick::Item(0), Pick::Reduce(Reduce::Sum)] {
        assert_eq!(value(table(pick), "no rows"), "invalid{metrics}: nothing found for `latency`", "{pick:?}");
    }
    let optional = PerfVariable { optional: true, ..table(Pick::Item(1)) };
    assert_eq!(value(optional, log), "1.2");
}

#[test]
fn per_section_gives_every_pod_its_figure_and_node() {
    let variable = |pick| PerfVariable { per_section: true, ..variable("flops", r"= (\S+) GFLOP/s", "GFLOP/s", pick) };
    let say = |rules: &Rules, stdout: &Stdout| {
        let judgement = judge_stdout(rules, stdout);
        let rows: Vec<_> = judgement
            .measurements
            .iter()
            .map(|m| format!("{:?} {:?} {}", m.section.as_deref().unwrap(), m.node.as_deref().unwrap(), m.value))
            .collect();
        format!("{}\n{}", rows.join("\n"), say(&judgement))
    };
    let stdout = pods(&[
        ("pod-a", "node01", "= 5 GFLOP/s\n= 7 GFLOP/s\n"),
        ("pod-b", "node02", "no figure\n"),
        ("pod-c", "node03", "= 4 GFLOP/s\n"),
    ]);
    let mut rules = perf([variable(Pick::Item(-1))]);
    insta::assert_snapshot!(say(&rules, &stdout), @r#"
    "pod-a" "node01" 7
    "pod-c" "node03" 4
    invalid{metrics}: nothing found for `flops` in pod-b on node02
    "#);
    rules.references = vec![row("flops", 10.0, -0.5, None)];
    rules.perf_variables[0].optional = true;
    insta::assert_snapshot!(say(&rules, &stdout), @r#"
    "pod-a" "node01" 7
    "pod-c" "node03" 4
    fail{performance}: failed to meet reference(s): flops=4 GFLOP/s in pod-c on node03, expected 10 (l=5)
    "#);
    let counted = perf([variable(Pick::Reduce(Reduce::Count))]);
    insta::assert_snapshot!(say(&counted, &stdout), @r#"
    "pod-a" "node01" 2
    "pod-b" "node02" 0
    "pod-c" "node03" 1
    pass
    "#);
    let table = PerfVariable { per_section: true, ..first("t", r"^(?<key>\d+) (\d+)$") };
    let stdout = pods(&[("pod-a", "n", "1 10\n2 20\n"), ("pod-b", "n", "1 11\n"), ("pod-c", "n", "")]);
    insta::assert_snapshot!(say(&perf([table]), &stdout), @r#"
    "pod-a" "n" 10
    "pod-a" "n" 20
    "pod-b" "n" 11
    invalid{metrics}: nothing found for `t` in pod-c on n
    "#);
}

#[test]
fn a_computed_figure_sees_those_before_it() {
    let computed = |name: &str, expression: &str| PerfVariable {
        source: Source::Value(expression.into()),
        ..variable(name, "", "", Pick::Item(0))
    };
    let mut rules = perf([
        variable("bytes", r"bytes (\d+)", "B", Pick::Item(0)),
        variable("time", r"^(?<key>\S+) took (\S+) s", "s", Pick::Item(0)),
        PerfVariable { per_section: true, ..variable("rank", r"rank (\d)", "", Pick::Item(0)) },
        computed("speed", "perf['bytes'] / perf['time[read]'] / factor"),
        computed("double", "2 * perf['speed']"),
        computed("text", "extractsingle(r'bytes (.*)', 1)"),
        computed("odd", "perf['bytes'] / 0"),
        computed("place", "perf['rank@stdout']"),
    ]);
    rules.facts.insert("factor".into(), 1000.into());
    let judged = |rules: &Rules| {
        let judgement = judge_text(rules, "bytes 5000\nread took 2 s\nrank 3\n");
        let rows: Vec<_> = judgement.measurements.iter().map(|m| format!("{}={}", m.label(), m.value)).collect();
        format!("{}\n{}", rows.join(" "), say(&judgement))
    };
    insta::assert_snapshot!(judged(&rules), @"
    bytes=5000 time[read]=2 rank=3 speed=2.5 double=5 text=5000 odd=inf place=3
    pass
    ");
    rules.perf_variables = vec![computed("a", "perf['none'] * 2"), computed("b", "'three'"), computed("c", "[1]")];
    insta::assert_snapshot!(judged(&rules), @"invalid{metrics}: `a`: `perf['none'] * 2`: there is no key `none` here; `b`: `'three'`: the result is text, not a number; `c`: `[1]`: the result is a list, not a number");
    rules.perf_variables.truncate(1);
    rules.perf_variables[0].optional = true;
    insta::assert_snapshot!(judged(&rules), @"
    pass
    warning: `a` is left out: `perf['none'] * 2`: there is no key `none` here
    ");
}

#[test]
fn memory_is_bounded_and_the_limit_is_named() {
    let log = "1\n".repeat(VALUES_LIMIT + 1);
    let by = |pick| value(variable("a", "^1$", "", pick), &log);
    insta::assert_snapshot!(by(Pick::Reduce(Reduce::Median)), @"invalid{metrics}: `a`: more than 1000000 values: narrow the pattern, or reduce them to something else");
    let rows = (0..=10_000).map(|key| format!("{key} 1\n")).collect::<Vec<_>>().concat();
    insta::assert_snapshot!(value(first("t", r"^(?<key>\d+) (\d)$"), &rows), @"invalid{metrics}: `t`: the table has more than 10000 rows");
    insta::assert_snapshot!(value(first("t", r"^(?<key>\S+) (\d)$"), &format!("{} 1", "k".repeat(201))), @"invalid{metrics}: `t`: a key of the table is longer than 200 bytes");
}

proptest! {
    #[test]
    fn a_case_is_judged_alike_in_blocks_of_any_size(
        lines in prop::collection::vec(prop::sample::select(vec!["x 1", "x 2.5 ", "", "y", "k1 4", "k2 5", "x nan", "é\r"]), 0..30),
        ends in prop::bool::ANY,
        size in 1_usize..40,
    ) {
        let text = lines.join("\n") + if ends { "\n" } else { "" };
        let rules = Rules {
            perf_variables: vec![
                variable("min", r"^x (\S+)", "", Pick::Reduce(Reduce::Min)),
                variable("last", r"^x (\S+)", "", Pick::Item(-1)),
                variable("third", r"^x (\S+)", "", Pick::Item(2)),
                variable("table", r"^(?<key>k\d) (\d)", "", Pick::Item(0)),
                variable("empty", "^$", "", Pick::Reduce(Reduce::Count)),
            ],
            ..sanity([count("^$", 1), not_found("y"), found(r"\bé")])
        };
        // Without sanity's veto the figures are compared as well.
        for rules in [rules.clone(), Rules { sanity: vec![], ..rules }] {
            let judge = |size| judge_in_blocks(&rules, &Stdout::of(text.as_str()), &ended(Exit::Code(0)), &Monitor::default(), size);
            let (whole, cut) = (judge(usize::MAX), judge(size));
            prop_assert_eq!(format!("{whole:?}"), format!("{cut:?}"));
        }
    }
}

#[test]
fn a_block_is_smaller_than_the_log_that_it_is_tested_with() {
    // One log of many real blocks, the figure in the last line.
    let text = format!("{}\nspeed 7\n", "filler line\n".repeat(3 * search::BLOCK / 12));
    let judgement = judge_text(&perf([first("a", r"^speed (\d)$")]), &text);
    assert_eq!((judgement.outcome, judgement.measurements[0].value.to_string()), (Outcome::Pass, "7".to_owned()));
}

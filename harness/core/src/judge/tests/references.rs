use super::*;
use crate::rules::perf::Verdict;

const OPEN: Option<f64> = None;

/// A reference with its lower and upper threshold, the text of a figure, and whether it passes.
type Row = (f64, Option<f64>, Option<f64>, &'static str, bool);

#[test]
fn a_reference_holds_exactly_where_reframe_says() {
    let rows: [Row; 31] = [
        // Above zero the thresholds are fractions, and the bounds belong to the interval.
        (100.0, Some(-0.1), Some(0.1), "90", true),
        (100.0, Some(-0.1), Some(0.1), "110", true),
        (100.0, Some(-0.1), Some(0.1), "110.00000000000001", true),
        (100.0, Some(-0.1), Some(0.1), "110.00000000000003", false),
        (100.0, Some(-0.1), Some(0.1), "89.9999", false),
        (100.0, Some(-1.0), Some(0.0), "0", true),
        (100.0, Some(-1.0), Some(0.0), "-0.1", false),
        (100.0, Some(0.0), Some(0.0), "100", true),
        (100.0, OPEN, Some(0.1), "-1e300", true),
        (100.0, Some(-0.1), OPEN, "1e300", true),
        // Below zero they are mirrored: (-100, -0.01, 0.02) is [-101, -98].
        (-100.0, Some(-0.01), Some(0.02), "-101", true),
        (-100.0, Some(-0.01), Some(0.02), "-98", true),
        (-100.0, Some(-0.01), Some(0.02), "-101.1", false),
        (-100.0, Some(-0.01), Some(0.02), "-97.9", false),
        (-100.0, OPEN, Some(0.02), "-1e9", true),
        (-100.0, Some(-0.01), OPEN, "1e9", true),
        // At zero they are absolute: (0, -2, 5) is [-2, 5].
        (0.0, Some(-2.0), Some(5.0), "-2", true),
        (0.0, Some(-2.0), Some(5.0), "5", true),
        (0.0, Some(-2.0), Some(5.0), "5.001", false),
        (0.0, Some(-2.0), Some(5.0), "-2.001", false),
        (0.0, OPEN, Some(5.0), "-1e9", true),
        // Infinity passes an open bound, NaN none.
        (100.0, Some(-0.1), OPEN, "inf", true),
        (100.0, Some(-0.1), Some(0.1), "inf", false),
        (100.0, OPEN, Some(0.1), "-inf", true),
        (100.0, OPEN, OPEN, "inf", true),
        (100.0, OPEN, OPEN, "-inf", true),
        (100.0, OPEN, OPEN, "0", true),
        (100.0, OPEN, OPEN, "nan", false),
        (100.0, Some(-0.1), Some(0.1), "nan", false),
        (0.0, Some(-2.0), Some(5.0), "NaN", false),
        (-100.0, Some(-0.01), Some(0.02), "-nan", false),
    ];
    for (value, lower, upper, text, passes) in rows {
        let mut rules = perf([first("a", "a=(.*)")]);
        rules.references = vec![row("a", value, lower, upper)];
        let judgement = judge_text(&rules, &format!("a={text}\n"));
        let verdict = &judgement.measurements[0].verdict;
        let expected = if passes { (Verdict::Pass, "pass") } else { (Verdict::Fail, "fail{performance}") };
        assert_eq!(
            (verdict, judgement.outcome.to_string().as_str()),
            (&expected.0, expected.1),
            "{text} of ({value}, {lower:?}, {upper:?})"
        );
    }
}

#[test]
fn without_a_reference_everything_but_nan_passes_unless_one_is_required() {
    let mut rules = perf([first("a", "a=(.*)")]);
    for (text, required, expected) in
        [("1", false, "pass"), ("-inf", false, "pass"), ("nan", false, "fail{performance}"), ("1", true, "fail{performance}")]
    {
        rules.require_reference = required;
        assert_eq!(judge_text(&rules, &format!("a={text}")).outcome.to_string(), expected, "{text} {required}");
    }
    insta::assert_snapshot!(say(&judge_text(&rules, "a=1")), @"fail{performance}: failed to meet reference(s): a=1 GB/s, which has no reference");
    rules.references = vec![row("a", 1.0, None, None)];
    assert_eq!(say(&judge_text(&rules, "a=1")), "pass");
}

#[test]
fn all_variables_are_judged_and_told_in_one_sentence() {
    let mut rules = perf(["a", "b", "c", "d"].map(|name| first(name, &format!("{name}=(.*)"))));
    rules.references =
        vec![row("a", 100.0, -0.1, 0.1), row("b", 0.0, -2.0, None), row("c", 1e-6, None, 0.5), row("d", 5.0, None, None)];
    insta::assert_snapshot!(say(&judge_text(&rules, "a=10\nb=-3.25\nc=1.6e-6\nd=nan\n")), @"fail{performance}: failed to meet reference(s): a=10 GB/s, expected 100 (l=90, u=110); b=-3.25 GB/s, expected 0 (l=-2); c=1.6e-6 GB/s, expected 1e-6 (u=1.5e-6); d=NaN GB/s, expected 5");
    assert_eq!(judge_text(&rules, "a=10\nb=0\nc=0\nd=0\n").measurements.len(), 4);
}

#[test]
fn what_is_printed_stands_to_its_bounds_as_what_was_measured() {
    let mut rules = perf([first("a", "a=(.*)")]);
    rules.references = vec![row("a", 100.0, -0.1, 0.1)];
    let rows = ["110.00000000000003", "110.0000004", "89.9999999", "89.95", "123456.789", "-0.00001234567"];
    let sentences: Vec<_> = rows.iter().map(|text| say(&judge_text(&rules, &format!("a={text}")))).collect();
    insta::assert_snapshot!(sentences.join("\n"), @"
    fail{performance}: failed to meet reference(s): a=110.00000000000003 GB/s, expected 100 (l=90, u=110.00000000000001)
    fail{performance}: failed to meet reference(s): a=110.0000004 GB/s, expected 100 (l=90, u=110)
    fail{performance}: failed to meet reference(s): a=89.9999999 GB/s, expected 100 (l=90, u=110)
    fail{performance}: failed to meet reference(s): a=89.95 GB/s, expected 100 (l=90, u=110)
    fail{performance}: failed to meet reference(s): a=123457 GB/s, expected 100 (l=90, u=110)
    fail{performance}: failed to meet reference(s): a=-1.23457e-5 GB/s, expected 100 (l=90, u=110)
    ");
}

#[test]
fn many_misses_are_counted() {
    let mut rules = perf([variable("t", r"^(?<key>\d+) (\d+)$", "us", Pick::Item(0))]);
    rules.references = vec![row("t[*]", 100.0, 0.0, None)];
    let table = (0..14).map(|key| format!("{key} 1\n")).collect::<Vec<_>>().concat();
    let cause = judge_text(&rules, &table).cause.unwrap();
    assert!(cause.contains("t[9]=1 us, expected 100 (l=100); and 4 more"), "{cause}");
}

#[test]
fn a_row_has_its_own_reference_or_the_one_for_all() {
    let mut rules = perf([variable("t", r"^(?<key>\S+) (\S+)$", "us", Pick::Item(0)), first("plain", "p=(.*)")]);
    let judged = |rules: &Rules, text: &str| {
        let judgement = judge_text(rules, text);
        let rows: Vec<_> =
            judgement.measurements.iter().map(|m| format!("{} {:?}", m.label(), m.bounds.map(|b| b.reference))).collect();
        format!("{}\n{}", rows.join("\n"), say(&judgement))
    };
    let text = "1 1\n8 8\n16 1\np=5\n";
    rules.references = vec![row("t[*]", 1.0, -0.1, 0.1), row("t[8]", 8.0, -0.1, 0.1), row("plain[*]", 1.0, 0.0, 0.0)];
    insta::assert_snapshot!(judged(&rules, text), @"
    t[1] Some(1.0)
    t[8] Some(8.0)
    t[16] Some(1.0)
    plain None
    pass
    ");
    // A reference without a key is for every row that has none.
    rules.references = vec![row("t", 1.0, -0.1, 0.1), row("t[8]", 8.0, -0.1, 0.1)];
    insta::assert_snapshot!(judged(&rules, text), @"
    t[1] Some(1.0)
    t[8] Some(8.0)
    t[16] Some(1.0)
    plain None
    pass
    ");
    // A row that has a reference but was not measured is missing.
    rules.references = vec![row("t[*]", 1.0, None, None), row("t[32]", 8.0, -0.1, 0.1)];
    insta::assert_snapshot!(judged(&rules, text), @"
    t[1] Some(1.0)
    t[8] Some(1.0)
    t[16] Some(1.0)
    plain None
    invalid{metrics}: nothing found for `t[32]`, which has a reference
    ");
    rules.perf_variables[0].optional = true;
    assert_eq!(judge_text(&rules, text).outcome.to_string(), "pass");
}

#[test]
fn a_warn_band_warns_within_the_bounds() {
    let mut rules = perf([first("a", "a=(.*)")]);
    rules.references = vec![row("a", 100.0, -0.1, 0.1)];
    rules.references[0].reference.warn = Some((Some(-0.05), None));
    let rows = [
        ("100", Verdict::Pass),
        ("95", Verdict::Pass),
        ("94", Verdict::Warn),
        ("90", Verdict::Warn),
        ("89", Verdict::Fail),
        ("109", Verdict::Pass),
    ];
    for (text, verdict) in rows {
        assert_eq!(judge_text(&rules, &format!("a={text}")).measurements[0].verdict, verdict, "{text}");
    }
    insta::assert_snapshot!(say(&judge_text(&rules, "a=94")), @"
    pass
    warning: within the bounds, but not within the warn band: a=94 GB/s, expected 100 (l=95)
    ");
}

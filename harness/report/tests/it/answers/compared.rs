//! What differs between two sets.

use super::metric;
use crate::sample::{colored, screen};
use insta::assert_snapshot;
use muster_core::{
    query::answers::{Compared, ComparedMetric, Difference, Method, SampleUnit, Sides, Summary},
    rules::perf::Direction,
};
use muster_report::compared::{csv, json, report};

fn sides() -> Sides {
    Sides { old: "2026-11-01..2026-11-14".into(), new: "2026-11-15..2026-11-28".into(), sessions: (14, 13) }
}

fn summary(count: usize, median: f64) -> Summary {
    Summary { count, median, low: median * 0.99, high: median * 1.01, spread: 0.0043 }
}

fn row(case: &str, variable: &str, difference: Difference, old: Option<f64>, new: Option<f64>) -> ComparedMetric {
    let effect = old.zip(new).map(|(old, new)| new / old - 1.0);
    ComparedMetric {
        metric: metric(case, variable),
        unit: "GB/s".into(),
        direction: Some(Direction::Higher),
        old: old.map(|old| summary(14, old)),
        new: new.map(|new| summary(13, new)),
        difference,
        effect,
        is_redefined: false,
        p: effect.map(|_| 0.000_002_43),
    }
}

fn compared() -> Compared {
    let steady = (0..12).map(|n| row(&format!("osu %n={n}"), "latency", Difference::Steady, Some(10.0), Some(10.0)));
    let rows = [
        row("triad %size=2G", "bandwidth", Difference::Regressed, Some(1912.0), Some(1815.25)),
        row("triad %size=2G", "copy", Difference::Regressed, Some(1700.0), Some(1650.0)),
        ComparedMetric {
            is_redefined: true,
            ..row("ior \x1b[2J %api=\u{202e}mpiio", "write", Difference::Changed, Some(8.0), Some(4.0))
        },
        row("hpl", "flops", Difference::Vanished, Some(99.0), None),
        row("hpcg", "flops", Difference::New, None, Some(1.5)),
        row("nbody", "flops", Difference::Improved, Some(7440.0), Some(8000.0)),
    ];
    let method = Method {
        text: "rank test of Mann and Whitney over 18 metrics, step-up: at most 5 % of the claims are wrong; changes under 2 % are none".into(),
        error_rate: 0.05,
        min_effect: 0.02,
        sample: SampleUnit::Night,
    };
    Compared { method, rows: rows.into_iter().chain(steady).collect() }
}

#[test]
fn the_worst_comes_first_and_what_has_no_difference_is_counted() {
    assert_snapshot!(report(&compared(), &sides(), false, &screen(80)));
}

#[test]
fn all_variables_are_shown_if_asked_for() {
    let text = report(&compared(), &sides(), true, &screen(80));
    assert_eq!(text.matches("osu %n=").count(), 12, "{text}");
    assert!(!text.contains("more without"), "{text}");
}

#[test]
fn no_line_is_wider_than_the_screen_and_colours_add_nothing_else() {
    for width in [80, 120] {
        let text = report(&compared(), &sides(), true, &screen(width));
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
    }
    let painted = report(&compared(), &sides(), true, &colored(80));
    let codes = regex::Regex::new("\x1b\\[[0-9]+m").expect("a pattern");
    assert_eq!(codes.replace_all(&painted, ""), report(&compared(), &sides(), true, &screen(80)));
}

#[test]
fn single_runs_have_no_spread() {
    let rows = vec![ComparedMetric {
        old: Some(summary(1, 100.0)),
        new: Some(summary(1, 90.0)),
        p: None,
        ..row("triad", "bandwidth", Difference::TooFew, Some(100.0), Some(90.0))
    }];
    let method = Method { sample: SampleUnit::Run, ..compared().method };
    assert_snapshot!(report(&Compared { method, rows }, &sides(), false, &screen(80)));
}

#[test]
fn programs_get_every_variable_with_method_and_error_rate() {
    let few = Compared { rows: compared().rows.into_iter().take(4).collect(), ..compared() };
    assert_snapshot!("json", json(&few, &sides()).expect("JSON"));
    assert_snapshot!("csv", csv(&few).expect("CSV"));
}

//! A metric over time.

use super::{NIGHT, metric};
use crate::sample::{colored, screen};
use insta::assert_snapshot;
use muster_core::{
    query::{
        answers::{History, Mark, MarkKind},
        figures::{Basis, Point},
    },
    rules::perf::{Bounds, Direction},
};
use muster_report::history::{json, report};
use muster_text::time::Timestamp;

/// Two runs a night, a step down after 25 nights, another reference after 30, one night without figures, one run left out.
fn history(case: &str) -> History {
    let at = |night: i32| NIGHT.before(39 - night);
    let point = |night: i32, run: i32| {
        let noise = f64::from(u8::try_from((night * 7 + run * 3) % 11).unwrap_or_default()) - 5.0;
        let level = if night < 25 { 1910.0 } else { 1815.0 };
        let reference = if night < 30 { 1900.0 } else { 1800.0 };
        Point {
            at: Timestamp(at(night).days() * 86_400_000_000 + i64::from(run)),
            night: at(night),
            session: format!("s{night}"),
            value: (night != 3).then_some(level + 2.0 * noise),
            bounds: Some(Bounds { reference, lower: Some(reference * 0.95), upper: None }),
            basis: Basis { unit: "GB/s".into(), ..Basis::default() },
            is_left_out: night == 12,
        }
    };
    let points = (0..40).filter(|night| *night != 17).flat_map(|night| [point(night, 0), point(night, 1)]).collect();
    let mark = |night, kind, text: &str| Mark { night: at(night), kind, text: text.into() };
    History {
        metric: metric(case, "bandwidth"),
        unit: "GB/s".into(),
        direction: Some(Direction::Higher),
        points,
        marks: vec![
            mark(12, MarkKind::Annotation, "maintenance: new switches (ada)"),
            mark(25, MarkKind::Change, "regressed: 1910 -> 1815 (-5.0 %)"),
            mark(30, MarkKind::Reference, "1900 -> 1800"),
        ],
    }
}

#[test]
fn a_history_is_a_chart() {
    assert_snapshot!("unicode", report(&[history("triad %size=2G")], true, &screen(80)));
    assert_snapshot!("ascii", report(&[history("triad %size=2G")], false, &screen(80)));
}

#[test]
fn colours_add_nothing_else_and_no_line_is_too_wide() {
    let codes = regex::Regex::new("\x1b\\[[0-9]+m").expect("a pattern");
    for width in [80, 200] {
        let plain = report(&[history("triad")], true, &screen(width));
        assert_eq!(codes.replace_all(&report(&[history("triad")], true, &colored(width)), ""), plain);
        assert!(plain.lines().all(|line| line.chars().count() <= width), "{width}:\n{plain}");
    }
}

#[test]
fn many_histories_are_a_line_each() {
    let many: Vec<History> = ["a", "b", "c", "d"].map(history).into();
    assert_snapshot!("lines", report(&many, true, &screen(80)));
    assert_snapshot!("lines_ascii", report(&many, false, &screen(80)));
}

#[test]
fn a_history_without_numbers_says_so_and_a_single_one_is_drawn() {
    let none = History { points: vec![], marks: vec![], ..history("triad") };
    assert_eq!(report(&[none], true, &screen(80)), "triad @eidf:gpu+default  bandwidth in GB/s\nno figure is a number\n");
    let single = History { points: history("triad").points.into_iter().take(1).collect(), marks: vec![], ..history("triad") };
    assert_snapshot!("single", report(std::slice::from_ref(&single), false, &screen(80)));
    assert_snapshot!("json", json(&[single]).expect("JSON"));
}

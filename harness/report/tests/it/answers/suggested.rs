//! References from figures.

use super::metric;
use crate::sample::screen;
use insta::assert_snapshot;
use muster_core::query::answers::{SuggestedReference, Suggestion, TooFewRuns};
use muster_report::suggested::{Basis, refused, yaml};

fn suggestion(check: &str, size: &str, variable: &str, reference: Result<SuggestedReference, TooFewRuns>) -> Suggestion {
    let parameters = if size.is_empty() { vec![] } else { vec![("size".to_owned(), size.to_owned())] };
    let case = if size.is_empty() { check.to_owned() } else { format!("{check} %size={size}") };
    let unit = if variable == "errors" { "" } else { "GB/s" };
    let count = if reference.is_ok() { 412 } else { 12 };
    Suggestion { metric: metric(&case, variable), check: check.into(), parameters, unit: unit.into(), count, reference }
}

fn suggestions() -> Vec<Suggestion> {
    let reference = |value, lower, upper| Ok(SuggestedReference { value, lower, upper, spread: Some(0.0081) });
    vec![
        suggestion("triad", "2G", "bandwidth", reference(1912.5, Some(-0.0213), None)),
        suggestion("triad", "2G", "copy", reference(1700.0, Some(-0.02), None)),
        suggestion("triad", "true", "bandwidth", reference(900.0, None, Some(0.0512))),
        suggestion("hpl", "", "errors", Ok(SuggestedReference { value: 0.0, lower: None, upper: Some(2.0), spread: None })),
        suggestion("hpcg", "", "flops", Err(TooFewRuns { needed: 20 })),
    ]
}

#[test]
fn suggestions_are_yaml_to_paste() {
    let basis = Basis { period: "now-30d:now".into(), lower: 5, upper: 95 };
    let text = yaml(&suggestions(), &basis);
    assert_snapshot!(text);
    let read: serde_json::Value = serde_yaml::from_str(&text).expect("YAML");
    assert_eq!(read["triad"][0]["values"]["bandwidth"][0], 1912.5);
    assert_eq!(yaml(&suggestions()[4..], &basis), "");
}

#[test]
fn what_has_too_few_runs_is_refused_and_how_many_are_missing_is_said() {
    assert_snapshot!(refused(&suggestions(), &screen(80)));
}

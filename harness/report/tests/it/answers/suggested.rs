//! References from figures.

use super::metric;
use crate::sample::screen;
use insta::assert_snapshot;
use muster_core::query::answers::{NoReference, SuggestedReference, Suggestion};
use muster_report::suggested::{Basis, comments, keys, refused, yaml};

fn suggestion(check: &str, size: &str, variable: &str, reference: Result<SuggestedReference, NoReference>) -> Suggestion {
    let parameters = if size.is_empty() { vec![] } else { vec![("size".to_owned(), size.to_owned())] };
    let case = if size.is_empty() { check.to_owned() } else { format!("{check} %size={size}") };
    let unit = if variable == "errors" { "" } else { "GB/s" };
    let count = if reference.is_ok() { 412 } else { 12 };
    let left_out = if variable == "copy" || check == "hpcg" { vec!["left out, regressed".to_owned()] } else { vec![] };
    let (metric, check, unit) = (metric(&case, variable), check.into(), unit.into());
    Suggestion { metric, check, parameters, unit, count, nights: 9, left_out, reference }
}

fn suggestions() -> Vec<Suggestion> {
    let (spread, furthest, failed, expected) = (0.0081, -0.019, 1, [0.0001, 0.006]);
    let reference = |value, lower, upper| {
        let replaced = [lower == Some(-0.02), false];
        Ok(SuggestedReference { value, lower, upper, replaced, spread, furthest, failed, expected })
    };
    vec![
        suggestion("triad", "2G", "bandwidth", reference(1912.5, Some(-0.0213), None)),
        suggestion("triad", "2G", "copy", reference(1700.0, Some(-0.02), None)),
        suggestion("triad", "true", "bandwidth", reference(900.0, None, Some(0.0512))),
        suggestion("hpl", "", "errors", reference(0.0, None, Some(2.0))),
        suggestion("hpcg", "", "flops", Err(NoReference::TooFewRuns { needed: 20 })),
        suggestion("ior", "", "read", Err(NoReference::TooNoisy)),
        suggestion("ior", "", "errors", Err(NoReference::OnlyZeros)),
    ]
}

#[test]
fn suggestions_are_yaml_to_paste() {
    let basis = Basis { period: "now-30d:now".into(), lower: Some(5), upper: None };
    let text = yaml(&suggestions(), &basis);
    assert_snapshot!(text);
    let read: serde_json::Value = serde_yaml::from_str(&text).expect("YAML");
    assert_eq!(read["triad"][0]["values"]["bandwidth"][0], 1912.5);
    assert_eq!(yaml(&suggestions()[4..], &basis), "");
    let quoted = ["reference: \"my refs.yaml#hpl\"", "reference: \"my refs.yaml#triad\""];
    assert_eq!(keys(&suggestions(), "my refs.yaml"), quoted);
}

#[test]
fn why_there_is_no_suggestion_is_said() {
    let refused = refused(&suggestions(), &screen(80));
    let lines: Vec<String> = refused.lines().map(|line| format!("# {line}\n")).collect();
    assert_eq!(comments(&suggestions()), lines.concat());
    assert_snapshot!(refused);
}

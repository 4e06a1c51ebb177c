//! What cases have used of instances that are paid by time.

use crate::sample::{case, screen, session};
use insta::assert_snapshot;
use muster_core::{
    result::{CaseResult, Failure, Outcome, Phase, Session},
    usage::Prices,
};
use muster_report::{Results, failure, json, junit, performance, run_report, summary};
use std::collections::BTreeMap;

fn prices() -> Prices {
    Prices { per_hour: BTreeMap::from([("c7i.large".to_owned(), 0.09)]), currency: "EUR".to_owned() }
}

fn cases() -> [CaseResult; 3] {
    let used = |times: &[(&str, u64)]| prices().usage(times.iter().map(|(kind, seconds)| ((*kind).to_owned(), *seconds)));
    let failed =
        CaseResult { usage: used(&[("c7i.large", 3600)]), ..case("triad", &[], Outcome::Fail(Failure::Workload), Phase::Run) };
    let unpriced = CaseResult {
        usage: used(&[("c7i.large", 360), ("p5.48xlarge", 1800)]),
        ..case("nbody", &[], Outcome::Pass, Phase::Sanity)
    };
    [failed, unpriced, case("smoke", &[], Outcome::Pass, Phase::Sanity)]
}

pub(crate) fn with<T>(test: impl FnOnce(&Results<'_>) -> T) -> T {
    let (session, cases) = (Session { num_cases: 3, ..session() }, cases());
    test(&Results::new(&session, &cases))
}

#[test]
fn people_read_what_a_failure_and_the_session_have_cost() {
    let text = with(|results| {
        let failures = failure::report(results, &[], &screen(80));
        let performance = performance::report(results, performance::Format::Pretty, &screen(80)).unwrap();
        failures + &summary::summary(results, session().started) + &performance
    });
    let said: Vec<&str> = text.lines().filter(|line| line.contains("instance-hours")).collect();
    assert_snapshot!(said.join("\n"), @"
      * Usage:           1.00 instance-hours of c7i.large, 0.0900 EUR
    the cases used 1.60 instance-hours, 0.0990 EUR, price of p5.48xlarge unknown
    1.60 instance-hours, 0.0990 EUR, price of p5.48xlarge unknown
    ");
    let xml = with(|results| junit::report(results, &[]).unwrap());
    assert!(xml.contains("usage: 1.00 instance-hours of c7i.large, 0.0900 EUR"), "{xml}");
}

#[test]
fn programs_read_it_and_an_import_has_it_again() {
    let text = with(|results| json::report(results, None).unwrap());
    let value: muster_text::Value = serde_json::from_str(&text).unwrap();
    assert_snapshot!(value["cases"][0]["usage"], @r#"{"cost":0.09,"currency":"EUR","instance_seconds":3600,"instances":[{"price_per_hour":0.09,"seconds":3600,"type":"c7i.large"}]}"#);
    assert_snapshot!(value["cases"][1]["usage"]["cost"], @"null");
    assert!(value["cases"][2]["usage"].is_null());
    assert_snapshot!(value["totals"]["usage"], @r#"{"cost":{"EUR":0.099},"instance_seconds":5760,"unpriced":["p5.48xlarge"]}"#);
    let (_, read) = run_report::read(value).unwrap();
    assert_eq!(read.iter().map(|case| case.usage.clone()).collect::<Vec<_>>(), cases().map(|case| case.usage));
}

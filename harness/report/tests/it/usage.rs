//! What cases have used of instances that are paid by time.

use crate::sample::{case, screen, session};
use insta::assert_snapshot;
use muster_core::{
    job::scheduler::NodeSeen,
    result::{CaseResult, Failure, Outcome, Phase, Session},
    usage::Prices,
};
use muster_report::{Results, failure, json, junit, performance, run_report, summary};
use serde_json::json;
use std::collections::BTreeMap;

fn prices() -> Prices {
    Prices { per_hour: BTreeMap::from([("c7i.large".to_owned(), 0.09)]), currency: "EUR".to_owned() }
}

fn cases() -> [CaseResult; 3] {
    let used = |times: &[(&str, u64)]| prices().usage(times.iter().map(|(kind, seconds)| ((*kind).to_owned(), *seconds)));
    let failed = CaseResult {
        usage: used(&[("c7i.large", 3600)]),
        described: vec![NodeSeen {
            name: "i-1 (c7i.large, eu-west-1a)".into(),
            uid: "i-1".into(),
            class: "c7i.large".into(),
            facts: BTreeMap::from([("kernel".into(), "6.1.134".into())]),
        }],
        ..case("triad", &[], Outcome::Fail(Failure::Workload), Phase::Run)
    };
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
    let first = json!({
        "instance_seconds": 3600, "cost": 0.09, "currency": "EUR",
        "instances": [{ "type": "c7i.large", "seconds": 3600, "price_per_hour": 0.09 }],
    });
    assert_eq!(value["cases"][0]["usage"], first);
    assert!(value["cases"][1]["usage"]["cost"].is_null(), "a price is unknown");
    assert!(value["cases"][2].get("usage").is_none());
    let totals = &value["totals"]["usage"];
    assert_eq!((&totals["instance_seconds"], &totals["unpriced"]), (&json!(5760), &json!(["p5.48xlarge"])));
    assert!(totals["cost"]["EUR"].as_f64().is_some_and(|cost| (cost - 0.099).abs() < 1e-9), "{totals}");
    let (_, read) = run_report::read(value).unwrap();
    assert_eq!(read[0].described, cases()[0].described);
    assert_eq!(read.iter().map(|case| case.usage.clone()).collect::<Vec<_>>(), cases().map(|case| case.usage));
}

//! Why the cases of a night failed.

use super::NIGHT;
use crate::sample::screen;
use insta::assert_snapshot;
use muster_core::{
    case::{CaseName, SessionId},
    job::scheduler::Disruption,
    query::causes::{FactChange, Failure, Level, NightOfCauses, Since, group},
    result::{Failure as Why, Outcome, Phase},
};
use muster_report::causes::{json, report};

fn failure(name: &str, outcome: Outcome, cause: &str, nodes: &[&str]) -> Failure {
    Failure {
        name: CaseName {
            display: name.into(),
            check: name.into(),
            system: "eidf".into(),
            partition: "gpu".into(),
            environ: "default".into(),
            ..CaseName::default()
        },
        session: SessionId("20261124-220000-abcdefgh".into()),
        outcome,
        phase: Phase::Run,
        cause: Some(cause.into()),
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        in_quarantine: name == "triad %n=3",
    }
}

fn night() -> NightOfCauses {
    let lost =
        (0..7).map(|n| failure(&format!("triad %n={n}"), Outcome::Disrupted(Disruption::Node), "node n7 NotReady", &["n7"]));
    let sanity = |name| {
        failure(
            name,
            Outcome::Fail(Why::Sanity),
            "pattern 'Max Write: .* MiB/sec' was not found in any of 2 sections",
            &["n1", "n2"],
        )
    };
    let slow = failure("hpl", Outcome::Fail(Why::Performance), "flops: 81.2 GFLOP/s, expected 90 (l:85)\x1b[31m", &["n3"]);
    let failures: Vec<Failure> = lost.chain([sanity("ior %api=mpiio"), sanity("ior %api=posix"), slow]).collect();
    let change = |fact: &str, before: &str, after: &str| FactChange {
        fact: fact.into(),
        before: (!before.is_empty()).then(|| before.to_owned()),
        after: (!after.is_empty()).then(|| after.to_owned()),
    };
    let level = Level { change: "17@2026-11-17".into(), since: NIGHT.before(12), interval: (NIGHT.before(13), NIGHT.before(12)) };
    let since = [
        Since { first_bad: Some(NIGHT), last_good: Some(NIGHT.before(1)), level: None, changed: vec![] },
        Since {
            first_bad: Some(NIGHT.before(4)),
            last_good: Some(NIGHT.before(6)),
            level: None,
            changed: vec![
                change("driver of n1", "550.54", "570.12"),
                change("nodes", "n1", "n1, n2"),
                change("label.rack of n2", "", "r3"),
            ],
        },
        Since { first_bad: Some(NIGHT.before(9)), last_good: None, level: Some(level), changed: vec![] },
    ];
    let causes = group(failures).into_iter().zip(since).collect();
    NightOfCauses { first: NIGHT, night: NIGHT, systems: vec!["eidf".into()], sessions: 2, cases: 214, causes }
}

#[test]
fn failures_are_grouped_by_cause_with_what_changed() {
    assert_snapshot!(report(&night(), false, &screen(80)));
}

#[test]
fn every_case_is_named_if_asked_for_and_a_good_night_is_one_line() {
    assert_eq!(report(&night(), true, &screen(80)).matches("triad %n=").count(), 7);
    let good = NightOfCauses { causes: vec![], ..night() };
    assert_eq!(report(&good, false, &screen(80)), "Night of 2026-11-24 on eidf: 0 of 214 cases failed in 2 sessions\n");
}

#[test]
fn programs_get_every_case() {
    let text = json(&NightOfCauses { causes: night().causes.into_iter().skip(1).collect(), ..night() }).expect("JSON");
    assert_snapshot!(text);
}

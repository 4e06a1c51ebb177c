//! What is read is what was written, whatever it is.

use crate::support::{about, database, identifier, name, owner, session};
use muster_core::{
    case::{CaseName, SessionId},
    job::{
        outputs::CaseOutputs,
        scheduler::{Disruption, Exit, NodeSeen, SectionExit},
        workload::Clock,
    },
    night::FigureRules,
    result::{About, CaseResult, Failure, Fault, Invalid, OnDisruption, Outcome, Phase, Purpose, Quarantine, Times},
    rules::perf::{Bounds, Direction, Measurement, Verdict},
    usage::{Prices, Usage},
};
use muster_store::{Reader, Store};
use muster_text::time::{Date, Timestamp};
use proptest::{
    collection::vec,
    option,
    prelude::*,
    test_runner::{Config, TestRunner},
};
use std::collections::BTreeMap;

/// Any figure, NaN and the infinities too.
const FIGURE: proptest::num::f64::Any = proptest::num::f64::ANY;

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        prop::sample::select(vec![
            Outcome::Pass,
            Outcome::Skip,
            Outcome::Xfail,
            Outcome::Xpass,
            Outcome::Abort,
            Outcome::Fail(Failure::Sanity),
            Outcome::Fail(Failure::Performance),
            Outcome::Fail(Failure::Workload),
            Outcome::Invalid(Invalid::Logs),
            Outcome::Invalid(Invalid::Metrics),
            Outcome::Invalid(Invalid::Validity),
            Outcome::Timeout(Clock::Pending),
            Outcome::Timeout(Clock::Run),
            Outcome::Disrupted(Disruption::Preempted),
            Outcome::Disrupted(Disruption::Evicted),
            Outcome::Disrupted(Disruption::Node),
            Outcome::Disrupted(Disruption::Deleted),
            Outcome::Error(Fault::Config),
            Outcome::Error(Fault::Infra),
        ]),
        any::<String>().prop_map(Outcome::Stopped),
    ]
}

fn phase() -> impl Strategy<Value = Phase> {
    prop::sample::select(vec![Phase::Plan, Phase::Launch, Phase::Run, Phase::Sanity, Phase::Performance, Phase::Cleanup])
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        prop::sample::select(vec![Verdict::None, Verdict::Pass, Verdict::Warn, Verdict::Fail]),
        any::<String>().prop_map(Verdict::Xfail),
        any::<String>().prop_map(Verdict::Xpass),
    ]
}

/// A limit may be infinite, but the loader lets no NaN through.
fn limit() -> impl Strategy<Value = f64> {
    FIGURE.prop_filter("not NaN", |figure| !figure.is_nan())
}

fn measurement() -> impl Strategy<Value = Measurement> {
    let bounds = (limit(), option::of(limit()), option::of(limit())).prop_map(|(reference, lower, upper)| Bounds {
        reference,
        lower,
        upper,
    });
    let place = (option::of(any::<String>()), option::of(any::<String>()), option::of(any::<String>()));
    let direction = option::of(prop::sample::select(vec![Direction::Higher, Direction::Lower]));
    (any::<String>(), place, FIGURE, any::<String>(), option::of(bounds), verdict(), direction).prop_map(
        |(variable, (key, section, node), value, unit, bounds, verdict, direction)| Measurement {
            variable,
            key,
            section,
            node,
            value,
            unit,
            bounds,
            verdict,
            direction,
        },
    )
}

fn exit() -> impl Strategy<Value = SectionExit> {
    let exit = prop_oneof![any::<i32>().prop_map(Exit::Code), any::<i32>().prop_map(Exit::Signal), Just(Exit::Unknown)];
    let names = (any::<String>(), option::of(any::<String>()), option::of(any::<String>()));
    (names, exit).prop_map(|((section, section_id, node), exit)| SectionExit {
        section,
        section_id,
        node,
        exit,
        ..SectionExit::default()
    })
}

fn times() -> impl Strategy<Value = Times> {
    let at = || any::<i64>().prop_map(Timestamp);
    (at(), option::of(at()), option::of(at()), option::of(at()), at())
        .prop_map(|(begun, launched, started, ended, finished)| Times { begun, launched, started, ended, finished })
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(any::<String>(), 0..3)
}

fn names() -> impl Strategy<Value = (CaseName, About)> {
    let parameters = vec((any::<String>(), any::<String>()), 0..3);
    (vec(any::<String>(), 7), texts(), texts(), parameters, any::<u32>()).prop_map(
        |(words, tags, maintainers, parameters, num_tasks)| {
            let [display, check, environ, partition, hidden, descr, file] = <[String; 7]>::try_from(words).unwrap();
            let name = CaseName { display, check, environ, partition, hidden, ..name(0) };
            let scheduler = ["k8s", "ipu", "local", "fake"][num_tasks as usize % 4].into();
            let on_disruption = [None, Some(OnDisruption::Fail), Some(OnDisruption::Retry)][num_tasks as usize % 3];
            let other_files = tags.clone();
            let hash = |text: &str| if tags.is_empty() { String::new() } else { format!("{text}{num_tasks}") };
            let (check_hash, manifest_hash) = (hash("c"), hash("m"));
            let limit = Some(f64::from(num_tasks)).filter(|_| num_tasks % 2 == 0);
            let night = FigureRules { limit, ignore: other_files.clone(), ..FigureRules::default() };
            (
                name,
                About {
                    descr,
                    file,
                    other_files,
                    tags,
                    maintainers,
                    parameters,
                    scheduler,
                    num_tasks,
                    on_disruption,
                    check_hash,
                    manifest_hash,
                    night,
                },
            )
        },
    )
}

fn provided(number: u32) -> Option<Box<CaseOutputs>> {
    number.is_multiple_of(2).then(|| {
        Box::new(CaseOutputs {
            stage: format!("/stage/{number}").into(),
            values: [("n".to_owned(), number.into())].into(),
            outputs: [("dir".to_owned(), "/scratch".to_owned())].into(),
            teardown: None,
        })
    })
}

fn result() -> impl Strategy<Value = CaseResult> {
    let verdict = (option::of(any::<u32>()), any::<u32>(), outcome(), phase(), option::of(any::<String>()));
    let lists = (texts(), texts(), texts(), texts(), texts());
    let rest = (vec(exit(), 0..3), vec(measurement(), 0..4), times(), option::of("[a-zé/]{1,20}"), option::of(any::<String>()));
    let quarantine = ("[0-9]{4}-0[1-9]-1[0-9]", any::<String>())
        .prop_map(|(until, reason)| Quarantine { reason, until: Date::parse(&until).unwrap() });
    let history = (any::<bool>(), option::of(quarantine), option::of(any::<String>()));
    (names(), verdict, lists, rest, history).prop_map(|(names, verdict, lists, rest, history)| CaseResult {
        name: names.0,
        about: names.1,
        identifier: verdict.0.map(identifier),
        attempt: verdict.1,
        outcome: verdict.2,
        phase: verdict.3,
        cause: verdict.4,
        warnings: lists.0,
        nodes: lists.1,
        look: lists.2,
        delete: lists.3,
        leftovers: lists.4,
        exits: rest.0,
        measurements: rest.1,
        times: rest.2,
        folder: rest.3.map(Into::into),
        log_tail: rest.4,
        flaky: history.0,
        quarantine: history.1,
        restored_from: history.2.map(SessionId),
        outputs: provided(verdict.1),
        blocked_by: (verdict.1 % 3 == 0).then(|| "build ~here @s:p+e".to_owned()),
        log: None,
        purpose: [Purpose::Run, Purpose::Tune][verdict.1 as usize % 2],
        usage: usage(verdict.1),
        described: described(verdict.1),
    })
}

fn described(number: u32) -> Vec<NodeSeen> {
    let facts = BTreeMap::from([("kernel".to_owned(), format!("6.1.{number}"))]);
    let node = NodeSeen { name: "i-1 (c7i.large)".into(), uid: "i-1".into(), class: "c7i.large".into(), facts };
    [node].into_iter().filter(|_| number % 2 == 1).collect()
}

fn usage(number: u32) -> Usage {
    let prices = Prices { per_hour: BTreeMap::from([("a.large".to_owned(), 0.09)]), currency: "EUR".to_owned() };
    let times = [("a.large", 100), ("b.large", u64::from(number))].into_iter().take(number as usize % 3);
    match number % 3 {
        0 => Usage::default(),
        _ => prices.usage(times.map(|(kind, seconds)| (kind.to_owned(), seconds))),
    }
}

/// NaN is not equal to itself: where both are NaN, neither is compared further.
fn without_nan(mut results: Vec<CaseResult>) -> (Vec<CaseResult>, Vec<bool>) {
    let mut nan = Vec::new();
    for measurement in results.iter_mut().flat_map(|result| &mut result.measurements) {
        nan.push(measurement.value.is_nan());
        if measurement.value.is_nan() {
            measurement.value = 0.0;
        }
    }
    (results, nan)
}

#[test]
fn every_result_is_read_as_it_was_written() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let (store, reader) = runtime.block_on(async { (Store::open(&path).await.unwrap(), Reader::open(&path).await.unwrap()) });
    let mut number = 0;
    let mut write_and_read = |written: Vec<CaseResult>| {
        runtime.block_on(async {
            number += 1;
            let session = session(&format!("s{number}"), number);
            store.begin(&session, &owner(1)).await.unwrap();
            for result in &written {
                store.finished(&session.id, result).await.unwrap();
            }
            let read = reader.results(&session.id).await.unwrap();
            prop_assert_eq!(without_nan(read), without_nan(written));
            Ok(())
        })
    };
    // Cases of one session have different names; what is in the rest of a name does not matter.
    let results = vec(result(), 1..4).prop_map(|mut results| {
        for (number, result) in results.iter_mut().enumerate() {
            result.name.display.push_str(&number.to_string());
        }
        results
    });
    let write_and_read = std::cell::RefCell::new(&mut write_and_read);
    let check = |results| (write_and_read.borrow_mut())(results);
    TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(64) }).run(&results, check).unwrap();
}

#[tokio::test]
async fn figures_that_json_does_not_know_survive() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder);
    let store = Store::open(&path).await.unwrap();
    let session = session("0199aa", 1);
    store.begin(&session, &owner(1)).await.unwrap();
    let values =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE / 2.0, 0.1 + 0.2, f64::MAX, 9_007_199_254_740_993.0];
    let measurements = values.map(|value| crate::support::measurement("flops", value)).to_vec();
    let result = CaseResult { measurements, about: about(), ..crate::support::result(1, 1, Outcome::Pass) };
    store.finished(&session.id, &result).await.unwrap();
    let read = Reader::open(&path).await.unwrap().results(&session.id).await.unwrap().remove(0);
    let bits = |measurements: &[Measurement]| measurements.iter().map(|m| m.value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&read.measurements), values.map(f64::to_bits));
}

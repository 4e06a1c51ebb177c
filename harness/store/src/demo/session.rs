//! A session of the example as a real one would have left it.

use muster_core::{
    case::{CaseHash, CaseName, Identifier, SessionId},
    job::scheduler::{Disruption, Exit, SectionExit},
    result::{About, CaseResult, Failure, Outcome, Phase, Session, Times},
    rules::perf::{Bounds, Direction, Measurement, Verdict, format_number},
};
use muster_judge::sample::year::{Ended, ExampleAttempt, ExampleCase, ExampleFigure, ExampleSession, ExampleSystem, Happened};
use muster_text::time::{Date, Timestamp};
use std::collections::BTreeMap;

/// The session of an evening, and its results in the order in which they finished.
pub(super) fn of(system: &ExampleSystem, evening: i32, number: usize, example: &ExampleSession) -> (Session, Vec<CaseResult>) {
    let date = Date(evening);
    let started = Timestamp(example.started);
    let command = ["muster", "-c", "checks/", "--system", &system.name, "-r"];
    let results: Vec<CaseResult> = example.cases.iter().flat_map(|case| results(system, case, example.started)).collect();
    let session = Session {
        id: SessionId(format!("{}-{date}-{}", system.name, number + 1)),
        started,
        ended: results.iter().map(|result| result.times.finished).max().map(|last| Timestamp(last.0 + 2_000_000)),
        command: command.map(str::to_owned).to_vec(),
        system: system.name.clone(),
        user: "nightly".to_owned(),
        host: format!("{}-login", system.name),
        workdir: "/srv/checks".into(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        num_cases: u32::try_from(example.cases.len()).unwrap_or(u32::MAX),
        night: Some(date),
        facts: facts(system, example),
        ..Session::default()
    };
    (session, results)
}

/// The driver is another since each step: what may have caused it.
fn facts(system: &ExampleSystem, example: &ExampleSession) -> BTreeMap<String, String> {
    let steps = system
        .truth
        .iter()
        .filter(|truth| matches!(truth.happened, Happened::Step { .. }) && truth.from <= example.night)
        .count();
    BTreeMap::from([("cluster.driver".to_owned(), format!("550.{}", 54 + 36 * steps))])
}

fn results(system: &ExampleSystem, case: &ExampleCase, started: i64) -> Vec<CaseResult> {
    let parameters: Vec<(String, String)> =
        case.parameter.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let display = parameters.iter().fold(case.check.clone(), |text, (name, value)| format!("{text} %{name}={value}"));
    let pairs = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let name = CaseName {
        display,
        hash: CaseHash::of(&case.check, pairs).short(),
        check: case.check.clone(),
        system: system.name.clone(),
        partition: case.partition.to_owned(),
        environ: system.environ.to_owned(),
        hidden: String::new(),
    };
    let about = About {
        descr: case.description.to_owned(),
        tags: vec!["nightly".to_owned()],
        file: format!("checks/{}/check.yaml", case.check),
        parameters,
        scheduler: "slurm".into(),
        num_tasks: 1,
        check_hash: CaseHash::of(&format!("{} version {}", case.check, case.version), []).long(),
        ..About::default()
    };
    let attempt = |(number, attempt): (usize, &ExampleAttempt)| result(&name, &about, number, attempt, started);
    let mut results: Vec<CaseResult> = case.attempts.iter().enumerate().map(attempt).collect();
    if let [_, .., last] = results.as_mut_slice() {
        last.flaky = last.outcome.is_fine();
    }
    results
}

fn result(name: &CaseName, about: &About, number: usize, attempt: &ExampleAttempt, started: i64) -> CaseResult {
    let at = |seconds: f64| Timestamp(started + microseconds(seconds));
    let (outcome, phase, cause) = match &attempt.ended {
        Ended::Pass => (Outcome::Pass, Phase::Performance, None),
        Ended::Slow => (Outcome::Fail(Failure::Performance), Phase::Performance, missed(attempt)),
        Ended::Insane => (Outcome::Fail(Failure::Sanity), Phase::Sanity, Some("`^Solution validates$` not found".to_owned())),
        Ended::Lost { node } => (Outcome::Disrupted(Disruption::Node), Phase::Run, Some(format!("node {node} NotReady"))),
    };
    let (begun, ended) = (at(attempt.begun), at(attempt.begun + attempt.seconds));
    CaseResult {
        name: name.clone(),
        about: about.clone(),
        identifier: Some(identifier(&format!("{name} {started} {number}"))),
        attempt: u32::try_from(number + 1).unwrap_or(u32::MAX),
        outcome,
        phase,
        cause,
        nodes: attempt.nodes.clone(),
        exits: attempt.nodes.iter().map(|node| exit(node)).collect(),
        measurements: attempt.figures.iter().map(measurement).collect(),
        times: Times {
            begun,
            launched: Some(at(attempt.begun + 0.2)),
            started: Some(at(attempt.begun + 1.5)),
            ended: Some(ended),
            finished: at(attempt.begun + attempt.seconds + 0.5),
        },
        ..CaseResult::default()
    }
}

fn exit(node: &str) -> SectionExit {
    SectionExit { section: node.to_owned(), node: Some(node.to_owned()), exit: Exit::Code(0), ..SectionExit::default() }
}

/// Eight letters that no other attempt of the year has, as far as chance allows.
fn identifier(text: &str) -> Identifier {
    let number = CaseHash::of(text, []).number();
    Identifier::from_letters(number.to_be_bytes().map(|byte| byte % 26))
}

#[allow(clippy::cast_possible_truncation, reason = "a session lasts hours")]
fn microseconds(seconds: f64) -> i64 {
    (seconds * 1e6) as i64
}

fn measurement(figure: &ExampleFigure) -> Measurement {
    let bound = figure.bound();
    let bounds = figure.direction.map(|direction| match direction {
        Direction::Higher => Bounds { reference: figure.reference, lower: Some(bound), upper: None },
        Direction::Lower => Bounds { reference: figure.reference, lower: None, upper: Some(bound) },
    });
    Measurement {
        variable: figure.variable.to_owned(),
        key: figure.key.map(str::to_owned),
        section: figure.node.clone(),
        node: figure.node.clone(),
        value: figure.value,
        unit: figure.unit.to_owned(),
        bounds,
        verdict: match bounds {
            None => Verdict::None,
            Some(bounds) if bounds.hold(figure.value) => Verdict::Pass,
            Some(_) => Verdict::Fail,
        },
        direction: figure.direction,
    }
}

/// The first figure that misses its reference.
fn missed(attempt: &ExampleAttempt) -> Option<String> {
    let figure = attempt.figures.iter().find(|figure| figure.misses())?;
    let node = figure.node.as_deref().map(|node| format!(" on {node}")).unwrap_or_default();
    Some(format!(
        "{}{node}: {} {}, expected {} or better",
        muster_core::rules::perf::label(figure.variable, figure.key),
        format_number(figure.value),
        figure.unit,
        format_number(figure.bound())
    ))
}

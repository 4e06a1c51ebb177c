//! The answer for programs: JSON, JUnit, Markdown.

use super::{SystemNight, absence, case, effect, error_rate, levels, notes, odds, since};
use crate::{
    RenderError,
    files::{json::written, junit::xml},
    page::plain as markdown_text,
    text::{style::one_line, words::counted},
};
use muster_core::case::check_of;
use muster_judge::{
    METHOD,
    night::{Change, ChangeState, Verdict, Word},
    stats::trend::Shape,
};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Value, json};
use std::fmt::Write;

/// One object a system.
pub fn json(nights: &[SystemNight<'_>]) -> Result<String, RenderError> {
    written(&json!({ "method": METHOD, "systems": nights.iter().map(system).collect::<Vec<_>>() }))
}

fn system(night: &SystemNight<'_>) -> Value {
    let verdicts = night.verdicts;
    let family = &verdicts.family;
    let metrics = night.system.metrics.iter().zip(&verdicts.verdicts).map(|(metric, verdict)| {
        let name = &metric.name;
        json!({
            "metric": metric.id, "case": name.case, "partition": name.partition, "environ": name.environ, "variable": name.variable,
            "key": name.key, "unit": metric.unit, "direction": metric.direction, "verdict": verdict.word.as_str(),
            "new": verdict.is_new, "counted": verdict.is_counted, "value": verdict.value, "level": verdict.level,
            "nights": verdict.nights, "evidence": verdict.evidence, "smallest_step": verdict.smallest_step,
            "reason": verdict.reason, "change": verdict.change().map(change),
        })
    });
    let events = verdicts.events.iter().map(|event| {
        let metrics: Vec<i64> = event.metrics.iter().map(|place| night.system.metrics[*place].id).collect();
        let (low, high) = event.since_interval;
        json!({
            "since": [low.to_string(), high.to_string()], "metrics": metrics, "checks": event.checks,
            "new": event.is_new, "counted": event.is_counted,
        })
    });
    json!({
        "system": night.system.name, "night": verdicts.night.to_string(),
        "absent_since": night.absent_since.map(|last| last.to_string()), "notes": notes(night),
        "coverage": { "planned": verdicts.coverage.planned, "measured": verdicts.coverage.measured },
        "family": {
            "metrics": family.metrics, "false_alarms": night.settings.false_alarms, "threshold": family.threshold,
            "autocorrelation": family.autocorrelation, "tempering": family.tempering, "found": family.found,
        },
        "events": events.collect::<Vec<_>>(), "metrics": metrics.collect::<Vec<_>>(),
    })
}

fn change(change: &Change) -> Value {
    let (low, high) = change.since_interval;
    let state = match change.state {
        ChangeState::Open => "open",
        ChangeState::Recovered { .. } => "recovered",
        ChangeState::Accepted { .. } => "accepted",
        ChangeState::Dismissed { .. } => "dismissed",
        ChangeState::Superseded { .. } => "superseded",
    };
    json!({
        "id": change.id.to_string(), "opened": change.id.opened.to_string(), "since": change.since.to_string(),
        "since_interval": [low.to_string(), high.to_string()], "before": change.before, "after": change.after,
        "effect": change.effect.map(|effect| effect.estimate), "effect_interval": change.effect.map(|effect| [effect.low, effect.high]),
        "evidence": change.evidence, "state": state,
        "shape": change.shape.map(Shape::as_str),
    })
}

/// A suite a system, a test a metric: those that count fail.
pub fn junit(nights: &[SystemNight<'_>]) -> Result<String, RenderError> {
    let mut report = Report::new("muster night");
    for night in nights {
        let mut suite = TestSuite::new(xml(&night.system.name));
        suite.add_property(("night", night.verdicts.night.to_string().as_str()));
        suite.add_property(("error_rate", error_rate(night.settings).as_str()));
        for (metric, verdict) in night.system.metrics.iter().zip(&night.verdicts.verdicts) {
            let name = format!("{} {}", case(night.system, metric), metric.name.label());
            let mut test = TestCase::new(xml(&name), status(verdict, &metric.unit));
            test.set_classname(xml(check_of(&metric.name.case)));
            suite.add_test_case(test);
        }
        report.add_test_suite(suite);
    }
    report.to_string().map_err(RenderError::of("write the XML"))
}

fn status(verdict: &Verdict, unit: &str) -> TestCaseStatus {
    let said = verdict.change().map_or_else(String::new, |change| {
        format!(": {} {} since {}, evidence {}", levels(change, unit), effect(change), since(change), odds(change.evidence))
    });
    let reason = verdict.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let message = xml(&format!("{}{said}{reason}", verdict.word));
    let mut status = match verdict.word {
        Word::Regressed | Word::Drifting if verdict.is_counted => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Word::NotMeasured if verdict.is_counted => TestCaseStatus::non_success(NonSuccessKind::Error),
        Word::Steady | Word::Improved | Word::Recovered | Word::Accepted | Word::Changed | Word::Regressed | Word::Drifting => {
            return TestCaseStatus::success();
        }
        Word::TooFewNights | Word::TooNoisy | Word::NotMeasured | Word::Known => TestCaseStatus::skipped(),
    };
    status.set_type(verdict.word.as_str()).set_message(message);
    status
}

/// A table a system, for a job's page or a ticket.
pub fn markdown(nights: &[SystemNight<'_>]) -> String {
    nights.iter().map(section).collect::<Vec<_>>().join("\n")
}

fn section(night: &SystemNight<'_>) -> String {
    let coverage = night.verdicts.coverage;
    let mut text = format!(
        "### {}, night of {}\n\n{}, {} of {} planned measured; {}.\n",
        cell(&night.system.name),
        night.verdicts.night,
        counted(night.system.metrics.len(), "metric"),
        coverage.measured,
        coverage.planned,
        error_rate(night.settings)
    );
    for note in absence(night).iter().chain(&notes(night)) {
        let _ = write!(text, "\n{}\n", cell(note));
    }
    let shown: Vec<usize> = night.verdicts.events.iter().flat_map(|event| event.metrics.iter().copied()).collect();
    if shown.is_empty() {
        let is_compared = !night.verdicts.verdicts.iter().any(Verdict::is_new_baseline);
        return text + if is_compared { "\nNothing has changed.\n" } else { "\nNothing else has changed.\n" };
    }
    text += "\n| verdict | case | variable | level | change | since | evidence |\n| --- | --- | --- | --- | --- | --- | --- |\n";
    for place in shown {
        let (metric, verdict) = (&night.system.metrics[place], &night.verdicts.verdicts[place]);
        let Some(change) = verdict.change() else { continue };
        let new = if verdict.is_new { ", new" } else { "" };
        let cells = [
            format!("{}{new}", verdict.word),
            case(night.system, metric),
            metric.name.label(),
            levels(change, &metric.unit),
            effect(change),
            since(change),
            odds(change.evidence),
        ];
        let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

fn cell(text: &str) -> String {
    markdown_text(&one_line(text))
}

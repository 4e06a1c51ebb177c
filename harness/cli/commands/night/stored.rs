//! The nights of a system as the store has them, judged.

use anyhow::Context;
use muster_judge::night::{Change, ChangeId, Night, NightVerdicts, Settings, System, judge, replay};
use muster_report::night::SystemNight;
use muster_store::Reader;

/// A change is followed for so many nights: those before are judged one after the other, for each hands its changes to the next.
const FOLLOWED: i32 = 60;
/// The nights before these, in which the baseline lies. It has 60 values; some nights are missed.
const BASELINE: i32 = 90;

/// A system with the verdicts of a night.
#[derive(Debug)]
pub(super) struct JudgedSystem {
    /// As the night left it: with its changes.
    pub(super) system: System,
    pub(super) verdicts: NightVerdicts,
    settings: Settings,
    notes: Vec<String>,
}

impl JudgedSystem {
    pub(super) fn shown(&self) -> SystemNight<'_> {
        let Self { system, verdicts, settings, notes } = self;
        SystemNight { system, verdicts, settings, notes }
    }

    /// A change of the metric at a place.
    pub(super) fn change(&self, place: usize, id: ChangeId) -> Option<&Change> {
        self.verdicts.verdicts.get(place)?.changes.iter().find(|change| change.id == id)
    }
}

/// Reads and judges a night.
pub(super) async fn judged(reader: &Reader, system: &str, night: Night, settings: &Settings) -> anyhow::Result<JudgedSystem> {
    let mut stored = reader.night_system(system, night.before(FOLLOWED + BASELINE), night).await?;
    let progress = reader.night_progress(system, night).await?;
    let mut notes = notes(&stored);
    if progress.is_running {
        notes.insert(0, format!("the night is not over: so far {} of {} cases have ended", progress.ended, progress.cases));
    }
    replay(&mut stored, (-FOLLOWED..0).map(|nights| night.before(-nights)), settings);
    let verdicts = judge(&stored, night, settings);
    for (metric, verdict) in stored.metrics.iter_mut().zip(&verdicts.verdicts) {
        metric.changes.clone_from(&verdict.changes);
    }
    Ok(JudgedSystem { system: stored, verdicts, settings: *settings, notes })
}

/// What a reader has to know of the figures.
fn notes(system: &System) -> Vec<String> {
    let mut notes = Vec::new();
    let count =
        |holds: &dyn Fn(&muster_judge::night::Metric) -> bool| system.metrics.iter().filter(|metric| holds(metric)).count();
    let undirected = count(&|metric| metric.direction.is_none());
    if undirected > 0 {
        notes.push(format!("the variables of {undirected} metrics say no direction: shown as changed, never as regressed"));
    }
    let not_positive = count(&|metric| metric.values.iter().any(|value| value.value <= 0.0));
    if not_positive > 0 {
        notes.push(format!(
            "{not_positive} metrics have values that are not positive: their changes are differences over the median"
        ));
    }
    let no_number = count(&|metric| metric.values.iter().any(|value| value.value.is_nan()));
    if no_number > 0 {
        notes.push(format!("{no_number} metrics have nights whose figure was no number: these are left out"));
    }
    notes
}

/// What is recorded of the sessions before and after a change, and differs.
pub(super) async fn facts(reader: &Reader, system: &str, change: &Change) -> anyhow::Result<Vec<String>> {
    let (low, high) = change.since_interval;
    let before = reader.night_facts(system, low.before(1)).await.context("the facts of the night before")?;
    let after = reader.night_facts(system, high).await?;
    let mut lines = Vec::new();
    for (name, value) in &after {
        match before.get(name) {
            Some(old) if old != value => lines.push(format!("{name}: {old} -> {value}")),
            None if !before.is_empty() => lines.push(format!("{name}: not recorded before -> {value}")),
            Some(_) | None => {}
        }
    }
    Ok(lines)
}

//! The nights of a system as the store has them, judged.

use super::chosen::Chosen;
use anyhow::{Context, bail};
use muster_core::{case::CaseName, query::causes};
use muster_judge::night::{Change, ChangeId, Metric, MetricName, Night, NightVerdicts, Settings, System, judge, replay};
use muster_report::night::SystemNight;
use muster_store::{Judged, Looked, Reader, Upkeep};
use std::collections::{BTreeSet, HashMap};

/// So many nights are judged with one reading of their figures.
const AT_ONCE: usize = 60;

/// A system with the verdicts of a night.
#[derive(Debug)]
pub(super) struct JudgedSystem {
    /// As the night left it: with its changes.
    pub(super) system: System,
    pub(super) verdicts: NightVerdicts,
    settings: Settings,
    absent_since: Option<Night>,
    notes: Vec<String>,
}

impl JudgedSystem {
    pub(super) fn shown(&self) -> SystemNight<'_> {
        let Self { system, verdicts, settings, absent_since, notes } = self;
        SystemNight { system, verdicts, settings, absent_since: *absent_since, notes }
    }

    /// Leaves the metrics of one partition: they were judged together with the others.
    ///
    /// # Errors
    /// No figure of this partition is stored.
    fn only(&mut self, partition: &str) -> anyhow::Result<()> {
        let names: BTreeSet<&str> = self.system.metrics.iter().map(|metric| metric.name.partition.as_str()).collect();
        if !names.contains(partition) {
            let known = names.into_iter().collect::<Vec<_>>().join(", ");
            bail!("no figure of the partition `{partition}` of `{}` is stored; there are those of {known}", self.system.name);
        }
        self.verdicts.only(&mut self.system, |metric| metric.name.partition == partition);
        self.notes.push(format!("only `{partition}` is shown; it was judged together with the other partitions"));
        Ok(())
    }

    /// A change of the metric at a place.
    pub(super) fn change(&self, place: usize, id: ChangeId) -> Option<&Change> {
        self.verdicts.verdicts.get(place)?.changes.iter().find(|change| change.id == id)
    }
}

/// Judges a night. Nights before it that nobody has judged are judged first, and what is found is stored, so that each night goes on
/// from where the last one ended: a change keeps its name and its nights. A night that is not over is judged again by the next call.
pub(super) async fn judged(reader: &Reader, chosen: &Chosen, settings: &Settings) -> anyhow::Result<JudgedSystem> {
    let Chosen { system, night, absent_since, .. } = chosen;
    let (system, night, absent_since) = (system.as_str(), *night, *absent_since);
    let judged = reader.judged(system).await?;
    let from = judged.until.map_or(Night(i32::MIN), |until| Night(until.0.saturating_add(1))).min(night);
    let progress = reader.night_progress(system, night).await?;
    let mut found = Found::new(reader.changes_before(system, from).await?);
    let before = reader.nights_between(system, from, night.before(1)).await?;
    for nights in before.chunks(AT_ONCE) {
        let (Some(first), Some(last)) = (nights.first(), nights.last()) else { continue };
        let mut system = reader.judged_system(system, (*first, *last), &found.now, judged).await?.system;
        replay(&mut system, nights.iter().copied(), settings);
        found.update(&system);
    }
    let mut looked = reader.judged_system(system, (night, night), &found.now, judged).await?;
    let verdicts = judge(&looked.system, night, settings);
    for (metric, verdict) in looked.system.metrics.iter_mut().zip(&verdicts.verdicts) {
        metric.changes.clone_from(&verdict.changes);
    }
    let mut notes = notes(&looked.system);
    if progress.is_running {
        notes.insert(0, format!("the night is not over: so far {} of {} cases have ended", progress.ended, progress.cases));
    }
    // The session of a system that is absent may only be late.
    let until = if progress.is_running || absent_since.is_some() {
        before.last().copied()
    } else {
        found.update(&looked.system);
        Some(night)
    };
    if let Some(until) = until.filter(|until| judged.until.is_none_or(|known| known < *until))
        && let Err(error) = found.store(reader, judged, until, &looked).await
    {
        notes.push(format!("what was found is not stored, so its nights are judged again: {error:#}"));
    }
    if let Some(future) = chosen.future {
        notes.push(format!(
            "a session is dated {future}, in the future, and is not looked at: is the clock of its machine right?"
        ));
    }
    let mut judged = JudgedSystem { system: looked.system, verdicts, settings: *settings, absent_since, notes };
    if let Some(partition) = &chosen.partition {
        judged.only(partition)?;
    }
    Ok(judged)
}

/// The changes of a system, by metric.
struct Found {
    /// As they are stored.
    stored: HashMap<i64, Vec<Change>>,
    /// After the nights that were judged since.
    now: HashMap<i64, Vec<Change>>,
}

impl Found {
    fn new(stored: HashMap<i64, Vec<Change>>) -> Self {
        Self { now: stored.clone(), stored }
    }

    fn update(&mut self, system: &System) {
        for Metric { id, changes, .. } in &system.metrics {
            if !changes.is_empty() {
                self.now.insert(*id, changes.clone());
            }
        }
    }

    /// Stores what is other than before. If history has changed meanwhile, nothing: the next call finds the same in it, or other.
    async fn store(&self, reader: &Reader, judged: Judged, until: Night, looked: &Looked) -> anyhow::Result<()> {
        let is_stored = |change: &&Change| {
            let known = self.stored.get(&change.id.metric);
            known.is_some_and(|known| known.contains(change))
        };
        let new: Vec<Change> = self.now.values().flatten().filter(|change| !is_stored(change)).cloned().collect();
        let mut upkeep = Upkeep::open(reader.database().clone()).await?;
        upkeep.keep_changes(judged, until, &new, looked).await?;
        Ok(upkeep.close().await?)
    }
}

/// What a reader has to know of the figures.
fn notes(system: &System) -> Vec<String> {
    let mut notes = Vec::new();
    let count = |holds: &dyn Fn(&Metric) -> bool| system.metrics.iter().filter(|metric| holds(metric)).count();
    let undirected = count(&|metric| metric.direction.is_none());
    if undirected > 0 {
        let metrics = counted(undirected);
        notes.push(format!("the variables of {metrics} say no direction: shown as changed, never as regressed"));
    }
    let not_positive = count(&|metric| metric.values.iter().any(|value| value.value <= 0.0));
    if not_positive > 0 {
        notes
            .push(format!("values of {} are not positive: their changes are differences over the median", counted(not_positive)));
    }
    let no_number = count(&|metric| metric.values.iter().any(|value| value.value.is_nan()));
    if no_number > 0 {
        notes.push(format!("figures of {} are no number: their nights are left out", counted(no_number)));
    }
    notes
}

fn counted(metrics: usize) -> String {
    if metrics == 1 { "1 metric".to_owned() } else { format!("{metrics} metrics") }
}

/// Runs of the case are looked for in so many nights before and after those in which the change may have begun.
const AROUND: i64 = 60;

/// What is recorded of the runs of its case in a night before a change and in one after it, and differs. Without such runs: of the
/// sessions.
pub(super) async fn facts(reader: &Reader, system: &str, name: &MetricName, change: &Change) -> anyhow::Result<Vec<String>> {
    let (low, high) = change.since_interval;
    let case = CaseName {
        display: name.case.clone(),
        system: system.to_owned(),
        partition: name.partition.clone(),
        environ: name.environ.clone(),
        ..CaseName::default()
    };
    let (low_number, high_number) = (i64::from(low.0), i64::from(high.0));
    let runs = reader.occurrences(&case, (low_number - AROUND, high_number + AROUND)).await?;
    let before = runs.iter().map(|run| run.night).filter(|night| *night < low_number).max();
    let after = runs.iter().map(|run| run.night).filter(|night| *night >= high_number).min();
    let changed = if let Some((before, after)) = before.zip(after) {
        let [before, after] = [before, after].map(|night| runs.iter().filter(|run| run.night == night).collect::<Vec<_>>());
        causes::changed(&reader.facts(&before, &after).await?, &reader.facts(&after, &after).await?)
    } else {
        let before = reader.night_facts(system, low.before(1)).await.context("the facts of the night before")?;
        if before.is_empty() { Vec::new() } else { causes::changed(&before, &reader.night_facts(system, high).await?) }
    };
    let value = |value: Option<String>| value.unwrap_or_else(|| "not recorded".to_owned());
    Ok(changed.into_iter().map(|one| format!("{}: {} -> {}", one.fact, value(one.before), value(one.after))).collect())
}

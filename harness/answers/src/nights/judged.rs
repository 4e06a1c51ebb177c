//! The night of a system as the store has it, judged.

use super::Chosen;
use crate::Unanswered;
use muster_judge::night::{Change, Metric, Night, NightVerdicts, Settings, System, judge, replay};
use muster_store::{Judged, Looked, Reader, StoreError, Upkeep};
use std::collections::{BTreeSet, HashMap};

/// This many nights are judged with one reading of their figures.
const AT_ONCE: usize = 60;

/// A system with the verdicts of a night.
#[derive(Debug)]
pub struct JudgedNight {
    /// The system as the night left it: with its changes.
    looked: Looked,
    pub verdicts: NightVerdicts,
    pub settings: Settings,
    /// The last night in which the system had a session, if that is an earlier one.
    pub absent_since: Option<Night>,
    /// Sentences that a reader of the figures has to know.
    pub notes: Vec<String>,
    /// What [`keep`] stores, if nobody has judged as far.
    found: Option<Found>,
}

/// The changes of a system, by metric.
#[derive(Debug)]
struct Found {
    /// The changes that are stored.
    stored: HashMap<i64, Vec<Change>>,
    /// The changes after the nights that were judged since.
    now: HashMap<i64, Vec<Change>>,
    judged: Judged,
    until: Night,
}

impl JudgedNight {
    pub fn system(&self) -> &System {
        &self.looked.system
    }

    /// Leaves the metrics of one partition: they were judged together with the others. [`keep`] comes before: what is left is not the
    /// whole night, and is not stored.
    ///
    /// # Errors
    /// [`Unanswered::Unknown`] if no figure of this partition is stored.
    pub fn only(&mut self, partition: &str) -> Result<(), Unanswered> {
        let system = &mut self.looked.system;
        let names: BTreeSet<&str> = system.metrics.iter().map(|metric| metric.name.partition.as_str()).collect();
        if !names.contains(partition) {
            let known = names.into_iter().collect::<Vec<_>>().join(", ");
            let system = &system.name;
            return Unanswered::unknown(format!(
                "no figure of the partition `{partition}` of `{system}` is stored; there are those of {known}"
            ));
        }
        self.found = None;
        self.verdicts.only(system, |metric| metric.name.partition == partition);
        self.notes.push(format!("only `{partition}` is shown; it was judged together with the other partitions"));
        Ok(())
    }

    /// Returns the name of a metric: `triad %size=2G @eidf:gpu+gnu bandwidth`.
    pub(super) fn name(&self, metric: usize) -> String {
        let System { name: system, metrics, .. } = self.system();
        let name = &metrics[metric].name;
        format!("{} @{system}:{}+{} {}", name.case, name.partition, name.environ, name.label())
    }
}

/// Judges a night. Nights before it that nobody has judged are judged first. A night that is not over is judged again by the next call.
pub async fn judged(reader: &Reader, chosen: &Chosen, settings: &Settings) -> Result<JudgedNight, Unanswered> {
    let Chosen { system, night, absent_since, future: _ } = chosen;
    let (system, night, absent_since) = (system.as_str(), *night, *absent_since);
    let judged = reader.judged(system).await?;
    let from = judged.until.map_or(Night::MIN, |until| until.plus_days(1)).min(night);
    let progress = reader.night_progress(system, night).await?;
    let stored = reader.changes_before(system, from).await?;
    let mut found = Found { now: stored.clone(), stored, judged, until: night };
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
    let until = until.filter(|until| judged.until.is_none_or(|known| known < *until));
    let found = until.map(|until| Found { until, ..found });
    Ok(JudgedNight { looked, verdicts, settings: *settings, absent_since, notes, found })
}

/// Stores what a judged night has found, so that the next one goes on from there: a change keeps its name and its nights. If history has
/// changed meanwhile, nothing is stored, and the next call judges again.
pub async fn keep(reader: &Reader, judged: &JudgedNight) -> Result<(), StoreError> {
    let JudgedNight { looked, found: Some(found), .. } = judged else { return Ok(()) };
    let mut upkeep = Upkeep::open(reader.database().clone()).await?;
    upkeep.keep_changes(found.judged, found.until, &found.unstored(), looked).await?;
    upkeep.close().await
}

impl Found {
    fn update(&mut self, system: &System) {
        for Metric { id, changes, .. } in &system.metrics {
            if !changes.is_empty() {
                self.now.insert(*id, changes.clone());
            }
        }
    }

    /// Returns the changes that are not stored as they are.
    fn unstored(&self) -> Vec<Change> {
        let is_stored = |change: &&Change| self.stored.get(&change.id.metric).is_some_and(|known| known.contains(change));
        self.now.values().flatten().filter(|change| !is_stored(change)).cloned().collect()
    }
}

/// Returns what is said of a session that is dated in the future.
pub fn in_the_future(night: Night) -> String {
    format!("a session is dated {night}, in the future, and is not looked at: is the clock of its machine right?")
}

/// Returns what a reader has to know of the figures.
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

//! All metrics of a system together. Longer than other files: the steps of judging are methods of one type.
//!
//! The metrics with the most evidence are rejected step by step, as in the procedure of Benjamini and Hochberg: the `k` first, for
//! the largest `k` for which the evidence of the `k`-th is at least A K / k. Over e-detectors this bounds the false discoveries for
//! each night of patience under any dependence (Dandapanthula and Ramdas, arXiv 2501.04130).

use crate::{
    night::{
        change::{Change, ChangeState, follow, take_over},
        constants::Constants,
        event::{Event, events},
        evidence::{Evidence, LONGEST_BASELINE, SHORTEST_BASELINE, STARTS, evidence_with},
        input::{Metric, Plan, Settings, System},
        segment::{Began, Segment, gone, segments, value_of},
        word::Word,
    },
    stats::{shift::relative_change, trend},
};
use muster_core::{
    night::Night,
    query::remarks::{Remark, RemarkKind},
    rules::perf::Direction,
    stats::{as_float, centre_and_sigma, median},
};

/// The verdicts of a night on a system.
#[derive(Debug, Clone, PartialEq)]
pub struct NightVerdicts {
    pub night: Night,
    pub family: Family,
    pub coverage: Coverage,
    /// One for each metric of the system, in its order.
    pub verdicts: Vec<Verdict>,
    /// The events of changes, the worst first.
    pub events: Vec<Event>,
}

impl NightVerdicts {
    /// Leaves some metrics of the system alone: they were judged together with the others.
    pub fn only(&mut self, system: &mut System, keep: impl Fn(&Metric) -> bool) {
        let kept: Vec<bool> = system.metrics.iter().map(keep).collect();
        let mut of_metrics = kept.iter();
        system.metrics.retain(|_| of_metrics.next().is_some_and(|kept| *kept));
        let mut of_verdicts = kept.iter();
        self.verdicts.retain(|_| of_verdicts.next().is_some_and(|kept| *kept));
        self.coverage = Coverage::of(&self.verdicts);
        self.events = events(system, &self.verdicts);
    }
}

/// The values that all metrics of a system share in a night.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Family {
    /// K: the metrics that are followed.
    pub metrics: usize,
    /// A: the evidence that K metrics together need.
    pub threshold: f64,
    /// The number of changes that were found.
    pub found: usize,
    /// The resemblance of the values of neighbouring nights: the median over the metrics.
    pub autocorrelation: f64,
    /// c: what is left of what they say.
    pub tempering: f64,
}

impl Family {
    /// The evidence that a metric needs that moves alone.
    pub fn needed_alone(&self) -> f64 {
        self.threshold * as_float(self.metrics)
    }
}

/// The number of metrics that were planned, and of those among them that were measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coverage {
    pub planned: usize,
    pub measured: usize,
}

impl Coverage {
    fn of(verdicts: &[Verdict]) -> Self {
        let planned = || verdicts.iter().filter(|verdict| verdict.is_planned);
        Self { planned: planned().count(), measured: planned().filter(|verdict| verdict.value.is_some()).count() }
    }

    /// Returns whether at least this share was measured.
    pub fn reaches(self, share: f64) -> bool {
        as_float(self.measured) >= share * as_float(self.planned)
    }
}

/// The verdict on a metric in a night.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub word: Word,
    /// Found in this night.
    pub is_new: bool,
    /// The verdict counts for the exit code of `muster night`.
    pub is_counted: bool,
    /// A value was to be expected.
    pub is_planned: bool,
    /// The value of the night.
    pub value: Option<f64>,
    /// The median of the present segment, of its last 60 values.
    pub level: Option<f64>,
    /// The number of values of the present segment; `began` is the reason why it began.
    pub nights: usize,
    pub began: Began,
    /// M; 0 for too few values.
    pub evidence: f64,
    /// The smallest relative step that is found within a week in nine of ten cases. `None` for too few values.
    pub smallest_step: Option<f64>,
    /// The changes that the metric has opened, with their states: the input of the next night.
    pub changes: Vec<Change>,
    /// The place of the change that the word is about.
    pub shown: Option<usize>,
    /// Its case measures others since this night, a week ago or more, and not this: it does not count, and only an open regression
    /// of it is told.
    pub gone_since: Option<Night>,
    /// The reason why a change is not counted, or nothing is compared.
    pub reason: Option<String>,
}

impl Verdict {
    /// The change that the word is about.
    pub fn change(&self) -> Option<&Change> {
        self.changes.get(self.shown?)
    }

    /// Its values are compared with none before them, as what is measured is another.
    pub fn is_new_baseline(&self) -> bool {
        self.word == Word::TooFewNights && matches!(self.began, Began::Anew(_))
    }
}

/// Judges a night, with the changes that earlier nights have opened.
pub fn judge(system: &System, night: Night, settings: &Settings) -> NightVerdicts {
    judge_with(system, night, settings, None)
}

/// Judges with another c than the values of the system give: tests show what it is good for.
pub fn judge_with(system: &System, night: Night, settings: &Settings, tempering: Option<f64>) -> NightVerdicts {
    let mut followed: Vec<Followed<'_>> =
        system.metrics.iter().map(|metric| Followed::new(metric, &system.annotations, night, settings)).collect();
    for (place, since) in gone(&system.metrics, night, night.before(LATELY)) {
        followed[place].gone_since = Some(since);
    }
    // First as if nights said all they can, to know which of them a change leaves alone.
    give_evidence(&mut followed, 1.0);
    let of_family = followed.iter().filter(|metric| metric.is_of_family);
    let autocorrelation = trend::autocorrelation(of_family.map(Followed::before_a_change));
    let tempering = tempering.unwrap_or_else(|| trend::tempering(autocorrelation));
    if tempering < 1.0 {
        give_evidence(&mut followed, tempering);
    }
    let metrics = followed.iter().filter(|metric| metric.is_of_family).count();
    let threshold = settings.threshold();
    let rejected = rejected(&followed, threshold, metrics);
    for place in &rejected {
        followed[*place].open((tempering, threshold * as_float(metrics)));
    }
    let family = Family { metrics, threshold, found: rejected.len(), autocorrelation, tempering };
    let verdicts: Vec<Verdict> = followed.into_iter().map(|metric| metric.verdict(&family)).collect();
    let events = events(system, &verdicts);
    NightVerdicts { night, family, coverage: Coverage::of(&verdicts), verdicts, events }
}

/// Judges nights one after the other; each hands its changes to the next.
pub fn replay(system: &mut System, nights: impl IntoIterator<Item = Night>, settings: &Settings) -> Vec<NightVerdicts> {
    let mut all = Vec::new();
    for night in nights {
        let verdicts = judge(system, night, settings);
        for (metric, verdict) in system.metrics.iter_mut().zip(&verdicts.verdicts) {
            metric.changes.clone_from(&verdict.changes);
        }
        all.push(verdicts);
    }
    all
}

/// What the values of each metric of the family say, with this c.
fn give_evidence(followed: &mut [Followed<'_>], tempering: f64) {
    let measured = followed.iter().filter(|metric| metric.is_still_measured());
    let constants = Constants::of(measured.map(|metric| (metric.last_values(), metric.has_changed())));
    for metric in followed.iter_mut().filter(|metric| metric.is_of_family) {
        let values = metric.oriented();
        metric.evidence = evidence_with(&values, tempering, constants.evidence(&values, tempering));
    }
}

/// The metrics whose evidence is enough, by their places.
fn rejected(followed: &[Followed<'_>], threshold: f64, metrics: usize) -> Vec<usize> {
    let sum = |place: usize| followed[place].evidence.as_ref().map_or(0.0, |evidence| evidence.sum);
    let mut candidates: Vec<usize> =
        (0..followed.len()).filter(|place| sum(*place) >= threshold && followed[*place].is_candidate()).collect();
    candidates.sort_by(|a, b| sum(*b).total_cmp(&sum(*a)));
    let needed = |first: usize| threshold * as_float(metrics) / as_float(first);
    let count = (1..=candidates.len()).rev().find(|first| sum(candidates[first - 1]) >= needed(*first));
    candidates.truncate(count.unwrap_or(0));
    candidates
}

/// A metric while its night is judged.
struct Followed<'a> {
    metric: &'a Metric,
    night: Night,
    annotations: Vec<&'a Remark>,
    min_effect: f64,
    limit: f64,
    changes: Vec<Change>,
    present: Segment,
    value: Option<f64>,
    /// The value of the night is the last of the present segment.
    is_in_segment: bool,
    was_measured_lately: bool,
    is_of_family: bool,
    evidence: Option<Evidence>,
    opened: Option<usize>,
    /// Its case has measured others since, but not this.
    gone_since: Option<Night>,
}

/// A metric that was not measured for so many nights is no longer followed.
const FOLLOWED: i32 = 21;
/// Where the plan of a night is not known, what was measured in so many nights before counts as planned.
const LATELY: i32 = 7;

impl<'a> Followed<'a> {
    fn new(metric: &'a Metric, annotations: &'a [Remark], night: Night, settings: &Settings) -> Self {
        let annotations: Vec<_> = annotations.iter().filter(|annotation| annotation.is_about(&metric.name)).collect();
        let value = value_of(metric, &annotations, night);
        let min_effect = metric.min_effect.unwrap_or(settings.min_effect);
        let mut changes = metric.changes.clone();
        for change in &mut changes {
            change.turn_by(metric.direction);
        }
        take_over(&mut changes, &annotations, night);
        let mut all = segments(metric, &changes, &annotations, night);
        if follow(&mut changes, metric, &all, min_effect, night) {
            all = segments(metric, &changes, &annotations, night);
        }
        let present = all.pop().unwrap_or_default();
        let last = present.nights.last().copied();
        let is_since = |nights: i32| last.is_some_and(|last| night.before(nights) <= last);
        Self {
            metric,
            night,
            annotations,
            min_effect,
            limit: metric.limit.unwrap_or(settings.limit),
            changes,
            value,
            is_in_segment: last == Some(night),
            was_measured_lately: is_since(LATELY),
            is_of_family: present.values.len() > SHORTEST_BASELINE && is_since(FOLLOWED),
            present,
            evidence: None,
            opened: None,
            gone_since: None,
        }
    }

    /// What is measured no more says nothing of the others.
    fn is_still_measured(&self) -> bool {
        self.present.nights.last().is_some_and(|last| self.night.before(FOLLOWED) <= *last)
    }

    /// The values of the present segment that may count.
    fn last_values(&self) -> &[f64] {
        let values = &self.present.values;
        &values[values.len().saturating_sub(LONGEST_BASELINE + STARTS)..]
    }

    /// Whether a change is open or lately over: its nights are not among these values.
    fn has_changed(&self) -> bool {
        let nights = &self.present.nights;
        let first = nights[nights.len() - self.last_values().len()..].first();
        first.is_some_and(|first| self.changes.iter().any(|change| change.holds_back(*first)))
    }

    /// These values, lower ones being worse.
    fn oriented(&self) -> Vec<f64> {
        let last = self.last_values();
        match self.metric.direction {
            Some(Direction::Higher) | None => last.to_vec(),
            Some(Direction::Lower) => last.iter().map(|value| -value).collect(),
        }
    }

    /// The evidence, with places in the present segment.
    fn placed(&self) -> Option<Evidence> {
        let hidden = self.present.values.len().saturating_sub(LONGEST_BASELINE + STARTS);
        let moved = |place: usize| place + hidden;
        self.evidence.clone().map(|evidence| Evidence {
            since: moved(evidence.since),
            since_interval: (moved(evidence.since_interval.0), moved(evidence.since_interval.1)),
            ..evidence
        })
    }

    /// The values that a change, if there is one, has left as they were: a step makes neighbours resemble each other. All values, if
    /// those before the most likely start vary and are too few to say how much.
    fn before_a_change(&self) -> &[f64] {
        let values = &self.present.values[..];
        let before = self.placed().map_or(values, |evidence| &values[..evidence.since]);
        if before.len() >= trend::LEAST_NEIGHBOURS || trend::rank_autocorrelation(before).is_none() { before } else { values }
    }

    /// Whether the metric has a value tonight, and the level moved enough.
    fn is_candidate(&self) -> bool {
        let Some(evidence) = self.placed().filter(|_| self.is_in_segment) else { return false };
        let (before, after) = self.present.values.split_at(evidence.since);
        let before = &before[before.len().saturating_sub(LONGEST_BASELINE)..];
        let change = median(before).zip(median(after)).map(|(before, after)| relative_change(before, after).abs());
        change.is_some_and(|change| change >= self.min_effect)
    }

    /// The evidence was enough, `found_with` this c and A K: a change is opened. One that leads back to an old level is none: what it
    /// takes for an open change to be over, `follow` decides.
    fn open(&mut self, found_with: (f64, f64)) {
        let Some(evidence) = self.placed() else { return };
        let (night, direction, min_effect) = (self.night, self.metric.direction, self.min_effect);
        let change = Change::opened(self.metric, &self.present, &evidence, night, found_with);
        if self.changes.iter().any(|earlier| earlier.is_back_with(&change, min_effect, night)) {
            return;
        }
        // A level that was dismissed is no baseline of the next one.
        for earlier in self.changes.iter_mut().filter(|earlier| earlier.is_followed(night)) {
            if !earlier.is_open() || earlier.is_undone_by(direction, change.after) {
                earlier.end(change.since, ChangeState::Superseded { found: night });
            }
        }
        self.changes.push(change);
        take_over(&mut self.changes, &self.annotations, self.night);
        self.opened = Some(self.changes.len() - 1);
    }

    /// What people say of tonight.
    fn said(&self, kind: RemarkKind) -> Option<&'a Remark> {
        self.annotations.iter().copied().find(|annotation| annotation.kind == kind && annotation.covers(self.night))
    }

    /// Whether a value was to be expected.
    fn is_planned(&self) -> bool {
        if self.said(RemarkKind::Maintenance).is_some() || self.gone_since.is_some() {
            return false;
        }
        match self.metric.plan {
            Plan::Unknown => self.was_measured_lately,
            Plan::Unplanned => false,
            Plan::Run | Plan::Skipped | Plan::Busy | Plan::Absent | Plan::Cordoned => true,
        }
    }

    fn verdict(self, family: &Family) -> Verdict {
        let last = &self.present.values[self.present.values.len().saturating_sub(LONGEST_BASELINE)..];
        let spread = centre_and_sigma(last);
        let smallest_step = spread.and_then(|spread| self.smallest_step(last.len(), spread, family));
        // Of what is not measured any more only a regression is told: nothing has shown that it is over.
        let is_told =
            |change: &Change| change.is_open() && change.is_worse() && !change.is_gone(self.metric.direction, self.min_effect);
        let shown = if self.gone_since.is_none() { self.shown() } else { self.changes.iter().rposition(is_told) };
        let known = self.said(RemarkKind::Known);
        let (mut word, mut reason) = (self.word(shown, smallest_step), None);
        let is_new = shown.is_some_and(|shown| self.is_new(&self.changes[shown]));
        if shown.is_some_and(|shown| self.changes[shown].is_open()) && word != Word::NotMeasured {
            if let Some(annotation) = known {
                (word, reason) = (Word::Known, Some(annotation.reason.clone()));
            } else if self.metric.is_quarantined {
                (word, reason) = (Word::Known, Some("in quarantine".to_owned()));
            }
        }
        if let (Word::TooFewNights, Began::Anew(what), Some(first)) = (word, self.present.began, self.present.nights.first()) {
            reason = Some(format!("since {first} {what} is another: a new baseline"));
        }
        if let Some(maintenance) = self.said(RemarkKind::Maintenance) {
            (word, reason) = (Word::NotMeasured, Some(maintenance.reason.clone()));
        }
        if let Some(since) = self.gone_since {
            let gone = format!("since {since} its case has measured other variables, but not this one");
            (word, reason) = if shown.is_some() { (word, reason.or(Some(gone))) } else { (Word::NotMeasured, Some(gone)) };
        }
        let is_counted = match word {
            Word::NotMeasured if !self.is_planned() => false,
            Word::NotMeasured => known.is_none() && !self.metric.is_quarantined,
            Word::Regressed | Word::Drifting => {
                self.gone_since.is_none() && shown.is_some_and(|shown| self.changes[shown].is_worse())
            }
            Word::Steady
            | Word::Improved
            | Word::Changed
            | Word::Recovered
            | Word::TooFewNights
            | Word::TooNoisy
            | Word::Accepted
            | Word::Known => false,
        };
        Verdict {
            is_planned: self.is_planned(),
            word,
            is_new,
            is_counted,
            value: self.value,
            level: spread.map(|(centre, _)| centre),
            nights: self.present.values.len(),
            began: self.present.began,
            evidence: self.evidence.map_or(0.0, |evidence| evidence.sum),
            smallest_step,
            changes: self.changes,
            shown,
            gone_since: self.gone_since,
            reason,
        }
    }

    fn is_new(&self, change: &Change) -> bool {
        match change.state {
            ChangeState::Open | ChangeState::Accepted { .. } | ChangeState::Dismissed { .. } | ChangeState::Superseded { .. } => {
                change.id.opened == self.night
            }
            ChangeState::Recovered { found, .. } => found == self.night,
        }
    }

    /// The change that the night is about: what happened now, else what is open, else what was accepted lately. An open one is not
    /// told while its levels are no change.
    fn shown(&self) -> Option<usize> {
        let last = |holds: &dyn Fn(&Change) -> bool| self.changes.iter().rposition(holds);
        let is_over = |change: &Change| matches!(change.state, ChangeState::Dismissed { .. } | ChangeState::Superseded { .. });
        let is_told = |change: &Change| !is_over(change) && self.is_new(change);
        let is_accepted =
            |change: &Change| matches!(change.state, ChangeState::Accepted { .. }) && change.since > self.night.before(FOLLOWED);
        let is_there = |change: &Change| change.is_open() && !change.is_gone(self.metric.direction, self.min_effect);
        // Of several that are over the first began at the level that is back.
        self.opened.or_else(|| self.changes.iter().position(is_told)).or_else(|| last(&is_there)).or_else(|| last(&is_accepted))
    }

    fn word(&self, shown: Option<usize>, smallest_step: Option<f64>) -> Word {
        if self.value.is_none() && self.is_planned() {
            return Word::NotMeasured;
        }
        if let Some(change) = shown.map(|shown| &self.changes[shown]) {
            return match change.state {
                ChangeState::Recovered { .. } => Word::Recovered,
                ChangeState::Accepted { .. } => Word::Accepted,
                ChangeState::Open => change.word(),
                ChangeState::Dismissed { .. } | ChangeState::Superseded { .. } => Word::Steady,
            };
        }
        let is_dismissed = |change: &Change| {
            matches!(change.state, ChangeState::Dismissed { .. }) && self.present.began == Began::With(change.id)
        };
        match smallest_step {
            None if self.changes.iter().any(is_dismissed) => Word::Steady,
            None => Word::TooFewNights,
            Some(step) if step > self.limit => Word::TooNoisy,
            Some(_) => Word::Steady,
        }
    }

    /// The smallest step that is found in nine of ten cases within seven nights when it moves alone, by so many last values and their
    /// centre and sigma.
    fn smallest_step(&self, values: usize, (centre, sigma): (f64, f64), family: &Family) -> Option<f64> {
        let sigmas = sigmas_found(values)? + SIGMAS_A_TENFOLD * libm::log10(as_float(family.metrics) / USUAL_FAMILY).max(0.0);
        // Values that resemble their neighbours say c times as much, and what they say grows with the square of the step.
        let step = sigmas * relative_change(centre, centre + sigma) / family.tempering.sqrt();
        Some(step.max(self.min_effect))
    }
}

/// Fewer values are too few to say which steps would be found.
const FEW_NIGHTS: usize = 10;
/// Steps in standard deviations, by values: simulated with one of 200 metrics (`tests/bench/night.sh`).
const SIGMAS_FOUND: [(usize, f64); 3] = [(FEW_NIGHTS, 5.0), (20, 3.0), (40, 2.5)];
const USUAL_FAMILY: f64 = 200.0;
const SIGMAS_A_TENFOLD: f64 = 0.4;

fn sigmas_found(values: usize) -> Option<f64> {
    if values < FEW_NIGHTS {
        return None;
    }
    let between = SIGMAS_FOUND.windows(2).find(|pair| values <= pair[1].0);
    let Some([(few, wide), (many, narrow)]) = between else { return Some(SIGMAS_FOUND[2].1) };
    Some(wide + (narrow - wide) * as_float(values - few) / as_float(many - few))
}

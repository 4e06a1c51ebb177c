//! The arithmetic of one verdict, for people who want to check it.

use crate::night::{
    evidence::{LONGEST_BASELINE, SHORTEST_BASELINE, STARTS, evidence},
    gaps::{self, ALTERNATIVES, Alternative},
    input::{Metric, System},
    judge::Family,
    segment::{Began, segments},
};
use muster_core::{night::Night, query::remarks::RemarkKind, rules::perf::Direction, stats::median};

/// The reason for the value of M, for the most likely start of a change.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The night whose evidence it is.
    pub night: Night,
    /// The present segment without what a change of this night has cut off.
    pub began: Began,
    pub first: Option<Night>,
    pub nights: usize,
    /// The values of the segment that count, the earliest first.
    pub baseline: Vec<(Night, f64)>,
    pub baseline_median: f64,
    /// The values since the most likely start.
    pub steps: Vec<Step>,
    /// The alternative that explains them best.
    pub alternative: Alternative,
    /// ln of its product, before it is weighted.
    pub logarithm: f64,
    /// M, over all starts and alternatives.
    pub evidence: f64,
    /// c of that night, and what a metric needed that moved alone.
    pub tempering: f64,
    pub needed_alone: f64,
    /// Nights whose values annotations leave out.
    pub left_out: Vec<Night>,
}

/// One value since the most likely start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    pub night: Night,
    pub value: f64,
    /// The number of values of the baseline that are worse: the gap into which it falls.
    pub worse: usize,
    /// The number of earlier values since the start that fall there, too.
    pub same: usize,
    /// The factor by which it is more likely with the alternative than without.
    pub factor: f64,
}

/// Explains the evidence for the metric at a place: of tonight, or of the night in which its last open change was found. `None`: too
/// few values.
pub fn explain(system: &System, place: usize, family: &Family, night: Night) -> Option<Explanation> {
    let metric = system.metrics.get(place)?;
    let annotations: Vec<_> = system.annotations.iter().filter(|annotation| annotation.is_about(&metric.name)).collect();
    let (night, changes, tempering, needed_alone) = match metric.changes.split_last() {
        Some((last, earlier)) if last.is_open() => (last.id.opened, earlier, last.tempering, last.needed_alone),
        Some(_) | None => (night, metric.changes.as_slice(), family.tempering, family.needed_alone()),
    };
    let segment = segments(metric, changes, &annotations, night).pop()?;
    let hidden = segment.values.len().saturating_sub(LONGEST_BASELINE + STARTS);
    let values: Vec<f64> = segment.values[hidden..].iter().map(|value| oriented(metric, *value)).collect();
    let evidence = evidence(&values, tempering)?;
    let since = evidence.since;
    let baseline = &values[since.saturating_sub(LONGEST_BASELINE)..since];
    let n = baseline.len();
    let gaps: Vec<usize> = values[since..].iter().map(|value| gap(baseline, *value)).collect();
    let same = |step: usize| gaps[..step].iter().filter(|gap| **gap == gaps[step]).count();
    let factor = |alternative: usize, step: usize| gaps::factor(n, alternative, gaps[step], step, same(step)).unwrap_or(1.0);
    let logarithm = |alternative: usize| (0..gaps.len()).map(|step| libm::log(factor(alternative, step))).sum::<f64>();
    let all = gaps::of_baseline(n)?.alternatives;
    let weighted = |place: usize| all[place].prior * libm::exp(tempering * logarithm(place));
    let best = (0..ALTERNATIVES).max_by(|a, b| weighted(*a).total_cmp(&weighted(*b)))?;
    let at = |place: usize| (segment.nights[hidden + place], segment.values[hidden + place]);
    let step = |step: usize| {
        let (night, value) = at(since + step);
        Step { night, value, worse: gaps[step], same: same(step), factor: factor(best, step) }
    };
    let baseline: Vec<_> = (since - n..since).map(at).collect();
    let is_left_out = |night: Night| annotations.iter().any(|one| one.kind == RemarkKind::Maintenance && one.covers(night));
    debug_assert!(n >= SHORTEST_BASELINE);
    Some(Explanation {
        night,
        began: segment.began,
        first: segment.nights.first().copied(),
        nights: segment.values.len(),
        baseline_median: median(&baseline.iter().map(|(_, value)| *value).collect::<Vec<_>>())?,
        baseline,
        steps: (0..gaps.len()).map(step).collect(),
        alternative: all[best],
        logarithm: logarithm(best),
        evidence: evidence.sum,
        tempering,
        needed_alone,
        left_out: metric.values.iter().map(|value| value.night).filter(|night| is_left_out(*night)).collect(),
    })
}

fn oriented(metric: &Metric, value: f64) -> f64 {
    match metric.direction {
        Some(Direction::Higher) | None => value,
        Some(Direction::Lower) => -value,
    }
}

#[allow(clippy::float_cmp, reason = "a tie is exact equality")]
fn gap(baseline: &[f64], value: f64) -> usize {
    let below = baseline.iter().filter(|other| **other < value).count();
    below + baseline.iter().filter(|other| **other == value).count() / 2
}

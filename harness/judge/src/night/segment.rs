//! The values of a metric that may be compared: those since its last change, or since what is measured has changed.

use crate::night::{
    change::{Change, ChangeId, ChangeState},
    input::{Metric, Value},
};
use muster_core::{
    night::Night,
    query::{
        figures::Basis,
        remarks::{Remark, RemarkKind},
    },
    stats::median_in_place,
};
use std::{
    collections::{BTreeSet, HashMap},
    ops::Bound,
};

/// Values that belong together, in the order of their nights.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Segment {
    pub(super) began: Began,
    pub(super) nights: Vec<Night>,
    pub(super) values: Vec<f64>,
}

/// The reason why a segment begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Began {
    /// Nothing was measured before.
    #[default]
    First,
    /// The measured thing is another: the text says which part of it.
    Anew(&'static str),
    /// A change that is followed or accepted.
    With(ChangeId),
}

/// The segments of a metric with these changes up to a night, at least one. The last is the present one.
pub(super) fn segments(metric: &Metric, changes: &[Change], annotations: &[&Remark], night: Night) -> Vec<Segment> {
    let all = ordered(&metric.values, night);
    // Nearly always the only one.
    let first = Segment { nights: Vec::with_capacity(all.len()), values: Vec::with_capacity(all.len()), ..Segment::default() };
    let mut segments = vec![first];
    let judged = night;
    let mut opened = changes.iter().filter(|change| change.is_level(judged)).peekable();
    let mut previous: Option<(u32, &Basis)> = None;
    for Value { night, value, segment } in all {
        let is_excluded = !value.is_finite()
            || annotations.iter().any(|annotation| annotation.kind == RemarkKind::Maintenance && annotation.covers(night))
            || changes.iter().any(|change| !change.is_level(judged) && change.leaves_out(night));
        if is_excluded {
            continue;
        }
        // Nearly always the same one, whose texts are not compared.
        if previous.is_none_or(|(last, _)| last != segment)
            && let Some(key) = metric.segments.get(segment as usize)
        {
            if let Some(what) = previous.and_then(|(_, previous)| previous.difference(key)) {
                segments.push(Segment { began: Began::Anew(what), ..Segment::default() });
            }
            previous = Some((segment, key));
        }
        while let Some(change) = opened.next_if(|change| change.since <= night) {
            segments.push(Segment { began: Began::With(change.id), ..Segment::default() });
        }
        if let Some(segment) = segments.last_mut() {
            segment.nights.push(night);
            segment.values.push(value);
        }
    }
    segments
}

/// The value of a night, unless an annotation leaves it out: also one that a dismissed change keeps out of the segments.
pub(super) fn value_of(metric: &Metric, annotations: &[&Remark], night: Night) -> Option<f64> {
    let is_left_out = |one: &&Remark| one.kind == RemarkKind::Maintenance && one.covers(night);
    let of_night: Vec<Value> = metric.values.iter().copied().filter(|value| value.night == night).collect();
    let value = ordered(&of_night, night).pop().filter(|value| value.value.is_finite())?;
    (!annotations.iter().any(is_left_out)).then_some(value.value)
}

/// The values up to a night in order, one a night.
fn ordered(values: &[Value], until: Night) -> Vec<Value> {
    let mut values: Vec<Value> = values.iter().copied().filter(|value| value.night <= until).collect();
    // By value, too, so that what arrived first does not count.
    values.sort_by(|a, b| a.night.cmp(&b.night).then(a.segment.cmp(&b.segment)).then(a.value.total_cmp(&b.value)));
    if values.windows(2).all(|pair| pair[0].night < pair[1].night) {
        return values;
    }
    let of_night = |same: &[Value]| {
        let last = same.last().copied()?;
        // Of two segments in one night, the later is what is measured from now on.
        let comparable = same.iter().filter(|value| value.segment == last.segment && value.value.is_finite());
        let mut all: Vec<f64> = comparable.map(|value| value.value).collect();
        Some(Value { value: median_in_place(&mut all).unwrap_or(f64::NAN), ..last })
    };
    values.chunk_by(|a, b| a.night == b.night).filter_map(of_night).collect()
}

impl Change {
    /// Whether the values since form a segment of their own in the judged night.
    fn is_level(&self, judged: Night) -> bool {
        match self.state {
            ChangeState::Open | ChangeState::Accepted { .. } | ChangeState::Superseded { .. } => true,
            ChangeState::Dismissed { .. } => self.is_followed(judged),
            ChangeState::Recovered { .. } => false,
        }
    }

    /// Whether a value of this night belongs to no segment: the metric was elsewhere, and came back.
    fn leaves_out(&self, night: Night) -> bool {
        match self.state {
            ChangeState::Open | ChangeState::Accepted { .. } | ChangeState::Superseded { .. } => false,
            ChangeState::Recovered { since: back, .. } => self.since <= night && night < back,
            ChangeState::Dismissed { until, .. } => self.since <= night && night <= until,
        }
    }
}

/// The metrics that their cases do not measure any more, by place, each with the first night in which others of its case were
/// measured without it, if that was `before` or earlier: a variable was renamed, or removed from its check.
pub(super) fn gone(metrics: &[Metric], night: Night, before: Night) -> Vec<(usize, Night)> {
    let last = |metric: &Metric| nights_of(metric, night).max().filter(|last| *last < before);
    let missing: Vec<(usize, Night)> =
        metrics.iter().enumerate().filter_map(|(place, metric)| Some((place, last(metric)?))).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let case = |metric: &Metric| [&metric.name.partition, &metric.name.environ, &metric.name.case].map(Clone::clone);
    let mut of_case: HashMap<_, BTreeSet<Night>> =
        missing.iter().map(|(place, _)| (case(&metrics[*place]), BTreeSet::new())).collect();
    for metric in metrics {
        if let Some(all) = of_case.get_mut(&case(metric)) {
            all.extend(nights_of(metric, night));
        }
    }
    let since = |(place, last): (usize, Night)| {
        let mut later = of_case.get(&case(&metrics[place]))?.range((Bound::Excluded(last), Bound::Unbounded));
        later.next().filter(|first| **first <= before).map(|first| (place, *first))
    };
    missing.into_iter().filter_map(since).collect()
}

/// The nights up to one in which it was measured.
fn nights_of(metric: &Metric, until: Night) -> impl Iterator<Item = Night> {
    metric.values.iter().map(|value| value.night).filter(move |night| *night <= until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::night::change::tests::change;

    fn metric(values: &[(i32, f64, u32)]) -> Metric {
        let key = |check: &str, unit: &str| Basis { check_hash: check.into(), unit: unit.into(), ..Basis::default() };
        Metric {
            values: values
                .iter()
                .map(|(night, value, segment)| Value { night: Night(*night), value: *value, segment: *segment })
                .collect(),
            segments: vec![key("a", "GB/s"), key("b", "GB/s"), key("b", "MB/s"), key("", "MB/s"), key("b", "")],
            ..Metric::default()
        }
    }

    fn values(segments: &[Segment]) -> Vec<(Began, Vec<f64>)> {
        segments.iter().map(|segment| (segment.began, segment.values.clone())).collect()
    }

    #[test]
    fn the_order_in_which_values_arrive_does_not_count() {
        let clean = metric(&[(1, 1.0, 0), (2, 2.0, 0), (3, 3.5, 0)]);
        let arrived = metric(&[(3, 3.0, 0), (1, 1.0, 0), (3, 4.0, 0), (9, 9.0, 0), (2, 2.0, 0)]);
        assert_eq!(segments(&clean, &[], &[], Night(3)), segments(&arrived, &[], &[], Night(3)));
    }

    #[test]
    fn another_check_or_unit_begins_anew() {
        let metric = metric(&[(1, 1.0, 0), (2, 2.0, 1), (3, 3.0, 1), (4, 4.0, 2)]);
        let expected =
            [(Began::First, vec![1.0]), (Began::Anew("the check"), vec![2.0, 3.0]), (Began::Anew("the unit"), vec![4.0])];
        assert_eq!(values(&segments(&metric, &[], &[], Night(9))), expected);
    }

    #[test]
    fn a_digest_that_is_not_known_is_no_difference_and_a_unit_that_appears_is_one() {
        let of = |metric: Metric| values(&segments(&metric, &[], &[], Night(9)));
        assert_eq!(of(metric(&[(1, 1.0, 2), (2, 2.0, 3)])), [(Began::First, vec![1.0, 2.0])]);
        let expected = [(Began::First, vec![1.0]), (Began::Anew("the unit"), vec![2.0])];
        assert_eq!(of(metric(&[(1, 1.0, 4), (2, 2.0, 2)])), expected);
        assert_eq!(of(metric(&[(1, 1.0, 2), (2, 2.0, 4)])), expected);
    }

    #[test]
    fn maintenance_and_what_is_no_number_are_left_out() {
        let metric = metric(&[(1, 1.0, 0), (2, 2.0, 0), (3, f64::NAN, 0), (4, f64::INFINITY, 0), (5, 5.0, 0)]);
        let (kind, from, until) = (RemarkKind::Maintenance, Night(2), Some(Night(2)));
        let annotation = Remark { kind, from, until, ..Remark::default() };
        assert_eq!(values(&segments(&metric, &[], &[&annotation], Night(9))), [(Began::First, vec![1.0, 5.0])]);
    }

    #[test]
    fn a_change_begins_a_segment_until_it_has_gone_back() {
        let mut metric = metric(&[(1, 1.0, 0), (2, 0.5, 0), (3, 0.4, 0), (4, 1.1, 0)]);
        let mut change = change(Night(2));
        metric.changes = vec![change.clone()];
        let of = |metric: &Metric| values(&segments(metric, &metric.changes, &[], Night(9)));
        let opened = [(Began::First, vec![1.0]), (Began::With(change.id), vec![0.5, 0.4, 1.1])];
        assert_eq!(of(&metric), opened);
        change.state = ChangeState::Recovered { since: Night(4), found: Night(6) };
        metric.changes = vec![change.clone()];
        assert_eq!(of(&metric), [(Began::First, vec![1.0, 1.1])]);
        change.state = ChangeState::Dismissed { until: Night(2), found: Night(2) };
        metric.changes = vec![change];
        assert_eq!(of(&metric), [(Began::First, vec![1.0, 0.4, 1.1])]);
    }
}

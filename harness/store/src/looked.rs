//! A system as a night looks at it: which values of a metric are needed, which are known, and what the next night is given.

use crate::series::{Packed, Series, TOGETHER};
use muster_core::query::figures::Basis;
use muster_judge::night::{LOOKED_AT, Metric, Night, Remark, RemarkKind, System, Value};
use std::collections::HashMap;

/// So many nights have the values that a night looks at, of a metric that is measured in most nights.
pub(crate) const WINDOW: i32 = 100;

/// A system as a night looks at it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Looked {
    pub system: System,
    /// Of each metric.
    pub(crate) known: Vec<Known>,
    /// The first night of the window.
    pub(crate) start: Night,
}

/// What is known of a metric.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Known {
    /// No value is missing since this night.
    pub(crate) since: Night,
    /// The numbers of its segments.
    pub(crate) bases: Vec<i64>,
}

impl Known {
    /// Adds a value of a basis to the metric.
    pub(crate) fn add(&mut self, metric: &mut Metric, keys: &HashMap<i64, Basis>, (night, value, basis): (Night, f64, i64)) {
        let segment = self.bases.iter().position(|known| *known == basis).unwrap_or_else(|| {
            self.bases.push(basis);
            metric.segments.push(keys.get(&basis).cloned().unwrap_or_default());
            self.bases.len() - 1
        });
        metric.values.push(Value { night, value, segment: u32::try_from(segment).unwrap_or_default() });
    }
}

impl Looked {
    /// Metrics that nobody has measured in the window are none of the system any more.
    pub(crate) fn drop_unmeasured(&mut self) {
        let start = self.start;
        let is_kept = |metric: &Metric| metric.values.iter().any(|value| value.night >= start);
        let mut kept = self.system.metrics.iter().map(is_kept);
        self.known.retain(|_| kept.next().unwrap_or_default());
        self.system.metrics.retain(is_kept);
    }

    /// For each metric the night since which its values are needed.
    pub(crate) fn needed(&self, first: Night) -> Vec<Night> {
        self.system.metrics.iter().map(|metric| needed(metric, &self.system.annotations, self.start, first)).collect()
    }

    pub(crate) fn drop_unneeded(&mut self, first: Night) {
        let needed = self.needed(first);
        for ((metric, known), from) in self.system.metrics.iter_mut().zip(&mut self.known).zip(needed) {
            if known.since < from {
                metric.values.retain(|value| value.night >= from);
                known.since = from;
            }
        }
    }

    /// What it has of nights up to one, for the night after it, in parts of which none takes much memory.
    pub(crate) fn packed(&self, until: Night) -> impl Iterator<Item = Vec<u8>> {
        let parts = self.system.metrics.chunks(TOGETHER).zip(self.known.chunks(TOGETHER));
        parts.map(move |(metrics, known)| {
            let mut packed = Packed::new(self.start);
            for (metric, known) in metrics.iter().zip(known) {
                packed.add(metric.id, &series(metric, known, until));
            }
            packed.into_bytes()
        })
    }
}

/// What is known of a metric up to a night, with the bases of these values alone, as they would be read from history.
fn series(metric: &Metric, known: &Known, until: Night) -> Series {
    let mut used: Vec<i64> = Vec::with_capacity(known.bases.len());
    let value = |value: &Value| {
        let basis = *known.bases.get(value.segment as usize)?;
        let place = used.iter().position(|known| *known == basis).unwrap_or_else(|| {
            used.push(basis);
            used.len() - 1
        });
        Some(Value { segment: u32::try_from(place).ok()?, ..*value })
    };
    let values = metric.values.iter().filter(|value| value.night <= until).filter_map(value).collect();
    Series { since: known.since, bases: used, values }
}

/// The night since which the values of a metric are needed by a night that looks at the last [`LOOKED_AT`] before it, or before a
/// change that it compares with. `Night::MIN`: all, as far as is known.
fn needed(metric: &Metric, annotations: &[Remark], start: Night, first: Night) -> Night {
    let holds_back = metric.changes.iter().filter(|change| change.holds_back(start)).map(|change| change.since).min();
    let before = holds_back.map_or(first, |since| since.min(first));
    let is_left_out = |night: Night| {
        let is_so = |one: &Remark| one.kind == RemarkKind::Maintenance && one.covers(night) && one.is_about(&metric.name);
        annotations.iter().any(is_so)
    };
    let counts = |value: &&Value| value.night < before && value.value.is_finite() && !is_left_out(value.night);
    let mut usable: Vec<Night> = metric.values.iter().filter(counts).map(|value| value.night).collect();
    usable.sort_unstable();
    let last = usable.len().checked_sub(LOOKED_AT).map(|place| usable[place]);
    last.map_or(Night::MIN, |last| last.min(before.before(WINDOW)))
}

/// Gives metrics the values that were kept for them. Returns the others.
pub(crate) fn unpack(
    mut packed: HashMap<i64, Series>,
    (metrics, known): (&mut [Metric], &mut [Known]),
    keys: &HashMap<i64, Basis>,
) -> Vec<i64> {
    let mut others = Vec::new();
    for (metric, known) in metrics.iter_mut().zip(known) {
        let Some(Series { since, bases, values }) = packed.remove(&metric.id) else {
            others.push(metric.id);
            continue;
        };
        metric.segments = bases.iter().map(|basis| keys.get(basis).cloned().unwrap_or_default()).collect();
        metric.values = values;
        *known = Known { since, bases };
    }
    others
}

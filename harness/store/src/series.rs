//! The figures that a judged night has looked at, many in one value: the next night looks at nearly the same, and a row of an answer for
//! each of them would cost more than judging them. Whatever changes history removes them with the verdicts
//! ([`crate::write::history::forget`]), so they are what `night_figure` has.
//!
//! ```text
//! value    form, since, metric..             of some metrics: all at once would be in memory several times
//! metric   id, since, bases, count, run..    `count` values in all of its runs
//! run      length, night, segment, value..   one value for each of the nights from this one on
//! ```

use muster_judge::night::{Night, Value};
use std::collections::HashMap;

/// Of another form nothing is read.
const FORM: u8 = 2;

/// So many metrics are in one value.
pub(crate) const TOGETHER: usize = 256;

/// The values of a metric, of which none is missing since a night. The segment of a value is the place of its basis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) since: Night,
    pub(crate) bases: Vec<i64>,
    pub(crate) values: Vec<Value>,
}

/// The series of all metrics that have one.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct AllSeries {
    /// The night since which at least values were looked at.
    pub(crate) since: Night,
    pub(crate) by_metric: HashMap<i64, Series>,
}

/// Series of metrics, as they are stored.
pub(crate) struct Packed(Vec<u8>);

impl Packed {
    /// `since`: the night since which at least values were looked at.
    pub(crate) fn new(since: Night) -> Self {
        let mut bytes = vec![FORM];
        bytes.extend(since.0.to_le_bytes());
        Self(bytes)
    }

    pub(crate) fn add(&mut self, metric: i64, Series { since, bases, values }: &Series) {
        let bytes = &mut self.0;
        bytes.extend(metric.to_le_bytes());
        bytes.extend(since.0.to_le_bytes());
        bytes.extend(length(bases));
        bytes.extend(bases.iter().flat_map(|basis| basis.to_le_bytes()));
        bytes.extend(length(values));
        let follows = |one: &Value, next: &Value| one.segment == next.segment && one.night == next.night.before(1);
        for run in values.chunk_by(follows) {
            bytes.extend(length(run));
            bytes.extend(run[0].night.0.to_le_bytes());
            bytes.extend(run[0].segment.to_le_bytes());
            bytes.extend(run.iter().flat_map(|value| value.value.to_le_bytes()));
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Nobody has 2^32 nights.
fn length<T>(list: &[T]) -> [u8; 4] {
    u32::try_from(list.len()).unwrap_or_default().to_le_bytes()
}

impl AllSeries {
    /// Adds what one value has. `None`: another version has written it, or it is cut within a metric.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Option<()> {
        let mut rest = Rest(bytes);
        let [FORM] = rest.next()? else { return None };
        self.since = rest.night()?;
        while !rest.0.is_empty() {
            let metric = i64::from_le_bytes(rest.next()?);
            self.by_metric.insert(metric, rest.series()?);
        }
        Some(())
    }

    /// With the series of other metrics, of the same night.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.by_metric.extend(others.by_metric);
        self
    }
}

/// What has not been read.
struct Rest<'b>(&'b [u8]);

impl Rest<'_> {
    fn next<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (next, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*next)
    }

    fn night(&mut self) -> Option<Night> {
        self.next().map(i32::from_le_bytes).map(Night)
    }

    /// How many things of eight bytes follow, at least.
    fn length(&mut self) -> Option<usize> {
        let length = usize::try_from(u32::from_le_bytes(self.next()?)).ok()?;
        (length <= self.0.len() / 8).then_some(length)
    }

    fn series(&mut self) -> Option<Series> {
        let since = self.night()?;
        let bases: Vec<i64> = (0..self.length()?).map(|_| self.next().map(i64::from_le_bytes)).collect::<Option<_>>()?;
        let count = self.length()?;
        // The value of the night that is judged is added.
        let mut values = Vec::with_capacity(count + 1);
        while values.len() < count {
            let (length, first, segment) = (self.length()?, self.night()?, u32::from_le_bytes(self.next()?));
            if length == 0 || length > count - values.len() || bases.len() <= segment as usize {
                return None;
            }
            let (run, rest) = self.0.split_at_checked(8 * length)?;
            let (run, _) = run.as_chunks();
            let value = |(later, bytes): (i32, &[u8; 8])| {
                let night = Night(first.0.wrapping_add(later));
                Value { night, value: f64::from_le_bytes(*bytes), segment }
            };
            values.extend((0..).zip(run).map(value));
            self.0 = rest;
        }
        Some(Series { since, bases, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> AllSeries {
        let value = |night, value, segment| Value { night: Night(night), value, segment };
        let values = vec![
            value(-3, f64::MIN_POSITIVE, 1),
            value(20_781, 0.1 + 0.2, 0),
            value(20_782, f64::INFINITY, 0),
            value(20_783, 1.0, 1),
            value(20_783, 2.0, 1),
            value(20_780, 3.0, 1),
            value(i32::MAX, 4.0, 1),
        ];
        let one = Series { since: Night::MIN, bases: vec![7, i64::MAX], values };
        let none = Series { since: Night(5), bases: Vec::new(), values: Vec::new() };
        AllSeries { since: Night(20_681), by_metric: HashMap::from([(17, one), (i64::MAX, none)]) }
    }

    fn packed(all: &AllSeries) -> Vec<u8> {
        let mut packed = Packed::new(all.since);
        all.by_metric.iter().for_each(|(metric, series)| packed.add(*metric, series));
        packed.into_bytes()
    }

    fn read(bytes: &[u8]) -> Option<AllSeries> {
        let mut all = AllSeries::default();
        all.add(bytes).map(|()| all)
    }

    #[test]
    fn what_is_written_is_read_bit_by_bit() {
        assert_eq!(read(&packed(&example())), Some(example()));
        assert_eq!(read(&packed(&AllSeries::default())), Some(AllSeries::default()));
    }

    #[test]
    fn a_value_of_a_night_takes_eight_bytes() {
        let values = (0..100).map(|night| Value { night: Night(night), value: 0.5, segment: 0 }).collect();
        let series = Series { since: Night(0), bases: vec![1], values };
        let all = AllSeries { since: Night(0), by_metric: HashMap::from([(1, series)]) };
        assert!(packed(&all).len() < 8 * 100 + 50, "{}", packed(&all).len());
    }

    #[test]
    fn what_is_cut_or_of_another_form_is_not_read() {
        let whole = packed(&example());
        // Between two metrics it could end; the store has the length.
        let ends: Vec<usize> = (0..whole.len()).filter(|end| read(&whole[..*end]).is_some()).collect();
        assert!(ends.len() <= 2, "{ends:?}");
        assert_eq!(read(&[&[1], &whole[1..]].concat()), None);
    }
}

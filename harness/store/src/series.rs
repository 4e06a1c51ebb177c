//! The figures that a judged night has looked at, in one value: the next night looks at nearly the same, and a row of an answer for
//! each of them would cost more than judging them. Whatever changes history removes them with the verdicts
//! ([`crate::write::history::forget`]), so they are what `night_figure` has.

use muster_judge::night::{Night, Value};
use std::collections::HashMap;

/// Of another form nothing is read.
const FORM: u8 = 1;

/// The values of a metric, of which none is missing since a night. The segment of a value is the number of its basis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) since: Night,
    pub(crate) values: Vec<Value>,
}

/// The series of all metrics that have one.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct AllSeries {
    /// The night since which at least values were looked at.
    pub(crate) since: Night,
    pub(crate) by_metric: HashMap<i64, Series>,
}

impl AllSeries {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let values: usize = self.by_metric.values().map(|series| series.values.len()).sum();
        let mut bytes = Vec::with_capacity(16 * (values + self.by_metric.len() + 1));
        bytes.push(FORM);
        bytes.extend(self.since.0.to_le_bytes());
        for (metric, Series { since, values }) in &self.by_metric {
            bytes.extend(metric.to_le_bytes());
            bytes.extend(since.0.to_le_bytes());
            // Nobody has 2^32 nights.
            bytes.extend(u32::try_from(values.len()).unwrap_or_default().to_le_bytes());
            for Value { night, value, segment } in values {
                bytes.extend(night.0.to_le_bytes());
                bytes.extend(segment.to_le_bytes());
                bytes.extend(value.to_le_bytes());
            }
        }
        bytes
    }

    /// `None`: another version has written it, or it is cut within a metric.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let [FORM] = rest.next()? else { return None };
        let mut all = Self { since: rest.night()?, by_metric: HashMap::new() };
        while !rest.0.is_empty() {
            let (metric, since, count) = (i64::from_le_bytes(rest.next()?), rest.night()?, u32::from_le_bytes(rest.next()?));
            let value = |_| {
                let (night, segment) = (rest.night()?, u32::from_le_bytes(rest.next()?));
                Some(Value { night, value: f64::from_le_bytes(rest.next()?), segment })
            };
            let values = (0..count).map(value).collect::<Option<_>>()?;
            all.by_metric.insert(metric, Series { since, values });
        }
        Some(all)
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> AllSeries {
        let value = |night, value| Value { night: Night(night), value, segment: 7 };
        let values = vec![value(-3, f64::MIN_POSITIVE), value(20_781, 0.1 + 0.2), value(20_782, f64::INFINITY)];
        let one = Series { since: Night(i32::MIN), values };
        let none = Series { since: Night(5), values: Vec::new() };
        AllSeries { since: Night(20_681), by_metric: HashMap::from([(17, one), (i64::MAX, none)]) }
    }

    #[test]
    fn what_is_written_is_read_bit_by_bit() {
        assert_eq!(AllSeries::from_bytes(&example().to_bytes()), Some(example()));
        assert_eq!(AllSeries::from_bytes(&AllSeries::default().to_bytes()), Some(AllSeries::default()));
    }

    #[test]
    fn what_is_cut_or_of_another_form_is_not_read() {
        let whole = example().to_bytes();
        // Between two metrics it could end; the store has the length.
        let ends: Vec<usize> = (0..whole.len()).filter(|end| AllSeries::from_bytes(&whole[..*end]).is_some()).collect();
        assert!(ends.len() <= 2, "{ends:?}");
        assert_eq!(AllSeries::from_bytes(&[&[2], &whole[1..]].concat()), None);
    }
}

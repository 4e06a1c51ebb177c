//! Values to rows, and nights to columns.

use muster_core::night::Night;

/// Maps values from `low` to `high` to rows, the highest first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) count: usize,
}

impl Rows {
    /// For these values; a little room if they are all the same.
    pub(super) fn over(values: impl Iterator<Item = f64>, count: usize) -> Option<Self> {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            return None;
        }
        let room = if low < high { 0.0 } else { (low.abs() * 0.01).max(f64::MIN_POSITIVE) };
        Some(Self { low: low - room, high: high + room, count })
    }

    /// The row of a value; `None`: it lies outside.
    pub(super) fn of(self, value: f64) -> Option<usize> {
        // Halves: the difference of two large numbers may be infinite.
        let share = (self.high / 2.0 - value / 2.0) / (self.high / 2.0 - self.low / 2.0);
        let last = self.count.checked_sub(1)?;
        (0.0..=1.0).contains(&share).then(|| place(share, last))
    }

    /// The value in the middle of a row.
    pub(super) fn value(self, row: usize) -> f64 {
        let last = self.count.saturating_sub(1).max(1);
        let share = share_of(row, last);
        self.high * (1.0 - share) + self.low * share
    }
}

/// The column of a night among `count` of them.
pub(super) fn column(night: Night, first: Night, last: Night, count: usize) -> usize {
    let whole = u32::try_from(last.days() - first.days()).unwrap_or(u32::MAX);
    let part = u32::try_from((night.days() - first.days()).max(0)).unwrap_or(u32::MAX).min(whole);
    if whole == 0 { 0 } else { place(f64::from(part) / f64::from(whole), count.saturating_sub(1)) }
}

/// The nearest of the places 0 to `last` to a share of the way.
fn place(share: f64, last: usize) -> usize {
    let last = u32::try_from(last).unwrap_or(u32::MAX);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and a u32")]
    let place = (share.clamp(0.0, 1.0) * f64::from(last)).round() as u32;
    place as usize
}

fn share_of(part: usize, whole: usize) -> f64 {
    let of = |count| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    of(part) / of(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_rows_from_the_top() {
        let rows = Rows::over([10.0, 20.0, f64::NAN].into_iter(), 11).expect("values");
        assert_eq!([20.0, 15.0, 10.0, 9.0, 21.0].map(|value| rows.of(value)), [Some(0), Some(5), Some(10), None, None]);
        assert!((rows.value(5) - 15.0).abs() < 1e-9);
        assert!(Rows::over([f64::NAN].into_iter(), 3).is_none());
        let same = Rows::over([5.0].into_iter(), 3).expect("a value");
        assert_eq!(same.of(5.0), Some(1));
        let wide = Rows::over([f64::MIN, f64::MAX].into_iter(), 3).expect("values");
        assert_eq!((wide.of(f64::MAX), wide.of(0.0), wide.of(f64::MIN)), (Some(0), Some(1), Some(2)));
    }

    #[test]
    fn nights_have_columns() {
        assert_eq!([100, 150, 200, 300].map(|night| column(Night(night), Night(100), Night(200), 11)), [0, 5, 10, 10]);
        assert_eq!((column(Night(7), Night(7), Night(7), 11), column(Night(7), Night(7), Night(7), 0)), (0, 0));
    }
}

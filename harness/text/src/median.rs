//! The value in the middle.

/// Returns the median of numbers, none of them NaN; of an even number the mean of the two in the middle, `None` of none. Reorders them.
pub fn median_in_place(values: &mut [f64]) -> Option<f64> {
    let (middle, is_odd) = (values.len() / 2, values.len() % 2 == 1);
    if values.is_empty() {
        return None;
    }
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if is_odd {
        return Some(*upper);
    }
    below.iter().copied().max_by(f64::total_cmp).map(|lower| lower.midpoint(*upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        const LARGE: f64 = f64::MAX;
        let rows: [(&[f64], Option<f64>); 8] = [
            (&[], None),
            (&[3.0], Some(3.0)),
            (&[4.0, 1.0], Some(2.5)),
            (&[9.0, 1.0, 2.0], Some(2.0)),
            (&[9.0, 1.0, 2.0, 4.0], Some(3.0)),
            (&[1.0, 1.0, 1.0, 7.0], Some(1.0)),
            // Their sum is infinite.
            (&[LARGE, LARGE], Some(LARGE)),
            (&[f64::NEG_INFINITY, 5.0, f64::INFINITY], Some(5.0)),
        ];
        for (values, expected) in rows {
            assert_eq!(median_in_place(&mut values.to_vec()), expected, "{values:?}");
        }
    }
}

//! A figure beside its reference, as a bullet chart: a bar from 0 to the value, the band of what passes under it, a
//! tick at the reference. All of it is numbers; the template draws.

use muster_core::rules::perf::Measurement;
use serde::Serialize;

/// Units of the drawing from its left to its right edge.
const WIDTH: f64 = 200.0;
/// A bar of nothing is still to be seen.
const LEAST: f64 = 1.0;

/// Where things are, from the left edge.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Bar {
    /// The bar: left edge and width.
    x: f64,
    width: f64,
    /// Where the value is: the bar's end that is not 0.
    value: f64,
    /// What passes: left edge and width.
    band_x: f64,
    band_width: f64,
    reference: f64,
}

impl Bar {
    /// `None` where there is no reference, or nothing that can be drawn.
    pub(super) fn of(figure: &Measurement) -> Option<Self> {
        let bounds = figure.bounds?;
        let points = [Some(figure.value), Some(bounds.reference), bounds.lower, bounds.upper];
        let points = points.into_iter().flatten();
        if !(figure.value.is_finite() && bounds.reference.is_finite()) {
            return None;
        }
        let (low, high) = points
            .filter(|point| point.is_finite())
            .fold((0.0_f64, 0.0_f64), |(low, high), point| (low.min(point), high.max(point)));
        // Room after the last mark, on the side away from 0.
        let (low, high) = (low * 1.06, high * 1.06);
        let range = high - low;
        if !(range.is_finite() && range > 0.0) {
            return None;
        }
        let place = |point: f64| rounded((point - low) / range * WIDTH);
        let (zero, value) = (place(0.0), place(figure.value));
        let edge = |bound: Option<f64>, open: f64| bound.filter(|bound| bound.is_finite()).map_or(open, place);
        let (from, to) = (edge(bounds.lower, 0.0), edge(bounds.upper, WIDTH));
        Some(Self {
            x: zero.min(value),
            width: rounded((zero - value).abs()).max(LEAST),
            value,
            band_x: from,
            band_width: rounded(to - from).max(LEAST),
            reference: place(bounds.reference),
        })
    }
}

fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::rules::perf::{Bounds, Verdict};
    use proptest::prelude::*;

    fn figure(value: f64, reference: f64, lower: Option<f64>, upper: Option<f64>) -> Measurement {
        Measurement {
            variable: "x".to_owned(),
            key: None,
            section: None,
            node: None,
            value,
            unit: String::new(),
            bounds: Some(Bounds { reference, lower, upper }),
            verdict: Verdict::None,
            direction: None,
        }
    }

    #[test]
    fn a_bar_begins_at_nothing() {
        let bar = Bar::of(&figure(50.0, 100.0, Some(90.0), None)).unwrap();
        assert_eq!(bar, Bar { x: 0.0, width: 94.3, value: 94.3, band_x: 169.8, band_width: 30.2, reference: 188.7 });
        let negative = Bar::of(&figure(-50.0, -100.0, Some(-110.0), Some(-90.0))).unwrap();
        assert_eq!((negative.x + negative.width, negative.value), (200.0, negative.x), "it grows to the left");
    }

    #[test]
    fn what_cannot_be_drawn_is_not() {
        for (value, reference) in [(f64::NAN, 1.0), (f64::INFINITY, 1.0), (1.0, f64::INFINITY), (0.0, 0.0), (f64::MAX, -f64::MAX)]
        {
            assert_eq!(Bar::of(&figure(value, reference, None, None)), None);
        }
        assert_eq!(Bar::of(&Measurement { bounds: None, ..figure(1.0, 1.0, None, None) }), None);
    }

    proptest! {
        #[test]
        fn nothing_is_drawn_outside(value in -1e9..1e9_f64, reference in -1e9..1e9_f64, low in 0.0..1e3_f64, high in 0.0..1e3_f64) {
            let of = figure(value, reference, Some(reference - low), Some(reference + high));
            if let Some(bar) = Bar::of(&of) {
                for (x, width) in [(bar.x, bar.width), (bar.band_x, bar.band_width), (bar.value, 0.0), (bar.reference, 0.0)] {
                    prop_assert!(x >= 0.0 && x + width <= WIDTH + LEAST, "{bar:?}");
                }
            }
        }
    }
}

//! References: whatever passes validation has bounds around its value, in order, and its warning band lies within them.

#![no_main]

use libfuzzer_sys::{arbitrary, fuzz_target};
use muster_core::rules::reference::Reference;

#[derive(Debug, arbitrary::Arbitrary)]
struct Written {
    value: f64,
    lower: Option<f64>,
    upper: Option<f64>,
    warn: Option<(Option<f64>, Option<f64>)>,
}

fuzz_target!(|written: Written| {
    let Written { value, lower, upper, warn } = written;
    let reference = Reference { value, lower, upper, unit: None, warn, xfail: None };
    if reference.validate("s").is_err() {
        return;
    }
    let bounds = reference.bounds();
    let (low, high) = (bounds.lower.unwrap_or(f64::NEG_INFINITY), bounds.upper.unwrap_or(f64::INFINITY));
    assert!(low <= value && value <= high, "{reference:?} {bounds:?}");
    if let Some(warn) = reference.warn_bounds() {
        assert!(warn.lower.unwrap_or(f64::NEG_INFINITY) >= low, "{reference:?}");
        assert!(warn.upper.unwrap_or(f64::INFINITY) <= high, "{reference:?}");
    }
});

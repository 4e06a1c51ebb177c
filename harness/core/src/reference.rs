//! References: what a figure should be, and by how much it may miss. The arithmetic is ReFrame's.

use serde::{Deserialize, Serialize};

/// A reference that applies to the case at hand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceRow {
    /// The variable.
    pub variable: String,
    /// `None` for a plain variable; a key, or `*` for every key that has no row of its own.
    pub key: Option<String>,
    /// The reference.
    pub reference: Reference,
}

/// `[value, lower, upper, unit]`, or the same as a mapping with `warn` and `xfail`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// The expected value.
    pub value: f64,
    /// A fraction of the value, at most 0; absolute if the value is 0; `None`: open.
    pub lower: Option<f64>,
    /// A fraction of the value, at least 0; absolute if the value is 0; `None`: open.
    pub upper: Option<f64>,
    /// Its unit, which must be the variable's.
    pub unit: Option<String>,
    /// A narrower band, as `[lower, upper]`: outside it but inside the bounds is a warning.
    pub warn: Option<(Option<f64>, Option<f64>)>,
    /// A miss is expected, and why.
    pub xfail: Option<String>,
}

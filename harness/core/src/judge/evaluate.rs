//! The border to expressions: `assert` and `value:` see the text, the facts of the case and the figures before them.

use crate::{rules::Rules, stdout::Stdout};

/// What expressions see.
pub(super) struct Evaluator {
    figures: Vec<(String, f64)>,
}

impl Evaluator {
    pub(super) fn new(_rules: &Rules, _stdout: &Stdout) -> Self {
        Self { figures: Vec::new() }
    }

    /// Lets the expressions that follow see a figure as `perf["label"]`.
    pub(super) fn learn(&mut self, label: String, figure: f64) {
        self.figures.push((label, figure));
    }

    pub(super) fn is_true(&self, _expression: &str) -> Result<bool, String> {
        Err("expressions are not built yet".to_owned())
    }

    pub(super) fn figure(&self, _expression: &str) -> Result<f64, String> {
        Err("expressions are not built yet".to_owned())
    }
}

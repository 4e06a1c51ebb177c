//! The border to expressions: `assert` and `value:` see the text, the facts of the case and the figures read so far.

use super::words::quote;
use crate::{job::stdout::Stdout, rules::Rules};
use muster_text::expr::{Arithmetic, Effort, Expr, ExprError, Scope, Unequal};
use std::sync::Arc;

/// What expressions see.
pub(super) struct Evaluator {
    facts: Arc<Scope>,
    figures: Vec<(String, f64)>,
}

impl Evaluator {
    pub(super) fn new(rules: &Rules, effort: &Arc<Effort>) -> Self {
        let mut facts = Scope::new();
        facts.set_effort(Arc::clone(effort));
        for (name, value) in &rules.facts {
            facts.set(name.as_str(), value.clone());
        }
        for (name, key) in &rules.missing {
            facts.set_missing(name.as_str(), key.clone());
        }
        Self { facts: Arc::new(facts), figures: Vec::new() }
    }

    /// Lets the expressions that follow see a figure as `perf["label"]`.
    pub(super) fn learn(&mut self, label: String, figure: f64) {
        self.figures.push((label, figure));
    }

    pub(super) fn is_true(&self, expression: &str, text: &Stdout) -> Result<bool, ExprError> {
        Expr::compile(expression, Arithmetic::Doubles)?.eval_bool(&self.scope(text))
    }

    /// Why an expression that is false is: `: VALUE < VALUE in PART`, or nothing.
    pub(super) fn why_false(&self, expression: &str, text: &Stdout) -> String {
        let why = Expr::compile(expression, Arithmetic::Doubles).ok().and_then(|expr| expr.why_false(&self.scope(text)));
        why.map_or_else(String::new, |Unequal { values, at }| match expression.get(at) {
            Some(part) if part.trim() != expression.trim() => format!(": {values} in {}", quote(part)),
            _ => format!(": {values}"),
        })
    }

    pub(super) fn figure(&self, expression: &str, text: &Stdout) -> Result<f64, ExprError> {
        Expr::compile(expression, Arithmetic::Doubles)?.eval_f64(&self.scope(text))
    }

    fn scope(&self, text: &Stdout) -> Scope {
        let mut scope = Scope::under(Arc::clone(&self.facts));
        scope.set_text(text.searched().clone());
        scope.set_figures("perf", self.figures.iter().cloned());
        scope
    }
}

//! The scope of a case's expressions: its parameters, facts and variables, with the entries of `when` that hold for it.

use crate::cases::{
    check::Layer,
    test_case::{LaunchFacts, TestCase},
    when::Rule,
};
use muster_core::fact::Fact;
use muster_text::{Value, diagnostic::Diagnostic, expr::Scope, template};
use std::sync::Arc;

/// Why a case is skipped of which only facts are missing.
pub(crate) fn reason_to_skip(case: &TestCase, diagnostics: &[Diagnostic]) -> Option<String> {
    Fact::only_missing(diagnostics).and_then(Fact::of).map(|fact| missing_fact_reason(case, &fact))
}

/// Parameters and facts, without variables.
pub(crate) fn base_scope(case: &TestCase, facts: &LaunchFacts) -> Scope {
    let mut scope = case.variant.scope(&case.place.scope);
    if !facts.is_rehearsal() {
        // The effort of one case must not count against another. While files are read, one such mistake is enough.
        scope.renew_effort();
    }
    scope.set("identifier", facts.identifier.as_str());
    scope.set("session", facts.session.0.clone());
    scope.set("stagedir", facts.stage.to_string_lossy().into_owned());
    scope.set("fixtures", Value::Object(facts.inputs.fixtures.clone()));
    scope.set("deps", Value::Object(facts.inputs.deps.clone()));
    scope
}

/// What the placeholders of a case see before anything is known of its launch.
pub(crate) fn scope_of(case: &TestCase, diagnostics: &mut Vec<Diagnostic>) -> Option<Scope> {
    let base = Arc::new(base_scope(case, &LaunchFacts::rehearsal()));
    let (layer, _) = overlaid(case, &base, diagnostics)?;
    let mut scope = Scope::under(base);
    layer.variables.evaluate(&mut scope, &case.check.cache, diagnostics)?;
    Some(scope)
}

/// The layer of all entries of `when` that hold, or the reason to skip.
pub(crate) fn overlaid(
    case: &TestCase,
    base: &Arc<Scope>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(Arc<Layer>, Option<String>)> {
    let mut applied = Vec::new();
    for (index, rule) in case.check.rules.iter().enumerate() {
        if !holds(rule, case, &applied, base, diagnostics)? {
            continue;
        }
        // A reason that becomes null does not skip the case.
        if let Some(reason) = &rule.skip
            && let Some(reason) =
                template::render(reason, &variables(case, &applied, base, diagnostics)?, &case.check.cache, diagnostics)
        {
            return Some((case.check.layer(&applied), Some(reason.text().unwrap_or("skipped by the check").to_owned())));
        }
        applied.push(index);
    }
    let layer = case.check.layer(&applied);
    diagnostics.extend(layer.diagnostics.iter().cloned());
    Some((layer, None))
}

/// Whether an entry holds; its `if` sees what the entries before it left.
fn holds(rule: &Rule, case: &TestCase, applied: &[usize], base: &Arc<Scope>, diagnostics: &mut Vec<Diagnostic>) -> Option<bool> {
    let place = &case.place;
    let condition = &rule.condition;
    if !condition.admits_place(&place.system, &place.partition, &place.environ) || !condition.admits_variant(&case.variant) {
        return Some(false);
    }
    if condition.expression.is_none() {
        return Some(true);
    }
    condition.admits_scope(&variables(case, applied, base, diagnostics)?, diagnostics)
}

/// What an entry of `when` sees: the variables as the entries before it left them.
fn variables(case: &TestCase, applied: &[usize], base: &Arc<Scope>, diagnostics: &mut Vec<Diagnostic>) -> Option<Scope> {
    let mut scope = Scope::under(base.clone());
    case.check.layer(applied).variables.evaluate(&mut scope, &case.check.cache, diagnostics)?;
    Some(scope)
}

/// The reason to skip a case.
pub(crate) fn missing_fact_reason(case: &TestCase, fact: &Fact) -> String {
    format!("{} does not define {fact}", case.name.system_partition())
}

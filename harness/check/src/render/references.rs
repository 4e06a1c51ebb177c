//! Finds the references that apply to a case.
//!
//! For every variable, or row of a table, the narrowest entry wins: more `with` and `if` first, then
//! `sys:part` > `sys` > features and extras > `*`. Two that are equally specific are a mistake of the file.

use crate::{
    cases::{test_case::TestCase, when::Condition},
    files::{
        check_file::{CheckFile, ReferenceBlock, ReferenceEntry},
        references,
    },
    site::selector::{Entry, Selector, Width},
};
use muster_core::rules::reference::ReferenceRow;
use muster_text::{
    decode::Ordered,
    diagnostic::{Diagnostic, Span},
    expr::Scope,
};
use std::collections::BTreeMap;

/// How narrow an entry is: the number of `with` and `if`, then the selector.
type Rank = (usize, Width);

/// The best entry for one variable or row so far.
struct Candidate {
    rank: Rank,
    row: ReferenceRow,
    span: Span,
    /// Another one, equally specific.
    tie: Option<Span>,
}

/// The rows that apply to a case, at most one for a variable and row.
pub fn rows(
    case: &TestCase,
    conditions: &[Condition],
    file: &CheckFile,
    scope: &Scope,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<ReferenceRow> {
    let mut best: BTreeMap<(String, Option<String>), Candidate> = BTreeMap::new();
    let mut consider = |rank: Rank, values: &Ordered<ReferenceEntry>, diagnostics: &mut Vec<Diagnostic>| {
        for (label, entry) in values.iter() {
            let Some(row) = references::row(label, entry, &[file], &case.check.figures, diagnostics) else { continue };
            let key = (row.variable.clone(), row.key.clone());
            let new = Candidate { rank, row, span: label.span, tie: None };
            match best.get_mut(&key) {
                Some(candidate) if candidate.rank == rank => candidate.tie = Some(label.span),
                Some(candidate) if candidate.rank > rank => {}
                _ => {
                    best.insert(key, new);
                }
            }
        }
    };
    match &file.reference {
        None => {}
        Some(ReferenceBlock::Scopes(scopes)) => {
            for (name, values) in scopes.iter() {
                let Some(width) = width_of_scope(case, name) else { continue };
                consider((0, width), values, diagnostics);
            }
        }
        Some(ReferenceBlock::Rules(rules)) => {
            for (rule, condition) in rules.iter().zip(conditions) {
                let Some(rank) = rank_of_rule(case, condition, scope, diagnostics) else { continue };
                consider(rank, rule.values.as_ref().unwrap_or(&Ordered(vec![])), diagnostics);
            }
        }
    }
    best.into_values().map(|candidate| candidate.chosen(case, diagnostics)).collect()
}

impl Candidate {
    /// The row; a mistake if another one is equally specific.
    fn chosen(self, case: &TestCase, diagnostics: &mut Vec<Diagnostic>) -> ReferenceRow {
        if let Some(tie) = self.tie {
            let (label, place) = (self.row.label(), case.name.system_partition());
            let message = format!("two references for `{label}` are equally specific on {place}");
            let diagnostic = Diagnostic::error(tie, message).related(self.span, "the other");
            diagnostics.push(diagnostic.hint("make one of them more specific"));
        }
        self.row
    }
}

/// How narrow a scope of the mapping form is for this case; `None` if it does not apply.
fn width_of_scope(case: &TestCase, name: &str) -> Option<Width> {
    // A scope that cannot be read was reported when the check was loaded.
    let entry = Entry::parse(name).ok()?;
    Selector::of(vec![entry]).width_for(&case.place.system, &case.place.partition)
}

/// How narrow a rule of the list form is for this case; `None` if it does not apply.
fn rank_of_rule(case: &TestCase, condition: &Condition, scope: &Scope, diagnostics: &mut Vec<Diagnostic>) -> Option<Rank> {
    let place = &case.place;
    if !condition.admits_place(&place.system, &place.partition, &place.environ) || !condition.admits_variant(&case.variant) {
        return None;
    }
    if !condition.admits_scope(scope, diagnostics)? {
        return None;
    }
    let width =
        condition.system.as_ref().map_or(Some(Width::Any), |selector| selector.width_for(&place.system, &place.partition))?;
    let extra = usize::from(condition.environ.is_some()) + usize::from(condition.expression.is_some());
    Some((condition.with.len() + extra, width))
}

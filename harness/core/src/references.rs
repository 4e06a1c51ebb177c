//! Which references apply to a case.
//!
//! For every variable, or row of a table, the narrowest entry wins: more `with` and `if` first, then
//! `sys:part` > `sys` > features and extras > `*`. Two that are equally narrow are a mistake of the file.

use crate::{
    check_file::{CheckFile, ReferenceBlock, ReferenceEntry},
    decode::{Ordered, Spanned},
    diagnostic::{Diagnostic, Span, nearest},
    expr::Scope,
    reference::{Reference, ReferenceRow},
    selector::{Entry, Selector, Width},
    template,
    test_case::TestCase,
    when::{self, Condition},
    yaml::Node,
};
use std::collections::BTreeMap;

/// How narrow an entry is: the number of `with` and `if`, then the selector.
type Rank = (usize, Width);

/// The entry that leads for one variable or row.
struct Leader {
    rank: Rank,
    row: ReferenceRow,
    span: Span,
    /// Another one, equally narrow.
    rival: Option<Span>,
}

/// The rows that apply to a case, at most one for a variable and row.
pub fn rows(
    case: &TestCase,
    tree: &Node,
    file: &CheckFile,
    scope: &Scope,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<ReferenceRow> {
    let mut leaders: BTreeMap<(String, Option<String>), Leader> = BTreeMap::new();
    let mut compete = |rank: Rank, values: &Ordered<ReferenceEntry>, diagnostics: &mut Vec<Diagnostic>| {
        for (label, entry) in values.iter() {
            let Some(row) = row(label, entry, file, diagnostics) else { continue };
            let key = (row.variable.clone(), row.key.clone());
            let challenger = Leader { rank, row, span: label.span, rival: None };
            match leaders.get_mut(&key) {
                Some(leader) if leader.rank == rank => leader.rival = Some(label.span),
                Some(leader) if leader.rank > rank => {}
                _ => {
                    leaders.insert(key, challenger);
                }
            }
        }
    };
    match &file.reference {
        None => {}
        Some(ReferenceBlock::Scopes(scopes)) => {
            for (name, values) in scopes.iter() {
                let Some(width) = width_of_scope(case, name, diagnostics) else { continue };
                compete((0, width), values, diagnostics);
            }
        }
        Some(ReferenceBlock::Rules(rules)) => {
            let nodes = tree.get("reference").map(Node::items).unwrap_or_default();
            for (rule, node) in rules.iter().zip(nodes) {
                let Some(rank) = rank_of_rule(case, node, scope, diagnostics) else { continue };
                compete(rank, rule.values.as_ref().unwrap_or(&Ordered(vec![])), diagnostics);
            }
        }
    }
    let mut rows = Vec::with_capacity(leaders.len());
    for leader in leaders.into_values() {
        if let Some(rival) = leader.rival {
            let message = format!("two references for `{}` are equally narrow on {}", leader.row.label(), case.name);
            diagnostics
                .push(Diagnostic::error(rival, message).related(leader.span, "the other").hint("make one of them narrower"));
        }
        rows.push(leader.row);
    }
    rows
}

/// How narrow a scope of the mapping form is for this case; `None` if it does not apply.
fn width_of_scope(case: &TestCase, name: &Spanned<String>, diagnostics: &mut Vec<Diagnostic>) -> Option<Width> {
    match Entry::parse(name) {
        Ok(entry) => Selector::of(vec![entry]).width_for(&case.place.system, &case.place.partition),
        Err(why) => {
            diagnostics.push(Diagnostic::error(name.span, why).hint("a scope is sys:part, sys, +feature, %key=value or *"));
            None
        }
    }
}

/// How narrow a rule of the list form is for this case; `None` if it does not apply.
fn rank_of_rule(case: &TestCase, node: &Node, scope: &Scope, diagnostics: &mut Vec<Diagnostic>) -> Option<Rank> {
    let condition: Condition = when::condition(node, case.check.parameters(), diagnostics);
    let place = &case.place;
    if !condition.admits_place(&place.system, &place.partition, &place.environ) || !condition.admits_variant(&case.variant) {
        return None;
    }
    if let Some((expression, node)) = &condition.expression {
        match expression.eval_bool(scope) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => {
                diagnostics.push(template::mistake(&error, node));
                return None;
            }
        }
    }
    let width =
        condition.system.as_ref().map_or(Some(Width::Any), |selector| selector.width_for(&place.system, &place.partition))?;
    let extra = usize::from(condition.environ.is_some()) + usize::from(condition.expression.is_some());
    Some((condition.with.len() + extra, width))
}

/// One reference, validated against its variable.
fn row(
    label: &Spanned<String>,
    entry: &ReferenceEntry,
    file: &CheckFile,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<ReferenceRow> {
    let (name, key) = split(label);
    let variables = file.perf_variables.as_ref()?;
    let Some(variable) = variables.get(name) else {
        let message = format!("a reference for `{name}`, which is no performance variable");
        let diagnostic = Diagnostic::error(label.span, message);
        diagnostics.push(match nearest(name, variables.iter().map(|(name, _)| name.as_str())) {
            Some(near) => diagnostic.hint(format!("did you mean `{near}`?")),
            None => diagnostic.hint("declare it under `perf_variables`"),
        });
        return None;
    };
    let reference = Reference {
        value: entry.value.as_ref()?.value,
        lower: entry.lower.as_ref().map(|lower| lower.value),
        upper: entry.upper.as_ref().map(|upper| upper.value),
        unit: entry.unit.as_ref().map(|unit| unit.value.clone()),
        warn: entry.warn.as_ref().map(|warn| warn.value),
        xfail: entry.xfail.clone(),
    };
    let unit = variable.unit.as_ref().map_or("", |unit| unit.value.as_str());
    if let Err(why) = reference.validate(unit) {
        diagnostics.push(Diagnostic::error(entry.span, why));
    }
    Some(ReferenceRow { variable: name.to_owned(), key: key.map(str::to_owned), reference })
}

/// `latency[8]` is the row `8` of `latency`.
fn split(label: &str) -> (&str, Option<&str>) {
    match label.strip_suffix(']').and_then(|label| label.split_once('[')) {
        Some((name, key)) => (name, Some(key)),
        None => (label, None),
    }
}

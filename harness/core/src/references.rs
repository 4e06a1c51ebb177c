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
    site_facts::KnownSystems,
    template,
    test_case::TestCase,
    when::Condition,
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
    conditions: &[Condition],
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
                let Some(width) = width_of_scope(case, name) else { continue };
                compete((0, width), values, diagnostics);
            }
        }
        Some(ReferenceBlock::Rules(rules)) => {
            for (rule, condition) in rules.iter().zip(conditions) {
                let Some(rank) = rank_of_rule(case, condition, scope, diagnostics) else { continue };
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
fn width_of_scope(case: &TestCase, name: &str) -> Option<Width> {
    // A scope that cannot be read was told when the check was loaded.
    let entry = Entry::parse(name).ok()?;
    Selector::of(vec![entry]).width_for(&case.place.system, &case.place.partition)
}

/// How narrow a rule of the list form is for this case; `None` if it does not apply.
fn rank_of_rule(case: &TestCase, condition: &Condition, scope: &Scope, diagnostics: &mut Vec<Diagnostic>) -> Option<Rank> {
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

/// Tells the mistakes that need no case: scopes and systems that mean nothing, thresholds out of their range.
pub fn check(file: &CheckFile, known: &KnownSystems, diagnostics: &mut Vec<Diagnostic>) {
    let values: Vec<&Ordered<ReferenceEntry>> = match &file.reference {
        None => return,
        Some(ReferenceBlock::Scopes(scopes)) => {
            for (name, _) in scopes.iter() {
                known.check_name(name, name.span, diagnostics);
            }
            scopes.iter().map(|(_, values)| values).collect()
        }
        Some(ReferenceBlock::Rules(rules)) => {
            for name in rules.iter().flat_map(|rule| &rule.system).flat_map(|names| names.iter()) {
                known.check_name(name, name.span, diagnostics);
            }
            rules.iter().filter_map(|rule| rule.values.as_ref()).collect()
        }
    };
    // In an entry of `when` the variables may be the check's own.
    if file.perf_variables.is_some() || file.name.is_some() {
        for (label, entry) in values.into_iter().flat_map(|values| values.iter()) {
            row(label, entry, file, diagnostics);
        }
    }
}

/// One reference, validated against its variable.
fn row(
    label: &Spanned<String>,
    entry: &ReferenceEntry,
    file: &CheckFile,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<ReferenceRow> {
    let (name, key) = split(label);
    let variables = file.perf_variables.iter().flat_map(|variables| variables.iter());
    let Some((_, variable)) = variables.clone().find(|(variable, _)| variable.value == name) else {
        let message = format!("a reference for `{name}`, which is no performance variable");
        let diagnostic = Diagnostic::error(label.span, message);
        diagnostics.push(match nearest(name, variables.map(|(name, _)| name.as_str())) {
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
    // A unit that waits for a case is compared then.
    let unit = variable.unit.as_ref().map(|unit| unit.value.as_str()).or(reference.unit.as_deref());
    if let Err(why) = reference.validate(unit.unwrap_or_default()) {
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

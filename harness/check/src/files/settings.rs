//! Turns decoded settings into judging rules: the meaning of keys together, and the mistakes that only then show.

use crate::files::{
    check_file::{CheckFile, PerfEntry, SanityItem},
    references, staging,
};
use muster_core::{
    night::{FigureRules, Share},
    rules::{
        Rules,
        perf::{PerfVariable, Pick, Source},
        reference::ReferenceRow,
        sanity::{Assertion, Claim},
    },
};
use muster_text::{
    decode::Spanned,
    diagnostic::{Diagnostic, Span},
    expr::Scope,
    pattern::{self, Pattern, PatternError},
};
use std::collections::BTreeSet;

/// The judging rules of a case. `None` without `sanity`: a check that asserts nothing proves nothing.
pub fn rules(file: &CheckFile, references: Vec<ReferenceRow>, scope: &Scope, diagnostics: &mut Vec<Diagnostic>) -> Option<Rules> {
    let Some(items) = &file.sanity else {
        let hint = "write what its output must contain, or `sanity: []` to accept the exit status alone";
        diagnostics.push(Diagnostic::error(name_span(file), "the check has no `sanity`").hint(hint));
        return None;
    };
    let sanity: Vec<Assertion> = items.iter().filter_map(|item| assertion(item, diagnostics)).collect();
    let entries = file.perf_variables.iter().flat_map(|entries| entries.iter());
    let perf_variables: Vec<PerfVariable> = entries.filter_map(|(name, entry)| variable(name, entry, diagnostics)).collect();
    let mut rules = Rules {
        sanity,
        keep_files: staging::kept_files(file, diagnostics),
        perf_variables,
        references,
        strict: file.strict_check.unwrap_or(true),
        require_reference: file.require_reference.unwrap_or(false),
        xfail: file.xfail.clone(),
        ..Rules::default()
    };
    // What the expressions read; nothing more is stored with every case.
    let names: BTreeSet<String> = rules.expressions().flat_map(|(expression, _)| expression.names().to_vec()).collect();
    rules.facts = names.iter().filter_map(|name| Some((name.clone(), scope.get(name)?.clone()))).collect();
    rules.missing = names.iter().filter_map(|name| Some((name.clone(), scope.missing(name)?.clone()))).collect();
    Some(rules)
}

/// The check's rules for verdicts of its figures. `elsewhere`: names of figures that other cases of it have.
pub fn night(file: &CheckFile, elsewhere: &BTreeSet<String>, diagnostics: &mut Vec<Diagnostic>) -> FigureRules {
    let Some(night) = &file.night else { return FigureRules::default() };
    let known: BTreeSet<String> = references::variables(&[file]).union(elsewhere).cloned().collect();
    for name in night.ignore.iter().flat_map(|names| names.iter()).filter(|name| !known.contains(&name.value)) {
        let diagnostic = Diagnostic::error(name.span, format!("`{}` is not a performance variable", name.value));
        diagnostics.push(diagnostic.did_you_mean(&name.value, known.iter().map(String::as_str), None));
    }
    FigureRules {
        min_effect: night.min_effect.map(|Share(share)| share),
        limit: night.limit.map(|Share(share)| share),
        ignore: night.ignore.iter().flat_map(|names| names.iter()).map(|name| name.value.clone()).collect(),
    }
}

/// Reports the mistakes also of settings that no case uses, such as an entry of `when` that never applies.
pub fn check(file: &CheckFile, diagnostics: &mut Vec<Diagnostic>) {
    staging::check(file, diagnostics);
    for item in file.sanity.iter().flatten() {
        assertion(item, diagnostics);
        diagnostics.extend(item.found.iter().chain(&item.not_found).filter_map(lint));
    }
    for (name, entry) in file.perf_variables.iter().flat_map(|entries| entries.iter()) {
        variable(name, entry, diagnostics);
        diagnostics.extend(entry.pattern.iter().filter_map(lint));
    }
    for (_, pattern) in file.outputs.iter().flat_map(|outputs| outputs.iter()) {
        if let Err(error) = Pattern::compile(pattern) {
            diagnostics.push(pattern_mistake(&error, pattern.span));
        }
        diagnostics.extend(lint(pattern));
    }
}

/// A warning about a pattern that may run over a whole log.
fn lint(pattern: &Spanned<String>) -> Option<Diagnostic> {
    pattern::lint(pattern).map(|danger| Diagnostic::warning(pattern.span, danger))
}

fn name_span(file: &CheckFile) -> Span {
    file.name.as_ref().map_or(file.span, |name| name.span)
}

/// One item; `None` if all of its keys became null, or after a mistake.
fn assertion(item: &SanityItem, diagnostics: &mut Vec<Diagnostic>) -> Option<Assertion> {
    let mut pattern = |text: &Spanned<String>| {
        if let Err(error) = Pattern::compile(text) {
            diagnostics.push(pattern_mistake(&error, text.span));
        }
        text.value.clone()
    };
    let claim = if let Some(found) = &item.found {
        Claim::Found { pattern: pattern(found), count: item.count.map(|count| count.value) }
    } else if let Some(not_found) = &item.not_found {
        Claim::NotFound { pattern: pattern(not_found) }
    } else if let Some(expression) = &item.assert {
        Claim::Assert { expression: expression.value.clone() }
    } else {
        Claim::Exit(item.exit.as_ref()?.value.clone())
    };
    Some(Assertion { claim, file: item.file.as_ref().map(|file| file.value.clone()), msg: item.msg.clone() })
}

/// One performance variable; `None` while its pattern waits for a case, or after a mistake.
fn variable(name: &Spanned<String>, entry: &PerfEntry, diagnostics: &mut Vec<Diagnostic>) -> Option<PerfVariable> {
    if name.is_empty() || name.contains(['[', ']']) {
        diagnostics.push(
            Diagnostic::error(name.span, format!("`{}` cannot be a variable's name", name.value))
                .hint("`[` and `]` name the rows of a table"),
        );
    }
    let (source, span) = if let Some(pattern) = &entry.pattern {
        let pick = match (entry.item, entry.reduce) {
            (_, Some(reduce)) => Pick::Reduce(reduce.value),
            (item, None) => Pick::Item(item.map_or(0, |item| item.value)),
        };
        let tag = entry.tag.as_ref().map(|tag| tag.value.clone());
        (Source::Pattern { pattern: pattern.value.clone(), tag, pick }, pattern.span)
    } else {
        let value = entry.value.as_ref()?;
        (Source::Value(value.value.clone()), value.span)
    };
    let variable = PerfVariable {
        name: name.value.clone(),
        unit: entry.unit.as_ref().map(|unit| unit.value.clone()).unwrap_or_default(),
        source,
        file: entry.file.as_ref().map(|file| file.value.clone()),
        per_section: entry.per.is_some(),
        optional: entry.optional.unwrap_or(false),
        direction: entry.direction,
    };
    if let Err(error) = variable.validate() {
        diagnostics.push(pattern_mistake(&error, span));
    }
    Some(variable)
}

fn pattern_mistake(error: &PatternError, span: Span) -> Diagnostic {
    Diagnostic::error(span, &*error.message).maybe_hint(error.hint.as_deref())
}

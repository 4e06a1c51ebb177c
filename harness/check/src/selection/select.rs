//! Which cases run: the filters of the command line, with ReFrame's meanings.

use crate::cases::test_case::TestCase;
use muster_core::{case::matcher::Matcher, fact::Fact};
use muster_text::{
    Value,
    diagnostic::did_you_mean,
    expr::{Arithmetic, Expr, Scope},
};
use std::collections::BTreeSet;

/// All filters of one invocation. Empty ones admit everything.
#[derive(Debug, Default)]
pub struct Filters {
    /// `-n`: any of them.
    pub names: Vec<Matcher>,
    /// `-x`: none of them.
    pub not_names: Vec<Matcher>,
    /// `-t`: all of them, each on some tag.
    pub tags: Vec<Matcher>,
    /// `-T`: none of them, on any tag.
    pub not_tags: Vec<Matcher>,
    /// `-p`: any of them.
    pub environs: Vec<Matcher>,
    /// `-E`: all of them.
    pub expressions: Vec<Expr>,
}

/// Compiles a `-E` expression.
///
/// # Errors
/// One line that says what is wrong and where.
pub fn expression(text: &str) -> Result<Expr, String> {
    Expr::compile(text, Arithmetic::Exact)
        .map_err(|error| format!("`{text}` at column {}: {}", error.at.start + 1, error.message))
}

impl Filters {
    /// Whether a case runs.
    ///
    /// # Errors
    /// One line when a `-E` expression cannot be evaluated for this case.
    pub fn admit(&self, case: &TestCase) -> Result<bool, String> {
        let name = &case.name;
        let compact = name.display.replace(' ', "");
        let names = [name.display.as_str(), compact.as_str()];
        // A negated name narrows what the others admit; positive ones are alternatives.
        let any = |matchers: &[Matcher], texts: &[&str]| {
            let (no, yes): (Vec<_>, Vec<_>) = matchers.iter().partition(|matcher| matcher.is_negated());
            no.iter().all(|matcher| matcher.admits(texts, &name.hash))
                && (yes.is_empty() || yes.iter().any(|matcher| matcher.admits(texts, &name.hash)))
        };
        let tags: Vec<&str> = case.tags().iter().map(String::as_str).collect();
        let plain = any(&self.names, &names)
            && !self.not_names.iter().any(|matcher| matcher.admits(&names, &name.hash))
            && self.tags.iter().all(|matcher| matcher.admits(&tags, ""))
            && !self.not_tags.iter().any(|matcher| matcher.admits(&tags, ""))
            && any(&self.environs, &[name.environ.as_str()]);
        if !plain || self.expressions.is_empty() {
            return Ok(plain);
        }
        let scope = case.filter_scope();
        for expression in &self.expressions {
            // `size > 4` does not apply to a check without a parameter `size`.
            if !expression.names().iter().all(|name| scope.has(name)) {
                return Ok(false);
            }
            let failed = |why: String| format!("'{}' on {name}: {why}", expression.text());
            match expression.eval_bool(&scope) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                // Nor to a partition whose site does not define the fact.
                Err(error) if Fact::missing_in(&error).is_some() => return Ok(false),
                Err(error) => return Err(failed(error.message)),
            }
        }
        Ok(true)
    }
}

/// Reports a `-E` name that no case has: a typing mistake.
///
/// # Errors
/// One line with the nearest name.
pub fn check_names<'c, I: Iterator<Item = &'c TestCase>>(expressions: &[Expr], cases: impl Fn() -> I) -> Result<(), String> {
    let scopes = || cases().map(TestCase::filter_scope);
    for expression in expressions {
        let unknown = |name: &&String| cases().next().is_some() && !scopes().any(|scope| scope.has(name));
        if let Some(name) = expression.names().iter().find(unknown) {
            let known: BTreeSet<String> =
                scopes().flat_map(|scope| scope.names().map(str::to_owned).collect::<Vec<_>>()).collect();
            let hint = did_you_mean(name, known.iter().map(String::as_str)).map_or_else(String::new, |hint| format!(": {hint}"));
            return Err(format!("'{}': no case has a `{name}`{hint}", expression.text()));
        }
    }
    Ok(())
}

/// The tags of cases, sorted, each once.
pub fn tags(cases: &[TestCase]) -> BTreeSet<&str> {
    cases.iter().flat_map(|case| case.tags().iter().map(String::as_str)).collect()
}

impl TestCase {
    /// What `-E` sees.
    fn filter_scope(&self) -> Scope {
        let mut scope = self.variant.scope(&self.place.scope);
        let strings = |texts: &[String]| Value::from(texts.to_vec());
        scope.set("name", self.name.display.clone());
        scope.set("check", self.name.check.clone());
        scope.set("hash", self.name.hash.clone());
        scope.set("tags", strings(self.tags()));
        scope.set("scheduler", self.place.partition.scheduler.name);
        scope
    }
}

//! Selects the cases that run: the filters of the command line, with ReFrame's meanings.

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

/// A negated name narrows what the others admit; positive ones are alternatives.
fn any_admits(matchers: &[Matcher], texts: &[&str], hash: &str) -> bool {
    let (no, yes): (Vec<_>, Vec<_>) = matchers.iter().partition(|matcher| matcher.is_negated());
    no.iter().all(|matcher| matcher.admits(texts, hash))
        && (yes.is_empty() || yes.iter().any(|matcher| matcher.admits(texts, hash)))
}

impl Filters {
    /// Returns whether a case runs.
    ///
    /// # Errors
    /// One line when a `-E` expression cannot be evaluated for this case.
    pub fn admit(&self, case: &TestCase) -> Result<bool, String> {
        let is_admitted = self.admit_name(case)
            && !self.exclude_name(case)
            && self.tags.iter().all(|tag| admits_tag(tag, case))
            && !self.exclude_tag(case)
            && self.admit_environ(case);
        if is_admitted { self.admit_by_expression(case) } else { Ok(false) }
    }

    fn admit_name(&self, case: &TestCase) -> bool {
        self.names.is_empty() || any_admits(&self.names, &[&case.name.display, &compact(case)], &case.name.hash)
    }

    fn exclude_name(&self, case: &TestCase) -> bool {
        self.not_names.iter().any(|matcher| admits_name(matcher, case))
    }

    fn exclude_tag(&self, case: &TestCase) -> bool {
        self.not_tags.iter().any(|matcher| admits_tag(matcher, case))
    }

    fn admit_environ(&self, case: &TestCase) -> bool {
        any_admits(&self.environs, &[case.name.environ.as_str()], &case.name.hash)
    }

    fn admit_by_expression(&self, case: &TestCase) -> Result<bool, String> {
        for expression in &self.expressions {
            if !is_true(expression, case)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A name without blanks, as it may be typed.
fn compact(case: &TestCase) -> String {
    case.name.display.replace(' ', "")
}

fn admits_name(matcher: &Matcher, case: &TestCase) -> bool {
    matcher.admits(&[&case.name.display, &compact(case)], &case.name.hash)
}

fn is_true(expression: &Expr, case: &TestCase) -> Result<bool, String> {
    let (name, scope) = (&case.name, case.filter_scope());
    // `size > 4` does not apply to a check without a parameter `size`.
    if !expression.names().iter().all(|name| scope.has(name)) {
        return Ok(false);
    }
    match expression.eval_bool(&scope) {
        // Nor to a partition whose site does not define the fact.
        Err(error) if Fact::missing_in(&error).is_some() => Ok(false),
        decided => decided.map_err(|error| format!("'{}' on {name}: {}", expression.text(), error.message)),
    }
}

fn admits_tag(matcher: &Matcher, case: &TestCase) -> bool {
    let tags: Vec<&str> = case.tags().iter().map(String::as_str).collect();
    matcher.admits(&tags, "")
}

/// A list that names more is not read.
const MOST_LISTED: usize = 12;
/// Fewer hex digits may be a word.
const SHORTEST_HASH: usize = 6;

/// Why cases are left out, for people who typed a filter that leaves none.
impl Filters {
    /// Returns a sentence on each filter that none of these cases passes. Without any, the filters together exclude all cases.
    pub fn why_none(&self, cases: &[TestCase]) -> Vec<String> {
        let mut why = Vec::new();
        if !cases.iter().any(|case| self.admit_name(case)) {
            let checks: BTreeSet<&str> = cases.iter().map(|case| case.name.check.as_str()).collect();
            let admits_any = |name: &Matcher| cases.iter().any(|case| admits_name(name, case));
            let idle = self.names.iter().filter(|name| !name.is_negated() && !admits_any(name));
            why.extend(idle.map(|name| no_name(name, cases, &checks)));
        }
        let tags = tags(cases);
        for tag in self.tags.iter().filter(|tag| !cases.iter().any(|case| admits_tag(tag, case))) {
            let known =
                if tags.is_empty() { "no case has tags".to_owned() } else { near(&tag.to_string(), &tags, "the tags are") };
            why.push(format!("-t {tag} matches no tag: {known}"));
        }
        let environs: BTreeSet<&str> = cases.iter().map(|case| case.name.environ.as_str()).collect();
        if !cases.iter().any(|case| self.admit_environ(case)) {
            let of = |environ: &Matcher| {
                format!("-p {environ} matches no environment: {}", near(&environ.to_string(), &environs, "there are"))
            };
            let admits_any = |environ: &&Matcher| environs.iter().any(|name| environ.admits(&[name], ""));
            why.extend(self.environs.iter().filter(|environ| !environ.is_negated() && !admits_any(environ)).map(of));
        }
        let excludes_all =
            |matchers: &[Matcher], excluded: &dyn Fn(&TestCase) -> bool| !matchers.is_empty() && cases.iter().all(excluded);
        if excludes_all(&self.not_names, &|case| self.exclude_name(case)) {
            why.push("-x excludes all of them".to_owned());
        }
        if excludes_all(&self.not_tags, &|case| self.exclude_tag(case)) {
            why.push("-T excludes all of them".to_owned());
        }
        let is_true = |expression: &Expr, case: &TestCase| is_true(expression, case).unwrap_or(false);
        let idle = self.expressions.iter().filter(|expression| !cases.iter().any(|case| is_true(expression, case)));
        why.extend(idle.map(|expression| format!("-E '{}' is true of none", expression.text())));
        why
    }
}

fn no_name(name: &Matcher, cases: &[TestCase], checks: &BTreeSet<&str>) -> String {
    let text = name.to_string();
    let is_hash = text.len() >= SHORTEST_HASH && cases.iter().any(|case| case.name.hash.starts_with(&text.to_ascii_lowercase()));
    let hint = match text.strip_prefix('/') {
        Some(_) => "hashes change with names and parameters: `-l` lists them".to_owned(),
        None if is_hash => format!("did you mean the hash, `-n /{text}`?"),
        None => near(&text, checks, "the checks are"),
    };
    format!("-n {text} matches no name: {hint}")
}

/// The nearest, else all of them if they are not many.
fn near(text: &str, known: &BTreeSet<&str>, head: &str) -> String {
    did_you_mean(text, known.iter().copied()).unwrap_or_else(|| {
        let listed: Vec<&str> = known.iter().copied().take(MOST_LISTED).collect();
        let more = known.len() - listed.len();
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!("{head} {}{more}", listed.join(", "))
    })
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

//! `when`: settings merged over a check where its selectors hold, in order, later over earlier.
//!
//! ```yaml
//! when:
//!   - { system: +a100, time_limit: 20m }
//!   - { with: { strategy: none }, if: "num_tasks > 1", skip: one process only }
//! ```

use crate::{
    cases::parameter::{self, Parameter, Variant, Wanted},
    site::{
        Environment, Partition, System,
        selector::{Entry, Selector},
    },
};
use muster_text::{
    diagnostic::Diagnostic,
    expr::{Arithmetic, Expr, Scope},
    template,
    yaml::Node,
};
use std::sync::Arc;

/// The keys of an entry that select; all others are settings.
pub const SELECTORS: [&str; 4] = ["system", "environ", "with", "if"];

/// The condition of an entry of `when`, or of a row of a reference list.
#[derive(Debug, Clone, Default)]
pub struct Condition {
    /// `system`, in the grammar of `valid_systems`.
    pub system: Option<Selector>,
    /// `environ`, in the grammar of `valid_prog_environs`.
    pub environ: Option<Selector>,
    /// `with`
    pub with: Vec<Wanted>,
    /// `if`: an expression, with its place.
    pub expression: Option<(Arc<Expr>, Node)>,
}

/// One entry of `when`.
#[derive(Debug, Clone)]
pub struct Rule {
    pub condition: Condition,
    /// The reason, if it takes the case out.
    pub skip: Option<Node>,
    /// The settings that it merges over the check.
    pub overlay: Node,
}

/// Reads the entries of a check's `when`. The key table reports wrong types; this reads the meaning of selectors.
pub fn rules(check: &Node, parameters: &[Parameter], diagnostics: &mut Vec<Diagnostic>) -> Vec<Rule> {
    let entries = check.get("when").map(Node::items).unwrap_or_default();
    let read = |entry: &Node| Rule {
        condition: condition(entry, parameters, diagnostics),
        skip: entry.get("skip").filter(|reason| !reason.is_null()).cloned(),
        overlay: entry.without(&SELECTORS).without(&["skip"]),
    };
    entries.iter().map(read).collect()
}

/// Reads the selectors of an entry.
pub fn condition(entry: &Node, parameters: &[Parameter], diagnostics: &mut Vec<Diagnostic>) -> Condition {
    let mut condition = Condition {
        system: written(entry, "system", diagnostics).map(|node| selector(node, diagnostics)),
        environ: written(entry, "environ", diagnostics).map(|node| selector(node, diagnostics)),
        ..Condition::default()
    };
    for (key, wanted) in entry.get("with").map(Node::entries).unwrap_or_default() {
        let Some(name) = key.text() else { continue };
        if !parameters.iter().any(|parameter| &*parameter.name == name) {
            let otherwise = "`with` compares parameters; use `if` for anything else";
            diagnostics.push(parameter::unknown(key, parameters, otherwise));
        }
        refuse_placeholders(wanted, diagnostics);
        condition.with.push(Wanted { name: name.to_owned(), values: wanted.one_or_many().to_vec() });
    }
    if let Some(node) = entry.get("if")
        && let Some(text) = node.text()
        // The check of placeholders reports this: it is an expression already.
        && !node.has_placeholder()
    {
        match Expr::compile(text, Arithmetic::Exact) {
            Ok(expression) => condition.expression = Some((Arc::new(expression), node.clone())),
            Err(error) => diagnostics.push(template::mistake(&error, node)),
        }
    }
    condition
}

/// The text of a selector; `None` also if it cannot be one.
fn written<'n>(entry: &'n Node, key: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<&'n Node> {
    let node = entry.get(key).filter(|node| !node.is_null())?;
    refuse_placeholders(node, diagnostics).then_some(node)
}

/// Whether there is no placeholder in a selector, which is read before any is filled in. It would hold for nothing.
fn refuse_placeholders(selector: &Node, diagnostics: &mut Vec<Diagnostic>) -> bool {
    let before = diagnostics.len();
    for node in std::iter::once(selector).chain(selector.items()).filter(|node| node.has_placeholder()) {
        let hint = "it is read before placeholders are filled in: write it under `if`, without ${{ }}";
        diagnostics.push(Diagnostic::error(node.place(), "a selector cannot hold a placeholder").hint(hint));
    }
    diagnostics.len() == before
}

/// Reads a selector: one entry, or a list of them.
pub fn selector(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Selector {
    let items = node.one_or_many();
    let mut entries = Vec::with_capacity(items.len());
    for item in items {
        match item.text().ok_or_else(|| format!("a selector is text, found {}", item.what())).and_then(Entry::parse) {
            Ok(entry) => entries.push(entry),
            Err(why) => diagnostics.push(
                Diagnostic::error(item.span, why)
                    .hint("write sys, sys:part, *:part, +feature, -feature, %key=value or *, blanks mean and"),
            ),
        }
    }
    Selector::of(entries)
}

impl Rule {
    /// Returns whether it, with its reason to skip, can be decided before a partition is chosen.
    pub fn is_early(&self, parameters: &[Parameter]) -> bool {
        let known = |name: &String| name == "system" || parameters.iter().any(|parameter| *parameter.name == **name);
        self.condition.is_early(&known) && self.skip.as_ref().is_none_or(|skip| template::names(skip).iter().all(known))
    }
}

impl Condition {
    /// Whether it can be decided before a partition is chosen: it reads known names only.
    fn is_early(&self, is_known: &dyn Fn(&String) -> bool) -> bool {
        self.environ.is_none()
            && self.system.as_ref().is_none_or(Selector::reads_only_the_system)
            && self.expression.as_ref().is_none_or(|(expression, _)| expression.names().iter().all(is_known))
    }

    /// Returns whether `with` holds.
    pub fn admits_variant(&self, variant: &Variant) -> bool {
        self.with.iter().all(|wanted| wanted.admits(variant))
    }

    /// Returns whether `if` holds; `None` after a mistake in it.
    pub fn admits_scope(&self, scope: &Scope, diagnostics: &mut Vec<Diagnostic>) -> Option<bool> {
        let Some((expression, node)) = &self.expression else { return Some(true) };
        expression.eval_bool(scope).map_err(|error| diagnostics.push(template::mistake(&error, node))).ok()
    }

    /// Returns whether the system, as such, is admitted. Works only for early conditions.
    pub fn admits_system(&self, system: &str) -> bool {
        self.system.as_ref().is_none_or(|selector| selector.admits_system(system))
    }

    /// Returns whether partition and environment are admitted.
    pub fn admits_place(&self, system: &System, partition: &Partition, environ: &Environment) -> bool {
        self.system.as_ref().is_none_or(|selector| selector.admits(system, partition))
            && self.environ.as_ref().is_none_or(|selector| selector.admits_environment(environ))
    }
}

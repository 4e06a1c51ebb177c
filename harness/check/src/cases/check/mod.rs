//! A check, validated: its settings with every `when` entry merged over them, and its cases.
//!
//! The tree of the file stays the truth. For a case, the entries of `when` that hold are merged over it, its
//! placeholders are filled in, and the result is decoded with the one table of keys. What depends only on *which*
//! entries hold is kept in a [`Layer`] and shared by all cases that have it in common.
//!
//! ```text
//! Document -new-> Check -cases(system)-> TestCase ... (test_case: render)
//!   tree + when[0, 2] = Layer { tree, variables in order }
//! ```

mod cases;
mod hashes;

pub use cases::Early;
pub use hashes::hash_of_site;

use crate::{
    cases::{
        parameter::{self, Parameter, Setting, Wanted},
        variables::{self, Variables},
        when::{self, Condition, Rule},
    },
    files::{
        check_file::{self, CheckFile},
        load::{Document, Manifests},
        named_as_keys,
        needs::{Needs, refuse_name},
        references, settings,
    },
    site::facts::KnownSystems,
};
use hashes::Hashes;
use muster_text::{
    decode::Placeholders,
    diagnostic::{Diagnostic, Span},
    template::{self, Cache},
    yaml::{self, Node},
};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, OnceLock},
};

/// Names that every expression knows beside parameters and variables.
pub const FACTS: [&str; 10] =
    ["system", "partition", "environ", "num_tasks", "identifier", "session", "stagedir", "scheduler", "fixtures", "deps"];

/// What starts the tasks of a case: expressions know it as long as no parameter and no variable has this name.
pub(crate) const LAUNCHER: &str = "launcher";

/// Of these, what an entry of `when` may set.
const EARLY_SETTINGS: [&str; 6] =
    ["valid_systems", "valid_prog_environs", "tags", "valid_systems+", "valid_prog_environs+", "tags+"];

/// A test definition, ready to be expanded.
#[derive(Debug, Clone)]
pub struct Check {
    pub name: Arc<str>,
    /// Its file, as the user would type it.
    pub path: Arc<str>,
    pub span: Span,
    /// The manifests it may mention.
    pub(crate) manifests: Arc<Manifests>,
    /// Compiled placeholders, shared by all its cases.
    pub(crate) cache: Arc<Cache>,
    /// The cases that must have passed before it.
    pub needs: Needs,
    /// From a file that was not named: it runs as a fixture of others only.
    pub(crate) is_imported: bool,
    /// Variables that a check sets which uses this one as a fixture.
    pub(crate) set: Vec<Arc<Setting>>,
    pub parameters: Vec<Parameter>,
    /// `exclude`: combinations of parameter values that are not cases.
    exclude: Vec<Vec<Wanted>>,
    /// Without `parameters` and `when`.
    tree: Node,
    pub(crate) rules: Vec<Rule>,
    /// Those that can be decided before a partition is chosen.
    early_rules: Vec<usize>,
    /// Every performance variable that the check or an entry of `when` declares.
    pub(crate) figures: BTreeSet<String>,
    /// The settings of `-S`, which override everything.
    overrides: Option<Node>,
    /// What it says, in digests.
    pub(crate) hashes: Hashes,
    layers: Arc<Mutex<HashMap<Vec<usize>, Arc<Layer>>>>,
}

/// A check with some entries of `when` merged over it.
#[derive(Debug)]
pub struct Layer {
    /// The merged settings, placeholders unfilled, without `variables`.
    pub(crate) tree: Node,
    /// `variables` and `num_tasks`.
    pub(crate) variables: Variables,
    /// When each rule of a `reference` list applies.
    pub(crate) reference_conditions: Vec<Condition>,
    /// Mistakes of this combination.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The settings, where no placeholder is in them.
    pub(crate) fixed: OnceLock<Option<Arc<CheckFile>>>,
    early: OnceLock<Arc<Early>>,
}

impl Check {
    /// Validates a check as far as that is possible without a case.
    pub fn new(
        document: &Document,
        overrides: Option<Node>,
        manifests: Arc<Manifests>,
        known: &KnownSystems,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let merged = overrides.as_ref().map(|overrides| yaml::merge(&document.tree, overrides, diagnostics));
        let own_keys = manifests.schedulers.own_keys();
        let tree = named_as_keys::applied(merged.as_ref().unwrap_or(&document.tree), own_keys, diagnostics);
        let file = CheckFile::of(&tree, own_keys, Placeholders::Defer, diagnostics)?;
        let all: Vec<&CheckFile> = std::iter::once(&file).chain(file.when.iter().flatten().map(|entry| &entry.0)).collect();
        for settings in &all {
            settings::check(settings, diagnostics);
        }
        // What is missing in a base, derived checks may have; they are checked with all that they inherit.
        if check_file::is_abstract(&tree) {
            template::check(&tree, None, diagnostics);
            return None;
        }
        for settings in &all {
            references::check(settings, &all, known, diagnostics);
        }
        let parameters = tree.get("parameters").map(parameter::declared).unwrap_or_default();
        let rules = when::rules(&tree, &parameters, diagnostics);
        let early_rules = (0..rules.len()).filter(|index| rules[*index].is_early(&parameters)).collect();
        let mut needs = Needs::of(&file, &tree, diagnostics);
        std::iter::once(&tree).chain(manifests.of(&tree)).for_each(|text| needs.note_stagedirs(text));
        let exclude = parameter::excluded(&tree, &parameters, overrides.is_some(), diagnostics);
        let hashes = Hashes::of(&tree, manifests.of(&tree));
        let check = Self {
            early_rules,
            needs,
            set: Vec::new(),
            is_imported: document.is_imported,
            exclude,
            figures: references::variables(&all),
            name: document.name.clone(),
            path: document.path.clone(),
            span: document.span,
            manifests,
            cache: Arc::default(),
            parameters,
            rules,
            overrides,
            hashes,
            layers: Arc::default(),
            tree: tree.without(&["parameters", "exclude", "when", "abstract", "extends"]),
        };
        check.check_names(&tree, diagnostics);
        check.check_rules(&tree, known, diagnostics);
        document.is_whole.then_some(check)
    }

    /// Reports every placeholder that does not compile or reads an undeclared name.
    fn check_names(&self, tree: &Node, diagnostics: &mut Vec<Diagnostic>) {
        let mut known: BTreeSet<&str> =
            FACTS.into_iter().chain(self.parameters.iter().map(|parameter| &*parameter.name)).collect();
        let is_reported = |name: &str| name == "num_tasks" || named_as_keys::FIXED.contains(&name);
        for parameter in self.parameters.iter().filter(|parameter| !is_reported(&parameter.name)) {
            diagnostics.extend(refuse_name("a parameter", &parameter.name, parameter.span));
            refuse_fact_name(&parameter.name, parameter.span, diagnostics);
        }
        for (key, name, _) in self.layers().flat_map(variables::declared) {
            if self.is_parameter(name) {
                diagnostics.push(
                    Diagnostic::error(key.span, format!("`{name}` is a parameter and a variable")).hint("rename one of them"),
                );
            } else {
                diagnostics.extend(refuse_name("a variable", name, key.span));
                refuse_fact_name(name, key.span, diagnostics);
            }
            known.insert(name);
        }
        known.insert(LAUNCHER);
        template::check(&tree.without(&["parameters"]), Some(&known), diagnostics);
        let mut before: BTreeSet<&str> = BTreeSet::from(["system"]);
        for parameter in &self.parameters {
            template::check(&parameter.values, Some(&before), diagnostics);
            before.insert(&parameter.name);
        }
    }

    /// Reports settings that an entry of `when` cannot have, and selectors that never match.
    fn check_rules(&self, tree: &Node, known: &KnownSystems, diagnostics: &mut Vec<Diagnostic>) {
        let entries = tree.get("when").map(Node::items).unwrap_or_default();
        for system in entries.iter().filter_map(|entry| entry.get("system")) {
            known.check_names(system, diagnostics);
        }
        let late = self.rules.iter().enumerate().filter(|(index, _)| !self.early_rules.contains(index));
        for (key, _) in late.flat_map(|(_, rule)| rule.overlay.only(&EARLY_SETTINGS).entries().to_vec()) {
            let message = format!("`{}` is read before this entry can be decided", key.text().unwrap_or_default());
            let hint = "select by parameters and the system's name only, or write it in the check itself";
            diagnostics.push(Diagnostic::error(key.place(), message).hint(hint));
        }
        // With values from the command line, values in the file may be unused.
        if self.overrides.is_none() {
            for parameter in &self.parameters {
                let wanted =
                    self.rules.iter().flat_map(|rule| &rule.condition.with).filter(|wanted| *wanted.name == *parameter.name);
                parameter.check_wanted(wanted.flat_map(|wanted| &wanted.values), diagnostics);
            }
        }
    }

    /// Returns whether `name` is one of its parameters.
    pub fn is_parameter(&self, name: &str) -> bool {
        self.parameters.iter().any(|parameter| &*parameter.name == name)
    }

    /// The check with these entries of `when` merged over it.
    pub(crate) fn layer(&self, applied: &[usize]) -> Arc<Layer> {
        // A poisoned lock only means that another case panicked; the layers themselves are whole.
        let mut layers = self.layers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(layer) = layers.get(applied) {
            return layer.clone();
        }
        let layer = Arc::new(self.build_layer(applied));
        layers.insert(applied.to_vec(), layer.clone());
        layer
    }

    fn build_layer(&self, applied: &[usize]) -> Layer {
        let mut diagnostics = Vec::new();
        let overlays = applied.iter().map(|index| &self.rules[*index].overlay).chain(&self.overrides);
        let tree = overlays.fold(self.tree.clone(), |tree, overlay| yaml::merge(&tree, overlay, &mut diagnostics));
        let variables = Variables::of(&tree, !self.is_parameter("num_tasks"), &mut diagnostics);
        let rules = tree.get("reference").map(Node::items).unwrap_or_default();
        let reference_conditions = rules.iter().map(|rule| when::condition(rule, &self.parameters, &mut diagnostics)).collect();
        Layer {
            tree: tree.without(&["variables", "parameters", "when"]),
            variables,
            reference_conditions,
            diagnostics,
            fixed: OnceLock::new(),
            early: OnceLock::new(),
        }
    }

    /// Returns whether it has a variable, or `num_tasks`, of this name.
    pub fn is_variable(&self, name: &str) -> bool {
        name == "num_tasks" || self.declared_variables().any(|declared| declared == name)
    }

    /// The names of its parameters and variables.
    pub fn declared_names(&self) -> Vec<String> {
        let parameters = self.parameters.iter().map(|parameter| parameter.name.to_string());
        parameters.chain(self.declared_variables().map(str::to_owned)).collect()
    }

    fn declared_variables(&self) -> impl Iterator<Item = &str> {
        self.layers().flat_map(variables::declared).map(|(_, name, _)| name)
    }

    /// The check itself and what its `when` entries set.
    fn layers(&self) -> impl Iterator<Item = &Node> {
        std::iter::once(&self.tree).chain(self.rules.iter().map(|rule| &rule.overlay))
    }

    /// Returns whether it has `valid_systems`. A check without it runs only as a fixture of others.
    pub fn runs_by_itself(&self) -> bool {
        !self.is_imported && self.layers().chain(&self.overrides).any(|layer| layer.get("valid_systems").is_some())
    }

    /// The same check with variables set.
    pub(crate) fn with_variables(&self, set: &[Arc<Setting>]) -> Self {
        let overlay = parameter::as_variables(set);
        let overrides = match &self.overrides {
            Some(overrides) => yaml::merge(overrides, &overlay, &mut Vec::new()),
            None => overlay,
        };
        Self { set: set.to_vec(), overrides: Some(overrides), cache: Arc::default(), layers: Arc::default(), ..self.clone() }
    }
}

impl Layer {
    /// Whether no placeholder is in the settings.
    pub(crate) fn is_fixed(&self) -> bool {
        !self.tree.has_placeholder_within()
    }
}

/// A name that would hide a fact.
fn refuse_fact_name(name: &str, span: Span, diagnostics: &mut Vec<Diagnostic>) {
    if FACTS.contains(&name) {
        let message = format!("`{name}` is a fact that Muster fills in");
        diagnostics.push(Diagnostic::error(span, message).hint("choose another name"));
    }
}

//! A check, validated: its settings with every `when` entry laid over them, and its cases.
//!
//! The tree of the file stays the truth. For a case, the entries of `when` that hold are merged over it, its
//! placeholders are filled in, and the result is decoded with the one table of keys. What depends only on *which*
//! entries hold is kept in a [`Layer`] and shared by all cases that have it in common.
//!
//! ```text
//! Document -new-> Check -cases(system)-> TestCase ... (test_case: render)
//!   tree + when[0, 2] = Layer { tree, variables in order }
//! ```

use crate::{
    check_file::CheckFile,
    decode::{Context, Decode, Placeholders},
    diagnostic::{Diagnostic, Span},
    load::{Document, Manifests},
    parameter::{self, Parameter, Variant},
    references,
    render::Fact,
    selector::Selector,
    settings,
    site::System,
    site_facts::{KnownSystems, SystemFacts},
    template::{self, Cache},
    test_case::{Place, TestCase},
    variables::{self, Variables},
    when::{self, Condition, Rule},
    yaml::{self, Node},
};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, OnceLock},
};

/// Names that every expression knows beside parameters and variables.
pub const FACTS: [&str; 8] = ["system", "partition", "environ", "num_tasks", "identifier", "session", "stagedir", "scheduler"];

/// The names that are known before a partition is chosen.
const EARLY_KEYS: [&str; 4] = ["name", "valid_systems", "valid_prog_environs", "tags"];

/// A test definition, ready to be expanded.
#[derive(Debug)]
pub struct Check {
    /// Its name.
    pub name: Arc<str>,
    /// Its file, as the user would type it.
    pub path: Arc<str>,
    /// Where its name stands.
    pub span: Span,
    /// The manifests it may mention.
    pub(crate) manifests: Arc<Manifests>,
    /// Compiled placeholders, shared by all its cases.
    pub(crate) cache: Cache,
    /// The processor and device facts that its expressions mention.
    pub(crate) facts: Vec<Fact>,
    parameters: Vec<Parameter>,
    /// Without `parameters` and `when`.
    tree: Node,
    rules: Vec<Rule>,
    /// What `-S` says; it wins over everything.
    overrides: Option<Node>,
    layers: Mutex<HashMap<Vec<usize>, Arc<Layer>>>,
}

/// A check with some entries of `when` laid over it.
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

/// What is known of a variant before a partition is chosen.
#[derive(Debug, Clone)]
pub struct Early {
    valid_systems: Selector,
    valid_environs: Selector,
    /// `tags`
    pub tags: Vec<String>,
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
        let tree = match &overrides {
            Some(overrides) => yaml::merge(&document.tree, overrides, diagnostics),
            None => document.tree.clone(),
        };
        let mut context = Context::new(Placeholders::Defer);
        let file = CheckFile::decode(&tree, &mut context);
        diagnostics.append(&mut context.diagnostics);
        let file = file?;
        for settings in std::iter::once(&file).chain(file.when.iter().flatten().map(|entry| &entry.decoded)) {
            settings::check(settings, diagnostics);
            references::check(settings, known, diagnostics);
        }
        let is_abstract = file.r#abstract.unwrap_or(false);

        let parameters = tree.get("parameters").map(parameter::declared).unwrap_or_default();
        let rules = when::rules(&tree, &parameters, diagnostics);
        let check = Self {
            name: document.name.clone(),
            path: document.path.clone(),
            span: document.span,
            manifests,
            cache: Cache::default(),
            parameters,
            rules,
            overrides,
            facts: mentioned(&tree),
            layers: Mutex::default(),
            tree: tree.without(&["parameters", "when", "abstract", "extends"]),
        };
        check.check_names(&tree, diagnostics);
        (!is_abstract).then_some(check)
    }

    /// Tells every placeholder that does not compile or reads a name that nobody declares.
    fn check_names(&self, tree: &Node, diagnostics: &mut Vec<Diagnostic>) {
        let mut known: BTreeSet<&str> =
            FACTS.into_iter().chain(self.parameters.iter().map(|parameter| &*parameter.name)).collect();
        let layers = std::iter::once(tree).chain(self.rules.iter().map(|rule| &rule.overlay));
        for (key, name, _) in layers.flat_map(variables::declared) {
            if self.parameters.iter().any(|parameter| &*parameter.name == name) {
                diagnostics.push(
                    Diagnostic::error(key.span, format!("`{name}` is a parameter and a variable")).hint("rename one of them"),
                );
            } else if FACTS.contains(&name) {
                diagnostics.push(
                    Diagnostic::error(key.span, format!("`{name}` is a fact that Muster fills in")).hint("choose another name"),
                );
            }
            known.insert(name);
        }
        template::check(&tree.without(&["parameters"]), &known, diagnostics);
        let mut before: BTreeSet<&str> = BTreeSet::from(["system"]);
        for parameter in &self.parameters {
            template::check(parameter.values(), &before, diagnostics);
            before.insert(&parameter.name);
        }
    }

    /// Its parameters as declared.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Whether `name` is one of its parameters.
    pub fn is_parameter(&self, name: &str) -> bool {
        self.parameters.iter().any(|parameter| &*parameter.name == name)
    }

    /// The entries of `when`.
    pub(crate) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The check with these entries of `when` laid over it.
    pub(crate) fn layer(&self, applied: &[usize]) -> Arc<Layer> {
        // A poisoned lock only means that another case panicked; the layers themselves are whole.
        let mut layers = self.layers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(layer) = layers.get(applied) {
            return layer.clone();
        }
        let layer = Arc::new(self.lay(applied));
        layers.insert(applied.to_vec(), layer.clone());
        layer
    }

    fn lay(&self, applied: &[usize]) -> Layer {
        let mut diagnostics = Vec::new();
        let overlays = applied.iter().map(|index| &self.rules[*index].overlay).chain(&self.overrides);
        let tree = overlays.fold(self.tree.clone(), |tree, overlay| yaml::merge(&tree, overlay, &mut diagnostics));
        let variables = Variables::of(&tree, &mut diagnostics);
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

    /// All cases on a system, before any filter.
    pub fn cases(self: &Arc<Self>, site: &SystemFacts, diagnostics: &mut Vec<Diagnostic>) -> Vec<TestCase> {
        let variants = parameter::expand(&self.parameters, &site.scope, &self.cache, diagnostics);
        let early_rules: Vec<usize> = (0..self.rules.len())
            .filter(|index| self.rules[*index].condition.is_early(&|name| self.is_parameter(name)))
            .collect();
        let mut cases = Vec::new();
        for variant in variants {
            let Some(applied) = self.early(&variant, &early_rules, site, diagnostics) else { continue };
            let Some(early) = self.early_settings(&variant, &applied, site, diagnostics) else { continue };
            let variant = Arc::new(variant);
            for place in site.places.iter().filter(|place| early.admits(&site.system, place)) {
                cases.push(TestCase::new(self.clone(), variant.clone(), place.clone(), early.clone()));
            }
        }
        cases
    }

    /// The early entries that hold for a variant; `None` if one of them takes it off the list.
    fn early(
        &self,
        variant: &Variant,
        rules: &[usize],
        site: &SystemFacts,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Vec<usize>> {
        let mut applied = Vec::new();
        for &index in rules {
            let rule = &self.rules[index];
            let condition = &rule.condition;
            if !condition.admits_variant(variant) || !condition.admits_system(&site.system.name) {
                continue;
            }
            if let Some((expression, node)) = &condition.expression {
                match expression.eval_bool(&variant.scope(&site.scope)) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(error) => {
                        diagnostics.push(template::mistake(&error, node));
                        continue;
                    }
                }
            }
            if rule.skip.is_some() {
                return None;
            }
            applied.push(index);
        }
        Some(applied)
    }

    fn early_settings(
        &self,
        variant: &Variant,
        applied: &[usize],
        site: &SystemFacts,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Arc<Early>> {
        let layer = self.layer(applied);
        if let Some(early) = layer.early.get() {
            return Some(early.clone());
        }
        diagnostics.extend(layer.diagnostics.iter().cloned());
        let keys = layer.tree.only(&EARLY_KEYS);
        let is_fixed = !keys.has_placeholder_within();
        let rendered = template::render(&keys, &variant.scope(&site.scope), &self.cache, diagnostics)?;
        let early = Arc::new(Early::read(&rendered, self.span, site, diagnostics)?);
        if is_fixed { Some(layer.early.get_or_init(|| early).clone()) } else { Some(early) }
    }
}

impl Early {
    fn read(rendered: &Node, name: Span, site: &SystemFacts, diagnostics: &mut Vec<Diagnostic>) -> Option<Self> {
        let mut context = Context::new(Placeholders::Refuse);
        let file = CheckFile::decode(rendered, &mut context);
        diagnostics.append(&mut context.diagnostics);
        let Some(systems) = rendered.get("valid_systems") else {
            diagnostics.push(
                Diagnostic::error(name, "`valid_systems` is missing")
                    .hint("write valid_systems: [\"*\"], or name systems, partitions and features"),
            );
            return None;
        };
        let valid_systems = when::selector(systems, diagnostics);
        site.known.check_names(systems, diagnostics);
        let valid_environs =
            rendered.get("valid_prog_environs").map_or_else(Selector::any, |node| when::selector(node, diagnostics));
        Some(Self { valid_systems, valid_environs, tags: file?.tags.map(|tags| tags.0).unwrap_or_default() })
    }

    fn admits(&self, system: &System, place: &Place) -> bool {
        self.valid_systems.admits(system, &place.partition) && self.valid_environs.admits_environment(&place.environ)
    }
}

impl Layer {
    /// Whether no placeholder is in the settings.
    pub(crate) fn is_fixed(&self) -> bool {
        !self.tree.has_placeholder_within()
    }
}

/// The facts that any text in a tree mentions.
fn mentioned(tree: &Node) -> Vec<Fact> {
    match &*tree.kind {
        yaml::Kind::Scalar { text, .. } => Fact::mentioned(text),
        yaml::Kind::Seq(items) => items.iter().flat_map(mentioned).collect(),
        yaml::Kind::Map(entries) => entries.iter().flat_map(|(_, value)| mentioned(value)).collect(),
        yaml::Kind::Bad => vec![],
    }
}

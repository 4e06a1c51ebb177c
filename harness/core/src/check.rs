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
    Value,
    check_file::CheckFile,
    decode::{Context, Decode, Placeholders},
    diagnostic::{Diagnostic, Severity, Span},
    expr::Scope,
    load::{Document, Manifests},
    parameter::{self, Parameter, Variant},
    render::Fact,
    selector::{Entry, Selector},
    settings,
    site::{Partition, System},
    template::{self, Cache},
    test_case::{Place, TestCase},
    when::{self, Rule},
    yaml::{self, Node},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
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
    /// Variables and `num_tasks`, each behind those it reads.
    variables: Vec<(Arc<str>, Node)>,
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
        settings::check(&file, diagnostics);
        for entry in file.when.iter().flatten() {
            settings::check(&entry.decoded, diagnostics);
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
        let variables = layers.filter_map(|node| node.get("variables")).flat_map(Node::entries);
        for (key, _) in variables {
            let Some(name) = key.text() else { continue };
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
        let variables = in_order(&tree, &mut diagnostics);
        Layer {
            tree: tree.without(&["variables", "parameters", "when"]),
            variables,
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
    /// Adds the variables and `num_tasks` to a scope.
    pub(crate) fn evaluate(&self, scope: &mut Scope, cache: &Cache, diagnostics: &mut Vec<Diagnostic>) {
        for (name, node) in &self.variables {
            let Some(rendered) = template::render(node, scope, cache, diagnostics) else {
                scope.set(&**name, Value::Null);
                continue;
            };
            match yaml::to_parameter_value(&rendered) {
                Ok(value) => scope.set(&**name, value),
                Err(mut mistakes) => diagnostics.append(&mut mistakes),
            }
        }
    }

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

/// Variables and `num_tasks`, each behind those it reads; a circle is told as a path.
fn in_order(tree: &Node, diagnostics: &mut Vec<Diagnostic>) -> Vec<(Arc<str>, Node)> {
    let mut nodes: BTreeMap<&str, &Node> = tree
        .get("variables")
        .map(Node::entries)
        .unwrap_or_default()
        .iter()
        .filter_map(|(key, node)| key.text().map(|name| (name, node)))
        .collect();
    if let Some(node) = tree.get("num_tasks") {
        nodes.insert("num_tasks", node);
    }
    let mut order = Order { nodes: &nodes, done: Vec::new(), trail: Vec::new(), diagnostics };
    for name in nodes.keys() {
        order.visit(name);
    }
    let mut done: Vec<(Arc<str>, Node)> = order.done.into_iter().map(|name| (Arc::from(name), nodes[name].clone())).collect();
    if !nodes.contains_key("num_tasks") {
        done.insert(0, ("num_tasks".into(), Node::from_value(&1.into(), tree.span)));
    }
    done
}

struct Order<'a> {
    nodes: &'a BTreeMap<&'a str, &'a Node>,
    done: Vec<&'a str>,
    trail: Vec<&'a str>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl<'a> Order<'a> {
    fn visit(&mut self, name: &'a str) {
        if self.done.contains(&name) {
            return;
        }
        let node = self.nodes[name];
        if self.trail.contains(&name) {
            let circle = format!("{} -> {name}", self.trail.join(" -> "));
            self.diagnostics.push(Diagnostic::error(node.span, format!("variables need each other: {circle}")));
            return;
        }
        self.trail.push(name);
        let names = template::names(node);
        let nodes = self.nodes;
        for (needed, _) in nodes.iter().filter(|(needed, _)| names.contains(**needed)) {
            self.visit(needed);
        }
        self.trail.pop();
        if !self.done.contains(&name) {
            self.done.push(name);
        }
    }
}

/// A system with what expressions see of it, converted once.
#[derive(Debug)]
pub struct SystemFacts {
    /// The system.
    pub system: Arc<System>,
    /// `system` in expressions.
    pub scope: Arc<Scope>,
    /// Every partition with each of its environments.
    pub places: Vec<Arc<Place>>,
    /// All systems of all site files, for mistakes in names.
    pub known: KnownSystems,
}

impl SystemFacts {
    /// Prepares a system.
    pub fn new(system: Arc<System>, known: KnownSystems) -> Self {
        let mut scope = Scope::new();
        scope.set("system", system_value(&system));
        let scope = Arc::new(scope);
        let pairs =
            system.partitions.iter().flat_map(|partition| partition.environs.iter().map(move |environ| (partition, environ)));
        let places = pairs.map(|(partition, environ)| Arc::new(Place::new(&system, partition, environ, &scope))).collect();
        Self { system, scope, places, known }
    }
}

fn system_value(system: &System) -> Value {
    serde_json::json!({ "name": system.name, "descr": system.descr, "extras": system.extras })
}

/// The names of systems and partitions, for telling typing mistakes from other sites' names.
#[derive(Debug, Clone, Default)]
pub struct KnownSystems {
    partitions: BTreeMap<String, Vec<String>>,
}

impl KnownSystems {
    /// Collects the names.
    pub fn of<'a>(systems: impl IntoIterator<Item = &'a System>) -> Self {
        let names = |partitions: &[Arc<Partition>]| partitions.iter().map(|partition| partition.name.clone()).collect();
        Self { partitions: systems.into_iter().map(|system| (system.name.clone(), names(&system.partitions))).collect() }
    }

    /// Tells names that are known nowhere: an error when a known one is near, else a warning, since a check may be shared
    /// with sites that are not described here.
    pub fn check_names(&self, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        let items = if matches!(&*node.kind, yaml::Kind::Seq(_)) { node.items() } else { std::slice::from_ref(node) };
        for item in items {
            let Some(Ok(entry)) = item.text().map(Entry::parse) else { continue };
            diagnostics.extend(entry.names().filter_map(|(system, partition)| self.unknown(system, partition, item.span)));
        }
    }

    fn unknown(&self, system: Option<&str>, partition: Option<&str>, span: Span) -> Option<Diagnostic> {
        let system = system?;
        let Some(partitions) = self.partitions.get(system) else {
            let near = crate::diagnostic::nearest(system, self.partitions.keys().map(String::as_str));
            let message = format!("no site file defines a system `{system}`");
            return Some(match near {
                Some(near) => Diagnostic::error(span, message).hint(format!("did you mean `{near}`?")),
                None => Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message) },
            });
        };
        let partition = partition.filter(|partition| !partitions.iter().any(|known| known == partition))?;
        let near = crate::diagnostic::nearest(partition, partitions.iter().map(String::as_str));
        let hint =
            near.map_or_else(|| format!("it has {}", partitions.join(", ")), |near| format!("did you mean `{system}:{near}`?"));
        Some(Diagnostic::error(span, format!("system `{system}` has no partition `{partition}`")).hint(hint))
    }
}

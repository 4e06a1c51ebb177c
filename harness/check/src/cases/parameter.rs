//! Parameters and their product, the variants of a check, without the combinations that `exclude` names.
//!
//! ```yaml
//! parameters: { tile: [1, 2, 4], ranks: [1, 8, 64] }
//! exclude:
//!   - { tile: 4, ranks: [1, 64] }
//! ```
//! A parameter's values are a list, or a placeholder that becomes one; it sees the system and the parameters declared
//! before it. A value may be a mapping with a scalar `name`, which is then how the value is displayed.

use muster_core::case::CaseHash;
use muster_text::{
    Value,
    diagnostic::{Diagnostic, Span},
    expr::Scope,
    template::{self, Cache},
    yaml::{self, Kind, Node},
};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

/// More variants are a mistake, for example the product of three ranges.
const MOST_VARIANTS: usize = 100_000;

/// A parameter as declared.
#[derive(Debug, Clone)]
pub struct Parameter {
    pub name: Arc<str>,
    pub span: Span,
    /// Its values as written.
    pub values: Node,
}

/// One parameter's value in a variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    pub name: Arc<str>,
    pub value: Value,
    /// The value as it is displayed and hashed.
    pub text: Arc<str>,
}

/// One point of the product.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Variant {
    /// Every parameter's value, in the order of declaration.
    pub settings: Vec<Arc<Setting>>,
}

impl Variant {
    /// `nbody %num_bodies=512000`
    pub fn display(&self, check: &str) -> String {
        let mut text = check.to_owned();
        for setting in &self.settings {
            text.push_str(" %");
            text.push_str(&setting.name);
            text.push('=');
            text.push_str(&setting.text);
        }
        text
    }

    pub fn hash(&self, check: &str) -> CaseHash {
        CaseHash::of(check, self.settings.iter().map(|setting| (&*setting.name, &*setting.text)))
    }

    /// One parameter's value.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| &*setting.name == name).map(Arc::as_ref)
    }

    /// The scope of expressions: the parameters over what `parent` holds.
    pub fn scope(&self, parent: &Arc<Scope>) -> Scope {
        let mut scope = Scope::under(parent.clone());
        for setting in &self.settings {
            scope.set(&*setting.name, setting.value.clone());
        }
        scope
    }
}

impl Parameter {
    /// Warns of `with` values that it never takes: such a selector silently holds for nothing. Only where all values are
    /// written out.
    pub fn check_wanted<'n>(&self, wanted: impl Iterator<Item = &'n Node>, diagnostics: &mut Vec<Diagnostic>) {
        let mut wanted = wanted.filter(|node| !node.has_placeholder()).peekable();
        if wanted.peek().is_none() || self.values.has_placeholder_within() {
            return;
        }
        let values = self.values.items().iter().filter_map(|item| display(&yaml::to_parameter_value(item).ok()?));
        let values: HashSet<String> = values.collect();
        for node in wanted.filter(|node| node.text().is_none_or(|text| !values.contains(text))) {
            let message = format!("parameter `{}` is never `{}`", self.name, node.text().unwrap_or(node.what()));
            let warning = Diagnostic::warning(node.place(), message);
            let known = values.iter().map(String::as_str);
            diagnostics.push(warning.did_you_mean(node.text().unwrap_or_default(), known, Some("no case matches")));
        }
    }
}

/// Values of a parameter, one of which a selector wants, as written.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub name: String,
    pub values: Vec<Node>,
}

impl Wanted {
    pub fn admits(&self, variant: &Variant) -> bool {
        let setting = variant.get(&self.name);
        setting.is_some_and(|setting| self.values.iter().any(|value| value.text() == Some(&*setting.text)))
    }
}

/// The mistake of a selector whose key is not a parameter.
pub(crate) fn unknown(key: &Node, parameters: &[Parameter], otherwise: &str) -> Diagnostic {
    let name = key.text().unwrap_or_default();
    let known = parameters.iter().map(|parameter| &*parameter.name);
    Diagnostic::error(key.span, format!("there is no parameter `{name}`")).did_you_mean(name, known, Some(otherwise))
}

/// Reads the entries of `exclude`: a variant that has all values of one entry is not a case. With values from the command
/// line, values in the file may be unused.
pub(crate) fn excluded(
    check: &Node,
    parameters: &[Parameter],
    is_overridden: bool,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Vec<Wanted>> {
    let entries = check.get("exclude").map(Node::items).unwrap_or_default();
    let entries = entries.iter().filter(|entry| matches!(&*entry.kind, Kind::Map(_)));
    entries.map(|entry| excluded_by(entry, parameters, is_overridden, diagnostics)).collect()
}

fn excluded_by(entry: &Node, parameters: &[Parameter], is_overridden: bool, diagnostics: &mut Vec<Diagnostic>) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    if entry.entries().is_empty() {
        let message = "an empty entry of `exclude` leaves no case";
        diagnostics.push(Diagnostic::error(entry.place(), message).hint("name values of parameters: `{ tile: 4 }`"));
    }
    for (key, value) in entry.entries() {
        let Some(name) = key.text() else { continue };
        let values = value.one_or_many();
        for node in values.iter().filter(|node| node.has_placeholder()) {
            let hint = "give the parameter a computed list of values instead";
            diagnostics.push(Diagnostic::error(node.place(), "`exclude` cannot hold a placeholder").hint(hint));
        }
        match parameters.iter().find(|parameter| &*parameter.name == name) {
            Some(parameter) if !is_overridden => parameter.check_wanted(values.iter(), diagnostics),
            Some(_) => {}
            None => diagnostics.push(unknown(key, parameters, "`exclude` compares parameters")),
        }
        wanted.push(Wanted { name: name.to_owned(), values: values.to_vec() });
    }
    wanted
}

/// Reads the `parameters` mapping.
pub fn declared(parameters: &Node) -> Vec<Parameter> {
    let name = |key: &Node| key.text().map(|name| (Arc::from(name), key.span));
    let entries = parameters.entries().iter();
    entries.filter_map(|(key, values)| name(key).map(|(name, span)| Parameter { name, span, values: values.clone() })).collect()
}

/// The product of all parameters, the last one fastest. A check without parameters has one variant.
pub fn expand(parameters: &[Parameter], system: &Arc<Scope>, cache: &Cache, diagnostics: &mut Vec<Diagnostic>) -> Vec<Variant> {
    let mut expansion = Expansion { system, cache, diagnostics, known: HashMap::new(), reads: HashMap::new() };
    let mut variants = vec![Variant::default()];
    for parameter in parameters {
        let mut grown = Vec::new();
        for variant in &variants {
            let values = expansion.values(parameter, variant);
            if grown.len() + values.len() > MOST_VARIANTS {
                let message = format!("with `{}` this check has more than {MOST_VARIANTS} variants", parameter.name);
                let hint = "each variant is a case: give the parameters fewer values, or make several checks of it";
                expansion.diagnostics.push(Diagnostic::error(parameter.span, message).hint(hint));
                return vec![];
            }
            grown.extend(values.into_iter().map(|setting| {
                let mut settings = Vec::with_capacity(parameters.len());
                settings.extend_from_slice(&variant.settings);
                settings.push(setting);
                Variant { settings }
            }));
        }
        variants = grown;
    }
    variants
}

struct Expansion<'a> {
    system: &'a Arc<Scope>,
    cache: &'a Cache,
    diagnostics: &'a mut Vec<Diagnostic>,
    /// Values that do not depend on other parameters, by parameter.
    known: HashMap<Arc<str>, Vec<Arc<Setting>>>,
    /// The names that a parameter's values read.
    reads: HashMap<Arc<str>, BTreeSet<String>>,
}

impl Expansion<'_> {
    fn values(&mut self, parameter: &Parameter, variant: &Variant) -> Vec<Arc<Setting>> {
        if let Some(values) = self.known.get(&parameter.name) {
            return values.clone();
        }
        let values = self.read(parameter, variant);
        let reads = self.reads.entry(parameter.name.clone()).or_insert_with(|| template::names(&parameter.values));
        if !variant.settings.iter().any(|setting| reads.contains(&*setting.name)) {
            self.known.insert(parameter.name.clone(), values.clone());
        }
        values
    }

    fn read(&mut self, parameter: &Parameter, variant: &Variant) -> Vec<Arc<Setting>> {
        let scope = variant.scope(self.system);
        let Some(list) = template::render(&parameter.values, &scope, self.cache, self.diagnostics) else { return vec![] };
        let Kind::Seq(items) = &*list.kind else {
            let message = format!("parameter `{}` needs a list of values, found {}", parameter.name, list.what());
            self.diagnostics.push(Diagnostic::error(list.span, message).hint("write [value, value]"));
            return vec![];
        };
        if items.is_empty() {
            let message = format!("parameter `{}` has no values, so the check has no case", parameter.name);
            self.diagnostics
                .push(Diagnostic::error(list.span, message).hint("give it a value, or mark the check `abstract: true`"));
        }
        let mut seen: HashMap<Arc<str>, Span> = HashMap::with_capacity(items.len());
        let mut settings = Vec::with_capacity(items.len());
        for item in items {
            let setting = match setting(parameter, item) {
                Ok(setting) => setting,
                Err(mut mistakes) => {
                    self.diagnostics.append(&mut mistakes);
                    continue;
                }
            };
            if let Some(first) = seen.insert(setting.text.clone(), item.span) {
                let message =
                    format!("parameter `{}` has the value `{}` twice, which would be one case", parameter.name, setting.text);
                self.diagnostics.push(Diagnostic::error(item.span, message).related(first, "first here"));
                continue;
            }
            settings.push(Arc::new(setting));
        }
        settings
    }
}

fn setting(parameter: &Parameter, item: &Node) -> Result<Setting, Vec<Diagnostic>> {
    let value = yaml::to_parameter_value(item)?;
    let text = display(&value).ok_or_else(|| {
        let message = format!("a value of parameter `{}` is {}", parameter.name, item.what());
        vec![Diagnostic::error(item.span, message).hint("write a scalar, or a mapping with a scalar `name`")]
    })?;
    Ok(Setting { name: parameter.name.clone(), value, text: text.into() })
}

/// Returns the display form of a value: a scalar as it is, a mapping by its `name`.
pub fn display(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Object(map) => map.get("name").filter(|name| !name.is_object()).and_then(display),
        Value::Null | Value::Array(_) => None,
    }
}

/// The settings as `variables: { name: value }`, to merge over a check. `num_tasks` is a key that is read like a variable.
pub(crate) fn as_variables(set: &[Arc<Setting>]) -> Node {
    let span = Span::default();
    let key = |text: &str| Node::scalar(span, text, yaml::Style::Quoted);
    let entry = |setting: &Arc<Setting>| (key(&setting.name), Node::from_value(&setting.value, span));
    let (keys, variables): (Vec<_>, Vec<_>) = set.iter().partition(|setting| &*setting.name == "num_tasks");
    let variables = Node::new(span, Kind::Map(variables.into_iter().map(entry).collect()));
    Node::new(span, Kind::Map(keys.into_iter().map(entry).chain([(key("variables"), variables)]).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_of_a_fixture_sets_is_a_variable_or_the_number_of_tasks() {
        let setting = |name: &str, value: i64| Setting { name: name.into(), value: value.into(), text: value.to_string().into() };
        let tree = as_variables(&[Arc::new(setting("num_tasks", 4)), Arc::new(setting("n", 1))]);
        let value = yaml::to_parameter_value(&tree).expect("sound");
        assert_eq!(value.to_string(), r#"{"num_tasks":4,"variables":{"n":1}}"#);
    }
}

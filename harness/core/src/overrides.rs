//! `-S [CHECK.]VAR=VALUE` and `-P [CHECK.]VAR=V0,V1`: settings of the command line, laid over everything a file says.

use crate::{
    Value,
    check_file::CheckFile,
    decode::Keyed,
    diagnostic::{Diagnostic, Sources, Span, nearest},
    load::Document,
    yaml::{self, Node},
};
use serde_json::{Map, json};

/// One `-S` or `-P`.
#[derive(Debug, Clone)]
pub struct Override {
    /// Only this check's.
    check: Option<String>,
    name: String,
    value: Value,
    /// The text as typed, in the sources.
    span: Span,
    is_parameter: bool,
    used: bool,
}

/// All of an invocation.
#[derive(Debug, Default)]
pub struct Overrides(Vec<Override>);

impl Overrides {
    /// Reads the options; their texts become sources, so that a mistake shows the option as typed.
    pub fn parse(
        set: &[String],
        parameterize: &[String],
        checks: &[Document],
        sources: &mut Sources,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let options = set.iter().map(|text| (text, "-S")).chain(parameterize.iter().map(|text| (text, "-P")));
        let read = |(text, flag): (&String, &str)| match option(text, flag, checks, sources) {
            Ok(option) => Some(option),
            Err(diagnostic) => {
                diagnostics.push(diagnostic);
                None
            }
        };
        Self(options.filter_map(read).collect())
    }

    /// What they say of one check, as a tree to lay over it.
    pub fn of(&mut self, document: &Document, diagnostics: &mut Vec<Diagnostic>) -> Option<Node> {
        let tree = &document.tree;
        let (mut settings, mut span) = (Map::new(), None);
        for option in &mut self.0 {
            if option.check.as_deref().is_some_and(|check| check != &*document.name) {
                continue;
            }
            let variable = tree.get("variables").and_then(|variables| variables.get(&option.name));
            let parameter = tree.get("parameters").and_then(|parameters| parameters.get(&option.name));
            let (room, value) = match (option.is_parameter, variable, parameter) {
                (false, Some(declared), _) => (Some("variables"), typed(option, declared)),
                (false, None, Some(_)) => (Some("parameters"), Ok(json!([option.value]))),
                (false, None, None) if is_key(&option.name) => (None, Ok(listed(option, tree.get(&option.name)))),
                (true, Some(_), _) | (true, _, Some(_)) => (Some("parameters"), Ok(option.value.clone())),
                (_, None, None) => continue,
            };
            option.used = true;
            span.get_or_insert(option.span);
            match value {
                Ok(value) => insert(&mut settings, room, &option.name, value),
                Err(diagnostic) => diagnostics.push(diagnostic),
            }
            if option.is_parameter && variable.is_some() {
                insert(&mut settings, Some("variables"), &option.name, Value::Null);
            }
        }
        span.map(|span| Node::from_value(&Value::Object(settings), span))
    }

    /// Tells the options that no check took.
    pub fn unused(&self, checks: &[Document], diagnostics: &mut Vec<Diagnostic>) {
        for option in self.0.iter().filter(|option| !option.used) {
            let names = |room| {
                checks
                    .iter()
                    .filter_map(move |check| check.tree.get(room))
                    .flat_map(Node::entries)
                    .filter_map(|(key, _)| key.text())
            };
            let known: Vec<&str> = names("variables").chain(names("parameters")).collect();
            let what = if option.is_parameter { "variable or parameter" } else { "variable, parameter or key" };
            let diagnostic = Diagnostic::error(option.span, format!("no check has a {what} `{}`", option.name));
            diagnostics.push(match nearest(&option.name, known.iter().copied()) {
                Some(near) => diagnostic.hint(format!("did you mean `{near}`?")),
                None => diagnostic,
            });
        }
    }
}

/// A key of a check that is set as a whole.
fn is_key(name: &str) -> bool {
    let fixed = ["name", "abstract", "extends", "parameters", "variables", "when"];
    !fixed.contains(&name) && CheckFile::TABLE.keys.iter().any(|key| key.name == name)
}

fn insert(settings: &mut Map<String, Value>, room: Option<&str>, name: &str, value: Value) {
    match room {
        None => {
            settings.insert(name.to_owned(), value);
        }
        Some(room) => {
            let inner = settings.entry(room).or_insert_with(|| json!({}));
            if let Value::Object(inner) = inner {
                inner.insert(name.to_owned(), value);
            }
        }
    }
}

fn option(text: &str, flag: &str, checks: &[Document], sources: &mut Sources) -> Result<Override, Diagnostic> {
    let file = sources.add(format!("the option {flag}"), text);
    let span = Span { file, start: 0, end: u32::try_from(text.len()).unwrap_or(u32::MAX) };
    let example = if flag == "-S" { "write -S blocks=16 or -S stream.blocks=16" } else { "write -P blocks=8,16" };
    let (target, value) =
        text.split_once('=').ok_or_else(|| Diagnostic::error(span, format!("{flag} lacks `=`")).hint(example))?;
    let scoped = target.rsplit_once('.').filter(|(check, _)| checks.iter().any(|known| *known.name == **check));
    let (check, name) = scoped.map_or((None, target), |(check, name)| (Some(check.to_owned()), name));
    let is_parameter = flag == "-P";
    let parse =
        |text: &str| scalar(text).map_err(|why| Diagnostic::error(span, why).hint("quote the value as YAML would want it"));
    let value = if is_parameter && !value.trim_start().starts_with('[') {
        Value::Array(value.split(',').map(parse).collect::<Result<_, _>>()?)
    } else {
        parse(value)?
    };
    Ok(Override { check, name: name.to_owned(), value, span, is_parameter, used: false })
}

/// A value as YAML reads it; text that YAML would take for something odd stays text.
fn scalar(text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Ok(Value::String(String::new()));
    }
    let parsed = yaml::parse(crate::diagnostic::FileId::default(), text);
    if let Some(mistake) = parsed.diagnostics.first() {
        return Err(mistake.message.clone());
    }
    let node = parsed.documents.first().ok_or("the value is empty")?;
    yaml::to_parameter_value(node)
        .map_err(|mistakes| mistakes.into_iter().next().map_or_else(String::new, |mistake| mistake.message))
}

/// The value, if it is of the declared one's type.
fn typed(option: &Override, declared: &Node) -> Result<Value, Diagnostic> {
    let value = listed(option, Some(declared));
    let Ok(before) = yaml::to_parameter_value(declared) else { return Ok(value) };
    let same = declared.has_placeholder()
        || matches!(
            (&before, &value),
            (Value::Null, _)
                | (Value::Bool(_), Value::Bool(_))
                | (Value::Number(_), Value::Number(_))
                | (Value::Array(_), Value::Array(_))
                | (Value::Object(_), Value::Object(_))
        );
    match before {
        Value::String(_) if !declared.has_placeholder() => {
            Ok(Value::String(value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        }
        _ if same => Ok(value),
        _ => {
            Err(Diagnostic::error(option.span, format!("variable `{}` is {} and `{value}` is not", option.name, declared.what()))
                .related(declared.span, "declared here"))
        }
    }
}

/// `a,b` for something that is a list.
fn listed(option: &Override, declared: Option<&Node>) -> Value {
    let is_list = declared.is_some_and(|node| matches!(&*node.kind, yaml::Kind::Seq(_)));
    match &option.value {
        Value::String(text) if is_list => Value::Array(text.split(',').map(Value::from).collect()),
        value => value.clone(),
    }
}

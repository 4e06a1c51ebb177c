//! The keys that depend on the scheduler: its options, and keys that several schedulers have.

use muster_core::job::descriptor::{NamedScheduler, SharedKey, WrongOption};
use muster_text::{
    Value,
    decode::{Context, Key, Placeholders},
    diagnostic::{Diagnostic, Span, did_you_mean},
    yaml::{Node, to_value},
};
use serde_json::Map;

const LAUNCHER: &str = "launcher";

/// Reports options that none of the schedulers has, and values of theirs that cannot be read. `elsewhere`: options that have no
/// effect here.
pub fn check_options(
    options: &Node,
    schedulers: &[NamedScheduler],
    elsewhere: &[&str],
    placeholders: Placeholders,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut context = Context::new(placeholders);
    for (name, value) in options.entries() {
        let Some(text) = name.text() else { continue };
        let known = || schedulers.iter().flat_map(|scheduler| scheduler.options);
        match known().find(|option| option.name == text) {
            Some(option) if value.is_null() && !option.takes_null => {}
            Some(option) => (option.set)(&mut (), value, &mut context),
            None if elsewhere.contains(&text) => {}
            None => {
                let refused = schedulers.iter().flat_map(|scheduler| scheduler.refused_options);
                let instead = refused.into_iter().find(|(refused, _)| *refused == text).map(|(_, instead)| (*instead).to_owned());
                let diagnostic = Diagnostic::error(name.place(), unknown(text, schedulers));
                context.push(diagnostic.hint(instead.unwrap_or_else(|| names(text, known()))));
            }
        }
    }
    diagnostics.append(&mut context.diagnostics);
}

/// Options whose values the scheduler refuses, each where `place` says that it is written. Others are somebody else's.
pub fn refused_options(scheduler: NamedScheduler, options: &Value, place: impl Fn(&str) -> Option<Span>) -> Vec<Diagnostic> {
    let wrong = (scheduler.wrong_options)(options).into_iter();
    wrong.filter_map(|wrong| Some(Diagnostic { span: Some(place(wrong.name)?), ..wrong.mistake })).collect()
}

/// The items of two lists, in order. A value that is no list is one of one item; null is an empty one.
pub fn joined(first: Value, more: Value) -> Value {
    let items = |value| match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items,
        one => vec![one],
    };
    Value::Array([items(first), items(more)].concat())
}

/// Mistakes in the keys of a partition that several schedulers have, each where the key is written.
pub fn wrong_shared(scheduler: NamedScheduler, tree: &Node, shared: &Map<String, Value>) -> Vec<Diagnostic> {
    let at = |key: &str, mistake| Diagnostic { span: tree.get(key).map(Node::place), ..mistake };
    let wrong = |shared: Map<String, Value>| (scheduler.wrong_shared)(&Value::Object(shared)).into_iter();
    // Asked of each item alone, the same mistake tells which item has it.
    let mut items: Vec<(Span, WrongOption)> = Vec::new();
    for (key, value) in shared {
        let places = tree.get(key).into_iter().flat_map(Node::items).map(Node::place);
        for (place, item) in places.zip(value.as_array().into_iter().flatten()) {
            let alone = Map::from_iter([(key.clone(), Value::Array(vec![item.clone()]))]);
            items.extend(wrong(alone).map(|wrong| (place, wrong)));
        }
    }
    let place = |wrong: WrongOption| {
        let same = items.iter().position(|(_, known)| *known == wrong);
        match same.map(|at| items.remove(at).0) {
            Some(item) => Diagnostic { span: Some(item), ..wrong.mistake },
            None => at(wrong.name, wrong.mistake),
        }
    };
    let mut mistakes: Vec<Diagnostic> = wrong(shared.clone()).map(place).collect();
    // Values are known only with a check: here any will do.
    let launcher = shared.get(LAUNCHER).and_then(Value::as_str);
    let line = launcher.map(|launcher| scheduler.launchers.line(Some(launcher), |_| Some("1".to_owned())));
    mistakes.extend(line.and_then(Result::err).map(|mistake| at(LAUNCHER, mistake)));
    mistakes
}

/// `unknown option `lables` of the scheduler k8s`
pub fn unknown(option: &str, schedulers: &[NamedScheduler]) -> String {
    let mut names: Vec<&str> = schedulers.iter().map(|scheduler| scheduler.name).collect();
    names.sort_unstable();
    names.dedup();
    match &names[..] {
        [only] => format!("unknown option `{option}` of the scheduler {only}"),
        several => format!("unknown option `{option}` of the schedulers {}", several.join(", ")),
    }
}

/// The nearest name, else all of them.
pub fn names<'a>(option: &str, known: impl Iterator<Item = &'a Key<()>>) -> String {
    let mut names: Vec<&str> = known.map(|option| option.name).collect();
    names.sort_unstable();
    names.dedup();
    did_you_mean(option, names.iter().copied()).unwrap_or_else(|| match &names[..] {
        [] => "it has no options".to_owned(),
        names => format!("its options are {}", names.join(", ")),
    })
}

/// The values of those of these keys that the scheduler takes. Those that it refuses are mistakes.
pub fn shared_keys(
    scheduler: NamedScheduler,
    tree: &Node,
    keys: impl Iterator<Item = &'static str>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Map<String, Value> {
    let mut values = Map::new();
    for key in keys {
        let Some(node) = tree.get(key).filter(|node| !node.is_null()) else { continue };
        match scheduler.shared_key(key) {
            SharedKey::Ignores => {}
            SharedKey::Takes => match to_value(node) {
                Ok(value) => _ = values.insert(key.to_owned(), value),
                Err(mut mistakes) => diagnostics.append(&mut mistakes),
            },
            SharedKey::Refuses(hint) => {
                let message = format!("`{key}` has no meaning on `{scheduler}`");
                diagnostics.push(Diagnostic::error(node.place(), message).hint(hint));
            }
        }
    }
    values
}

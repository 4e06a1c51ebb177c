//! Values of a configuration: each is carried over whole, or a line says that it is not.

use super::{Reader, get, items, text};
use crate::{loaded::Step, report::Level, value::Value};
use muster_text::diagnostic::did_you_mean;

/// Keys whose text the shell of a job expands.
const SHELL: [&str; 1] = ["prepare_cmds"];

impl Reader<'_> {
    /// Keys that ReFrame does not have either: it refuses them, too, but a file may be converted that was never loaded.
    pub(super) fn unknown_keys(&mut self, of: &Value, path: &[Step], what: &str, known: &[&str]) {
        let Value::Dict(entries) = of else { return };
        for (key, value) in entries.iter().filter(|(_, value)| *value != Value::None) {
            let Some(key) = key.as_str() else {
                let why = format!("a key of {what} is no text: {}", value.shown().unwrap_or_default());
                self.tell(path, Level::Refused, why, "write the key out");
                continue;
            };
            if known.contains(&key) {
                continue;
            }
            let path = [path, &[Step::Key(key.to_owned())]].concat();
            let instead = did_you_mean(key, known.iter().copied()).unwrap_or_else(|| format!("{what} has no such key"));
            self.tell(&path, Level::Dropped, format!("`{key}` is not carried over"), &instead);
        }
    }

    /// The text without which there is no entry.
    pub(super) fn named(&mut self, of: &Value, path: &[Step], key: &str) -> Option<String> {
        let named = text(of, key);
        if named.is_none() {
            let path = [path, &[Step::Key(key.to_owned())]].concat();
            self.tell(&path, Level::Refused, format!("an entry without a `{key}` that is written out is left out"), "write it");
        }
        named
    }

    /// The items of a key. One that is not known was told of where it stands.
    pub(super) fn items<'v>(&mut self, of: &'v Value, path: &[Step], key: &str) -> &'v [Value] {
        let Some(value) = get(of, key) else { return &[] };
        if value.items().is_none() {
            let path = [path, &[Step::Key(key.to_owned())]].concat();
            self.tell(&path, Level::Refused, format!("`{key}` is left out: it is no list that is written out"), "write it out");
        }
        items(value)
    }

    /// A list of mappings, each made into another one.
    pub(super) fn each(
        &mut self,
        of: &Value,
        path: &[Step],
        key: &str,
        mut make: impl FnMut(&mut Self, &Value, &[Step]) -> Value,
    ) -> Option<(String, Value)> {
        let list = self.items(of, path, key);
        let mut all = Vec::new();
        for (at, item) in list.iter().enumerate() {
            let path = [path, &[Step::Key(key.to_owned()), Step::At(at)]].concat();
            if !matches!(item, Value::Dict(_)) {
                self.tell(
                    &path,
                    Level::Refused,
                    format!("`{key}` is left out: an item is no mapping that is written out"),
                    "write it out",
                );
                return None;
            }
            all.push(make(self, item, &path));
        }
        (!all.is_empty()).then(|| (key.to_owned(), Value::List(all)))
    }

    /// The values of these keys, each as it is or with a line.
    pub(super) fn carried(&mut self, of: &Value, path: &[Step], keys: &[&str]) -> Vec<(String, Value)> {
        let mut made = Vec::new();
        for key in keys {
            let Some(value) = get(of, key) else { continue };
            let path = [path, &[Step::Key((*key).to_owned())]].concat();
            made.extend(self.value(key, value, &path).map(|value| ((*key).to_owned(), value)));
        }
        made
    }

    /// A value, whole or not at all. Of `extras` each entry stands by itself.
    pub(super) fn value(&mut self, key: &str, value: &Value, path: &[Step]) -> Option<Value> {
        let shell = SHELL.contains(&key);
        if let ("extras", Value::Dict(entries)) = (key, value) {
            let kept = entries.iter().filter_map(|(name, value)| {
                let shown = name.shown()?;
                let path = [path, &[Step::Key(shown.clone())]].concat();
                Some((Value::Str(shown.clone()), self.value(&shown, value, &path)?))
            });
            return Some(Value::Dict(kept.collect()));
        }
        let made = if value.is_unknown() { Err("a part of it was not carried over") } else { crate::check::plain(value, shell) };
        match made {
            Ok(made) => Some(made),
            Err(why) => {
                let instead = if value.is_unknown() { "write it out" } else { "write the value: nothing expands it here" };
                self.tell(path, Level::Refused, format!("`{key}` is left out: {why}"), instead);
                None
            }
        }
    }

    /// `[['NAME', 'value']]` or a mapping, and ReFrame's old word for it.
    pub(super) fn env_vars(&mut self, of: &Value, path: &[Step]) -> Option<(String, Value)> {
        let mut made: Vec<(Value, Value)> = Vec::new();
        for key in ["env_vars", "variables"] {
            let path = [path, &[Step::Key(key.to_owned())]].concat();
            let pairs: Vec<Option<(&Value, &Value)>> = match get(of, key) {
                None => continue,
                Some(Value::Dict(entries)) => entries.iter().map(|(name, value)| Some((name, value))).collect(),
                Some(list) if list.items().is_some() => {
                    let pair = |pair: &'_ Value| matches!(pair.items(), Some([_, _]));
                    items(list).iter().map(|item| pair(item).then(|| (&items(item)[0], &items(item)[1]))).collect()
                }
                Some(_) => vec![None],
            };
            for (at, pair) in pairs.into_iter().enumerate() {
                let is_list = get(of, key).is_some_and(|value| value.items().is_some());
                let named = |name: &Value| Step::Key(name.shown().unwrap_or_default());
                let step = pair.filter(|_| !is_list).map_or(Step::At(at), |(name, _)| named(name));
                let path = [&path[..], &[step]].concat();
                let entry = pair.and_then(|(name, value)| Some((name.as_str()?, Value::joined(value.pieces()?))));
                let Some((name, value)) = entry.filter(|(_, value)| crate::check::plain(value, true).is_ok()) else {
                    let why = format!("an entry of `{key}` is left out: it is no name with a text");
                    self.tell(&path, Level::Refused, why, "write it in `env_vars`");
                    continue;
                };
                self.expanded(&value, &path);
                if made.iter().any(|(known, _)| known.as_str() == Some(name)) {
                    let why = format!("the variable `{name}` is set twice, and the first value is left out");
                    self.tell(&path, Level::Refused, why, "write one value");
                    made.retain(|(known, _)| known.as_str() != Some(name));
                }
                made.push((Value::text(name), value));
            }
        }
        (!made.is_empty()).then(|| ("env_vars".to_owned(), Value::Dict(made)))
    }

    /// Notes a variable of ReFrame's environment that the job has to have now.
    pub(super) fn expanded(&mut self, value: &Value, path: &[Step]) {
        if let Value::Text(_) = value {
            let why = "the shell of the job expands the variable, not the program that loads the file".to_owned();
            self.tell(path, Level::Note, why, "name the variable in `pass_env`, so that jobs inherit it");
        }
    }
}

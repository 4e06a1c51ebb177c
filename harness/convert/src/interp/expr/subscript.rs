//! `a[b]`: reading it, and setting it.

use crate::interp::{Interp, Made, Stop, expr::operators::subject};
use crate::{
    python::{Expr, ExprKind},
    value::{
        Choice, Manifest, Piece, Thing, Value,
        cel::{Cel, Kind, Prec},
        cond::{Cond, Subject},
    },
};
use std::sync::Arc;

impl Interp<'_> {
    pub(crate) fn subscript(&mut self, of: &Value, index: &Expr, line: u32) -> Made {
        if let ExprKind::Slice(bounds) = &index.kind {
            return self.slice(of, bounds, line);
        }
        let index = self.expr(index)?;
        self.item(of, &index, None, line)
    }

    /// `of[index]`, or `of.get(index, default)`.
    pub(crate) fn item(&mut self, of: &Value, index: &Value, default: Option<&Value>, line: u32) -> Made {
        match of {
            Value::Dict(entries) => self.looked_up(entries, index, default, line),
            Value::List(_) | Value::Tuple(_) | Value::Str(_) if index.is_constant() => {
                element(of, index).ok_or_else(|| Stop::new(line, "there is no such item"))
            }
            Value::List(_) | Value::Tuple(_) => {
                let entries: Option<Vec<_>> =
                    of.items().map(|items| (0..).zip(items).map(|(at, item)| (Value::Int(at), item.clone())).collect());
                let entries = entries.ok_or_else(|| Stop::new(line, "which item this is depends on a branch"))?;
                self.looked_up(&entries, index, None, line)
            }
            Value::Choice(choice) => {
                let choice = choice.clone();
                choice.map(|value| self.item(value, index, default, line))
            }
            Value::Cel(cel) => self.computed_item(cel, index, default, line),
            Value::Judge(judge) => {
                let index = self.cel(index, line)?;
                let text = format!("{}[{}]", judge.cel.at(Prec::Atom), index.text);
                Ok(Value::Judge(crate::value::judge::Judge::plain(Cel::new(text, Prec::Atom, Kind::Any))))
            }
            Value::Thing(Thing::Name(name)) if name == "os.environ" => environment(index, default, line),
            Value::Thing(Thing::Manifest(manifest)) => manifest_item(manifest, index, line),
            Value::Thing(Thing::Fact(path)) => self.fact_item(path, index, default, line),
            Value::Unknown => Err(Stop::silent(line)),
            _ => Err(Stop::new(line, "an item of this value cannot be followed")),
        }
    }

    fn looked_up(&mut self, entries: &[(Value, Value)], index: &Value, default: Option<&Value>, line: u32) -> Made {
        if index.is_constant() {
            let found = entries.iter().find(|(key, _)| key.equals(index) == Some(true)).map(|(_, value)| value);
            return found.or(default).cloned().ok_or_else(|| {
                let key = index.repr().unwrap_or_default();
                Stop::new(line, format!("the mapping has no {key}")).level(crate::report::Level::Defect)
            });
        }
        if let Value::Choice(choice) = index {
            let choice = choice.clone();
            return choice.map(|index| self.looked_up(entries, index, default, line));
        }
        let subject = subject(index);
        let mut arms = Vec::new();
        for (key, value) in entries {
            let cond = match &subject {
                Some(subject) => self.test.is(subject, std::slice::from_ref(key)),
                None => self.equal(index, key, line)?,
            };
            match cond {
                Cond::Always(false) => {}
                Cond::Always(true) => return Ok(value.clone()),
                cond => arms.push((cond, value.clone())),
            }
        }
        let is_complete = matches!(&subject, Some(Subject::Parameter(name, _)) if self.test.param(name).is_some_and(|param| {
            !param.is_abstract && param.values.iter().all(|value| entries.iter().any(|(key, _)| key.equals(value) == Some(true)))
        }));
        let default = if is_complete { None } else { default.cloned() };
        if arms.is_empty() {
            return default.ok_or_else(|| Stop::new(line, "the mapping has none of the keys that are asked for"));
        }
        if arms.iter().all(|(_, value)| *value == arms[0].1) && (is_complete || default.as_ref() == Some(&arms[0].1)) {
            return Ok(arms.remove(0).1);
        }
        Ok(Value::Choice(Box::new(Choice { arms, default })))
    }

    fn computed_item(&mut self, cel: &Cel, index: &Value, default: Option<&Value>, line: u32) -> Made {
        let key = self.cel(index, line)?;
        let kind = match &cel.subject {
            Some(Subject::Parameter(name, _)) => self.test.param(name).map_or(Kind::Any, |param| {
                let kinds = param.values.iter().map(|value| match value {
                    Value::Dict(entries) => {
                        entries.iter().find(|(key, _)| key == index).map_or(Kind::Any, |(_, value)| value.kind())
                    }
                    value => element(value, index).map_or(Kind::Any, |value| value.kind()),
                });
                kinds.reduce(Kind::either).unwrap_or(Kind::Any)
            }),
            _ => Kind::Any,
        };
        if let Some(default) = default {
            let default = self.cel(default, line)?;
            return Ok(Value::Cel(Cel::call("get", &[cel.clone(), key, default], kind)));
        }
        let is_word = index.as_str().is_some_and(|text| {
            text.starts_with(|letter: char| letter.is_ascii_alphabetic())
                && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        });
        let text = match index {
            Value::Str(word) if is_word => format!("{}.{word}", cel.at(Prec::Atom)),
            Value::Int(at) if *at < 0 => return Err(Stop::new(line, "an item counted from the end has no counterpart")),
            _ => format!("{}[{}]", cel.at(Prec::Atom), key.text),
        };
        Ok(Value::Cel(Cel::new(text, Prec::Atom, kind)))
    }

    fn slice(&mut self, of: &Value, bounds: &[Option<Expr>], line: u32) -> Made {
        let mut numbers = Vec::new();
        for bound in bounds {
            numbers.push(match bound {
                None => None,
                Some(bound) => match self.expr(bound)? {
                    Value::Int(number) => Some(number),
                    Value::None => None,
                    _ => return Err(Stop::new(line, "a computed slice has no counterpart")),
                },
            });
        }
        let [from, to, None | Some(1)] = numbers[..] else {
            return Err(Stop::new(line, "a slice with a step has no counterpart"));
        };
        let cut = |length: usize| {
            let length = i64::try_from(length).unwrap_or(i64::MAX);
            let at = |bound: Option<i64>, otherwise: i64| match bound {
                Some(bound) if bound < 0 => (length.saturating_add(bound)).max(0),
                Some(bound) => bound.min(length),
                None => otherwise,
            };
            let (from, to) = (at(from, 0), at(to, length));
            let place = |at: i64| usize::try_from(at).unwrap_or(0);
            place(from)..place(to.max(from))
        };
        match of {
            Value::Str(text) => {
                let letters: Vec<char> = text.chars().collect();
                Ok(Value::Str(letters[cut(letters.len())].iter().collect()))
            }
            Value::List(items) if of.items().is_some() => Ok(Value::List(items[cut(items.len())].to_vec())),
            Value::Tuple(items) => Ok(Value::Tuple(items[cut(items.len())].to_vec())),
            _ => Err(Stop::new(line, "a slice of a computed value has no counterpart")),
        }
    }

    /// The value with one of its items set; `keys` lead to it.
    pub(crate) fn with_item(&mut self, of: &Value, keys: &[Value], new: Value, line: u32) -> Made {
        let Some((key, rest)) = keys.split_first() else { return Ok(new) };
        match of {
            Value::Dict(entries) => {
                // A computed key stays an expression: `reference[self.current_partition.fullname] = ..`.
                let is_same = |known: &Value| if key.is_constant() { known.equals(key) == Some(true) } else { known == key };
                let mut entries = entries.clone();
                let at = entries.iter().position(|(known, _)| is_same(known));
                let inner = at.map_or(Value::Dict(vec![]), |at| entries[at].1.clone());
                let value = self.with_item(&inner, rest, new, line)?;
                match at {
                    Some(at) => entries[at].1 = value,
                    None => entries.push((key.clone(), value)),
                }
                Ok(Value::Dict(entries))
            }
            Value::List(items) if of.items().is_some() => {
                let at = key_place(key, items.len()).ok_or_else(|| Stop::new(line, "there is no such item"))?;
                let mut items = items.clone();
                items[at] = self.with_item(&items[at].clone(), rest, new, line)?;
                Ok(Value::List(items))
            }
            Value::Thing(Thing::Manifest(manifest)) => {
                let patch = patched(&manifest.patch, manifest.content.as_ref(), keys, new, line)?;
                Ok(Value::Thing(Thing::Manifest(Arc::new(Manifest { patch, ..(**manifest).clone() }))))
            }
            Value::Choice(choice) => {
                let choice = choice.clone();
                choice.map(|value| self.with_item(value, keys, new.clone(), line))
            }
            Value::Absent if !rest.is_empty() || !matches!(key, Value::Int(_)) => {
                self.with_item(&Value::Dict(vec![]), keys, new, line)
            }
            _ => Err(Stop::new(line, "an item of this value cannot be set here")),
        }
    }
}

fn key_place(key: &Value, length: usize) -> Option<usize> {
    let Value::Int(at) = key else { return None };
    let place =
        if *at < 0 { length.checked_sub(usize::try_from(at.unsigned_abs()).ok()?)? } else { usize::try_from(*at).ok()? };
    (place < length).then_some(place)
}

/// An item of a constant list, tuple or text.
pub(crate) fn element(of: &Value, index: &Value) -> Option<Value> {
    match of {
        Value::Str(text) => {
            let letters: Vec<char> = text.chars().collect();
            key_place(index, letters.len()).map(|at| Value::Str(letters[at].to_string()))
        }
        Value::List(_) | Value::Tuple(_) => {
            let items = of.items()?;
            key_place(index, items.len()).map(|at| items[at].clone())
        }
        _ => None,
    }
}

/// `os.environ[..]`: the shell of the job expands it.
pub(crate) fn environment(name: &Value, default: Option<&Value>, line: u32) -> Made {
    let Value::Str(name) = name else { return Err(Stop::new(line, "which variable is read is not known here")) };
    let shell = match default {
        None | Some(Value::None) => format!("${name}"),
        Some(Value::Str(default)) => format!("${{{name}:-{default}}}"),
        Some(_) => return Err(Stop::new(line, "this default of an environment variable has no counterpart")),
    };
    Ok(Value::Text(vec![Piece::Shell(shell)]))
}

/// What stands in a manifest, as far as the file could be read and nothing was laid over it.
fn manifest_item(manifest: &Manifest, key: &Value, line: u32) -> Made {
    let in_patch = match (&manifest.patch, key) {
        (Value::Dict(entries), key) => entries.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone()),
        _ => None,
    };
    let in_file = match &manifest.content {
        Some(Value::Dict(entries)) => entries.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone()),
        Some(list) => element(list, key),
        None => return Err(unread(manifest, line)),
    };
    match (in_file, in_patch) {
        (_, Some(patched)) if patched.is_constant() && !matches!(patched, Value::Dict(_)) => Ok(patched),
        (Some(value @ (Value::Dict(_) | Value::List(_))), patch) => Ok(Value::Thing(Thing::Manifest(Arc::new(Manifest {
            path: manifest.path.clone(),
            content: Some(value),
            patch: patch.unwrap_or(Value::Dict(vec![])),
        })))),
        (Some(value), None) => Ok(value),
        _ => Err(Stop::new(line, format!("{} has no {}", manifest.path, key.repr().unwrap_or_default()))),
    }
}

fn unread(manifest: &Manifest, line: u32) -> Stop {
    Stop::new(line, format!("{} could not be read", manifest.path)).instead("put it where the check names it and convert again")
}

/// A patch with one more thing laid over the manifest. Items of lists are named as Muster merges them: by `name`.
fn patched(patch: &Value, content: Option<&Value>, keys: &[Value], new: Value, line: u32) -> Made {
    let Some((key, rest)) = keys.split_first() else { return Ok(new) };
    if let Value::Int(at) = key {
        let item = content.and_then(|content| element(content, &Value::Int(*at)));
        let name = match &item {
            Some(Value::Dict(entries)) => {
                entries.iter().find(|(key, _)| key.as_str() == Some("name")).map(|(_, name)| name.clone())
            }
            _ => None,
        };
        let Some(name) = name else {
            return Err(Stop::new(line, format!("item {at} of this list has no `name` that is known here"))
                .instead("in `k8s_patch` items of a list are merged by their `name`; write the name, or the whole list"));
        };
        let named =
            |value: &Value| matches!(value, Value::Dict(entries) if entries.first().is_some_and(|(_, known)| *known == name));
        let mut items = match patch {
            Value::List(items) => items.clone(),
            _ => vec![],
        };
        let known = items.iter().position(named);
        let inner = known.map_or_else(|| Value::Dict(vec![(Value::text("name"), name.clone())]), |known| items[known].clone());
        let value = patched(&inner, item.as_ref(), rest, new, line)?;
        match known {
            Some(known) => items[known] = value,
            None => items.push(value),
        }
        return Ok(Value::List(items));
    }
    let mut entries = match patch {
        Value::Dict(entries) => entries.clone(),
        _ => vec![],
    };
    let below = match content {
        Some(Value::Dict(entries)) => entries.iter().find(|(known, _)| known == key).map(|(_, value)| value),
        _ => None,
    };
    let at = entries.iter().position(|(known, _)| known == key);
    let inner = at.map_or(Value::Dict(vec![]), |at| entries[at].1.clone());
    let value = patched(&inner, below, rest, new, line)?;
    match at {
        Some(at) => entries[at].1 = value,
        None => entries.push((key.clone(), value)),
    }
    Ok(Value::Dict(entries))
}

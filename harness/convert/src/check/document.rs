//! A check as it is written, and where each part of it was set in Python.

use crate::{
    interp::Sets,
    loaded::{SELECTORS, Step},
    value::{ClassId, Value},
};
use std::collections::BTreeMap;

/// A check, ready to be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Document {
    /// The class it came from.
    pub id: ClassId,
    /// Its name.
    pub name: String,
    /// The comments above it.
    pub comments: Vec<String>,
    /// Its keys.
    pub entries: Vec<(String, Value)>,
    /// The places of its attributes, its functions and the class (as `name`): the file and line.
    pub lines: BTreeMap<String, (usize, u32)>,
    /// Every place that sets an attribute.
    pub sets: Sets,
}

impl Document {
    /// Where a part was set, by what stands there; the class, if that is not known.
    pub(crate) fn place_of(&self, unit: &[Step], path: &[Step]) -> (usize, u32) {
        let at = |path: &[Step]| {
            let (first, rest) = path.split_first()?;
            let (_, value) = self.entries.iter().find(|(key, _)| first.key() == Some(key))?;
            rest.iter().try_fold(value, |value, step| step.of(value))
        };
        let (part, mut wrong) = (at(unit), at(path));
        let mut keys: Vec<&str> = path.iter().filter_map(Step::key).skip_while(|key| *key == "when").take(2).collect();
        // A branch is found by what it sets.
        if let (true, Some(Value::Dict(settings))) = (keys.first().is_some_and(|key| SELECTORS.contains(key)), part)
            && let Some((key, value)) = settings.iter().find(|(key, _)| !SELECTORS.contains(&key.as_str().unwrap_or_default()))
        {
            (keys, wrong) = (key.as_str().into_iter().collect(), Some(value));
        }
        let names = match keys[..] {
            ["sanity", ..] => vec!["sanity_patterns"],
            ["name", ..] => vec![],
            _ => keys.iter().rev().map(|key| key.trim_end_matches('+')).collect(),
        };
        let likeness = |value: &Value| {
            let parts = part.map(Value::leaves).unwrap_or_default();
            let has_it = wrong.is_some_and(|wrong| value.contains(wrong));
            (has_it, parts.iter().filter(|part| value.contains(part)).count())
        };
        // The first of those that are alike.
        let set_at = |name: &&str| self.sets.get(*name)?.iter().rev().max_by_key(|(_, value)| likeness(value)).map(|(at, _)| *at);
        let place = names.iter().find_map(|name| set_at(name).or_else(|| self.lines.get(*name).copied()));
        place.or_else(|| self.lines.get("name").copied()).unwrap_or((self.id.0, 1))
    }
}

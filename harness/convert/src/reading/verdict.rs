//! Reads what a class judges by: its sanity function and its figures.

use super::{Reading, functions, named};
use crate::{
    interp::{
        call::{Args, decorator},
        get, set,
    },
    judged::references,
    value::{Method, Thing, Value},
    world::World,
};

impl Reading<'_> {
    /// Performance functions fill `perf_variables` before any hook runs.
    pub(super) fn decorated_figures(&mut self, world: &World) {
        let mut figures: Vec<(Value, Value)> = Vec::new();
        for id in self.interp.test.lineage.clone() {
            let Some(class) = world.class(&id) else { continue };
            for function in functions(class) {
                let Some(call) = function.decorators.iter().find_map(|above| decorator(above, "performance_function")) else {
                    continue;
                };
                let most_derived = self.interp.test.methods.get(&function.name);
                if most_derived.is_none_or(|method| method.class != id)
                    || function.params.len() > 1 && function.params[1].1.is_none()
                {
                    continue;
                }
                let key = call
                    .keywords
                    .iter()
                    .find(|(name, _)| name.as_deref() == Some("perf_key"))
                    .map(|(_, key)| key)
                    .or_else(|| call.args.get(1));
                let name = key.and_then(|key| self.interp.expr(key).ok()).filter(|key| *key != Value::None);
                let method = Method { function: function.clone(), class: id.clone() };
                let name = name.unwrap_or_else(|| Value::text(&*function.name));
                if let Value::Str(name) = &name {
                    self.interp.lines.insert(name.clone(), (id.0, function.line));
                }
                if figures.iter().all(|(known, _)| *known != name) {
                    figures.push((name, Value::Thing(Thing::Bound(method))));
                }
            }
        }
        if !figures.is_empty() {
            set(&mut self.interp.state.attrs, "perf_variables", Value::Dict(figures));
        }
    }

    /// Evaluates the sanity function and the figures.
    pub(super) fn judged(&mut self, world: &World) {
        let lineage = self.interp.test.lineage.clone();
        let sanity = lineage.iter().find_map(|id| {
            let class = world.class(id)?;
            let function =
                functions(class).find(|function| function.decorators.iter().any(|above| named(above, "sanity_function")))?;
            Some(Method { function: function.clone(), class: id.clone() })
        });
        let assigned = get(&self.interp.state.attrs, "sanity_patterns").cloned().filter(|value| *value != Value::None);
        self.sanity = match (assigned, sanity) {
            (Some(value), _) => Some(value),
            (None, Some(method)) => {
                self.interp.lines.insert("sanity_patterns".to_owned(), (method.class.0, method.function.line));
                let frame = self.interp.enter(method.class.0, Some(method.class.clone()));
                let value = self.interp.inline(&method, vec![], &[], method.function.line);
                let value = value.unwrap_or_else(|stop| {
                    self.interp.tell(stop);
                    Value::Unknown
                });
                self.interp.frame = frame;
                Some(value)
            }
            (None, None) => None,
        };
        let figures = get(&self.interp.state.attrs, "perf_variables").cloned();
        let patterns = get(&self.interp.state.attrs, "perf_patterns").cloned();
        if let Some(Value::Dict(entries)) = figures {
            for (name, value) in entries {
                let value = self.figure(value);
                self.figures.push((name, value));
            }
        }
        // The old form has no units of its own; ReFrame takes the reference's.
        if let Some(Value::Dict(entries)) = patterns {
            let (rows, _) = references(&self.attr("reference").cloned().unwrap_or(Value::None));
            for (name, value) in entries {
                let row = rows.iter().find(|row| name.as_str() == Some(&row.variable));
                let unit = row.and_then(|row| row.values.get(3).cloned()).unwrap_or(Value::None);
                self.figures.push((name, Value::Figure(Box::new((value, unit)))));
            }
        }
    }

    fn figure(&mut self, value: Value) -> Value {
        match value {
            Value::Thing(Thing::Bound(method)) => {
                let frame = self.interp.enter(method.class.0, Some(method.class.clone()));
                let line = method.function.line;
                let value = self.interp.called(&Value::Thing(Thing::Bound(method)), Args::default(), line);
                let value = value.unwrap_or_else(|stop| {
                    self.interp.tell(stop);
                    Value::Unknown
                });
                self.interp.frame = frame;
                value
            }
            Value::Choice(choice) => {
                let made: Result<Value, ()> = choice.map(|value| Ok(self.figure(value.clone())));
                made.unwrap_or(Value::Unknown)
            }
            other => other,
        }
    }
}

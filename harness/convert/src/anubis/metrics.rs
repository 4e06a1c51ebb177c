//! Figures: `[[output.metrics]]` as `perf_variables`.

use super::descriptor::{Descriptor, Said};
use crate::{Level, pattern, value::Value};

/// `None` if there are none.
pub(super) fn variables(descriptor: &mut Descriptor<'_>) -> Option<Value> {
    old_list(descriptor);
    let mut variables: Vec<(Value, Value)> = Vec::new();
    for at in 0.. {
        let path = format!("output.metrics.{at}");
        if !descriptor.has(&format!("{path}.")) {
            break;
        }
        let line = descriptor.line_of(&path);
        let [name, unit, pattern] = ["name", "units", "pattern"].map(|key| descriptor.text(&format!("{path}.{key}")));
        let Some(name) = name else {
            descriptor.say(line, Level::Defect, "a metric has no name".to_owned(), None);
            continue;
        };
        let key = Value::Str(spelled(&name.value));
        if variables.iter().any(|(known, _)| *known == key) {
            descriptor.say(name.line, Level::Defect, format!("there are two metrics called `{}`", name.value), None);
            continue;
        }
        if let Some(pattern) = pattern
            && let Some(pattern) = translated(descriptor, &pattern)
        {
            // A metric of Anubis is a series, written as it comes; a figure of Muster is one number.
            let mut entry = vec![("pattern", pattern)];
            entry.extend(unit.map(|unit| ("unit", unit.value)));
            entry.push(("reduce", "last".to_owned()));
            let entry = entry.into_iter().map(|(key, value)| (Value::Str(key.to_owned()), Value::Str(value))).collect();
            variables.push((key, Value::Dict(entry)));
            let why = format!("`{}` is the last match; Anubis keeps all of them", name.value);
            descriptor.say(name.line, Level::Note, why, None);
        } else {
            let why = format!("the metric `{}` has no pattern that Muster can use", name.value);
            descriptor.say(name.line, Level::Refused, why, Some("write `perf_variables`"));
        }
    }
    (!variables.is_empty()).then_some(Value::Dict(variables))
}

/// Descriptors of the first version name their metrics and say nothing else.
fn old_list(descriptor: &mut Descriptor<'_>) {
    if let Some(Said { line, .. }) = descriptor.take("output.metrics") {
        let why = "these metrics have names and no patterns".to_owned();
        descriptor.say(line, Level::Refused, why, Some("write `perf_variables` with a `pattern` each"));
    }
}

fn translated(descriptor: &mut Descriptor<'_>, said: &Said<String>) -> Option<String> {
    match pattern::translate(&said.value) {
        Ok(pattern) => Some(pattern),
        Err(misfit) => {
            descriptor.say(said.line, Level::Refused, misfit.why, misfit.instead.as_deref());
            None
        }
    }
}

/// As a variable may be called.
fn spelled(name: &str) -> String {
    let letter = |c: char| if c.is_alphanumeric() || "_-.".contains(c) { c } else { '_' };
    name.trim().chars().map(letter).collect()
}

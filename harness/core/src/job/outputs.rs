//! Outputs of a case and the inputs of those that depend on it: plain data, stored with plan and result, so that later rounds
//! and other processes can use them.
//!
//! ```text
//! Rules.planned_outputs (planned) --passed--> CaseResult.outputs --CaseInputs--> `fixtures.build.stagedir`, `deps.write.outputs.dir`
//! ```

use crate::{
    case::CaseName,
    job::{stdout::Stdout, workload::Workload},
};
use muster_text::{
    Value,
    pattern::{Pattern, PatternError},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

/// The outputs that a case is going to have, as known when it is planned.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PlannedOutputs {
    pub values: BTreeMap<String, Value>,
    /// Patterns by name, whose first match in stdout is the output.
    pub outputs: BTreeMap<String, String>,
    /// Runs when the last case that depends on this one has finished.
    pub teardown: Option<Box<Workload>>,
}

/// The outputs of a case.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CaseOutputs {
    /// Its stage folder, kept until the last of its users is over.
    pub stage: PathBuf,
    pub values: BTreeMap<String, Value>,
    /// Values read from its stdout, by name.
    pub outputs: BTreeMap<String, String>,
    /// Runs when the last case that depends on this one has finished.
    pub teardown: Option<Box<Workload>>,
}

/// The name under which a case reads the outputs of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Binding {
    /// `fixtures.NAME`
    Fixture(Arc<str>),
    /// `deps.CHECK`
    Check(Arc<str>),
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixture(name) => write!(f, "fixtures.{name}"),
            Self::Check(name) => write!(f, "deps.{name}"),
        }
    }
}

/// A case that must pass before another one starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    pub case: Arc<CaseName>,
    pub binding: Binding,
    /// Several cases share this name: its value is a list.
    pub is_one_of_many: bool,
}

/// The outputs of other cases that a case reads. Default: none, and no case depends on it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CaseInputs {
    pub fixtures: serde_json::Map<String, Value>,
    pub deps: serde_json::Map<String, Value>,
    /// Others depend on it: it has outputs, and its stage folder is kept.
    pub is_needed: bool,
}

/// Reads the outputs of a case from its stdout: for each pattern the value of its first match, by the rule of performance variables,
/// without the blanks around it. `at` is called with the number of each before the search.
///
/// # Errors
/// One sentence that names what is not there.
pub fn read_outputs(
    wanted: &BTreeMap<String, String>,
    stdout: &Stdout,
    at: &dyn Fn(usize),
) -> Result<BTreeMap<String, String>, String> {
    let mut outputs = BTreeMap::new();
    for (number, (name, text)) in wanted.iter().enumerate() {
        at(number);
        let failed = |error: PatternError| format!("output `{name}`: {error}");
        let pattern = Pattern::compile(text).map_err(failed)?;
        let group = pattern.groups(None).map_err(failed)?.value;
        let found = (0..stdout.sections().len()).find_map(|section| {
            let text = stdout.searched().section(section);
            let mut groups = pattern.locations(text);
            pattern.captures_read_at(&mut groups, text, 0)?;
            groups.get(group).map(|(start, end)| text.between(start, end))
        });
        let Some(found) = found else {
            return Err(format!("output `{name}` was not found: no match of '{text}', which other cases depend on"));
        };
        outputs.insert(name.clone(), String::from_utf8_lossy(&found).trim().to_owned());
    }
    Ok(outputs)
}

impl CaseInputs {
    pub fn add(&mut self, need: &Need, outputs: &CaseOutputs) {
        let (room, name) = match &need.binding {
            Binding::Fixture(name) => (&mut self.fixtures, name),
            Binding::Check(name) => (&mut self.deps, name),
        };
        let facts = outputs.facts();
        if let Some(Value::Array(list)) = room.get_mut(&**name) {
            list.push(facts);
        } else {
            let value = if need.is_one_of_many { Value::Array(vec![facts]) } else { facts };
            room.insert(name.to_string(), value);
        }
    }
}

impl CaseOutputs {
    /// Returns the values for expressions. `stagedir` and `outputs` win over values of the same name.
    pub fn facts(&self) -> Value {
        let mut facts: serde_json::Map<String, Value> =
            self.values.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        facts.insert("stagedir".to_owned(), self.stage.to_string_lossy().into());
        let outputs = self.outputs.iter().map(|(name, text)| (name.clone(), Value::from(text.as_str())));
        facts.insert("outputs".to_owned(), Value::Object(outputs.collect()));
        Value::Object(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_output_is_the_value_of_the_first_match_or_a_mistake() {
        let stdout = Stdout::of("STORAGE= /scratch/x \nSTORAGE=/other\n");
        let wanted = |pattern: &str| BTreeMap::from([("dir".to_owned(), pattern.to_owned())]);
        let read = |pattern: &str| read_outputs(&wanted(pattern), &stdout, &|_| {}).map(|outputs| outputs["dir"].clone());
        assert_eq!(read("STORAGE=(.+)").as_deref(), Ok("/scratch/x"));
        insta::assert_snapshot!(read("NONE=(.+)").unwrap_err(), @"output `dir` was not found: no match of 'NONE=(.+)', which other cases depend on");
    }

    #[test]
    fn several_of_one_name_are_a_list() {
        let name = |partition: &str| {
            Arc::new(CaseName {
                display: "w".into(),
                check: "w".into(),
                hash: "0".into(),
                system: "s".into(),
                partition: partition.into(),
                environ: "e".into(),
                hidden: String::new(),
            })
        };
        let left = |stage: &str| CaseOutputs {
            stage: stage.into(),
            values: BTreeMap::from([("n".to_owned(), json!(4)), ("stagedir".to_owned(), json!("hidden"))]),
            outputs: BTreeMap::from([("dir".to_owned(), "/x".to_owned())]),
            teardown: None,
        };
        let mut inputs = CaseInputs::default();
        for (partition, binding, is_one_of_many) in [
            ("p", Binding::Fixture("b".into()), false),
            ("p", Binding::Check("w".into()), true),
            ("q", Binding::Check("w".into()), true),
        ] {
            inputs.add(&Need { case: name(partition), binding, is_one_of_many }, &left(partition));
        }
        let facts = |stage: &str| json!({ "n": 4, "outputs": { "dir": "/x" }, "stagedir": stage });
        assert_eq!(Value::Object(inputs.fixtures), json!({ "b": facts("p") }));
        assert_eq!(Value::Object(inputs.deps), json!({ "w": [facts("p"), facts("q")] }));
    }
}

//! The test that is read: what its classes declare, and ReFrame's defaults.

use crate::value::{
    ClassId, Method, Value,
    cel::{Cel, Kind},
    cond::{Cond, Subject},
};
use std::collections::BTreeMap;

/// What is known of the test beside its attributes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Test {
    /// Its class.
    pub class: Option<ClassId>,
    /// Its parameters, in the order of the display name.
    pub params: Vec<Parameter>,
    /// Variables that no hook sets: `-S` still does.
    pub stable: Vec<String>,
    /// Its methods by name, the most derived.
    pub methods: BTreeMap<String, Method>,
    /// Its classes, the most derived first.
    pub lineage: Vec<ClassId>,
    /// Its fixtures: name, class, and whether its variants are joined.
    pub fixtures: Vec<(String, ClassId, bool)>,
    /// The names of stable variables that were read.
    pub read: Vec<String>,
}

/// A parameter with its values as Muster shows them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameter {
    /// Its name.
    pub name: String,
    /// Its values as Python has them.
    pub values: Vec<Value>,
    /// The values as ReFrame shows them.
    pub shown: Vec<String>,
    /// The values have to be mappings, for Muster would show them otherwise.
    pub is_wrapped: bool,
    /// A derived class says the values.
    pub is_abstract: bool,
}

impl Parameter {
    /// What stands for its value.
    pub(crate) fn value(&self) -> Value {
        let text = if self.is_wrapped { format!("{}.value", self.name) } else { self.name.clone() };
        let kind = self.values.iter().map(Value::kind).reduce(Kind::either).unwrap_or(Kind::Any);
        Value::Cel(Cel::subject(text, kind, Subject::Parameter(self.name.clone(), self.is_wrapped)))
    }

    /// The condition that its value is one of those that `wanted` picks.
    pub(crate) fn is(&self, wanted: impl Fn(&Value) -> bool) -> Cond {
        let mut names = Vec::new();
        for (value, shown) in self.values.iter().zip(&self.shown) {
            if wanted(value) {
                names.push(if self.is_wrapped { Value::Str(shown.clone()) } else { value.clone() });
            }
        }
        if !self.is_abstract && names.len() == self.values.len() {
            Cond::Always(true)
        } else if names.is_empty() && !self.is_abstract {
            Cond::Always(false)
        } else {
            Cond::Is(Subject::Parameter(self.name.clone(), self.is_wrapped), names)
        }
    }
}

impl Test {
    /// A parameter by name.
    pub(crate) fn param(&self, name: &str) -> Option<&Parameter> {
        self.params.iter().find(|param| param.name == name)
    }

    /// The condition that a subject has one of these values.
    pub(crate) fn is(&self, subject: &Subject, values: &[Value]) -> Cond {
        match subject {
            Subject::Parameter(name, wrapped) => match self.param(name) {
                Some(param) if !param.is_abstract => {
                    param.is(|value| values.iter().any(|wanted| wanted.equals(value) == Some(true)))
                }
                _ if *wrapped => Cond::Is(subject.clone(), values.iter().filter_map(Value::shown).map(Value::Str).collect()),
                _ => Cond::Is(subject.clone(), values.to_vec()),
            },
            _ => Cond::Is(subject.clone(), values.to_vec()),
        }
    }
}

/// Keys of a test that are lists without a value of its own.
const LISTS: [&str; 9] = [
    "executable_opts",
    "prerun_cmds",
    "postrun_cmds",
    "prebuild_cmds",
    "postbuild_cmds",
    "keep_files",
    "readonly_files",
    "maintainers",
    "modules",
];

/// Keys that are mappings or `None` without a value of its own.
const MAPS: [&str; 4] = ["reference", "perf_variables", "env_vars", "extra_resources"];
const NOTHING: [&str; 16] = [
    "num_tasks_per_node",
    "num_gpus_per_node",
    "num_cpus_per_task",
    "num_tasks_per_core",
    "num_tasks_per_socket",
    "use_multithreading",
    "max_pending_time",
    "perf_patterns",
    "time_limit",
    "build_time_limit",
    "build_system",
    "sourcepath",
    "container_platform",
    "sanity_patterns",
    "executable",
    "k8s_config",
];

/// The value of one of ReFrame's attributes without a value of its own.
pub(crate) fn default_of(name: &str) -> Option<Value> {
    Some(match name {
        "descr" => Value::text(""),
        "num_tasks" => Value::Int(1),
        "tags" => Value::List(vec![]),
        "strict_check" | "build_locally" => Value::Bool(true),
        "exclusive_access" | "local" | "require_reference" => Value::Bool(false),
        _ if LISTS.contains(&name) => Value::List(vec![]),
        _ if MAPS.contains(&name) => Value::Dict(vec![]),
        _ if NOTHING.contains(&name) => Value::None,
        _ => return None,
    })
}

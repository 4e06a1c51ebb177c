//! A system as cases see it: its partitions with their environments, what expressions read of them, and the names that
//! files may mention.

use crate::site::{Environment, Partition, System, selector::Entry};
use muster_text::{
    Value,
    diagnostic::{Diagnostic, Span, did_you_mean, nearest},
    expr::{Effort, Scope},
    yaml::Node,
};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};

/// A system with what expressions see of it, converted once.
#[derive(Debug)]
pub struct SystemFacts {
    pub system: Arc<System>,
    /// `system` in expressions.
    pub scope: Arc<Scope>,
    /// Every partition with each of its environments.
    pub places: Vec<Arc<Place>>,
    /// All systems of all site files, for mistakes in names.
    pub known: KnownSystems,
}

impl SystemFacts {
    /// Prepares a system.
    pub fn new(system: Arc<System>, known: KnownSystems) -> Self {
        Self::bounded(system, known, Effort::default())
    }

    /// Prepares a system whose expressions have these limits.
    pub fn bounded(system: Arc<System>, known: KnownSystems, effort: Effort) -> Self {
        let mut scope = Scope::new();
        scope.set_effort(Arc::new(effort));
        scope.set("system", system_value(&system));
        let scope = Arc::new(scope);
        let pairs =
            system.partitions.iter().flat_map(|partition| partition.environs.iter().map(move |environ| (partition, environ)));
        let places = pairs.map(|(partition, environ)| Arc::new(Place::new(&system, partition, environ, &scope))).collect();
        Self { system, scope, places, known }
    }
}

/// A partition with one of its environments, and what expressions see of them.
#[derive(Debug)]
pub struct Place {
    pub system: Arc<System>,
    pub partition: Arc<Partition>,
    pub environ: Arc<Environment>,
    /// `system`, `partition`, `environ` and `scheduler` in expressions.
    pub scope: Arc<Scope>,
}

impl Place {
    pub(crate) fn new(system: &Arc<System>, partition: &Arc<Partition>, environ: &Arc<Environment>, parent: &Arc<Scope>) -> Self {
        let mut scope = Scope::under(parent.clone());
        scope.set("partition", partition_value(partition));
        scope.set("environ", environ_value(environ));
        scope.set("scheduler", partition.scheduler.name);
        Self { system: system.clone(), partition: partition.clone(), environ: environ.clone(), scope: Arc::new(scope) }
    }
}

fn partition_value(partition: &Partition) -> Value {
    let devices: serde_json::Map<_, _> = partition.devices.iter().map(|device| (device.kind.clone(), json!(device))).collect();
    json!({
        "name": partition.name,
        "descr": partition.descr,
        "scheduler": partition.scheduler.name,
        "max_jobs": partition.max_jobs,
        "features": partition.features,
        "extras": partition.extras,
        "processor": partition.processor,
        "devices": devices,
    })
}

fn environ_value(environ: &Environment) -> Value {
    json!({ "name": environ.name, "features": environ.features, "extras": environ.extras })
}

fn system_value(system: &System) -> Value {
    json!({ "name": system.name, "descr": system.descr, "extras": system.extras })
}

/// The names of systems and partitions, to distinguish typing mistakes from names of other sites.
#[derive(Debug, Clone, Default)]
pub struct KnownSystems {
    partitions: BTreeMap<String, Vec<String>>,
}

impl KnownSystems {
    /// Collects the names.
    pub fn of<'a>(systems: impl IntoIterator<Item = &'a System>) -> Self {
        let names = |partitions: &[Arc<Partition>]| partitions.iter().map(|partition| partition.name.clone()).collect();
        Self { partitions: systems.into_iter().map(|system| (system.name.clone(), names(&system.partitions))).collect() }
    }

    /// Reports partitions that a described system does not have. Systems that are not described here are other sites': checks are
    /// shared between sites. The lint `unknown-system` lists them.
    pub fn check_names(&self, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        for item in node.one_or_many().iter().filter(|item| !item.has_placeholder()) {
            // Reading the selector reports what cannot be parsed.
            if let Some(Ok(entry)) = item.text().map(Entry::parse) {
                self.check_entry(&entry, item.span, diagnostics);
            }
        }
    }

    /// Reports a scope of `reference` that names such a partition, or that cannot be read.
    pub fn check_name(&self, name: &str, span: Span, diagnostics: &mut Vec<Diagnostic>) {
        match Entry::parse(name) {
            Ok(entry) => self.check_entry(&entry, span, diagnostics),
            Err(why) => {
                diagnostics.push(Diagnostic::error(span, why).hint("a scope is sys:part, sys, +feature, %key=value or *"));
            }
        }
    }

    fn check_entry(&self, entry: &Entry, span: Span, diagnostics: &mut Vec<Diagnostic>) {
        diagnostics.extend(entry.names().filter_map(|(system, partition)| self.unknown(system, partition, span)));
    }

    /// A system that is not described here, and what to do if it is meant to be.
    pub fn unknown_system(&self, system: &str) -> Option<(String, String)> {
        if self.partitions.contains_key(system) {
            return None;
        }
        let hint = did_you_mean(system, self.partitions.keys().map(String::as_str));
        let hint =
            hint.unwrap_or_else(|| "give its site file with -C, or leave it: the check may be shared with that site".to_owned());
        Some((format!("no site file defines a system `{system}`"), hint))
    }

    fn unknown(&self, system: Option<&str>, partition: Option<&str>, span: Span) -> Option<Diagnostic> {
        let system = system?;
        let partitions = self.partitions.get(system)?;
        let partition = partition.filter(|partition| !partitions.iter().any(|known| known == partition))?;
        let near = nearest(partition, partitions.iter().map(String::as_str));
        let hint =
            near.map_or_else(|| format!("it has {}", partitions.join(", ")), |near| format!("did you mean `{system}:{near}`?"));
        Some(Diagnostic::error(span, format!("system `{system}` has no partition `{partition}`")).hint(hint))
    }
}

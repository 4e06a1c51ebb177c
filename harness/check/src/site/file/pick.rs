//! Picks the system that this invocation is about.

use super::read;
use crate::site::{Partition, System};
use muster_core::job::descriptor::Schedulers;
use muster_text::{
    decode::{Context, Placeholders},
    diagnostic::{Diagnostic, FileId, did_you_mean},
    yaml::parse,
};
use regex::Regex;
use std::sync::Arc;

/// The file of the built-in system, which is also the first one to copy.
const LOCAL: &str = include_str!("../../../../../site-config/local.yaml");

/// The system that is there without any site file: `local`, with one partition, `default`.
pub fn built_in_local(schedulers: &Schedulers) -> System {
    let parsed = parse(FileId::default(), LOCAL);
    let mut context = Context::new(Placeholders::Refuse);
    let system = parsed.documents.first().and_then(|document| read(document, schedulers, &mut context));
    // The text is part of the program, and a test reads it.
    let Some(system) = system else { unreachable!("site-config/local.yaml was no system when the program was built") };
    let unplaced = |partition: Arc<Partition>| Arc::new(Partition { span: None, ..Arc::unwrap_or_clone(partition) });
    System { partitions: system.partitions.into_iter().map(unplaced).collect(), span: None, ..system }
}

/// Picks a system: the `wanted` one (`SYS`, or `SYS:PART` for a single partition of it), else the first whose
/// `hostnames` match, else the built-in one. The built-in one can be wanted, too, unless another has its name.
///
/// # Errors
/// There is no such system or partition; the hint names the nearest one.
pub fn pick(systems: &[System], schedulers: &Schedulers, hostname: &str, wanted: Option<&str>) -> Result<System, Diagnostic> {
    let Some(wanted) = wanted else {
        let here = systems.iter().find(|system| is_on(system, hostname));
        return Ok(here.cloned().unwrap_or_else(|| built_in_local(schedulers)));
    };
    let (name, partition) = wanted.split_once(':').map_or((wanted, None), |(name, partition)| (name, Some(partition)));
    let built_in = built_in_local(schedulers);
    let mut known = systems.iter().chain([&built_in]);
    let Some(system) = known.find(|system| system.name == name) else {
        let built_in = Some(&built_in).filter(|built_in| systems.iter().all(|system| system.name != built_in.name));
        let names = systems.iter().chain(built_in).map(|system| system.name.as_str());
        return Err(Diagnostic::general(format!("no system `{name}`")).hint(known_names(name, names)));
    };
    let Some(partition) = partition else { return Ok(system.clone()) };
    let Some(found) = system.partitions.iter().find(|known| known.name == partition) else {
        let names = system.partitions.iter().map(|partition| partition.name.as_str());
        let message = format!("system `{name}` has no partition `{partition}`");
        return Err(Diagnostic::general(message).hint(known_names(partition, names)));
    };
    Ok(System { partitions: vec![Arc::clone(found)], ..system.clone() })
}

fn known_names<'a>(word: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    did_you_mean(word, names.clone())
        .unwrap_or_else(|| format!("there is {}", names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")))
}

/// Like ReFrame, from the first letter of the host name on.
fn is_on(system: &System, hostname: &str) -> bool {
    let matches = |pattern: &String| Regex::new(&format!("^(?:{pattern})")).is_ok_and(|regex| regex.is_match(hostname));
    system.hostnames.iter().any(matches)
}

/// Systems of the same name in several files.
pub fn duplicates(systems: &[System]) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (at, system) in systems.iter().enumerate() {
        let first = systems[..at].iter().find(|first| first.name == system.name);
        if let (Some(span), Some(first)) = (system.span, first.and_then(|first| first.span)) {
            let message = format!("two site files are about the system `{}`", system.name);
            diagnostics.push(Diagnostic::error(span, message).related(first, "the first"));
        }
    }
    diagnostics
}

//! Anubis' benchmark descriptors, TOML files, as checks: one check a file, for pods or for EC2 instances by its `execution_engine`.
//!
//! ```text
//! TOML -descriptor-> leaves -check-> keys of a check        and a refusal for every leaf that nobody has taken
//! ```
//! The keys are those of Anubis' descriptor schema 0.1.0 and of the proposal for its engine `aws.ec2`.

mod check;
mod data;
mod descriptor;
mod metrics;

use crate::{Level, Output, Refusal, Source, yaml};
use descriptor::Descriptor;
use std::path::Path;

/// Whether a file is read as a descriptor.
pub(crate) fn is_descriptor(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "toml")
}

/// A descriptor as a check. `None`: it is none, which a refusal says.
pub(crate) fn convert(source: &Source, refusals: &mut Vec<Refusal>) -> Option<Output> {
    let mut descriptor = Descriptor::parse(source, refusals)?;
    let entries = check::entries(&mut descriptor);
    descriptor.refuse_rest();
    let mut found = descriptor.into_refusals();
    found.sort_by_key(|refusal| refusal.line);
    let missing = found.iter().filter(|refusal| refusal.level.is_missing());
    let comments: Vec<String> = missing.map(|refusal| format!("line {}: {}", refusal.line, refusal.what)).collect();
    refusals.extend(found);
    let stem = Path::new(&source.path).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Some(Output {
        source: source.path.clone(),
        name: format!("{stem}.check.yaml"),
        text: yaml::emit::document("Anubis", &comments, &entries),
        checks: 1,
    })
}

/// A line of the report.
fn refusal(source: &Source, line: u32, level: Level, why: String, instead: Option<String>) -> Refusal {
    let text = source.text.lines().nth(usize::try_from(line).unwrap_or(1).saturating_sub(1)).unwrap_or_default();
    Refusal { file: source.path.clone(), line, level, what: crate::interp::shortened(text), why, instead }
}

//! Questions over many sessions. A command asks `muster-answers`, and prints the answer.

mod causes;
mod compare;
mod export;
mod history;
mod import;
mod suggest;

pub(super) use causes::causes;
pub(super) use compare::compare;
pub(super) use export::{export, export_json};
pub(super) use history::history;
pub(super) use import::import;
pub(super) use suggest::suggest;

use crate::args::{Cli, FilterArgs};
use anyhow::bail;
use muster_core::{
    case::matcher::Matcher,
    query::spec::{Filter, Filters},
};

/// The filters of the flags. A `--system` that is typed is one, too.
pub(super) fn filters(cli: &Cli, args: &FilterArgs) -> anyhow::Result<Filters> {
    let mut filters = typed(args)?;
    let Some((name, partition)) = system(cli) else { return Ok(filters) };
    if let Some(other) = args.of_system.iter().find(|other| *other != name) {
        let system = cli.files.system.as_deref().unwrap_or(name);
        bail!("--system {system} and --on {other} choose different systems: write one of them");
    }
    filters.systems = vec![Filter::parse(name)?];
    filters.partitions.extend(partition.map(Filter::parse).transpose()?);
    Ok(filters)
}

/// The filters of a `--system` that is typed.
pub(super) fn of_system(cli: &Cli) -> anyhow::Result<Filters> {
    let mut filters = Filters::default();
    if let Some((name, partition)) = system(cli) {
        filters.systems.push(Filter::parse(name)?);
        filters.partitions.extend(partition.map(Filter::parse).transpose()?);
    }
    Ok(filters)
}

/// The name of a `--system` that is typed, and its partition.
fn system(cli: &Cli) -> Option<(&str, Option<&str>)> {
    let system = cli.files.typed_system()?;
    Some(system.split_once(':').map_or((system, None), |(name, partition)| (name, Some(partition))))
}

fn typed(args: &FilterArgs) -> anyhow::Result<Filters> {
    let words = |texts: &[String]| texts.iter().map(|text| Filter::parse(text)).collect::<Result<Vec<_>, _>>();
    let checks = args.check.iter().map(|text| Matcher::parse(text, false).map_err(anyhow::Error::msg));
    Ok(Filters {
        systems: words(&args.of_system)?,
        partitions: words(&args.partition)?,
        tags: words(&args.tag)?,
        checks: checks.collect::<Result<_, _>>()?,
        cases: Vec::new(),
    })
}

//! `muster check new`: writes a first check, which loads without a change.

use crate::{args::NewArgs, commands::new_files, terminal::Terminal};
use anyhow::{Context, bail};
use muster_check::site::file as site_file;
use muster_core::job::descriptor::{NamedScheduler, Schedulers};
use muster_text::shell::quote;
use std::path::{Path, PathBuf};

/// Writes a starter. What is there already is left alone.
pub fn new(args: &NewArgs, schedulers: &Schedulers, terminal: Terminal) -> anyhow::Result<u8> {
    let (path, name) = place(&args.path)?;
    let shown = quote(&path.to_string_lossy());
    let built_in = site_file::built_in_local(schedulers);
    let is_built_in = built_in.partitions.iter().any(|partition| partition.scheduler.name == args.scheduler);
    let system = if is_built_in { "" } else { " --system SYSTEM" };
    let text = starter(&args.scheduler, schedulers).replace("NAME", &name).replace("PATH", &shown);
    new_files::write(&[(&path, &text)])?;
    terminal.print(&format!(
        "{}: an example check; `muster -c {shown}{system} -l` lists its cases, `-r` runs them\n",
        path.display()
    ));
    Ok(0)
}

/// The starter of a scheduler: its own part, between a head and an end that all share.
pub fn starter(scheduler: &str, schedulers: &Schedulers) -> String {
    let descriptor = schedulers.find(scheduler).map(NamedScheduler::descriptor);
    let starters = descriptor.map_or(&[][..], |descriptor| descriptor.starters);
    // A further name of a scheduler has its own starter, or the scheduler's, for partitions of that name.
    let own = starters.iter().find(|(name, _)| *name == scheduler).or_else(|| starters.first());
    let own = own.map(|(name, text)| text.replace(&format!("%scheduler={name}"), &format!("%scheduler={scheduler}")));
    [include_str!("starters/head.yaml"), &own.unwrap_or_default(), include_str!("starters/tail.yaml")].concat()
}

/// The name of a YAML file without its ending.
fn yaml_stem(name: &str) -> Option<&str> {
    name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml"))
}

/// The file to write, and the check's name.
fn place(path: &Path) -> anyhow::Result<(PathBuf, String)> {
    let last = path.file_name().with_context(|| format!("{} names no file", path.display()))?.to_string_lossy().into_owned();
    let above = || path.parent().and_then(Path::file_name).map(|folder| folder.to_string_lossy().into_owned());
    let (path, name) = match (last.strip_suffix(".check.yaml"), &*last) {
        (Some(name), _) => (path.to_owned(), name.to_owned()),
        (None, "check.yaml") => (path.to_owned(), above().unwrap_or_else(|| "check".to_owned())),
        (None, last) if yaml_stem(last).is_some() => {
            let stem = yaml_stem(last).unwrap_or(last);
            bail!("{last} would not be found in a folder: call it {stem}.check.yaml");
        }
        (None, last) => (path.join(format!("{last}.check.yaml")), last.to_owned()),
    };
    let is_fit = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        && name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !is_fit {
        bail!("`{name}` cannot be a check's name: use letters, digits, `_`, `-` and `.`, a letter or digit first");
    }
    Ok((path, name))
}

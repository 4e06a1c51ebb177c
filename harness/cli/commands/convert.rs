//! `muster convert`: reads the files, has them converted, writes what came out of it and lists what did not.

use crate::{
    args::ConvertArgs,
    inputs,
    terminal::{self, Terminal, unwritten::Written},
};
use anyhow::{Context, bail};
use muster_convert::{Conversion, Manifests, Output, Source};
use muster_core::job::descriptor::Schedulers;
use muster_host::replace::replace_shared;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Something could not be converted.
const EXIT_REFUSED: u8 = 1;

pub fn convert(args: &ConvertArgs, schedulers: &Schedulers, terminal: Terminal) -> anyhow::Result<u8> {
    let files = python_files(&args.paths)?;
    let sources = files.iter().map(|file| source(&file.path)).collect::<anyhow::Result<Vec<_>>>()?;
    let conversion = muster_convert::convert(&sources, &OnDisk, schedulers);
    let prints = args.stdout || args.output.as_deref() == Some(Path::new("-"));
    if prints {
        conversion.outputs.iter().for_each(|output| print(output, conversion.outputs.len() > 1, terminal));
    } else if !args.check {
        write(&conversion, &files, args, terminal)?;
    }
    for refusal in &conversion.refusals {
        terminal.note(&refusal.to_string());
    }
    if !args.check && conversion.outputs.is_empty() {
        terminal.note("note: these files contain neither tests nor a site configuration of ReFrame, nor a descriptor of Anubis");
    }
    let is_missing = conversion.refusals.iter().any(|refusal| refusal.level.is_missing());
    terminal.note(&summary(&conversion, &files));
    // A converted text that is lost matters more than a line that was not converted.
    Ok(if is_missing && !terminal::has_lost_output() { EXIT_REFUSED } else { 0 })
}

/// A file, and the folder of the command line that it was found in.
struct Found {
    path: PathBuf,
    within: PathBuf,
}

/// The files that are named, and the Python files of the folders.
fn python_files(paths: &[PathBuf]) -> anyhow::Result<Vec<Found>> {
    let mut files = Vec::new();
    for path in paths {
        let about = fs::metadata(path).with_context(|| format!("{} cannot be read", path.display()))?;
        if !about.is_dir() {
            files.push(Found { path: path.clone(), within: path.parent().unwrap_or(Path::new("")).to_owned() });
            continue;
        }
        for entry in walkdir::WalkDir::new(path).sort_by_file_name() {
            let entry = entry.with_context(|| format!("{} cannot be read", path.display()))?;
            if entry.file_type().is_file() && entry.path().extension().is_some_and(|extension| extension == "py") {
                files.push(Found { path: entry.into_path(), within: path.clone() });
            }
        }
    }
    if files.is_empty() {
        bail!(
            "there is no Python file in {}; name descriptors of Anubis (*.toml) one by one",
            paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        );
    }
    Ok(files)
}

fn source(path: &Path) -> anyhow::Result<Source> {
    let text = inputs::files::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let has_src = path.parent().is_some_and(|folder| folder.join("src").is_dir());
    Ok(Source { path: path.display().to_string(), text, has_src })
}

/// Manifests that checks open.
#[derive(Debug)]
struct OnDisk;

impl Manifests for OnDisk {
    fn read(&self, beside: &str, path: &str) -> Option<String> {
        let folder = Path::new(beside).parent()?;
        fs::read_to_string(folder.join(path)).ok()
    }
}

fn print(output: &Output, is_one_of_many: bool, terminal: Terminal) {
    let head = if is_one_of_many { format!("# {}\n", output.name) } else { String::new() };
    terminal.print(&format!("{head}{}", output.text));
}

/// Writes the files; none if one of them is there already.
fn write(conversion: &Conversion, files: &[Found], args: &ConvertArgs, terminal: Terminal) -> anyhow::Result<()> {
    let mut targets = Vec::new();
    for output in &conversion.outputs {
        let found = files.iter().find(|file| file.path.display().to_string() == output.source);
        let beside = Path::new(&output.source).parent().unwrap_or(Path::new(""));
        let folder = match (&args.output, found) {
            (Some(folder), Some(found)) => folder.join(beside.strip_prefix(&found.within).unwrap_or(Path::new(""))),
            (Some(folder), None) => folder.clone(),
            (None, _) => beside.to_owned(),
        };
        let target = folder.join(&output.name);
        if targets.iter().any(|(known, _)| *known == target) {
            bail!("two files would become {}: convert them one by one, with `-o`", target.display());
        }
        if target.exists() && !args.force {
            bail!("{} is there already: nothing was written; `--force` overwrites it", target.display());
        }
        targets.push((target, output));
    }
    for (target, output) in targets {
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
        }
        replace_shared(&target, ".part", &output.text).or_unwritten("the file", &target)?;
        terminal.print(&format!("{}\n", target.display()));
    }
    Ok(())
}

fn summary(conversion: &Conversion, files: &[Found]) -> String {
    let is_descriptor = |file: &Found| file.path.extension().is_some_and(|extension| extension == "toml");
    let descriptors = files.iter().filter(|file| is_descriptor(file)).count();
    let origin = match descriptors {
        0 => "ReFrame",
        _ if descriptors == files.len() => "Anubis",
        _ => "ReFrame and Anubis",
    };
    let count = |missing| conversion.refusals.iter().filter(|refusal| refusal.level.is_missing() == missing).count();
    let checks: usize = conversion.outputs.iter().map(|output| output.checks).sum();
    let (missing, notes) = (count(true), count(false));
    format!("{checks} check(s) converted; {missing} line(s) not converted, {notes} note(s); not checked against {origin}")
}

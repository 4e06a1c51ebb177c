//! `muster convert`: reads the files, has them converted, writes what came out of it and lists what did not.

use crate::{
    args::{ConvertArgs, is_dash},
    inputs,
    terminal::{self, Terminal, unwritten::Written},
};
use anyhow::{Context, bail};
use muster_check::files::load::normal;
use muster_convert::{Conversion, Manifests, Output, Source};
use muster_core::job::descriptor::Schedulers;
use muster_host::replace::replace_shared;
use std::{
    fs,
    path::{Component, Path, PathBuf},
};

/// Something could not be converted.
const EXIT_REFUSED: u8 = 1;

pub fn convert(args: &ConvertArgs, schedulers: &Schedulers, terminal: Terminal) -> anyhow::Result<u8> {
    let prints = args.stdout || args.output.as_deref().is_some_and(is_dash);
    let files = python_files(&args.paths, args.output.as_deref().filter(|_| !prints))?;
    let sources = files.iter().map(source).collect::<anyhow::Result<Vec<_>>>()?;
    let conversion = muster_convert::convert(&sources, &OnDisk, schedulers);
    if prints {
        conversion.outputs.iter().for_each(|output| print(output, conversion.outputs.len() > 1, terminal));
    } else if !args.check {
        write(&conversion, &files, args.force, terminal)?;
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

/// A file, and the folder that its YAML goes to.
struct Found {
    path: PathBuf,
    folder: PathBuf,
}

impl Found {
    /// A file of a folder of the command line, which `output` takes the place of.
    fn new(path: PathBuf, within: &Path, output: Option<&Path>) -> Self {
        let beside = beside(&path);
        let below = beside.strip_prefix(within).unwrap_or(Path::new(""));
        let folder = output.map_or_else(|| beside.to_owned(), |output| output.join(below));
        Self { path, folder }
    }
}

fn beside(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// The files that are named, and the Python files of the folders.
fn python_files(paths: &[PathBuf], output: Option<&Path>) -> anyhow::Result<Vec<Found>> {
    let mut files = Vec::new();
    for path in paths {
        let about = fs::metadata(path).with_context(|| format!("{} cannot be read", path.display()))?;
        if !about.is_dir() {
            files.push(Found::new(path.clone(), beside(path), output));
            continue;
        }
        for entry in walkdir::WalkDir::new(path).sort_by_file_name() {
            let entry = entry.with_context(|| format!("{} cannot be read", path.display()))?;
            if entry.file_type().is_file() && entry.path().extension().is_some_and(|extension| extension == "py") {
                files.push(Found::new(entry.into_path(), path, output));
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

fn source(Found { path, folder }: &Found) -> anyhow::Result<Source> {
    let text = inputs::files::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let has_src = beside(path).join("src").is_dir();
    let way = way(folder, beside(path)).with_context(|| format!("{} cannot be read", path.display()))?;
    let [path, folder, way] = [path, folder, &way].map(|path| path.display().to_string());
    Ok(Source { path, text, has_src, folder, way })
}

/// The way from a folder, which need not be there yet, to another one.
fn way(from: &Path, to: &Path) -> anyhow::Result<PathBuf> {
    let absolute = |path: &Path| anyhow::Ok(PathBuf::from(normal(&std::path::absolute(Path::new(".").join(path))?)));
    let (from, to) = (absolute(from)?, absolute(to)?);
    let same = from.components().zip(to.components()).take_while(|(one, other)| one == other).count();
    let up = from.components().skip(same).map(|_| Component::ParentDir);
    Ok(up.chain(to.components().skip(same)).collect())
}

/// The files and folders that checks name.
#[derive(Debug)]
struct OnDisk;

impl Manifests for OnDisk {
    fn read(&self, beside: &str, path: &str) -> Option<String> {
        fs::read_to_string(self::beside(Path::new(beside)).join(path)).ok()
    }

    fn folder(&self, path: &str) -> Result<bool, String> {
        muster_stage::look(Path::new(path))
    }
}

fn print(output: &Output, is_one_of_many: bool, terminal: Terminal) {
    let head = if is_one_of_many { format!("# {}\n", output.name) } else { String::new() };
    terminal.print(&format!("{head}{}", output.text));
}

/// Writes the files; none if one of them is there already.
fn write(conversion: &Conversion, files: &[Found], force: bool, terminal: Terminal) -> anyhow::Result<()> {
    let mut targets = Vec::new();
    for output in &conversion.outputs {
        let Some(found) = files.iter().find(|file| file.path.display().to_string() == output.source) else { continue };
        let target = found.folder.join(&output.name);
        if targets.iter().any(|(known, _)| *known == target) {
            bail!("two files would become {}: convert them one by one, with `-o`", target.display());
        }
        if target.exists() && !force {
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

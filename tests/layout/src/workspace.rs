//! The crates of a workspace, as cargo describes them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// One crate of the workspace.
#[derive(Debug)]
pub struct Package {
    /// The name in `Cargo.toml`, with hyphens.
    pub name: String,
    /// The directory of its `Cargo.toml`.
    pub directory: PathBuf,
    /// The root files of the library and of the programs.
    pub roots: Vec<PathBuf>,
    /// Crates of the workspace that it names as normal dependencies.
    pub dependencies: Vec<String>,
}

/// All crates of the workspace in `directory`, sorted by name.
///
/// # Errors
/// When cargo cannot read the workspace.
pub fn packages(directory: &Path) -> io::Result<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version=1", "--manifest-path"];
    let output = Command::new(cargo).args(arguments).arg(directory.join("Cargo.toml")).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let by_name: BTreeMap<&str, &Value> = array(&metadata["packages"]).map(|package| (text(&package["name"]), package)).collect();
    Ok(by_name.iter().map(|(name, package)| describe(name, package, &by_name)).collect())
}

fn describe(name: &str, package: &Value, workspace: &BTreeMap<&str, &Value>) -> Package {
    let is_code = |target: &&Value| array(&target["kind"]).any(|kind| matches!(text(kind), "lib" | "bin" | "proc-macro"));
    let dependencies = array(&package["dependencies"]).filter(|dependency| dependency["kind"].is_null());
    Package {
        name: name.to_owned(),
        directory: Path::new(text(&package["manifest_path"])).parent().unwrap_or(Path::new("")).to_owned(),
        roots: array(&package["targets"]).filter(is_code).map(|target| text(&target["src_path"]).into()).collect(),
        dependencies: dependencies
            .map(|dependency| text(&dependency["name"]).to_owned())
            .filter(|dependency| workspace.contains_key(dependency.as_str()))
            .collect(),
    }
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// All directories with `.rs` files below `directory`, and the names of these files. What git does not track is left out.
///
/// # Errors
/// When a directory cannot be read.
pub fn rust_files(directory: &Path) -> io::Result<BTreeMap<PathBuf, Vec<String>>> {
    let mut found: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    open.push(entry.path());
                }
            } else if Path::new(&name).extension().is_some_and(|extension| extension == "rs") {
                found.entry(directory.clone()).or_default().push(name);
            }
        }
    }
    for names in found.values_mut() {
        names.sort();
    }
    Ok(found)
}

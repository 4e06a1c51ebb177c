//! The imports between the files of a crate, and between the nodes of its directories.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::modules::Modules;

/// One import of another file of the crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    /// Relative to the directory of the crate's root file.
    pub from: PathBuf,
    /// The line of the path in that file.
    pub line: usize,
    /// The path as it is written.
    pub path: String,
    /// The file of the module to which the path leads.
    pub to: PathBuf,
}

/// Imports of one node by another.
pub type Edges = BTreeMap<(String, String), Vec<Import>>;

/// All imports of a crate, sorted, one for each line and path.
pub fn imports(modules: &Modules) -> Vec<Import> {
    let all: BTreeSet<Import> = modules
        .uses()
        .filter(|(from, _, to)| from != to)
        .map(|(from, used, to)| Import { from: from.to_owned(), line: used.line, path: used.path.join("::"), to: to.to_owned() })
        .collect();
    all.into_iter().collect()
}

/// The imports as edges between siblings, by the directory in which these lie (`""` is that of the root file).
///
/// An import between two files counts once: where their paths part. There it joins two subdirectories; in the root directory the
/// files beside them are nodes, too (`name.rs`). Within any other directory, a file is part of the directory, so that an import
/// between it and a subdirectory does not count, nor does one between a `mod.rs` and what lies below.
pub fn by_directory(imports: &[Import]) -> BTreeMap<PathBuf, Edges> {
    let files = imports.iter().flat_map(|import| [&import.from, &import.to]);
    let directories: BTreeSet<&Path> = files.filter_map(|file| file.parent()).collect();
    // `name.rs` beside `name/` is part of it.
    let place = |file: &Path| {
        let directory = file.with_extension("");
        if directories.contains(directory.as_path()) { directory.join("mod.rs") } else { file.to_owned() }
    };
    let mut levels: BTreeMap<PathBuf, Edges> = BTreeMap::new();
    for import in imports {
        let Some((directory, from, to)) = siblings(&place(&import.from), &place(&import.to)) else { continue };
        levels.entry(directory).or_default().entry((from, to)).or_default().push(import.clone());
    }
    levels
}

/// Where the paths of two files part: that directory, and the two nodes in it.
fn siblings(from: &Path, to: &Path) -> Option<(PathBuf, String, String)> {
    let (mut from, mut to) = (from.iter().peekable(), to.iter().peekable());
    let mut directory = PathBuf::new();
    while from.peek() == to.peek() {
        directory.push(from.next()?);
        to.next()?;
    }
    let node = |mut rest: std::iter::Peekable<std::path::Iter>| {
        let name = rest.next()?.to_str()?.to_owned();
        let is_directory = rest.next().is_some();
        let is_root_file = directory.as_os_str().is_empty() && !is_root_of_directory(&name);
        (is_directory || is_root_file).then_some(if is_directory { name + "/" } else { name })
    };
    let (from, to) = (node(from)?, node(to)?);
    Some((directory, from, to))
}

/// Returns whether a file of this name speaks for the directory that it lies in.
pub fn is_root_of_directory(name: &str) -> bool {
    matches!(name, "mod.rs" | "lib.rs" | "main.rs")
}

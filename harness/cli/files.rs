//! Finding and reading files: checks, the files they mention, sites. The core says which; nothing here is judged.

use muster_core::{
    diagnostic::{Diagnostic, FileId, Sources},
    load::{Loaded, Loader},
    site::System,
    site_file,
    yaml::{self, Node},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A path of the command line that is of no use.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// It is not there, or may not be read.
    #[error("{option} {} cannot be read", path.display())]
    Unreadable {
        /// The flag that named it.
        option: &'static str,
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// A folder without a file of the kind looked for.
    #[error("{option} {} holds no {what}", path.display())]
    Nothing {
        /// The flag that named it.
        option: &'static str,
        /// The folder.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// No `-c`.
    #[error("no checks are named: say where they are with -c PATH")]
    NoChecks,
}

/// Reads all check files below `paths`, and everything they mention.
///
/// # Errors
/// A path that is no file and no folder with checks. Mistakes within files are diagnostics.
pub fn checks(paths: &[PathBuf]) -> Result<Loaded, FilesError> {
    if paths.is_empty() {
        return Err(FilesError::NoChecks);
    }
    let mut loader = Loader::default();
    for path in paths {
        let files = check_files(path)?;
        for file in files {
            let text = read(&file).map_err(|cause| FilesError::Unreadable { option: "-c", path: file.clone(), cause })?;
            loader.add(&shown(&file), &text);
        }
    }
    while let Some(path) = loader.wanted().into_iter().next() {
        let text = read(Path::new(&path)).map_err(|error| error.to_string());
        loader.provide(&path, text);
    }
    Ok(loader.finish())
}

fn check_files(path: &Path) -> Result<Vec<PathBuf>, FilesError> {
    let unreadable = |cause| FilesError::Unreadable { option: "-c", path: path.to_owned(), cause };
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let is_check = |name: &str| name == "check.yaml" || name.ends_with(".check.yaml");
    let entries = walkdir::WalkDir::new(path).follow_links(true).sort_by_file_name().into_iter().filter_map(Result::ok);
    let files: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_file() && entry.file_name().to_str().is_some_and(is_check))
        .map(walkdir::DirEntry::into_path)
        .collect();
    if files.is_empty() {
        return Err(FilesError::Nothing { option: "-c", path: path.to_owned(), what: "check.yaml and no *.check.yaml" });
    }
    Ok(files)
}

/// All systems that the site files define.
#[derive(Debug, Default)]
pub struct Sites {
    /// In file order, without the built-in one.
    pub systems: Vec<System>,
    /// The files they come from, as shown to the user.
    pub paths: Vec<String>,
    /// Their texts.
    pub sources: Sources,
    /// Each system as written, in the order of `systems`; the built-in one has none.
    pub documents: Vec<Node>,
    /// Mistakes in them.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the site files of `-C`, or those in the `site-config/` nearest to the checks.
///
/// # Errors
/// A path that is no file and no folder with site files.
pub fn sites(config: &[PathBuf], checks: &[PathBuf]) -> Result<Sites, FilesError> {
    let mut files = Vec::new();
    let nearest = || checks.iter().find_map(|path| site_folder(path)).or_else(|| site_folder(Path::new(".")));
    if let (true, Some(folder)) = (config.is_empty(), nearest()) {
        files = yaml_files(&folder);
    }
    for path in config {
        let unreadable = |cause| FilesError::Unreadable { option: "-C", path: path.clone(), cause };
        if fs::metadata(path).map_err(unreadable)?.is_dir() {
            let found = yaml_files(path);
            if found.is_empty() {
                return Err(FilesError::Nothing { option: "-C", path: path.clone(), what: "*.yaml" });
            }
            files.extend(found);
        } else {
            files.push(path.clone());
        }
    }
    let mut sites = Sites::default();
    for file in files {
        let text = read(&file).map_err(|cause| FilesError::Unreadable { option: "-C", path: file.clone(), cause })?;
        sites.add(&shown(&file), &text);
    }
    sites.diagnostics.extend(site_file::duplicates(&sites.systems));
    Ok(sites)
}

impl Sites {
    fn add(&mut self, path: &str, text: &str) {
        let id: FileId = self.sources.add(path, text);
        let parsed = yaml::parse(id, text);
        self.diagnostics.extend(parsed.diagnostics);
        for document in &parsed.documents {
            let mut context = muster_core::decode::Context::new(muster_core::decode::Placeholders::Refuse);
            let system = site_file::read(document, &mut context);
            self.diagnostics.append(&mut context.diagnostics);
            if let Some(system) = system {
                self.systems.push(system);
                self.documents.push(document.clone());
            }
        }
        self.paths.push(path.to_owned());
    }
}

/// The nearest `site-config` folder, from the checks upwards.
fn site_folder(checks: &Path) -> Option<PathBuf> {
    let start = fs::canonicalize(checks).ok()?;
    let here = std::env::current_dir().ok();
    let found = start.ancestors().map(|folder| folder.join("site-config")).find(|folder| folder.is_dir())?;
    // Shown as short as the user would type it.
    Some(here.and_then(|here| found.strip_prefix(here).ok().map(Path::to_owned)).unwrap_or(found))
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(folder).min_depth(1).max_depth(1).sort_by_file_name().into_iter().filter_map(Result::ok);
    entries
        .map(walkdir::DirEntry::into_path)
        .filter(|path| path.is_file() && path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml"))
        .collect()
}

fn read(path: &Path) -> io::Result<String> {
    let bytes = fs::read(path)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// A path without a leading `./`, as the user would type it.
fn shown(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).to_string_lossy().into_owned()
}

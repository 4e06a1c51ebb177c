//! Finding and reading files: checks, the files they mention, sites. The core says which; nothing here is judged.

use crate::{
    args::{Files, is_dash},
    inputs::unanswered::Looking,
};
use anyhow::{anyhow, bail};
use muster_check::{
    cases::check::hash_of_site,
    files::load::{Loaded, Loader},
    site::{System, file as site_file},
};
use muster_core::{job::descriptor::Schedulers, night::NightRules};
use muster_host::files as host_files;
use muster_text::{
    diagnostic::{self, Diagnostic, FileId, Severity, Sources},
    yaml::{self, Node},
};
use std::{
    collections::{BTreeSet, HashSet},
    fs,
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
    sync::OnceLock,
};

fn metadata(path: &Path) -> io::Result<fs::Metadata> {
    let _at = Looking::at(path);
    fs::metadata(path)
}

/// A path of the command line that is not there, or may not be read.
fn unreadable(option: &str, path: &Path, cause: io::Error) -> anyhow::Error {
    anyhow::Error::new(cause).context(format!("{option} {} cannot be read", path.display()))
}

/// A file or folder without what was looked for.
fn holds_no(option: &str, path: &Path, what: &str) -> anyhow::Error {
    anyhow!("{option} {} holds no {what}", path.display())
}

/// Reads all check files below `paths`, and everything they mention.
///
/// # Errors
/// A path that is neither a file nor a folder with checks. Mistakes within files are diagnostics.
pub fn checks(paths: &[PathBuf], schedulers: &Schedulers) -> anyhow::Result<Loaded> {
    if paths.iter().any(|path| is_dash(path)) {
        bail!(
            "-c -: a report names the files of its checks, so standard input is not read: use a file, or ./- for one of this name"
        );
    }
    checks_of("-c", paths, schedulers)
}

/// Reads the checks of paths that another option names, where `-` is standard input.
pub fn checks_of(option: &'static str, paths: &[PathBuf], schedulers: &Schedulers) -> anyhow::Result<Loaded> {
    if paths.is_empty() {
        let is_there = |path: &str| Path::new(path).exists();
        let other = if is_there("muster.yml") && !is_there("muster.yaml") {
            " (muster.yml is not read: name it muster.yaml)"
        } else {
            ""
        };
        bail!("no checks are named: say where they are with -c PATH{other}");
    }
    let mut loader = Loader::new(schedulers.clone());
    let mut seen = Seen::default();
    let mut unread = Vec::new();
    for path in paths {
        if is_dash(path) {
            loader.add(STDIN_NAME, &text_or_stdin(path).map_err(|cause| unreadable(option, path, cause))?);
            continue;
        }
        for file in check_files(option, path)?.into_iter().filter(|file| seen.is_new(file)) {
            match read(&file) {
                Ok(text) => loader.add(&shown(&file), &text),
                // One mistake among all others.
                Err(cause) => unread.push(Diagnostic::general(format!("{} cannot be read: {cause}", shown(&file)))),
            }
        }
    }
    while let Some(path) = loader.wanted().into_iter().next() {
        let text = read(Path::new(&path)).map_err(|error| error.to_string());
        loader.provide(&path, text);
    }
    for folder in loader.wanted_folders() {
        let _at = Looking::at(Path::new(&folder));
        loader.provide_folder(&folder, muster_stage::look(Path::new(&folder)));
    }
    let mut checks = loader.finish();
    checks.num_documents += unread.len();
    checks.diagnostics.extend(unread);
    Ok(checks)
}

/// The check files below a path: itself, or those of a folder.
pub fn check_files(option: &'static str, path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    files_below(option, path, is_check, "check.yaml and no *.check.yaml")
}

/// Finds check files, and site files of folders called `site-config`.
pub fn check_and_site_files(option: &'static str, path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let what = "check.yaml, no *.check.yaml and no site-config/*.yaml (a site file that is elsewhere is named by itself)";
    files_below(option, path, |path| is_check(path) || is_site(path), what)
}

fn files_below(
    option: &'static str,
    path: &Path,
    is_one: impl Fn(&Path) -> bool,
    what: &'static str,
) -> anyhow::Result<Vec<PathBuf>> {
    if !metadata(path).map_err(|cause| unreadable(option, path, cause))?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut walk = walkdir::WalkDir::new(path).follow_links(true).sort_by_file_name().into_iter();
    let mut next = || {
        let _at = Looking::at(path);
        walk.next()
    };
    while let Some(entry) = next() {
        match entry {
            Ok(entry) if entry.file_type().is_file() && is_one(entry.path()) => files.push(entry.into_path()),
            Ok(_) => {}
            // A link back to a folder above leads to known folders, and a broken link matters if it has the name of a check.
            Err(error) if error.loop_ancestor().is_some() => {}
            Err(error) if is_broken_link(&error) && !error.path().is_some_and(&is_one) => {}
            Err(error) => {
                let path = error.path().unwrap_or(path).to_owned();
                let unknown = || io::Error::other("it cannot be searched");
                return Err(unreadable(option, &path, error.into_io_error().unwrap_or_else(unknown)));
            }
        }
    }
    if files.is_empty() {
        return Err(holds_no(option, path, what));
    }
    Ok(files)
}

fn is_check(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == "check.yaml" || name.ends_with(".check.yaml")
}

fn is_site(path: &Path) -> bool {
    let folder = || path.parent().and_then(|parent| fs::canonicalize(parent).ok());
    is_yaml(path) && folder().is_some_and(|folder| folder.ends_with("site-config"))
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

fn is_broken_link(error: &walkdir::Error) -> bool {
    error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Files that were read already, whatever they were called: one file is one set of checks.
#[derive(Debug, Default)]
struct Seen(HashSet<PathBuf>);

impl Seen {
    fn is_new(&mut self, file: &Path) -> bool {
        let _at = Looking::at(file);
        fs::canonicalize(file).map_or(true, |file| self.0.insert(file))
    }
}

/// All systems that the site files define.
#[derive(Debug, Default)]
pub struct Sites {
    /// The systems in file order, without the built-in one.
    pub systems: Vec<System>,
    /// The files they come from, as shown to the user.
    pub paths: Vec<String>,
    pub sources: Sources,
    /// Each system as written, in the order of `systems`; the built-in one has none.
    pub documents: Vec<Node>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the site files of `-C`, or those in the `site-config/` nearest to the checks.
pub fn sites(config: &[PathBuf], checks: &[PathBuf], schedulers: &Schedulers) -> anyhow::Result<Sites> {
    let mut files = Vec::new();
    let nearest = || checks.iter().find_map(|path| site_folder(path)).or_else(|| site_folder(Path::new(".")));
    if let (true, Some(folder)) = (config.is_empty(), nearest()) {
        files = yaml_files(&folder);
    }
    for path in config {
        if metadata(path).map_err(|cause| unreadable("-C", path, cause))?.is_dir() {
            let found = yaml_files(path);
            if found.is_empty() {
                return Err(holds_no("-C", path, "*.yaml"));
            }
            files.extend(found);
        } else {
            files.push(path.clone());
        }
    }
    let mut sites = Sites::default();
    let mut seen = Seen::default();
    for file in files.into_iter().filter(|file| seen.is_new(file)) {
        // What is wrong with a file is a mistake of this file.
        let wrong = match read(&file) {
            Ok(text) if sites.add(&shown(&file), &text, schedulers) > 0 => continue,
            Ok(_) => holds_no("-C", &file, "system: it is empty"),
            Err(cause) => unreadable("-C", &file, cause),
        };
        sites.diagnostics.push(Diagnostic::general(format!("{wrong:#}")));
    }
    sites.diagnostics.extend(site_file::duplicates(&sites.systems));
    Ok(sites)
}

/// Reads the site files for a command that only looks things up there.
///
/// # Errors
/// Every mistake in these files, too: the command would go on with defaults that nobody has chosen.
pub fn sound_sites(files: &Files, color: bool) -> anyhow::Result<Sites> {
    let sites = sites(&files.config_file, &files.checkpath, &files.schedulers)?;
    if sites.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        bail!("{}", diagnostic::render(&sites.diagnostics, &sites.sources, color));
    }
    Ok(sites)
}

impl Sites {
    /// Drops the systems of files with errors. Returns these.
    pub fn leave_out_broken(&mut self) -> Vec<Diagnostic> {
        let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
        let errors: Vec<Diagnostic> = self.diagnostics.iter().filter(is_error).cloned().collect();
        let broken: BTreeSet<FileId> = errors.iter().filter_map(|error| Some(error.span?.file)).collect();
        let is_sound: Vec<bool> = self.documents.iter().map(|document| !broken.contains(&document.span.file)).collect();
        let mut sound = is_sound.iter();
        self.systems.retain(|_| sound.next().is_none_or(|is_sound| *is_sound));
        let mut sound = is_sound.iter();
        self.documents.retain(|_| sound.next().is_none_or(|is_sound| *is_sound));
        errors
    }

    /// The nights of a system; `None`: no file defines it.
    pub fn nights_of(&self, system: &str) -> Option<&NightRules> {
        self.systems.iter().find(|known| known.name == system).map(|known| &known.nights)
    }

    /// A digest of what the file says of a system. Comments and the order of keys do not matter.
    pub fn hash_of(&self, system: &str) -> Option<String> {
        let at = self.systems.iter().position(|known| known.name == system)?;
        self.documents.get(at).map(hash_of_site)
    }

    /// Takes a file; how many documents it holds.
    fn add(&mut self, path: &str, text: &str, schedulers: &Schedulers) -> usize {
        let id: FileId = self.sources.add(path, text);
        let parsed = yaml::parse(id, text);
        self.diagnostics.extend(parsed.diagnostics);
        for document in &parsed.documents {
            let mut context = muster_text::decode::Context::new(muster_text::decode::Placeholders::Refuse);
            let system = site_file::read(document, schedulers, &mut context);
            self.diagnostics.append(&mut context.diagnostics);
            if let Some(system) = system {
                self.systems.push(system);
                self.documents.push(document.clone());
            }
        }
        self.paths.push(path.to_owned());
        parsed.documents.len()
    }
}

/// The `site-config` folder that is found from the folder in which a session ran, and from none of its checks.
pub fn sites_of_folder(workdir: &Path, checks: &[PathBuf]) -> Option<PathBuf> {
    let folder = site_folder(workdir).filter(|_| checks.iter().all(|path| site_folder(&workdir.join(path)).is_none()))?;
    std::path::absolute(folder).ok()
}

/// The nearest `site-config` folder, from the checks upwards.
fn site_folder(checks: &Path) -> Option<PathBuf> {
    let _at = Looking::at(checks);
    let start = fs::canonicalize(checks).ok()?;
    let here = std::env::current_dir().ok();
    let found = start.ancestors().map(|folder| folder.join("site-config")).find(|folder| folder.is_dir())?;
    // Shown as short as the user would type it.
    Some(here.and_then(|here| found.strip_prefix(here).ok().map(Path::to_owned)).unwrap_or(found))
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let _at = Looking::at(folder);
    let entries = walkdir::WalkDir::new(folder).min_depth(1).max_depth(1).sort_by_file_name().into_iter().filter_map(Result::ok);
    entries.map(walkdir::DirEntry::into_path).filter(|path| path.is_file() && is_yaml(path)).collect()
}

/// The name of standard input where a file has its path.
pub const STDIN_NAME: &str = "standard input";

/// What standard input held. It is read once, whoever asks again.
static STDIN: OnceLock<Result<Vec<u8>, (io::ErrorKind, String)>> = OnceLock::new();

/// The bytes of a file; of `-` those of standard input.
pub fn bytes_or_stdin(path: &Path) -> io::Result<Vec<u8>> {
    let _at = Looking::at(if is_dash(path) { Path::new(STDIN_NAME) } else { path });
    if !is_dash(path) {
        return fs::read(path);
    }
    let read = || {
        if io::stdin().is_terminal() {
            return Err((io::ErrorKind::InvalidInput, "standard input is a terminal: add `< FILE`".to_owned()));
        }
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes).map_err(|error| (error.kind(), error.to_string()))
    };
    STDIN.get_or_init(read).clone().map_err(|(kind, why)| io::Error::new(kind, why))
}

/// The text of a file; of `-` that of standard input.
pub fn text_or_stdin(path: &Path) -> io::Result<String> {
    String::from_utf8(bytes_or_stdin(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The text of a file that the user names, which may be a pipe.
pub fn read(path: &Path) -> io::Result<String> {
    let _at = Looking::at(path);
    text(fs::File::open(path)?)
}

/// The text of a file that nobody names: a pipe of its name would make every command wait for a writer.
pub fn read_regular(path: &Path) -> io::Result<String> {
    text(host_files::open_regular(path)?)
}

/// A device or a pipe may never end: no more is read than a file may have.
fn text(file: fs::File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(yaml::MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    if bytes.len() > yaml::MAX_BYTES {
        return Err(wrong(format!("it has more than {} bytes, which is the limit", yaml::MAX_BYTES)));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(wrong("it is UTF-16 text; save it as UTF-8".to_owned()));
    }
    let line = |at: usize| bytes[..at].split(|byte| *byte == b'\n').count();
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(wrong(format!("not a text file: line {} contains a zero byte", line(at))));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(wrong(format!("line {} is not UTF-8 text; save the file as UTF-8", line(error.valid_up_to())))),
    }
}

/// A path without a leading `./`, as the user would type it.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).to_string_lossy().into_owned()
}

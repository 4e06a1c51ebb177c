//! Turns the texts of all files into checks as trees. It asks for the paths it still wants, and never opens them.
//!
//! ```text
//! add(check file) -> wanted() -> provide(text) ... until nothing is wanted -> finish() -> Loaded
//! ```

mod imported;

use crate::files::{
    check_file,
    extends::{self, Library},
    reference_file, staging,
};
use muster_core::job::descriptor::Schedulers;
use muster_text::{
    diagnostic::{Diagnostic, FileId, Sources, Span, nearest},
    yaml::{self, Node},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

/// Collects files until all that they mention are there.
#[derive(Debug)]
pub struct Loader {
    schedulers: Schedulers,
    sources: Sources,
    diagnostics: Vec<Diagnostic>,
    files: BTreeMap<String, File>,
    wanted: Vec<Wanted>,
    folders: Folders,
}

#[derive(Debug)]
struct File {
    /// `None`: it could not be read.
    id: Option<FileId>,
    documents: Vec<Node>,
    kind: Mention,
    /// Its checks are candidates for running, not only bases.
    is_root: bool,
}

/// A file that another one mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    path: String,
    /// The first mention.
    by: Span,
    kind: Mention,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mention {
    Check,
    Manifest,
    References,
}

/// Everything that was read, sorted out.
#[derive(Debug)]
pub struct Loaded {
    /// The concrete checks, each merged over its bases, in file order.
    pub checks: Vec<Document>,
    /// The number of checks in the files, abstract and broken ones included.
    pub num_documents: usize,
    pub manifests: Arc<Manifests>,
    pub sources: Sources,
    pub diagnostics: Vec<Diagnostic>,
}

/// One check as a tree.
#[derive(Debug, Clone)]
pub struct Document {
    pub name: Arc<str>,
    pub span: Span,
    /// The file's path, as the user would type it.
    pub path: Arc<str>,
    /// The check, merged over its bases.
    pub tree: Node,
    /// Its bases, and its fixtures from other files, were found. If not, what is missing in it is not reported.
    pub is_whole: bool,
    /// The file was not named: the check runs as a fixture of others only.
    pub is_imported: bool,
}

/// The files that hold objects of schedulers, by path.
#[derive(Debug, Default)]
pub struct Manifests {
    /// The schedulers whose keys mention the files.
    pub schedulers: Schedulers,
    files: HashMap<String, Vec<Node>>,
    paths: HashMap<FileId, String>,
    folders: Folders,
}

impl Manifests {
    /// The documents of the manifest that is called `written` in `by`.
    pub fn get(&self, by: FileId, written: &str) -> Option<&[Node]> {
        let from = self.paths.get(&by)?;
        self.files.get(&beside(from, written)).map(Vec::as_slice)
    }

    /// The documents of all manifests that a check mentions.
    pub(crate) fn of(&self, check: &Node) -> impl Iterator<Item = &Node> {
        mentioned(check, &self.schedulers).filter_map(|(path, span)| self.get(span.file, path)).flatten()
    }

    /// A path that is called `written` in `by`. One of the command line is relative to the working directory.
    pub(crate) fn beside(&self, by: FileId, written: &str) -> String {
        self.paths.get(&by).map_or_else(|| written.to_owned(), |from| beside(from, written))
    }

    /// The folder of sources beside a check file that mentions none, if there is one.
    pub(crate) fn default_folder(&self, check: &str) -> Option<String> {
        Some(beside(check, staging::DEFAULT_FOLDER)).filter(|folder| self.folders.has(folder))
    }
}

/// The manifests that a check mentions.
fn mentioned<'n>(check: &'n Node, schedulers: &Schedulers) -> impl Iterator<Item = (&'n str, Span)> + use<'n> {
    schedulers.documents().flat_map(|key| check_file::texts(check, key))
}

impl Loader {
    /// A loader for files that may have the keys of these schedulers.
    pub fn new(schedulers: Schedulers) -> Self {
        Self {
            schedulers,
            sources: Sources::default(),
            diagnostics: Vec::new(),
            files: BTreeMap::new(),
            wanted: Vec::new(),
            folders: Folders::default(),
        }
    }

    /// Adds a check file whose checks may run.
    pub fn add(&mut self, path: &str, text: &str) {
        let key = normal(Path::new(path));
        if self.files.get(&key).is_some_and(|file| file.is_root) {
            return;
        }
        self.read(key, path, text, Mention::Check, true);
    }

    /// The paths to read next. Empty: everything is there.
    pub fn wanted(&self) -> Vec<String> {
        self.wanted.iter().map(|wanted| wanted.path.clone()).collect()
    }

    /// Answers one wanted path with its text, or with the reason why there is none.
    pub fn provide(&mut self, path: &str, text: Result<String, String>) {
        let Some(at) = self.wanted.iter().position(|wanted| wanted.path == path) else { return };
        let wanted = self.wanted.swap_remove(at);
        match text {
            Ok(text) => self.read(path.to_owned(), path, &text, wanted.kind, false),
            Err(why) => {
                let what = match wanted.kind {
                    Mention::Check => "check file",
                    Mention::Manifest => "manifest",
                    Mention::References => "file of references",
                };
                self.diagnostics.push(
                    Diagnostic::error(wanted.by, format!("the {what} {path} could not be read: {why}"))
                        .hint("a path is relative to the file that mentions it"),
                );
                self.files.insert(path.to_owned(), File { id: None, documents: vec![], kind: wanted.kind, is_root: false });
            }
        }
    }

    /// The folders to look for when all files are read.
    pub fn wanted_folders(&self) -> Vec<String> {
        self.folders.wanted()
    }

    /// Answers one wanted folder: whether it is there, or what is wrong with it.
    pub fn provide_folder(&mut self, path: &str, is_there: Result<bool, String>) {
        self.diagnostics.extend(self.folders.answer(path, is_there));
    }

    fn read(&mut self, key: String, path: &str, text: &str, kind: Mention, is_root: bool) {
        let id = self.sources.add(path, text);
        let parsed = yaml::parse(id, text);
        self.diagnostics.extend(parsed.diagnostics);
        if kind == Mention::Check {
            for document in &parsed.documents {
                self.want_all(&key, document);
            }
            self.folders.want(beside(&key, staging::DEFAULT_FOLDER), None);
        }
        self.wanted.retain(|wanted| wanted.path != key);
        self.files.insert(key, File { id: Some(id), documents: parsed.documents, kind, is_root });
    }

    fn want_all(&mut self, from: &str, check: &Node) {
        // A mistake in `extends` is reported when the bases are merged.
        let bases = extends::bases(check).into_iter();
        let bases = bases.filter_map(|(name, span)| Some((name.ok()?.0, span, Mention::Check)));
        let bases = bases.filter(|(path, ..)| !path.is_empty());
        let manifests = mentioned(check, &self.schedulers).map(|(path, span)| (path, span, Mention::Manifest));
        let references = reference_file::paths(check).map(|(path, span)| (path, span, Mention::References));
        let imported = imported::paths(check).map(|(path, span)| (path, span, Mention::Check));
        for (written, by, kind) in bases.chain(imported).chain(manifests).chain(references) {
            let path = beside(from, written);
            if !self.files.contains_key(&path) && path != from && !self.wanted.iter().any(|wanted| wanted.path == path) {
                self.wanted.push(Wanted { path, by, kind });
            }
        }
        for (written, by) in staging::mentioned(check) {
            self.folders.want(beside(from, written), Some(by));
        }
    }

    /// Sorts out what was read.
    pub fn finish(mut self) -> Loaded {
        let paths: HashMap<FileId, String> =
            self.files.iter().filter_map(|(path, file)| file.id.map(|id| (id, path.clone()))).collect();
        self.inline_references(&paths);
        let mut documents = HashMap::new();
        for file in self.files.values() {
            for document in &file.documents {
                if let (Some(id), Some(name)) = (file.id, document.get("name").and_then(Node::text)) {
                    documents.entry((id, name.to_owned())).or_insert_with(|| document.clone());
                }
            }
        }
        let ids: HashMap<&String, FileId> = self.files.iter().filter_map(|(path, file)| file.id.map(|id| (path, id))).collect();
        let find = |by: FileId, written: &str| paths.get(&by).and_then(|from| ids.get(&beside(from, written))).copied();
        let library = Library { files: &find, documents: &documents };
        let path_of = |id: FileId| self.sources.get(id).map_or("", |source| &source.path).into();

        let (mut checks, mut num_documents): (Vec<Document>, usize) = (Vec::new(), 0);
        let mut roots: Vec<(&FileId, &File)> =
            self.files.values().filter(|file| file.is_root).filter_map(|file| file.id.as_ref().map(|id| (id, file))).collect();
        roots.sort_by_key(|(id, _)| **id);
        for (id, file) in roots {
            let path: Arc<str> = path_of(*id);
            num_documents += file.documents.len();
            // The mistakes of such a document are reported already.
            for document in file.documents.iter().filter(|document| !document.is_bad()) {
                let (tree, is_whole) = extends::resolve(document, &library, &mut self.diagnostics);
                match name_of(&tree) {
                    Ok((name, span)) => {
                        checks.push(Document { name, span, path: path.clone(), tree, is_whole, is_imported: false });
                    }
                    Err(diagnostic) => self.diagnostics.push(diagnostic),
                }
            }
        }
        let roots = self.files.values().filter(|file| file.is_root).filter_map(|file| file.id).collect();
        imported::fetch(&mut checks, &imported::Catalog { library, roots, path: &path_of }, &mut self.diagnostics);
        refuse_duplicates(&checks, &mut self.diagnostics);
        let files = self.files.into_iter().map(|(path, file)| (path, file.documents)).collect();
        let manifests = Arc::new(Manifests { schedulers: self.schedulers, files, paths, folders: self.folders });
        Loaded { checks, num_documents, manifests, sources: self.sources, diagnostics: self.diagnostics }
    }

    /// Before checks are merged, so that references from a file are like those in the check.
    fn inline_references(&mut self, paths: &HashMap<FileId, String>) {
        let documents_of = |by: FileId, written: &str| {
            let file = self.files.get(&beside(paths.get(&by)?, written))?;
            file.id.is_some().then_some(file.documents.as_slice())
        };
        let mut diagnostics = Vec::new();
        let mut inline = |document: &Node| reference_file::inlined(document, &documents_of, &mut diagnostics);
        let checks = self.files.iter().filter(|(_, file)| file.kind == Mention::Check);
        let checks: Vec<(String, Vec<Node>)> =
            checks.map(|(path, file)| (path.clone(), file.documents.iter().map(&mut inline).collect())).collect();
        for (path, documents) in checks {
            if let Some(file) = self.files.get_mut(&path) {
                file.documents = documents;
            }
        }
        self.diagnostics.append(&mut diagnostics);
    }
}

/// The folders that checks mention, and those that count without being mentioned: asked for, never looked at.
#[derive(Debug, Default)]
struct Folders {
    /// With the first mention; `None`: one that may be there.
    wanted: BTreeMap<String, Option<Span>>,
    there: BTreeSet<String>,
}

impl Folders {
    /// Asks for one.
    fn want(&mut self, path: String, by: Option<Span>) {
        let mention = self.wanted.entry(path).or_insert(by);
        *mention = mention.or(by);
    }

    /// What to look for.
    fn wanted(&self) -> Vec<String> {
        self.wanted.keys().cloned().collect()
    }

    /// Answers for one of them: whether it is there, or what is wrong with it. Gives the mistake that this is.
    fn answer(&mut self, path: &str, is_there: Result<bool, String>) -> Option<Diagnostic> {
        let (path, by) = self.wanted.remove_entry(path)?;
        match (is_there, by) {
            (Ok(true), _) => {
                self.there.insert(path);
                None
            }
            (Ok(false), None) => None,
            (Ok(false), Some(by)) => {
                let message = format!("the folder {path} of `sourcesdir` does not exist");
                Some(Diagnostic::error(by, message).hint("a path is relative to the file that mentions it"))
            }
            (Err(why), by) => {
                let message = format!("the folder {path} cannot be staged: {why}");
                Some(match by {
                    Some(by) => Diagnostic::error(by, message).hint("name a folder that holds only what the job needs"),
                    None => Diagnostic::general(message)
                        .hint("it is staged because it is called `src`: `sourcesdir: null` leaves it out"),
                })
            }
        }
    }

    /// Whether one is there.
    fn has(&self, path: &str) -> bool {
        self.there.contains(path)
    }
}

/// A check's name, fit for folders, labels and command lines.
fn name_of(tree: &Node) -> Result<(Arc<str>, Span), Diagnostic> {
    let example = "write `name: stream`, for instance";
    let Some(node) = tree.get("name") else {
        return Err(match &*tree.kind {
            yaml::Kind::Map(entries) => {
                let is_slip = |(key, _): &&(Node, Node)| key.text().is_some_and(|key| nearest(key, ["name"]).is_some());
                let slip = entries.iter().find(is_slip);
                let place = slip.map_or_else(|| tree.span.head(), |(key, _)| key.span);
                let hint = slip.map_or(example, |_| "did you mean `name`?");
                Diagnostic::error(place, "this check has no `name`").hint(hint)
            }
            _ => Diagnostic::error(tree.span.head(), format!("a check is a mapping, found {}", tree.what())).hint(example),
        });
    };
    match node.text() {
        // Its letters are looked at with the check's other values; a label has one rule more.
        Some(name) if !node.is_null() && !name.starts_with('_') && !node.has_placeholder() => Ok((name.into(), node.span)),
        Some(name) if !node.is_null() => Err(Diagnostic::error(node.span, format!("`{name}` cannot be a check's name"))
            .hint("use letters, digits, `_`, `-` and `.`, a letter or digit first")),
        _ => Err(Diagnostic::error(node.span, format!("a check's `name` is text, found {}", node.what())).hint(example)),
    }
}

fn refuse_duplicates(checks: &[Document], diagnostics: &mut Vec<Diagnostic>) {
    let mut first: HashMap<&str, Span> = HashMap::new();
    for check in checks {
        if let Some(first) = first.get(&*check.name) {
            let message = format!("there are two checks called `{}`", check.name);
            diagnostics.push(
                Diagnostic::error(check.span, message)
                    .related(*first, "the first is here")
                    .hint("the name identifies the history of a check: rename one of them"),
            );
        } else {
            first.insert(&check.name, check.span);
        }
    }
}

/// A path as written in a file, seen from where that file's own path is seen.
fn beside(from: &str, written: &str) -> String {
    let folder = Path::new(from).parent().unwrap_or(Path::new(""));
    normal(&folder.join(written))
}

/// Removes `.` and resolves `..` as far as the path itself allows.
pub fn normal(path: &Path) -> String {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(clean.components().next_back(), Some(Component::Normal(_))) => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean.to_string_lossy().into_owned()
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

//! The modules of a crate, and to which of them a path leads.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::source::{Scope, Used};

/// A chain of `use` items is followed so far: two that name each other would never end.
const CHAIN: usize = 16;

/// Reads a source file, by its path relative to the directory of the crate's root file. `None`: there is none.
pub type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// One module of a crate.
#[derive(Debug)]
pub(crate) struct Module {
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Relative to the directory of the root file; that of the enclosing file for an inline module.
    pub(crate) file: PathBuf,
    scope: Scope,
}

/// All modules of a crate. The first is its root.
#[derive(Debug)]
pub struct Modules(pub(crate) Vec<Module>);

impl Modules {
    /// Reads the root file and every file that it declares, test code excepted.
    ///
    /// # Errors
    /// A file that is not there, or that is no Rust.
    pub fn read(root: &Path, read: Read) -> io::Result<Modules> {
        let mut modules = Modules(Vec::new());
        modules.add_file(None, root, Path::new(""), read)?;
        Ok(modules)
    }

    /// `directory` is where the files of the children lie.
    fn add_file(&mut self, parent: Option<usize>, file: &Path, directory: &Path, read: Read) -> io::Result<usize> {
        let text = read(file).ok_or_else(|| io::Error::other(format!("{}: no such file", file.display())))?;
        let parsed = syn::parse_file(&text)
            .map_err(|error| io::Error::other(format!("{}:{}: {error}", file.display(), error.span().start().line)))?;
        self.add(parent, file, Scope::of(&parsed.items), directory, read)
    }

    fn add(&mut self, parent: Option<usize>, file: &Path, mut scope: Scope, directory: &Path, read: Read) -> io::Result<usize> {
        let (inline, files) = (std::mem::take(&mut scope.inline), std::mem::take(&mut scope.files));
        let at = self.0.len();
        self.0.push(Module { parent, children: BTreeMap::new(), file: file.to_owned(), scope });
        for (name, scope) in inline {
            let child = self.add(Some(at), file, scope, &directory.join(&name), read)?;
            self.0[at].children.insert(name, child);
        }
        for (name, path) in files {
            let below = directory.join(&name);
            let candidates = match path {
                Some(path) => vec![file.parent().unwrap_or(Path::new("")).join(path)],
                None => vec![below.with_extension("rs"), below.join("mod.rs")],
            };
            let found = candidates.iter().find(|path| read(path).is_some()).unwrap_or(&candidates[0]);
            let child = self.add_file(Some(at), found, &below, read)?;
            self.0[at].children.insert(name, child);
        }
        Ok(at)
    }

    /// Every path that leads from a module to another file of the crate.
    pub(crate) fn uses(&self) -> impl Iterator<Item = (&Path, &Used, &Path)> {
        self.0.iter().enumerate().flat_map(move |(at, module)| {
            let target = move |used: &Used| self.target(at, &used.path).map(|target| self.0[target].file.as_path());
            module.scope.used.iter().filter_map(move |used| Some((module.file.as_path(), used, target(used)?)))
        })
    }

    /// The module to which a path of the module `from` leads. `None`: another crate's, or a name that is no import.
    fn target(&self, from: usize, path: &[String]) -> Option<usize> {
        self.follow(from, from, path, CHAIN)
    }

    /// `user` is where the path was written, `from` where its first name is looked up: a `use` item on the way may lie elsewhere.
    fn follow(&self, user: usize, from: usize, path: &[String], chain: usize) -> Option<usize> {
        let chain = chain.checked_sub(1)?;
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => 0,
            "self" => from,
            "super" => {
                let mut at = self.0[from].parent?;
                while let Some(("super", more)) = rest.split_first().map(|(first, more)| (first.as_str(), more)) {
                    (at, rest) = (self.0[at].parent?, more);
                }
                at
            }
            name => return self.name(user, from, name, rest, chain),
        };
        while let Some((name, more)) = rest.split_first() {
            match self.0[at].children.get(name) {
                Some(child) => (at, rest) = (*child, more),
                // Through a module that the user lies in, an import reaches what that module imports. Otherwise it depends
                // on the module that exports the name, wherever that has it from.
                None if self.encloses(at, user) => return Some(self.name(user, at, name, more, chain).unwrap_or(at)),
                None => break,
            }
        }
        Some(at)
    }

    /// A name without a prefix, as the module `at` sees it.
    fn name(&self, user: usize, at: usize, name: &str, rest: &[String], chain: usize) -> Option<usize> {
        let chain = chain.checked_sub(1)?;
        let module = &self.0[at];
        let below = |path: &[String]| [path, rest].concat();
        if module.children.contains_key(name) {
            return self.follow(user, at, &below(&["self".into(), name.into()]), chain);
        }
        if module.scope.names.contains(name) {
            return Some(at);
        }
        if let Some(path) = module.scope.aliases.get(name) {
            return self.follow(user, at, &below(path), chain);
        }
        module.scope.globs.iter().find_map(|glob| {
            let target = self.follow(user, at, glob, chain)?;
            let knows = target != at && self.knows(target, name);
            knows.then(|| self.name(user, target, name, rest, chain))?
        })
    }

    fn knows(&self, at: usize, name: &str) -> bool {
        let Module { children, scope, .. } = &self.0[at];
        children.contains_key(name) || scope.names.contains(name) || scope.aliases.contains_key(name)
    }

    fn encloses(&self, outer: usize, inner: usize) -> bool {
        let mut at = Some(inner);
        while let Some(module) = at {
            if module == outer {
                return true;
            }
            at = self.0[module].parent;
        }
        false
    }
}

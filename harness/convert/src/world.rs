//! The files together: their names, their classes, and who derives from whom.

use crate::{
    python::{Class, Expr, ExprKind, Function, Module, StmtKind},
    value::{ClassId, Value},
};
use muster_text::decode::MoreKeys;
use std::{collections::BTreeMap, sync::Arc};

/// All files of one conversion.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// Keys of schedulers.
    pub keys: MoreKeys,
    /// The files, in the order in which they were given.
    pub files: Vec<File>,
}

/// A file and what its names stand for.
#[derive(Debug)]
pub(crate) struct File {
    /// Its path.
    pub path: String,
    /// Its lines, for refusals.
    pub lines: Vec<String>,
    /// Its tree.
    pub module: Module,
    /// The imports: name and full name.
    pub imports: BTreeMap<String, String>,
    /// The classes at the top, in order.
    pub classes: Vec<Arc<Class>>,
    /// The functions at the top.
    pub functions: BTreeMap<String, Arc<Function>>,
    /// The values of other names at the top, once they are known.
    pub globals: BTreeMap<String, Value>,
    /// A folder `src` lies beside it.
    pub has_src: bool,
    /// The path of the file that its checks go to.
    pub checks: String,
    /// The way from the folder of that to its own; empty: they are one.
    pub way: String,
}

/// What a class derives from in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// `RunOnlyRegressionTest`
    RunOnly,
    /// `CompileOnlyRegressionTest`
    CompileOnly,
    /// `RegressionTest`
    Builds,
    /// `RegressionMixin`, or no test at all.
    None,
}

/// A class that is not among the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownBase {
    /// The index of the file that names it.
    pub file: usize,
    /// The line.
    pub line: u32,
    /// Its name.
    pub name: String,
}

impl File {
    /// Reads a file's names.
    pub(crate) fn new(path: String, text: &str, module: Module, has_src: bool) -> Self {
        let mut file = Self {
            path,
            lines: text.lines().map(str::to_owned).collect(),
            imports: BTreeMap::new(),
            classes: vec![],
            functions: BTreeMap::new(),
            globals: BTreeMap::new(),
            module: Module::default(),
            has_src,
            checks: String::new(),
            way: String::new(),
        };
        for stmt in &module.body {
            match &stmt.kind {
                StmtKind::Import(names) => file.imports.extend(names.iter().map(|(module, name)| (name.clone(), module.clone()))),
                StmtKind::ImportFrom(_, module, names) => {
                    let full = |name: &String| if module.is_empty() { name.clone() } else { format!("{module}.{name}") };
                    file.imports.extend(names.iter().map(|(name, here)| (here.clone(), full(name))));
                }
                StmtKind::Class(class) => file.classes.push(Arc::clone(class)),
                StmtKind::Def(function) => {
                    file.functions.insert(function.name.clone(), Arc::clone(function));
                }
                _ => {}
            }
        }
        file.module = module;
        file
    }

    /// `triad.check.yaml`
    pub(crate) fn checks_name(&self) -> String {
        format!("{}.check.yaml", self.stem())
    }

    /// `triad` of `stream/triad.py`.
    pub(crate) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.strip_suffix(".py").unwrap_or(name)
    }

    /// A line as it stands.
    pub(crate) fn line(&self, line: u32) -> &str {
        usize::try_from(line).ok().and_then(|line| self.lines.get(line.checked_sub(1)?)).map_or("", |line| line.trim())
    }
}

impl World {
    /// The class of that name.
    pub(crate) fn class(&self, id: &ClassId) -> Option<&Arc<Class>> {
        self.files.get(id.0)?.classes.iter().rev().find(|class| class.name == id.1)
    }

    /// The file of a module, `a.b` or `b`.
    pub(crate) fn module(&self, name: &str) -> Option<usize> {
        let path = format!("{}.py", name.replace('.', "/"));
        let last = name.rsplit('.').next().unwrap_or(name);
        let ends = |file: &File| file.path == path || file.path.ends_with(&format!("/{path}"));
        self.files.iter().position(ends).or_else(|| self.files.iter().position(|file| file.stem() == last))
    }

    /// Follows a full name into the files: the file and the name there.
    pub(crate) fn resolve(&self, full: &str) -> Option<(usize, String)> {
        let (module, name) = full.rsplit_once('.')?;
        let file = self.module(module)?;
        match self.files[file].imports.get(name) {
            Some(further) if further != full => self.resolve(further).or(Some((file, name.to_owned()))),
            _ => Some((file, name.to_owned())),
        }
    }

    /// The class that an expression names in a file.
    pub(crate) fn class_named(&self, file: usize, expr: &Expr) -> Option<ClassId> {
        let dotted = expr.dotted()?;
        if self.files[file].classes.iter().any(|class| class.name == dotted) {
            return Some((file, dotted));
        }
        let (first, rest) = dotted.split_once('.').map_or((&*dotted, None), |(first, rest)| (first, Some(rest)));
        let full = self.files[file].imports.get(first)?;
        let full = rest.map_or_else(|| full.clone(), |rest| format!("{full}.{rest}"));
        let (file, name) = self.resolve(&full)?;
        self.class(&(file, name.clone())).map(|_| (file, name))
    }

    /// A class and its bases in the order in which Python asks them, and what they derive from in the end.
    pub(crate) fn lineage(&self, id: &ClassId) -> Result<(Vec<ClassId>, Root), UnknownBase> {
        self.lineage_within(id, &mut Vec::new())
    }

    fn lineage_within(&self, id: &ClassId, trail: &mut Vec<ClassId>) -> Result<(Vec<ClassId>, Root), UnknownBase> {
        let Some(class) = self.class(id) else { return Ok((vec![], Root::None)) };
        if trail.contains(id) || trail.len() > 64 {
            return Err(UnknownBase { file: id.0, line: class.line, name: format!("{} (derives from itself)", id.1) });
        }
        trail.push(id.clone());
        let (mut lines, mut direct, mut root) = (Vec::new(), Vec::new(), Root::None);
        for base in &class.bases {
            match self.class_named(id.0, base) {
                // A class may have the name of its base in another file, never its own.
                Some(base_id) if base_id != *id => {
                    let (line, base_root) = self.lineage_within(&base_id, trail)?;
                    root = if root == Root::None { base_root } else { root };
                    direct.push(base_id);
                    lines.push(line);
                }
                _ => {
                    root = framework(base).map(|known| if root == Root::None { known } else { root }).ok_or_else(|| {
                        let name = base.dotted().unwrap_or_else(|| "a computed base".to_owned());
                        UnknownBase { file: id.0, line: base.line, name }
                    })?;
                }
            }
        }
        trail.pop();
        lines.push(direct);
        let mut order = vec![id.clone()];
        order.extend(merged(lines));
        Ok((order, root))
    }

    /// The classes of a lineage in the order in which parameters are shown: bases first, from left to right.
    pub(crate) fn by_declaration(&self, id: &ClassId, seen: &mut Vec<ClassId>) {
        let Some(class) = self.class(id) else { return };
        if seen.contains(id) || seen.len() > 256 {
            return;
        }
        for base in &class.bases {
            if let Some(base) = self.class_named(id.0, base).filter(|base| base != id) {
                self.by_declaration(&base, seen);
            }
        }
        if !seen.contains(id) {
            seen.push(id.clone());
        }
    }
}

/// Python's C3 order of the bases' orders.
fn merged(mut lines: Vec<Vec<ClassId>>) -> Vec<ClassId> {
    let mut order = Vec::new();
    loop {
        lines.retain(|line| !line.is_empty());
        let is_free = |id: &ClassId| lines.iter().all(|line| !line[1..].contains(id));
        let Some(next) = lines.iter().map(|line| &line[0]).find(|id| is_free(id)).or(lines.first().map(|line| &line[0])) else {
            return order;
        };
        let next = next.clone();
        for line in &mut lines {
            line.retain(|id| *id != next);
        }
        order.push(next);
    }
}

/// What a class of the framework is.
fn framework(base: &Expr) -> Option<Root> {
    let name = match &base.kind {
        ExprKind::Name(name) | ExprKind::Attribute(_, name) => name.as_str(),
        _ => return None,
    };
    Some(match name {
        "RunOnlyRegressionTest" => Root::RunOnly,
        "CompileOnlyRegressionTest" => Root::CompileOnly,
        "RegressionTest" => Root::Builds,
        "RegressionMixin" | "RegressionTestPlugin" | "object" | "ABC" => Root::None,
        _ => return None,
    })
}

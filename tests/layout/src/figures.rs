//! Figures of the code base, for notes on a restructuring.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::cycles::{cycles, levels, upward};
use crate::imports::{Import, imports, is_root_of_directory};
use crate::modules::Modules;
use crate::source::{attributes, is_test};
use crate::workspace::{Package, packages, rust_files};

/// A table with a line for each crate of the workspace, and the largest directories.
///
/// # Errors
/// A workspace or a file that cannot be read.
pub fn figures(workspace: &Path) -> io::Result<String> {
    let mut table = String::from("crate                 code  files  levels  upward  largest cycle: modules  files\n");
    let (mut lines, mut files) = (0, 0);
    for package in packages(workspace)? {
        let figures = of_package(&package)?;
        let is_counted = package.directory.starts_with(workspace.join("harness")) || package.directory == workspace;
        if is_counted && package.name != "muster-convert" {
            (lines, files) = (lines + figures.code, files + figures.files);
        }
        let Figures { code, files, levels, upward, module_cycle, file_cycle } = figures;
        let name = &package.name;
        let _ = writeln!(table, "{name:20} {code:>5} {files:>6} {levels:>7} {upward:>7} {module_cycle:>23} {file_cycle:>6}");
    }
    let _ = writeln!(table, "{:20} {lines:>5} {files:>6}\n\nthe largest directories (.rs files):", "harness, no convert");
    let mut directories: Vec<_> = rust_files(workspace)?.into_iter().map(|(path, files)| (files.len(), path)).collect();
    directories.sort_by(|a, b| b.cmp(a));
    for (count, path) in directories.iter().take_while(|(count, _)| *count > 10) {
        let _ = writeln!(table, "{count:>4}  {}", path.strip_prefix(workspace).unwrap_or(path).display());
    }
    Ok(table)
}

struct Figures {
    code: usize,
    files: usize,
    /// The longest chain of imports between the modules right below the root.
    levels: usize,
    upward: usize,
    module_cycle: usize,
    file_cycle: usize,
}

fn of_package(package: &Package) -> io::Result<Figures> {
    let (mut all, mut sources) = (Vec::new(), BTreeSet::new());
    for root in &package.roots {
        let directory = root.parent().unwrap_or(Path::new(""));
        let modules = read_modules(root)?;
        sources.extend(modules.0.iter().map(|module| directory.join(&module.file)));
        all.extend(imports(&modules));
    }
    let mut code = 0;
    for source in &sources {
        code += code_lines(&std::fs::read_to_string(source)?)?;
    }
    let modules = between_modules(&all);
    let files = edges(&all, |file| Some(file.to_string_lossy().into_owned()));
    let largest = |edges: &BTreeSet<(String, String)>| cycles(pairs(edges)).first().map_or(1, BTreeSet::len);
    Ok(Figures {
        code,
        files: sources.len(),
        levels: levels(pairs(&modules)),
        upward: upward(pairs(&modules)).len(),
        module_cycle: largest(&modules),
        file_cycle: largest(&files),
    })
}

/// The imports between the modules right below the root of a crate that have to go before no cycle is left.
///
/// # Errors
/// A file that cannot be read.
pub fn upward_imports(package: &Package) -> io::Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for root in &package.roots {
        all.extend(imports(&read_modules(root)?));
    }
    let modules = between_modules(&all);
    Ok(upward(pairs(&modules)).into_iter().map(|(from, to)| (from.to_owned(), to.to_owned())).collect())
}

fn between_modules(imports: &[Import]) -> BTreeSet<(String, String)> {
    edges(imports, |file| file.iter().next().map(|first| first.to_string_lossy().replace(".rs", "")))
}

fn pairs(edges: &BTreeSet<(String, String)>) -> impl Iterator<Item = (&str, &str)> + Clone {
    edges.iter().map(|(from, to)| (from.as_str(), to.as_str()))
}

/// Edges between the nodes that `node` gives for a file. The files that are the root of the crate are none.
fn edges(imports: &[Import], node: impl Fn(&Path) -> Option<String>) -> BTreeSet<(String, String)> {
    let is_root = |file: &Path| file.to_str().is_some_and(is_root_of_directory);
    let of_both = |import: &Import| Some((node(&import.from)?, node(&import.to)?));
    let counted = imports.iter().filter(|import| !is_root(&import.from) && !is_root(&import.to));
    counted.filter_map(of_both).filter(|(from, to)| from != to).collect()
}

/// The modules of the crate with this root file.
///
/// # Errors
/// A file that cannot be read.
pub fn read_modules(root: &Path) -> io::Result<Modules> {
    let directory = root.parent().unwrap_or(Path::new("")).to_owned();
    let name = PathBuf::from(root.file_name().unwrap_or_default());
    Modules::read(&name, &|file| std::fs::read_to_string(directory.join(file)).ok())
}

/// The lines that hold code: no comment, no blank line, nothing that is compiled for tests only.
///
/// # Errors
/// A text that is no Rust.
pub fn code_lines(text: &str) -> io::Result<usize> {
    let mut lines = BTreeSet::new();
    let not_rust = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let tokens: TokenStream = text.parse().map_err(|error: proc_macro2::LexError| not_rust(&error))?;
    lines_of(tokens, &mut lines);
    let mut tests = Tests(BTreeSet::new());
    tests.visit_file(&syn::parse_file(text).map_err(|error| not_rust(&error))?);
    Ok(lines.difference(&tests.0).count())
}

fn lines_of(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut rest = tokens.as_slice();
    while let Some((token, more)) = rest.split_first() {
        rest = after_doc(rest).unwrap_or(more);
        match token {
            _ if rest.len() < more.len() => {}
            TokenTree::Group(group) => {
                lines.extend([group.span_open().start().line, group.span_close().end().line]);
                lines_of(group.stream(), lines);
            }
            other => lines.extend(other.span().start().line..=other.span().end().line),
        }
    }
}

/// Documentation is a comment, which the parser gives as `[doc = ".."]` after `#` and perhaps `!`.
fn after_doc(tokens: &[TokenTree]) -> Option<&[TokenTree]> {
    let is = |token: &TokenTree, wanted| matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted);
    let (group, rest) = match tokens {
        [hash, TokenTree::Group(group), rest @ ..] if is(hash, '#') => (group, rest),
        [hash, bang, TokenTree::Group(group), rest @ ..] if is(hash, '#') && is(bang, '!') => (group, rest),
        _ => return None,
    };
    let mut inside = group.stream().into_iter();
    let is_doc = group.delimiter() == Delimiter::Bracket
        && matches!(inside.next(), Some(TokenTree::Ident(ident)) if ident == "doc")
        && inside.next().is_some_and(|token| is(&token, '='));
    is_doc.then_some(rest)
}

/// The lines of items that are compiled for tests only.
struct Tests(BTreeSet<usize>);

impl<'ast> Visit<'ast> for Tests {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_test(attributes(item)) {
            self.0.extend(item.span().start().line..=item.span().end().line);
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if is_test(&function.attrs) {
            self.0.extend(function.span().start().line..=function.span().end().line);
        }
    }
}

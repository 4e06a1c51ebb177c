//! One source file: its modules, the names that they define, and the paths that they use.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Meta, UseTree};

/// A path as it is written, `["super", "a", "B"]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
}

/// What is written directly in one module, inline or a file.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Items that are defined here, modules excepted.
    pub(crate) names: BTreeSet<String>,
    /// The paths of `use` items by the names that they bring in.
    pub(crate) aliases: BTreeMap<String, Vec<String>>,
    /// `use a::*`.
    pub(crate) globs: Vec<Vec<String>>,
    pub(crate) used: Vec<Used>,
    /// `mod name { .. }`.
    pub(crate) inline: Vec<(String, Scope)>,
    /// `mod name;`, with the value of `#[path]`.
    pub(crate) files: Vec<(String, Option<String>)>,
}

impl Scope {
    pub(crate) fn of(items: &[Item]) -> Scope {
        let mut scope = Scope::default();
        for item in items {
            scope.visit_item(item);
        }
        scope
    }

    fn module(&mut self, module: &syn::ItemMod) {
        let name = module.ident.to_string();
        if name == "tests" || name == "testing" {
            return;
        }
        match &module.content {
            Some((_, items)) => self.inline.push((name, Scope::of(items))),
            None => self.files.push((name, value_of(&module.attrs, "path").map(|(_, path)| path))),
        }
    }

    fn import(&mut self, tree: &UseTree, prefix: &[String]) {
        let with = |ident: &syn::Ident| [prefix, &[ident.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.import(&path.tree, &with(&path.ident)),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(tree, prefix)),
            UseTree::Glob(_) => {
                self.note(prefix.to_vec(), tree.span());
                self.globs.push(prefix.to_vec());
            }
            UseTree::Name(name) if name.ident == "self" => self.imported(prefix.to_vec(), prefix.last().cloned(), tree.span()),
            UseTree::Name(name) => self.imported(with(&name.ident), Some(name.ident.to_string()), tree.span()),
            UseTree::Rename(rename) => {
                let path = if rename.ident == "self" { prefix.to_vec() } else { with(&rename.ident) };
                self.imported(path, Some(rename.rename.to_string()), tree.span());
            }
        }
    }

    fn imported(&mut self, path: Vec<String>, alias: Option<String>, span: proc_macro2::Span) {
        self.note(path.clone(), span);
        if let Some(alias) = alias.filter(|alias| *alias != "_") {
            self.aliases.insert(alias, path);
        }
    }

    fn note(&mut self, path: Vec<String>, span: proc_macro2::Span) {
        self.used.push(Used { path, line: span.start().line });
    }

    /// Paths in the tokens of a macro, and in those string literals of an attribute that look like a path.
    fn tokens(&mut self, tokens: TokenStream, in_attribute: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Group(group) => self.tokens(group.stream(), in_attribute),
                TokenTree::Literal(literal) if in_attribute => self.literal(literal),
                TokenTree::Ident(first) if !ends_with_colons(&tokens[..at - 1]) => {
                    let mut path = vec![first.to_string()];
                    while let Some([TokenTree::Punct(one), TokenTree::Punct(two), TokenTree::Ident(next)]) =
                        tokens.get(at..at + 3)
                        && (one.as_char(), two.as_char()) == (':', ':')
                    {
                        path.push(next.to_string());
                        at += 3;
                    }
                    self.note(path, first.span());
                }
                _ => {}
            }
        }
    }

    fn literal(&mut self, literal: &proc_macro2::Literal) {
        let text = literal.to_string();
        if let Some(text) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'))
            && let Ok(path) = syn::parse_str::<syn::Path>(text)
            && path.segments.len() > 1
        {
            self.note(segments(&path), literal.span());
        }
    }
}

fn ends_with_colons(tokens: &[TokenTree]) -> bool {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':');
    matches!(tokens, [.., one, two] if is_colon(one) && is_colon(two))
}

fn segments(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

impl<'ast> Visit<'ast> for Scope {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            return;
        }
        if let Some(name) = name(item) {
            self.names.insert(name);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.module(module);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() {
            self.import(&item.tree, &[]);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        let attributes: &[Attribute] = match statement {
            syn::Stmt::Local(local) => &local.attrs,
            syn::Stmt::Macro(call) => &call.attrs,
            syn::Stmt::Item(_) | syn::Stmt::Expr(..) => &[],
        };
        if !is_test(attributes) {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.note(segments(path), path.span());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        self.tokens(call.tokens.clone(), false);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone(), true);
        }
    }

    /// `pub(in crate::a)` imports nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

/// The value of the first attribute `#[name = "value"]`, a doc comment among them, and its line.
pub(crate) fn value_of(attributes: &[Attribute], name: &str) -> Option<(usize, String)> {
    attributes.iter().find(|attribute| attribute.path().is_ident(name)).and_then(|attribute| match &attribute.meta {
        Meta::NameValue(syn::MetaNameValue { value: syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }), .. }) => {
            Some((attribute.span().start().line, text.value()))
        }
        _ => None,
    })
}

/// Whether the item is compiled for tests only.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg") && attribute.parse_args::<Meta>().is_ok_and(|condition| needs_test(&condition))
    })
}

fn needs_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated)
            .is_ok_and(|all| all.iter().any(needs_test)),
        _ => false,
    }
}

fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

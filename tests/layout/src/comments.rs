//! Finds doc comments that begin without a subject.

use std::io;

use syn::visit::{self, Visit};
use syn::{Attribute, Item, Visibility};

use crate::source::{attributes, is_test, value_of};

/// The first words of a comment that is a part of a sentence. Some sentences begin so, too: they are rephrased, so that the rule
/// needs no grammar.
const FRAGMENTS: &[&str] = &[
    "As", "By", "For", "From", "How", "In", "Of", "Only", "So", "The same", "Those", "What", "When", "Where", "Whether", "Which",
    "Who", "Whose", "Why", "With",
];

/// The comments without a subject at the head of a file and at its public items: their lines, and what each begins with.
///
/// # Errors
/// A text that is no Rust.
pub fn without_subject(text: &str) -> io::Result<Vec<(usize, String)>> {
    let file = syn::parse_file(text).map_err(io::Error::other)?;
    let mut comments = Comments(Vec::new());
    comments.note(&file.attrs);
    comments.visit_file(&file);
    Ok(comments.0)
}

struct Comments(Vec<(usize, String)>);

impl Comments {
    fn note(&mut self, attributes: &[Attribute]) {
        let Some((line, text)) = value_of(attributes, "doc") else { return };
        let begins_with =
            |words: &&str| text.trim().strip_prefix(words).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
        if FRAGMENTS.iter().any(begins_with) {
            self.0.push((line, text.trim().to_owned()));
        }
    }

    fn note_public(&mut self, visibility: &Visibility, attributes: &[Attribute]) {
        if matches!(visibility, Visibility::Public(_)) && !is_test(attributes) {
            self.note(attributes);
        }
    }
}

impl<'ast> Visit<'ast> for Comments {
    /// A type or trait that is not public has no public part. A private module has some: others may export them.
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            return;
        }
        let is_public = visibility(item).is_some_and(|visibility| matches!(visibility, Visibility::Public(_)));
        if is_public {
            self.note(attributes(item));
        }
        if is_public || matches!(item, Item::Mod(_) | Item::Impl(_)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.note_public(&field.vis, &field.attrs);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.note(&variant.attrs);
        variant.fields.iter().for_each(|field| self.note(&field.attrs));
    }

    fn visit_trait_item_const(&mut self, item: &'ast syn::TraitItemConst) {
        self.note(&item.attrs);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.note(&item.attrs);
    }

    fn visit_trait_item_type(&mut self, item: &'ast syn::TraitItemType) {
        self.note(&item.attrs);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.note_public(&item.vis, &item.attrs);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note_public(&item.vis, &item.attrs);
    }
}

fn visibility(item: &Item) -> Option<&Visibility> {
    match item {
        Item::Const(item) => Some(&item.vis),
        Item::Enum(item) => Some(&item.vis),
        Item::ExternCrate(item) => Some(&item.vis),
        Item::Fn(item) => Some(&item.vis),
        Item::Mod(item) => Some(&item.vis),
        Item::Static(item) => Some(&item.vis),
        Item::Struct(item) => Some(&item.vis),
        Item::Trait(item) => Some(&item.vis),
        Item::TraitAlias(item) => Some(&item.vis),
        Item::Type(item) => Some(&item.vis),
        Item::Union(item) => Some(&item.vis),
        Item::Use(item) => Some(&item.vis),
        _ => None,
    }
}

//! One table of keys: struct, decoder, hints and JSON schema at once.

use super::{Context, Decode};
use crate::{
    Value,
    diagnostic::{Diagnostic, Span, did_you_mean, nearest},
    yaml::{Kind, Node},
};
use serde_json::{Map, json};
use std::{fmt, sync::Arc};

/// One key of a table.
pub struct Key<T> {
    /// The key as written in files.
    pub name: &'static str,
    /// The effect of the key, with units and defaults: the schema's description.
    pub doc: &'static str,
    pub required: bool,
    /// The schedulers decide: some take the key, the others refuse or ignore it.
    pub shared: bool,
    pub schema: fn() -> Value,
    /// Null is a value of the key; else a null key counts as not there.
    pub takes_null: bool,
    /// Decodes its value into the struct.
    pub set: fn(&mut T, &Node, &mut Context),
}

impl Key<()> {
    /// A key whose value is looked at, and stays in the tree.
    pub const fn of<T: Decode>(name: &'static str, doc: &'static str) -> Self {
        let set = |(): &mut (), node: &Node, context: &mut Context| drop(T::decode(node, context));
        Self { name, doc, required: false, shared: false, schema: T::schema, takes_null: T::TAKES_NULL, set }
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Keys that are known only while the program runs: those of the schedulers it has. Their values stay in the tree.
pub type MoreKeys = Arc<[&'static Key<()>]>;

/// A key of another system, and what to use instead: `("sourcepath", "build in a fixture")`.
pub type Instead = (&'static str, &'static str);

/// All that is known of a mapping with fixed keys. Made by [`keys!`](crate::keys).
pub struct Table<T: 'static> {
    /// The thing that has these keys, for messages: `a check`.
    pub what: &'static str,
    pub keys: &'static [Key<T>],
    /// Keys of a later version of Muster.
    pub later: &'static [&'static str],
    pub instead: &'static [Instead],
    /// The mapping may have the keys of [`Context::more`] as well.
    pub is_open: bool,
}

/// A struct made by [`keys!`](crate::keys).
pub trait Keyed: Default + 'static {
    const TABLE: &'static Table<Self>;

    fn set_span(&mut self, span: Span);
}

/// Which keys a mapping may have beside those of its table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Appends {
    Allowed,
    Refused,
}

/// Settings that override others of the same kind.
pub struct Overlay<'a> {
    /// The place of the settings, for messages: "an entry of `when`".
    pub what: &'a str,
    /// Other known keys, which are ignored here.
    pub own: &'a [&'a str],
    /// Keys that cannot be overridden.
    pub refused: &'a [&'a str],
}

/// Reads a mapping with fixed keys. A null counts as a key that is not there, unless it is one of the key's values.
pub fn object<T: Keyed>(node: &Node, context: &mut Context) -> Option<T> {
    let overlay = Overlay { what: T::TABLE.what, own: &[], refused: &[] };
    let decoded = entries(node, context, Appends::Refused, &overlay)?;
    if !context.is_overlay() {
        require::<T>(node, context);
    }
    Some(decoded)
}

/// Reads a mapping that will be merged over another one of its kind: `key+` appends, and the other one may have what
/// its parts need.
pub fn derived<T: Keyed>(node: &Node, context: &mut Context) -> Option<T> {
    let overlay = Overlay { what: T::TABLE.what, own: &[], refused: &[] };
    let decoded = context.as_overlay(|context| entries(node, context, Appends::Allowed, &overlay))?;
    require::<T>(node, context);
    Some(decoded)
}

/// Reads settings that will be merged over others: nothing is required, `key+` appends.
pub fn overlay<T: Keyed>(node: &Node, context: &mut Context, overlay: &Overlay<'_>) -> Option<T> {
    context.as_overlay(|context| entries(node, context, Appends::Allowed, overlay))
}

fn require<T: Keyed>(node: &Node, context: &mut Context) {
    let missing = |key: &&Key<T>| key.required && node.get(key.name).is_none_or(Node::is_null);
    for key in T::TABLE.keys.iter().filter(missing).filter(|key| !T::TABLE.is_meant(key.name, node)) {
        let message = format!("{} needs `{}`", T::TABLE.what, key.name);
        context.wrong::<()>(node, message, Some(&key.summary()));
    }
}

fn entries<T: Keyed>(node: &Node, context: &mut Context, appends: Appends, overlay: &Overlay<'_>) -> Option<T> {
    let Kind::Map(entries) = context.kind(node)? else {
        return context.expected(node, &format!("a mapping with the keys of {}", overlay.what), None);
    };
    let mut decoded = T::default();
    decoded.set_span(node.place());
    for (name, value) in entries {
        let Some(text) = name.text().filter(|text| !overlay.own.contains(text)) else { continue };
        let appended = text.strip_suffix('+');
        let Some(key) = T::TABLE.find(appended.unwrap_or(text), context) else {
            unknown(T::TABLE, overlay, name, text, context);
            continue;
        };
        match key {
            Found::Own(key) if overlay.refused.contains(&key.name) => {
                context.wrong::<()>(name, format!("`{}` cannot be set in {}", key.name, overlay.what), None);
            }
            _ if appended.is_some() && appends == Appends::Refused => {
                let hint = "`key+` appends where lists are merged: in `when`, and in a check with `extends`";
                context.wrong::<()>(name, format!("`{text}` has nothing to append to"), Some(hint));
            }
            _ if appended.is_some() && !matches!(&*value.kind, Kind::Seq(_)) => {
                if context.kind(value).is_some() {
                    context.expected::<()>(value, &format!("a list for `{text}` to append"), Some("put it in [ ]"));
                }
            }
            Found::Own(key) if !value.is_null() || key.takes_null => (key.set)(&mut decoded, value, context),
            Found::More(key) if !value.is_null() || key.takes_null => (key.set)(&mut (), value, context),
            Found::Own(_) | Found::More(_) => {}
        }
    }
    Some(decoded)
}

fn unknown<T>(table: &Table<T>, overlay: &Overlay<'_>, name: &Node, text: &str, context: &mut Context) {
    let bare = text.trim_end_matches('+');
    if table.later.contains(&bare) {
        return context.push(Diagnostic::error(name.place(), format!("`{bare}` is not supported yet")).hint("leave it out"));
    }
    let instead = table.instead.iter().find(|(key, _)| *key == bare).map(|(_, words)| (*words).to_owned());
    let known = table.keys.iter().map(|key| key.name).filter(|key| !overlay.refused.contains(key));
    let more = context.more.iter().filter(|_| table.is_open).map(|key| key.name);
    let hint = instead.or_else(|| did_you_mean(bare, known.chain(more).chain(overlay.own.iter().copied())));
    context.wrong::<()>(name, format!("unknown key `{text}` in {}", overlay.what), hint.as_deref());
}

/// A key of a table, or one of the keys that its mappings may have as well.
enum Found<T: 'static> {
    Own(&'static Key<T>),
    More(&'static Key<()>),
}

impl<T> Table<T> {
    /// The keys that only some schedulers take.
    pub fn shared(&self) -> impl Iterator<Item = &'static str> + use<T> {
        self.keys.iter().filter(|key| key.shared).map(|key| key.name)
    }

    fn find(&self, name: &str, context: &Context) -> Option<Found<T>> {
        let more = || context.more.iter().find(|key| self.is_open && key.name == name).copied().map(Found::More);
        self.keys.iter().find(|key| key.name == name).map(Found::Own).or_else(more)
    }

    /// Returns whether a mapping has an unknown key that was probably meant to be this one: that mistake is enough.
    pub fn is_meant(&self, key: &str, node: &Node) -> bool {
        let known = || self.keys.iter().map(|key| key.name);
        let mut written = node.entries().iter().filter_map(|(name, _)| name.text());
        written.any(|text| !known().any(|name| name == text) && nearest(text, known()) == Some(key))
    }

    /// The JSON schema of a file that is such a mapping, which may have `more` keys if the table is open.
    pub fn file_schema(&self, id: &str, title: &str, more: &[&Key<()>]) -> Value {
        let mut schema = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": id, "title": title });
        for (key, value) in self.schema().as_object().into_iter().flatten() {
            schema[key] = value.clone();
        }
        for key in more {
            schema["properties"][key.name] = key.described();
        }
        schema
    }

    /// The JSON schema of the mapping.
    pub fn schema(&self) -> Value {
        let required: Vec<_> = self.keys.iter().filter(|key| key.required).map(|key| key.name).collect();
        let mut schema = json!({ "type": "object", "additionalProperties": false });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema["properties"] = Value::Object(self.keys.iter().map(|key| (key.name.to_owned(), key.described())).collect());
        schema
    }
}

impl<T> Key<T> {
    /// One line for the documentation.
    pub fn description(&self) -> String {
        self.doc.lines().map(str::trim).collect::<Vec<_>>().join(" ")
    }

    /// The first sentence of the description, without its full stop.
    pub fn summary(&self) -> String {
        let description = self.description();
        let first = description.split_once(". ").map_or(description.as_str(), |(first, _)| first);
        first.trim_end_matches('.').to_owned()
    }

    /// The JSON schema of its value, with its description.
    pub fn described(&self) -> Value {
        let mut schema = Map::new();
        schema.insert("description".to_owned(), self.description().into());
        if let Value::Object(value) = (self.schema)() {
            schema.extend(value);
        }
        if self.required {
            return Value::Object(schema);
        }
        // Null means that the key is not there.
        let open = match schema.get_mut("anyOf") {
            Some(Value::Array(choices)) => {
                choices.push(json!({ "type": "null" }));
                true
            }
            _ => false,
        };
        if !open && let Some(kind) = schema.remove("type") {
            let mut kinds = match kind {
                Value::Array(kinds) => kinds,
                kind => vec![kind],
            };
            kinds.push("null".into());
            schema.insert("type".to_owned(), kinds.into());
        }
        Value::Object(schema)
    }
}

/// The schema of an overlay: `own` keys and, by reference to the root's properties, those of the table, also as `key+`.
pub fn overlay_schema<T, U>(own: &Table<T>, table: &Table<U>, except: &[&str]) -> Value {
    let mut schema = own.schema();
    for key in table.keys.iter().filter(|key| !except.contains(&key.name)) {
        let reference = json!({ "$ref": format!("#/properties/{}", key.name) });
        schema["properties"][key.name] = reference.clone();
        schema["properties"][format!("{}+", key.name)] = reference;
    }
    schema
}

/// Declares a struct, and with it the decoder, the hints and the JSON schema of its keys. Every key is an
/// `Option`: not there, null, wrong, or waiting for rendering.
///
/// `@required` marks a key that must be there, `@shared` one that only some schedulers take; `as "if"` names a key that cannot be a field. The struct may be
/// followed by `later [..]`, `instead { .. }`, `open true;` for the keys of [`Context::more`], and `decode` and `schema` with functions in place of the usual ones.
#[macro_export]
macro_rules! keys {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident ($what:literal) {
            $($(#[doc = $doc:literal])* $(@$mark:ident)? $field:ident : $type:ty $(as $key:literal)?,)*
        }
        $(later [$($later:literal),* $(,)?])?
        $(instead { $($($old:literal)|+ => $new:literal,)* })?
        $(open $open:literal;)?
        $(decode $decode:path;)?
        $(schema $schema:path;)?
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Default)]
        $visibility struct $name {
            $($(#[doc = $doc])* pub $field: Option<$type>,)*
            pub span: $crate::diagnostic::Span,
        }

        impl $crate::decode::Keyed for $name {
            const TABLE: &'static $crate::decode::Table<Self> = &$crate::decode::Table {
                what: $what,
                keys: &[$($crate::decode::Key {
                    name: $crate::keys!(@name $field $($key)?),
                    doc: $crate::keys!(@doc $($doc)*),
                    required: $crate::keys!(@required $($mark)?),
                    shared: $crate::keys!(@shared $($mark)?),
                    schema: <$type as $crate::decode::Decode>::schema,
                    takes_null: <$type as $crate::decode::Decode>::TAKES_NULL,
                    set: |decoded, node, context| decoded.$field = $crate::decode::Decode::decode(node, context),
                }),*],
                later: &[$($($later),*)?],
                instead: &[$($($(($old, $new),)+)*)?],
                is_open: $crate::keys!(@open $($open)?),
            };

            fn set_span(&mut self, span: $crate::diagnostic::Span) {
                self.span = span;
            }
        }

        impl $crate::decode::Decode for $name {
            fn decode(node: &$crate::yaml::Node, context: &mut $crate::decode::Context) -> Option<Self> {
                $crate::keys!(@decode $($decode)?)(node, context)
            }

            fn schema() -> $crate::Value {
                $crate::keys!(@schema $($schema)?)
            }
        }
    };
    (@open $open:literal) => { $open };
    (@open) => { false };
    (@required required) => { true };
    (@required $($other:ident)?) => { false };
    (@shared shared) => { true };
    (@shared $($other:ident)?) => { false };
    (@name $field:ident $key:literal) => { $key };
    (@name $field:ident) => { stringify!($field) };
    (@doc $first:literal $($more:literal)*) => { concat!($first $(, "\n", $more)*) };
    (@decode $decode:path) => { $decode };
    (@decode) => { $crate::decode::object };
    (@schema $schema:path) => { $schema() };
    (@schema) => { <Self as $crate::decode::Keyed>::TABLE.schema() };
}

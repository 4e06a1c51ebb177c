//! Lists and mappings of anything that can be decoded.

use super::{Context, Decode, Spanned, or_placeholder};
use crate::{
    Value,
    yaml::{Kind, Node},
};
use serde_json::json;
use std::{collections::BTreeMap, ops::Deref};

/// Items that cannot be read, and those that wait for rendering, are left out: only a rendered tree without
/// diagnostics has them all.
impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match context.kind(node)? {
            Kind::Seq(items) => Some(items.iter().filter_map(|item| T::decode(item, context)).collect()),
            Kind::Scalar { .. } if !node.is_null() => context.expected(node, "a list", Some("put it in [ ]")),
            Kind::Map(_) => context.expected(node, "a list", Some("begin each item with `- `, or put them in [ ]")),
            _ => context.expected(node, "a list", None),
        }
    }

    fn schema() -> Value {
        or_placeholder(&json!({ "type": "array", "items": T::schema() }))
    }
}

/// One value, or a list of them: `valid_systems: eidf` or `valid_systems: [eidf, aws]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T> Deref for OneOrMany<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Decode> Decode for OneOrMany<T> {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match context.kind(node)? {
            Kind::Seq(_) => Vec::decode(node, context).map(Self),
            _ => Some(Self(vec![T::decode(node, context)?])),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [T::schema(), { "type": "array", "items": T::schema() }, { "$ref": "#/$defs/placeholder" }] })
    }
}

/// A mapping with keys of the author's choice, in the author's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ordered<T>(pub Vec<(Spanned<String>, T)>);

impl<T> Deref for Ordered<T> {
    type Target = [(Spanned<String>, T)];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> Ordered<T> {
    pub fn get(&self, key: &str) -> Option<&T> {
        self.0.iter().find(|(name, _)| name.value == key).map(|(_, value)| value)
    }
}

impl<T: Decode> Decode for Ordered<T> {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let Kind::Map(entries) = context.kind(node)? else { return context.expected(node, "a mapping", None) };
        let entry = |(key, value): &(Node, Node)| {
            if value.is_null() && !T::TAKES_NULL {
                return None;
            }
            let name = Spanned { value: key.text()?.to_owned(), span: key.place() };
            Some((name, T::decode(value, context)?))
        };
        Some(Self(entries.iter().filter_map(entry).collect()))
    }

    fn schema() -> Value {
        let value = if T::TAKES_NULL { T::schema() } else { json!({ "anyOf": [T::schema(), { "type": "null" }] }) };
        or_placeholder(&json!({ "type": "object", "additionalProperties": value }))
    }
}

impl<T: Decode> Decode for BTreeMap<String, T> {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let ordered = Ordered::decode(node, context)?;
        Some(ordered.0.into_iter().map(|(key, value)| (key.value, value)).collect())
    }

    fn schema() -> Value {
        Ordered::<T>::schema()
    }
}

/// A mapping that Muster does not interpret: a manifest, a scheduler's options. Placeholders inside are kept.
#[derive(Debug, Clone)]
pub struct Mapping(pub Node);

impl Decode for Mapping {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match context.kind(node)? {
            Kind::Map(_) => Some(Self(node.clone())),
            _ => context.expected(node, "a mapping", None),
        }
    }

    fn schema() -> Value {
        or_placeholder(&json!({ "type": "object" }))
    }
}

/// One mapping, or the path of a YAML file with one or several.
#[derive(Debug, Clone)]
pub struct Documents(pub Node);

impl Decode for Documents {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match context.kind(node)? {
            Kind::Scalar { .. } | Kind::Map(_) => Some(Self(node.clone())),
            _ => context.expected(node, "the path of a manifest, or an object", Some("several objects need a file of their own")),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "type": "string" }, { "type": "object" }] })
    }
}

//! YAML in: manifests and configurations as values.

pub(crate) mod emit;

use crate::value::Value;
use muster_text::{
    diagnostic::FileId,
    yaml::{Kind, Node, parse, to_value},
};

/// The first document of a YAML text; `None` if it is no YAML.
pub(crate) fn read(text: &str) -> Option<Value> {
    tree(text).as_ref().map(of)
}

/// The same with its places.
pub(crate) fn tree(text: &str) -> Option<Node> {
    let parsed = parse(FileId::default(), text);
    parsed.documents.into_iter().next().filter(|_| parsed.diagnostics.is_empty())
}

/// What a tree says.
pub(crate) fn of(node: &Node) -> Value {
    match &*node.kind {
        Kind::Map(entries) => Value::Dict(entries.iter().map(|(key, value)| (of(key), of(value))).collect()),
        Kind::Seq(items) => Value::List(items.iter().map(of).collect()),
        _ => match to_value(node) {
            Ok(muster_text::Value::Null) => Value::None,
            Ok(muster_text::Value::Bool(value)) => Value::Bool(value),
            Ok(muster_text::Value::Number(number)) => {
                number.as_i64().map_or_else(|| Value::Float(number.as_f64().unwrap_or_default()), Value::Int)
            }
            Ok(muster_text::Value::String(text)) => Value::Str(text),
            _ => Value::Unknown,
        },
    }
}

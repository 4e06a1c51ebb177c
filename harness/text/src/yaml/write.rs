//! Values as YAML text that we and kubectl read back as the same values.

use super::{Kind, Node, parse, to_value, value::needs_quotes};
use crate::{Value, diagnostic::FileId};
use std::ops::Range;

/// Writes a value as YAML that kubectl and we read back as the same value.
pub fn to_text(value: &Value) -> String {
    let text = serde_yaml::to_string(value).ok().and_then(|text| quoted(value, text));
    // JSON is YAML, too, should the writer and the reader ever disagree.
    text.unwrap_or_else(|| format!("{value:#}\n"))
}

/// Quotes what the writer left bare but kubectl reads as something else, `yes` and `0o7` for example. `None` if the
/// text is not the value for another reason.
fn quoted(value: &Value, mut text: String) -> Option<String> {
    let parsed = parse(FileId::default(), &text);
    let ([document], []) = (&parsed.documents[..], &parsed.diagnostics[..]) else { return None };
    let mut bare = Vec::new();
    find_bare(value, document, &mut bare)?;
    // From the end, so that the places before stay what they are.
    for range in bare.into_iter().rev() {
        let quoted = Value::from(text.get(range.clone())?).to_string();
        text.replace_range(range, &quoted);
    }
    Some(text)
}

fn find_bare(value: &Value, node: &Node, bare: &mut Vec<Range<usize>>) -> Option<()> {
    match (value, &*node.kind) {
        (Value::String(wanted), Kind::Scalar { text, .. }) if wanted == text => {
            if node.plain().is_some_and(needs_quotes) {
                bare.push(node.span.start as usize..node.span.end as usize);
            }
            Some(())
        }
        (Value::Array(values), Kind::Seq(nodes)) if values.len() == nodes.len() => {
            values.iter().zip(nodes).try_for_each(|(value, node)| find_bare(value, node, bare))
        }
        (Value::Object(values), Kind::Map(nodes)) if values.len() == nodes.len() => {
            values.iter().zip(nodes).try_for_each(|((name, value), (key, node))| {
                find_bare(&Value::from(name.as_str()), key, bare)?;
                find_bare(value, node, bare)
            })
        }
        (Value::Null | Value::Bool(_) | Value::Number(_), Kind::Scalar { .. }) => {
            (to_value(node).as_ref() == Ok(value)).then_some(())
        }
        _ => None,
    }
}

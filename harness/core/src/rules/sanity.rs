//! Sanity: what must, and must not, stand in a stdout.

use muster_text::{
    Value,
    decode::{Context, Decode, or_placeholder},
    yaml::{Kind, Node},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// One item of `sanity`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assertion {
    #[serde(flatten)]
    pub claim: Claim,
    /// A glob: it is about the kept files that this fits, not about the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The author's words for a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub msg: Option<String>,
}

/// The claim of an assertion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// The pattern is found; exactly `count` times if given.
    Found {
        /// A regex, multi-line.
        pattern: String,
        /// Exactly so many matches over all sections.
        count: Option<u64>,
    },
    /// The pattern is not found.
    NotFound {
        /// A regex, multi-line.
        pattern: String,
    },
    /// The expression is true.
    Assert {
        /// CEL, evaluated in doubles.
        expression: String,
    },
    /// The workload's exit status. Without such an item it must be 0.
    Exit(ExitRule),
}

/// The exit statuses that count as success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitRule {
    /// Every one.
    Any,
    /// These.
    OneOf(Vec<i32>),
}

/// An exit status. A value that no process can have is a mistake.
fn status(node: &Node, context: &mut Context) -> Option<i32> {
    let status = i32::decode(node, context)?;
    if (0..=255).contains(&status) {
        return Some(status);
    }
    context.wrong(node, format!("{status} is not an exit status"), Some("they are 0 to 255; a kill by signal n is 128 + n"))
}

impl Decode for ExitRule {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match context.kind(node)? {
            Kind::Seq(items) => Some(Self::OneOf(items.iter().filter_map(|item| status(item, context)).collect())),
            Kind::Scalar { text, .. } if text == "any" => Some(Self::Any),
            Kind::Scalar { .. } if node.what() == "a number" => Some(Self::OneOf(vec![status(node, context)?])),
            _ => context.expected(node, "`any`, an exit status, or a list of them", None),
        }
    }

    fn schema() -> Value {
        let status = json!({ "type": "integer", "minimum": 0, "maximum": 255 });
        or_placeholder(&json!({ "anyOf": [{ "const": "any" }, status, { "type": "array", "items": status }] }))
    }
}

//! `command`: a program and its arguments, which no shell sees.

use muster_text::{
    Value,
    decode::{Context, Decode},
    yaml::{Kind, Node},
};
use std::ops::Deref;

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments(Vec<String>);

impl Deref for Arguments {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.0
    }
}

impl Decode for Arguments {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        if let Kind::Scalar { .. } = context.kind(node)?
            && node.text().is_some_and(is_shell_line)
        {
            let hint = "a shell line is `executable: ..`; without a shell, each argument is an item of its own";
            return context.expected(node, "a list", Some(hint));
        }
        Vec::decode(node, context).map(Self)
    }

    fn schema() -> Value {
        Vec::<String>::schema()
    }
}

/// Returns whether a shell would make more than one word of it.
pub fn is_shell_line(text: &str) -> bool {
    text.contains(|letter: char| letter.is_whitespace() || "|&;<>()$`\"'*?".contains(letter))
}

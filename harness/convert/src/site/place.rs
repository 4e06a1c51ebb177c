//! The lines of a configuration.

use crate::{
    loaded::Step,
    python::{Expr, ExprKind},
};
use muster_text::yaml::Node;

/// Where a configuration is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    /// As Python.
    Python(&'a Expr),
    /// As YAML: a tree, and the text that its spans count in.
    Yaml(&'a Node, &'a str),
}

impl Place<'_> {
    /// The line of what a path leads to, or of the last thing on the way that is written there.
    pub(super) fn line_at(self, path: &[Step]) -> u32 {
        match self {
            Self::Python(place) => python_line(place, path),
            Self::Yaml(place, text) => yaml_line(place, text, path),
        }
    }
}

fn python_line(mut place: &Expr, path: &[Step]) -> u32 {
    let mut line = place.line;
    for step in path {
        let next = match (step, &place.kind) {
            (Step::Key(key), ExprKind::Dict(entries)) => entries.iter().find_map(|(name, value)| {
                let name = name.as_ref()?;
                (name.kind == ExprKind::Str(key.clone())).then_some((name.line, value))
            }),
            (Step::At(at), ExprKind::List(items)) => items.get(*at).map(|item| (item.line, item)),
            _ => None,
        };
        let Some((at, next)) = next else { break };
        (line, place) = (at, next);
    }
    line
}

fn yaml_line(mut place: &Node, text: &str, path: &[Step]) -> u32 {
    let mut start = place.span.start;
    for step in path {
        let next = match step {
            Step::Key(key) => place.entry(key).map(|(name, value)| (name.span.start, value)),
            Step::At(at) => place.items().get(*at).map(|item| (item.span.start, item)),
        };
        let Some((at, next)) = next else { break };
        (start, place) = (at, next);
    }
    let before = usize::try_from(start).ok().and_then(|start| text.get(..start)).unwrap_or_default();
    u32::try_from(before.matches('\n').count() + 1).unwrap_or(u32::MAX)
}

//! `${{ expr }}` placeholders in a YAML tree.
//!
//! ```text
//! args: [-n, "${{ n }}", "${{ more }}"]      n: 4, more: [-v, -q]       args: [-n, 4, -v, -q]
//! ```
//! - A lone placeholder, quoted or not, keeps its value's type. Null removes its key or item; a list in a list is
//!   spliced. In a longer text, in a block scalar and in a key the value is written as text.
//! - In a pattern (`found`, `not_found`, `pattern`) a lone placeholder is the pattern; elsewhere in it the inserted text
//!   is escaped. `assert`, `value` and `if` are expressions already and are copied.
//! - Subtrees without placeholders are shared with the original.
//!
//! Not here: when which names are known. `names` says what a tree needs, and its caller knows the phases.

mod check;
mod place;
mod role;
mod split;

pub use check::{check, names, names_in_expressions};
pub use place::mistake;
pub use split::{Piece, Unterminated, split};

use crate::{
    Value,
    diagnostic::Diagnostic,
    expr::{Arithmetic, Expr, ExprError, Scope, value::kind_of_json},
    pattern,
    yaml::{Kind, Node, Style},
};
use role::Role;
use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

/// The placeholders of a check, compiled: all its cases share them.
#[derive(Debug, Default)]
pub struct Cache(RwLock<HashMap<Box<str>, Compiled>>);

type Compiled = Arc<Result<Expr, ExprError>>;

impl Cache {
    fn get(&self, text: &str) -> Compiled {
        // A panic elsewhere cannot leave the map half-written, so its poison means nothing.
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(text) {
            return Arc::clone(known);
        }
        let compiled = Arc::new(Expr::compile(text, Arithmetic::Exact));
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(text.into(), Arc::clone(&compiled));
        compiled
    }
}

/// Fills in all placeholders of a tree. `None`: the whole tree was a placeholder that became null.
///
/// What cannot be filled in becomes [`Kind::Bad`], with a diagnostic at its place.
pub fn render(node: &Node, scope: &Scope, cache: &Cache, diagnostics: &mut Vec<Diagnostic>) -> Option<Node> {
    let mut render = Render { scope, cache, diagnostics };
    match render.node(node, Role::Check) {
        Filled::Same => Some(node.clone()),
        Filled::New(node) => Some(node),
        Filled::Gone => None,
    }
}

/// The result of filling in a node.
enum Filled {
    /// The node has no placeholders.
    Same,
    New(Node),
    /// The value is null: the node is removed.
    Gone,
}

struct Render<'a> {
    scope: &'a Scope,
    cache: &'a Cache,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Render<'_> {
    fn node(&mut self, node: &Node, role: Role) -> Filled {
        let kind = match &*node.kind {
            Kind::Seq(items) => self.items(items, role).map(Kind::Seq),
            Kind::Map(entries) => self.entries(entries, role).map(Kind::Map),
            Kind::Scalar { text, style, tag } => return self.scalar(node, text, *style == Style::Block || tag.is_some(), role),
            Kind::Bad => None,
        };
        kind.map_or(Filled::Same, |kind| Filled::New(replaced(node, kind)))
    }

    /// The new items; `None` if nothing changes.
    fn items(&mut self, items: &[Node], list: Role) -> Option<Vec<Node>> {
        let role = list.of_item();
        let mut new: Option<Vec<Node>> = None;
        for (index, item) in items.iter().enumerate() {
            let filled = self.node(item, role);
            if !matches!(filled, Filled::Same) && new.is_none() {
                new = Some(items[..index].to_vec());
            }
            let Some(new) = &mut new else { continue };
            match filled {
                Filled::Same => new.push(item.clone()),
                // Each item has its place there.
                Filled::Gone if list == Role::Bounds => new.push(replaced(item, null())),
                Filled::Gone => {}
                // A list that was written as a list in a list is meant as one.
                Filled::New(node) if matches!(&*item.kind, Kind::Scalar { .. }) && matches!(&*node.kind, Kind::Seq(_)) => {
                    new.extend_from_slice(node.items());
                }
                Filled::New(node) => new.push(node),
            }
        }
        new
    }

    /// The new entries; `None` if nothing changes.
    fn entries(&mut self, entries: &[(Node, Node)], role: Role) -> Option<Vec<(Node, Node)>> {
        let mut new: Option<Vec<(Node, Node)>> = None;
        let mut renamed = false;
        for (index, (key, value)) in entries.iter().enumerate() {
            let new_key = self.key(key);
            renamed |= new_key.is_some();
            let name = new_key.as_ref().unwrap_or(key).text().unwrap_or_default();
            let filled = self.node(value, role.of_key(name));
            if new.is_none() && (new_key.is_some() || !matches!(filled, Filled::Same)) {
                new = Some(entries[..index].to_vec());
            }
            let Some(new) = &mut new else { continue };
            let key = new_key.unwrap_or_else(|| key.clone());
            match filled {
                Filled::Same => new.push((key, value.clone())),
                Filled::New(value) => new.push((key, value)),
                Filled::Gone => {}
            }
        }
        if renamed {
            self.report_repeated(new.as_deref().unwrap_or_default());
        }
        new
    }

    /// Keys differ as they are written; what placeholders made of them may not.
    fn report_repeated(&mut self, entries: &[(Node, Node)]) {
        let mut seen = HashMap::new();
        for (key, _) in entries {
            let Some(name) = key.text() else { continue };
            if let Some(first) = seen.insert(name, key.place()) {
                let diagnostic = Diagnostic::error(key.place(), format!("the key `{name}` comes twice"));
                self.diagnostics.push(diagnostic.related(first, "first here"));
            }
        }
    }

    /// A key with placeholders as text.
    fn key(&mut self, key: &Node) -> Option<Node> {
        let text = key.text().filter(|text| text.contains("${{"))?;
        match self.scalar(key, text, true, Role::Plain) {
            Filled::New(key) => Some(key),
            Filled::Same | Filled::Gone => None,
        }
    }

    fn scalar(&mut self, node: &Node, text: &str, always_text: bool, role: Role) -> Filled {
        if !text.contains("${{") {
            return Filled::Same;
        }
        if matches!(role, Role::Expression { .. }) {
            self.diagnostics.push(expression_already(node));
            return Filled::New(replaced(node, Kind::Bad));
        }
        match self.fill(node, text, always_text, role) {
            Ok(filled) => filled,
            Err(diagnostic) => {
                self.diagnostics.push(place::seen_through(node, *diagnostic));
                Filled::New(replaced(node, Kind::Bad))
            }
        }
    }

    fn fill(&self, node: &Node, text: &str, always_text: bool, role: Role) -> Result<Filled, Box<Diagnostic>> {
        let pieces = split(text).map_err(|error| Box::new(unterminated(error, node, text)))?;
        if let Some((expr, range)) = split::lone(&pieces)
            && !always_text
        {
            let value = self.eval(expr, range.start, node)?;
            return Ok(match value {
                Value::Null => Filled::Gone,
                // A pattern is text even if it looks like a number.
                Value::Number(_) | Value::Bool(_) if role == Role::Pattern => Filled::New(text_node(node, value.to_string())),
                value => Filled::New(Node { via: node.via, ..Node::from_value(&value, node.span) }),
            });
        }
        let mut filled = String::with_capacity(text.len());
        for piece in &pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Placeholder { expr, range } => {
                    let value = self.eval(expr, range.start, node)?;
                    let shown = shown(&value).map_err(|(message, hint)| {
                        let span = place::part(node, range).unwrap_or(node.span);
                        Box::new(Diagnostic::error(span, message).hint(hint))
                    })?;
                    if role == Role::Pattern {
                        filled.push_str(&pattern::literal(&shown));
                    } else {
                        filled.push_str(&shown);
                    }
                }
            }
        }
        Ok(Filled::New(text_node(node, filled)))
    }

    fn eval(&self, expr: &str, start: usize, node: &Node) -> Result<Value, Box<Diagnostic>> {
        let compiled = self.cache.get(expr);
        let value = compiled.as_ref().as_ref().map_err(Clone::clone).and_then(|expr| expr.eval(self.scope));
        value.map_err(|error| Box::new(place::mistake_in(&error, expr, start, node)))
    }
}

/// A node in the place of another.
fn replaced(node: &Node, kind: Kind) -> Node {
    Node { span: node.span, via: node.via, kind: Arc::new(kind) }
}

fn null() -> Kind {
    Kind::Scalar { text: "null".to_owned(), style: Style::Plain, tag: None }
}

/// Text in the place of a scalar. It never reads as anything but text.
fn text_node(node: &Node, text: String) -> Node {
    let style = match &*node.kind {
        Kind::Scalar { style: Style::Block, .. } => Style::Block,
        _ => Style::Quoted,
    };
    replaced(node, Kind::Scalar { text, style, tag: None })
}

/// A value inside a longer text.
fn shown(value: &Value) -> Result<Cow<'_, str>, (String, &'static str)> {
    match value {
        Value::String(text) => Ok(Cow::Borrowed(text)),
        Value::Bool(_) | Value::Number(_) => Ok(Cow::Owned(value.to_string())),
        Value::Null => Err(("null cannot be part of a text".to_owned(), "choose a text for it: x == null ? '' : x")),
        Value::Array(_) | Value::Object(_) => {
            Err((format!("{} cannot be part of a text", kind_of_json(value)), "join(list, ' ') makes one text of a list"))
        }
    }
}

fn unterminated(error: Unterminated, node: &Node, text: &str) -> Diagnostic {
    let span = place::part(node, &(error.at..text.len())).unwrap_or(node.span);
    Diagnostic::error(span, error.to_string()).hint("close it with `}}`, outside of quotes and braces")
}

fn expression_already(node: &Node) -> Diagnostic {
    let at = node.text().and_then(|text| text.find("${{")).unwrap_or_default();
    let span = place::part(node, &(at..at + 3)).unwrap_or(node.span);
    place::seen_through(node, Diagnostic::error(span, "this is an expression already").hint("write it without ${{ }}"))
}

#[cfg(test)]
mod tests;

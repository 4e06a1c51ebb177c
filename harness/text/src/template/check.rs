//! Checks of placeholders before any value is known.

use super::{Piece, expression_already, place, role::Role, split, unterminated};
use crate::{
    diagnostic::Diagnostic,
    expr::{Arithmetic, Expr, ExprError},
    yaml::{Kind, Node},
};
use std::collections::BTreeSet;

/// Compiles every placeholder of a tree and every expression of its `sanity` and `perf_variables`, and reports those that
/// do not compile, do not end, or read an unknown name. (`if` is compiled where it is decided; its names are
/// checked here.) Without known names, as for a base whose names others declare, every name will do.
pub fn check(node: &Node, known: Option<&BTreeSet<&str>>, diagnostics: &mut Vec<Diagnostic>) {
    let judging = known.map(|known| known.iter().copied().chain(["perf"]).collect::<BTreeSet<_>>());
    let judging = judging.as_ref();
    walk(node, Role::Check, &mut |node, text, role| match role {
        Role::Expression { .. } if text.contains("${{") => diagnostics.push(expression_already(node)),
        Role::Expression { judging: true } => {
            let mistakes = mistakes(text, Arithmetic::Doubles, judging);
            diagnostics.extend(mistakes.iter().map(|error| place::mistake(error, node)));
        }
        Role::Expression { judging: false } => {
            if Expr::compile(text, Arithmetic::Exact).is_ok() {
                let mistakes = mistakes(text, Arithmetic::Exact, known);
                diagnostics.extend(mistakes.iter().map(|error| place::mistake(error, node)));
            }
        }
        _ => match split(text) {
            Err(error) => diagnostics.push(place::seen_through(node, unterminated(error, node, text))),
            Ok(pieces) => {
                for piece in pieces {
                    if let Piece::Placeholder { expr, range } = piece {
                        let mistakes = mistakes(expr, Arithmetic::Exact, known);
                        diagnostics.extend(
                            mistakes
                                .iter()
                                .map(|error| place::seen_through(node, place::mistake_in(error, expr, range.start, node))),
                        );
                    }
                }
            }
        },
    });
}

fn mistakes(text: &str, arithmetic: Arithmetic, known: Option<&BTreeSet<&str>>) -> Vec<ExprError> {
    match Expr::compile(text, arithmetic) {
        Err(error) => vec![error],
        Ok(expr) => {
            let text_call = expr.text_call().filter(|_| arithmetic == Arithmetic::Exact);
            let unknown = known.map(|known| expr.unknown_names(known)).unwrap_or_default();
            unknown.into_iter().chain(text_call).collect()
        }
    }
}

/// The names that the placeholders of a tree read. A placeholder that does not compile reads none.
pub fn names(node: &Node) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    walk(node, Role::Check, &mut |_, text, role| {
        if matches!(role, Role::Expression { .. }) {
            return;
        }
        for piece in split(text).unwrap_or_default() {
            if let Piece::Placeholder { expr, .. } = piece
                && let Ok(expr) = Expr::compile(expr, Arithmetic::Exact)
            {
                names.extend(expr.names().iter().cloned());
            }
        }
    });
    names
}

/// The names that a check's expressions read: `assert`, `value`, `if`. One that does not compile reads none.
pub fn names_in_expressions(node: &Node) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    walk(node, Role::Check, &mut |_, text, role| {
        let arithmetic = match role {
            Role::Expression { judging: true } => Arithmetic::Doubles,
            Role::Expression { judging: false } => Arithmetic::Exact,
            _ => return,
        };
        names.extend(Expr::compile(text, arithmetic).iter().flat_map(|expr| expr.names().iter().cloned()));
    });
    names
}

/// Shows every scalar that has something to do with expressions, keys included.
fn walk(node: &Node, role: Role, visit: &mut dyn FnMut(&Node, &str, Role)) {
    match &*node.kind {
        Kind::Seq(items) => items.iter().for_each(|item| walk(item, role.of_item(), visit)),
        Kind::Map(entries) => {
            for (key, value) in entries {
                walk(key, Role::Plain, visit);
                walk(value, role.of_key(key.text().unwrap_or_default()), visit);
            }
        }
        Kind::Scalar { text, .. } if matches!(role, Role::Expression { .. }) || text.contains("${{") => visit(node, text, role),
        Kind::Scalar { .. } | Kind::Bad => {}
    }
}

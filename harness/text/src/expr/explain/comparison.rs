//! Finds why an expression is false: the first comparison that made it so.

use super::{CelValue, Context, IdedExpr, Kind, SourceInfo, elements, operators, tree, value};
use crate::{
    expr::functions,
    secret::{MASK, masked},
};
use cel::common::types::CelBool;
use std::ops::Range;

/// A comparison that decided, with the values of both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unequal {
    /// `"3.9" == "3.10"`: short, without secrets.
    pub values: String,
    /// The comparison's place in the expression's text; the whole text if nothing narrower is known.
    pub at: Range<usize>,
}

/// The first comparison within `expr`, which is `truth`, that has the same truth: a false one in what is false, or, behind `!`, a true
/// one in what is true.
pub(crate) fn first(expr: &IdedExpr, truth: bool, context: &Context<'_, '_>, source: (&str, &SourceInfo)) -> Option<Unequal> {
    let is = |part: &IdedExpr, truth| known(part, context) == Some(truth);
    match &expr.expr {
        Kind::Call(call) => match call.func_name.as_str() {
            operators::LOGICAL_NOT => first(&call.args[0], !truth, context, source),
            operators::LOGICAL_AND | operators::LOGICAL_OR => {
                call.args.iter().filter(|arg| is(arg, truth)).find_map(|arg| first(arg, truth, context, source))
            }
            operators::CONDITIONAL => first(&call.args[if is(&call.args[0], true) { 1 } else { 2 }], truth, context, source),
            name => compared(expr, functions::sign(name)?, &call.args, context, source),
        },
        Kind::Comprehension(loops) => {
            let (Kind::Call(step), None) = (&loops.loop_step.expr, &loops.iter_var2) else { return None };
            if !matches!(step.func_name.as_str(), operators::LOGICAL_AND | operators::LOGICAL_OR) {
                return None;
            }
            let range = CelValue::resolve_val(&loops.iter_range, context).ok()?;
            elements(range.as_ref()).find_map(|element| {
                let mut inner = context.new_inner_scope();
                inner.add_variable_as_val(&loops.iter_var, element);
                let is_meant = known(&step.args[1], &inner) == Some(truth);
                is_meant.then(|| first(&step.args[1], truth, &inner, source)).flatten()
            })
        }
        _ => None,
    }
}

fn known(part: &IdedExpr, context: &Context<'_, '_>) -> Option<bool> {
    let value = CelValue::resolve_val(part, context).ok()?;
    value.downcast_ref::<CelBool>().map(|truth| *truth.inner())
}

fn compared(
    whole: &IdedExpr,
    sign: &str,
    sides: &[IdedExpr],
    context: &Context<'_, '_>,
    (text, places): (&str, &SourceInfo),
) -> Option<Unequal> {
    let shown = |side: &IdedExpr| Some(value::shown(CelValue::resolve_val(side, context).ok()?.as_ref()));
    let (one, other) = (shown(sides.first()?)?, shown(sides.get(1)?)?);
    // What a pattern captures behind the name of a secret no longer looks like one.
    let values = if masked(text) == text { format!("{one} {sign} {other}") } else { format!("{MASK} {sign} {MASK}") };
    Some(Unequal { values, at: tree::range(whole, text, places) })
}

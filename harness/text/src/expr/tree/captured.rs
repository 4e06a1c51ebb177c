//! An operator that captured text may meet becomes a function of ours. Operators without captured text keep CEL's.

use super::{parts, wrap};
use crate::expr::{
    functions::{CHOSEN, Function, GLOBALS, NUMBER, OPTIONAL, TEXT, native, sign},
    scope::OF_OTHERS,
    value::Number,
};
use cel::{
    IdedExpr,
    common::ast::{CallExpr, EntryExpr, Expr as Kind, LiteralValue, SelectExpr, operators},
};

/// Variables of comprehensions, and whether they may hold captured text. The last one of a name counts.
type Bound = Vec<(String, bool)>;

/// Rewrites what may meet captured text. Returns whether the value itself may be captured or hold what is.
pub(crate) fn meet(expr: &mut IdedExpr, bound: &mut Bound) -> bool {
    match &mut expr.expr {
        Kind::Ident(name) => {
            let bound = bound.iter().rev().find(|(known, _)| known == name).map(|(_, captured)| *captured);
            bound.unwrap_or_else(|| OF_OTHERS.contains(&name.as_str()))
        }
        Kind::Select(select) => meet(&mut select.operand, bound) && !is_parameter_of_other(select, bound),
        Kind::List(list) => any(list.elements.iter_mut().map(|element| meet(element, bound))),
        Kind::Map(map) => any(map.entries.iter_mut().map(|entry| match &mut entry.expr {
            EntryExpr::MapEntry(entry) => {
                if meet(&mut entry.key, bound) {
                    wrap(&mut entry.key, TEXT);
                }
                meet(&mut entry.value, bound)
            }
            EntryExpr::StructField(field) => meet(&mut field.value, bound),
        })),
        Kind::Comprehension(loops) => {
            let outside = [meet(&mut loops.iter_range, bound), meet(&mut loops.accu_init, bound)];
            let before = bound.len();
            let names = [Some(&loops.iter_var), loops.iter_var2.as_ref(), Some(&loops.accu_var)];
            bound.extend(names.into_iter().flatten().map(|name| (name.clone(), any(outside))));
            let inside = [&mut loops.loop_cond, &mut loops.loop_step, &mut loops.result].map(|part| meet(part, bound));
            bound.truncate(before);
            any(outside) || any(inside)
        }
        Kind::Call(call) => {
            let target = call.target.as_mut().is_some_and(|target| meet(target, bound));
            let args: Vec<_> = call.args.iter_mut().map(|arg| meet(arg, bound)).collect();
            let captured = target || args.contains(&true);
            if captured {
                rewrite(call, &args);
            }
            captured || Function::named(&call.func_name).is_some_and(Function::captures)
        }
        Kind::Literal(_) | Kind::Struct(_) | Kind::Unspecified => false,
    }
}

/// Whether this is `fixtures.NAME.FIELD` with another field than `outputs`.
fn is_parameter_of_other(select: &SelectExpr, bound: &Bound) -> bool {
    let Kind::Select(case) = &select.operand.expr else { return false };
    let Kind::Ident(name) = &case.operand.expr else { return false };
    let is_of_other = OF_OTHERS.contains(&name.as_str()) && bound.iter().all(|(known, _)| known != name);
    is_of_other && select.field != "outputs"
}

fn any(values: impl IntoIterator<Item = bool>) -> bool {
    // All are looked at, for they are rewritten on the way.
    values.into_iter().fold(false, |any, value| any | value)
}

/// A call of which some arguments may be captured.
fn rewrite(call: &mut CallExpr, captured: &[bool]) {
    // The result under construction; CEL recognises its shape.
    let makes_result = call.args.iter().any(|arg| matches!(&arg.expr, Kind::Ident(name) if name == "@result"));
    let wrap_args = |call: &mut CallExpr, function: &str| {
        call.target.iter_mut().for_each(|target| wrap(target, function));
        call.args.iter_mut().zip(captured).filter(|(_, captured)| **captured).for_each(|(arg, _)| wrap(arg, function));
    };
    match call.func_name.as_str() {
        _ if makes_result => {}
        operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO | operators::NEGATE => {
            wrap_args(call, NUMBER);
        }
        operators::INDEX if captured[1] => CHOSEN.clone_into(&mut call.func_name),
        operators::OPT_INDEX if captured[1] => OPTIONAL.clone_into(&mut call.func_name),
        "int" | "double" | "uint" => wrap_args(call, NUMBER),
        "dyn" => {}
        name if GLOBALS.contains(&name) || matches!(name, "contains" | "endsWith" | "startsWith") => wrap_args(call, TEXT),
        name => {
            if let Some(ours) = native(name) {
                ours.clone_into(&mut call.func_name);
            }
        }
    }
}

/// What captured text probably is not meant to do: the part, what happens there, and what to write instead.
pub(crate) fn doubtful<'e>(expr: &'e IdedExpr, visit: &mut dyn FnMut(&'e IdedExpr, String, &'static str)) {
    if let Kind::Call(call) = &expr.expr
        && let [one, other] = call.args.as_slice()
    {
        let ours = |cels: &[&str]| cels.iter().any(|cels| native(cels) == Some(&call.func_name));
        let number = [one, other].into_iter().find_map(literal).filter(|text| Number::parse(text).is_some());
        let sign = sign(&call.func_name).unwrap_or_default();
        let orders = ours(&[operators::LESS, operators::LESS_EQUALS, operators::GREATER, operators::GREATER_EQUALS]);
        if let Some(number) = number.filter(|_| orders) {
            let message = format!("`{sign}` compares texts here, '10' is before '9': {number:?} is in quotes");
            visit(expr, message, "leave out the quotes to compare numbers");
        } else if ours(&[operators::EQUALS, operators::NOT_EQUALS]) && is_decimal(one) && is_decimal(other) {
            let message = format!("`{sign}` compares the texts of the log, 1.0 is not 1");
            visit(expr, message, "write double(..) around one of them to compare numbers");
        }
    }
    for part in parts(expr) {
        doubtful(part, visit);
    }
}

fn literal(expr: &IdedExpr) -> Option<&str> {
    match &expr.expr {
        Kind::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

/// Whether a pattern captures a number that may have a point, as far as its text shows.
fn is_decimal(expr: &IdedExpr) -> bool {
    let Kind::Call(call) = &expr.expr else { return false };
    let pattern = call.args.get(1).and_then(literal).unwrap_or_default();
    call.func_name == "extractsingle"
        && ["[0-9.", "[\\d.", "\\d+\\.", "\\d+[.]", "[0-9]+\\."].iter().any(|point| pattern.contains(point))
}

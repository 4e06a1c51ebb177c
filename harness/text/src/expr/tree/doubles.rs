//! The second form of an expression, which counts in doubles.

use super::{is_append, parts, wrap};
use crate::expr::functions::{CHOSEN, DOUBLE, Function, HELD, ITEMS, NUMBER, OPERATORS, OPTIONAL, PLUS, TEXT as PLAIN};
use cel::{
    IdedExpr,
    common::{
        ast::{CallExpr, EntryExpr, Expr as Kind, LiteralValue, operators},
        types::CelDouble,
    },
};

/// The form in doubles. Places in lists, keys of maps and both sides of `%` stay integers.
pub(crate) fn doubles(expr: &mut IdedExpr) {
    match &mut expr.expr {
        Kind::Literal(literal) => {
            if let Some(double) = literal_double(literal) {
                *literal = LiteralValue::Double(CelDouble::from(double));
            }
        }
        // The result under construction; CEL recognises its shape.
        Kind::Ident(name) if name.starts_with('@') => {}
        Kind::Ident(_) => wrap(expr, DOUBLE),
        Kind::Select(select) if select.test => {}
        Kind::Select(select) => {
            holder(&mut select.operand);
            wrap(expr, DOUBLE);
        }
        Kind::Call(call) => {
            if is_ours(call) {
                call.args.iter_mut().for_each(exact);
                return;
            }
            if is_operator(call) {
                call.args.iter_mut().for_each(doubles);
                return;
            }
            match call.func_name.as_str() {
                operators::MODULO => {}
                operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT | CHOSEN | OPTIONAL | NUMBER => {
                    holder(&mut call.args[0]);
                }
                ITEMS | PLAIN => return holder(&mut call.args[0]),
                PLUS => call.args.iter_mut().for_each(doubles),
                "int" | "uint" => call.args.iter_mut().for_each(holder),
                name => {
                    // Ours take integers for what they are; it is enough that their result is a double.
                    let part = if Function::named(name).is_some() { holder } else { doubles };
                    call.target.iter_mut().for_each(|target| holder(target));
                    call.args.iter_mut().for_each(part);
                }
            }
            wrap(expr, DOUBLE);
        }
        Kind::List(list) => list.elements.iter_mut().for_each(doubles),
        Kind::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    doubles(&mut entry.value);
                }
            }
        }
        Kind::Comprehension(c) => {
            let range = if compares_exactly(&c.loop_step) { exact } else { holder };
            range(&mut c.iter_range);
            for part in [&mut c.accu_init, &mut c.loop_cond, &mut c.loop_step, &mut c.result] {
                doubles(part);
            }
        }
        Kind::Struct(_) | Kind::Unspecified => {}
    }
}

/// What is only held to take something out of it: the taken thing becomes a double, not the whole.
fn holder(expr: &mut IdedExpr) {
    match &mut expr.expr {
        Kind::Ident(_) => {}
        Kind::Select(select) if !select.test => holder(&mut select.operand),
        Kind::Call(call) if matches!(call.func_name.as_str(), operators::INDEX | ITEMS | NUMBER) => holder(&mut call.args[0]),
        _ => doubles(expr),
    }
}

/// An operand of a comparison that captured text may meet: literals and variables are not rounded before it.
fn exact(expr: &mut IdedExpr) {
    match &mut expr.expr {
        Kind::Literal(_) => {}
        Kind::List(list) => list.elements.iter_mut().for_each(exact),
        Kind::Call(call) if call.func_name == operators::CONDITIONAL => {
            doubles(&mut call.args[0]);
            call.args[1..].iter_mut().for_each(exact);
        }
        Kind::Call(call) if call.func_name == HELD || is_append(call) => exact(&mut call.args[1]),
        Kind::Call(call) if [ITEMS, CHOSEN, operators::INDEX].contains(&&*call.func_name) => exact(&mut call.args[0]),
        Kind::Select(select) if !select.test => exact(&mut select.operand),
        Kind::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    exact(&mut entry.value);
                }
            }
        }
        Kind::Comprehension(c) => {
            exact(&mut c.iter_range);
            [&mut c.accu_init, &mut c.loop_cond, &mut c.result].into_iter().for_each(doubles);
            exact(&mut c.loop_step);
        }
        _ => {
            holder(expr);
            // What a function gives, the largest of a list for instance, is as exact.
            if let Kind::Call(call) = &mut expr.expr
                && call.func_name == DOUBLE
            {
                *expr = call.args.swap_remove(0);
            }
        }
    }
}

/// Whether captured text may be compared within.
fn compares_exactly(expr: &IdedExpr) -> bool {
    matches!(&expr.expr, Kind::Call(call) if is_ours(call)) || parts(expr).into_iter().any(compares_exactly)
}

/// A comparison of ours.
fn is_ours(call: &CallExpr) -> bool {
    call.func_name != PLUS && OPERATORS.iter().any(|operator| operator.ours == call.func_name)
}

/// Operators whose result is a double when their operands are, or no number at all.
fn is_operator(call: &CallExpr) -> bool {
    let name = call.func_name.as_str();
    name.starts_with(['_', '!', '-', '@'])
        && !matches!(name, operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT | operators::MODULO | ITEMS | DOUBLE)
        && !matches!(name, CHOSEN | OPTIONAL | PLAIN | NUMBER | PLUS)
}

#[expect(clippy::cast_precision_loss, reason = "this is what counting in doubles means")]
fn literal_double(literal: &LiteralValue) -> Option<f64> {
    match literal {
        LiteralValue::Int(int) => Some(*int.inner() as f64),
        LiteralValue::UInt(uint) => Some(*uint.inner() as f64),
        _ => None,
    }
}

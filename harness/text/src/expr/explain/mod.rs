//! Says in a user's words what is wrong with an expression: from the parser's reports and the evaluator's errors.

pub(crate) mod comparison;

use super::{
    ExprError, Scope,
    functions::{CHOSEN, DOUBLE, Function, ITEMS},
    scan, tree,
    value::{self, key_text},
};
use crate::diagnostic::MissingKey;
use crate::diagnostic::did_you_mean;
use cel::{
    Context, ExecutionError, IdedExpr, OverloadError, ParseErrors, Value as CelValue,
    common::{
        ast::{Expr as Kind, SourceInfo, operators},
        types::{CelBool, CelList, CelMap},
        value::Val,
    },
};
use std::ops::Range;

/// The first report of the parser. Later ones are mostly echoes of it.
pub(crate) fn parse(text: &str, errors: &ParseErrors) -> ExprError {
    let Some(error) = errors.errors.iter().min_by_key(|error| rank(&error.msg)) else {
        return ExprError::new("this is not an expression", 0..text.len());
    };
    let start = scan::offset(text, error.pos);
    let word = scan::word_at(text, start);
    let at = start..start + word.len();
    let message = error.msg.strip_prefix("Syntax error: ").unwrap_or(&error.msg);
    let error = if text.trim().is_empty() {
        ExprError::new("the expression is empty", 0..text.len())
    } else if unclosed_string(text, start) {
        ExprError::new("a text is not closed", start..text.len()).hint("end it with the quote that it began with")
    } else if message.starts_with("token recognition error") && word.starts_with(['\'', '"']) {
        ExprError::new("a text contains an unknown escape", at).hint(r"write a pattern as r'...': there a backslash is itself")
    } else if start >= text.trim_end().len() {
        let end = text.trim_end().len();
        ExprError::new("the expression ends too early", end..end)
    } else if let Some(name) = message.strip_prefix("reserved identifier: ") {
        let error = ExprError::new(format!("`{name}` is a reserved word"), at);
        if name == tree::RESERVED { error.hint(format!("it is read alone: ${{{{ {name} }}}}; else rename it")) } else { error }
    } else if message.starts_with("invalid int") || message.starts_with("invalid uint") || message.starts_with("invalid double") {
        ExprError::new(format!("`{word}` is too large for a number"), at)
            .hint("beyond 64 bits, quote it: captured text is compared with text as it is")
    } else if message.starts_with("argument must be a simple name") {
        ExprError::new("the first argument names the element: `xs.map(x, x * 2)`", at)
    } else if message.starts_with("invalid argument to has()") {
        ExprError::new("`has` needs a field: `has(a.b)`", at)
    } else {
        ExprError::new(format!("`{word}` does not belong here"), at)
    };
    match habit(word, text) {
        Some(hint) if error.hint.is_none() => error.hint(hint),
        _ => error,
    }
}

/// Reports of the lexer and the grammar come before those that follow from a half-built tree.
fn rank(message: &str) -> bool {
    message.starts_with("Incomplete")
}

/// Hints for syntax of other languages.
fn habit(word: &str, text: &str) -> Option<&'static str> {
    Some(match word {
        "=" => "`==` compares",
        "and" => "write `&&`",
        "or" => "write `||`",
        "if" | "else" => "write `condition ? one : other`",
        "#" => "put text in quotes",
        "*" if text.contains("**") => "there is no power operator: multiply",
        _ if text.trim_start().starts_with("not ") => "write `!`",
        _ => return None,
    })
}

/// Whether a string that opens at or before this byte swallows the rest of the text.
fn unclosed_string(text: &str, start: usize) -> bool {
    let Some(opening) = text[start..].chars().next().filter(|c| matches!(c, '\'' | '"')) else { return false };
    let last_code = scan::Code::new(text).last().map_or(0, |(at, _)| at + 1);
    last_code <= start && !text.trim_end()[start + 1..].ends_with(opening)
}

/// An evaluation that failed: its smallest part that fails by itself, and why.
pub(crate) fn run(
    root: &IdedExpr,
    error: ExecutionError,
    (text, places): (&str, &SourceInfo),
    context: &Context<'_, '_>,
    scope: &Scope,
) -> ExprError {
    let mut failing = FailingExpr { place: root, error, operand: None, map: None, then: Vec::new() };
    failing.descend(context);
    let range = tree::range(failing.place, text, places);
    failing.explain(range, scope)
}

/// The same without a look at its parts, where evaluating them again would take too long.
pub(crate) fn whole(root: &IdedExpr, error: ExecutionError, text: &str, scope: &Scope) -> ExprError {
    FailingExpr { place: root, error, operand: None, map: None, then: Vec::new() }.explain(0..text.len(), scope)
}

/// The smallest expression that fails, found by evaluating its parts again.
struct FailingExpr<'e> {
    place: &'e IdedExpr,
    error: ExecutionError,
    /// The keys of the map in which one was not found.
    operand: Option<Vec<String>>,
    /// Path of that map in the scope.
    map: Option<Vec<String>>,
    /// The keys that would be read from the value of this part, the next one last.
    then: Vec<String>,
}

impl<'e> FailingExpr<'e> {
    fn descend(&mut self, context: &Context<'_, '_>) {
        let parts = match &self.place.expr {
            Kind::Call(call) if call.func_name == operators::CONDITIONAL => match CelValue::resolve_val(&call.args[0], context) {
                Ok(condition) if condition.downcast_ref::<CelBool>().is_some_and(|c| *c.inner()) => vec![&call.args[1]],
                Ok(_) => vec![&call.args[2]],
                Err(_) => vec![&call.args[0]],
            },
            Kind::Comprehension(c) => vec![&c.iter_range],
            _ => tree::parts(self.place),
        };
        for part in parts {
            if let Err(error) = CelValue::resolve_val(part, context) {
                self.enter(part, error, context);
                return self.descend(context);
            }
        }
        match &self.place.expr {
            Kind::Comprehension(_) => self.descend_into_loop(context),
            Kind::Select(select) => self.remember_keys(&select.operand, context),
            Kind::Call(call) if [operators::INDEX, CHOSEN].contains(&&*call.func_name) => {
                self.remember_keys(&call.args[0], context);
            }
            _ => {}
        }
    }

    /// Continues with a failing part.
    fn enter(&mut self, part: &'e IdedExpr, error: ExecutionError, context: &Context<'_, '_>) {
        match taken(self.place, part, context) {
            Taken::Key(key) => self.then.push(key),
            Taken::Whole => {}
            Taken::Other => self.then.clear(),
        }
        (self.place, self.error) = (part, error);
    }

    /// The first element for which a comprehension's body fails.
    fn descend_into_loop(&mut self, context: &Context<'_, '_>) {
        let Kind::Comprehension(c) = &self.place.expr else { return };
        let (Ok(range), Ok(start)) =
            (CelValue::resolve_val(&c.iter_range, context), CelValue::resolve_val(&c.accu_init, context))
        else {
            return;
        };
        for element in elements(range.as_ref()).filter(|_| c.iter_var2.is_none()) {
            let mut inner = context.new_inner_scope();
            inner.add_variable_as_val(&c.accu_var, start.clone().into_owned());
            inner.add_variable_as_val(&c.iter_var, element);
            if let Err(error) = CelValue::resolve_val(&c.loop_step, &inner) {
                self.enter(&c.loop_step, error, &inner);
                return self.descend(&inner);
            }
        }
    }

    fn remember_keys(&mut self, operand: &IdedExpr, context: &Context<'_, '_>) {
        self.map = path(operand, context);
        let operand = CelValue::resolve_val(operand, context);
        let map = operand.as_ref().ok().and_then(|operand| operand.downcast_ref::<CelMap>());
        self.operand = map.map(|map| map.inner().keys().map(key_text).collect());
    }

    /// The missing key, if it belongs to a map of the scope.
    fn missing(&self, key: &str) -> Option<Box<MissingKey>> {
        let mut path = self.map.clone()?;
        path.push(key.to_owned());
        Some(Box::new(MissingKey { path, then: self.then.iter().rev().cloned().collect() }))
    }

    fn explain(self, at: Range<usize>, scope: &Scope) -> ExprError {
        match self.error {
            ExecutionError::UndeclaredReference(name) => match scope.missing(&name) {
                None => unknown_name(&name, at, scope.names()),
                Some(key) => {
                    let message = format!("`{name}` has no value: there is no `{}`", key.path.join("."));
                    ExprError { missing: Some(Box::new(key.clone())), ..ExprError::new(message, at) }
                }
            },
            ExecutionError::NoSuchKey(ref key) => {
                let missing = self.missing(key);
                let error = ExprError { missing, ..ExprError::new(format!("there is no key `{key}` here"), at) };
                let known = self.operand.unwrap_or_default();
                match did_you_mean(key, known.iter().map(String::as_str)) {
                    Some(hint) => error.hint(hint),
                    None if known.is_empty() => error,
                    None => error.hint(format!("it has {}; get(map, '{key}', default) does without", some(known))),
                }
            }
            ExecutionError::FunctionError { function, message } => {
                if !function.is_empty() && Function::named(&function).is_none() {
                    // CEL's own functions. The last line of a report on a regular expression says what is wrong.
                    let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
                    let reason = reason.trim_start_matches("string parse error: ");
                    return ExprError::new(format!("`{function}` cannot read this: {reason}"), at);
                }
                let (message, hint) = message.split_once('\n').map_or((message.as_str(), None), |(m, h)| (m, Some(h)));
                let message = if function.is_empty() { message.to_owned() } else { format!("{function} {message}") };
                ExprError { hint: hint.map(str::to_owned), ..ExprError::new(message, at) }
            }
            error => {
                let (message, hint) = plain(&error);
                ExprError { hint: hint.map(str::to_owned), ..ExprError::new(message, at) }
            }
        }
    }
}

/// What an expression takes of the value of one of its parts.
enum Taken {
    /// One key of it.
    Key(String),
    /// The value as it is.
    Whole,
    Other,
}

fn taken(whole: &IdedExpr, part: &IdedExpr, context: &Context<'_, '_>) -> Taken {
    match &whole.expr {
        Kind::Select(select) => Taken::Key(select.field.clone()),
        Kind::Call(call) if matches!(call.func_name.as_str(), DOUBLE | ITEMS) => Taken::Whole,
        Kind::Call(call) if call.func_name == operators::INDEX && std::ptr::eq(part, &raw const call.args[0]) => {
            key(&call.args[1], context).map_or(Taken::Other, Taken::Key)
        }
        _ => Taken::Other,
    }
}

/// The path in the scope of the map that an expression is: `partition.devices[kind]` with the value of `kind`.
fn path(expr: &IdedExpr, context: &Context<'_, '_>) -> Option<Vec<String>> {
    let deeper = |operand: &IdedExpr, key: String| {
        let mut path = path(operand, context)?;
        path.push(key);
        Some(path)
    };
    match &expr.expr {
        Kind::Ident(name) => Some(vec![name.trim_start_matches('.').to_owned()]),
        Kind::Select(select) if !select.test => deeper(&select.operand, select.field.clone()),
        Kind::Call(call) if matches!(call.func_name.as_str(), DOUBLE | ITEMS) => path(&call.args[0], context),
        Kind::Call(call) if call.func_name == operators::INDEX => deeper(&call.args[0], key(&call.args[1], context)?),
        _ => None,
    }
}

/// The key as text.
fn key(expr: &IdedExpr, context: &Context<'_, '_>) -> Option<String> {
    let key = CelValue::resolve_val(expr, context).ok()?;
    value::text_of(key.as_ref()).map(str::to_owned)
}

/// What a comprehension goes through: the elements of a list, the keys of a map.
fn elements<'v>(range: &(dyn Val + 'v)) -> impl Iterator<Item = Box<dyn Val + 'v>> {
    let list = range.downcast_ref::<CelList>().into_iter().flat_map(|list| list.inner().iter().cloned());
    let keys = range.downcast_ref::<CelMap>().into_iter().flat_map(|map| map.inner().keys());
    list.chain(keys.map(|key| value::text_val(key_text(key))))
}

/// The error for an unknown name.
pub(crate) fn unknown_name<'n>(name: &str, at: Range<usize>, known: impl IntoIterator<Item = &'n str>) -> ExprError {
    let error = ExprError::new(format!("there is no `{name}` here"), at);
    match (name, did_you_mean(name, known)) {
        ("True" | "False" | "None", _) => error.hint(format!("write `{}`", name.to_lowercase().replace("none", "null"))),
        (_, Some(hint)) => error.hint(hint),
        _ => error,
    }
}

/// Up to six names, sorted.
fn some(mut names: Vec<String>) -> String {
    names.sort();
    let more = names.len() > 6;
    names.truncate(6);
    format!("{}{}", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "), if more { ", .." } else { "" })
}

fn plain(error: &ExecutionError) -> (String, Option<&'static str>) {
    let kind = |value: &CelValue| {
        Box::<dyn Val>::try_from(value.clone()).map_or("an unknown thing", |value| value::kind(value.as_ref()))
    };
    match error {
        ExecutionError::UnsupportedBinaryOperator("rem", one, other) => (
            format!("`%` needs two integers, these are {} and {}", kind(one), kind(other)),
            Some("int(x) makes an integer of a double"),
        ),
        ExecutionError::UnsupportedBinaryOperator(operator, one, other) => {
            let sign = match *operator {
                "add" => "+",
                "sub" => "-",
                "mul" => "*",
                "div" => "/",
                other => other,
            };
            let text = matches!(one, CelValue::String(_)) || matches!(other, CelValue::String(_));
            let hint = (sign == "+" && text).then_some("string(x) makes text of a number");
            (format!("`{sign}` does not take {} and {}", kind(one), kind(other)), hint)
        }
        ExecutionError::NoSuchOverload(overload) => (no_overload(overload), None),
        ExecutionError::UnexpectedType { got, want } => {
            (format!("this is {}, where {} is needed", name_of(got), name_of(want)), None)
        }
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => ("division by zero".to_owned(), None),
        ExecutionError::Overflow(..) => {
            ("the result is too large for an integer".to_owned(), Some("count in doubles: write 1.0 instead of 1"))
        }
        ExecutionError::IndexOutOfBounds(index) => {
            let index = match index {
                CelValue::Int(index) => index.to_string(),
                CelValue::UInt(index) => index.to_string(),
                other => format!("{other:?}"),
            };
            (format!("the list has no element {index}"), Some("the first element is 0"))
        }
        ExecutionError::DuplicateKey(_) => ("a map has the same key twice".to_owned(), None),
        ExecutionError::UnsupportedKeyType(value) => (format!("{} cannot be a key", kind(value)), None),
        ExecutionError::UnsupportedIndex(..) => ("a place in a list must be an integer".to_owned(), None),
        other => (other.to_string().to_lowercase(), None),
    }
}

fn no_overload(overload: &OverloadError) -> String {
    let sign = overload.function().replace('_', "").replace("@in", "in");
    let types = overload.argument_types();
    let numbers = types.iter().all(|kind| matches!(kind.as_str(), "int" | "uint" | "double"));
    if numbers && matches!(sign.as_str(), "<" | "<=" | ">" | ">=") {
        return format!("`{sign}` compares NaN, which is neither less nor more than anything");
    }
    let kinds: Vec<_> = types.iter().map(|kind| name_of(kind)).collect();
    match kinds.as_slice() {
        [one, other] if one == "a list" && sign == "[]" => format!("an element is chosen by its number, this is {other}"),
        [one, _] if sign == "." || sign == "[]" => format!("{one} has no fields"),
        kinds => format!("`{sign}` does not take {}", kinds.join(" and ")),
    }
}

/// A type's name in CEL, in the words of messages.
fn name_of(kind: &str) -> String {
    match kind {
        "int" | "uint" => "an integer",
        "double" => "a double",
        "string" => "text",
        "bool" => "a boolean",
        "list" | "iterable" => "a list",
        "map" => "a map",
        "null_type" => "null",
        "stdout" => "the text",
        other => other,
    }
    .to_owned()
}

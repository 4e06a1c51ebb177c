//! Passes over the parsed expression: check it, prepare it, list its names, make it count in doubles.
//!
//! CEL's parser and evaluator are used as they are. What Muster adds is put into the tree between them:
//! - a call of one of our functions as a method becomes a plain call, and a function that reads the text is given the
//!   hidden name `@text` first;
//! - a lazy list stays lazy only as an argument of our functions, of `size` and of `[ ]`; everywhere else, and around
//!   whatever a comprehension goes through, `@items` makes a real list of it;
//! - every iteration of a comprehension, and everything that is put into a list or a map, is counted by the meter (`@step`, `@held`),
//!   what `+` makes is limited (`@sized`), and so is what `matches` searches;
//! - an operator that captured text may meet becomes a function of ours (`captured`);
//! - a form in doubles has double literals, and `@double` around what comes from outside: names, elements, functions.

pub(crate) mod captured;
mod doubles;

pub(crate) use doubles::doubles;

use super::{
    ExprError,
    effort::METER,
    functions::{FUNCTIONS, Function, GLOBALS, HELD, ITEMS, MACROS, MATCHES, METHODS, Reads, SIZED, STEP},
    scan,
    text::TEXT,
};
use crate::{diagnostic::did_you_mean, pattern::Pattern};
use cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr as Kind, LiteralValue, SourceInfo, operators},
};
use std::ops::Range;

/// The direct parts of an expression, in the order of evaluation.
pub(crate) fn parts(expr: &IdedExpr) -> Vec<&IdedExpr> {
    match &expr.expr {
        Kind::Call(call) => call.target.iter().map(AsRef::as_ref).chain(&call.args).collect(),
        Kind::List(list) => list.elements.iter().collect(),
        Kind::Select(select) => vec![&select.operand],
        Kind::Comprehension(c) => vec![&c.iter_range, &c.accu_init, &c.loop_cond, &c.loop_step, &c.result],
        Kind::Map(map) => map.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Kind::Struct(made) => made.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Kind::Ident(_) | Kind::Literal(_) | Kind::Unspecified => Vec::new(),
    }
}

fn entry_parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    }
}

/// How many levels an evaluation descends.
pub(crate) fn depth(expr: &IdedExpr) -> usize {
    1 + parts(expr).into_iter().map(depth).max().unwrap_or(0)
}

/// Where an expression was written, from the first byte of its first part to its closing bracket.
pub(crate) fn range(expr: &IdedExpr, text: &str, places: &SourceInfo) -> Range<usize> {
    let own = places.offset_for(expr.id).map_or(0..0, |(start, stop)| start as usize..(stop as usize + 1).min(text.len()));
    let is_open = |at: usize| matches!(text.as_bytes().get(at), Some(b'(' | b'[' | b'{'));
    let mut whole = match &expr.expr {
        // The place of a call is its bracket, of an operator its sign, of a selection its dot.
        Kind::Call(_) | Kind::Comprehension(_) | Kind::List(_) | Kind::Map(_) | Kind::Struct(_) if is_open(own.start) => {
            let bracketed = scan::bracketed(text, own.start);
            name_before(text, own.start)..bracketed.end
        }
        Kind::Select(select) => own.start..own.end + select.field.len(),
        _ => own,
    };
    for part in parts(expr) {
        if places.offset_for(part.id).is_some() {
            let part = range(part, text, places);
            whole = whole.start.min(part.start)..whole.end.max(part.end);
        }
    }
    balanced(text, whole.start.min(text.len())..whole.end.min(text.len()))
}

/// Widened to the brackets around its first and last part, which no tree records.
fn balanced(text: &str, range: Range<usize>) -> Range<usize> {
    let Range { mut start, mut end } = range.clone();
    let mut open = Vec::new();
    for (at, byte) in scan::Code::new(text).skip_while(|(at, _)| *at < range.start).take_while(|(at, _)| *at < range.end) {
        match byte {
            b'(' | b'[' | b'{' => open.push(at),
            // Closes what was opened before the range: that belongs to it too.
            b')' | b']' | b'}' if open.pop().is_none() => start = text[..start].rfind(['(', '[', '{']).unwrap_or(start),
            _ => {}
        }
    }
    if let Some(first) = open.first() {
        end = scan::bracketed(text, *first).end;
    }
    let floor = |at: usize| (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    floor(start)..floor(end)
}

/// The start of the name right before a bracket.
fn name_before(text: &str, at: usize) -> usize {
    let name = text.as_bytes()[..at].iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    at - name
}

/// Whether a name means one of CEL's types where nothing else has it.
pub(crate) fn is_type(name: &str) -> bool {
    matches!(name, "bool" | "bytes" | "double" | "int" | "list" | "map" | "null_type" | "string" | "type" | "uint")
}

/// Shows the names that come from outside: no comprehension's variables.
pub(crate) fn free_names<'e>(expr: &'e IdedExpr, bound: &mut Vec<&'e str>, visit: &mut dyn FnMut(&'e str, &'e IdedExpr)) {
    match &expr.expr {
        Kind::Ident(name) => {
            let name = name.trim_start_matches('.');
            if !name.starts_with('@') && !bound.contains(&name) {
                visit(name, expr);
            }
        }
        Kind::Comprehension(c) => {
            free_names(&c.iter_range, bound, visit);
            free_names(&c.accu_init, bound, visit);
            let before = bound.len();
            bound.push(&c.iter_var);
            bound.extend(c.iter_var2.as_deref());
            bound.push(&c.accu_var);
            for part in [&c.loop_cond, &c.loop_step, &c.result] {
                free_names(part, bound, visit);
            }
            bound.truncate(before);
        }
        // `optional.of(x)` is a function's name, though it parses as a method of something called `optional`.
        Kind::Call(call) if is_optional(call) => call.args.iter().for_each(|arg| free_names(arg, bound, visit)),
        _ => parts(expr).into_iter().for_each(|part| free_names(part, bound, visit)),
    }
}

fn is_optional(call: &CallExpr) -> bool {
    call.target.as_ref().is_some_and(|target| matches!(&target.expr, Kind::Ident(name) if name == "optional"))
}

/// The names of `a.b.c`, if the expression is nothing else.
pub(crate) fn path(expr: &IdedExpr) -> Option<Vec<String>> {
    match &expr.expr {
        Kind::Ident(name) => Some(vec![name.clone()]),
        Kind::Select(select) if !select.test => {
            let mut path = path(&select.operand)?;
            path.push(select.field.clone());
            Some(path)
        }
        _ => None,
    }
}

/// The first function that is sure to read the text, and its call.
pub(crate) fn text_call(expr: &IdedExpr) -> Option<(&'static str, &IdedExpr)> {
    if let Kind::Call(call) = &expr.expr
        && let Some(function) = Function::named(&call.func_name)
        && function.reads != Reads::Arguments
    {
        // The pattern follows the hidden argument.
        let is_pattern = matches!(call.args.get(1).map(|arg| &arg.expr), Some(Kind::Literal(LiteralValue::String(_))));
        if function.name != "count" || is_pattern {
            return Some((function.name, expr));
        }
    }
    parts(expr).into_iter().find_map(text_call)
}

/// Takes the place of the first digit of an integer between 2^63 and 2^64, which CEL's parser refuses: it reads a name, and the
/// text, which has a digit there, tells it from a name that was written.
pub(crate) const LONG: char = '_';

/// The place of an integer between 2^63 and 2^64 that the parser has refused.
pub(crate) fn long_literal(text: &str, errors: &cel::ParseErrors) -> Option<usize> {
    let error = errors.errors.iter().find(|error| error.msg.contains("invalid int"))?;
    let start = scan::offset(text, error.pos);
    scan::word_at(text, start).parse::<u64>().ok().map(|_| start)
}

/// The patterns that are written as texts and searched in the text of the scope.
pub(crate) fn patterns<'e>(expr: &'e IdedExpr, visit: &mut dyn FnMut(&'e IdedExpr, &'e str)) {
    if let Kind::Call(call) = &expr.expr
        && let [IdedExpr { expr: Kind::Ident(text), .. }, pattern, ..] = call.args.as_slice()
        && let Kind::Literal(LiteralValue::String(written)) = &pattern.expr
        && text == TEXT
        && call.func_name != "sections"
    {
        visit(pattern, written.inner());
    }
    for part in parts(expr) {
        patterns(part, visit);
    }
}

/// A word that CEL reserves and gives no meaning, and the name of a key: a parameter of this name sets it.
pub(crate) const RESERVED: &str = "namespace";

/// Where that word is, if it is the whole expression.
pub(crate) fn reserved_name(text: &str) -> Option<Range<usize>> {
    let start = text.len() - text.trim_start().len();
    (text.trim() == RESERVED).then(|| start..start + RESERVED.len())
}

/// Everything that the preparing pass needs to say where something is wrong.
pub(crate) struct Prepare<'a> {
    pub(crate) text: &'a str,
    pub(crate) places: &'a SourceInfo,
}

impl Prepare<'_> {
    /// Checks all calls and makes the expression fit for CEL's evaluator. `lazy`: the
    /// consumer of the value can read a lazy list.
    pub(crate) fn run(&self, expr: &mut IdedExpr, lazy: bool) -> Result<(), ExprError> {
        let whole = self.places.offset_for(expr.id);
        match &mut expr.expr {
            Kind::Call(call) => {
                let made = self.call(call, whole.map(|(start, _)| start as usize))?;
                let grows = can_grow(call);
                if made == Some(Reads::TextLazily) && !lazy {
                    wrap(expr, ITEMS);
                } else if grows {
                    wrap(expr, SIZED);
                }
            }
            Kind::Comprehension(c) => {
                self.run(&mut c.iter_range, true)?;
                wrap(&mut c.iter_range, ITEMS);
                for part in [&mut c.accu_init, &mut c.loop_cond, &mut c.loop_step, &mut c.result] {
                    self.run(part, false)?;
                }
                meter(c);
            }
            Kind::List(list) => {
                for element in &mut list.elements {
                    self.run(element, false)?;
                    hold(element);
                }
            }
            Kind::Map(map) => {
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                        self.run(&mut entry.key, false)?;
                        self.run(&mut entry.value, false)?;
                        hold(&mut entry.value);
                    }
                }
            }
            Kind::Select(select) => self.run(&mut select.operand, false)?,
            Kind::Struct(made) => {
                let message = format!("there is no type `{}` to make", made.type_name);
                return Err(ExprError::new(message, range(expr, self.text, self.places)).hint("write a map: {'key': value}"));
            }
            Kind::Ident(name) if name.starts_with(LONG) => {
                let digits = &self.text[range(expr, self.text, self.places)];
                if let Ok(uint) = digits.parse::<u64>() {
                    expr.expr = Kind::Literal(LiteralValue::UInt(uint.into()));
                }
            }
            Kind::Ident(_) | Kind::Literal(_) | Kind::Unspecified => {}
        }
        Ok(())
    }

    fn call(&self, call: &mut CallExpr, bracket: Option<usize>) -> Result<Option<Reads>, ExprError> {
        if let Some(function) = Function::named(&call.func_name) {
            if let Some(target) = call.target.take() {
                call.args.insert(0, *target);
            }
            if !function.takes(call.args.len()) {
                let at = self.name_at(bracket, function.name);
                let message = match call.args.len() {
                    0 => format!("`{}` needs an argument", function.name),
                    1 => format!("`{}` needs more than one argument", function.name),
                    many => format!("`{}` does not take {many} arguments", function.name),
                };
                return Err(ExprError::new(message, at).hint(format!("write {}", function.usage)));
            }
            call.args.iter_mut().try_for_each(|arg| self.run(arg, true))?;
            if function.reads != Reads::Arguments {
                if function.name != "sections" {
                    self.pattern(&call.args[0])?;
                }
                call.args.insert(0, IdedExpr { id: call.args[0].id, expr: Kind::Ident(TEXT.to_owned()) });
            }
            return Ok(Some(function.reads));
        }
        let name = call.func_name.as_str();
        let known = if call.target.is_some() { METHODS } else { GLOBALS };
        if !name.starts_with(['_', '!', '-', '@']) && !known.contains(&name) {
            return Err(self.unknown_function(call, bracket));
        }
        let reads_lazy_lists = matches!(name, "size" | operators::INDEX);
        let searches = name == "matches" && call.args.len() + usize::from(call.target.is_some()) == 2;
        if let Some(target) = &mut call.target {
            self.run(target, reads_lazy_lists)?;
        }
        for (n, arg) in call.args.iter_mut().enumerate() {
            self.run(arg, reads_lazy_lists && n == 0)?;
        }
        if searches {
            let text = call.target.take().map(|text| *text);
            call.args.splice(0..0, text);
            MATCHES.clone_into(&mut call.func_name);
            call.args.insert(0, meter_at(call.args[0].id));
        }
        Ok(None)
    }

    /// A pattern that is written as text is compiled now: its mistakes belong to the file.
    fn pattern(&self, arg: &IdedExpr) -> Result<(), ExprError> {
        let Kind::Literal(LiteralValue::String(pattern)) = &arg.expr else { return Ok(()) };
        let Err(error) = Pattern::compile(pattern.inner()) else { return Ok(()) };
        let literal = range(arg, self.text, self.places);
        // Only a pattern without escapes is in the text as it is.
        let at = match (self.text[literal.clone()].find(pattern.inner()), error.at) {
            (Some(offset), Some(at)) => literal.start + offset + at.start..literal.start + offset + at.end,
            _ => literal,
        };
        Err(ExprError { hint: error.hint, ..ExprError::new(error.message, at) })
    }

    fn unknown_function(&self, call: &CallExpr, bracket: Option<usize>) -> ExprError {
        let name = call.func_name.as_str();
        let wrong = |message: String| ExprError::new(message, self.name_at(bracket, name));
        if let Some((_, usage)) = MACROS.iter().find(|(known, _)| *known == name) {
            return wrong(format!("`{name}` is not written like this")).hint(format!("write {usage}"));
        }
        if METHODS.contains(&name) {
            return wrong(format!("`{name}` is a method")).hint(format!("write x.{name}(..)"));
        }
        if GLOBALS.contains(&name) {
            return wrong(format!("`{name}` is not a method")).hint(format!("write {name}(x)"));
        }
        let ours = FUNCTIONS.iter().map(|function| function.name);
        let standard = GLOBALS.iter().chain(METHODS).copied().chain(MACROS.iter().map(|(name, _)| *name));
        let error = wrong(format!("there is no function `{name}`"));
        let hint = did_you_mean(name, ours.chain(standard));
        ExprError { hint, ..error }
    }

    /// The name before a call's bracket.
    fn name_at(&self, bracket: Option<usize>, name: &str) -> Range<usize> {
        let end = bracket.unwrap_or_default();
        let start = self.text.get(..end).and_then(|before| before.rfind(name)).unwrap_or(end);
        start..(start + name.len()).min(self.text.len())
    }
}

/// Puts a call of a hidden function around an expression, at its place.
fn wrap(expr: &mut IdedExpr, function: &str) {
    let inner = std::mem::take(expr);
    expr.id = inner.id;
    expr.expr = Kind::Call(CallExpr { func_name: function.to_owned(), target: None, args: vec![inner] });
}

/// Puts a call that is given the meter around an expression.
fn wrap_metered(expr: &mut IdedExpr, function: &str) {
    let id = expr.id;
    wrap(expr, function);
    if let Kind::Call(call) = &mut expr.expr {
        call.args.insert(0, meter_at(id));
    }
}

fn meter_at(id: u64) -> IdedExpr {
    IdedExpr { id, expr: Kind::Ident(METER.to_owned()) }
}

/// Counts what is put into a list or a map.
fn hold(part: &mut IdedExpr) {
    if !matches!(part.expr, Kind::Literal(_)) {
        wrap_metered(part, HELD);
    }
}

/// Counts the iterations of a comprehension. An error of its condition ends it at once, one of its step may be put off; but CEL
/// builds the lists of `map` and `filter` in place only while their condition is a literal: there the guard is metered, and
/// what goes into the list is anyway.
fn meter(loops: &mut ComprehensionExpr) {
    let appends = |step: &IdedExpr| matches!(&step.expr, Kind::Call(call) if is_append(call));
    let in_place = matches!(loops.loop_cond.expr, Kind::Literal(_));
    match &mut loops.loop_step.expr {
        Kind::Call(call) if in_place && is_append(call) => {}
        Kind::Call(call) if in_place && call.func_name == operators::CONDITIONAL && call.args.get(1).is_some_and(appends) => {
            wrap_metered(&mut call.args[0], STEP);
        }
        _ => wrap_metered(&mut loops.loop_cond, STEP),
    }
}

/// `@result + [x]`
fn is_append(call: &CallExpr) -> bool {
    call.func_name == operators::ADD && matches!(call.args.get(1).map(|arg| &arg.expr), Some(Kind::List(_)))
}

/// Whether a call may make a text or a list that is longer than its operands.
fn can_grow(call: &CallExpr) -> bool {
    let is_number = |arg: &IdedExpr| match &arg.expr {
        Kind::Literal(literal) => !matches!(literal, LiteralValue::String(_) | LiteralValue::Bytes(_)),
        // The result under construction, which grows by what is counted.
        Kind::Ident(name) => name.starts_with('@'),
        _ => false,
    };
    call.func_name == operators::ADD && call.target.is_none() && !call.args.iter().any(is_number)
}

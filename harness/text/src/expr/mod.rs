//! CEL, the only expression language: placeholders, `assert`, `value`, `-E`, `when`.
//!
//! An [`Expr`] is compiled once and evaluated in many [`Scope`]s, from many threads. Integers are exact. An expression
//! that mixes them with doubles, which CEL refuses, is evaluated in doubles instead, as [`Arithmetic::Doubles`] asks
//! for from the start. The functions beside CEL's own are [`FUNCTIONS`].
//!
//! ```text
//! text -parse-> tree -prepare-> tree (-doubles-> tree)     evaluate(tree, Scope) -> Value, bool or f64
//! ```
//! Not here: which names a scope holds (`check`, `site`), and where placeholders are (`template`).

mod certain;
mod effort;
mod explain;
mod found;
mod functions;
pub(crate) mod scan;
mod scope;
mod text;
mod tree;
pub(crate) mod value;

pub use effort::{Clock, Effort};
pub use explain::comparison::Unequal;
pub use functions::{FUNCTIONS, Function};
pub use scope::Scope;
pub use text::Text;

use crate::{Value, diagnostic::MissingKey, pattern};
use cel::{
    Context, ExecutionError, IdedExpr, Value as CelValue,
    common::{
        ast::{Expr as Kind, SourceInfo},
        types::{CelBool, CelNull},
        value::{CowVal, Val},
    },
    context::VariableResolver,
};
use effort::Meter;
use std::{collections::BTreeSet, ops::Range, sync::OnceLock, thread};
use value::Number;

/// The kinds of arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// Integers stay integers, `7 / 2` is 3; in doubles only where an expression mixes both. For placeholders.
    Exact,
    /// Everything is a double, `7 / 2` is 3.5. For `assert` and `value`.
    Doubles,
}

/// A mistake in an expression, or a failure of its evaluation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExprError {
    /// A lower-case fragment in one line.
    pub message: String,
    pub hint: Option<String>,
    /// The part that is wrong, in bytes of the expression's text.
    pub at: Range<usize>,
    /// The key that the evaluation needed and that a map of the scope does not have, if that is what went wrong.
    pub missing: Option<Box<MissingKey>>,
}

impl ExprError {
    fn new(message: impl Into<String>, at: Range<usize>) -> Self {
        Self { message: message.into(), hint: None, at, missing: None }
    }

    #[must_use]
    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

#[derive(Debug)]
pub struct Expr {
    arithmetic: Arithmetic,
    names: Vec<String>,
    /// `a.b.c` and nothing else.
    path: Option<Vec<String>>,
    exact: IdedExpr,
    doubles: OnceLock<IdedExpr>,
    depth: usize,
    /// The text, and where in it each part of the tree was written.
    places: SourceInfo,
}

/// Longer expressions are programs, and belong into the script.
const MAX_BYTES: usize = 16 << 10;
/// Brackets within brackets.
const MAX_NESTING: usize = 64;
/// Operators on the results of operators.
const MAX_DEPTH: usize = 256;

impl Expr {
    /// Reads an expression and checks what can be checked without values: the grammar, the functions and how many
    /// arguments they take, the patterns.
    ///
    /// # Errors
    /// The first mistake.
    pub fn compile(text: &str, arithmetic: Arithmetic) -> Result<Self, ExprError> {
        let too =
            |what: &str| Err(ExprError::new(format!("the expression is {what}"), 0..text.len()).hint("do this in the script"));
        if text.len() > MAX_BYTES {
            return too("longer than 16 KiB");
        }
        let nesting = scan::nesting(text);
        if nesting > MAX_NESTING {
            return too("nested more than 64 levels deep");
        }
        // A level of the parser takes 10 KiB of stack, in a debug build 170.
        let easy = nesting <= 4 && text.len() <= 256;
        let compiled = with_stack(easy, || {
            let mut parsed = text.to_owned();
            let name = tree::reserved_name(text);
            if let Some(at) = &name {
                // A name of the same length, so that all places stay right.
                parsed.replace_range(at.clone(), &"_".repeat(at.len()));
            }
            let (mut tree, mut places) = loop {
                match functions::env().parser().parse_with_source_info(&parsed) {
                    Ok(done) => break done,
                    Err(errors) => match tree::long_literal(&parsed, &errors) {
                        Some(at) => parsed.replace_range(at..=at, tree::LONG.encode_utf8(&mut [0; 4])),
                        None => return Err(explain::parse(text, &errors)),
                    },
                }
            };
            text.clone_into(&mut places.source);
            if let (Some(at), Kind::Ident(ident)) = (name, &mut tree.expr) {
                text[at].clone_into(ident);
            }
            let depth = tree::depth(&tree);
            if depth > MAX_DEPTH {
                return Err(ExprError::new("the expression is a chain of more than 256 operators", 0..text.len()));
            }
            tree::Prepare { text, places: &places }.run(&mut tree, false)?;
            tree::captured::meet(&mut tree, &mut Vec::new());
            let depth = tree::depth(&tree);
            Ok((tree, places, depth))
        });
        let (exact, places, depth) = compiled?;
        let mut names = Vec::new();
        tree::free_names(&exact, &mut Vec::new(), &mut |name, _| {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        });
        let path = tree::path(&exact);
        Ok(Self { arithmetic, names, path, exact, doubles: OnceLock::new(), depth, places })
    }

    pub fn text(&self) -> &str {
        &self.places.source
    }

    /// The names that are read from a scope, in the order of their first place. Not those a comprehension makes. The
    /// names of CEL's types are among them, for a scope may give them another meaning.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Every name that is not known, once, with the nearest known one as a hint.
    pub fn unknown_names(&self, known: &BTreeSet<&str>) -> Vec<ExprError> {
        let mut seen = BTreeSet::new();
        let mut errors = Vec::new();
        tree::free_names(&self.exact, &mut Vec::new(), &mut |name, place| {
            if !known.contains(name) && !tree::is_type(name) && seen.insert(name) {
                let at = tree::range(place, self.text(), &self.places);
                errors.push(explain::unknown_name(name, at, known.iter().copied()));
            }
        });
        errors
    }

    /// The first call that reads the text for certain, as the error that it is where there is none. (`count` may be
    /// given a list.)
    pub fn text_call(&self) -> Option<ExprError> {
        let (function, place) = tree::text_call(&self.exact)?;
        let message = format!("{function} {}", functions::NO_TEXT);
        Some(ExprError::new(message, tree::range(place, self.text(), &self.places)))
    }

    /// The patterns that need a carriage return, which no text has.
    pub fn needs_return(&self) -> Vec<ExprError> {
        let mut found = Vec::new();
        tree::patterns(&self.exact, &mut |place, pattern| {
            if pattern::needs_return(pattern) {
                found.push(ExprError::new(pattern::NEVER_MATCHES, tree::range(place, self.text(), &self.places)));
            }
        });
        found
    }

    /// Returns the uses of captured text in this expression that are probably not meant.
    pub fn doubtful(&self) -> Vec<ExprError> {
        let mut found = Vec::new();
        tree::captured::doubtful(&self.exact, &mut |part, message, hint| {
            found.push(ExprError::new(message, tree::range(part, self.text(), &self.places)).hint(hint));
        });
        found
    }

    /// The value.
    ///
    /// # Errors
    /// Whatever goes wrong; NaN and infinities, which no file format of ours can hold.
    pub fn eval(&self, scope: &Scope) -> Result<Value, ExprError> {
        if let (Arithmetic::Exact, Some(value)) = (self.arithmetic, self.look_up(scope)) {
            return Ok(value.clone());
        }
        self.run(scope, |value| value::to_json(value).map_err(|what| (format!("the result is {what}"), None)))
    }

    /// The truth, for `assert`, `if` and `-E`.
    ///
    /// # Errors
    /// Whatever goes wrong; a result that is neither true nor false.
    pub fn eval_bool(&self, scope: &Scope) -> Result<bool, ExprError> {
        self.run(scope, |value| match value.downcast_ref::<CelBool>() {
            Some(bool) => Ok(*bool.inner()),
            None => Err((format!("the result is {}, not true or false", value::kind(value)), Some("compare it with something"))),
        })
    }

    /// The number, for `value`: NaN and infinities too, and text that shows a number.
    ///
    /// # Errors
    /// Whatever goes wrong; a result that is not a number.
    pub fn eval_f64(&self, scope: &Scope) -> Result<f64, ExprError> {
        self.run(scope, |value| {
            let shown = value::text_of(value).and_then(Number::parse);
            let number = Number::of(value).or(shown).map(Number::as_f64);
            number.ok_or_else(|| match value.downcast_ref::<text::Captured>() {
                Some(captured) => (format!("the result is {}, not a number", value::quoted(captured.text())), None),
                None => (format!("the result is {}, not a number", value::kind(value)), None),
            })
        })
    }

    /// Returns why an expression is false: its first false comparison, with both values.
    pub fn why_false(&self, scope: &Scope) -> Option<Unequal> {
        let found = self.with_context(scope, scope.text(), |tree, context| {
            explain::comparison::first(tree, false, context, (self.text(), &self.places))
        });
        found.ok().flatten()
    }

    /// The value of `a.b.c` as it is in the scope: exact, and its maps in their order.
    fn look_up<'s>(&self, scope: &'s Scope) -> Option<&'s Value> {
        let (name, fields) = self.path.as_ref()?.split_first()?;
        fields.iter().try_fold(scope.get(name)?, |value, field| value.as_object()?.get(field))
    }

    /// Evaluates and hands the result over, in exact arithmetic first if that is asked for.
    fn run<T: Send>(
        &self,
        scope: &Scope,
        take: impl Fn(&dyn Val) -> Result<T, (String, Option<&'static str>)> + Sync,
    ) -> Result<T, ExprError> {
        // A level of the evaluator takes 3 KiB of stack, in a debug build 40.
        with_stack(self.depth <= 16, || {
            let seen = Seen { scope, meter: OnceLock::new(), text: scope.text() };
            let mut context = Context::with_env(functions::env());
            context.set_variable_resolver(&seen);
            let evaluate = |tree| (tree, CelValue::resolve_val(tree, &context));
            let (tree, result) = match self.arithmetic {
                Arithmetic::Doubles => evaluate(self.in_doubles()),
                Arithmetic::Exact => match evaluate(&self.exact) {
                    (_, Err(error)) if mixes(&error) => evaluate(self.in_doubles()),
                    done => done,
                },
            };
            let whole = || 0..self.text().len();
            let stopped =
                || seen.stopped().map(|why| ExprError::new(why, whole()).hint("do it in the script, or with fewer elements"));
            if let Some(stopped) = stopped() {
                return Err(stopped);
            }
            match result {
                Ok(value) => take(value.as_ref())
                    .map_err(|(message, hint)| ExprError { hint: hint.map(str::to_owned), ..ExprError::new(message, whole()) }),
                // Its parts are evaluated again.
                Err(error) => {
                    let explained = explain::run(tree, error.clone(), (self.text(), &self.places), &context, scope);
                    Err(if stopped().is_some() { explain::whole(tree, error, self.text(), scope) } else { explained })
                }
            }
        })
    }

    /// The key that an evaluation needs whatever the text and the figures will be, and that is missing in the scope.
    /// `may_be_missing` tells which names may refer to what is missing.
    pub fn certainly_missing(&self, scope: &Scope, may_be_missing: &(dyn Fn(&str) -> bool + Sync)) -> Option<MissingKey> {
        if !self.names.iter().any(|name| may_be_missing(name)) {
            return None;
        }
        let looked = self.with_context(scope, None, |tree, context| {
            certain::Search { source: (self.text(), &self.places), context, scope, may_be_missing }.missing(tree)
        });
        looked.ok().flatten()
    }

    /// Looks at the form that is evaluated first.
    fn with_context<T: Send>(
        &self,
        scope: &Scope,
        text: Option<&Text>,
        look: impl FnOnce(&IdedExpr, &Context<'_, '_>) -> T + Send,
    ) -> Result<T, ExprError> {
        with_stack(self.depth <= 16, || {
            let seen = Seen { scope, meter: OnceLock::new(), text };
            let mut context = Context::with_env(functions::env());
            context.set_variable_resolver(&seen);
            let tree = match self.arithmetic {
                Arithmetic::Doubles => self.in_doubles(),
                Arithmetic::Exact => &self.exact,
            };
            Ok(look(tree, &context))
        })
    }

    fn in_doubles(&self) -> &IdedExpr {
        self.doubles.get_or_init(|| {
            let mut tree = self.exact.clone();
            tree::doubles(&mut tree);
            tree
        })
    }
}

/// Whether an evaluation failed because CEL does not mix integers with doubles.
fn mixes(error: &ExecutionError) -> bool {
    let number = |value: &CelValue| match value {
        CelValue::Int(_) | CelValue::UInt(_) => Some(true),
        CelValue::Float(_) => Some(false),
        _ => None,
    };
    match error {
        ExecutionError::UnsupportedBinaryOperator(_, one, other) => {
            matches!((number(one), number(other)), (Some(one), Some(other)) if one != other)
        }
        _ => false,
    }
}

/// Runs at once, or on a thread with stack for whatever the limits above let through.
fn with_stack<T: Send>(at_once: bool, work: impl FnOnce() -> Result<T, ExprError> + Send) -> Result<T, ExprError> {
    const STACK: usize = 64 << 20;
    if at_once {
        return work();
    }
    let done = thread::scope(|scope| {
        thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).map(thread::ScopedJoinHandle::join)
    });
    match done {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => Err(ExprError::new(format!("no thread for a deep expression: {error}"), 0..0)),
    }
}

/// The names of a scope, for the evaluator.
struct Seen<'s> {
    scope: &'s Scope,
    /// Created on first use.
    meter: OnceLock<Meter>,
    text: Option<&'s Text>,
}

impl Seen<'_> {
    fn stopped(&self) -> Option<String> {
        self.meter.get().and_then(Meter::stopped).map(str::to_owned)
    }
}

impl VariableResolver for Seen<'_> {
    fn resolve<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        const NOTHING: &CelNull = &CelNull;
        // `a.b.c` is asked for as one name first, and the scope has no such names.
        if name.contains('.') {
            return None;
        }
        if name == text::TEXT {
            return Some(CowVal::Borrowed(self.text.map_or(NOTHING as &dyn Val, |text| text)));
        }
        if name == effort::METER {
            return Some(CowVal::Borrowed(self.meter.get_or_init(|| Meter::begin(self.scope.effort()))));
        }
        self.scope.val(name).map(CowVal::Borrowed)
    }
}

#[cfg(test)]
mod tests;

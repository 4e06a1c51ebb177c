//! Finds what an evaluation needs for certain, before there is a text: the missing key without which no text could be judged.
//!
//! Parts that read neither the text nor figures are evaluated. Around the others only the shape of the expression is known:
//! a branch that may not be taken, an operand that may not decide and the body of a loop are needed only perhaps.

use super::{
    Scope, explain,
    functions::{Function, Reads},
    text::TEXT,
    tree,
};
use crate::diagnostic::MissingKey;
use cel::{
    Context, IdedExpr, Value as CelValue,
    common::{
        ast::{CallExpr, Expr as Kind, SourceInfo, operators},
        types::CelBool,
    },
};

/// The name of the measured figures, which are known no sooner than the text.
const FIGURES: &str = "perf";

pub(super) struct Search<'s, 'p, 'v> {
    pub source: (&'s str, &'s SourceInfo),
    pub context: &'s Context<'p, 'v>,
    pub scope: &'s Scope,
    /// Names that may refer to a missing value.
    pub may_be_missing: &'s (dyn Fn(&str) -> bool + Sync),
}

/// What is known of an operand of `&&` and `||`, or of a condition.
enum Known {
    True,
    False,
    /// Needs the text.
    Later,
    Neither,
}

impl Search<'_, '_, '_> {
    /// The missing key that every evaluation of this part needs.
    pub(super) fn missing(&self, part: &IdedExpr) -> Option<MissingKey> {
        if !reads(part, &|name| (self.may_be_missing)(name)) {
            return None;
        }
        if !waits(part) {
            let error = CelValue::resolve_val(part, self.context).err()?;
            return explain::run(part, error, self.source, self.context, self.scope).missing.map(|missing| *missing);
        }
        match &part.expr {
            Kind::Call(call) => match call.func_name.as_str() {
                operators::CONDITIONAL => self.in_branches(call),
                operators::LOGICAL_AND => self.in_operands(call, |known| matches!(known, Known::False)),
                operators::LOGICAL_OR => self.in_operands(call, |known| matches!(known, Known::True)),
                _ => tree::parts(part).into_iter().find_map(|part| self.missing(part)),
            },
            Kind::Comprehension(loops) => self.missing(&loops.iter_range),
            _ => tree::parts(part).into_iter().find_map(|part| self.missing(part)),
        }
    }

    fn in_branches(&self, call: &CallExpr) -> Option<MissingKey> {
        let [condition, one, other] = call.args.as_slice() else { return None };
        self.missing(condition).or_else(|| match self.known(condition) {
            Known::True => self.missing(one),
            Known::False => self.missing(other),
            Known::Later => self.missing(one).filter(|_| self.missing(other).is_some()),
            Known::Neither => None,
        })
    }

    /// CEL takes the operands of `&&` and `||` in any order: an error in one is none where the other decides.
    fn in_operands(&self, call: &CallExpr, decides: impl Fn(&Known) -> bool) -> Option<MissingKey> {
        let [one, other] = call.args.as_slice() else { return None };
        let known = [self.known(one), self.known(other)];
        if known.iter().any(decides) {
            return None;
        }
        match (known, self.missing(one), self.missing(other)) {
            (_, Some(missing), Some(_)) => Some(missing),
            ([_, Known::True | Known::False], missing, None) | ([Known::True | Known::False, _], None, missing) => missing,
            _ => None,
        }
    }

    fn known(&self, part: &IdedExpr) -> Known {
        if waits(part) {
            return Known::Later;
        }
        match CelValue::resolve_val(part, self.context).ok().and_then(|value| value.downcast_ref::<CelBool>().map(|b| *b.inner()))
        {
            Some(true) => Known::True,
            Some(false) => Known::False,
            None => Known::Neither,
        }
    }
}

/// Whether a part cannot be evaluated yet.
fn waits(part: &IdedExpr) -> bool {
    reads_text(part) || reads(part, &|name| name == FIGURES)
}

/// Whether a part reads such a name.
fn reads(part: &IdedExpr, is_meant: &dyn Fn(&str) -> bool) -> bool {
    let mut reads = false;
    tree::free_names(part, &mut Vec::new(), &mut |name, _| reads |= is_meant(name));
    reads
}

/// Whether a part calls a function of the text.
fn reads_text(part: &IdedExpr) -> bool {
    let reads = match &part.expr {
        Kind::Call(call) => Function::named(&call.func_name).is_some_and(|function| function.reads != Reads::Arguments),
        Kind::Ident(name) => name == TEXT,
        _ => false,
    };
    reads || tree::parts(part).into_iter().any(reads_text)
}

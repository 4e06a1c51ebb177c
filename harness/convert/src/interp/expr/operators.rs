//! Operators: folded where both sides are constants, an expression where Muster computes.

use crate::interp::{Interp, Made, Stop};
use crate::{
    python::{Binary, Compare, Expr, Unary},
    value::{
        Piece, Thing, Value,
        cel::{Cel, Kind, Prec},
        cond::{Cond, Subject},
        judge::{Form, Judge},
    },
};

/// Text and lists beyond this are no settings of a check.
const LONGEST: usize = 64 * 1024;

impl Interp<'_> {
    pub(crate) fn unary(&mut self, op: Unary, operand: &Value, line: u32) -> Made {
        match (op, operand) {
            (Unary::Not, Value::Judge(judge)) => {
                let cel = Cel::new(format!("!{}", judge.cel.at(Prec::Atom)), Prec::Unary, Kind::Bool);
                Ok(Value::Judge(Judge::plain(cel)))
            }
            (Unary::Not, value) => Ok(tested(self.truth(value, line)?.negated())),
            (Unary::Plus, value @ (Value::Int(_) | Value::Float(_))) => Ok(value.clone()),
            (Unary::Minus, Value::Int(value)) => {
                value.checked_neg().map(Value::Int).ok_or_else(|| Stop::new(line, "the number is too large"))
            }
            (Unary::Minus, Value::Float(value)) => Ok(Value::Float(-value)),
            (Unary::Minus, Value::Judge(judge)) => {
                Ok(Value::Judge(Judge::plain(Cel::new(format!("-{}", judge.cel.at(Prec::Atom)), Prec::Unary, Kind::Float))))
            }
            (Unary::Minus, value) => {
                let cel = self.cel(value, line)?;
                Ok(Value::Cel(Cel::new(format!("-{}", cel.at(Prec::Atom)), Prec::Unary, cel.kind)))
            }
            _ => Err(Stop::new(line, "this operator has no counterpart")),
        }
    }

    pub(crate) fn binary(&mut self, left: &Value, op: Binary, right: &Value, line: u32) -> Made {
        if let Some(folded) = constant(left, op, right) {
            return folded.map_err(|why| Stop::new(line, why));
        }
        match (left, op, right) {
            (Value::Unknown, ..) | (.., Value::Unknown) => Err(Stop::silent(line)),
            (Value::List(left), Binary::Add, Value::List(right)) => Ok(Value::List(left.iter().chain(right).cloned().collect())),
            (Value::Tuple(left), Binary::Add, Value::Tuple(right)) => {
                Ok(Value::Tuple(left.iter().chain(right).cloned().collect()))
            }
            (Value::Dict(left), Binary::BitOr, Value::Dict(right)) => {
                let kept = left.iter().filter(|(key, _)| right.iter().all(|(known, _)| known != key));
                Ok(Value::Dict(kept.chain(right).cloned().collect()))
            }
            (Value::List(items), Binary::BitOr, Value::List(more)) => {
                let new = more.iter().filter(|item| !items.contains(item));
                Ok(Value::List(items.iter().chain(new).cloned().collect()))
            }
            (Value::Choice(choice), ..) if !matches!(right, Value::Choice(_) | Value::Judge(_)) => {
                choice.map(|value| self.binary(value, op, right, line))
            }
            (.., Value::Choice(choice)) if !matches!(left, Value::Choice(_) | Value::Judge(_)) => {
                choice.map(|value| self.binary(left, op, value, line))
            }
            (Value::List(items), Binary::Add, other) if other.kind() == Kind::List => {
                let mut items = items.clone();
                items.push(other.clone());
                Ok(Value::List(items))
            }
            (Value::Str(text), Binary::Mod, value) => self.percent(text, value, line),
            (_, Binary::Div, Value::Str(_) | Value::Text(_)) => {
                // `Path(a) / 'b'`
                self.concatenated(&[left.clone(), Value::text("/"), right.clone()], line)
            }
            _ if op == Binary::Add && (left.kind() == Kind::Text || right.kind() == Kind::Text) => {
                self.concatenated(&[left.clone(), right.clone()], line)
            }
            _ => self.computed(left, op, right, line),
        }
    }

    /// Arithmetic that Muster does.
    fn computed(&mut self, left: &Value, op: Binary, right: &Value, line: u32) -> Made {
        let judged = matches!(left, Value::Judge(_)) || matches!(right, Value::Judge(_));
        let (a, b) = (self.cel(left, line)?, self.cel(right, line)?);
        let ints = a.kind == Kind::Int && b.kind == Kind::Int;
        let kind = if ints {
            Kind::Int
        } else if [a.kind, b.kind].contains(&Kind::Float) {
            Kind::Float
        } else {
            Kind::Any
        };
        let double = |cel: &Cel| {
            if cel.kind == Kind::Float { cel.clone() } else { Cel::call("double", std::slice::from_ref(cel), Kind::Float) }
        };
        let known = |cel: &Cel| matches!(cel.kind, Kind::Int | Kind::Float);
        let cel = match op {
            Binary::Add if judged || (known(&a) && known(&b)) => Cel::binary(&a, "+", &b, Prec::Add, kind),
            Binary::Sub => Cel::binary(&a, "-", &b, Prec::Add, kind),
            Binary::Mul if judged || (known(&a) || known(&b)) => Cel::binary(&a, "*", &b, Prec::Mul, kind),
            Binary::Div if judged => Cel::binary(&a, "/", &b, Prec::Mul, Kind::Float),
            Binary::Div => Cel::binary(&double(&a), "/", &double(&b), Prec::Mul, Kind::Float),
            Binary::FloorDiv if ints && !judged => Cel::binary(&a, "/", &b, Prec::Mul, Kind::Int),
            Binary::FloorDiv => {
                let quotient = Cel::binary(&double(&a), "/", &double(&b), Prec::Mul, Kind::Float);
                Cel::call("floor", &[quotient], Kind::Int)
            }
            Binary::Mod if ints => Cel::binary(&a, "%", &b, Prec::Mul, Kind::Int),
            _ => return Err(Stop::new(line, "this operator has no counterpart for a computed value")),
        };
        Ok(if judged { Value::Judge(Judge::plain(cel)) } else { Value::Cel(cel) })
    }

    pub(crate) fn compare(&mut self, left: &Expr, rest: &[(Compare, Expr)], line: u32) -> Made {
        let mut left = self.expr(left)?;
        let mut values = Vec::new();
        for (op, right) in rest {
            let right = self.expr(right)?;
            values.push(self.compared(&left, *op, &right, line)?);
            left = right;
        }
        if values.len() == 1 {
            return Ok(values.remove(0));
        }
        if values.iter().any(|value| matches!(value, Value::Judge(_))) {
            return self.judged_fold(&values, "&&", Prec::And, line);
        }
        let conds = values.iter().map(|value| self.truth(value, line)).collect::<Made<Vec<_>>>()?;
        Ok(tested(Cond::all(conds)))
    }

    pub(crate) fn compared(&mut self, left: &Value, op: Compare, right: &Value, line: u32) -> Made {
        if matches!(left, Value::Judge(_)) || matches!(right, Value::Judge(_)) {
            return self.judged_comparison(left, op, right, line);
        }
        let negated = matches!(op, Compare::NotEq | Compare::IsNot | Compare::NotIn);
        let cond = match op {
            Compare::Eq | Compare::Is | Compare::NotEq | Compare::IsNot => self.equal(left, right, line)?,
            Compare::In | Compare::NotIn => self.within(left, right, line)?,
            _ => self.ordered(left, op, right, line)?,
        };
        Ok(tested(if negated { cond.negated() } else { cond }))
    }

    pub(crate) fn equal(&mut self, left: &Value, right: &Value, line: u32) -> Made<Cond> {
        if let Some(equal) = left.equals(right) {
            return Ok(Cond::Always(equal));
        }
        match (left, right) {
            (Value::Choice(choice), other) | (other, Value::Choice(choice)) => {
                let choice = choice.clone();
                let mut cond = match &choice.default {
                    Some(default) => self.equal(default, other, line)?,
                    None => Cond::Always(false),
                };
                for (test, value) in choice.arms.iter().rev() {
                    let equal = self.equal(value, other, line)?;
                    cond = Cond::any([Cond::all([test.clone(), equal]), Cond::all([test.negated(), cond])]);
                }
                return Ok(cond);
            }
            (value, constant) | (constant, value) if constant.is_constant() => {
                if let Some(subject) = subject(value) {
                    return Ok(self.test.is(&subject, std::slice::from_ref(constant)));
                }
                if matches!(value, Value::Thing(_)) {
                    return Ok(Cond::Always(false));
                }
            }
            _ => {}
        }
        let (left, right) = (self.cel(left, line)?, self.cel(right, line)?);
        Ok(Cond::Cel(Cel::binary(&left, "==", &right, Prec::Relation, Kind::Bool)))
    }

    /// `a in b`
    pub(crate) fn within(&mut self, item: &Value, container: &Value, line: u32) -> Made<Cond> {
        let keys: Option<Vec<Value>> = match container {
            Value::List(_) | Value::Tuple(_) => container.items().map(<[Value]>::to_vec),
            Value::Dict(entries) => Some(entries.iter().map(|(key, _)| key.clone()).collect()),
            _ => None,
        };
        if let Some(keys) = keys.filter(|keys| keys.iter().all(Value::is_constant)) {
            if item.is_constant() {
                return Ok(Cond::Always(keys.iter().any(|key| key.equals(item) == Some(true))));
            }
            if let Some(subject) = subject(item) {
                return Ok(self.test.is(&subject, &keys));
            }
            if let Value::Choice(_) = item {
                let conds = keys.iter().map(|key| self.equal(item, key, line)).collect::<Made<Vec<_>>>()?;
                return Ok(Cond::any(conds));
            }
        }
        if let (Value::Str(part), Value::Str(whole)) = (item, container) {
            return Ok(Cond::Always(whole.contains(part)));
        }
        if let (Some(Subject::Parameter(name, _)), Value::Str(part)) = (subject(container), item)
            && let Some(param) = self.test.param(&name).filter(|param| !param.is_abstract)
            && param.values.iter().all(|value| value.as_str().is_some())
        {
            return Ok(param.is(|value| value.as_str().is_some_and(|text| text.contains(part))));
        }
        let (part, whole) = (self.cel(item, line)?, self.cel(container, line)?);
        Ok(Cond::Cel(match whole.kind {
            Kind::Text => whole.method("contains", &[part], Kind::Bool),
            _ => Cel::binary(&part, "in", &whole, Prec::Relation, Kind::Bool),
        }))
    }

    /// `<` and its like.
    fn ordered(&mut self, left: &Value, op: Compare, right: &Value, line: u32) -> Made<Cond> {
        let order = |left: f64, right: f64| match op {
            Compare::Lt => left < right,
            Compare::LtE => left <= right,
            Compare::Gt => left > right,
            _ => left >= right,
        };
        if let (Some(left), Some(right)) = (number(left), number(right)) {
            return Ok(Cond::Always(order(left, right)));
        }
        if let (Some(Subject::Parameter(name, true)), Some(right)) = (subject(left), number(right))
            && let Some(param) = self.test.param(&name).filter(|param| !param.is_abstract)
        {
            return Ok(param.is(|value| number(value).is_some_and(|value| order(value, right))));
        }
        if let Value::Choice(choice) = left {
            let choice = choice.clone();
            let mut cond = match &choice.default {
                Some(default) => self.ordered(default, op, right, line)?,
                None => Cond::Always(false),
            };
            for (test, value) in choice.arms.iter().rev() {
                let holds = self.ordered(value, op, right, line)?;
                cond = Cond::any([Cond::all([test.clone(), holds]), Cond::all([test.negated(), cond])]);
            }
            return Ok(cond);
        }
        let (left, right) = (self.cel(left, line)?, self.cel(right, line)?);
        Ok(Cond::Cel(Cel::binary(&left, symbol(op), &right, Prec::Relation, Kind::Bool)))
    }

    /// A comparison with something from the output: an assertion.
    pub(crate) fn judged_comparison(&mut self, left: &Value, op: Compare, right: &Value, line: u32) -> Made {
        let is_equal = matches!(op, Compare::Eq | Compare::Is);
        if let (true, Value::Judge(Judge { form: Form::Count(pattern), .. }), other)
        | (true, other, Value::Judge(Judge { form: Form::Count(pattern), .. })) = (is_equal, left, right)
            && !matches!(other, Value::Judge(_))
        {
            let cel = Cel::binary(&self.cel(left, line)?, "==", &self.cel(right, line)?, Prec::Relation, Kind::Bool);
            let form = Form::FoundTimes(pattern.clone(), Box::new(other.clone()));
            return Ok(Value::Judge(Judge { cel, form, msg: None }));
        }
        let mut sides = [self.cel(left, line)?, self.cel(right, line)?];
        for at in [0, 1] {
            if sides[1 - at].kind == Kind::Text && sides[at].kind == Kind::Any {
                sides[at] = sides[at].as_text();
            }
        }
        let [left, right] = &sides;
        if op == Compare::NotIn {
            let inner = Cel::binary(left, "in", right, Prec::Relation, Kind::Bool);
            return Ok(Value::Judge(Judge::plain(Cel::new(format!("!({})", inner.text), Prec::Unary, Kind::Bool))));
        }
        Ok(Value::Judge(Judge::plain(Cel::binary(left, symbol(op), right, Prec::Relation, Kind::Bool))))
    }
}

fn symbol(op: Compare) -> &'static str {
    match op {
        Compare::Eq | Compare::Is => "==",
        Compare::NotEq | Compare::IsNot => "!=",
        Compare::Lt => "<",
        Compare::LtE => "<=",
        Compare::Gt => ">",
        Compare::GtE => ">=",
        Compare::In | Compare::NotIn => "in",
    }
}

/// What a value is the name of, if a selector can ask for it; else the value itself, for it is compared all the same.
pub(crate) fn subject(value: &Value) -> Option<Subject> {
    match value {
        Value::Cel(cel) if cel.subject.is_some() => cel.subject.clone(),
        Value::Cel(cel) if matches!(cel.kind, Kind::Text | Kind::Int) => Some(Subject::Fact(cel.at(Prec::Add))),
        Value::Text(pieces) => match &pieces[..] {
            [Piece::Cel(system), Piece::Text(colon), Piece::Cel(partition)]
                if colon == ":" && system.subject == Some(Subject::System) && partition.subject == Some(Subject::Partition) =>
            {
                Some(Subject::FullName)
            }
            _ => Cel::of(value).map(|cel| Subject::Fact(cel.at(Prec::Add))),
        },
        _ => None,
    }
}

pub(crate) fn tested(cond: Cond) -> Value {
    if let Cond::Always(value) = cond { Value::Bool(value) } else { Value::Test(cond) }
}

/// A constant as a decimal.
#[expect(clippy::cast_precision_loss, reason = "as Python compares an integer with a decimal")]
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        _ => None,
    }
}

/// Folds two constants; `None` if they are not, an error if Python would fail too or the result is out of reason.
fn constant(left: &Value, op: Binary, right: &Value) -> Option<Result<Value, &'static str>> {
    const ZERO: &str = "this divides by zero";
    const LARGE: &str = "the result is too large";
    Some(match (left, right) {
        (Value::Int(left), Value::Int(right)) => match op {
            Binary::Add => left.checked_add(*right).map(Value::Int).ok_or(LARGE),
            Binary::Sub => left.checked_sub(*right).map(Value::Int).ok_or(LARGE),
            Binary::Mul => left.checked_mul(*right).map(Value::Int).ok_or(LARGE),
            Binary::FloorDiv | Binary::Mod | Binary::Div if *right == 0 => Err(ZERO),
            Binary::FloorDiv => {
                let (quotient, rest) = (left.checked_div(*right)?, left.checked_rem(*right)?);
                Ok(Value::Int(if rest != 0 && (rest < 0) != (*right < 0) { quotient - 1 } else { quotient }))
            }
            Binary::Mod => {
                let rest = left.checked_rem(*right)?;
                Ok(Value::Int(if rest != 0 && (rest < 0) != (*right < 0) { rest + right } else { rest }))
            }
            #[expect(clippy::cast_precision_loss, reason = "as Python divides")]
            Binary::Div => Ok(Value::Float(*left as f64 / *right as f64)),
            Binary::Pow => match u32::try_from(*right) {
                Ok(power) => left.checked_pow(power).map(Value::Int).ok_or(LARGE),
                #[expect(clippy::cast_precision_loss, reason = "as Python computes a negative power")]
                Err(_) => Ok(Value::Float((*left as f64).powf(*right as f64))),
            },
            Binary::BitOr => Ok(Value::Int(left | right)),
            Binary::BitAnd => Ok(Value::Int(left & right)),
            Binary::Other => return None,
        },
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
            let (left, right) = (number(left)?, number(right)?);
            match op {
                Binary::Add => Ok(Value::Float(left + right)),
                Binary::Sub => Ok(Value::Float(left - right)),
                Binary::Mul => Ok(Value::Float(left * right)),
                Binary::Div | Binary::FloorDiv | Binary::Mod if right == 0.0 => Err(ZERO),
                Binary::Div => Ok(Value::Float(left / right)),
                Binary::FloorDiv => Ok(Value::Float((left / right).floor())),
                Binary::Mod => Ok(Value::Float(left - right * (left / right).floor())),
                Binary::Pow => Ok(Value::Float(left.powf(right))),
                _ => return None,
            }
        }
        (Value::Str(left), Value::Str(right)) if op == Binary::Add => {
            if left.len() + right.len() > LONGEST {
                Err(LARGE)
            } else {
                Ok(Value::Str(format!("{left}{right}")))
            }
        }
        (Value::Str(text), Value::Int(times)) | (Value::Int(times), Value::Str(text)) if op == Binary::Mul => {
            let times = usize::try_from(*times).unwrap_or(0);
            if text.len().saturating_mul(times) > LONGEST { Err(LARGE) } else { Ok(Value::Str(text.repeat(times))) }
        }
        (Value::List(items), Value::Int(times)) if op == Binary::Mul => {
            let times = usize::try_from(*times).unwrap_or(0);
            if items.len().saturating_mul(times) > LONGEST / 64 {
                Err(LARGE)
            } else {
                Ok(Value::List(std::iter::repeat_n(items, times).flatten().cloned().collect()))
            }
        }
        _ => return None,
    })
}

/// Whether a value is a list or mapping of Python's, so that it can be changed in place.
pub(crate) fn is_thing(value: &Value) -> bool {
    matches!(value, Value::Thing(Thing::Manifest(_)))
}

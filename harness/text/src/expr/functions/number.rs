//! Functions over numbers. Integers stay exact where the answer is one; NaN goes through everything.

use super::{Args, Result, each, fail, int_at};
use crate::{
    expr::{
        found::Found,
        value::{self, MAX_ITEMS, Number},
    },
    median::median_in_place,
};
use cel::common::{
    types::{CelDouble, CelInt, CelList},
    value::{CowVal, Val},
};

/// A number, or a text that shows one.
fn number(function: &str, value: &dyn Val) -> Result<Number> {
    if let Some(text) = value::text_of(value) {
        return Number::parse(text).ok_or_else(|| fail(function, format!("needs numbers, {} is not one", value::quoted(text))));
    }
    Number::of(value).ok_or_else(|| fail(function, format!("needs numbers, this is {}", value::kind(value))))
}

/// Shows every number of the arguments, or of the one list.
fn numbers(function: &str, args: &Args<'_, '_>, mut visit: impl FnMut(Number)) -> Result<()> {
    let mut show = |value: &dyn Val| number(function, value).map(&mut visit);
    match args.as_slice() {
        [list] if list.downcast_ref::<Found>().is_some() || list.downcast_ref::<CelList>().is_some() => {
            each(function, list.as_ref(), show)
        }
        args => args.iter().try_for_each(|arg| show(arg.as_ref())),
    }
}

fn nothing(function: &str) -> cel::ExecutionError {
    fail(function, "of an empty list: the pattern matched nothing")
}

fn give<'b, 'v>(number: Number) -> CowVal<'b, 'v> {
    CowVal::Owned(number.into_val())
}

/// The number that `better` prefers to all others. The first NaN stays.
fn best<'b, 'v>(function: &str, args: &Args<'_, '_>, better: fn(f64, f64) -> bool) -> Result<CowVal<'b, 'v>> {
    let mut best: Option<Number> = None;
    numbers(function, args, |number| {
        let (known, new) = (best.map(Number::as_f64), number.as_f64());
        // Two integers that are the same double are compared as integers.
        let closer = match (best, number) {
            (Some(Number::Int(known)), Number::Int(new)) if known != new => better(0.0, if new > known { 1.0 } else { -1.0 }),
            _ => known.is_none_or(|known| !known.is_nan() && (new.is_nan() || better(known, new))),
        };
        if closer {
            best = Some(number);
        }
    })?;
    Ok(give(best.ok_or_else(|| nothing(function))?))
}

pub(super) fn max<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    best("max", &args, |known, new| new > known)
}

pub(super) fn min<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    best("min", &args, |known, new| new < known)
}

/// The sum, exact while all are integers, and how many there were.
fn total(function: &str, args: &Args<'_, '_>) -> Result<(Number, usize)> {
    let (mut exact, mut sum, mut count) = (Some(0_i64), 0.0, 0);
    numbers(function, args, |number| {
        exact = match number {
            Number::Int(int) => exact.and_then(|sum| sum.checked_add(int)),
            Number::Double(_) => None,
        };
        sum += number.as_f64();
        count += 1;
    })?;
    Ok((exact.map_or(Number::Double(sum), Number::Int), count))
}

pub(super) fn sum<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    Ok(give(total("sum", &args)?.0))
}

pub(super) fn avg<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let (sum, count) = total("avg", &args)?;
    if count == 0 {
        return Err(nothing("avg"));
    }
    #[expect(clippy::cast_precision_loss, reason = "2^53 matches are more than any text holds")]
    Ok(give(Number::Double(sum.as_f64() / count as f64)))
}

pub(super) fn median<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let mut all = Vec::new();
    let mut seen = 0_usize;
    numbers("median", &args, |number| {
        seen += 1;
        if seen <= MAX_ITEMS {
            all.push(number.as_f64());
        }
    })?;
    if seen > MAX_ITEMS {
        return Err(fail("median", "of more than a million numbers: narrow the pattern"));
    }
    let median = if all.iter().any(|x| x.is_nan()) { Some(f64::NAN) } else { median_in_place(&mut all) };
    Ok(give(Number::Double(median.ok_or_else(|| nothing("median"))?)))
}

pub(super) fn abs<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    Ok(give(match number("abs", args[0].as_ref())? {
        Number::Int(int) => int.checked_abs().map_or(Number::Double(9_223_372_036_854_775_808.0), Number::Int),
        Number::Double(double) => Number::Double(double.abs()),
    }))
}

/// A rounded double: an integer if there is one for it.
fn integral<'b, 'v>(function: &str, args: &Args<'b, 'v>, round: fn(f64) -> f64) -> Result<CowVal<'b, 'v>> {
    Ok(give(match number(function, args[0].as_ref())? {
        Number::Double(double) => {
            let rounded = Number::Double(round(double));
            rounded.as_int().map_or(rounded, Number::Int)
        }
        int @ Number::Int(_) => int,
    }))
}

pub(super) fn round<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    if args.len() == 1 {
        return integral("round", &args, f64::round);
    }
    let digits = int_at("round", &args, 1)?;
    let Ok(digits @ 0..=300) = i32::try_from(digits) else { return Err(fail("round", "needs 0 to 300 digits")) };
    let number = number("round", args[0].as_ref())?.as_f64();
    let scaled = number * 10_f64.powi(digits);
    // So large that it has no decimals left.
    let rounded = if scaled.is_finite() { scaled.round() / 10_f64.powi(digits) } else { number };
    Ok(CowVal::owned(CelDouble::from(rounded)))
}

pub(super) fn ceil<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    integral("ceil", &args, f64::ceil)
}

pub(super) fn floor<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    integral("floor", &args, f64::floor)
}

pub(super) fn range<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let at = |n| int_at("range", &args, n);
    let (start, end, step) = match args.len() {
        1 => (0, at(0)?, 1),
        2 => (at(0)?, at(1)?, 1),
        _ => (at(0)?, at(1)?, at(2)?),
    };
    if step == 0 {
        return Err(fail("range", "needs a step other than 0"));
    }
    let mut items: Vec<Box<dyn Val + 'v>> = Vec::new();
    let mut next = Some(start);
    while let Some(int) = next.filter(|int| if step > 0 { *int < end } else { *int > end }) {
        if items.len() == MAX_ITEMS {
            return Err(fail("range", "of more than a million integers"));
        }
        items.push(Box::new(CelInt::from(int)));
        next = int.checked_add(step);
    }
    Ok(CowVal::owned(CelList::from(items)))
}

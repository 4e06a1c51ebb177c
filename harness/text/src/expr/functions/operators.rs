//! CEL's operators where captured text may meet them. CEL's own equality cannot fail, and its other operators know its own types
//! alone, so a call of one becomes a call of a function of ours (see `tree::captured`). Values that were not captured are
//! treated as CEL treats them.

use super::{Args, Result, fail, fail_with_hint};
use crate::expr::{
    text::Captured,
    value::{self, Number},
};
use cel::{
    Env, ExecutionError,
    common::{
        ast::operators as cels,
        functions::Function as Run,
        types::{CelBool, CelInt, CelList, CelMap, CelNull, CelOptional, CelString, CelUInt, DYN_TYPE},
        value::{CowVal, Val},
    },
};
use std::cmp::Ordering;

/// An operator: its name in CEL's tree, the name of our function, and how people write it.
pub(crate) struct Operator {
    cels: &'static str,
    pub(crate) ours: &'static str,
    sign: &'static str,
    run: Run,
}

/// `+`, which joins texts and adds numbers.
pub(crate) const PLUS: &str = "@plus";

pub(crate) static OPERATORS: &[Operator] = &[
    Operator { cels: cels::EQUALS, ours: "@equal", sign: "==", run: |args| Ok(truth(is_equal("==", &args)?)) },
    Operator { cels: cels::NOT_EQUALS, ours: "@unequal", sign: "!=", run: |args| Ok(truth(!is_equal("!=", &args)?)) },
    Operator { cels: cels::LESS, ours: "@less", sign: "<", run: |args| Ok(truth(order("<", &args)?.is_lt())) },
    Operator { cels: cels::LESS_EQUALS, ours: "@at_most", sign: "<=", run: |args| Ok(truth(order("<=", &args)?.is_le())) },
    Operator { cels: cels::GREATER, ours: "@greater", sign: ">", run: |args| Ok(truth(order(">", &args)?.is_gt())) },
    Operator { cels: cels::GREATER_EQUALS, ours: "@at_least", sign: ">=", run: |args| Ok(truth(order(">=", &args)?.is_ge())) },
    Operator { cels: cels::IN, ours: "@is_in", sign: "in", run: |args| Ok(truth(is_in(&args)?)) },
    Operator { cels: cels::ADD, ours: PLUS, sign: "+", run: plus },
];

/// `list[key]` and `list[?key]` where the key may be captured.
pub(crate) const CHOSEN: &str = "@chosen";
pub(crate) const OPTIONAL: &str = "@optional";

/// Makes a number of captured text, and returns anything else.
pub(crate) const NUMBER: &str = "@number";

/// Makes plain text of captured text, and returns anything else.
pub(crate) const TEXT: &str = "@plain";

/// Our function for an operator of CEL.
pub(crate) fn native(cels: &str) -> Option<&'static str> {
    OPERATORS.iter().find(|operator| operator.cels == cels).map(|operator| operator.ours)
}

/// How people write a comparison, CEL's or ours.
pub(crate) fn sign(function: &str) -> Option<&'static str> {
    let mut comparisons = OPERATORS.iter().filter(|operator| operator.ours != PLUS);
    comparisons.find(|operator| [operator.cels, operator.ours].contains(&function)).map(|operator| operator.sign)
}

pub(super) fn register(env: &mut Env) -> std::result::Result<(), cel::DeclarationError> {
    for Operator { ours, run, .. } in OPERATORS {
        env.add_overload(ours, ours, vec![DYN_TYPE, DYN_TYPE], *run)?;
    }
    env.add_overload(CHOSEN, CHOSEN, vec![DYN_TYPE, DYN_TYPE], |args| element(args, false))?;
    env.add_overload(OPTIONAL, OPTIONAL, vec![DYN_TYPE, DYN_TYPE], |args| element(args, true))?;
    env.add_overload(NUMBER, NUMBER, vec![DYN_TYPE], number)?;
    env.add_overload(TEXT, TEXT, vec![DYN_TYPE], plain)
}

/// A boolean without an allocation: a comparison may run for every match.
fn truth<'b, 'v>(truth: bool) -> CowVal<'b, 'v> {
    const TRUE: &CelBool = &CelBool::TRUE;
    const FALSE: &CelBool = &CelBool::FALSE;
    CowVal::Borrowed(if truth { TRUE } else { FALSE })
}

/// A number as comparisons need it: exact if it is a whole one of up to 64 bits, and as a double.
#[derive(Clone, Copy)]
struct Figure(Option<i128>, f64);

impl Figure {
    fn compare(self, other: Self) -> Option<Ordering> {
        match (self.0, other.0) {
            (Some(one), Some(other)) => Some(one.cmp(&other)),
            _ => self.1.partial_cmp(&other.1),
        }
    }

    fn of(number: Number, uint: impl FnOnce() -> Option<u64>) -> Self {
        let whole = match number {
            Number::Int(int) => Some(int.into()),
            Number::Double(_) => uint().map(i128::from),
        };
        Self(whole, number.as_f64())
    }

    /// The number that captured text shows.
    fn shown(sign: &str, text: &str) -> Result<Self> {
        let number = Number::parse(text).ok_or_else(|| no_number(&format!("`{sign}` needs a number"), text))?;
        Ok(Self::of(number, || text.trim().parse().ok()))
    }
}

/// What stands on one side of an operator.
enum Operand<'a> {
    Captured(&'a str),
    Text(&'a str),
    Number(Figure),
    Other,
}

impl<'a> Operand<'a> {
    fn of(value: &'a dyn Val) -> Self {
        if let Some(captured) = value.downcast_ref::<Captured>() {
            Self::Captured(captured.text())
        } else if let Some(text) = value.downcast_ref::<CelString>() {
            Self::Text(text.inner())
        } else if let Some(number) = Number::of(value) {
            Self::Number(Figure::of(number, || value.downcast_ref::<CelUInt>().map(|uint| *uint.inner())))
        } else {
            Self::Other
        }
    }

    /// The number, of captured text too; `None` where it is something else.
    fn figure(&self, sign: &str) -> Result<Option<Figure>> {
        match self {
            Self::Captured(text) => Figure::shown(sign, text).map(Some),
            Self::Number(figure) => Ok(Some(*figure)),
            Self::Text(_) | Self::Other => Ok(None),
        }
    }
}

fn no_number(needs: &str, text: &str) -> ExecutionError {
    let is_large = text.trim().parse::<f64>().is_ok();
    let what = if is_large { "is too large for one" } else { "is not one" };
    fail_with_hint(&format!("{needs}, {} {what}", value::quoted(text)), Some("text in quotes is compared as it is"))
}

/// A whole number that no integer of 64 bits can hold.
fn is_beyond(text: &str) -> bool {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole && text.parse::<i64>().is_err() && text.parse::<u64>().is_err()
}

fn refused(sign: &str, one: &dyn Val, other: &dyn Val) -> ExecutionError {
    fail("", format!("`{sign}` does not take {} and {}", value::kind(one), value::kind(other)))
}

fn is_equal(sign: &str, args: &Args<'_, '_>) -> Result<bool> {
    same(sign, args[0].as_ref(), args[1].as_ref())
}

/// Whether two values are equal; an error if they cannot be compared. Lists and maps are by elements.
fn same(sign: &str, one: &dyn Val, other: &dyn Val) -> Result<bool> {
    use Operand::{Captured, Number, Other, Text};
    match (Operand::of(one), Operand::of(other)) {
        (Captured(one) | Text(one), Captured(other) | Text(other)) => Ok(one == other),
        (Captured(text), Number(number)) | (Number(number), Captured(text)) => {
            let shown = Figure::shown(sign, text)?;
            if is_beyond(text) {
                let message = format!("{} has more than 64 bits", value::quoted(text));
                return Err(fail_with_hint(&message, Some("quote it: text in quotes is compared as it is")));
            }
            Ok(shown.compare(number) == Some(Ordering::Equal))
        }
        (Number(one), Number(other)) => Ok(one.compare(other) == Some(Ordering::Equal)),
        // Text that a function has made of captured text would never be equal to a number.
        (Text(_), Number(_)) | (Number(_), Text(_)) => Err(refused(sign, one, other)),
        // A group that had no part is null.
        (Captured(_), Other) | (Other, Captured(_)) => {
            let is_null = [one, other].iter().any(|value| value.downcast_ref::<CelNull>().is_some());
            if is_null { Ok(false) } else { Err(refused(sign, one, other)) }
        }
        (Text(_) | Number(_), Other) | (Other, Text(_) | Number(_)) => Ok(one.equals(other)),
        (Other, Other) => same_parts(sign, one, other),
    }
}

/// The same of lists, maps and optional values.
fn same_parts(sign: &str, one: &dyn Val, other: &dyn Val) -> Result<bool> {
    if let (Some(one), Some(other)) = (one.downcast_ref::<CelList>(), other.downcast_ref::<CelList>()) {
        let (one, other) = (one.inner(), other.inner());
        let pairs = one.iter().zip(other);
        return if one.len() == other.len() {
            all(pairs.map(|(one, other)| same(sign, one.as_ref(), other.as_ref())))
        } else {
            Ok(false)
        };
    }
    if let (Some(one), Some(other)) = (one.downcast_ref::<CelMap>(), other.downcast_ref::<CelMap>()) {
        let (one, other) = (one.inner(), other.inner());
        let entries =
            one.iter().map(|(key, item)| other.get(key).map_or(Ok(false), |other| same(sign, item.as_ref(), other.as_ref())));
        return if one.len() == other.len() { all(entries) } else { Ok(false) };
    }
    if let (Some(one), Some(other)) = (one.downcast_ref::<CelOptional>(), other.downcast_ref::<CelOptional>())
        && let (Some(one), Some(other)) = (one.inner(), other.inner())
    {
        return same(sign, one, other);
    }
    Ok(one.equals(other))
}

/// False if one is, else an error if there is one.
fn all(results: impl Iterator<Item = Result<bool>>) -> Result<bool> {
    let mut problem = None;
    for result in results {
        match result {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => drop(problem.get_or_insert(error)),
        }
    }
    problem.map_or(Ok(true), Err)
}

/// Whether an element is equal, or a key of a map, which is text.
fn is_in(args: &Args<'_, '_>) -> Result<bool> {
    let (item, container) = (args[0].as_ref(), args[1].as_ref());
    if let Some(list) = container.downcast_ref::<CelList>() {
        let differs = list.inner().iter().map(|element| same("in", item, element.as_ref()).map(|is_same| !is_same));
        return all(differs).map(|all_differ| !all_differ);
    }
    let contains = |item: &dyn Val| container.as_container().map(|container| container.contains(item));
    let found = match item.downcast_ref::<Captured>() {
        Some(captured) => contains(&CelString::from(captured.text())),
        None => contains(item),
    };
    found.unwrap_or_else(|| Err(refused("in", item, container)))
}

fn order(sign: &str, args: &Args<'_, '_>) -> Result<Ordering> {
    use Operand::{Captured, Text};
    let (one, other) = (args[0].as_ref(), args[1].as_ref());
    let operands = (Operand::of(one), Operand::of(other));
    if let (Text(one), Text(other) | Captured(other)) | (Captured(one), Text(other)) = operands {
        return Ok(one.cmp(other));
    }
    if let (Some(one), Some(other)) = (operands.0.figure(sign)?, operands.1.figure(sign)?) {
        let nan = || fail("", format!("`{sign}` compares NaN, which is neither less nor more than anything"));
        return one.compare(other).ok_or_else(nan);
    }
    let native = one.as_comparer().and_then(|comparer| comparer.compare(other).ok());
    native.ok_or_else(|| refused(sign, one, other))
}

fn plus<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    use Operand::{Captured, Text};
    let (one, other) = (args[0].as_ref(), args[1].as_ref());
    let operands = (Operand::of(one), Operand::of(other));
    if let (Captured(one), Text(other)) | (Text(one), Captured(other)) = operands {
        return Ok(CowVal::owned(CelString::from(format!("{one}{other}"))));
    }
    if !matches!(operands, (Captured(_), _) | (_, Captured(_))) {
        let Some(adder) = one.as_adder() else {
            return Err(ExecutionError::UnsupportedBinaryOperator("add", one.try_into()?, other.try_into()?));
        };
        return Ok(CowVal::Owned(adder.add(other)?.into_owned()));
    }
    let (Some(one), Some(other)) = (operands.0.figure("+")?, operands.1.figure("+")?) else {
        return Err(refused("+", one, other));
    };
    let whole = one.0.zip(other.0).and_then(|(one, other)| i64::try_from(one + other).ok());
    Ok(CowVal::Owned(whole.map_or(Number::Double(one.1 + other.1), Number::Int).into_val()))
}

fn number<'b, 'v>(mut args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let value = args.swap_remove(0);
    let Some(captured) = value.downcast_ref::<Captured>() else { return Ok(value) };
    let number = Number::parse(captured.text()).ok_or_else(|| no_number("a number is needed here", captured.text()))?;
    Ok(CowVal::Owned(number.into_val()))
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a function is CEL's")]
fn plain<'b, 'v>(mut args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let value = args.swap_remove(0);
    let text = value.downcast_ref::<Captured>().map(|captured| captured.text().to_owned());
    Ok(text.map_or(value, |text| CowVal::owned(CelString::from(text))))
}

/// What to look up for a key: in a map captured text is text, in a list it is the number of an element.
pub(super) fn chosen_by<'b, 'v>(container: &dyn Val, key: CowVal<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let Some(captured) = key.downcast_ref::<Captured>() else { return Ok(key) };
    if container.downcast_ref::<CelMap>().is_some() {
        return Ok(CowVal::owned(CelString::from(captured.text().to_owned())));
    }
    let place = Number::parse(captured.text()).and_then(Number::as_int);
    let no_place = || fail("", format!("an element is chosen by its number, {} is none", value::quoted(captured.text())));
    Ok(CowVal::owned(CelInt::from(place.ok_or_else(no_place)?)))
}

/// `list[key]`; of an optional container, and where it is asked for, the element is optional.
fn element<'b, 'v>(mut args: Args<'b, 'v>, is_optional: bool) -> Result<CowVal<'b, 'v>> {
    let (key, container) = (args.swap_remove(1), args.swap_remove(0));
    let (container, is_optional) = match container.downcast_ref::<CelOptional>() {
        Some(optional) => (optional.inner(), true),
        None => (Some(container.as_ref()), is_optional),
    };
    let Some(container) = container else { return Ok(CowVal::owned(CelOptional::none())) };
    let key = chosen_by(container, key)?;
    let indexer = container.as_indexer().ok_or_else(|| fail("", format!("{} has no fields", value::kind(container))));
    let element = indexer.and_then(|indexer| indexer.get(key.as_ref())).map(CowVal::into_owned);
    match element {
        element if !is_optional => element.map(CowVal::Owned),
        element => Ok(CowVal::owned(element.map_or_else(|_| CelOptional::none(), CelOptional::of))),
    }
}

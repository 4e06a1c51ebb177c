//! The functions of Muster's expressions beside CEL's own: one table, from which calls, hints and documentation come.
//!
//! Every function is also a method of its first argument. A function is a plain `fn` over values; the ones that read
//! the text get it as a hidden first argument (see `tree`).

#![expect(clippy::needless_pass_by_value, reason = "the signature of a function is CEL's")]

mod list;
mod number;
mod operators;
mod string;
mod text;

pub(crate) use operators::{CHOSEN, NUMBER, OPERATORS, OPTIONAL, PLUS, TEXT, native, sign};

use super::{
    effort::Meter,
    found::{Found, MAX_TEXT},
    text::Captured,
    value::{self, MAX_ITEMS, Number},
};
use cel::{
    Env, ExecutionError,
    common::{
        functions::Function as Run,
        types::{CelList, CelMap, CelString, DYN_TYPE},
        value::{CowVal, Val},
    },
};
use std::{ops::RangeInclusive, sync::Arc};

/// A function that expressions can call.
#[derive(Debug)]
pub struct Function {
    pub name: &'static str,
    /// `max(list)`
    pub usage: &'static str,
    /// One sentence for the documentation.
    pub doc: &'static str,
    arity: RangeInclusive<usize>,
    pub(crate) reads: Reads,
    run: Run,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    Arguments,
    /// The text; it gives a number, a text or a group.
    Text,
    /// The text; it gives a lazy list.
    TextLazily,
}

impl Function {
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        FUNCTIONS.iter().find(|function| function.name == name)
    }

    /// Whether what it gives is the log's text, or holds it.
    pub(crate) fn captures(&self) -> bool {
        matches!(self.name, "findall" | "extractall" | "extractsingle")
    }

    /// Whether the function takes this number of arguments.
    pub(crate) fn takes(&self, arguments: usize) -> bool {
        self.arity.contains(&arguments)
    }
}

/// As many values as `max(a, b, ...)` may be given without a list.
const MANY: usize = 9;

/// A row for each function: name, number of arguments, what it reads, code, usage, one sentence for the documentation.
macro_rules! functions {
    ($($name:literal, $arity:expr, $reads:ident, $run:expr, $usage:literal, $doc:literal;)*) => {
        /// The functions beside CEL's own, in the order of the documentation.
        pub static FUNCTIONS: &[Function] = &[
            $(Function { name: $name, usage: $usage, doc: $doc, arity: $arity, reads: Reads::$reads, run: $run }),*
        ];
    };
}

functions! {
    "count", 1..=1, Text, text::count, "count(pattern)", "how often the pattern matches in the text; of a list, its length";
    "findall", 1..=1, TextLazily, text::findall, "findall(pattern)",
        "all matches, each a list of its groups' texts; [0] is the whole match";
    "extractall", 1..=2, TextLazily, text::extractall, "extractall(pattern, tag)",
        "one group of every match; without a tag the group `value`, else the only named, else 1";
    "extractsingle", 1..=3, Text, text::extractsingle, "extractsingle(pattern, tag, item)",
        "one group of the first match, or of match number `item` (from 0; -1 is the last)";
    "sections", 1..=1, TextLazily, text::sections, "sections(glob)",
        "the texts of the sections whose titles match, `*` and `?` as in a shell";
    "min", 1..=MANY, Arguments, number::min, "min(list)", "the smallest number; also min(a, b)";
    "max", 1..=MANY, Arguments, number::max, "max(list)", "the largest number; also max(a, b)";
    "sum", 1..=MANY, Arguments, number::sum, "sum(list)", "the sum; of nothing it is 0";
    "avg", 1..=MANY, Arguments, number::avg, "avg(list)", "the arithmetic mean";
    "median", 1..=MANY, Arguments, number::median, "median(list)", "the median; the mean of the middle two for an even number";
    "abs", 1..=1, Arguments, number::abs, "abs(number)", "the number without its sign";
    "round", 1..=2, Arguments, number::round, "round(number, digits)",
        "the nearest integer, halves away from 0; or to so many decimals";
    "ceil", 1..=1, Arguments, number::ceil, "ceil(number)", "the next integer upwards";
    "floor", 1..=1, Arguments, number::floor, "floor(number)", "the next integer downwards";
    "range", 1..=3, Arguments, number::range, "range(start, end, step)",
        "the integers from start (0 if not given) to before end";
    "len", 1..=1, Arguments, list::len, "len(list)", "how many elements a list, entries a map or characters a text has";
    "sorted", 1..=1, Arguments, list::sorted, "sorted(list)", "the elements in order: as numbers if all show one, else as texts";
    "unique", 1..=1, Arguments, list::unique, "unique(list)", "each element once, in the order of its first place";
    "get", 3..=MANY, Arguments, list::get, "get(map, key, .., default)",
        "the value at a path of keys, or the default where one is missing";
    "join", 1..=2, Arguments, string::join, "join(list, separator)", "the elements as one text";
    "split", 1..=2, Arguments, string::split, "split(text, separator)", "the pieces between separators; without one, the words";
    "replace", 3..=3, Arguments, string::replace, "replace(text, from, to)", "the text with every `from` replaced";
    "lower", 1..=1, Arguments, string::lower, "lower(text)", "the text in lower case";
    "upper", 1..=1, Arguments, string::upper, "upper(text)", "the text in upper case";
    "substring", 2..=3, Arguments, string::substring, "substring(text, start, end)", "the characters from start to before end";
}

pub(crate) const GLOBALS: &[&str] = &["bool", "bytes", "double", "dyn", "int", "matches", "size", "string", "type", "uint"];

/// CEL's own methods, those of its optional values (`a.?b.orValue(c)`) last.
pub(crate) const METHODS: &[&str] = &[
    "contains",
    "endsWith",
    "matches",
    "size",
    "startsWith",
    "hasValue",
    "none",
    "of",
    "ofNonZeroValue",
    "or",
    "orValue",
    "value",
];

/// What CEL's parser expands, and how it is written. A call of one that is left after parsing was written otherwise.
pub(crate) const MACROS: &[(&str, &str)] = &[
    ("has", "has(a.b)"),
    ("all", "xs.all(x, x > 0)"),
    ("exists", "xs.exists(x, x > 0)"),
    ("exists_one", "xs.exists_one(x, x > 0)"),
    ("filter", "xs.filter(x, x > 0)"),
    ("map", "xs.map(x, x * 2)"),
    ("optMap", "a.optMap(x, x * 2)"),
    ("optFlatMap", "a.optFlatMap(x, optional.of(x))"),
];

/// Makes integers doubles, in lists and maps too. Put around what a form in doubles reads from outside.
pub(crate) const DOUBLE: &str = "@double";

/// Makes a lazy list or a map's keys a list that CEL itself can go through.
pub(crate) const ITEMS: &str = "@items";

/// Counts an iteration of a loop, and returns its second argument.
pub(crate) const STEP: &str = "@step";

/// Counts what is put into a list or a map, and returns it.
pub(crate) const HELD: &str = "@held";

/// Refuses a text or a list that is too long, and returns any other.
pub(crate) const SIZED: &str = "@sized";

/// CEL's `matches`, with a limit if no caller can stop it.
pub(crate) const MATCHES: &str = "@matches";

/// Makes the functions known.
pub(crate) fn register(env: &mut Env) -> std::result::Result<(), cel::DeclarationError> {
    for function in FUNCTIONS {
        let hidden = usize::from(function.reads != Reads::Arguments);
        for arguments in function.arity.clone() {
            let id = format!("{}{arguments}", function.name);
            let types = (0..arguments + hidden).map(|_| DYN_TYPE).collect();
            env.add_overload(function.name, &id, types, function.run)?;
        }
    }
    env.add_overload(DOUBLE, DOUBLE, vec![DYN_TYPE], double)?;
    env.add_overload(ITEMS, ITEMS, vec![DYN_TYPE], items)?;
    env.add_overload(STEP, STEP, vec![DYN_TYPE, DYN_TYPE], step)?;
    env.add_overload(HELD, HELD, vec![DYN_TYPE, DYN_TYPE], held)?;
    env.add_overload(SIZED, SIZED, vec![DYN_TYPE], sized)?;
    env.add_overload(MATCHES, MATCHES, vec![DYN_TYPE, DYN_TYPE, DYN_TYPE], string::matches)?;
    operators::register(env)
}

/// What a function that reads the text says where there is none.
pub(crate) const NO_TEXT: &str = "reads the text, which only assert and value see";

type Args<'b, 'v> = Vec<CowVal<'b, 'v>>;
type Result<T> = std::result::Result<T, ExecutionError>;

/// An error; its text is the function and the message, read as one sentence.
pub(crate) fn fail(function: &str, message: impl Into<String>) -> ExecutionError {
    ExecutionError::FunctionError { function: function.to_owned(), message: message.into() }
}

/// An error that is a sentence by itself, with advice in its second line.
fn fail_with_hint(message: &str, hint: Option<&str>) -> ExecutionError {
    fail("", hint.map_or_else(|| message.to_owned(), |hint| format!("{message}\n{hint}")))
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a function is CEL's")]
fn double<'b, 'v>(mut args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let value = args.swap_remove(0);
    Ok(value::to_doubles(value.as_ref()).map_or(value, CowVal::Owned))
}

fn items<'b, 'v>(mut args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let value = args.swap_remove(0);
    if let Some(found) = value.downcast_ref::<Found>() {
        return found.collect().map(CowVal::owned);
    }
    let Some(map) = value.downcast_ref::<CelMap>() else { return Ok(value) };
    // A hash map's order changes from run to run, and what is made of it must not.
    let mut keys: Vec<_> = map.inner().keys().collect();
    keys.sort();
    let keys: Vec<Box<dyn Val + 'v>> = keys.into_iter().map(|key| key.inner().clone_as_boxed()).collect();
    Ok(CowVal::owned(CelList::from(keys)))
}

/// The meter, which is the first argument of what counts.
fn meter<'b>(args: &'b Args<'_, '_>) -> Result<&'b Meter> {
    args[0].downcast_ref::<Meter>().ok_or_else(|| fail("", "internal error: no evaluation limit"))
}

fn step<'b, 'v>(mut args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    meter(&args)?.step()?;
    Ok(args.swap_remove(1))
}

fn held<'b, 'v>(mut args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    meter(&args)?.hold(args[1].as_ref())?;
    Ok(args.swap_remove(1))
}

fn sized<'b, 'v>(mut args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let value = args.swap_remove(0);
    if value.downcast_ref::<CelString>().is_some_and(|text| text.inner().len() > MAX_TEXT) {
        return Err(too_long("+"));
    }
    if value.downcast_ref::<CelList>().is_some_and(|list| list.inner().len() > MAX_ITEMS) {
        return Err(fail("", "`+` makes a list of more than a million elements"));
    }
    Ok(value)
}

/// What a function that makes text says when there is too much of it.
fn too_long(function: &str) -> ExecutionError {
    fail("", format!("`{function}` makes a text of more than 64 MiB"))
}

/// Argument number `n` as text.
fn text_at<'b>(function: &str, args: &'b [CowVal<'_, '_>], n: usize) -> Result<&'b str> {
    let arg = args[n].as_ref();
    value::text_of(arg).ok_or_else(|| fail(function, format!("needs text here, this is {}", value::kind(arg))))
}

/// Argument number `n` as an integer, `3.0` included.
fn int_at(function: &str, args: &[CowVal<'_, '_>], n: usize) -> Result<i64> {
    let arg = args[n].as_ref();
    let int = Number::met(arg).and_then(Number::as_int);
    int.ok_or_else(|| match arg.downcast_ref::<Captured>() {
        Some(captured) => fail(function, format!("needs an integer here, {} is none", value::quoted(captured.text()))),
        None => fail(function, format!("needs an integer here, this is {}", value::kind(arg))),
    })
}

/// Goes through a list, lazily if it is a lazy one.
fn each(function: &str, list: &dyn Val, mut visit: impl FnMut(&dyn Val) -> Result<()>) -> Result<()> {
    if let Some(found) = list.downcast_ref::<Found>() {
        return found.each(visit);
    }
    match list.downcast_ref::<CelList>() {
        Some(list) => list.inner().iter().try_for_each(|item| visit(item.as_ref())),
        None => Err(fail(function, format!("needs a list, this is {}", value::kind(list)))),
    }
}

/// The elements of a list side by side, limited if it was a lazy one.
fn elements<'b, 'v>(function: &str, list: &'b (dyn Val + 'v)) -> Result<Vec<Box<dyn Val + 'v>>> {
    if let Some(found) = list.downcast_ref::<Found>() {
        return found.collect().map(CelList::into_inner).map(|items| items.into_iter().map(|item| item as _).collect());
    }
    match list.downcast_ref::<CelList>() {
        Some(list) => Ok(list.inner().to_vec()),
        None => Err(fail(function, format!("needs a list, this is {}", value::kind(list)))),
    }
}

/// The environment of all expressions.
pub(crate) fn env() -> Arc<Env> {
    static ENV: std::sync::OnceLock<Arc<Env>> = std::sync::OnceLock::new();
    let env = ENV.get_or_init(|| {
        let mut env = Env::stdlib();
        let registered = register(&mut env);
        debug_assert_eq!(registered, Ok(()), "each function has one name");
        Arc::new(env)
    });
    Arc::clone(env)
}

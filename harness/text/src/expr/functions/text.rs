//! Functions that read the text.

use super::{Args, NO_TEXT, Result, fail, fail_with_hint, int_at, list, text_at};
use crate::{
    expr::{
        found::{Found, What},
        text::Text,
        value,
    },
    pattern::{Pattern, PatternError},
};
use cel::{
    ExecutionError,
    common::{types::CelInt, value::CowVal},
};

fn text<'b>(function: &str, args: &'b Args<'_, '_>) -> Result<&'b Text> {
    args[0].downcast_ref::<Text>().ok_or_else(|| fail(function, NO_TEXT))
}

fn pattern(function: &str, args: &Args<'_, '_>) -> Result<Pattern> {
    // A missing text is reported before a mistake in the pattern.
    text(function, args)?;
    Pattern::compile(text_at(function, args, 1)?).map_err(|error| bad_pattern(&error))
}

fn bad_pattern(error: &PatternError) -> ExecutionError {
    fail_with_hint(&error.message, error.hint.as_deref())
}

fn found<'b, 'v>(args: &Args<'_, '_>, function: &str, what: What) -> Result<CowVal<'b, 'v>> {
    Ok(CowVal::owned(Found { text: text(function, args)?.clone(), what }))
}

/// The group that the argument after the pattern names, or the figure's by the rule of all patterns.
fn group(function: &str, args: &Args<'_, '_>, pattern: &Pattern) -> Result<usize> {
    let tag = match args.get(2) {
        None => None,
        Some(tag) => match value::text_of(tag.as_ref()) {
            Some(name) => Some(name.to_owned()),
            None => Some(int_at(function, args, 2)?.to_string()),
        },
    };
    pattern.groups(tag.as_deref()).map(|groups| groups.value).map_err(|error| bad_pattern(&error))
}

pub(super) fn count<'b, 'v>(mut args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    if value::text_of(args[1].as_ref()).is_none() {
        return list::len(args.split_off(1));
    }
    let what = What::Group(pattern("count", &args)?, 0);
    let count = Found { text: text("count", &args)?.clone(), what }.count();
    Ok(CowVal::owned(CelInt::from(i64::try_from(count).unwrap_or(i64::MAX))))
}

pub(super) fn findall<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let pattern = pattern("findall", &args)?;
    found(&args, "findall", What::Groups(pattern))
}

pub(super) fn extractall<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let pattern = pattern("extractall", &args)?;
    let group = group("extractall", &args, &pattern)?;
    found(&args, "extractall", What::Group(pattern, group))
}

pub(super) fn extractsingle<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    const NAME: &str = "extractsingle";
    let pattern = pattern(NAME, &args)?;
    let group = group(NAME, &args, &pattern)?;
    let item = if args.len() > 3 { int_at(NAME, &args, 3)? } else { 0 };
    let all = Found { text: text(NAME, &args)?.clone(), what: What::Group(pattern, group) };
    match all.nth(item) {
        Some(element) => Ok(CowVal::Owned(element)),
        None if item == 0 => Err(fail(NAME, "found nothing: the pattern does not match")),
        None => Err(fail(NAME, format!("found no match number {item}: the pattern matches {} times", all.count()))),
    }
}

pub(super) fn sections<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let glob = glob(text_at("sections", &args, 1)?)?;
    let titles = text("sections", &args)?.titles().enumerate();
    let chosen = titles.filter(|(_, title)| glob.regex().is_match(title.as_bytes())).map(|(place, _)| place).collect();
    found(&args, "sections", What::Sections(chosen))
}

/// A shell glob as a pattern, which is compiled once. `*` and `?` also match `/`: a title is not a path.
fn glob(glob: &str) -> Result<Pattern> {
    let pattern = regex::escape(glob).replace(r"\*", ".*").replace(r"\?", ".");
    Pattern::compile(&format!(r"(?s)\A{pattern}\z")).map_err(|error| bad_pattern(&error))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_glob_knows_stars_and_question_marks() {
        let table = [
            ("*", "", true),
            ("*worker*", "nbody-worker-0/main", true),
            ("nbody-?", "nbody-1", true),
            ("nbody-?", "nbody-10", false),
            ("*-1", "a-1-1", true),
            ("*-1", "a-1-2", false),
            ("a*b*c", "aXbYbZc", true),
            ("", "a", false),
            ("a[0].*", "a[0].b", true),
            (r"a\*", r"a\b/c", true),
        ];
        for (glob, title, expected) in table {
            assert_eq!(super::glob(glob).unwrap().regex().is_match(title.as_bytes()), expected, "{glob} {title}");
        }
    }
}

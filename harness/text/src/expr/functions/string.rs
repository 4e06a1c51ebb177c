//! Functions over text. Places are characters, not bytes.

use super::{Args, Result, each, fail, int_at, meter, text_at, too_long};
use crate::expr::{
    found::MAX_TEXT,
    value::{self, MAX_ITEMS, Number},
};
use cel::common::{
    types::{CelBool, CelList, CelString},
    value::{CowVal, Val},
};
use regex::RegexBuilder;

fn give<'b, 'v>(text: String) -> CowVal<'b, 'v> {
    CowVal::owned(CelString::from(text))
}

pub(super) fn join<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let separator = if args.len() > 1 { text_at("join", &args, 1)? } else { "" };
    let mut joined: Option<String> = None;
    each("join", args[0].as_ref(), |item| {
        let item = show(item)?;
        match &mut joined {
            None => joined = Some(item),
            Some(joined) => {
                joined.push_str(separator);
                joined.push_str(&item);
            }
        }
        if joined.as_ref().is_some_and(|joined| joined.len() > MAX_TEXT) {
            return Err(too_long("join"));
        }
        Ok(())
    })?;
    Ok(give(joined.unwrap_or_default()))
}

/// A scalar as text, as a placeholder would write it.
fn show(value: &dyn Val) -> Result<String> {
    if let Some(text) = value::text_of(value) {
        return Ok(text.to_owned());
    }
    if value.downcast_ref::<CelBool>().is_some() || Number::of(value).is_some() {
        return value::to_json(value).map(|value| value.to_string()).map_err(|_| fail("join", "cannot write NaN or infinities"));
    }
    Err(fail("join", format!("needs texts and numbers, this is {}", value::kind(value))))
}

pub(super) fn split<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let text = text_at("split", &args, 0)?;
    let pieces: Vec<&str> = match args.get(1) {
        None => text.split_whitespace().collect(),
        Some(_) => match text_at("split", &args, 1)? {
            "" => return Err(fail("split", "needs a separator that is not empty")),
            separator => text.split(separator).collect(),
        },
    };
    if pieces.len() > MAX_ITEMS {
        return Err(fail("split", "makes more than a million pieces"));
    }
    let pieces = pieces.into_iter().map(|piece| Box::new(CelString::from(piece.to_owned())) as Box<dyn Val + 'v>);
    Ok(CowVal::owned(CelList::from(pieces.collect::<Vec<_>>())))
}

pub(super) fn replace<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let at = |n| text_at("replace", &args, n);
    let (text, from, to) = (at(0)?, at(1)?, at(2)?);
    let grown = text.matches(from).count().saturating_mul(to.len().saturating_sub(from.len()));
    if text.len().saturating_add(grown) > MAX_TEXT {
        return Err(too_long("replace"));
    }
    Ok(give(text.replace(from, to)))
}

/// CEL's `matches`. A search cannot be interrupted, and takes as many steps as the text is long, each as long as the pattern
/// is large: if no caller can end the process, the larger one is, the smaller the other must be.
pub(super) fn matches<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    /// What the regex crate itself allows, in bytes.
    const LARGEST: usize = 10 << 20;
    /// Bytes of the text times bytes of the compiled pattern: about a second.
    const MOST: usize = 6 << 30;
    let wrong = |arg: &dyn Val| fail("", format!("`matches` needs two texts, this is {}", value::kind(arg)));
    let text = |n: usize| value::text_of(args[n].as_ref()).ok_or_else(|| wrong(args[n].as_ref()));
    let (text, pattern) = (text(1)?, text(2)?);
    let limit = if meter(&args)?.is_alone() { (MOST / text.len().max(1)).min(LARGEST) } else { LARGEST };
    let regex = RegexBuilder::new(pattern).size_limit(limit).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) if limit < LARGEST => {
            fail("", format!("the pattern is too large for a text of {} bytes", text.len()))
        }
        error => fail("matches", error.to_string()),
    })?;
    Ok(CowVal::owned(CelBool::from(regex.is_match(text))))
}

pub(super) fn lower<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    Ok(give(text_at("lower", &args, 0)?.to_lowercase()))
}

pub(super) fn upper<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    Ok(give(text_at("upper", &args, 0)?.to_uppercase()))
}

pub(super) fn substring<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let text: Vec<char> = text_at("substring", &args, 0)?.chars().collect();
    let place = |n| int_at("substring", &args, n).map(usize::try_from);
    let (start, end) = (place(1)?, if args.len() > 2 { place(2)? } else { Ok(text.len()) });
    match (start, end) {
        (Ok(start), Ok(end)) if start <= end && end <= text.len() => Ok(give(text[start..end].iter().collect())),
        _ => Err(fail("substring", format!("reaches outside its text of {} characters", text.len()))),
    }
}

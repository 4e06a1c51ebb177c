//! Functions over text. Places are characters, not bytes.

use super::{Args, Result, each, fail, int_at, text_at};
use crate::expr::value::{self, Number};
use cel::common::{
    types::{CelBool, CelList, CelString},
    value::{CowVal, Val},
};

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
        Ok(())
    })?;
    Ok(give(joined.unwrap_or_default()))
}

/// A scalar as text, as a placeholder would write it.
fn show(value: &dyn Val) -> Result<String> {
    if let Some(text) = value.downcast_ref::<CelString>() {
        return Ok(text.inner().to_owned());
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
    let pieces = pieces.into_iter().map(|piece| Box::new(CelString::from(piece.to_owned())) as Box<dyn Val + 'v>);
    Ok(CowVal::owned(CelList::from(pieces.collect::<Vec<_>>())))
}

pub(super) fn replace<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let at = |n| text_at("replace", &args, n);
    Ok(give(at(0)?.replace(at(1)?, at(2)?)))
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

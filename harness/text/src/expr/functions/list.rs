//! Functions over lists and maps.

use super::{Args, Result, elements, fail, operators::chosen_by};
use crate::expr::{
    found::Found,
    value::{self, Number},
};
use cel::common::{
    types::{CelInt, CelList, CelMap},
    value::{CowVal, Val},
};
use std::{cmp::Ordering, collections::HashSet};

pub(super) fn len<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let value = args[0].as_ref();
    let len = if let Some(found) = value.downcast_ref::<Found>() {
        found.count()
    } else if let Some(list) = value.downcast_ref::<CelList>() {
        list.inner().len()
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        map.inner().len()
    } else if let Some(text) = value::text_of(value) {
        text.chars().count()
    } else {
        return Err(fail("len", format!("needs a list, a map or text, this is {}", value::kind(value))));
    };
    Ok(CowVal::owned(CelInt::from(i64::try_from(len).unwrap_or(i64::MAX))))
}

pub(super) fn sorted<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let mut items = elements("sorted", args[0].as_ref())?;
    if let Some(numbers) = items.iter().map(|item| Number::met(item.as_ref())).collect::<Option<Vec<_>>>() {
        let mut numbered: Vec<_> = numbers.into_iter().zip(items).collect();
        numbered.sort_by(|(one, _), (other, _)| order(*one, *other));
        return Ok(CowVal::owned(CelList::from(numbered.into_iter().map(|(_, item)| item).collect::<Vec<_>>())));
    }
    // A comparison that has no answer must not stop the sort half-way: it is remembered and the list thrown away.
    let mut problem = None;
    items.sort_by(|one, other| {
        compare(one.as_ref(), other.as_ref()).unwrap_or_else(|error| {
            problem.get_or_insert(error);
            Ordering::Equal
        })
    });
    match problem {
        Some(error) => Err(error),
        None => Ok(CowVal::owned(CelList::from(items))),
    }
}

fn order(one: Number, other: Number) -> Ordering {
    match (one, other) {
        (Number::Int(one), Number::Int(other)) => one.cmp(&other),
        (one, other) => one.as_f64().total_cmp(&other.as_f64()),
    }
}

fn compare(one: &dyn Val, other: &dyn Val) -> Result<Ordering> {
    if let (Some(one), Some(other)) = (Number::of(one), Number::of(other)) {
        return Ok(order(one, other));
    }
    match (value::text_of(one), value::text_of(other)) {
        (Some(one), Some(other)) => Ok(one.cmp(other)),
        _ => Err(fail("sorted", format!("cannot compare {} with {}", value::kind(one), value::kind(other)))),
    }
}

pub(super) fn unique<'b, 'v>(args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let mut items = elements("unique", args[0].as_ref())?;
    let mut seen = HashSet::new();
    items.retain(|item| seen.insert(key(item.as_ref())));
    Ok(CowVal::owned(CelList::from(items)))
}

/// Equal for values that CEL calls equal, `1` and `1.0` among them.
fn key(value: &dyn Val) -> String {
    match Number::of(value) {
        Some(number) => match number.as_int() {
            Some(int) => int.to_string(),
            None => format!("{:?}", number.as_f64()),
        },
        None => value::to_json(value).map_or_else(|_| format!("{value:?}"), |value| value.to_string()),
    }
}

pub(super) fn get<'b, 'v>(mut args: Args<'b, 'v>) -> Result<CowVal<'b, 'v>> {
    let default = args.pop().ok_or_else(|| fail("get", "needs a default"))?;
    let keys = args.split_off(1);
    let mut value = args.swap_remove(0);
    for key in keys {
        let key = chosen_by(value.as_ref(), key)?;
        let next = match value.as_indexer() {
            Some(indexer) => indexer.get(key.as_ref()).ok().map(CowVal::into_owned),
            None => None,
        };
        match next {
            Some(next) => value = CowVal::Owned(next),
            None => return Ok(default),
        }
    }
    Ok(value)
}

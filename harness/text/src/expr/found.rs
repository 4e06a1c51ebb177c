//! Lists that are searched again whenever they are asked: matches of a pattern, sections of the text.
//!
//! Nothing here copies the log. Counting and folding see one element at a time, and only the element that is asked for
//! becomes a value. A list that has to be in memory as a whole (for a comprehension, say) is limited.

use super::{
    functions::fail,
    text::{Captured, Text},
    value::{MAX_ITEMS, Number, impl_val, text_val},
};
use crate::pattern::{Haystack, Next, Pattern};
use cel::{
    ExecutionError,
    common::{
        traits::{Indexer, Sizer},
        types::{CelInt, CelList, CelNull, LIST_TYPE},
        value::{CowVal, Val},
    },
};
use std::ops::ControlFlow;

/// The text that a collected list may hold.
pub(crate) const MAX_TEXT: usize = 64 << 20;

/// A search continues, or ends with a result or an error.
type Step<T> = ControlFlow<Result<T, ExecutionError>>;

#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) text: Text,
    pub(crate) what: What,
}

/// What is in a lazy list.
#[derive(Debug, Clone)]
pub(crate) enum What {
    /// Of each match a list of all groups, the whole match first. A group without a part in it is null.
    Groups(Pattern),
    /// Of each match one group. A match in which the group has no part is left out.
    Group(Pattern, usize),
    /// The texts of these sections.
    Sections(Vec<usize>),
}

impl Found {
    /// Shows each element to `visit`, as a function that builds it: most are only counted or passed by.
    fn search<T>(&self, mut visit: impl FnMut(&dyn Fn() -> Box<dyn Val>) -> Step<T>) -> Option<Result<T, ExecutionError>> {
        let end = match &self.what {
            What::Sections(chosen) => chosen.iter().try_for_each(|place| visit(&|| shown(self.text.section(*place), None))),
            What::Group(pattern, group) => matches(&self.text, pattern, *group, |text, place| {
                let Some((start, end)) = place(*group) else { return ControlFlow::Continue(()) };
                visit(&|| Box::new(Captured::new(&text.between(start, end))))
            }),
            What::Groups(pattern) => matches(&self.text, pattern, usize::MAX, |text, place| {
                visit(&|| {
                    let groups = (0..pattern.regex().captures_len()).map(|group| match place(group) {
                        Some((start, end)) => Box::new(Captured::new(&text.between(start, end))) as Box<dyn Val>,
                        None => Box::new(CelNull),
                    });
                    Box::new(CelList::from(groups.collect::<Vec<_>>()))
                })
            }),
        };
        end.break_value()
    }

    pub(crate) fn count(&self) -> usize {
        match &self.what {
            What::Sections(chosen) => chosen.len(),
            // A match is a match whatever its groups, and without them the search is twice as fast.
            What::Groups(pattern) | What::Group(pattern, 0) => {
                self.text.sections().map(|section| pattern.find_iter(section).count()).sum()
            }
            What::Group(..) => {
                let mut count = 0;
                self.search(|_| -> Step<()> {
                    count += 1;
                    ControlFlow::Continue(())
                });
                count
            }
        }
    }

    /// Every element in turn, without keeping any.
    pub(crate) fn each(&self, mut visit: impl FnMut(&dyn Val) -> Result<(), ExecutionError>) -> Result<(), ExecutionError> {
        let end = self.search(|element| match visit(element().as_ref()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Err(error)),
        });
        end.unwrap_or(Ok(()))
    }

    /// The element at a place; a negative one counts from the end.
    pub(crate) fn nth(&self, place: i64) -> Option<Box<dyn Val>> {
        let distance = usize::try_from(place.unsigned_abs()).ok()?;
        let mut left = if place < 0 { self.count().checked_sub(distance)? } else { distance };
        let found = self.search(|element| {
            if left == 0 {
                return ControlFlow::Break(Ok(element()));
            }
            left -= 1;
            ControlFlow::Continue(())
        });
        found.and_then(Result::ok)
    }

    /// All elements at once.
    pub(crate) fn collect(&self) -> Result<CelList<'static>, ExecutionError> {
        if let What::Sections(chosen) = &self.what
            && chosen.iter().map(|place| self.text.section(*place).bytes.len()).sum::<usize>() > MAX_TEXT
        {
            return Err(fail("sections", "of more than 64 MiB of text: choose fewer, or search with a pattern"));
        }
        let mut items = Vec::new();
        let end = self.search(|element| {
            if items.len() == MAX_ITEMS {
                let why = "more than a million matches in one list: narrow the pattern, or fold them with max, sum or count";
                return ControlFlow::Break(Err(fail("", why)));
            }
            items.push(element());
            ControlFlow::Continue(())
        });
        end.unwrap_or(Ok(()))?;
        Ok(CelList::from(items))
    }
}

/// The place of a group in a match.
type Place<'a> = dyn Fn(usize) -> Option<(usize, usize)> + 'a;

/// Shows every match to `visit`, section by section, with the places of its groups up to the one that is needed.
fn matches<T>(
    text: &Text,
    pattern: &Pattern,
    group: usize,
    mut visit: impl FnMut(Haystack<'_>, &Place<'_>) -> Step<T>,
) -> Step<T> {
    for text in text.sections() {
        if group == 0 {
            for found in pattern.find_iter(text) {
                visit(text, &|group| (group == 0).then_some((found.start(), found.end())))?;
            }
            continue;
        }
        // What `captures_iter` does, without an allocation a match.
        let mut groups = pattern.locations(text);
        let mut next = Next::default();
        while next.of(|at| pattern.captures_read_at(&mut groups, text, at)).is_some() {
            visit(text, &|group| groups.get(group))?;
        }
    }
    ControlFlow::Continue(())
}

fn shown(text: Haystack<'_>, place: Option<(usize, usize)>) -> Box<dyn Val> {
    let (start, end) = place.unwrap_or((0, text.bytes.len()));
    text_val(String::from_utf8_lossy(&text.between(start, end)).into_owned())
}

impl_val!(Found, LIST_TYPE, {
    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }
    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }
});

impl Sizer for Found {
    fn size(&self) -> CelInt {
        CelInt::from(i64::try_from(self.count()).unwrap_or(i64::MAX))
    }
}

impl Indexer for Found {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let place = Number::of(index)
            .and_then(Number::as_int)
            .ok_or_else(|| ExecutionError::UnexpectedType { got: index.get_type().name().to_owned(), want: "int".to_owned() })?;
        let out_of_bounds = || ExecutionError::IndexOutOfBounds(cel::Value::Int(place));
        // As CEL's own lists: only `extractsingle` counts from the end.
        if place < 0 {
            return Err(out_of_bounds());
        }
        self.nth(place).map(CowVal::Owned).ok_or_else(out_of_bounds)
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn capturing_finds_what_finding_finds() {
        let text = "ab  ba\n\nné x1 x22\n".as_bytes();
        let text = Text::new(Arc::new(text), [("stdout".to_owned(), 0..text.len())]);
        for pattern in ["", "a*", "^", "$", "^$", r"\b", "(a|b)?", r"x(\d+)", "(?:)|é", r"\B", "b(a?)"] {
            let pattern = Pattern::compile(pattern).unwrap();
            let places = |group: usize| {
                let mut places = Vec::new();
                let _: Step<()> = matches(&text, &pattern, group, |_, place| {
                    places.push(place(0));
                    ControlFlow::Continue(())
                });
                places
            };
            assert_eq!(places(1), places(0), "{}", pattern.as_str());
            assert!(!places(0).is_empty());
        }
    }
}

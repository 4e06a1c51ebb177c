//! Patterns: Rust's regex syntax, multi-line, over bytes.
//!
//! A pattern is compiled once in a process, however many cases share it, and knows what the search needs to know:
//! how far it can see (`Reach`) and which group is the figure (`Groups`). The search itself is in `judge::search`.

mod hint;
mod reach;
mod returns;

pub use reach::{Reach, lint};
pub use returns::{Haystack, NEVER_MATCHES, needs_return};

use memchr::memmem::Finder;
use regex::bytes::{CaptureLocations, Match, Regex, RegexBuilder};
use regex_syntax::hir::Hir;
use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError},
};

/// What a compiled pattern may weigh, in bytes. It is the regex crate's own default, written down because the
/// message names it.
const SIZE_LIMIT: usize = 10 << 20;

/// How many compiled patterns are kept. Past it all are dropped: compiling again takes about 50 µs.
const CACHE_LIMIT: usize = 512;

/// A compiled pattern. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Pattern(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    plain: Form,
    reach: Reach,
    /// What searches texts that have carriage returns: most patterns never meet one.
    over_returns: OnceLock<Form>,
}

#[derive(Debug)]
struct Form {
    regex: Regex,
    /// What every match begins with, of a pattern that can see the whole text.
    start: Option<Finder<'static>>,
}

/// The place where the search for the next match starts.
#[derive(Debug, Default)]
pub struct Next {
    at: usize,
    last_end: Option<usize>,
}

impl Next {
    /// The next match, which `find` looks for from a place on. An empty match right after another does not count.
    pub fn of<'t>(&mut self, mut find: impl FnMut(usize) -> Option<Match<'t>>) -> Option<Match<'t>> {
        let mut found = find(self.at)?;
        if found.is_empty() && self.last_end == Some(found.end()) {
            found = find(found.end() + 1)?;
        }
        (self.at, self.last_end) = (found.end(), Some(found.end()));
        Some(found)
    }
}

/// The reason why a pattern does not compile, or a group that it does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PatternError {
    /// A lower-case fragment that says what is wrong.
    pub message: String,
    /// A suggestion of what to write instead.
    pub hint: Option<String>,
    /// The place in the pattern, in bytes.
    pub at: Option<Range<usize>>,
}

/// The groups that make a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups {
    /// The figure; 0 is the whole match.
    pub value: usize,
    /// The unit, if the text has it.
    pub unit: Option<usize>,
    /// The row, if the figures form a table.
    pub key: Option<usize>,
}

/// A text as a pattern that matches it and nothing else.
pub fn literal(text: &str) -> String {
    regex::escape(text)
}

impl Form {
    fn new(regex: Regex, reach: Reach, hir: &Hir) -> Self {
        let start = if reach == Reach::Text { reach::start(hir) } else { None };
        Self { regex, start: start.map(|literal| Finder::new(&literal).into_owned()) }
    }
}

impl Pattern {
    /// Compiles a pattern with multi-line mode on, or takes it from the patterns compiled before.
    ///
    /// # Errors
    /// The reason, its place in the pattern and a hint.
    pub fn compile(text: &str) -> Result<Self, PatternError> {
        static CACHE: LazyLock<Mutex<HashMap<Box<str>, Pattern>>> = LazyLock::new(Mutex::default);
        // A panic elsewhere cannot leave the map half-written, so its poison means nothing.
        let cache = || CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cache().get(text) {
            return Ok(known.clone());
        }
        let fresh = Self::build(text)?;
        let mut cache = cache();
        if cache.len() >= CACHE_LIMIT {
            cache.clear();
        }
        cache.insert(text.into(), fresh.clone());
        Ok(fresh)
    }

    fn build(text: &str) -> Result<Self, PatternError> {
        hint::refuse_eaten_escapes(text)?;
        let hir = reach::parse(text).map_err(|error| hint::explain(text, &error))?;
        let built = RegexBuilder::new(text).multi_line(true).size_limit(SIZE_LIMIT).build();
        let regex = built.map_err(|error| hint::explain_build(&error))?;
        let reach = Reach::of(&hir);
        Ok(Self(Arc::new(Compiled { plain: Form::new(regex, reach, &hir), reach, over_returns: OnceLock::new() })))
    }

    fn form(&self, text: Haystack<'_>) -> &Form {
        if text.has_returns { self.0.over_returns.get_or_init(|| self.over_returns()) } else { &self.0.plain }
    }

    fn over_returns(&self) -> Form {
        // Nothing here depends on the text: a pattern that compiles has a form that does, a few times as large.
        let hir = reach::parse(self.as_str()).expect("a pattern that was compiled");
        let form = returns::form(&hir);
        let built = || RegexBuilder::new(&form.to_string()).size_limit(usize::MAX).nest_limit(u32::MAX).build();
        let regex = if form == hir { self.regex().clone() } else { built().expect("the form of a pattern that was compiled") };
        Form::new(regex, self.0.reach, &form)
    }

    /// The first place from `at` on where a match can begin. `None`: there is none.
    ///
    /// A search knows first where a match ends, and then looks backward for its beginning, as far as the start position allows:
    /// for `READ[\s\S]*?(\d+)` back to the end of the match before. A search that starts here has nothing to look back at.
    fn next_start(&self, text: Haystack<'_>, at: usize) -> Option<usize> {
        match &self.form(text).start {
            Some(literal) => literal.find(text.bytes.get(at..)?).map(|found| at + found),
            None => (at <= text.bytes.len()).then_some(at),
        }
    }

    fn first<'t>(
        &self,
        text: Haystack<'t>,
        mut at: usize,
        mut find: impl FnMut(&Regex, usize) -> Option<Match<'t>>,
    ) -> Option<Match<'t>> {
        loop {
            let found = find(&self.form(text).regex, self.next_start(text, at)?)?;
            // Only an empty match can begin there.
            if !text.is_within_newline(found.start()) {
                return Some(found);
            }
            at = found.start() + 1;
        }
    }

    /// Returns whether there is a match, which is known sooner than where it ends.
    pub fn is_match(&self, text: Haystack<'_>) -> bool {
        if text.has_returns {
            return self.find_at(text, 0).is_some();
        }
        self.next_start(text, 0).is_some_and(|start| self.regex().is_match_at(text.bytes, start))
    }

    /// The first match from `at` on.
    pub fn find_at<'t>(&self, text: Haystack<'t>, at: usize) -> Option<Match<'t>> {
        self.first(text, at, |regex, at| regex.find_at(text.bytes, at))
    }

    /// The first match from `at` on, with its groups, which are [`Self::locations`] of this text.
    pub fn captures_read_at<'t>(&self, groups: &mut CaptureLocations, text: Haystack<'t>, at: usize) -> Option<Match<'t>> {
        self.first(text, at, |regex, at| regex.captures_read_at(groups, text.bytes, at))
    }

    pub fn locations(&self, text: Haystack<'_>) -> CaptureLocations {
        self.form(text).regex.capture_locations()
    }

    /// All matches, those of the regex' own `find_iter` in the text with newlines alone.
    pub fn find_iter<'p, 't: 'p>(&'p self, text: Haystack<'t>) -> impl Iterator<Item = Match<'t>> + 'p {
        let mut next = Next::default();
        std::iter::from_fn(move || next.of(|at| self.find_at(text, at)))
    }

    /// The regex for texts without carriage returns.
    pub fn regex(&self) -> &Regex {
        &self.0.plain.regex
    }

    pub fn as_str(&self) -> &str {
        self.regex().as_str()
    }

    /// Returns whether a match can span lines or depend on where the text begins and ends.
    pub fn reach(&self) -> Reach {
        self.0.reach
    }

    /// The group that a tag means: a name or a number, 0 for the whole match.
    ///
    /// # Errors
    /// There is no such group; the hint names those there are.
    pub fn group(&self, tag: &str) -> Result<usize, PatternError> {
        let found = match tag.parse::<usize>() {
            Ok(number) => (number < self.regex().captures_len()).then_some(number),
            Err(_) => self.named(tag),
        };
        found.ok_or_else(|| PatternError {
            message: format!("the pattern has no group `{tag}`"),
            hint: Some(match self.regex().captures_len() - 1 {
                0 => "it has no groups: put the figure in parentheses, or leave the tag out".to_owned(),
                _ => format!("it has {}", self.list_groups()),
            }),
            at: None,
        })
    }

    /// The groups of a figure. Without a tag the value is group `value`, else the only named group that is neither
    /// `unit` nor `key`, else the first group that is neither, else the whole match.
    ///
    /// # Errors
    /// There is no group of that tag.
    pub fn groups(&self, tag: Option<&str>) -> Result<Groups, PatternError> {
        let (unit, key) = (self.named("unit"), self.named("key"));
        let value = match tag {
            Some(tag) => self.group(tag)?,
            None => self.named("value").unwrap_or_else(|| self.default_value(unit, key)),
        };
        Ok(Groups { value, unit, key })
    }

    /// Returns whether a group may match the empty text; 0 is the whole match.
    pub fn group_can_be_empty(&self, group: usize) -> bool {
        reach::parse(self.as_str()).is_ok_and(|hir| reach::group_can_be_empty(&hir, group))
    }

    fn default_value(&self, unit: Option<usize>, key: Option<usize>) -> usize {
        let free = || (1..self.regex().captures_len()).filter(|n| ![unit, key].contains(&Some(*n)));
        let names: Vec<_> = self.regex().capture_names().collect();
        let mut with_name = free().filter(|n| names[*n].is_some());
        match (with_name.next(), with_name.next()) {
            (Some(only), None) => only,
            _ => free().next().unwrap_or(0),
        }
    }

    fn named(&self, name: &str) -> Option<usize> {
        self.regex().capture_names().position(|candidate| candidate == Some(name))
    }

    fn list_groups(&self) -> String {
        let groups = self.regex().capture_names().enumerate().skip(1);
        groups.map(|(n, name)| name.map_or_else(|| n.to_string(), |name| format!("`{name}`"))).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pattern, its tag, and the groups of the value, the unit and the key.
    type Row = (&'static str, Option<&'static str>, usize, Option<usize>, Option<usize>);

    fn pattern(text: &str) -> Pattern {
        Pattern::compile(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn the_same_text_is_compiled_once() {
        assert!(Arc::ptr_eq(&pattern("compiled (once)").0, &pattern("compiled (once)").0));
    }

    #[test]
    fn lines_have_their_own_beginning_and_end() {
        assert_eq!(pattern("^b$").regex().find_iter(b"a\nb\nc\nb").count(), 2);
        assert!(!pattern("a.b").regex().is_match(b"a\nb"));
    }

    #[test]
    fn the_value_is_the_tag_else_value_else_the_only_name_else_the_first_group() {
        let rows: [Row; 14] = [
            (r"\d+", None, 0, None, None),
            (r"= (\d+)", None, 1, None, None),
            (r"(a) (\d+)", None, 1, None, None),
            (r"(a) (?<speed>\d+)", None, 2, None, None),
            (r"(a) (?<value>\d+) (?<other>b)", None, 2, None, None),
            (r"(?<a>a) (?<b>\d+)", None, 1, None, None),
            (r"(?<value>\d+) (?<unit>\S+)", None, 1, Some(2), None),
            (r"(?<unit>\S+) (\d+)", None, 2, Some(1), None),
            (r"^(?<key>\d+)\s+(?<value>\S+)$", None, 2, None, Some(1)),
            (r"^(?<key>\d+)\s+(\S+)\s+(\S+)$", None, 2, None, Some(1)),
            (r"(?<unit>GB)", None, 0, Some(1), None),
            (r"(a) (\d+)", Some("2"), 2, None, None),
            (r"(a) (?<b>\d+) (?<value>c)", Some("b"), 2, None, None),
            (r"(a) (\d+)", Some("0"), 0, None, None),
        ];
        for (text, tag, value, unit, key) in rows {
            assert_eq!(pattern(text).groups(tag), Ok(Groups { value, unit, key }), "{text} {tag:?}");
        }
    }

    #[test]
    fn a_tag_that_does_not_exist_is_answered_with_those_that_do() {
        let say = |text: &str, tag: &str| {
            let error = pattern(text).groups(Some(tag)).unwrap_err();
            format!("{error}: {}", error.hint.clone().unwrap_or_default())
        };
        insta::assert_snapshot!(say(r"(?<speed>\d+) (\S+)", "vlaue"), @"the pattern has no group `vlaue`: it has `speed`, 2");
        insta::assert_snapshot!(say(r"(\d+)", "2"), @"the pattern has no group `2`: it has 1");
        insta::assert_snapshot!(say(r"\d+", "1"), @"the pattern has no group `1`: it has no groups: put the figure in parentheses, or leave the tag out");
    }
}

//! Selects the results that a question is about.

use super::{SpecError, split};
use crate::{
    case::{CaseName, matcher::Matcher},
    night::Night,
};
use muster_text::{
    expr::{Arithmetic, Expr},
    moment::{Moment, Period},
    time::Timestamp,
};
use std::{fmt, sync::Arc};

/// The results that a question is about: a part holds for all of the question.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// One of these sessions: a beginning of an id, or `latest`. Empty: any.
    pub sessions: Vec<String>,
    pub when: When,
    pub filters: Filters,
    /// The condition on a session, after `?`.
    pub condition: Option<Arc<Expr>>,
    text: String,
}

/// The time when a session has started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum When {
    #[default]
    Always,
    Period(Period),
    /// A night from the first to the last of these.
    Nights {
        first: Night,
        last: Night,
    },
    LastNight,
}

/// The sessions of a selection, with its times in numbers. All of it must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Range {
    /// Beginnings of ids, or `latest`. Empty: any.
    pub ids: Vec<String>,
    /// The period of the start: its end does not belong to it.
    pub started: Option<(Timestamp, Timestamp)>,
    /// Both ends belong to it.
    pub nights: Option<(Night, Night)>,
    /// The night is that of the newest session.
    pub is_last_night: bool,
}

impl Range {
    /// Returns whether a session lies in it, by its times.
    pub fn holds(&self, started: Timestamp, night: Option<Night>) -> bool {
        self.started.is_none_or(|(from, until)| from <= started && started < until)
            && self.nights.is_none_or(|(first, last)| night.is_some_and(|night| first <= night && night <= last))
    }
}

/// The conditions on a case. Of several filters of one kind, one must hold; of all kinds, each.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    pub systems: Vec<Filter>,
    pub partitions: Vec<Filter>,
    pub tags: Vec<Filter>,
    pub checks: Vec<Matcher>,
    /// The cases that a command names. A case has to match one of these and one of `checks`; an empty list admits all.
    pub cases: Vec<Matcher>,
}

/// A whole word, or a regex that begins with `~`.
#[derive(Debug, Clone)]
pub struct Filter {
    text: String,
    regex: Option<regex::Regex>,
}

impl PartialEq for Selection {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Selection {
    /// Returns whether it leaves out no session.
    pub fn is_everything(&self) -> bool {
        let Self { sessions, when, filters, condition, text: _ } = self;
        sessions.is_empty() && *when == When::Always && filters.is_empty() && condition.is_none()
    }

    /// Reads terms, and a condition behind `?`.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let mut selection = Self { text: text.to_owned(), ..Self::default() };
        let parts = split(text, '?');
        // What follows the first one is an expression, which may have more of them.
        let terms = parts.first().copied().unwrap_or_default();
        if let Some(condition) = text.get(terms.len() + 1..).filter(|_| parts.len() > 1) {
            let expr = Expr::compile(condition.trim(), Arithmetic::Exact).map_err(|error| {
                let hint = error.hint.as_deref().map_or_else(String::new, |hint| format!(" ({hint})"));
                SpecError(format!("the condition `{}`: {error}{hint}", condition.trim()))
            })?;
            selection.condition = Some(Arc::new(expr));
        }
        for term in split(terms, ',').into_iter().map(str::trim) {
            if term.is_empty() && (parts.len() > 1 || text.is_empty()) && terms.trim().is_empty() {
                continue;
            }
            selection.add(term)?;
        }
        Ok(selection)
    }

    fn add(&mut self, term: &str) -> Result<(), SpecError> {
        if let Some((key, value)) = term.split_once('=') {
            return self.add_filter(key.trim(), value.trim(), term);
        }
        if term == "last-night" {
            return self.set_when(When::LastNight, term);
        }
        if let Some((first, last)) = term.split_once("..") {
            let (first, last) = (night(first)?, night(last)?);
            if last < first {
                return Err(SpecError(format!("the nights {term} end before they begin")));
            }
            return self.set_when(When::Nights { first, last }, term);
        }
        if term.contains(':') {
            let period = Period::parse(term).map_err(SpecError)?;
            return self.set_when(When::Period(period), term);
        }
        if let Ok(day) = Night::parse(term) {
            return self.set_when(When::Nights { first: day, last: day }, term);
        }
        if let Some(why) = misread(term) {
            return Err(SpecError(why));
        }
        let is_id = !term.is_empty() && term.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        if !is_id {
            return Err(SpecError(format!(
                "`{term}` selects nothing: write a session, `latest`, a night (2026-11-24), nights (2026-11-01..2026-11-14), a period \
                 (now-1w:now), system=, partition=, tag= or check="
            )));
        }
        self.sessions.push(term.to_owned());
        Ok(())
    }

    fn add_filter(&mut self, key: &str, value: &str, term: &str) -> Result<(), SpecError> {
        if value.is_empty() {
            return Err(SpecError(format!("`{term}` has no value")));
        }
        match key {
            "night" if value == "last" => self.set_when(When::LastNight, term)?,
            "night" => {
                let day = night(value)?;
                self.set_when(When::Nights { first: day, last: day }, term)?;
            }
            "system" => self.filters.systems.push(Filter::parse(value)?),
            "partition" => self.filters.partitions.push(Filter::parse(value)?),
            "tag" => self.filters.tags.push(Filter::parse(value)?),
            "check" => self.filters.checks.push(Matcher::parse(value, false).map_err(SpecError)?),
            _ => {
                let known = ["night", "system", "partition", "tag", "check"];
                let near = muster_text::diagnostic::nearest(key, known);
                let near = near.map_or_else(String::new, |near| format!(": did you mean `{near}`?"));
                return Err(SpecError(format!("`{key}` in `{term}` is none of {}{near}", known.join(", "))));
            }
        }
        Ok(())
    }

    fn set_when(&mut self, when: When, term: &str) -> Result<(), SpecError> {
        if self.when != When::Always {
            return Err(SpecError(format!("`{term}` in `{}`: only one night or period can be chosen", self.text)));
        }
        self.when = when;
        Ok(())
    }

    /// Returns the sessions that are meant; `at` gives a period its times.
    ///
    /// # Errors
    /// A period that ends before it begins.
    pub fn range(&self, at: impl FnOnce(&Period) -> Result<(Timestamp, Timestamp), String>) -> Result<Range, SpecError> {
        let mut range = Range { ids: self.sessions.clone(), ..Range::default() };
        match &self.when {
            When::Always => {}
            When::Period(period) => range.started = Some(at(period).map_err(SpecError)?),
            When::Nights { first, last } => range.nights = Some((*first, *last)),
            When::LastNight => range.is_last_night = true,
        }
        Ok(range)
    }

    /// The selection with these filters, too.
    #[must_use]
    pub fn and(mut self, filters: &Filters) -> Self {
        self.filters.extend(filters);
        self
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.text.is_empty() { "everything" } else { &self.text })
    }
}

impl Filters {
    pub fn is_empty(&self) -> bool {
        let Self { systems, partitions, tags, checks, cases } = self;
        systems.is_empty() && partitions.is_empty() && tags.is_empty() && checks.is_empty() && cases.is_empty()
    }

    /// The filters of a case's name alone.
    #[must_use]
    pub fn without_tags(&self) -> Self {
        Self { tags: Vec::new(), ..self.clone() }
    }

    fn extend(&mut self, other: &Self) {
        let Self { systems, partitions, tags, checks, cases } = other;
        self.systems.extend(systems.iter().cloned());
        self.partitions.extend(partitions.iter().cloned());
        self.tags.extend(tags.iter().cloned());
        self.checks.extend(checks.iter().cloned());
        self.cases.extend(cases.iter().cloned());
    }

    /// Returns whether a case with these tags is meant.
    pub fn admit(&self, name: &CaseName, tags: &[String]) -> bool {
        let any = |filters: &[Filter], texts: &[&str]| {
            filters.is_empty() || filters.iter().any(|filter| texts.iter().any(|text| filter.admits(text)))
        };
        let is_named = |names: &[Matcher]| names.is_empty() || names.iter().any(|one| one.matches(name));
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        any(&self.systems, &[&name.system, &name.system_partition()])
            && any(&self.partitions, &[&name.partition, &name.system_partition()])
            && any(&self.tags, &tags)
            && is_named(&self.checks)
            && is_named(&self.cases)
    }
}

impl Filter {
    /// Reads a word, or `~REGEX`.
    ///
    /// # Errors
    /// A regex that is none.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let regex = text.strip_prefix('~').map(|pattern| {
            regex::Regex::new(pattern).map_err(|error| {
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
                SpecError(format!("`{pattern}` is not a regex: {why}"))
            })
        });
        Ok(Self { text: text.to_owned(), regex: regex.transpose()? })
    }

    /// As it was written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The word, if it is one.
    pub fn word(&self) -> Option<&str> {
        self.regex.is_none().then_some(&*self.text)
    }

    pub fn admits(&self, text: &str) -> bool {
        self.regex.as_ref().map_or(self.text == text, |regex| regex.is_match(text))
    }
}

/// Why what may be the beginning of an id was meant to be a night or a period.
fn misread(term: &str) -> Option<String> {
    if term.starts_with("now") && !term[3..].starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_') {
        let from = if term == "now" { "now-1d" } else { term };
        let is_moment = Moment::parse(term).map(|_| format!("`{term}` is a moment: a period is `{from}:now`"));
        return Some(is_moment.unwrap_or_else(|why| why));
    }
    let has_digits = |part: &str| part.bytes().all(|one| one.is_ascii_digit());
    let is_like_a_day = term.split('-').map(str::len).eq([4, 2, 2]) && term.split('-').all(has_digits);
    is_like_a_day.then(|| format!("`{term}` is not a day of the calendar"))
}

fn night(text: &str) -> Result<Night, SpecError> {
    Night::parse(text)
        .map_err(|_| SpecError(format!("`{}` is not a night: write the date of its evening, as in 2026-11-24", text.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        match Selection::parse(text) {
            Err(error) => format!("error: {error}"),
            Ok(selection) => {
                let Filters { systems, partitions, tags, checks, cases: _ } = &selection.filters;
                let words = |filters: &[Filter]| filters.iter().map(|filter| filter.text.clone()).collect::<Vec<_>>().join("|");
                let checks: Vec<String> = checks.iter().map(ToString::to_string).collect();
                let when = match &selection.when {
                    When::Always => "always".to_owned(),
                    When::LastNight => "last night".to_owned(),
                    When::Period(period) => format!("period {period}"),
                    When::Nights { first, last } => format!("nights {first} to {last}"),
                };
                let condition = selection.condition.as_ref().map_or("-", |expr| expr.text());
                format!(
                    "sessions [{}] {when} system [{}] partition [{}] tag [{}] check [{}] if {condition}",
                    selection.sessions.join("|"),
                    words(systems),
                    words(partitions),
                    words(tags),
                    checks.join("|")
                )
            }
        }
    }

    #[test]
    fn selections_are_read() {
        let texts = [
            "",
            "latest",
            "20261124-0715,20261125-07",
            "2026-11-24",
            "night=2026-11-24",
            "last-night",
            "2026-11-01..2026-11-14",
            "now-1w:now",
            "20261101:20261115T0600, tag=nightly , system=eidf",
            "check=^triad,partition=~gpu",
            "?num_failures > 0",
            r#"now-1w:now?version == "4.10" && user != "a,b?c""#,
            "4d2a9f5e-1c2b-4e8f-9d3a-0123456789ab",
        ];
        let lines: Vec<String> = texts.iter().map(|text| format!("{text:<50} {}", read(text))).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn what_selects_nothing_is_refused_with_what_to_write() {
        let texts = [
            ",",
            "latest,",
            "a b",
            "tga=nightly",
            "tag=",
            "tag=~(",
            "check=[",
            "2026-11-24,now-1d:now",
            "2026-11-14..2026-11-01",
            "2026-11-14..",
            "night=today",
            "now:yesterday",
            "now?num_failures >",
            "latest?x = 1",
            "2026-13-01",
            "now-1w",
            "now",
            "now-1z",
        ];
        let lines: Vec<String> = texts.iter().map(|text| read(text)).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn filters_of_one_kind_are_alternatives() {
        let name = CaseName {
            display: "triad %size=2G".into(),
            check: "triad".into(),
            system: "eidf".into(),
            partition: "gpu".into(),
            ..CaseName::default()
        };
        let admits = |text: &str| Selection::parse(text).expect(text).filters.admit(&name, &["nightly".to_owned()]);
        let rows = [
            ("", true),
            ("system=eidf", true),
            ("system=eid", false),
            ("system=~eid", true),
            ("system=x,system=eidf", true),
            ("partition=gpu", true),
            ("partition=eidf:gpu", true),
            ("tag=nightly", true),
            ("tag=night", false),
            ("tag=nightly,system=x", false),
            ("check=%size=2G", true),
            ("check=!triad", false),
        ];
        for (text, is_meant) in rows {
            assert_eq!(admits(text), is_meant, "{text}");
        }
    }

    #[test]
    fn the_cases_of_a_command_and_other_filters_narrow_each_other() {
        let name = |display: &str| CaseName { display: display.into(), ..CaseName::default() };
        let matcher = |text: &str| Matcher::parse(text, false).expect("a regex");
        let filters = Filters { cases: vec![matcher("copy")], checks: vec![matcher("mib=8")], ..Filters::default() };
        let admitted = ["copy %mib=8", "copy %mib=16", "scale %mib=8"].map(|display| filters.admit(&name(display), &[]));
        assert_eq!(admitted, [true, false, false]);
    }
}

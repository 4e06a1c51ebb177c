//! Judging: a finished job's text and exits, held against the rules of its case.
//!
//! ```text
//! Rules ---compile---> searches ---scan(Stdout)---> answers, figures
//! Ending --exits--.       answers --sanity--.        figures --performance--.
//!                  `--------------------------`---------------------------------> conclude --> Judgement
//! ```
//! Everything is looked at before anything is concluded, so that a cause can name all that is wrong, and figures are
//! read before sanity is judged, so that an `assert` may use them. Nothing here knows the time, and nothing stops by itself: the
//! caller's [`Monitor`] is informed of what is looked at.

mod conclude;
mod evaluate;
mod exits;
mod performance;
mod position;
mod sanity;
mod search;
mod views;
mod words;

#[cfg(test)]
mod tests;

use crate::{
    job::{scheduler::Ending, stdout::Stdout},
    result::{Fault, Outcome, Phase},
    rules::{
        Rules,
        perf::{Measurement, PerfVariable, Source},
    },
};
use evaluate::Evaluator;
use muster_text::pattern::Pattern;
pub use position::{Monitor, Position, TOO_LONG};
pub use search::lines;
use search::{Accumulator, Search, figures::Figures, matches::Matches};
use serde::{Deserialize, Serialize};
use views::Views;

/// The findings of the judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    pub outcome: Outcome,
    /// The phase that decided it.
    pub phase: Phase,
    /// One sentence, for every outcome but a pass.
    pub cause: Option<String>,
    /// The figures, in the order of the variables. There are none when the exit status or a sanity item failed.
    pub measurements: Vec<Measurement>,
    /// One line each; they do not affect the outcome.
    pub warnings: Vec<String>,
}

/// Judges a job that ended by itself, and reports to `monitor` what it looks at. It blocks: a log of 1 GiB takes seconds.
pub fn judge(rules: &Rules, stdout: &Stdout, ending: &Ending, monitor: &Monitor<'_>) -> Judgement {
    judge_in_blocks(rules, stdout, ending, monitor, search::BLOCK)
}

/// [`judge`], in blocks of this many bytes: tests and the fuzzer compare the two.
pub fn judge_in_blocks(rules: &Rules, stdout: &Stdout, ending: &Ending, monitor: &Monitor<'_>, block: usize) -> Judgement {
    let compiled = Views::new(rules, stdout).and_then(|views| Ok((compile(rules, &views, monitor)?, views)));
    let ((mut searches, places), views) = match compiled {
        Ok(compiled) => compiled,
        Err((phase, why)) => return Judgement::error(phase, why),
    };
    search(&mut searches, &places, &views, monitor, block);
    let of_sanity = places.iter().filter(|place| matches!(place, Position::Sanity(..))).count();
    let figures = searches.split_off(of_sanity).into_iter().filter_map(Search::into_figures);
    let answers = searches.into_iter().filter_map(Search::into_answer);
    let mut evaluator = Evaluator::new(rules, &monitor.effort);
    let readings = performance::read(rules, &views, figures, &mut evaluator, monitor);
    let sanity = sanity::look(&rules.sanity, answers, &evaluator, &views, monitor);
    let exit = exits::failure(&rules.sanity, ending);
    let performance = (exit.is_none() && sanity.failures.is_empty()).then(|| performance::compare(rules, &views, readings));
    conclude::conclude(rules, stdout, exit, sanity, performance)
}

fn search(searches: &mut [Search], places: &[Position], views: &Views, monitor: &Monitor<'_>, block: usize) {
    let at = |search: usize, section: usize| match places.get(search) {
        Some(Position::Sanity(item, _)) => Position::Sanity(*item, Some(section)),
        Some(Position::Variable(variable, _)) => Position::Variable(*variable, Some(section)),
        _ => Position::Rules,
    };
    let on_progress = |search, section| (monitor.report)(at(search, section));
    for (place, text) in views.texts().enumerate() {
        search::scan((place, text), searches, block, &on_progress);
    }
}

impl Judgement {
    fn error(phase: Phase, cause: String) -> Self {
        Self { outcome: Outcome::Error(Fault::Config), phase, cause: Some(cause), measurements: Vec::new(), warnings: Vec::new() }
    }
}

/// All searches of a case, sanity's first, each with its place in the rules. The files were checked when they were loaded,
/// but a placeholder may have put anything into a pattern since.
fn compile(rules: &Rules, views: &Views, monitor: &Monitor<'_>) -> Result<(Vec<Search>, Vec<Position>), (Phase, String)> {
    let explain = |phase: Phase, pattern: &str, error: &dyn std::fmt::Display| {
        (phase, format!("pattern {}: {error}", words::quote(pattern)))
    };
    let (mut searches, mut places) = (Vec::new(), Vec::new());
    for (number, item) in rules.sanity.iter().enumerate() {
        let Some((text, question)) = sanity::question(&item.claim) else { continue };
        let place = Position::Sanity(number, None);
        (monitor.report)(place);
        let pattern = Pattern::compile(text).map_err(|error| explain(Phase::Sanity, text, &error))?;
        let view = views.place(item.file.as_deref());
        searches.push(Search { pattern, view, accumulator: Accumulator::Matches(Matches::new(question)) });
        places.push(place);
    }
    for (number, variable) in rules.perf_variables.iter().enumerate() {
        if let Source::Pattern { pattern: text, .. } = &variable.source {
            let place = Position::Variable(number, None);
            (monitor.report)(place);
            let view = views.place(variable.file.as_deref());
            let search = figures(variable, view).map_err(|error| explain(Phase::Performance, text, &error))?;
            searches.extend(search);
            places.push(place);
        }
    }
    Ok((searches, places))
}

fn figures(variable: &PerfVariable, view: usize) -> Result<Option<Search>, muster_text::pattern::PatternError> {
    let Source::Pattern { pattern, tag, pick } = &variable.source else { return Ok(None) };
    let pattern = Pattern::compile(pattern)?;
    let groups = pattern.groups(tag.as_deref())?;
    let figures = Figures::new(&pattern, groups, &variable.unit, *pick, variable.per_section);
    Ok(Some(Search { pattern, view, accumulator: Accumulator::Figures(Box::new(figures)) }))
}

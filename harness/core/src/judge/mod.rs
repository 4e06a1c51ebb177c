//! Judging: a finished job's text and exits, held against the rules of its case.
//!
//! ```text
//! Rules ---compile---> searches ---scan(Stdout)---> answers, figures
//! Ending --exits--.       answers --sanity--.        figures --performance--.
//!                  `--------------------------`---------------------------------> conclude --> Judgement
//! ```
//! Everything is looked at before anything is concluded, so that a cause can name all that is wrong, and figures are
//! read before sanity is judged, so that an `assert` may use them. Nothing here knows the time; the caller's `expired`
//! does.

mod conclude;
mod evaluate;
mod exits;
mod figures;
mod matches;
mod performance;
mod sanity;
mod scan;
mod views;
mod words;

#[cfg(test)]
mod tests;

use crate::{
    pattern::Pattern,
    perf::{Measurement, PerfVariable, Source},
    result::{Fault, Outcome, Phase},
    rules::Rules,
    scheduler::Ending,
    stdout::Stdout,
};
use evaluate::Evaluator;
use figures::Figures;
use matches::Matches;
use scan::{Fold, Interrupted, Search, Watch};
use views::Views;

/// What the judge found.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// How the case ended.
    pub outcome: Outcome,
    /// The phase that decided it.
    pub phase: Phase,
    /// One sentence, for every outcome but a pass.
    pub cause: Option<String>,
    /// The figures, in the order of the variables. There are none when the exit status or a sanity item failed.
    pub measurements: Vec<Measurement>,
    /// Things worth a line that did not decide anything.
    pub warnings: Vec<String>,
}

/// Judges a job that ended by itself.
///
/// `expired` is asked again and again; once it says so, judging stops and the case is `error{config}`. One match cannot
/// be interrupted, nor can an expression. Call it where blocking is allowed: a log of 1 GiB takes seconds.
pub fn judge(rules: &Rules, stdout: &Stdout, ending: &Ending, expired: &dyn Fn() -> bool) -> Judgement {
    judge_in_blocks(rules, stdout, ending, expired, scan::BLOCK)
}

fn judge_in_blocks(rules: &Rules, stdout: &Stdout, ending: &Ending, expired: &dyn Fn() -> bool, block: usize) -> Judgement {
    let compiled = Views::new(rules, stdout).and_then(|views| Ok((compile(rules, &views)?, views)));
    let ((mut searches, sanity_searches), views) = match compiled {
        Ok(compiled) => compiled,
        Err((phase, why)) => return Judgement::error(phase, why),
    };
    let mut watch = Watch::new(expired);
    for (place, text) in views.texts().enumerate() {
        if let Err(at) = scan::scan((place, text), &mut searches, block, &mut watch) {
            return too_long(&at, &searches, sanity_searches, text);
        }
    }
    let figures = searches.split_off(sanity_searches).into_iter().filter_map(Search::into_figures);
    let answers = searches.into_iter().filter_map(Search::into_answer);
    let mut evaluator = Evaluator::new(rules);
    let readings = performance::read(rules, &views, figures, &mut evaluator);
    let sanity = sanity::look(&rules.sanity, answers, &evaluator, &views);
    if watch.ask().is_err() {
        return Judgement::error(Phase::Sanity, format!("{TOO_LONG}: the expressions took it"));
    }
    let exit = exits::failure(&rules.sanity, ending);
    let performance = (exit.is_none() && sanity.failures.is_empty()).then(|| performance::hold(rules, &views, readings));
    conclude::conclude(rules, stdout, exit, sanity, performance)
}

/// [`judge`], in blocks of this many bytes: the fuzzer holds the two to each other.
#[cfg(fuzzing)]
pub fn judge_in_small_blocks(rules: &Rules, stdout: &Stdout, ending: &Ending, block: usize) -> Judgement {
    judge_in_blocks(rules, stdout, ending, &|| false, block)
}

const TOO_LONG: &str = "judging took longer than judge_limit";

impl Judgement {
    fn error(phase: Phase, cause: String) -> Self {
        Self { outcome: Outcome::Error(Fault::Config), phase, cause: Some(cause), measurements: Vec::new(), warnings: Vec::new() }
    }
}

/// All searches of a case, sanity's first, and how many are sanity's. The files were checked when they were loaded, but
/// a placeholder may have put anything into a pattern since.
fn compile(rules: &Rules, views: &Views) -> Result<(Vec<Search>, usize), (Phase, String)> {
    let explain = |phase: Phase, pattern: &str, error: &dyn std::fmt::Display| {
        (phase, format!("pattern {}: {error}", words::quote(pattern.as_bytes())))
    };
    let mut searches = Vec::new();
    let questions = rules.sanity.iter().filter_map(|item| Some((item.file.as_deref(), sanity::question(&item.claim)?)));
    for (file, (text, question)) in questions {
        let pattern = Pattern::compile(text).map_err(|error| explain(Phase::Sanity, text, &error))?;
        searches.push(Search { pattern, view: views.place(file), fold: Fold::Matches(Matches::new(question)) });
    }
    let of_sanity = searches.len();
    for variable in &rules.perf_variables {
        if let Source::Pattern { pattern: text, .. } = &variable.source {
            let view = views.place(variable.file.as_deref());
            let search = figures(variable, view).map_err(|error| explain(Phase::Performance, text, &error))?;
            searches.extend(search);
        }
    }
    Ok((searches, of_sanity))
}

fn figures(variable: &PerfVariable, view: usize) -> Result<Option<Search>, crate::pattern::PatternError> {
    let Source::Pattern { pattern, tag, pick } = &variable.source else { return Ok(None) };
    let pattern = Pattern::compile(pattern)?;
    let groups = pattern.groups(tag.as_deref())?;
    let figures = Figures::new(&pattern, groups, &variable.unit, *pick, variable.per_section);
    Ok(Some(Search { pattern, view, fold: Fold::Figures(Box::new(figures)) }))
}

fn too_long(at: &Interrupted, searches: &[Search], of_sanity: usize, stdout: &Stdout) -> Judgement {
    let phase = if at.search < of_sanity { Phase::Sanity } else { Phase::Performance };
    let pattern = searches.get(at.search).map_or_else(String::new, |search| words::quote_pattern(&search.pattern));
    let section = stdout.sections().get(at.section).map_or_else(String::new, |section| section.origin.title());
    Judgement::error(phase, format!("{TOO_LONG}: it was searching {section} for {pattern}"))
}

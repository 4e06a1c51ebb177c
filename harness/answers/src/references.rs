//! References from stored figures: bounds that a healthy machine keeps.

use crate::{
    Asked, Unanswered,
    variables::{are_variables, is_variable},
};
use muster_core::query::{
    answers::Suggestion,
    figures::{FigureSet, Run, Series},
    remarks::{Remark, RemarkKind},
    spec::Selection,
};
use muster_judge::{
    night::{Change, Night, Settings},
    suggest::{SuggestSettings, other_levels, suggest},
};
use muster_store::{Parameters, Which};
use muster_text::shell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// References, and what a reader has to know of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggested {
    /// The suggestions, ordered by metric.
    pub suggestions: Vec<Suggestion>,
    /// Sentences that a reader has to know.
    pub notes: Vec<String>,
}

/// Suggests references from the runs of a selection that have passed.
///
/// # Errors
/// [`Unanswered::Unknown`] if none of them has a figure, or if one of these variables is none of theirs.
pub async fn references(
    asked: &Asked<'_>,
    selection: &Selection,
    variables: &[String],
    settings: SuggestSettings,
) -> Result<Suggested, Unanswered> {
    let sessions = asked.sessions(selection).await?;
    asked.are_placed(&sessions)?;
    let mut set = asked.reader.figures(&sessions, &selection.filters, Which::Passed).await?;
    if set.series.is_empty() {
        asked.are_known(&selection.filters).await?;
        return Unanswered::unknown(format!("no case in `{selection}` that passed has a figure"));
    }
    are_variables(&selection.to_string(), variables, set.series.values().map(|series| &series.metric))?;
    set.series.retain(|_, series| is_variable(&series.metric, variables));
    let (parameters, remarks) = (asked.reader.parameters(&sessions).await?, asked.reader.remarks().await?);
    let mut known = Known { parameters, remarks, changes: HashMap::new() };
    let mut notes = Vec::new();
    for system in set.series.values().map(|series| &series.metric.system).collect::<BTreeSet<_>>() {
        known.changes.extend(asked.reader.changes_before(system, Night::MAX).await?);
        let judged = asked.reader.judged(system).await?.until.unwrap_or(Night::MIN);
        let mut runs = set.series.values().filter(|series| series.metric.system == *system).flat_map(|series| &series.runs);
        if runs.any(|run| judged < run.night) {
            let night = asked.reader.database().command(&format!("night --system {}", shell::quote(system)));
            notes.push(format!(
                "not all of these nights of `{system}` are judged, and a regression in them counts: `{night}` judges them"
            ));
        }
    }
    Ok(Suggested { suggestions: suggestions(&set, &known, settings), notes })
}

/// What is known beside the figures.
struct Known {
    parameters: BTreeMap<String, Parameters>,
    remarks: Vec<Remark>,
    /// By the number of the metric.
    changes: HashMap<i64, Vec<Change>>,
}

fn suggestions(set: &FigureSet, known: &Known, settings: SuggestSettings) -> Vec<Suggestion> {
    let of_series = |(id, series): (&i64, &Series)| {
        let remarks: Vec<&Remark> = known.remarks.iter().filter(|remark| remark.is_about(&series.metric)).collect();
        let is_said = |kind, night: Night| remarks.iter().any(|remark| remark.kind == kind && remark.covers(night));
        // What was dismissed ends with its change.
        let faults = [RemarkKind::Maintenance, RemarkKind::Known];
        let is_sound = |run: &&Run| !faults.iter().any(|kind| is_said(*kind, run.night));
        let last = set.bases.get(series.runs.iter().rfind(is_sound).or(series.runs.last())?.basis)?;
        // Figures of another check or unit are no figures of this one.
        let is_of_it = |run: &&Run| set.bases.get(run.basis).is_some_and(|basis| basis.agrees_with(last));
        let mut runs: Vec<Run> = series.runs.iter().filter(is_of_it).filter(|run| run.value.is_finite()).copied().collect();
        let said = faults.map(|kind| leave_out(&mut runs, kind.as_str(), |night| is_said(kind, night)));
        let changes = known.changes.get(id).map_or(&[][..], Vec::as_slice);
        let min_effect = series.min_effect.unwrap_or(Settings::default().min_effect);
        let found = other_levels(changes, series.direction, min_effect).into_iter().filter_map(|(word, change, nights)| {
            leave_out(&mut runs, &format!("{word} ({change})"), |night| nights.contains(&night))
        });
        let left_out = said.into_iter().flatten().chain(found).collect();
        let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
        let parameters = known.parameters.get(&series.metric.case).cloned();
        let (check, parameters) = parameters.unwrap_or_else(|| (series.metric.case.clone(), Vec::new()));
        Some(Suggestion {
            metric: series.metric.clone(),
            check,
            parameters,
            unit: last.unit.clone(),
            count: values.len(),
            nights: runs.iter().map(|run| run.night).collect::<BTreeSet<_>>().len(),
            left_out,
            reference: suggest(&values, series.direction, settings),
        })
    };
    let mut all: Vec<Suggestion> = set.series.iter().filter_map(of_series).collect();
    all.sort_by(|a, b| a.metric.cmp(&b.metric));
    all
}

/// Leaves out the runs of some nights, and says which.
fn leave_out(runs: &mut Vec<Run>, why: &str, is_meant: impl Fn(Night) -> bool) -> Option<String> {
    let (out, others): (Vec<Run>, Vec<Run>) = runs.iter().copied().partition(|run| is_meant(run.night));
    *runs = others;
    let [first, last] = [out.first()?, out.last()?].map(|run| run.night);
    Some(format!("left out, {why}: {} run(s) of {first}..{last}", out.len()))
}

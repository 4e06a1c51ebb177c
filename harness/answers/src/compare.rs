//! Two sets of sessions, variable by variable.

use crate::{Asked, Unanswered};
use muster_core::query::{
    answers::{Compared, SampleUnit, Sides},
    figures::FigureSet,
    pairs::{pair, sample_unit},
    remarks::RemarkKind,
    spec::Selection,
};
use muster_judge::compare::{self as judge, CompareSettings};
use muster_store::Which;

/// Compares the figures of two selections. `per`: what one value of a sample is; without it, what both sides have enough of decides.
///
/// # Errors
/// [`Unanswered::Unknown`] if a side has no session, or if their figures cannot be compared.
pub async fn compare(
    asked: &Asked<'_>,
    old: &Selection,
    new: &Selection,
    per: Option<SampleUnit>,
) -> Result<(Compared, Sides), Unanswered> {
    let (old_set, new_set) = (figures(asked, old).await?, figures(asked, new).await?);
    let per = per.unwrap_or_else(|| sample_unit(&old_set, &new_set));
    let pairs = pair(&old_set, &new_set, per).map_err(|error| Unanswered::Unknown(error.to_string()))?;
    let mut compared = judge::compare(pairs, per, CompareSettings::default());
    compared.sort();
    Ok((compared, Sides { old: old.to_string(), new: new.to_string(), sessions: (old_set.sessions, new_set.sessions) }))
}

/// Returns the figures of a side.
async fn figures(asked: &Asked<'_>, side: &Selection) -> Result<FigureSet, Unanswered> {
    let sessions = asked.sessions(side).await?;
    asked.are_placed(&sessions)?;
    let mut set = asked.reader.figures(&sessions, &side.filters, Which::Measured).await?;
    if set.series.is_empty() {
        asked.are_known(&side.filters).await?;
    }
    set.leave_out(&asked.reader.remarks().await?, |kind| kind == RemarkKind::Maintenance);
    Ok(set)
}

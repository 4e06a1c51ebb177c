//! Two sets of sessions, variable by variable.

use crate::{Asked, Unanswered};
use muster_core::query::{
    answers::{Compared, ComparedMetric, Difference, Method, SampleUnit, Sides, Summary},
    figures::FigureSet,
    pairs::{Pair, pair, sample_unit},
    remarks::RemarkKind,
    spec::Selection,
};
use muster_judge::compare::{self as judge, CompareSettings, PairVerdict};
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
    let compared = judged(pair(&old_set, &new_set, per).map_err(|error| Unanswered::Unknown(error.to_string()))?, per);
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

/// Returns the pairs, each with its verdict.
fn judged(pairs: Vec<Pair>, sample: SampleUnit) -> Compared {
    let of_side = |series: &[Vec<f64>], unit: &str| {
        (!series.is_empty()).then(|| judge::Sample { series: series.to_vec(), unit: unit.to_owned() })
    };
    let asked: Vec<judge::Pair> = pairs
        .iter()
        .map(|pair| judge::Pair {
            a: of_side(&pair.old, &pair.unit),
            b: of_side(&pair.new, &pair.unit),
            direction: pair.direction,
        })
        .collect();
    let settings = CompareSettings::default();
    let answer = judge::compare(&asked, settings);
    let method =
        Method { text: answer.method(), error_rate: settings.false_discoveries, min_effect: settings.min_effect, sample };
    let rows = pairs.into_iter().zip(&answer.verdicts).map(|(pair, verdict)| row(pair, verdict)).collect();
    let mut compared = Compared { method, rows };
    compared.sort();
    compared
}

fn row(pair: Pair, verdict: &PairVerdict) -> ComparedMetric {
    let Pair { metric, unit, direction, is_redefined, .. } = pair;
    ComparedMetric {
        metric,
        unit,
        direction,
        old: verdict.a.map(summary),
        new: verdict.b.map(summary),
        difference: difference(verdict.word),
        effect: verdict.effect.map(|shift| shift.estimate),
        is_redefined,
        p: verdict.p,
    }
}

fn summary(of: judge::Summary) -> Summary {
    let judge::Summary { count, median, low, high, spread } = of;
    Summary { count, median, low, high, spread }
}

fn difference(word: judge::Compared) -> Difference {
    match word {
        judge::Compared::Worse => Difference::Regressed,
        judge::Compared::Better => Difference::Improved,
        // Units were converted, or refused before: what is left has no numbers in common.
        judge::Compared::Changed | judge::Compared::MixedUnits => Difference::Changed,
        judge::Compared::Same => Difference::Steady,
        judge::Compared::TooFewSamples => Difference::TooFew,
        judge::Compared::New => Difference::New,
        judge::Compared::Vanished => Difference::Vanished,
    }
}

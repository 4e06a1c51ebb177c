//! Two sets of figures become pairs of samples, one for each metric that either of them has.
//!
//! Sets of two systems have no metric in common: what tells all metrics of one set from all of the other does not count.

use crate::{
    night::Night,
    query::{
        answers::SampleUnit,
        figures::{FigureSet, Metric, Series},
    },
    rules::perf::Direction,
    stats::median,
};
use muster_text::unit;
use std::collections::{BTreeMap, BTreeSet};

/// The samples of one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    pub metric: Metric,
    /// The unit of all values.
    pub unit: String,
    pub direction: Option<Direction>,
    /// The values of each series in the order of time; of nights, those of all series are one.
    pub old: Vec<Vec<f64>>,
    pub new: Vec<Vec<f64>>,
    /// The check or its manifest is not the same on both sides.
    pub is_redefined: bool,
}

/// The reason why two sets cannot be compared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PairError {
    #[error("{side} has no figures")]
    Empty { side: &'static str },
    #[error(
        "{} @{} {} has figures in `{one}` and in `{other}`, which measure different things: leave it out, or choose sides with one unit",
        metric.case, metric.place(), metric.label()
    )]
    MixedUnits { metric: Box<Metric>, one: String, other: String },
}

/// So many nights on each side are enough to compare nights. Of fewer, single runs are compared.
const NIGHTS: usize = 5;

/// Chooses the unit of samples: nights where both sides have enough of them, because runs of one night may share what made
/// them slow.
pub fn sample_unit(old: &FigureSet, new: &FigureSet) -> SampleUnit {
    let nights =
        |set: &FigureSet| set.series.values().flat_map(|series| &series.runs).map(|run| run.night).collect::<BTreeSet<_>>();
    if nights(old).len() >= NIGHTS && nights(new).len() >= NIGHTS { SampleUnit::Night } else { SampleUnit::Run }
}

/// Pairs the metrics of two sets.
///
/// # Errors
/// A side without figures, and units that measure different things.
pub fn pair(old: &FigureSet, new: &FigureSet, per: SampleUnit) -> Result<Vec<Pair>, PairError> {
    for (set, side) in [(old, "the old side"), (new, "the new side")] {
        if !set.series.values().any(|series| !series.runs.is_empty()) {
            return Err(PairError::Empty { side });
        }
    }
    let identity = identity(old, new);
    let mut metrics: BTreeMap<Metric, [Vec<(&Series, &FigureSet)>; 2]> = BTreeMap::new();
    for (side, set) in [old, new].into_iter().enumerate() {
        for series in set.series.values().filter(|series| !series.runs.is_empty()) {
            metrics.entry(identity(&series.metric)).or_default()[side].push((series, set));
        }
    }
    metrics.iter().map(|(metric, sides)| one(metric, sides, per)).collect()
}

/// What two metrics must have in common: everything, or all but the place if the sets have no place in common.
fn identity(old: &FigureSet, new: &FigureSet) -> impl Fn(&Metric) -> Metric {
    let levels: [fn(&Metric) -> Metric; 3] = [
        Metric::clone,
        |metric| Metric { system: String::new(), ..metric.clone() },
        |metric| Metric { system: String::new(), partition: String::new(), environ: String::new(), ..metric.clone() },
    ];
    let shares = |level: &fn(&Metric) -> Metric| {
        let of_old: BTreeSet<Metric> = old.series.values().map(|series| level(&series.metric)).collect();
        new.series.values().any(|series| of_old.contains(&level(&series.metric)))
    };
    levels.into_iter().find(shares).unwrap_or(Metric::clone)
}

fn one(metric: &Metric, sides: &[Vec<(&Series, &FigureSet)>; 2], per: SampleUnit) -> Result<Pair, PairError> {
    let all: Vec<&(&Series, &FigureSet)> = sides.iter().flatten().collect();
    let shown = shown(metric, &all);
    let mut units: Vec<&str> = Vec::new();
    let (mut checks, mut manifests) = (BTreeSet::new(), BTreeSet::new());
    for (series, set) in &all {
        for run in &series.runs {
            let Some(basis) = set.bases.get(run.basis) else { continue };
            if !units.contains(&basis.unit.as_str()) {
                units.push(&basis.unit);
            }
            checks.extend(Some(basis.check_hash.as_str()).filter(|hash| !hash.is_empty()));
            manifests.extend(Some(basis.manifest_hash.as_str()).filter(|hash| !hash.is_empty()));
        }
    }
    let unit_of = |side: &[(&Series, &FigureSet)]| {
        let (series, set) = side.last()?;
        Some(set.bases.get(series.runs.last()?.basis)?.unit.clone())
    };
    // The last one of the new side, or of what there is.
    let unit = unit_of(&sides[1]).or_else(|| unit_of(&sides[0])).unwrap_or_default();
    let unit = unit.as_str();
    let factor = |from: &str| if from == unit { Some(1.0) } else { unit::factor(from, unit) };
    if let Some(other) = units.iter().find(|other| factor(other).is_none()) {
        return Err(PairError::MixedUnits { metric: Box::new(shown), one: (*other).to_owned(), other: unit.to_owned() });
    }
    let sample = |side: &[(&Series, &FigureSet)]| {
        let value = |series: &Series, set: &FigureSet| -> Vec<(Night, f64)> {
            let factor_of = |basis: usize| set.bases.get(basis).and_then(|basis| factor(&basis.unit)).unwrap_or(1.0);
            series.runs.iter().map(|run| (run.night, run.value * factor_of(run.basis))).collect()
        };
        let series = side.iter().map(|(series, set)| value(series, set));
        let mut samples: Vec<Vec<f64>> = match per {
            SampleUnit::Run => series.map(runs).collect(),
            SampleUnit::Night => vec![medians(series.flatten().collect())],
        };
        samples.retain(|values| !values.is_empty());
        samples
    };
    Ok(Pair {
        metric: shown,
        unit: unit.to_owned(),
        direction: all.iter().rev().find_map(|(series, _)| series.direction),
        old: sample(&sides[0]),
        new: sample(&sides[1]),
        is_redefined: checks.len() > 1 || manifests.len() > 1,
    })
}

/// The metric with all of its places: `eidf|archer`.
fn shown(metric: &Metric, all: &[&(&Series, &FigureSet)]) -> Metric {
    let joined = |of: fn(&Metric) -> &String| {
        let mut names: Vec<&str> = Vec::new();
        for (series, _) in all {
            let name = of(&series.metric).as_str();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join("|")
    };
    Metric {
        system: joined(|metric| &metric.system),
        partition: joined(|metric| &metric.partition),
        environ: joined(|metric| &metric.environ),
        ..metric.clone()
    }
}

fn runs(values: Vec<(Night, f64)>) -> Vec<f64> {
    values.into_iter().map(|(_, value)| value).filter(|value| value.is_finite()).collect()
}

/// The median of each night.
fn medians(mut values: Vec<(Night, f64)>) -> Vec<f64> {
    values.retain(|(_, value)| value.is_finite());
    values.sort_by_key(|(night, _)| *night);
    let of_night = |night: &[(Night, f64)]| median(&night.iter().map(|(_, value)| *value).collect::<Vec<_>>());
    values.chunk_by(|(a, _), (b, _)| a == b).filter_map(of_night).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::figures::{Basis, Run};

    fn metric(system: &str, case: &str) -> Metric {
        Metric {
            case: case.into(),
            system: system.into(),
            partition: "gpu".into(),
            environ: "default".into(),
            variable: "v".into(),
            key: None,
        }
    }

    /// The system, the case and the figures by night.
    type Case<'a> = (&'a str, &'a str, &'a [(i32, f64)]);

    fn set(series: &[Case<'_>], unit: &str, hash: &str) -> FigureSet {
        let one = |(system, case, runs): &Case<'_>| Series {
            metric: metric(system, case),
            direction: Some(Direction::Higher),
            min_effect: None,
            runs: runs.iter().map(|(night, value)| Run { night: Night(*night), value: *value, basis: 0 }).collect(),
        };
        let bases = vec![Basis { unit: unit.into(), check_hash: hash.into(), manifest_hash: String::new() }];
        FigureSet { series: (0..).zip(series.iter().map(one)).collect(), bases, sessions: 1 }
    }

    #[test]
    fn metrics_are_paired_by_case_and_what_one_side_lacks_stays() {
        let old = set(&[("s", "a", &[(1, 10.0), (2, 11.0)]), ("s", "b", &[(1, 1.0)])], "GB/s", "x");
        let new = set(&[("s", "c", &[(3, 5.0)]), ("s", "a", &[(3, 9.0)])], "GB/s", "x");
        let pairs = pair(&old, &new, SampleUnit::Run).expect("pairs");
        let shown: Vec<_> = pairs
            .iter()
            .map(|pair| (pair.metric.case.as_str(), pair.old.concat().len(), pair.new.concat().len(), pair.is_redefined))
            .collect();
        assert_eq!(shown, [("a", 2, 1, false), ("b", 1, 0, false), ("c", 0, 1, false)]);
    }

    #[test]
    fn metrics_of_two_systems_are_paired_without_the_system() {
        let pairs =
            pair(&set(&[("s", "a", &[(1, 10.0)])], "GB/s", ""), &set(&[("t", "a", &[(1, 9.0)])], "GB/s", "x"), SampleUnit::Run);
        let pairs = pairs.expect("pairs");
        assert_eq!((pairs.len(), pairs[0].metric.place().as_str(), pairs[0].is_redefined), (1, "s|t:gpu+default", false));
    }

    #[test]
    fn series_that_have_one_metric_together_keep_their_order() {
        let mut old = set(&[("s", "a", &[(1, 10.0), (2, 11.0)]), ("s", "a", &[(1, 20.0), (2, 21.0)])], "GB/s", "");
        let mut new = set(&[("t", "a", &[(3, 9.0)])], "GB/s", "");
        old.series.get_mut(&1).expect("a series").metric.partition = "p".into();
        new.series.get_mut(&0).expect("a series").metric.partition = "q".into();
        let old_of = |per| pair(&old, &new, per).expect("pairs")[0].old.clone();
        assert_eq!(old_of(SampleUnit::Run), [[10.0, 11.0], [20.0, 21.0]]);
        assert_eq!(old_of(SampleUnit::Night), [[15.0, 16.0]]);
    }

    #[test]
    fn units_that_measure_the_same_are_converted_and_others_refused() {
        let old = set(&[("s", "a", &[(1, 10.0)])], "GB/s", "x");
        let new = set(&[("s", "a", &[(2, 9000.0)])], "MB/s", "y");
        let pairs = pair(&old, &new, SampleUnit::Run).expect("pairs");
        assert_eq!(
            (pairs[0].old.concat().as_slice(), pairs[0].unit.as_str(), pairs[0].is_redefined),
            (&[10_000.0][..], "MB/s", true)
        );
        // Of an old side with both units, too, it is that of the new one.
        let mut both = set(&[("s", "a", &[(0, 9000.0), (1, 10.0)])], "MB/s", "x");
        both.bases.push(Basis { unit: "GB/s".into(), ..both.bases[0].clone() });
        both.series.get_mut(&0).expect("a series").runs[1].basis = 1;
        let pairs = pair(&both, &new, SampleUnit::Run).expect("pairs");
        assert_eq!((pairs[0].old.concat().as_slice(), pairs[0].unit.as_str()), (&[9000.0, 10_000.0][..], "MB/s"));
        let error = pair(&old, &set(&[("s", "a", &[(2, 9.0)])], "s", "x"), SampleUnit::Run).expect_err("a mixture");
        insta::assert_snapshot!(error.to_string());
    }

    #[test]
    fn a_side_without_figures_is_refused() {
        let some = set(&[("s", "a", &[(1, 10.0)])], "GB/s", "x");
        let error = |old: &FigureSet, new: &FigureSet| pair(old, new, SampleUnit::Run).expect_err("one side").to_string();
        assert_eq!(error(&FigureSet::default(), &some), "the old side has no figures");
        assert_eq!(error(&some, &set(&[("s", "a", &[])], "", "")), "the new side has no figures");
    }

    #[test]
    fn many_nights_are_compared_by_their_medians() {
        let nights: Vec<(i32, f64)> = (0..5).flat_map(|night| [(night, 1.0), (night, 3.0), (night, f64::NAN)]).collect();
        let five = set(&[("s", "a", &nights)], "s", "x");
        let four = set(&[("s", "a", &nights[..12])], "s", "x");
        assert_eq!(sample_unit(&five, &four), SampleUnit::Run);
        assert_eq!(sample_unit(&five, &five), SampleUnit::Night);
        assert_eq!(pair(&five, &five, SampleUnit::Night).expect("pairs")[0].old, [[2.0; 5]]);
        assert_eq!(pair(&five, &four, SampleUnit::Run).expect("pairs")[0].new[0].len(), 8);
    }
}

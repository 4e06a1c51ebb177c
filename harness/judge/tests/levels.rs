//! Levels of metrics: a loss among constant figures, and a level that stays or goes back.

use muster_core::rules::perf::Direction;
use muster_judge::{
    night::{Metric, Night, Settings, System, Value, Word, replay},
    sample::{Random, Spread, World, WorldSpec},
    trial,
};

/// A metric with the values of nights 0, 1, 2, ...
fn metric(id: i64, values: impl Iterator<Item = f64>) -> Metric {
    metric_since(0, id, values)
}

/// A metric with the values of this night and those that follow it.
fn metric_since(first: i32, id: i64, values: impl Iterator<Item = f64>) -> Metric {
    let values = (first..).zip(values).map(|(night, value)| Value { night: Night(night), value, segment: 0 }).collect();
    Metric { id, direction: Some(Direction::Higher), values, ..Metric::default() }
}

/// The nights, from 1, in which a regression of the first metric was found since night `at`, and the alarms before.
fn found(metrics: Vec<Metric>, at: i32) -> (Vec<i32>, usize) {
    let first = at.min(30);
    let nights = replay(&mut System { metrics, ..System::default() }, (first..at + 10).map(Night), &Settings::default());
    let (before, since) = nights.split_at(usize::try_from(at - first).expect("not before the first"));
    let is_found = |one: &&muster_judge::night::NightVerdicts| one.verdicts[0].is_new && one.verdicts[0].word == Word::Regressed;
    (since.iter().filter(is_found).map(|one| one.night.0 - at + 1).collect(), before.iter().map(|one| one.family.found).sum())
}

#[test]
fn a_loss_among_constant_figures_is_found_within_two_nights() {
    // The level since, and the noise before and since: with noise before, the figure is no constant, and needs a longer history.
    let constant = [(0.5, 0.0, 0.0), (0.95, 0.0, 0.0), (0.95, 0.0, 0.002)];
    let rows = [10, 25, 44, 100].into_iter().flat_map(|at| constant.map(|row| (at, row))).chain([(44, (0.95, 0.002, 0.002))]);
    for (at, (step, before, since)) in rows {
        for count in [1, 2, 3, 5, 10, 20] {
            for dropped in [1, 2, count] {
                let mut random = Random::new(7);
                let mut value = |id: i64, night: i32| match (id < dropped, night < at) {
                    (false, _) => 1000.0,
                    (true, true) => 1000.0 * (1.0 + before * random.normal()),
                    (true, false) => 1000.0 * step * (1.0 + since * random.normal()),
                };
                let mut metrics = Vec::new();
                for id in 0..count {
                    metrics.push(metric(id, (0..at + 10).map(|night| value(id, night)).collect::<Vec<_>>().into_iter()));
                }
                let (nights, alarms) = found(metrics, at);
                assert!(
                    matches!(nights[..], [1 | 2]) && alarms == 0,
                    "night {at}, {step} {since}, {dropped} of {count}: {nights:?} {alarms}"
                );
            }
        }
    }
}

#[test]
fn a_figure_that_is_measured_no_more_delays_no_loss_among_constant_ones() {
    let constant = |id| metric_since(25, id, (25..60).map(move |night| if id == 0 && night >= 50 { 950.0 } else { 1000.0 }));
    // Its one other value is long past.
    let gone = metric(20, (0..20).map(|night| if night == 10 { 900.0 } else { 1000.0 }));
    let (nights, alarms) = found((0..20).map(constant).chain([gone]).collect(), 50);
    assert!(matches!(nights[..], [1 | 2]) && alarms == 0, "{nights:?} {alarms}");
}

#[test]
fn levels_that_alternate_are_no_loss() {
    for count in [1, 2, 20] {
        let alternating = metric(0, (0..80).map(|night| if night % 2 == 0 { 1000.0 } else { 500.0 }));
        let constant = (1..count).map(|id| metric(id, (0..80).map(|_| 1000.0)));
        let (nights, alarms) = found(std::iter::once(alternating).chain(constant).collect(), 70);
        assert_eq!((nights, alarms), (vec![], 0), "{count}");
    }
}

/// 200 metrics lose 5 % at night 40 and get it back after so many nights. How many changes were found, how many of them again, and for
/// each the nights that it took to be found recovered.
fn recovered(spread: Spread, away: usize, nights: usize) -> (usize, usize, Vec<i32>) {
    let mut world = World::new(&WorldSpec { nights, spread, moved: 200, ..WorldSpec::default() });
    for value in world.values.iter_mut().flat_map(|values| values.iter_mut().skip(40 + away)) {
        *value /= 0.95;
    }
    let mut system = trial::system(&world);
    let (mut opened, mut back) = ([0; 200], [None; 200]);
    for night in replay(&mut system, (40..nights).map(trial::night), &Settings::default()) {
        for (metric, verdict) in night.verdicts.iter().enumerate().filter(|(_, verdict)| verdict.is_new) {
            match verdict.word {
                Word::Regressed => opened[metric] += 1,
                // One that was found anew stays open.
                Word::Recovered if verdict.changes.iter().any(|change| change.is_open() && change.is_worse()) => {}
                Word::Recovered => {
                    back[metric] = back[metric].or(Some(night.night.0 - i32::try_from(40 + away).expect("a night") + 1));
                }
                _ => {}
            }
        }
    }
    let mut took: Vec<i32> = back.into_iter().flatten().collect();
    took.sort_unstable();
    (opened.iter().filter(|count| **count > 0).count(), opened.iter().filter(|count| **count > 1).count(), took)
}

#[test]
fn a_change_that_stays_is_not_recovered_by_noise() {
    let (opened, again, wrong) = recovered(WorldSpec::default().spread, 100, 140);
    assert!(opened > 180 && wrong.len() <= 3 && again <= 6, "{opened} changes, {again} found again, {} recovered", wrong.len());
}

#[test]
fn a_change_that_goes_back_has_recovered_within_ten_nights() {
    for away in [6, 20] {
        let (opened, _, took) = recovered(Spread::Fixed(0.01), away, 40 + away + 10);
        assert!(took.len() * 100 >= opened * 90 && took[took.len() / 2] <= 3, "after {away} nights: {took:?} of {opened}");
    }
}

//! The method on worlds with a known truth, in a few seconds: fewer worlds than its figures need. `tests/bench/night.sh` measures those.
//! Longer than other files: the worlds and what is found in them stand together.

use muster_core::{query::figures::Basis, rules::perf::Direction};
use muster_judge::{
    night::{
        Change, ChangeState, Family, Metric, Night, NightVerdicts, Plan, Remark, RemarkKind, Settings, System, Value, Verdict,
        Word, explain, judge, judge_with, replay,
    },
    sample::{Noise, Random, Spread, World, WorldSpec},
    trial,
};

/// Alarms of nights 41 to 80 over so many worlds.
fn alarms(worlds: u64, spec: WorldSpec, tempering: Option<f64>) -> usize {
    (1..=worlds).map(|seed| trial::run(&WorldSpec { seed, ..spec }, 40, 80, tempering).alarms).sum()
}

const STILL: WorldSpec = WorldSpec {
    seed: 0,
    metrics: 200,
    nights: 80,
    spread: Spread::LogNormal { median: 0.02, sigma: 0.45 },
    noise: Noise::Gauss,
    dips: 0.01,
    phi: 0.0,
    weekend: 0.0,
    drift: 0.0,
    moved: 0,
    step: -0.05,
    at: 40,
};

#[test]
fn false_alarms_are_rare_whatever_the_noise_looks_like() {
    let rows = [
        ("gauss", STILL),
        ("heavy tails", WorldSpec { noise: Noise::HeavyTails, ..STILL }),
        ("long tail", WorldSpec { noise: Noise::LongTail, ..STILL }),
        ("two modes", WorldSpec { noise: Noise::TwoModes, ..STILL }),
        ("weekend", WorldSpec { weekend: -0.03, ..STILL }),
        ("autocorrelated", WorldSpec { phi: 0.3, ..STILL }),
    ];
    let counted = rows.map(|(name, spec)| (name, alarms(3, spec, None)));
    // At most 2.0 a world in the long run; of three worlds 11 are two standard deviations more than that.
    assert!(counted.iter().all(|(_, alarms)| *alarms <= 11), "{counted:?}");
}

#[test]
fn without_its_correction_autocorrelation_raises_alarms() {
    let uncorrected = alarms(1, WorldSpec { phi: 0.3, ..STILL }, Some(1.0));
    assert!(uncorrected > 10, "the correction is good for nothing: {uncorrected} alarms in a world");
}

#[test]
fn a_tenth_of_the_metrics_is_found_within_a_week() {
    let moved = WorldSpec { moved: 20, ..STILL };
    let trials: Vec<_> = (1..=5).flat_map(|seed| trial::run(&WorldSpec { seed, ..moved }, 40, 47, None).moved).collect();
    let quiet: Vec<_> = trials.into_iter().filter(|metric| metric.spread <= 0.025).collect();
    let found: Vec<_> = quiet.iter().filter_map(|metric| metric.found.as_ref()).collect();
    let near = found.iter().filter(|(_, change)| (change.since.0 - 40).abs() <= 1).count();
    assert!(quiet.len() > 50, "{} quiet metrics", quiet.len());
    assert!(found.len() * 100 >= quiet.len() * 95, "{} of {} found", found.len(), quiet.len());
    assert!(near * 100 >= found.len() * 85, "{near} of {} within a night", found.len());
}

#[test]
fn one_metric_alone_is_found_within_a_week() {
    let alone = WorldSpec { moved: 1, nights: 47, spread: Spread::Uniform { low: 0.003, high: 0.025 }, ..STILL };
    let found =
        (1..=40).filter(|seed| trial::run(&WorldSpec { seed: *seed, ..alone }, 40, 47, None).moved[0].found.is_some()).count();
    assert!(found >= 36, "{found} of 40");
}

#[test]
fn a_monotone_transform_of_the_values_leaves_the_evidence_as_it_is_bit_by_bit() {
    let world = World::new(&WorldSpec { moved: 5, nights: 60, ..STILL });
    let plain = trial::system(&world);
    let mut bent = plain.clone();
    for (metric, bend) in bent.metrics.iter_mut().zip([f64::sqrt, f64::cbrt, |x: f64| x * x].into_iter().cycle()) {
        for value in &mut metric.values {
            value.value = bend(value.value);
        }
    }
    for night in [42, 45, 59].map(Night) {
        let bits = |system: &System| {
            let verdicts = judge(system, night, &Settings::default());
            (verdicts.family.tempering.to_bits(), verdicts.verdicts.iter().map(|one| one.evidence.to_bits()).collect::<Vec<_>>())
        };
        assert_eq!(bits(&plain), bits(&bent));
    }
}

fn metric(id: i64, values: impl IntoIterator<Item = (i32, f64)>) -> Metric {
    let values = values.into_iter().map(|(night, value)| Value { night: Night(night), value, segment: 0 }).collect();
    let mut metric = Metric { id, direction: Some(Direction::Higher), values, plan: Plan::Unknown, ..Metric::default() };
    metric.name.case = format!("check{id}");
    metric
}

/// Twenty metrics over 60 nights; the first three lose a tenth at night 50.
fn moved() -> System {
    let mut random = Random::new(11);
    let mut value = |id: i64, night: i32| {
        let step = if id < 3 && night >= 50 { 0.9 } else { 1.0 };
        (night, 1000.0 * step * (1.0 + 0.01 * random.normal()))
    };
    let metrics = (0..20).map(|id| metric(id, (0..60).map(|night| value(id, night)).collect::<Vec<_>>())).collect();
    System { name: "eidf".into(), metrics, annotations: vec![] }
}

fn judged(mut system: System, last: i32) -> NightVerdicts {
    replay(&mut system, (40..=last).map(Night), &Settings::default()).pop().expect("a night was judged")
}

fn words(verdicts: &NightVerdicts) -> Vec<Word> {
    verdicts.verdicts.iter().map(|verdict| verdict.word).collect()
}

#[test]
fn a_regression_is_opened_once_and_stays_open() {
    let mut system = moved();
    let nights = replay(&mut system, (40..60).map(Night), &Settings::default());
    let new: Vec<_> =
        nights.iter().flat_map(|night| night.verdicts.iter().filter(|one| one.is_new).map(|one| one.word)).collect();
    assert_eq!(new, [Word::Regressed; 3]);
    let last = nights.last().unwrap();
    assert_eq!(words(last)[..4], [Word::Regressed, Word::Regressed, Word::Regressed, Word::Steady]);
    let change = last.verdicts[0].change().unwrap();
    let effect = change.effect.unwrap();
    assert!(effect.low < -0.1 && -0.1 < effect.high && (effect.estimate + 0.1).abs() < 0.01, "{effect:?}");
    assert!((change.since.0 - 50).abs() <= 1 && change.since_interval.0 <= Night(50) && Night(50) <= change.since_interval.1);
    assert_eq!((last.events.len(), last.events[0].metrics.len(), last.events[0].checks), (1, 3, 3));
}

#[test]
fn the_order_of_arrival_two_sessions_and_missing_nights_change_no_verdict() {
    let clean = judged(moved(), 54);
    let mut random = Random::new(3);
    let mut messy = moved();
    for metric in &mut messy.metrics {
        // Two sessions around the value of a night, and in another order.
        let twice = metric.values.iter().flat_map(|value| [0.75, 1.25].map(|part| Value { value: value.value * part, ..*value }));
        let mut values: Vec<Value> = twice.collect();
        for place in (1..values.len()).rev() {
            values.swap(place, random.below(place + 1));
        }
        metric.values = values;
    }
    let messy = judged(messy, 54);
    assert_eq!(words(&clean), words(&messy));
    let evidence = |verdicts: &NightVerdicts| verdicts.verdicts.iter().map(|one| one.evidence.to_bits()).collect::<Vec<_>>();
    assert_eq!(evidence(&clean), evidence(&messy));
    // An outage of all: the nights move apart, their order stays.
    let mut apart = moved();
    for value in apart.metrics.iter_mut().flat_map(|metric| &mut metric.values) {
        value.night = Night(if value.night.0 < 30 { value.night.0 - 9 } else { value.night.0 });
    }
    assert_eq!(words(&clean), words(&judged(apart, 54)));
}

#[test]
fn a_metric_that_comes_back_has_recovered_and_keeps_its_old_baseline() {
    let mut random = Random::new(5);
    let level = |night: i32| if (50..55).contains(&night) { 800.0 } else { 1000.0 };
    let values: Vec<_> = (0..70).map(|night| (night, level(night) * (1.0 + 0.01 * random.normal()))).collect();
    let mut system = System { metrics: vec![metric(1, values)], ..System::default() };
    let nights = replay(&mut system, (40..70).map(Night), &Settings::default());
    let told: Vec<_> =
        nights.iter().filter(|night| night.verdicts[0].is_new).map(|night| (night.night.0, night.verdicts[0].word)).collect();
    assert_eq!(told.iter().map(|(_, word)| *word).collect::<Vec<_>>(), [Word::Regressed, Word::Recovered], "{told:?}");
    let last = &nights.last().unwrap().verdicts[0];
    assert_eq!((last.word, last.nights), (Word::Steady, 65));
    assert!(matches!(last.changes[0].state, ChangeState::Recovered { since: Night(55), .. }), "{:?}", last.changes[0]);
}

#[test]
fn a_metric_that_came_back_has_recovered_though_the_night_that_found_it_saw_part_of_its_level() {
    let mut random = Random::new(12);
    // Two nights before it comes back it is a little better, so that the new level seems to begin with them.
    let level = |night: i32| match night {
        50..73 => 900.0,
        73..75 => 915.0,
        _ => 1000.0,
    };
    let values: Vec<_> = (0..90).map(|night| (night, level(night) * (1.0 + 0.003 * random.normal()))).collect();
    let mut system = System { metrics: vec![metric(1, values)], ..System::default() };
    let nights = replay(&mut system, (40..90).map(Night), &Settings::default());
    let told: Vec<_> = nights.iter().filter(|night| night.verdicts[0].is_new).map(|night| night.verdicts[0].word).collect();
    assert_eq!(told, [Word::Regressed, Word::Improved, Word::Recovered]);
    let found = nights.iter().find(|night| night.verdicts[0].word == Word::Recovered).unwrap();
    assert_eq!(found.verdicts[0].change().map(|change| change.since), Some(Night(50)), "the regression is over");
    let last = &nights.last().unwrap().verdicts[0];
    let is_over =
        |change: &Change| matches!(change.state, ChangeState::Recovered { since, .. } if since == last.changes[1].since);
    assert!(last.changes.len() == 2 && last.changes.iter().all(is_over), "{:?}", last.changes);
    assert_eq!((last.word, last.nights), (Word::Steady, 67), "all but the nights between");
}

#[test]
fn a_slow_decline_is_a_drift() {
    let mut random = Random::new(6);
    let values: Vec<_> = (0..110)
        .map(|night| (night, 1000.0 * (1.0 - 0.004 * f64::from((night - 60).max(0))) * (1.0 + 0.005 * random.normal())))
        .collect();
    let mut system = System { metrics: vec![metric(1, values)], ..System::default() };
    let nights = replay(&mut system, (40..110).map(Night), &Settings::default());
    let words: Vec<_> = nights.iter().map(|night| night.verdicts[0].word).collect();
    assert!(words.contains(&Word::Drifting), "{words:?}");
    assert!(words[..20].iter().all(|word| *word == Word::Steady), "{words:?}");
}

/// A change of a tenth at night 50 most of which is undone three nights later.
fn fading(direction: Option<Direction>) -> Vec<NightVerdicts> {
    let mut random = Random::new(8);
    let level = |night: i32| match night {
        ..50 => 1.0,
        50..53 => 0.9,
        _ => 0.985,
    };
    let values: Vec<_> = (0..80).map(|night| (night, 1000.0 * level(night) * (1.0 + 0.004 * random.normal()))).collect();
    let metric = Metric { direction, ..metric(1, values) };
    replay(&mut System { metrics: vec![metric], ..System::default() }, (40..80).map(Night), &Settings::default())
}

#[test]
fn levels_that_are_no_longer_apart_are_not_told_and_do_not_count() {
    for direction in [Some(Direction::Higher), Some(Direction::Lower), None] {
        let nights = fading(direction);
        let verdicts: Vec<_> = nights.iter().map(|night| &night.verdicts[0]).collect();
        assert!(verdicts.iter().any(|verdict| verdict.is_new), "it was found");
        for verdict in &verdicts {
            let Some(change) = verdict.change().filter(|change| change.is_open()) else { continue };
            assert!((change.after / change.before - 1.0).abs() >= 0.02, "{verdict:?}");
            assert!(!verdict.is_counted || change.is_worse(), "{verdict:?}");
        }
        let last = verdicts.last().unwrap();
        assert!(matches!(last.changes[0].state, ChangeState::Recovered { .. }), "{last:?}");
        assert_eq!(last.word, Word::Steady);
    }
}

#[test]
fn a_drift_counts_when_it_leads_to_worse() {
    for (direction, is_counted) in [(Some(Direction::Higher), true), (None, false)] {
        let mut random = Random::new(6);
        let values: Vec<_> = (0..110)
            .map(|night| (night, 1000.0 * (1.0 - 0.004 * f64::from((night - 60).max(0))) * (1.0 + 0.005 * random.normal())))
            .collect();
        let mut system = System { metrics: vec![Metric { direction, ..metric(1, values) }], ..System::default() };
        let nights = replay(&mut system, (40..110).map(Night), &Settings::default());
        let drifts: Vec<_> = nights.iter().map(|night| &night.verdicts[0]).filter(|one| one.word == Word::Drifting).collect();
        assert!(!drifts.is_empty() && drifts.iter().all(|one| one.is_counted == is_counted), "{direction:?}");
    }
}

fn annotated(kind: RemarkKind, from: i32, until: i32) -> System {
    let (name, from, until) = (Some("check0".into()), Night(from), Some(Night(until)));
    let annotation = Remark { kind, name, from, until, said: Some(from), reason: "ticket 7".into(), ..Remark::default() };
    System { annotations: vec![annotation], ..moved() }
}

#[test]
fn annotations_leave_out_accept_dismiss_and_excuse() {
    let first = |kind, from, until| {
        let verdicts = judged(annotated(kind, from, until), 59);
        assert_eq!(verdicts.verdicts[1].word, Word::Regressed, "others are not meant");
        let verdict = &verdicts.verdicts[0];
        (verdict.word, verdict.is_counted, verdict.nights)
    };
    assert_eq!(first(RemarkKind::Known, 50, 70), (Word::Known, false, 10));
    assert_eq!(first(RemarkKind::Accept, 48, 52), (Word::Accepted, false, 10));
    // In maintenance nothing was to be measured.
    assert_eq!(first(RemarkKind::Maintenance, 50, 59), (Word::NotMeasured, false, 50));
    // Until its last night its level is one of its own, in which another change is found.
    assert_eq!(first(RemarkKind::Dismiss, 48, 59), (Word::Steady, false, 10));
}

#[test]
fn what_was_measured_and_is_dismissed_was_measured() {
    let mut system = annotated(RemarkKind::Dismiss, 48, 59);
    system.metrics.iter_mut().for_each(|metric| metric.plan = Plan::Run);
    let night = judged(system, 59);
    assert!(matches!(night.verdicts[0].changes[0].state, ChangeState::Dismissed { .. }), "{:?}", night.verdicts[0]);
    assert!(night.verdicts[0].value.is_some_and(|value| (value - 900.0).abs() < 50.0), "{:?}", night.verdicts[0]);
    assert_eq!((night.coverage.planned, night.coverage.measured), (20, 20));
}

#[test]
fn a_dismissal_of_one_night_is_for_one_change() {
    let mut random = Random::new(3);
    let level = |night: i32| match night {
        ..50 => 1000.0,
        50..60 => 900.0,
        _ => 600.0,
    };
    let values: Vec<_> = (0..70).map(|night| (night, level(night) * (1.0 + 0.01 * random.normal()))).collect();
    let annotation = |from| Remark {
        kind: RemarkKind::Dismiss,
        from: Night(from),
        until: Some(Night(from)),
        said: Some(Night(from)),
        reason: "noise".into(),
        ..Remark::default()
    };
    let mut system = System { metrics: vec![metric(1, values)], annotations: vec![annotation(50)], ..System::default() };
    let nights = replay(&mut system, (40..70).map(Night), &Settings::default());
    let changes = &nights.last().unwrap().verdicts[0].changes;
    let dismissed = |change: &&Change| matches!(change.state, ChangeState::Dismissed { .. });
    assert_eq!(changes.iter().filter(dismissed).count(), 1, "{changes:#?}");
    let place = changes.iter().position(|change| dismissed(&change)).unwrap();
    assert!(matches!(changes[place].state, ChangeState::Dismissed { until, found } if until == found), "{changes:#?}");
    let last = &nights.last().unwrap().verdicts[0];
    assert_eq!((last.word, last.is_counted), (Word::Regressed, true), "{changes:#?}");
    // The night after it is not told again.
    let opened = changes[place].id.opened;
    let next = nights.iter().find(|night| night.night == Night(opened.0 + 1)).unwrap();
    assert_eq!(next.verdicts[0].word, Word::Steady);
    // A second one dismisses a second change.
    let found = changes[place + 1].since;
    system.annotations.push(annotation(found.0));
    system.metrics[0].changes.clear();
    let nights = replay(&mut system, (40..70).map(Night), &Settings::default());
    let changes = &nights.last().unwrap().verdicts[0].changes;
    assert_eq!(changes.iter().filter(dismissed).count(), 2, "{changes:#?}");
}

/// A dip of some nights that is dismissed some nights after it was found, and a real change later.
#[test]
fn what_is_dismissed_days_later_does_not_come_back_and_a_later_change_is_found() {
    let levels = [(0, 1000.0), (50, 900.0), (54, 1000.0), (75, 900.0)];
    let found = {
        let nights = replay(&mut stairs(&levels), (40..54).map(Night), &Settings::default());
        nights.last().unwrap().verdicts[0].changes[0].id.opened
    };
    assert_eq!(found, Night(51));
    let dismissal = |said: Night| Remark {
        kind: RemarkKind::Dismiss,
        from: Night(50),
        until: Some(Night(50)),
        said: Some(said),
        reason: "a test of the fans".into(),
        ..Remark::default()
    };
    let changes = |said| {
        let mut system = System { annotations: vec![dismissal(said)], ..stairs(&levels) };
        let nights = replay(&mut system, (40..95).map(Night), &Settings::default());
        nights.last().unwrap().verdicts[0].changes.clone()
    };
    let said = Night(found.0 + 3);
    let [dismissed, later] = &changes(said)[..] else { panic!("{:#?}", changes(said)) };
    assert_eq!(dismissed.state, ChangeState::Dismissed { until: said, found });
    assert!(later.since_interval.0 <= Night(75) && Night(75) <= later.since_interval.1 && later.is_open(), "{later:#?}");
    // Said in the night in which it was found, it is not about the nights after.
    assert_eq!(changes(found)[1].id.opened.0 / 10, 5, "{:#?}", changes(found));
}

/// The verdicts of the nights from 40 on of a metric on these levels. In the last night it was said that its change of night 50 is
/// dismissed until a night.
fn dismissed(levels: &[(i32, f64)], until: i32) -> Vec<Verdict> {
    let (reason, from, until) = ("a test of the fans".into(), Night(50), Some(Night(until)));
    let annotation = Remark { kind: RemarkKind::Dismiss, from, until, said: Some(Night(79)), reason, ..Remark::default() };
    let mut system = System { annotations: vec![annotation], ..stairs(levels) };
    let nights = replay(&mut system, (40..80).map(Night), &Settings::default());
    nights.into_iter().map(|mut night| night.verdicts.remove(0)).collect()
}

#[test]
fn a_dismissal_ends_with_its_last_night_and_hides_no_other_change() {
    let mended = [(0, 1000.0), (50, 900.0), (54, 1000.0), (70, 900.0)];
    let without = replay(&mut stairs(&mended), (40..80).map(Night), &Settings::default()).pop().unwrap().verdicts.remove(0);
    // Of one night, until its level has gone back, and until after the later change.
    for until in [50, 53, 79] {
        let nights = dismissed(&mended, until);
        let last = nights.last().unwrap();
        let [first, later] = &last.changes[..] else { panic!("{until}: {:#?}", last.changes) };
        assert_eq!(first.state, ChangeState::Dismissed { until: Night(53), found: first.id.opened }, "{until}");
        assert_eq!((later.id, later.since, later.is_open()), (without.changes[1].id, Night(70), true), "{until}");
        assert_eq!((last.word, last.is_counted), (Word::Regressed, true), "{until}");
        assert!(
            nights[..30].iter().all(|verdict| verdict.word == Word::Steady),
            "{until}: {:?}",
            nights[..30].iter().map(|v| v.word).collect::<Vec<_>>()
        );
    }
    // A level that stays is found again, and another one below it at its own night.
    let stays = dismissed(&[(0, 1000.0), (50, 900.0)], 55).pop().unwrap();
    assert_eq!((stays.word, stays.change().map(|change| change.since)), (Word::Regressed, Some(Night(56))), "{stays:#?}");
    let lower = dismissed(&[(0, 1000.0), (50, 900.0), (65, 700.0)], 75).pop().unwrap();
    let change = lower.change().unwrap();
    assert_eq!((lower.word, (change.before / 10.0).round()), (Word::Regressed, 100.0), "{lower:#?}");
    assert!(change.since_interval.1 == Night(65) && change.id.opened < Night(70), "{change:#?}");
}

#[test]
fn what_is_measured_in_another_way_is_not_dismissed() {
    let (kind, until, said) = (RemarkKind::Dismiss, Some(Night(78)), Night(79));
    let annotations = vec![Remark { kind, from: Night(50), until, said: Some(said), ..Remark::default() }];
    let mut system = System { annotations, ..stairs(&[(0, 1000.0), (50, 900.0)]) };
    system.metrics[0].segments = ["a", "b"].map(|check| Basis { check_hash: check.into(), ..Basis::default() }).into();
    system.metrics[0].values.iter_mut().filter(|value| value.night >= Night(60)).for_each(|value| value.segment = 1);
    let nights = replay(&mut system, (40..80).map(Night), &Settings::default());
    let of = |night: usize| (nights[night - 40].verdicts[0].word, nights[night - 40].verdicts[0].nights);
    assert_eq!([of(59), of(60), of(79)], [(Word::Steady, 10), (Word::TooFewNights, 1), (Word::Steady, 20)]);
    let reason = nights[20].verdicts[0].reason.as_deref();
    assert_eq!(reason, Some("since 1970-03-02 the check is another: a new baseline"));
    assert_eq!(nights[39].verdicts[0].reason, None);
}

#[test]
fn a_change_is_explained_with_what_its_own_night_needed() {
    let mut system = moved();
    let last = replay(&mut system, (40..60).map(Night), &Settings::default()).pop().unwrap();
    let change = last.verdicts[0].change().unwrap();
    let later = Family { metrics: 5000, tempering: 0.2, ..last.family };
    let explained = explain(&system, 0, &later, Night(59)).unwrap();
    assert_eq!(
        (explained.night, explained.tempering, explained.needed_alone),
        (change.id.opened, change.tempering, change.needed_alone)
    );
    assert!((explained.evidence / change.evidence - 1.0).abs() < 1e-9, "{} {}", explained.evidence, change.evidence);
    // What has not changed is explained with tonight's.
    let steady = explain(&system, 5, &later, Night(59)).unwrap();
    assert_eq!((steady.night, steady.tempering, steady.needed_alone), (Night(59), 0.2, later.needed_alone()));
}

#[test]
fn some_metrics_are_shown_and_all_were_judged() {
    let mut system = moved();
    system.metrics[0].name.partition = "gpu".into();
    system.metrics[7].name.partition = "gpu".into();
    let mut night = replay(&mut system, (40..60).map(Night), &Settings::default()).pop().unwrap();
    night.only(&mut system, |metric| metric.name.partition == "gpu");
    assert_eq!(words(&night), [Word::Regressed, Word::Steady]);
    assert_eq!((night.family.metrics, night.coverage.planned, system.metrics.len()), (20, 2, 2));
    assert_eq!((night.events.len(), night.events[0].metrics.clone()), (1, vec![0]));
}

#[test]
fn another_check_is_a_new_baseline_and_no_change() {
    let mut system = moved();
    let key = |check: &str| Basis { check_hash: check.into(), ..Basis::default() };
    for metric in &mut system.metrics {
        metric.segments = vec![key("a"), key("b")];
        for value in metric.values.iter_mut().filter(|value| value.night >= Night(50)) {
            value.segment = 1;
        }
    }
    let verdicts = judged(system, 58);
    assert!(words(&verdicts).iter().all(|word| *word == Word::TooFewNights), "{:?}", words(&verdicts));
    assert_eq!(verdicts.verdicts[0].nights, 9);
}

#[test]
fn what_cannot_be_judged_is_said() {
    let mut random = Random::new(9);
    let mut noisy =
        |sigma: f64, nights: i32| (0..nights).map(|night| (night, 100.0 * (1.0 + sigma * random.normal()))).collect::<Vec<_>>();
    let few: Vec<_> = noisy(0.01, 60).split_off(52);
    let planned = Metric { plan: Plan::Busy, ..metric(3, noisy(0.01, 59)) };
    let gone = Metric { plan: Plan::Unplanned, ..metric(4, noisy(0.01, 30)) };
    let metrics = vec![metric(0, noisy(0.01, 60)), metric(1, few), metric(2, noisy(0.2, 60)), planned, gone];
    let verdicts = judge(&System { metrics, ..System::default() }, Night(59), &Settings::default());
    assert_eq!(words(&verdicts)[..4], [Word::Steady, Word::TooFewNights, Word::TooNoisy, Word::NotMeasured]);
    assert_eq!((verdicts.coverage.planned, verdicts.coverage.measured, verdicts.family.metrics), (4, 3, 4));
    assert!(!verdicts.coverage.reaches(0.9) && verdicts.coverage.reaches(0.75));
    assert!(verdicts.verdicts[3].is_counted);
}

#[test]
fn a_variable_that_its_case_no_longer_measures_is_missed_for_a_week() {
    let values = |nights: std::ops::Range<i32>| nights.map(|night| (night, 100.0));
    let of = |id, case: &str, nights| {
        let mut metric = Metric { plan: Plan::Run, ..metric(id, values(nights)) };
        metric.name.case = case.to_owned();
        metric
    };
    // `renamed` has another variable since night 50; `broken` has measured nothing since then, `old` nothing else.
    let metrics = vec![
        of(0, "renamed", 0..50),
        of(1, "renamed", 50..90),
        of(2, "broken", 0..50),
        of(3, "broken", 0..50),
        of(4, "old", 0..50),
        of(5, "other", 0..90),
    ];
    let system = System { metrics, ..System::default() };
    let at = |night| {
        let judged = judge(&system, Night(night), &Settings::default());
        let missed = judged
            .verdicts
            .iter()
            .map(|verdict| (verdict.word == Word::NotMeasured && verdict.is_counted, verdict.gone_since.is_some()));
        (missed.take(5).collect::<Vec<_>>(), judged.coverage.planned)
    };
    let (missed, gone, no) = ((true, false), (false, true), (false, false));
    assert_eq!(at(49), (vec![no, missed, no, no, no], 6));
    assert_eq!(at(56), (vec![missed, no, missed, missed, missed], 6));
    assert_eq!(at(57), (vec![gone, no, missed, missed, missed], 5));
    assert_eq!(at(89), (vec![gone, no, missed, missed, missed], 5));
}

#[test]
fn an_open_regression_of_a_metric_that_is_gone_is_told_and_does_not_count() {
    // Its case measures another variable since night 60, in which the regression was open.
    let after = (60..90).map(|night| (night, 100.0));
    let gone = stairs(&[(0, 1000.0), (45, 900.0)]).metrics.remove(0);
    let gone = Metric { values: gone.values.into_iter().filter(|value| value.night < Night(60)).collect(), ..gone };
    let of_case = |metric: Metric| Metric { name: gone.name.clone(), plan: Plan::Run, ..metric };
    let mut system = System { metrics: vec![of_case(gone.clone()), of_case(metric(2, after))], ..System::default() };
    let last = replay(&mut system, (40..90).map(Night), &Settings::default()).pop().unwrap();
    let verdict = &last.verdicts[0];
    assert_eq!((verdict.word, verdict.is_counted, verdict.is_planned), (Word::Regressed, false, false), "{verdict:#?}");
    assert_eq!(verdict.reason.as_deref(), Some("since 1970-03-02 its case has measured other variables, but not this one"));
    let [event] = last.events.as_slice() else { panic!("{:#?}", last.events) };
    assert_eq!((event.metrics.as_slice(), event.is_counted, event.is_new), (&[0][..], false, false));
}

#[test]
fn no_value_is_taken_for_another_kind_of_number() {
    // Zero, negative numbers and infinities neither panic nor raise alarms.
    for value in [0.0, -5.0, f64::INFINITY, f64::NAN] {
        let values = (0..60).map(|night| (night, value));
        let verdicts = judged(System { metrics: vec![metric(1, values)], ..System::default() }, 59);
        assert_eq!(verdicts.family.found, 0, "{value}");
    }
    let from_zero = (0..60).map(|night| (night, if night < 50 { 0.0 } else { 3.0 }));
    let mut system =
        System { metrics: vec![Metric { direction: Some(Direction::Lower), ..metric(1, from_zero) }], ..System::default() };
    let verdicts = judge_with(&system, Night(55), &Settings::default(), Some(1.0));
    assert_eq!((verdicts.verdicts[0].word, verdicts.verdicts[0].change().unwrap().effect), (Word::Regressed, None));
    system.metrics[0].direction = None;
    let verdicts = judge_with(&system, Night(55), &Settings::default(), Some(1.0));
    assert_eq!((verdicts.verdicts[0].word, verdicts.verdicts[0].is_counted), (Word::Changed, false));
}

/// A metric at the first level from night 0, and at each other level from its night on.
fn stairs(levels: &[(i32, f64)]) -> System {
    let mut random = Random::new(8);
    let level = |night: i32| levels.iter().rfind(|(from, _)| *from <= night).map_or(0.0, |(_, level)| *level);
    let values: Vec<_> = (0..80).map(|night| (night, level(night) * (1.0 + 0.005 * random.normal()))).collect();
    System { metrics: vec![metric(1, values)], ..System::default() }
}

#[test]
fn a_regression_is_over_when_the_metric_is_better_than_before_it() {
    let mut system = stairs(&[(0, 1000.0), (45, 900.0), (60, 1040.0)]);
    let last = replay(&mut system, (40..80).map(Night), &Settings::default()).pop().unwrap().verdicts.remove(0);
    assert_eq!((last.word, last.change().map(|change| (change.before / 10.0).round())), (Word::Improved, Some(90.0)));
    let [first, second] = last.changes.as_slice() else { panic!("{:?}", last.changes) };
    assert!(matches!(first.state, ChangeState::Superseded { .. }) && second.is_open(), "{:?}", last.changes);
    // Who accepts the new level is not told of the old one.
    let accept =
        Remark { kind: RemarkKind::Accept, from: second.since, until: None, said: Some(second.since), ..Remark::default() };
    let mut system = System { annotations: vec![accept], ..stairs(&[(0, 1000.0), (45, 900.0), (60, 1040.0)]) };
    let last = replay(&mut system, (40..80).map(Night), &Settings::default()).pop().unwrap().verdicts.remove(0);
    assert_eq!((last.word, last.is_counted), (Word::Accepted, false));
}

#[test]
fn who_accepts_a_level_accepts_what_led_to_it() {
    let accept = Remark { kind: RemarkKind::Accept, from: Night(60), until: None, said: Some(Night(60)), ..Remark::default() };
    let mut system = System { annotations: vec![accept], ..stairs(&[(0, 1000.0), (45, 900.0), (60, 800.0)]) };
    let last = replay(&mut system, (40..80).map(Night), &Settings::default()).pop().unwrap().verdicts.remove(0);
    assert_eq!(last.changes.len(), 2, "{:?}", last.changes);
    assert!(last.changes.iter().all(|change| matches!(change.state, ChangeState::Accepted { .. })), "{:?}", last.changes);
}

#[test]
fn a_regression_of_what_is_measured_in_another_way_now_is_over() {
    let mut system = stairs(&[(0, 1000.0), (45, 900.0), (60, 1000.0)]);
    let key = |check: &str| Basis { check_hash: check.into(), ..Basis::default() };
    system.metrics[0].segments = vec![key("a"), key("b")];
    for value in system.metrics[0].values.iter_mut().filter(|value| value.night >= Night(60)) {
        value.segment = 1;
    }
    let nights = replay(&mut system, (40..80).map(Night), &Settings::default());
    assert_eq!(nights[19].verdicts[0].word, Word::Regressed);
    assert_eq!(nights[20].verdicts[0].word, Word::TooFewNights);
    let last = &nights.last().unwrap().verdicts[0];
    assert_eq!((last.word, last.is_counted), (Word::Steady, false));
    assert_eq!(last.changes[0].state, ChangeState::Superseded { found: Night(60) });
}

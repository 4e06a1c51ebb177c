//! Measures the method on worlds with a known truth and prints each figure beside its limit: `tests/bench/night.sh`.
//!
//!     night [SHARE]     SHARE of the worlds, 1 by default
use muster_core::stats::{as_float, floor};
use muster_judge::{
    night::{Settings, judge},
    sample::{Noise, Spread, World, WorldSpec},
    trial::{self, Moved, Trial},
};
use std::time::Instant;

fn main() {
    let share = std::env::args().nth(1).and_then(|share| share.parse().ok()).unwrap_or(1.0);
    let worlds = |count: u64| 1..=u64::try_from(floor(as_float(usize::try_from(count).unwrap_or(1)) * share)).unwrap_or(1).max(1);
    println!("{:<62} {:>9}  limit", "", "measured");
    without_a_change(&worlds);
    with_a_change(&worlds);
    alone(&worlds);
    cost();
}

fn row(what: &str, measured: f64, limit: &str) {
    println!("{what:<62} {measured:>9.3}  {limit}");
}

fn without_a_change(worlds: &dyn Fn(u64) -> std::ops::RangeInclusive<u64>) {
    let still = WorldSpec::default();
    let five = WorldSpec { nights: 45, ..still };
    let rows = [
        ("Gauss", still),
        ("t3", WorldSpec { noise: Noise::HeavyTails, ..still }),
        ("long tail to slow", WorldSpec { noise: Noise::LongTail, ..still }),
        ("two modes", WorldSpec { noise: Noise::TwoModes, ..still }),
        ("3 % dips", WorldSpec { dips: 0.03, ..still }),
        ("weekend -3 %", WorldSpec { weekend: -0.03, ..still }),
        ("autocorrelation 0.3", WorldSpec { phi: 0.3, ..still }),
        ("autocorrelation 0.5", WorldSpec { phi: 0.5, ..still }),
    ];
    let alarms = |spec: WorldSpec, from, until, tempering| {
        let count = as_float(usize::try_from(*worlds(60).end()).unwrap_or(1));
        let of = |seed| trial::run(&WorldSpec { seed, ..spec }, from, until, tempering).alarms;
        as_float(worlds(60).map(of).sum()) / count
    };
    for (name, spec) in rows {
        row(&format!("alarms in 40 nights of 200 metrics: {name}"), alarms(spec, 40, 80, None), "<= 2.0");
    }
    row("the same, 5 nights of history", alarms(five, 5, 45, None), "<= 2.0");
    let phi = WorldSpec { phi: 0.3, ..still };
    row("autocorrelation 0.3 without its correction", alarms(phi, 40, 80, Some(1.0)), "> 2.0, or the correction is idle");
    let many = WorldSpec { metrics: 5_000, ..still };
    let of = |seed| trial::run(&WorldSpec { seed, ..many }, 40, 80, None).alarms;
    let count = as_float(usize::try_from(*worlds(2).end()).unwrap_or(1));
    row("alarms in 40 nights of 5,000 metrics", as_float(worlds(2).map(of).sum()) / count, "<= 4");
}

fn share(part: usize, of: usize) -> f64 {
    as_float(part) / as_float(of.max(1))
}

fn with_a_change(worlds: &dyn Fn(u64) -> std::ops::RangeInclusive<u64>) {
    let spec = WorldSpec { moved: 20, nights: 60, ..WorldSpec::default() };
    let trials: Vec<Trial> = worlds(20).map(|seed| trial::run(&WorldSpec { seed, ..spec }, 40, 60, None)).collect();
    let quiet: Vec<&Moved> = trials.iter().flat_map(|trial| &trial.moved).filter(|moved| moved.spread <= 0.025).collect();
    let found: Vec<_> = quiet.iter().filter_map(|moved| moved.found.as_ref().filter(|(nights, _)| *nights <= 7)).collect();
    row("20 of 200 at -5 %, CV <= 2.5 %: found within 7 nights", share(found.len(), quiet.len()), ">= 0.95");
    let near = found.iter().filter(|(_, change)| (change.since.0 - 40).abs() <= 1).count();
    row("`since` within a night of the truth", share(near, found.len()), ">= 0.85");
    let within = |change: &muster_judge::night::Change| change.since_interval.0.0 <= 40 && 40 <= change.since_interval.1.0;
    row(
        "   the interval of `since` holds the truth",
        share(found.iter().filter(|(_, change)| within(change)).count(), found.len()),
        ">= 0.85",
    );
    let last: Vec<_> = quiet.iter().filter_map(|moved| moved.last.as_ref()?.effect).collect();
    let holds = last.iter().filter(|effect| effect.low <= -0.05 && -0.05 <= effect.high).count();
    row("   the interval of the effect holds the truth after 20 nights", share(holds, last.len()), ">= 0.85");
    let false_alarms: usize = trials.iter().map(|trial| trial.false_alarms).sum();
    row("   false alarms in 20 nights beside them", share(false_alarms, trials.len()), "(none stated)");
}

fn alone(worlds: &dyn Fn(u64) -> std::ops::RangeInclusive<u64>) {
    let spec = WorldSpec { moved: 1, nights: 47, ..WorldSpec::default() };
    let found = |spread, step| {
        let is_found =
            |seed: &u64| trial::run(&WorldSpec { seed: *seed, spread, step, ..spec }, 40, 47, None).moved[0].found.is_some();
        share(worlds(1_000).filter(is_found).count(), worlds(1_000).count())
    };
    row(
        "one of 200 at -5 %, CV 0.3 to 2.5 %: found within 7 nights",
        found(Spread::Uniform { low: 0.003, high: 0.025 }, -0.05),
        ">= 0.90",
    );
    row("the same, CV exactly 2.5 %", found(Spread::Fixed(0.025), -0.05), ">= 0.65 (bound of any method: 0.92)");
    row("   -10 %, CV 4 %", found(Spread::Fixed(0.04), -0.10), "(none stated)");
}

/// The cost of a night of 5,000 metrics from values in memory, without the store.
fn cost() {
    let world = World::new(&WorldSpec { metrics: 5_000, nights: 81, ..WorldSpec::default() });
    let system = trial::system(&world);
    let started = Instant::now();
    let verdicts = judge(&system, trial::night(80), &Settings::default());
    row("   seconds to judge a night of 5,000 metrics, 81 nights each", started.elapsed().as_secs_f64(), "<= 0.3 with the store");
    assert_eq!(verdicts.verdicts.len(), 5_000);
}

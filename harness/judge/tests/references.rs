//! Suggested references on machines that are healthy, and on one that lost something. `docs/queries.md` has the figures.

use muster_core::{
    query::answers::SuggestedReference,
    rules::{perf::Direction, reference::Reference},
};
use muster_judge::{
    sample::{Noise, Random},
    suggest::{SuggestSettings, suggest},
};

const SESSIONS: u32 = 4_000;
const FIGURES: u32 = 8;
const DEFAULT: SuggestSettings = SuggestSettings { lower: None, upper: None, min_runs: 5 };

/// Of all sessions those with a figure that missed; of all figures those that missed, and those expected to, of each kind of noise; of
/// all losses those that were found.
#[derive(Debug, Default)]
struct Shares {
    sessions: f64,
    figures: f64,
    expected: [f64; 2],
    found: f64,
}

/// Judges sessions with references from so many runs. Where lower is better, the long tail of the noise is above.
fn judged(noise: Noise, runs: usize, direction: Option<Direction>, settings: SuggestSettings) -> Shares {
    let mut random = Random::new(runs as u64);
    let worse = if direction == Some(Direction::Lower) { 1.0 } else { -1.0 };
    let (mut shares, share) = (Shares::default(), 1.0 / f64::from(SESSIONS));
    for _ in 0..SESSIONS {
        let mut missed = 0_u32;
        for figure in 0..FIGURES {
            let spread = random.between(0.003, 0.05);
            let mut run = |level: f64| 1000.0 * level * (1.0 - worse * spread * noise.draw(&mut random));
            let stored: Vec<f64> = (0..runs).map(|_| run(1.0)).collect();
            // Figures that vary too much have no reference: nothing fails, and no loss is found.
            let Ok(suggested) = suggest(&stored, direction, settings) else { continue };
            let SuggestedReference { value, lower, upper, expected, .. } = suggested;
            let reference = Reference { value, lower, upper, unit: None, warn: None, xfail: None };
            reference.validate("").expect("bounds that a check takes");
            shares.expected = expected;
            missed += u32::from(!reference.bounds().hold(run(1.0)));
            let is_found = !reference.bounds().hold(run(1.0 + worse * (10.0 * spread).max(0.1)));
            // Of one figure: of eight that lose, one is found sooner.
            shares.found += f64::from(u8::from(is_found && figure == 0)) * share;
        }
        shares.figures += f64::from(missed) * share / f64::from(FIGURES);
        shares.sessions += f64::from(u8::from(missed > 0)) * share;
    }
    shares
}

#[test]
fn a_healthy_machine_keeps_its_bounds_and_a_loss_is_found() {
    // By the number of runs, the most healthy sessions that fail. Fewer than 25 runs do not show how long a tail is.
    let (light, long) = ([(5, 0.05), (10, 0.02), (25, 0.02), (100, 0.02)], [(5, 0.25), (10, 0.1), (25, 0.05), (100, 0.05)]);
    let rows = [
        (Noise::Gauss, light, 0.95, 0),
        (Noise::Uniform, light, 0.95, 1),
        (Noise::LongTail, long, 0.9, 1),
        (Noise::HeavyTails, long, 0.9, 1),
    ];
    for (noise, limits, fewest_found, kind) in rows {
        for (runs, most) in limits {
            for direction in [Some(Direction::Higher), Some(Direction::Lower), None] {
                let shares = judged(noise, runs, direction, DEFAULT);
                assert!(shares.sessions <= most && fewest_found <= shares.found, "{noise:?} {runs} {direction:?}: {shares:?}");
                let expected = shares.expected[kind];
                assert!(shares.figures <= expected, "{noise:?} {runs} {direction:?}: {shares:?}");
                // What is said is not far above what happens to the noise that it is measured with.
                let is_measured = noise == Noise::LongTail && direction.is_some();
                assert!(!is_measured || shares.figures >= expected / 2.0, "{noise:?} {runs} {direction:?}: {shares:?}");
            }
        }
    }
}

#[test]
fn percentiles_of_few_runs_are_no_bounds_that_a_healthy_machine_keeps() {
    let rows = [(5, SuggestSettings { lower: Some(20), ..DEFAULT }), (20, SuggestSettings { lower: Some(5), ..DEFAULT })];
    for (runs, percentiles) in rows {
        for noise in [Noise::Gauss, Noise::Uniform, Noise::LongTail, Noise::HeavyTails] {
            let shares = judged(noise, runs, Some(Direction::Higher), percentiles);
            assert!(shares.sessions > 0.4 && (shares.figures - shares.expected[0]).abs() < 0.03, "{noise:?}: {shares:?}");
        }
    }
}

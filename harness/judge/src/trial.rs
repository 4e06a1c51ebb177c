//! Counts how often the method is right on worlds whose truth is known, for its tests and `tests/bench/night.sh`.

use crate::{
    night::{Change, Metric, Night, Settings, System, Value, judge_with},
    sample::{World, WorldSpec},
};
use muster_core::rules::perf::Direction;

/// The findings in a world.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trial {
    /// All changes that were found, both ways.
    pub alarms: usize,
    /// The false alarms: changes of metrics that have not moved.
    pub false_alarms: usize,
    /// The metrics that moved.
    pub moved: Vec<Moved>,
}

/// A metric that moved.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// The standard deviation of its noise over its level.
    pub spread: f64,
    /// The number of nights until it was found, the first being 1, and the change as it was seen then.
    pub found: Option<(usize, Change)>,
    /// The change as it was seen in the last judged night.
    pub last: Option<Change>,
}

/// The night that has this place in a world.
pub fn night(place: usize) -> Night {
    Night(i32::try_from(place).unwrap_or(i32::MAX))
}

/// The world as the system of a site.
pub fn system(world: &World) -> System {
    let metric = |(id, values): (usize, &Vec<f64>)| Metric {
        id: i64::try_from(id).unwrap_or(i64::MAX),
        direction: Some(Direction::Higher),
        values: values
            .iter()
            .enumerate()
            .map(|(place, value)| Value { night: night(place), value: *value, segment: 0 })
            .collect(),
        ..Metric::default()
    };
    System { metrics: world.values.iter().enumerate().map(metric).collect(), ..System::default() }
}

/// Judges the nights from `from` to `until` of a world, the last not included; `tempering` as in [`judge_with`].
pub fn run(spec: &WorldSpec, from: usize, until: usize, tempering: Option<f64>) -> Trial {
    let world = World::new(spec);
    let mut system = system(&world);
    let moved = world.spreads[..spec.moved].iter().map(|spread| Moved { spread: *spread, found: None, last: None }).collect();
    let mut trial = Trial { moved, ..Trial::default() };
    for place in from..until {
        let verdicts = judge_with(&system, night(place), &Settings::default(), tempering);
        trial.alarms += verdicts.family.found;
        for (metric, verdict) in verdicts.verdicts.into_iter().enumerate() {
            let new = verdict.change().filter(|_| verdict.is_new);
            match trial.moved.get_mut(metric).filter(|_| place >= spec.at) {
                Some(moved) => {
                    if let Some(change) = new.filter(|_| moved.found.is_none()) {
                        moved.found = Some((place + 1 - spec.at, change.clone()));
                    }
                    moved.last = verdict.change().cloned();
                }
                None => trial.false_alarms += usize::from(new.is_some()),
            }
            system.metrics[metric].changes = verdict.changes;
        }
    }
    trial
}

//! A year of a site with forty systems: what nightly sessions measured, and what really happened.
//!
//! A session is a function of the seed, its system and its night alone, so any part of the year can be made by itself.

mod catalogue;
mod session;
mod system;

pub use session::{Ended, ExampleAttempt, ExampleCase, ExampleFigure, ExampleSession};
pub use system::{ExampleSystem, Happened, Truth};

use crate::sample::random::Random;

/// The properties of a year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YearSpec {
    pub seed: u64,
    pub systems: usize,
    pub nights: usize,
    /// The first night: days since 1970-01-01 of the date of its evening.
    pub first: i32,
}

impl Default for YearSpec {
    fn default() -> Self {
        // From 2025-12-01 on.
        Self { seed: 1, systems: 40, nights: 365, first: 20_423 }
    }
}

/// A year.
#[derive(Debug, Clone)]
pub struct Year {
    spec: YearSpec,
    systems: Vec<ExampleSystem>,
}

impl Year {
    pub fn new(spec: YearSpec) -> Self {
        let root = Random::new(spec.seed);
        let systems =
            (0..spec.systems).map(|number| ExampleSystem::new(number, spec.nights, &mut root.part(number as u64))).collect();
        Self { spec, systems }
    }

    pub fn nights(&self) -> usize {
        self.spec.nights
    }

    pub fn systems(&self) -> &[ExampleSystem] {
        &self.systems
    }

    /// The date of the evening of a night, as days since 1970-01-01.
    pub fn evening(&self, night: usize) -> i32 {
        self.spec.first.saturating_add(i32::try_from(night).unwrap_or(i32::MAX))
    }

    /// Returns the sessions on a system in a night: none in an outage, two now and then.
    pub fn sessions(&self, system: usize, night: usize) -> Vec<ExampleSession> {
        let Some(of) = self.systems.get(system) else { return Vec::new() };
        let number = (system * self.spec.nights + night) as u64;
        session::sessions(of, night, self.evening(night), &Random::new(self.spec.seed).part(number | 1 << 40))
    }

    /// Everything that happened, in the order of systems and nights.
    pub fn truth(&self) -> impl Iterator<Item = (&ExampleSystem, &Truth)> {
        self.systems.iter().flat_map(|system| system.truth.iter().map(move |truth| (system, truth)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn small() -> Year {
        Year::new(YearSpec { systems: 6, nights: 120, ..YearSpec::default() })
    }

    #[test]
    fn a_session_is_the_same_whenever_it_is_made() {
        let (year, again) = (small(), small());
        assert_eq!(year.sessions(3, 77), again.sessions(3, 77));
        assert_ne!(year.sessions(3, 77), year.sessions(3, 78));
        assert_eq!(year.sessions(99, 0), []);
        let other = Year::new(YearSpec { seed: 2, systems: 6, nights: 120, ..YearSpec::default() });
        assert_ne!(year.sessions(3, 77), other.sessions(3, 77));
    }

    #[test]
    fn a_year_has_everything_that_happens_to_a_site() {
        let year = Year::new(YearSpec::default());
        let happened: BTreeSet<&str> = year.truth().map(|(_, truth)| truth.happened.word()).collect();
        let all = ["drift", "new check", "outage", "renamed", "rewritten", "slow node", "step", "weekend"];
        assert_eq!(happened.into_iter().collect::<Vec<_>>(), all);
        assert_eq!(year.systems().len(), 40);
        let names: BTreeSet<&str> = year.systems().iter().map(|system| system.name.as_str()).collect();
        assert_eq!(names.len(), 40);
    }

    /// What the values of a variable, or of a row of its table, are from a night on, over what they were.
    fn ratio(year: &Year, system: usize, truth: &Truth, (variable, key): (&str, Option<&str>)) -> Option<f64> {
        let level = |nights: std::ops::Range<usize>| {
            let sessions = nights.flat_map(|night| year.sessions(system, night));
            let values: Vec<f64> = sessions.flat_map(|session| session.first_values(&truth.check, variable, key)).collect();
            muster_core::stats::median(&values)
        };
        let after = level(truth.from..truth.until.min(truth.from + 30))?;
        Some(after / level(truth.from - 30..truth.from)?)
    }

    #[test]
    fn a_step_is_in_the_values_of_its_variable_alone_and_an_outage_has_none() {
        let year = Year::new(YearSpec::default());
        let (mut checked, mut rows, mut times) = (0, 0, 0);
        for (place, system) in year.systems().iter().enumerate() {
            for truth in &system.truth {
                if let Happened::Outage = truth.happened {
                    assert!((truth.from..truth.until).all(|night| year.sessions(place, night).is_empty()));
                }
                let (Happened::Step { by } | Happened::Rewritten { by }) = truth.happened else { continue };
                // Nothing else may have happened around it.
                let alone = system.truth.iter().all(|other| std::ptr::eq(other, truth) || other.check != truth.check);
                if !alone || truth.from < 30 || truth.from + 10 > truth.until {
                    continue;
                }
                let entry = catalogue::CATALOGUE.iter().find(|entry| entry.check == truth.check).unwrap();
                for figure in entry.figures {
                    let Some(ratio) = ratio(&year, place, truth, (figure.variable, figure.key)) else { continue };
                    let is_meant = truth.variable.is_empty() || truth.variable == figure.variable;
                    let expected = if is_meant { 1.0 + by } else { 1.0 };
                    let noise = 0.01 + figure.spread;
                    assert!((ratio / expected - 1.0).abs() < noise, "{} {truth:?} {figure:?}: {ratio}", system.name);
                    checked += usize::from(is_meant);
                    rows += usize::from(is_meant && figure.key.is_some());
                    times += usize::from(is_meant && figure.variable == "elapsed");
                }
            }
        }
        assert!(checked >= 10 && rows >= 3 && times >= 1, "{checked} figures, {rows} rows and {times} times were checked");
    }
}

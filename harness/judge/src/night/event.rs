//! Changes of one system that go together: the nights since which they may hold overlap, and they go the same way.

use crate::night::{change::Turn, input::System, judge::Verdict, word::Word};
use muster_core::{case::check_of, night::Night};
use std::collections::BTreeSet;

/// Changes that are shown as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub turn: Turn,
    /// The nights since which all of them may hold.
    pub since_interval: (Night, Night),
    /// The metrics, by their places: those that count first, then the new ones, the one with the largest change first.
    pub metrics: Vec<usize>,
    /// The number of checks that have these figures.
    pub checks: usize,
    /// One of them was found tonight.
    pub is_new: bool,
    /// One of them counts.
    pub is_counted: bool,
}

/// The events of the changes that are shown: the ones that count first, then the new ones, the largest first.
pub(super) fn events(system: &System, verdicts: &[Verdict]) -> Vec<Event> {
    let is_shown = |verdict: &Verdict| verdict.change().is_some() && verdict.word != Word::Recovered;
    let mut places: Vec<usize> = (0..verdicts.len()).filter(|place| is_shown(&verdicts[*place])).collect();
    let interval = |place: usize| verdicts[place].change().map(|change| (change.turn, change.since_interval));
    places.sort_by_key(|place| interval(*place));
    let mut events: Vec<Event> = Vec::new();
    for place in places {
        let Some((turn, since)) = interval(place) else { continue };
        match events.last_mut() {
            Some(event) if event.turn == turn && since.0 <= event.since_interval.1 => {
                event.since_interval.1 = event.since_interval.1.min(since.1).max(since.0);
                event.since_interval.0 = since.0;
                event.metrics.push(place);
            }
            _ => events.push(Event {
                turn,
                since_interval: since,
                metrics: vec![place],
                checks: 0,
                is_new: false,
                is_counted: false,
            }),
        }
    }
    let size =
        |place: usize| verdicts[place].change().and_then(|change| change.effect).map_or(0.0, |effect| effect.estimate.abs());
    for event in &mut events {
        let order = |place: usize| (!verdicts[place].is_counted, !verdicts[place].is_new);
        event.metrics.sort_by(|a, b| order(*a).cmp(&order(*b)).then(size(*b).total_cmp(&size(*a))).then(a.cmp(b)));
        let names = event.metrics.iter().map(|place| check_of(&system.metrics[*place].name.case));
        event.checks = names.collect::<BTreeSet<_>>().len();
        event.is_new = event.metrics.iter().any(|place| verdicts[*place].is_new);
        event.is_counted = event.metrics.iter().any(|place| verdicts[*place].is_counted);
    }
    let order = |event: &Event| (!event.is_counted, !event.is_new);
    let largest = |event: &Event| event.metrics.first().map_or(0.0, |place| size(*place));
    events.sort_by(|a, b| order(a).cmp(&order(b)).then(largest(b).total_cmp(&largest(a))));
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        night::{
            change::{Change, tests::change},
            input::Metric,
            segment::Began,
        },
        stats::shift::Shift,
    };

    fn verdict(change: Change) -> Verdict {
        Verdict {
            word: Word::Regressed,
            is_new: false,
            is_counted: true,
            is_planned: true,
            value: None,
            level: None,
            nights: 0,
            began: Began::First,
            evidence: 0.0,
            smallest_step: None,
            changes: vec![change],
            shown: Some(0),
            gone_since: None,
            reason: None,
        }
    }

    #[test]
    fn changes_that_overlap_and_agree_are_one_event() {
        let rows = [
            (10, 12, Turn::Worse, -0.05, "a"),
            (11, 11, Turn::Worse, -0.09, "b"),
            (11, 11, Turn::Better, 0.2, "b"),
            (13, 14, Turn::Worse, -0.5, "c"),
            (12, 13, Turn::Worse, -0.01, "a"),
        ];
        let mut system = System::default();
        let mut verdicts = Vec::new();
        for (low, high, turn, effect, check) in rows {
            let effect = Some(Shift { estimate: effect, low: effect, high: effect });
            let since_interval = (Night(low), Night(high));
            verdicts.push(verdict(Change { since_interval, turn, effect, ..change(Night(low)) }));
            let mut metric = Metric::default();
            metric.name.case = check.to_owned();
            system.metrics.push(metric);
        }
        let found: Vec<_> = events(&system, &verdicts)
            .into_iter()
            .map(|event| (event.turn, event.metrics, event.checks, event.since_interval))
            .collect();
        let expected = [
            (Turn::Worse, vec![3, 4], 2, (Night(13), Night(13))),
            (Turn::Better, vec![2], 1, (Night(11), Night(11))),
            (Turn::Worse, vec![1, 0], 2, (Night(11), Night(11))),
        ];
        assert_eq!(found, expected);
    }
}

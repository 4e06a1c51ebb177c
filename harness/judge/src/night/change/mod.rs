//! A change of one metric: since when, by how much, and what became of it. Longer than other files: every way in which a change ends
//! is here, with its table of cases beside it; `recovery` says whether its level is over.

mod recovery;

use crate::{
    night::{
        change::recovery::{BACK, SHAPED, back_since, is_sure},
        evidence::{Evidence, LONGEST_BASELINE},
        input::Metric,
        segment::{Began, Segment},
        word::Word,
    },
    stats::{
        rank::RankTests,
        shift::{Shift, relative_change, relative_shift},
        trend::{Shape, shape},
    },
};
use muster_core::{
    night::Night,
    query::remarks::{Remark, RemarkKind},
    rules::perf::Direction,
    stats::median,
};
use muster_text::words;
use std::fmt;

/// A metric opens at most one change a night.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeId {
    /// The number of the metric in the store.
    pub metric: i64,
    /// The night in which it was found.
    pub opened: Night,
}

impl ChangeId {
    /// Reads `17@2026-11-17`.
    pub fn parse(text: &str) -> Option<Self> {
        let (metric, opened) = text.split_once('@')?;
        Some(Self { metric: metric.parse().ok()?, opened: Night::parse(opened).ok()? })
    }
}

/// `17@2026-11-17`
impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.metric, self.opened)
    }
}

words! {
    /// The direction of a change.
    pub enum Turn {
        Worse = "worse",
        Better = "better",
        /// The values of a metric without a direction are lower.
        Lower = "lower",
        Higher = "higher",
    }
}

impl Turn {
    fn of(direction: Option<Direction>, before: f64, after: f64) -> Self {
        match (direction, after < before) {
            (Some(Direction::Higher), true) | (Some(Direction::Lower), false) => Self::Worse,
            (Some(Direction::Higher), false) | (Some(Direction::Lower), true) => Self::Better,
            (None, true) => Self::Lower,
            (None, false) => Self::Higher,
        }
    }
}

/// A change, as it is seen in the judged night.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub id: ChangeId,
    /// The first night of the new level.
    pub since: Night,
    /// The first and the last night that may be it.
    pub since_interval: (Night, Night),
    pub turn: Turn,
    /// Medians.
    pub before: f64,
    pub after: f64,
    /// `None`: the old level is zero.
    pub effect: Option<Shift>,
    /// M of the night in which it was found: the odds for it.
    pub evidence: f64,
    /// c of that night, and what a metric needed that moved alone.
    pub tempering: f64,
    pub needed_alone: f64,
    /// `None` before ten nights have shown it.
    pub shape: Option<Shape>,
    pub state: ChangeState,
}

/// The state of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeState {
    Open,
    /// The metric is back at its old level since this night, which was found in another.
    Recovered {
        since: Night,
        found: Night,
    },
    /// A person has said that the level is fine.
    Accepted {
        found: Night,
    },
    /// A person has said that it is no change. Its level is followed until this night, and then its values are left out.
    Dismissed {
        until: Night,
        found: Night,
    },
    /// Its level is not what is measured any more: the metric has moved past the level before it, or is measured in another way.
    Superseded {
        found: Night,
    },
}

impl ChangeState {
    /// The night from which on it is not open any more.
    pub fn closed(self) -> Option<Night> {
        match self {
            Self::Open => None,
            Self::Recovered { found, .. }
            | Self::Accepted { found }
            | Self::Dismissed { found, .. }
            | Self::Superseded { found } => Some(found),
        }
    }
}

impl Change {
    /// A change that the evidence in the present segment has opened.
    pub(super) fn opened(
        metric: &Metric,
        segment: &Segment,
        evidence: &Evidence,
        night: Night,
        (tempering, needed_alone): (f64, f64),
    ) -> Self {
        let (low, high) = evidence.since_interval;
        let mut change = Self {
            id: ChangeId { metric: metric.id, opened: night },
            since: segment.nights[evidence.since],
            since_interval: (segment.nights[low], segment.nights[high]),
            turn: Turn::Lower,
            before: f64::NAN,
            after: f64::NAN,
            effect: None,
            evidence: evidence.sum,
            tempering,
            needed_alone,
            shape: None,
            state: ChangeState::Open,
        };
        let (before, after) = segment.values.split_at(evidence.since);
        change.measure(before, after);
        change.turn = Turn::of(metric.direction, change.before, change.after);
        change
    }

    /// Estimates size and shape from the values of the two segments.
    fn measure(&mut self, before: &[f64], after: &[f64]) {
        let before = &before[before.len().saturating_sub(LONGEST_BASELINE)..];
        let after = &after[..after.len().min(LONGEST_BASELINE)];
        let Some((old, new)) = median(before).zip(median(after)) else { return };
        (self.before, self.after) = (old, new);
        self.effect = relative_shift(&mut RankTests::default(), before, after);
        self.shape = (after.len() >= SHAPED).then(|| shape(before, after));
    }

    pub fn is_worse(&self) -> bool {
        self.turn == Turn::Worse
    }

    /// Returns whether nights from this one on are compared with those before the change, as it is open or only lately over.
    pub fn holds_back(&self, from: Night) -> bool {
        match self.state {
            ChangeState::Open => true,
            ChangeState::Recovered { since, .. } => since >= from,
            ChangeState::Dismissed { until, .. } => until >= from,
            ChangeState::Accepted { .. } | ChangeState::Superseded { .. } => false,
        }
    }

    /// Returns the word for a change that is open.
    pub fn word(&self) -> Word {
        match (self.shape, self.turn) {
            (Some(Shape::Drift), _) => Word::Drifting,
            (Some(Shape::Step) | None, Turn::Worse) => Word::Regressed,
            (Some(Shape::Step) | None, Turn::Better) => Word::Improved,
            (Some(Shape::Step) | None, Turn::Lower | Turn::Higher) => Word::Changed,
        }
    }

    pub fn is_open(&self) -> bool {
        self.state == ChangeState::Open
    }

    /// Whether its level is told apart from the one before: it is open, or its dismissal is not over.
    pub(super) fn is_followed(&self, night: Night) -> bool {
        self.is_open() || matches!(self.state, ChangeState::Dismissed { until, .. } if night <= until)
    }

    /// Its level has ended with the night before this one. What was dismissed stays dismissed, anything else is in this state.
    pub(super) fn end(&mut self, since: Night, state: ChangeState) {
        self.state = match self.state {
            ChangeState::Dismissed { until, found } => ChangeState::Dismissed { until: until.min(since.before(1)), found },
            ChangeState::Open | ChangeState::Recovered { .. } | ChangeState::Accepted { .. } | ChangeState::Superseded { .. } => {
                state
            }
        };
    }

    /// Whether its levels, as they are seen now, are no change in the direction in which it was found.
    pub(crate) fn is_gone(&self, direction: Option<Direction>, min_effect: f64) -> bool {
        relative_change(self.before, self.after).abs() < min_effect || Turn::of(direction, self.before, self.after) != self.turn
    }

    /// Whether a level is where the metric was before, or on the other side of that.
    pub(super) fn is_undone_by(&self, direction: Option<Direction>, level: f64) -> bool {
        Turn::of(direction, self.before, level) != self.turn
    }

    /// Says its turn in the words of what the variable says now: its direction may be younger than the change.
    pub(crate) fn turn_by(&mut self, direction: Option<Direction>) {
        self.turn = match (self.turn, direction) {
            (Turn::Lower, Some(_)) => Turn::of(direction, 1.0, 0.0),
            (Turn::Higher, Some(_)) => Turn::of(direction, 0.0, 1.0),
            // Which direction it had is not known: its levels are.
            (Turn::Worse | Turn::Better, None) => Turn::of(direction, self.before, self.after),
            (turn, _) => turn,
        };
    }

    /// Whether it is followed, and a later change has led back to the level before it.
    pub(super) fn is_back_with(&self, later: &Self, min_effect: f64, night: Night) -> bool {
        self.is_followed(night) && relative_change(self.before, later.after).abs() < min_effect && self.turn != later.turn
    }

    fn is_since_one_of(&self, annotation: &Remark) -> bool {
        annotation.from <= self.since_interval.1 && annotation.until.is_none_or(|until| self.since_interval.0 <= until)
    }
}

/// What people have said of changes is taken over.
pub(super) fn take_over(changes: &mut [Change], annotations: &[&Remark], night: Night) {
    let found = night;
    let mut dismissals = unused_dismissals(changes, annotations);
    for place in 0..changes.len() {
        for annotation in annotations {
            let change = &mut changes[place];
            if !change.is_open() || !change.is_since_one_of(annotation) {
                continue;
            }
            match annotation.kind {
                // Who accepts a level accepts what led to it.
                RemarkKind::Accept => changes[..=place].iter_mut().filter(|change| change.is_open()).for_each(|change| {
                    change.state = ChangeState::Accepted { found };
                }),
                RemarkKind::Dismiss => {
                    let Some(unused) = dismissals.iter().position(|unused| std::ptr::eq(*unused, *annotation)) else { continue };
                    dismissals.remove(unused);
                    change.state = ChangeState::Dismissed { until: dismissed_until(annotation, night), found };
                }
                RemarkKind::Note | RemarkKind::Maintenance | RemarkKind::Known => {}
            }
        }
    }
}

/// The last night that a dismissal is about. Where no night after the first is named, it is that in which it was said: the values
/// that have shown the change, and those that were seen then, would show it again.
fn dismissed_until(annotation: &Remark, night: Night) -> Night {
    annotation
        .until
        .filter(|until| annotation.from < *until)
        .unwrap_or_else(|| night.max(annotation.said.unwrap_or(annotation.from)))
}

/// Each dismisses one change: what later values show is new, though the nights since which it may be contain those of the one before.
fn unused_dismissals<'a>(changes: &[Change], annotations: &[&'a Remark]) -> Vec<&'a Remark> {
    let mut unused: Vec<_> = annotations.iter().copied().filter(|one| one.kind == RemarkKind::Dismiss).collect();
    for change in changes.iter().filter(|change| matches!(change.state, ChangeState::Dismissed { .. })) {
        if let Some(used) = unused.iter().position(|annotation| change.is_since_one_of(annotation)) {
            unused.remove(used);
        }
    }
    unused
}

/// What is measured in another way since a change is not at its level any more.
fn supersede(changes: &mut [Change], segments: &[Segment], night: Night) {
    let Some(anew) = segments.iter().rposition(|segment| matches!(segment.began, Began::Anew(_))) else { return };
    for change in changes.iter_mut().filter(|change| change.is_followed(night)) {
        let place = segments.iter().position(|segment| segment.began == Began::With(change.id));
        if place.is_some_and(|place| place < anew) {
            let since = segments[anew].nights.first().copied().unwrap_or(night);
            change.end(since, ChangeState::Superseded { found: night });
        }
    }
}

/// Estimates the changes of a metric that are followed again, with the values up to `night`. True if one has recovered: its segments
/// are others then.
pub(super) fn follow(changes: &mut [Change], metric: &Metric, segments: &[Segment], min_effect: f64, night: Night) -> bool {
    supersede(changes, segments, night);
    let mut has_recovered = false;
    for change in changes.iter_mut().filter(|change| change.is_followed(night)) {
        let Some(place) = segments.iter().position(|segment| segment.began == Began::With(change.id)) else { continue };
        let Some(before) = place.checked_sub(1).map(|before| &segments[before].values) else { continue };
        let after = &segments[place];
        change.measure(before, &after.values);
        // One that is followed by another change is elsewhere now.
        if place + 1 == segments.len()
            && let Some(back) = back_since(before, &after.values, min_effect, change.tempering)
        {
            let since = after.nights[back];
            change.end(since, ChangeState::Recovered { since, found: night });
            change.measure(before, &after.values[..back]);
            has_recovered = true;
        } else if change.is_gone(metric.direction, min_effect) && is_sure(before, &after.values, min_effect, change.tempering) {
            // No value was elsewhere: all of them join those before.
            let since = change.since;
            change.end(since, ChangeState::Recovered { since, found: night });
            has_recovered = true;
        }
    }
    let has_returned = close_returned(changes, segments, min_effect, night);
    has_recovered || has_returned
}

/// Closes an open change whose old level a later one has led back to, with the later one and those between. The night that found the
/// later one may have seen only part of its level.
fn close_returned(changes: &mut [Change], segments: &[Segment], min_effect: f64, night: Night) -> bool {
    let is_settled = |change: &Change| {
        let of = segments.iter().find(|segment| segment.began == Began::With(change.id));
        of.is_some_and(|segment| segment.values.len() >= BACK)
    };
    let mut has_returned = false;
    for place in 1..changes.len() {
        let later = &changes[place];
        if !later.is_open() || !is_settled(later) {
            continue;
        }
        let since = later.since;
        let Some(first) = changes[..place].iter().position(|earlier| earlier.is_back_with(later, min_effect, night)) else {
            continue;
        };
        for change in changes[first..=place].iter_mut().filter(|change| change.is_followed(night)) {
            change.end(since, ChangeState::Recovered { since, found: night });
        }
        has_returned = true;
    }
    has_returned
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::night) fn change(since: Night) -> Change {
        Change {
            id: ChangeId { metric: 1, opened: since },
            since,
            since_interval: (since, since),
            turn: Turn::Worse,
            before: 1.0,
            after: 0.9,
            effect: None,
            evidence: 1e4,
            tempering: 1.0,
            needed_alone: 2400.0,
            shape: None,
            state: ChangeState::Open,
        }
    }

    #[test]
    fn the_name_of_a_change_is_read_back() {
        let id = ChangeId { metric: 17, opened: Night(20_773) };
        assert_eq!(id.to_string(), "17@2026-11-16");
        assert_eq!(ChangeId::parse("17@2026-11-16"), Some(id));
        for text in ["17", "@2026-11-16", "x@2026-11-16", "17@yesterday", ""] {
            assert_eq!(ChangeId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn worse_is_what_the_direction_says() {
        let of = |direction| [Turn::of(direction, 2.0, 1.0), Turn::of(direction, 1.0, 2.0)];
        assert_eq!(of(Some(Direction::Higher)), [Turn::Worse, Turn::Better]);
        assert_eq!(of(Some(Direction::Lower)), [Turn::Better, Turn::Worse]);
        assert_eq!(of(None), [Turn::Lower, Turn::Higher]);
    }

    #[test]
    fn a_change_is_worse_or_better_as_soon_as_its_variable_has_a_direction() {
        use Direction::{Higher, Lower};
        let rows = [
            (Turn::Lower, Some(Higher), Turn::Worse),
            (Turn::Lower, Some(Lower), Turn::Better),
            (Turn::Higher, Some(Higher), Turn::Better),
            (Turn::Higher, Some(Lower), Turn::Worse),
            (Turn::Worse, None, Turn::Lower),
            (Turn::Lower, None, Turn::Lower),
            // The levels have passed each other since: it is gone, and not another one.
            (Turn::Better, Some(Higher), Turn::Better),
        ];
        for (turn, direction, expected) in rows {
            let mut change = Change { turn, ..change(Night(1)) };
            change.turn_by(direction);
            assert_eq!(change.turn, expected, "{turn:?} {direction:?}");
        }
    }

    #[test]
    fn a_change_whose_levels_have_met_or_passed_each_other_is_gone() {
        let of = |direction, turn, after| Change { turn, after, ..change(Night(1)) }.is_gone(direction, 0.02);
        let lower = Some(Direction::Lower);
        let rows = [
            (of(lower, Turn::Worse, 1.03), false),
            (of(lower, Turn::Worse, 1.01), true),
            (of(lower, Turn::Worse, 0.97), true),
            (of(lower, Turn::Better, 0.97), false),
            (of(None, Turn::Higher, 1.03), false),
            (of(None, Turn::Higher, 0.9), true),
        ];
        assert_eq!(rows.map(|(found, _)| found), rows.map(|(_, expected)| expected));
    }

    #[test]
    fn people_accept_and_dismiss_changes_by_their_nights() {
        use RemarkKind::{Accept, Dismiss, Known, Maintenance};
        let said_in = |said, kind, from, until: Option<i32>| {
            let (from, until, said) = (Night(from), until.map(Night), Some(Night(said)));
            let annotation = Remark { kind, from, until, said, ..Remark::default() };
            let mut changes = [change(Night(10))];
            take_over(&mut changes, &[&annotation], Night(15));
            changes[0].state
        };
        let of = |kind, from, until| said_in(from, kind, from, until);
        let found = Night(15);
        assert_eq!(of(Accept, 9, Some(11)), ChangeState::Accepted { found });
        assert_eq!(of(Accept, 11, None), ChangeState::Open);
        let dismissed = |until| ChangeState::Dismissed { until: Night(until), found };
        // It ends with `--until`; one of a single night in the night in which it was said.
        let rows = [(10, None, 15), (10, Some(10), 15), (10, Some(12), 12), (10, Some(19), 19), (18, Some(12), 12)];
        for (said, until, expected) in rows {
            assert_eq!(said_in(said, Dismiss, 10, until), dismissed(expected), "{said} {until:?}");
        }
        assert_eq!(said_in(18, Dismiss, 10, Some(10)), dismissed(18));
        assert_eq!((of(Known, 9, None), of(Maintenance, 9, None)), (ChangeState::Open, ChangeState::Open));
    }
}

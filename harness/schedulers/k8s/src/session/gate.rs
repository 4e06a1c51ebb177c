//! Limits launches while the server refuses what it granted before: one case tries, the others wait. Pure: times are parameters.
//!
//! ```text
//! open --refused--> one case on trial, every 5 s --launched--> open
//!                        |        ^
//!                        |        '- the next that asks
//!                        '--refused for a minute--> that case fails (`error{config}`)
//! ```
//! There is a gate for each kind of object: a Role that has lost its rule for Jobs does not hold up Pods.

use crate::client::REFUSAL_LIMIT;
use muster_core::case::Identifier;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// The interval between tries.
const EVERY: Duration = Duration::from_secs(5);
/// A case that does not try for so long, although it is its turn, has left.
const ABSENT: Duration = Duration::from_secs(20);
/// The interval after which a waiting case asks the gate again. This costs no request.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// The closed gates, by kind of object.
#[derive(Debug, Default)]
pub(crate) struct Gates(BTreeMap<String, Closed>);

#[derive(Debug)]
struct Closed {
    trial: Option<Trial>,
    next: Instant,
    /// The reason, as reported to all waiting cases.
    why: String,
}

#[derive(Debug)]
struct Trial {
    of: Identifier,
    since: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterRefusal {
    /// Try again.
    Retry,
    /// It was refused for too long.
    Fail,
}

impl Gates {
    /// Why a case may not launch objects of these kinds now; `None`: it may.
    pub(crate) fn closed<'a>(
        &mut self,
        case: &Identifier,
        kinds: impl IntoIterator<Item = &'a str>,
        now: Instant,
    ) -> Option<String> {
        kinds.into_iter().find_map(|kind| {
            let gate = self.0.get_mut(kind)?;
            (!gate.may_try(case, now)).then(|| gate.why.clone())
        })
    }

    /// A case was refused an object of this kind.
    pub(crate) fn refused(&mut self, case: &Identifier, kind: &str, why: &str, now: Instant) -> AfterRefusal {
        let trial = || Some(Trial { of: case.clone(), since: now });
        let gate = self.0.entry(kind.to_owned()).or_insert_with(|| Closed { trial: trial(), next: now, why: why.to_owned() });
        let Some(Trial { since, .. }) = gate.trial.as_ref().filter(|trial| trial.of == *case) else {
            // It was on its way when the gate closed.
            return AfterRefusal::Retry;
        };
        let is_over = now.duration_since(*since) >= REFUSAL_LIMIT;
        gate.next = now + EVERY;
        if is_over {
            gate.trial = None;
            return AfterRefusal::Fail;
        }
        AfterRefusal::Retry
    }

    /// Objects of these kinds are created.
    pub(crate) fn launched<'a>(&mut self, kinds: impl IntoIterator<Item = &'a str>) {
        for kind in kinds {
            self.0.remove(kind);
        }
    }

    /// The case is launched or given up.
    pub(crate) fn leave(&mut self, case: &Identifier) {
        for gate in self.0.values_mut() {
            gate.trial = gate.trial.take().filter(|trial| trial.of != *case);
        }
    }
}

impl Closed {
    fn may_try(&mut self, case: &Identifier, now: Instant) -> bool {
        let is_due = now >= self.next;
        let is_absent = now.duration_since(self.next) >= ABSENT;
        match &self.trial {
            Some(trial) if trial.of == *case => is_due,
            Some(_) if !is_absent => false,
            _ if !is_due => false,
            _ => {
                self.trial = Some(Trial { of: case.clone(), since: now });
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(letter: char) -> Identifier {
        Identifier::parse(&letter.to_string().repeat(8)).unwrap()
    }

    /// At which second, which case.
    type Moments = Vec<(u64, char)>;

    /// Cases that ask every second while the server refuses until a moment: who tried when, and who was over when.
    fn simulate(cases: &[char], granted_at: u64, seconds: u64) -> (Moments, Moments) {
        let (start, mut gates) = (Instant::now(), Gates::default());
        let (mut tried, mut over, mut left) = (Vec::new(), Vec::new(), cases.to_vec());
        for second in 0..seconds {
            let now = start + Duration::from_secs(second);
            for letter in left.clone() {
                if gates.closed(&case(letter), ["pods"], now).is_some() {
                    continue;
                }
                tried.push((second, letter));
                if second >= granted_at {
                    gates.launched(["pods"]);
                    left.retain(|other| *other != letter);
                } else if gates.refused(&case(letter), "pods", "why", now) == AfterRefusal::Fail {
                    over.push((second, letter));
                    left.retain(|other| *other != letter);
                }
            }
        }
        (tried, over)
    }

    #[test]
    fn one_case_is_tried_every_five_seconds_and_all_are_when_it_is_launched() {
        let (tried, over) = simulate(&['a', 'b', 'c'], 11, 20);
        assert_eq!(tried, [(0, 'a'), (5, 'a'), (10, 'a'), (15, 'a'), (15, 'b'), (15, 'c')]);
        assert_eq!(over, []);
    }

    #[test]
    fn a_case_that_is_refused_for_a_minute_fails_and_the_others_wait_for_the_next_trial() {
        let (tried, over) = simulate(&['a', 'b', 'c'], 100, 120);
        assert_eq!(over, [(60, 'a')]);
        let second = tried.iter().find(|(_, letter)| *letter == 'b');
        assert_eq!(second, Some(&(65, 'b')));
        assert_eq!(tried.iter().filter(|(at, _)| *at < 100).count(), 13 + 7, "{tried:?}");
        assert_eq!(tried[tried.len() - 2..], [(100, 'b'), (100, 'c')]);
    }

    #[test]
    fn a_case_that_leaves_or_does_not_ask_gives_its_turn_to_the_next() {
        let (now, mut gates) = (Instant::now(), Gates::default());
        let at = |seconds: u64| now + Duration::from_secs(seconds);
        gates.refused(&case('a'), "pods", "why", now);
        assert!(gates.closed(&case('b'), ["pods"], at(5)).is_some());
        assert_eq!(gates.closed(&case('b'), ["jobs.batch"], at(5)), None, "another kind");
        assert_eq!(gates.closed(&case('b'), ["pods"], at(25)), None, "a was not seen for 20 s");
        gates.refused(&case('b'), "pods", "why", at(25));
        gates.leave(&case('b'));
        assert!(gates.closed(&case('c'), ["pods"], at(26)).is_some(), "not before the pause is over");
        assert_eq!(gates.closed(&case('c'), ["pods"], at(30)), None);
    }

    #[test]
    fn a_launch_that_was_on_its_way_when_the_gate_closed_is_not_over() {
        let (now, mut gates) = (Instant::now(), Gates::default());
        gates.refused(&case('a'), "pods", "why", now);
        assert_eq!(gates.refused(&case('b'), "pods", "why", now + REFUSAL_LIMIT), AfterRefusal::Retry);
    }
}

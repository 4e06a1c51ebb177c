//! Capacity that is reserved for workloads whose pods do not exist yet: the quota does not count them, and it must not be used twice.

use super::Demand;
use crate::api::Quantity;
use muster_core::case::Identifier;
use muster_text::time::Timestamp;
use std::{collections::BTreeMap, time::Duration};

/// A reservation ends after this time: a controller that has made no pods by then does not get the capacity.
const LONGEST: Duration = Duration::from_secs(30);

/// The reservations in one namespace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reservations {
    to: BTreeMap<Identifier, Reservation>,
}

#[derive(Debug, Clone)]
struct Reservation {
    one: Demand,
    pods: u32,
    since: Timestamp,
}

impl Reservations {
    /// Reserves `pods` times `one` for `who`.
    pub(crate) fn reserve(&mut self, who: &Identifier, one: &Demand, pods: u32, now: Timestamp) {
        self.to.insert(who.clone(), Reservation { one: one.clone(), pods, since: now });
    }

    /// `who` was not created.
    pub(crate) fn release(&mut self, who: &Identifier) {
        self.to.remove(who);
    }

    /// What all but `who` still wait for. `there`: how many pods of a workload have been seen.
    pub(crate) fn for_others(&mut self, who: &Identifier, now: Timestamp, there: impl Fn(&Identifier) -> u32) -> Demand {
        self.to.retain(|other, reservation| now.since(reservation.since) <= LONGEST && there(other) < reservation.pods);
        let mut sum = Demand::new();
        for (other, reservation) in self.to.iter().filter(|(other, _)| *other != who) {
            let missing = reservation.pods.saturating_sub(there(other));
            for (resource, amount) in &reservation.one {
                let total = sum.entry(resource.clone()).or_insert(Quantity::ZERO);
                *total = total.plus(amount.times(missing));
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_promised_until_the_pods_are_there_or_do_not_come() {
        let id = |letter: char| Identifier::parse(&letter.to_string().repeat(8)).unwrap();
        let at = |seconds: i64| Timestamp(seconds * 1_000_000);
        let one = Demand::from([("pods".to_owned(), Quantity::whole(1))]);
        let mut promised = Reservations::default();
        let for_others = |promised: &mut Reservations, who, seconds, there| {
            promised.for_others(&id(who), at(seconds), |_| there).get("pods").map_or("0".to_owned(), ToString::to_string)
        };
        promised.reserve(&id('a'), &one, 4, at(0));
        assert_eq!(for_others(&mut promised, 'a', 1, 0), "0", "its own");
        assert_eq!(for_others(&mut promised, 'b', 1, 0), "4");
        assert_eq!(for_others(&mut promised, 'b', 1, 3), "1");
        assert_eq!(for_others(&mut promised, 'b', 1, 4), "0");
        assert_eq!(for_others(&mut promised, 'b', 1, 0), "0", "it had them all");
        promised.reserve(&id('a'), &one, 4, at(0));
        assert_eq!(for_others(&mut promised, 'b', 31, 0), "0");
        promised.reserve(&id('a'), &one, 4, at(40));
        promised.release(&id('a'));
        assert_eq!(for_others(&mut promised, 'b', 41, 0), "0");
    }
}

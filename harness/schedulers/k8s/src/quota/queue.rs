//! The queue of a session's cases for the quotas of one namespace.
//!
//! ```text
//! refused ---> waits, in the order of the first refusal ---> launched, cancelled: leaves
//!                '-> no try for half a minute: leaves, so that a cancelled case does not block the others
//! ```
//! A case may try if no case before it waits for a resource that it wants too. So small cases do not starve a big one, and a
//! case that wants no GPU passes those that wait for GPUs.
//!
//! Capacity is reserved for workloads whose pods do not exist yet: the quota does not count them, and it must not be used twice.
//!
//! Other sessions and other users are not in the queue. The API server decides between them.

use super::{Demand, Refusal, Together};
use crate::api::Quantity;
use muster_core::case::Identifier;
use muster_text::time::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// A case that has not tried for this time has left: twice the longest time between two tries.
pub(super) const SILENT: Duration = Duration::from_secs(30);

/// The waiting cases of one namespace, the first refused first.
#[derive(Debug, Clone, Default)]
pub(crate) struct WaitQueue {
    waiting: Vec<Waiting>,
}

#[derive(Debug, Clone)]
struct Waiting {
    who: Identifier,
    /// The resources that were short when it last tried.
    short: BTreeSet<String>,
    last_try: Timestamp,
}

impl WaitQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The first case before `who` that waits for a resource that `who` wants too, with that resource; `None`: `who` may try.
    /// Asking keeps its place.
    pub(crate) fn blocker(&mut self, who: &Identifier, wants: &Demand, now: Timestamp) -> Option<(Identifier, String)> {
        self.touch(who, now);
        let mut before = self.waiting.iter().take_while(|waiting| waiting.who != *who);
        before.find_map(|waiting| {
            let resource = waiting.short.iter().find(|resource| wants.contains_key(*resource))?;
            Some((waiting.who.clone(), resource.clone()))
        })
    }

    /// `who` has tried and was refused. It keeps its place if it has one.
    pub(crate) fn refused(&mut self, who: &Identifier, refusal: &Refusal, now: Timestamp) {
        let short = refusal.resources().map(str::to_owned).collect();
        match self.waiting.iter_mut().find(|waiting| waiting.who == *who) {
            Some(waiting) => waiting.short = short,
            None => self.waiting.push(Waiting { who: who.clone(), short, last_try: now }),
        }
        self.touch(who, now);
    }

    /// `who` was launched, or is given up.
    pub(crate) fn leave(&mut self, who: &Identifier) {
        self.waiting.retain(|waiting| waiting.who != *who);
    }

    fn touch(&mut self, who: &Identifier, now: Timestamp) {
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.who == *who) {
            waiting.last_try = now;
        }
        self.waiting.retain(|waiting| now.since(waiting.last_try) <= SILENT);
    }
}

/// A reservation ends after this time: a controller that has made no pods by then does not get the capacity.
const LONGEST: Duration = Duration::from_secs(30);

/// The reservations in one namespace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reservations {
    to: BTreeMap<Identifier, Reservation>,
}

#[derive(Debug, Clone)]
struct Reservation {
    pods: Together,
    since: Timestamp,
}

impl Reservations {
    /// Reserves what all pods of `who` take, instead of what was reserved for it before.
    pub(crate) fn reserve(&mut self, who: &Identifier, pods: &Together, now: Timestamp) {
        self.to.insert(who.clone(), Reservation { pods: pods.clone(), since: now });
    }

    /// `who` was not created.
    pub(crate) fn release(&mut self, who: &Identifier) {
        self.to.remove(who);
    }

    /// What all but `who` still wait for. `there`: how many pods of a workload have been seen.
    pub(crate) fn for_others(&mut self, who: &Identifier, now: Timestamp, there: impl Fn(&Identifier) -> u32) -> Demand {
        self.to.retain(|other, reservation| now.since(reservation.since) <= LONGEST && there(other) < reservation.pods.pods());
        let mut sum = Demand::new();
        for (other, reservation) in self.to.iter().filter(|(other, _)| *other != who) {
            let missing = reservation.pods.pods().saturating_sub(there(other));
            for (resource, amount) in reservation.pods.most_of(missing) {
                let total = sum.entry(resource).or_insert(Quantity::ZERO);
                *total = total.plus(amount);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::Shortage;

    const GPU: &str = "requests.nvidia.com/gpu";

    fn id(letter: char) -> Identifier {
        Identifier::parse(&letter.to_string().repeat(8)).unwrap()
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::default().plus(Duration::from_secs(seconds))
    }

    fn wants(resources: &[&str]) -> Demand {
        resources.iter().map(|resource| ((*resource).to_owned(), Quantity::whole(1))).collect()
    }

    fn short_of(resource: &str) -> Refusal {
        let amount = Quantity::whole(1);
        let shortage = Shortage { resource: resource.into(), requested: amount, used: amount, limited: amount };
        Refusal::Exceeded { quota: "q".into(), shortages: vec![shortage] }
    }

    #[test]
    fn a_small_case_does_not_overtake_a_big_one_that_waits_for_the_same() {
        let mut queue = WaitQueue::default();
        let (big, small, other) = (id('a'), id('b'), id('c'));
        assert_eq!(queue.blocker(&big, &wants(&[GPU]), at(0)), None);
        queue.refused(&big, &short_of(GPU), at(0));
        assert_eq!(queue.blocker(&small, &wants(&[GPU, "pods"]), at(1)), Some((big.clone(), GPU.into())));
        assert_eq!(queue.blocker(&other, &wants(&["limits.cpu", "pods"]), at(1)), None, "wants nothing that is waited for");
        assert_eq!(queue.blocker(&big, &wants(&[GPU]), at(2)), None, "no case is before it");
        queue.leave(&big);
        assert_eq!(queue.blocker(&small, &wants(&[GPU]), at(3)), None);
        assert!(queue.waiting.is_empty());
    }

    #[test]
    fn a_place_in_the_queue_is_kept_however_often_a_case_is_refused() {
        let mut queue = WaitQueue::default();
        for (who, seconds) in [('a', 0), ('b', 1), ('a', 15), ('b', 16), ('a', 30), ('b', 31), ('a', 45), ('b', 46)] {
            queue.refused(&id(who), &short_of(GPU), at(seconds));
        }
        assert_eq!(queue.blocker(&id('a'), &wants(&[GPU]), at(50)), None);
        assert_eq!(queue.blocker(&id('b'), &wants(&[GPU]), at(50)), Some((id('a'), GPU.into())));
    }

    #[test]
    fn a_case_that_falls_silent_blocks_no_other() {
        let mut queue = WaitQueue::default();
        queue.refused(&id('a'), &short_of(GPU), at(0));
        queue.refused(&id('b'), &short_of(GPU), at(10));
        assert_eq!(queue.blocker(&id('b'), &wants(&[GPU]), at(30)), Some((id('a'), GPU.into())));
        assert_eq!(queue.blocker(&id('b'), &wants(&[GPU]), at(31)), None);
        assert_eq!(queue.blocker(&id('a'), &wants(&[GPU]), at(32)), Some((id('b'), GPU.into())), "it comes back as the last");
    }

    #[test]
    fn what_was_short_is_what_was_short_last() {
        let mut queue = WaitQueue::default();
        queue.refused(&id('a'), &short_of(GPU), at(0));
        queue.refused(&id('a'), &short_of("pods"), at(1));
        assert_eq!(queue.blocker(&id('b'), &wants(&[GPU]), at(2)), None);
        assert_eq!(queue.blocker(&id('b'), &wants(&["pods"]), at(2)), Some((id('a'), "pods".into())));
    }

    #[test]
    fn room_is_promised_until_the_pods_are_there_or_do_not_come() {
        let id = |letter: char| Identifier::parse(&letter.to_string().repeat(8)).unwrap();
        let at = |seconds: i64| Timestamp(seconds * 1_000_000);
        let one = || Demand::from([("pods".to_owned(), Quantity::whole(1))]);
        let four = Together::of([vec![(one(), 1), (one(), 3)]]);
        let mut promised = Reservations::default();
        let for_others = |promised: &mut Reservations, who, seconds, there| {
            promised.for_others(&id(who), at(seconds), |_| there).get("pods").map_or("0".to_owned(), ToString::to_string)
        };
        promised.reserve(&id('a'), &four, at(0));
        assert_eq!(for_others(&mut promised, 'a', 1, 0), "0", "its own");
        assert_eq!(for_others(&mut promised, 'b', 1, 0), "4");
        assert_eq!(for_others(&mut promised, 'b', 1, 3), "1");
        assert_eq!(for_others(&mut promised, 'b', 1, 4), "0");
        assert_eq!(for_others(&mut promised, 'b', 1, 0), "0", "it had them all");
        promised.reserve(&id('a'), &four, at(0));
        assert_eq!(for_others(&mut promised, 'b', 31, 0), "0");
        promised.reserve(&id('a'), &four, at(40));
        promised.release(&id('a'));
        assert_eq!(for_others(&mut promised, 'b', 41, 0), "0");
    }
}

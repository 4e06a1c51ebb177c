//! The line of a session's cases in front of the quotas of one namespace.
//!
//! ```text
//! refused ---> stands in line, in the order of its first refusal ---> launched, cancelled: leaves
//!                '-> silent for half a minute: who was cancelled, or timed out, must not hold up the others
//! ```
//! A case may try when nobody who stands before it waits for a resource that it wants too. So small cases do not starve
//! a big one, and a case that wants no GPU passes those that wait for GPUs.
//!
//! Not here: other sessions and other users. The API server decides between them.

use super::{Demand, Refusal};
use muster_core::case::Identifier;
use muster_text::time::Timestamp;
use std::{collections::BTreeSet, time::Duration};

/// Whoever has not tried for so long has left: twice the longest time between two tries.
pub(super) const SILENT: Duration = Duration::from_secs(30);

/// Who waits in one namespace, first come first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    waiting: Vec<Waiting>,
}

#[derive(Debug, Clone)]
struct Waiting {
    who: Identifier,
    /// The resources that were short when it last tried.
    short: BTreeSet<String>,
    heard: Timestamp,
}

/// Whether somebody may try now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nobody stands before it.
    Try,
    /// This one does, and waits for this resource.
    Behind(Identifier, String),
}

impl Line {
    /// Asks whether `who` may try to get what it `wants` now. Asking keeps its place.
    pub(crate) fn may_try(&mut self, who: &Identifier, wants: &Demand, now: Timestamp) -> Turn {
        self.hear(who, now);
        let before = self.waiting.iter().take_while(|waiting| waiting.who != *who);
        let blocking = before.filter_map(|waiting| {
            let resource = waiting.short.iter().find(|resource| wants.contains_key(*resource))?;
            Some(Turn::Behind(waiting.who.clone(), resource.clone()))
        });
        blocking.into_iter().next().unwrap_or(Turn::Try)
    }

    /// `who` has tried and was refused: it stands in line, where it stood if it did.
    pub(crate) fn refused(&mut self, who: &Identifier, refusal: &Refusal, now: Timestamp) {
        let short = refusal.resources().map(str::to_owned).collect();
        match self.waiting.iter_mut().find(|waiting| waiting.who == *who) {
            Some(waiting) => {
                waiting.short = short;
                waiting.heard = now;
            }
            None => self.waiting.push(Waiting { who: who.clone(), short, heard: now }),
        }
        self.hear(who, now);
    }

    /// `who` was launched, or is given up.
    pub(crate) fn leave(&mut self, who: &Identifier) {
        self.waiting.retain(|waiting| waiting.who != *who);
    }

    fn hear(&mut self, who: &Identifier, now: Timestamp) {
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.who == *who) {
            waiting.heard = now;
        }
        self.waiting.retain(|waiting| now.since(waiting.heard) <= SILENT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api::Quantity, quota::Shortage};

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
        let mut line = Line::default();
        let (big, small, other) = (id('a'), id('b'), id('c'));
        assert_eq!(line.may_try(&big, &wants(&[GPU]), at(0)), Turn::Try);
        line.refused(&big, &short_of(GPU), at(0));
        assert_eq!(line.may_try(&small, &wants(&[GPU, "pods"]), at(1)), Turn::Behind(big.clone(), GPU.into()));
        assert_eq!(line.may_try(&other, &wants(&["limits.cpu", "pods"]), at(1)), Turn::Try, "wants nothing that is waited for");
        assert_eq!(line.may_try(&big, &wants(&[GPU]), at(2)), Turn::Try, "nobody is before it");
        line.leave(&big);
        assert_eq!(line.may_try(&small, &wants(&[GPU]), at(3)), Turn::Try);
        assert!(line.waiting.is_empty());
    }

    #[test]
    fn a_place_in_line_is_kept_however_often_one_is_refused() {
        let mut line = Line::default();
        for (who, seconds) in [('a', 0), ('b', 1), ('a', 15), ('b', 16), ('a', 30), ('b', 31), ('a', 45), ('b', 46)] {
            line.refused(&id(who), &short_of(GPU), at(seconds));
        }
        assert_eq!(line.may_try(&id('a'), &wants(&[GPU]), at(50)), Turn::Try);
        assert_eq!(line.may_try(&id('b'), &wants(&[GPU]), at(50)), Turn::Behind(id('a'), GPU.into()));
    }

    #[test]
    fn whoever_falls_silent_holds_nobody_up() {
        let mut line = Line::default();
        line.refused(&id('a'), &short_of(GPU), at(0));
        line.refused(&id('b'), &short_of(GPU), at(10));
        assert_eq!(line.may_try(&id('b'), &wants(&[GPU]), at(30)), Turn::Behind(id('a'), GPU.into()));
        assert_eq!(line.may_try(&id('b'), &wants(&[GPU]), at(31)), Turn::Try);
        assert_eq!(line.may_try(&id('a'), &wants(&[GPU]), at(32)), Turn::Behind(id('b'), GPU.into()), "it comes back behind");
    }

    #[test]
    fn what_was_short_is_what_was_short_last() {
        let mut line = Line::default();
        line.refused(&id('a'), &short_of(GPU), at(0));
        line.refused(&id('a'), &short_of("pods"), at(1));
        assert_eq!(line.may_try(&id('b'), &wants(&[GPU]), at(2)), Turn::Try);
        assert_eq!(line.may_try(&id('b'), &wants(&["pods"]), at(2)), Turn::Behind(id('a'), "pods".into()));
    }
}

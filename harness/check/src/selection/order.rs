//! The order in which cases run, and this invocation's share of them.

use crate::cases::test_case::TestCase;
use muster_core::case::{CaseHash, CaseName};
use std::{cmp::Reverse, fmt};

/// `--exec-order`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Name,
    /// Descending by name.
    NameBackwards,
    /// Ascending by hash: ReFrame's `uid` counts variants, which depends on the order of their values in a file.
    Hash,
    /// Descending by hash.
    HashBackwards,
    /// Any, the same whenever the session is resumed.
    Random,
}

impl Order {
    /// Sorts cases; `seed` makes one random order of many.
    pub fn sort(self, cases: &mut [TestCase], seed: &str) {
        match self {
            Self::Name => cases.sort_by(|a, b| a.name.cmp(&b.name)),
            Self::NameBackwards => cases.sort_by(|a, b| b.name.cmp(&a.name)),
            Self::Hash => cases.sort_by_cached_key(|case| (case.name.hash.clone(), case.name.clone())),
            Self::HashBackwards => cases.sort_by_cached_key(|case| Reverse((case.name.hash.clone(), case.name.clone()))),
            Self::Random => cases.sort_by_cached_key(|case| number(&case.name, seed)),
        }
    }
}

/// `--shard 2/5`: one share of a selection; all shares together are the whole, and no case is in two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    index: u64,
    count: u64,
}

impl Shard {
    /// Reads `2/5`.
    ///
    /// # Errors
    /// A lower-case fragment that says what is wrong with `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid share `{text}`: write which of how many, as in 2/5");
        let (index, count) = text.split_once('/').ok_or_else(wrong)?;
        let shard = Self { index: index.parse().map_err(|_| wrong())?, count: count.parse().map_err(|_| wrong())? };
        if (1..=shard.count).contains(&shard.index) { Ok(shard) } else { Err(wrong()) }
    }

    /// Returns for each case whether it is in the share. Its name alone decides, so that shares stay what they are when others
    /// come and go; `needs` are pairs of places in `names` that belong together: a case and one that it depends on.
    pub fn takes(self, names: &[&CaseName], needs: &[(usize, usize)]) -> Vec<bool> {
        let mut parents: Vec<usize> = (0..names.len()).collect();
        for (one, other) in needs {
            let (one, other) = (find(&mut parents, *one), find(&mut parents, *other));
            parents[one.max(other)] = one.min(other);
        }
        let mut keys: Vec<u64> = names.iter().map(|name| number(name, "")).collect();
        // A group goes to the share of its smallest number.
        for at in 0..names.len() {
            let first = find(&mut parents, at);
            keys[first] = keys[first].min(keys[at]);
        }
        (0..names.len()).map(|at| keys[find(&mut parents, at)] % self.count == self.index - 1).collect()
    }
}

/// `2/5`
impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// The first of the group that one belongs to.
fn find(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}

/// A number for a case, as good as a random one.
fn number(name: &CaseName, seed: &str) -> u64 {
    CaseHash::of(&name.title(), [("place", name.place().as_str()), ("seed", seed)]).number()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<CaseName> {
        let text = |text: &str| text.to_owned();
        let name = |n| CaseName {
            display: format!("case %n={n}"),
            check: text("case"),
            hash: text(""),
            system: text("s"),
            partition: text("p"),
            environ: text("e"),
            hidden: text(""),
        };
        (0..count).map(name).collect()
    }

    fn shares(names: &[&CaseName], needs: &[(usize, usize)], count: u64) -> Vec<Vec<bool>> {
        (1..=count).map(|index| Shard { index, count }.takes(names, needs)).collect()
    }

    #[test]
    fn every_case_is_in_exactly_one_share() {
        let names = names(1000);
        let names: Vec<&CaseName> = names.iter().collect();
        for count in [1, 2, 3, 7] {
            let shares = shares(&names, &[], count);
            for at in 0..names.len() {
                assert_eq!(shares.iter().filter(|share| share[at]).count(), 1, "{at} of {count}");
            }
            let least = shares.iter().map(|share| share.iter().filter(|takes| **takes).count()).min();
            assert!(least > Some(1000 / usize::try_from(count).unwrap() * 8 / 10), "{least:?} of {count}");
        }
    }

    #[test]
    fn a_case_keeps_its_share_when_others_come_and_go() {
        let all = names(50);
        let (whole, some): (Vec<_>, Vec<_>) = (all.iter().collect(), all.iter().step_by(3).collect());
        let shard = Shard::parse("2/4").unwrap();
        let of_whole: Vec<bool> = shard.takes(&whole, &[]).into_iter().step_by(3).collect();
        assert_eq!(of_whole, shard.takes(&some, &[]));
    }

    #[test]
    fn what_depends_on_each_other_is_in_one_share() {
        let all = names(30);
        let all: Vec<&CaseName> = all.iter().collect();
        let needs: Vec<(usize, usize)> = (0..29).filter(|n| n % 5 != 4).map(|n| (n + 1, n)).collect();
        for share in shares(&all, &needs, 3) {
            for chain in share.chunks(5) {
                assert!(chain.iter().all(|takes| *takes == chain[0]), "{chain:?}");
            }
        }
        // In whatever order they are named.
        assert_eq!(shares(&all, &[(0, 29), (15, 29)], 3), shares(&all, &[(29, 15), (29, 0)], 3));
    }

    #[test]
    fn a_share_is_one_of_so_many() {
        for text in ["", "1", "0/3", "4/3", "1/0", "a/b", "1/3/5", "-1/3"] {
            assert!(Shard::parse(text).is_err(), "{text}");
        }
        assert_eq!(Shard::parse("3/3"), Ok(Shard { index: 3, count: 3 }));
    }
}

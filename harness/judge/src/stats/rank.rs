//! The rank test of Mann and Whitney for two sets of values: exact for few values, also where some are equal.

use crate::stats::normal;
use muster_core::stats::{as_float, floor};
use std::collections::BTreeMap;

/// The way in which the probability was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Counted over all ways to draw the two sets from their union.
    Exact,
    /// The normal distribution, corrected for equal values: both sets are large.
    Normal,
}

/// The probability that chance alone explains that one set lies above the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankTest {
    /// Two-sided.
    pub p: f64,
    pub method: Method,
}

/// Counting takes one addition for each value, chosen value and sum of ranks: so many at most (some milliseconds).
const COUNTED: usize = 4_000_000;

/// Tests pairs of sets. What it has counted for sets without equal values serves all other sets of these sizes.
#[derive(Debug, Default)]
pub struct RankTests(BTreeMap<(usize, usize), Vec<f64>>);

impl RankTests {
    /// Compares two sets of numbers; `None` if one is empty.
    pub fn compare(&mut self, a: &[f64], b: &[f64]) -> Option<RankTest> {
        let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
        if few.is_empty() {
            return None;
        }
        let union = Union::of(few, many);
        if cost(few.len(), many.len(), union.has_ties) > COUNTED {
            return Some(RankTest { p: union.normal_p(few.len()), method: Method::Normal });
        }
        let p = if union.has_ties {
            two_sided(&cumulative(&union.doubled_ranks, few.len()), union.doubled_sum)
        } else {
            two_sided(self.untied(few.len(), many.len()), union.doubled_sum / 2)
        };
        Some(RankTest { p, method: Method::Exact })
    }

    fn untied(&mut self, few: usize, many: usize) -> &[f64] {
        self.0.entry((few, many)).or_insert_with(|| cumulative(&(1..=few + many).collect::<Vec<_>>(), few))
    }

    /// Returns the number of the smallest (and of the largest) differences between two sets that lie outside an interval which
    /// holds the true one with this confidence.
    pub fn outside(&mut self, a: usize, b: usize, confidence: f64) -> usize {
        let (few, many) = (a.min(b), a.max(b));
        let share = (1.0 - confidence) / 2.0;
        if cost(few, many, false) > COUNTED {
            let pairs = as_float(few) * as_float(many);
            let sigma = (pairs * as_float(few + many + 1) / 12.0).sqrt();
            return floor(pairs / 2.0 + normal::quantile(share) * sigma);
        }
        // The smallest possible sum of ranks is that of U = 0.
        let smallest = few * (few + 1) / 2;
        self.untied(few, many).iter().skip(smallest).take_while(|p| **p <= share).count()
    }
}

/// The smallest two-sided probability that sets of these sizes can have, whatever their values.
pub fn smallest_p(a: usize, b: usize) -> f64 {
    let few = a.min(b);
    let ways = (1..=few).fold(1.0, |ways, k| ways * as_float(a + b - few + k) / as_float(k));
    if few == 0 { 1.0 } else { (2.0 / ways).min(1.0) }
}

fn cost(few: usize, many: usize, has_ties: bool) -> usize {
    let all = few.saturating_add(many);
    all.saturating_mul(few).saturating_mul(few).saturating_mul(all).saturating_mul(1 + usize::from(has_ties))
}

/// Two sets as one, with the ranks of its values doubled: equal values share the mean of their ranks, which may end in a half.
struct Union {
    doubled_ranks: Vec<usize>,
    /// Of the smaller set.
    doubled_sum: usize,
    has_ties: bool,
    /// Sum of t^3 - t over groups of t equal values.
    tie_term: f64,
}

impl Union {
    fn of(few: &[f64], many: &[f64]) -> Self {
        let mut all: Vec<(f64, bool)> = few.iter().map(|value| (*value, true)).collect();
        all.extend(many.iter().map(|value| (*value, false)));
        all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut union = Self { doubled_ranks: Vec::with_capacity(all.len()), doubled_sum: 0, has_ties: false, tie_term: 0.0 };
        // `==`, so that 0 and -0 are equal.
        #[allow(clippy::float_cmp, reason = "a tie is exact equality")]
        for group in all.chunk_by(|(a, _), (b, _)| a == b) {
            let before = union.doubled_ranks.len();
            let doubled = 2 * before + group.len() + 1;
            union.doubled_ranks.extend(std::iter::repeat_n(doubled, group.len()));
            union.doubled_sum += doubled * group.iter().filter(|(_, is_of_few)| *is_of_few).count();
            union.has_ties |= group.len() > 1;
            let ties = as_float(group.len());
            union.tie_term += ties * ties * ties - ties;
        }
        union
    }

    fn normal_p(&self, few: usize) -> f64 {
        let (all, few) = (as_float(self.doubled_ranks.len()), as_float(few));
        let variance = few * (all - few) / 12.0 * (all + 1.0 - self.tie_term / (all * (all - 1.0)));
        if variance <= 0.0 {
            return 1.0;
        }
        let distance = (as_float(self.doubled_sum) / 2.0 - few * (all + 1.0) / 2.0).abs() - 0.5;
        (2.0 * normal::cumulative(-distance.max(0.0) / variance.sqrt())).min(1.0)
    }
}

/// The probabilities of at most each sum of `chosen` of these ranks, all choices being equally likely.
fn cumulative(ranks: &[usize], chosen: usize) -> Vec<f64> {
    let largest: usize = ranks.iter().rev().take(chosen).sum();
    // Ways to reach each sum, by the number of ranks chosen so far.
    let mut ways = vec![vec![0.0; largest + 1]; chosen + 1];
    ways[0][0] = 1.0;
    for (before, rank) in ranks.iter().enumerate() {
        for count in (1..=chosen.min(before + 1)).rev() {
            let (fewer, more) = ways.split_at_mut(count);
            let (from, to) = (&fewer[count - 1], &mut more[0]);
            for (to, from) in to[(*rank).min(largest + 1)..].iter_mut().zip(from) {
                *to += from;
            }
        }
    }
    let ways = ways.swap_remove(chosen);
    let total: f64 = ways.iter().sum();
    let mut sum = 0.0;
    ways.iter()
        .map(|ways| {
            sum += ways;
            sum / total
        })
        .collect()
}

fn two_sided(cumulative: &[f64], sum: usize) -> f64 {
    let at_most = cumulative.get(sum).copied().unwrap_or(1.0);
    let below = sum.checked_sub(1).and_then(|below| cumulative.get(below)).copied().unwrap_or(0.0);
    (2.0 * at_most.min(1.0 - below)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(a: &[f64], b: &[f64]) -> f64 {
        RankTests::default().compare(a, b).unwrap().p
    }

    /// Every way to choose the values of the smaller set, one by one.
    fn by_listing(a: &[f64], b: &[f64]) -> f64 {
        let all = [a, b].concat();
        // Doubled counts of (chosen, other) pairs in order.
        let statistic = |chosen: u32| {
            let is_in = |place: usize| chosen >> place & 1 == 1;
            let mut sum = 0;
            for (i, x) in all.iter().enumerate().filter(|(i, _)| is_in(*i)) {
                for (_, y) in all.iter().enumerate().filter(|(j, _)| !is_in(*j) && *j != i) {
                    sum += i32::from(x > y) + i32::from(x >= y);
                }
            }
            sum
        };
        let observed = statistic((1 << a.len()) - 1);
        let choices: Vec<_> = (0..1_u32 << all.len()).filter(|set| set.count_ones() as usize == a.len()).map(statistic).collect();
        let share = |holds: &dyn Fn(i32) -> bool| {
            as_float(choices.iter().filter(|other| holds(**other)).count()) / as_float(choices.len())
        };
        (2.0 * share(&|other| other <= observed).min(share(&|other| other >= observed))).min(1.0)
    }

    #[test]
    fn the_exact_test_agrees_with_a_list_of_all_choices() {
        let rows: [(&[f64], &[f64]); 8] = [
            (&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]),
            (&[1.0, 5.0], &[2.0, 3.0, 4.0, 6.0]),
            (&[1.0, 1.0, 2.0], &[1.0, 2.0, 3.0, 3.0]),
            (&[5.0], &[1.0, 2.0, 3.0, 4.0]),
            (&[0.0, -0.0, 1.0], &[0.0, 2.0, 2.0, 3.0, 9.0]),
            (&[7.0, 7.0], &[7.0, 7.0]),
            (&[9.0, 8.0, 7.0, 2.0, 6.0], &[1.0, 2.0, 3.0]),
            (&[3.0, 3.0, 3.0, 4.0, 5.0, 6.0], &[1.0, 2.0, 3.0, 3.0, 2.5]),
        ];
        for (a, b) in rows {
            assert!((p(a, b) - by_listing(a, b)).abs() < 1e-12, "{a:?} {b:?}: {} {}", p(a, b), by_listing(a, b));
            assert!((p(a, b) - p(b, a)).abs() < 1e-12, "the order of the sets does not count: {a:?} {b:?}");
        }
    }

    #[test]
    fn known_probabilities() {
        let low: Vec<f64> = (0..10).map(f64::from).collect();
        let high: Vec<f64> = (10..20).map(f64::from).collect();
        // 2 / C(20, 10)
        assert!((p(&low, &high) - 2.0 / 184_756.0).abs() < 1e-15);
        assert!((smallest_p(10, 10) - 2.0 / 184_756.0).abs() < 1e-15);
        assert_eq!((smallest_p(1, 1), smallest_p(0, 5), smallest_p(1, 60)), (1.0, 1.0, 2.0 / 61.0));
        assert_eq!(RankTests::default().compare(&low, &[]), None);
    }

    #[test]
    fn large_sets_use_the_normal_distribution_which_agrees_with_the_exact_one() {
        let a: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 40)).collect();
        let b: Vec<f64> = (0..40).map(|i| f64::from(i * 11 % 40) + 5.5).collect();
        let mut tests = RankTests::default();
        let exact = tests.compare(&a, &b).unwrap();
        let near = Union::of(&a, &b).normal_p(40);
        assert_eq!(exact.method, Method::Normal, "cost {}", cost(40, 40, true));
        let half = |values: &[f64]| values.iter().step_by(2).copied().collect::<Vec<f64>>();
        let exact = tests.compare(&half(&a), &half(&b)).unwrap();
        let near_half = Union::of(&half(&a), &half(&b)).normal_p(20);
        assert_eq!(exact.method, Method::Exact);
        assert!((exact.p / near_half - 1.0).abs() < 0.05, "{} {near_half}", exact.p);
        assert!(near < near_half, "twice the values say more: {near} {near_half}");
    }

    #[test]
    fn the_places_outside_an_interval_agree_with_tables() {
        let mut tests = RankTests::default();
        // Of tables of critical values of U, one-sided 5 %: C - 1 = 1, 4, 27 for 4, 5 and 10 values each.
        let outside = [(4, 4), (5, 5), (10, 10), (1, 10), (1, 60)].map(|(a, b)| tests.outside(a, b, 0.9));
        assert_eq!(outside, [2, 5, 28, 0, 3]);
    }
}

//! Decides whether the pods of a workload that exist at once fit in a quota together, whichever templates they are of.

use super::{Demand, QuotaStatus, Refusal, Shortage, too_much};
use crate::api::Quantity;

/// Templates whose pods there have to be at once: what one pod takes, and how many of them there are.
type Group = Vec<(Demand, u32)>;

/// The pods of a workload, in groups of which it is not certain that two are there at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Together {
    groups: Vec<Group>,
}

impl Together {
    pub(crate) fn of(groups: impl IntoIterator<Item = Group>) -> Self {
        Self { groups: groups.into_iter().collect() }
    }

    /// As many as there have to be at once.
    pub(crate) fn pods(&self) -> u32 {
        self.groups.iter().map(|group| pods(group)).max().unwrap_or(0)
    }

    pub(super) fn demand(&self) -> Demand {
        self.most_of(self.pods())
    }

    /// The most that `pods` of them take. Of the pods that are missing it is not known which template they are of.
    pub(super) fn most_of(&self, pods: u32) -> Demand {
        let resources = self.groups.iter().flatten().flat_map(|(one, _)| one.keys());
        let most = |resource: &String| self.groups.iter().map(|group| most(group, resource, pods)).max();
        resources.map(|resource| (resource.clone(), most(resource).unwrap_or(Quantity::ZERO))).collect()
    }

    /// `3 pods of 4 each: `, or nothing of a single pod. Of the group that takes the most.
    fn counted(&self, resource: &str) -> String {
        let largest = self.groups.iter().max_by_key(|group| most(group, resource, pods(group)));
        let group = largest.map(Vec::as_slice).unwrap_or_default();
        match (pods(group), group) {
            (0 | 1, _) => String::new(),
            (pods, [(one, _)]) => {
                format!("{pods} pods of {} each: ", one.get(resource).copied().unwrap_or(Quantity::ZERO))
            }
            (pods, _) => format!("{pods} pods at once: "),
        }
    }
}

fn pods(group: &[(Demand, u32)]) -> u32 {
    group.iter().fold(0, |sum, (_, pods)| sum.saturating_add(*pods))
}

/// The most of a resource that `pods` of a group take.
fn most(group: &[(Demand, u32)], resource: &str, pods: u32) -> Quantity {
    let mut amounts: Vec<_> = group.iter().filter_map(|(one, pods)| Some((*one.get(resource)?, *pods))).collect();
    amounts.sort_unstable_by(|one, other| other.cmp(one));
    let mut left = pods;
    amounts.into_iter().fold(Quantity::ZERO, |sum, (amount, pods)| {
        let taken = pods.min(left);
        left -= taken;
        sum.plus(amount.times(taken))
    })
}

/// Whether pods fit in a quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fit {
    Now,
    /// What is short now.
    Later(Refusal),
    /// The sentence that says why.
    Never(String),
}

/// Whether all of `pods` fit in a quota beside what is used of it and what is `reserved` for others whose pods are not counted yet.
pub(crate) fn fit(quota: &QuotaStatus<'_>, pods: &Together, reserved: &Demand) -> Fit {
    let amount = |of: &Demand, resource: &str| of.get(resource).copied().unwrap_or(Quantity::ZERO);
    let mut shortages = Vec::new();
    for (resource, requested) in pods.demand() {
        let Some(limited) = quota.hard.get(&resource).copied() else { continue };
        if requested > limited {
            return Fit::Never(pods.counted(&resource) + &too_much(quota.name, &resource, requested, limited));
        }
        let used = amount(&quota.used, &resource).plus(amount(reserved, &resource));
        if requested > Quantity::ZERO && used.plus(requested) > limited {
            shortages.push(Shortage { resource, requested, used, limited });
        }
    }
    if shortages.is_empty() { Fit::Now } else { Fit::Later(Refusal::Exceeded { quota: quota.name.to_owned(), shortages }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{quota::demand, status::testing::yaml};

    fn gpus(count: u32) -> Demand {
        demand(&yaml(&format!("containers: [{{resources: {{limits: {{nvidia.com/gpu: {count}}}}}}}]")))
    }

    fn said(templates: &[(Demand, u32)], reserved: &Demand) -> String {
        let quota = "{metadata: {name: compute}, status: {hard: {requests.nvidia.com/gpu: 8, limits.cpu: 0, pods: 4}, \
                     used: {requests.nvidia.com/gpu: 2}}}";
        match fit(&QuotaStatus::of(&yaml(quota)).unwrap(), &Together::of([templates.to_vec()]), reserved) {
            Fit::Now => "now".to_owned(),
            Fit::Later(refusal) => refusal.to_string(),
            Fit::Never(why) => why,
        }
    }

    #[test]
    fn pods_of_one_template_are_measured_as_a_whole() {
        let none = Demand::new();
        assert_eq!(said(&[(gpus(4), 1)], &none), "now");
        insta::assert_snapshot!(said(&[(gpus(4), 2)], &none), @"quota compute: requests.nvidia.com/gpu requested 8, used 2, limited 8");
        insta::assert_snapshot!(said(&[(gpus(4), 1)], &gpus(4)), @"quota compute: requests.nvidia.com/gpu requested 4, used 6, limited 8");
        insta::assert_snapshot!(said(&[(gpus(4), 3)], &none), @"3 pods of 4 each: requests.nvidia.com/gpu requested 12, but quota compute has 8 at all: ask for less, or have the quota raised");
        insta::assert_snapshot!(said(&[(gpus(9), 1)], &none), @"requests.nvidia.com/gpu requested 9, but quota compute has 8 at all: ask for less, or have the quota raised");
    }

    #[test]
    fn pods_of_several_templates_are_measured_as_a_whole() {
        let none = Demand::new();
        assert_eq!(said(&[(gpus(2), 1), (gpus(2), 2)], &none), "now");
        insta::assert_snapshot!(said(&[(gpus(2), 1), (gpus(3), 2)], &none), @"quota compute: requests.nvidia.com/gpu requested 8, used 2, limited 8");
        insta::assert_snapshot!(said(&[(gpus(1), 1), (gpus(4), 2)], &none), @"3 pods at once: requests.nvidia.com/gpu requested 9, but quota compute has 8 at all: ask for less, or have the quota raised");
        insta::assert_snapshot!(said(&[(gpus(1), 1), (gpus(1), 4)], &none), @"5 pods at once: pods requested 5, but quota compute has 4 at all: ask for less, or have the quota raised");
        insta::assert_snapshot!(said(&[(gpus(0), 1), (gpus(1), 2)], &Demand::from([("pods".to_owned(), Quantity::whole(2))])), @"quota compute: pods requested 3, used 2, limited 4");
    }

    #[test]
    fn pods_that_may_follow_each_other_are_not_added() {
        let turns = Together::of([vec![(gpus(8), 1)], vec![(gpus(4), 2)]]);
        let amounts = |demand: Demand| [demand["requests.nvidia.com/gpu"].to_string(), demand["pods"].to_string()];
        assert_eq!((turns.pods(), amounts(turns.demand())), (2, ["8".to_owned(), "2".to_owned()]));
        assert_eq!(amounts(turns.most_of(1)), ["8", "1"]);
        assert_eq!(
            [turns.counted("requests.nvidia.com/gpu"), turns.counted("pods")],
            ["2 pods of 4 each: ", "2 pods of 1 each: "]
        );
    }

    #[test]
    fn pods_that_are_missing_are_taken_for_the_largest() {
        let all = Together::of([vec![(gpus(1), 1), (gpus(4), 2)]]);
        let most = |pods| all.most_of(pods)["requests.nvidia.com/gpu"].to_string();
        assert_eq!([most(0), most(1), most(2), most(3)], ["0", "4", "8", "9"]);
    }
}

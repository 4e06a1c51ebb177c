//! Whether all pods of a workload fit in a quota together, whichever templates they are of.

use super::{Demand, QuotaStatus, Refusal, Shortage, too_much};
use crate::api::Quantity;

/// The pods of a workload that there have to be at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Together {
    /// What one pod of each template takes, and how many of them there are.
    templates: Vec<(Demand, u32)>,
}

impl Together {
    pub(crate) fn of(templates: impl IntoIterator<Item = (Demand, u32)>) -> Self {
        Self { templates: templates.into_iter().collect() }
    }

    pub(crate) fn pods(&self) -> u32 {
        self.templates.iter().fold(0, |sum, (_, pods)| sum.saturating_add(*pods))
    }

    pub(super) fn demand(&self) -> Demand {
        self.most_of(self.pods())
    }

    /// The most that `pods` of them take. Of the pods that are missing it is not known which template they are of.
    pub(super) fn most_of(&self, pods: u32) -> Demand {
        let resources = self.templates.iter().flat_map(|(one, _)| one.keys());
        let most = |resource: &String| {
            let mut amounts: Vec<_> =
                self.templates.iter().filter_map(|(one, pods)| Some((*one.get(resource)?, *pods))).collect();
            amounts.sort_unstable_by(|one, other| other.cmp(one));
            let mut left = pods;
            amounts.into_iter().fold(Quantity::ZERO, |sum, (amount, pods)| {
                let taken = pods.min(left);
                left -= taken;
                sum.plus(amount.times(taken))
            })
        };
        resources.map(|resource| (resource.clone(), most(resource))).collect()
    }

    /// `3 pods of 4 each: `, or nothing of a single pod.
    fn counted(&self, resource: &str) -> String {
        match (self.pods(), self.templates.as_slice()) {
            (0 | 1, _) => String::new(),
            (pods, [(one, _)]) => {
                format!("{pods} pods of {} each: ", one.get(resource).copied().unwrap_or(Quantity::ZERO))
            }
            (pods, _) => format!("{pods} pods at once: "),
        }
    }
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
        match fit(&QuotaStatus::of(&yaml(quota)).unwrap(), &Together::of(templates.to_vec()), reserved) {
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
    fn pods_that_are_missing_are_taken_for_the_largest() {
        let all = Together::of([(gpus(1), 1), (gpus(4), 2)]);
        let most = |pods| all.most_of(pods)["requests.nvidia.com/gpu"].to_string();
        assert_eq!([most(0), most(1), most(2), most(3)], ["0", "4", "8", "9"]);
    }
}

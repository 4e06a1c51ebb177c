//! What is known before the first launch: credentials, images, types, subnets, the bucket, rights and quotas.
//!
//! ```text
//! mod     the requests of a preflight of one region, and what follows for which workload
//! facts   what they have answered
//! wrong   what follows from that, without I/O
//! doctor  what `muster doctor` asks beside that
//! ```
//! It finds what would certainly fail, all at once. What may pass, and what is not answered in time, is left to the launch.

pub(crate) mod doctor;
mod facts;
#[cfg(test)]
mod tests;
mod wrong;

use crate::{cloud::Cloud, plan::Handle, resolve::Resolver};
use facts::Facts;
pub(crate) use facts::Writes;
use muster_core::job::scheduler::Finding;
use muster_text::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use wrong::{Mistake, Wrong};

/// What the workloads of one place would fail of, each by its position and its plan, and whether the place has answered all questions.
/// It answers within `probe::PART`.
pub(crate) async fn findings(
    cloud: &dyn Cloud,
    resolver: &Resolver,
    planned: &[(usize, &Handle)],
    now: Timestamp,
    writes: Writes<'_>,
) -> (Vec<Finding>, bool) {
    let facts = Facts::ask(cloud, resolver, planned.iter().map(|(_, handle)| *handle), writes).await;
    let mut wrong: BTreeMap<Mistake, BTreeSet<usize>> = BTreeMap::new();
    let mut rights: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for (at, handle) in planned {
        for mistake in wrong::wrong(&facts, handle, now) {
            match mistake {
                Wrong::Mistake(mistake) => drop(wrong.entry(mistake).or_default().insert(*at)),
                Wrong::Right(right) => drop(rights.entry(*at).or_default().insert(right)),
            }
        }
    }
    for (at, rights) in rights {
        wrong.entry(wrong::missing_rights(&rights)).or_default().insert(at);
    }
    let finding = |(Mistake { what, hint }, workloads): (Mistake, BTreeSet<usize>)| Finding {
        workloads: workloads.into_iter().collect(),
        what,
        hint,
    };
    let mut findings: Vec<Finding> = wrong.into_iter().map(finding).collect();
    findings.sort_by(|a, b| a.workloads.cmp(&b.workloads).then_with(|| a.what.cmp(&b.what)));
    (findings, facts.are_all_answered())
}

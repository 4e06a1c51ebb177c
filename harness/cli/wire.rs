//! Which scheduler serves which partition.

use muster_core::{case::SessionId, scheduler::Scheduler, site::SchedulerKind, test_case::TestCase};
use muster_runner::{fake::FakeScheduler, local::LocalScheduler};
use std::{collections::BTreeMap, sync::Arc};

/// A partition whose scheduler this build cannot drive.
#[derive(Debug, thiserror::Error)]
#[error(
    "partition {partition} runs on `{kind}`, which Muster can list and check but not launch on yet: leave it out with --system or -n"
)]
pub struct NotYet {
    partition: String,
    kind: SchedulerKind,
}

/// The partitions of cases, each with its scheduler.
pub fn partitions(cases: &[TestCase]) -> impl Iterator<Item = (String, SchedulerKind)> {
    cases.iter().map(|case| (case.place.partition.name.clone(), case.place.partition.scheduler))
}

/// Whether nothing of a job is left when the harness is gone.
pub fn dies_with_the_harness(kind: SchedulerKind) -> bool {
    kind == SchedulerKind::Fake
}

/// A scheduler for every partition; partitions of one machine share one.
///
/// # Errors
/// The first partition that cannot be served.
pub fn schedulers(
    partitions: impl Iterator<Item = (String, SchedulerKind)>,
    _session: &SessionId,
) -> Result<BTreeMap<String, Arc<dyn Scheduler>>, NotYet> {
    let mut schedulers: BTreeMap<String, Arc<dyn Scheduler>> = BTreeMap::new();
    let mut local: Option<Arc<dyn Scheduler>> = None;
    for (partition, kind) in partitions {
        if schedulers.contains_key(&partition) {
            continue;
        }
        let scheduler: Arc<dyn Scheduler> = match kind {
            SchedulerKind::Local => local.get_or_insert_with(|| Arc::new(local_scheduler())).clone(),
            SchedulerKind::Fake => Arc::new(FakeScheduler::default()),
            kind @ (SchedulerKind::K8s | SchedulerKind::Ipu | SchedulerKind::Ec2) => {
                return Err(NotYet { partition, kind });
            }
        };
        schedulers.insert(partition, scheduler);
    }
    Ok(schedulers)
}

/// Local jobs find this very program as `$MUSTER`: its kernels measure a machine that has nothing else installed.
fn local_scheduler() -> LocalScheduler {
    match std::env::current_exe() {
        Ok(program) => LocalScheduler::new().with_harness(program),
        Err(_) => LocalScheduler::new(),
    }
}

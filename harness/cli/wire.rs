//! Which scheduler serves which partition.

use muster_core::{scheduler::Scheduler, site::SchedulerKind, test_case::TestCase};
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

/// A scheduler for every partition of the selected cases; partitions of one machine share one.
///
/// # Errors
/// The first partition that cannot be served.
pub fn schedulers(cases: &[TestCase]) -> Result<BTreeMap<String, Arc<dyn Scheduler>>, NotYet> {
    let mut schedulers: BTreeMap<String, Arc<dyn Scheduler>> = BTreeMap::new();
    let mut local: Option<Arc<dyn Scheduler>> = None;
    for case in cases {
        let partition = &case.place.partition;
        if schedulers.contains_key(&partition.name) {
            continue;
        }
        let scheduler: Arc<dyn Scheduler> = match partition.scheduler {
            SchedulerKind::Local => local.get_or_insert_with(|| Arc::new(local_scheduler())).clone(),
            SchedulerKind::Fake => Arc::new(FakeScheduler::default()),
            kind @ (SchedulerKind::K8s | SchedulerKind::Ipu | SchedulerKind::Ec2) => {
                return Err(NotYet { partition: case.name.system_partition(), kind });
            }
        };
        schedulers.insert(partition.name.clone(), scheduler);
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

//! Ending processes that are not our children: TERM once to each, a grace, then KILL until none is left.
//!
//! What has to end is looked for again before every round, for a dying job may still start something. Each process is
//! signalled by its descriptor after its start time was compared, so that a recycled pid is never hit.

use crate::{
    LocalScheduler,
    launch::launch_answer,
    plan::LocalHandle,
    processes::{
        exit, mark,
        own_job::{GRACE, KILL_WAIT, POLL},
    },
};
use muster_core::{
    case::Identifier,
    error::SchedulerError,
    job::scheduler::{Disposition, Job, Leftovers},
};
use muster_host::process::{Process, Reach};
use muster_stage::blocking;
use rustix::process::Signal;
use std::collections::HashSet;
use tokio::time::{Instant, sleep};

/// A process that was stopped is gone.
const GONE: Leftovers = Leftovers { items: Vec::new(), is_gone: true, look: Vec::new(), delete: Vec::new(), until: None };

impl LocalScheduler {
    pub(crate) async fn clean(&self, job: &Job, how: Disposition) -> Result<Leftovers, SchedulerError> {
        let host = &self.here.host;
        let Some(own) = self.own_job(job) else { return self.clean_after_another(job).await };
        let leader = launch_answer(&own).await.map(|(leader, _)| leader);
        if !own.stop().await {
            let group = leader.map_or(0, |leader| leader.pid);
            let item = format!("processes of job {} on {host} that do not end: kill -KILL -- -{group}", job.identifier);
            return Ok(Leftovers { items: vec![item], ..GONE });
        }
        if how == Disposition::Delete {
            self.jobs.lock().remove(&job.identifier);
        }
        Ok(GONE)
    }

    /// A job of an earlier harness, perhaps one that was killed before it could store the launch.
    async fn clean_after_another(&self, job: &Job) -> Result<Leftovers, SchedulerError> {
        let handle = LocalHandle::of(job)?;
        let host = &handle.machine.host;
        match handle.machine.seen_from(&self.here) {
            Reach::Here => {}
            Reach::RebootedSince => return Ok(GONE),
            Reach::OtherHost | Reach::OtherNamespace => {
                let items = vec![format!("processes of job {} on {host}: run `muster sweep` there", job.identifier)];
                return Ok(Leftovers { items, ..GONE });
            }
        }
        let left = end(&[Target { identifier: job.identifier.clone(), leader: handle.leader }]).await.concat();
        let items = if left.is_empty() { Vec::new() } else { vec![exit::leftover(&job.identifier, host, &left)] };
        Ok(Leftovers { items, ..GONE })
    }
}

/// A job whose processes have to end.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) identifier: Identifier,
    /// As the store knows it; proves the group of a process that hides its environment.
    pub(super) leader: Option<Process>,
}

/// What lives of each target.
async fn living(targets: &[Target]) -> Vec<Vec<Process>> {
    let targets = targets.to_vec();
    let look = move || {
        let living = mark::scan();
        targets.iter().map(|target| mark::of_job(&living, &target.identifier, target.leader)).collect::<Vec<_>>()
    };
    blocking(look).await
}

/// Ends everything of the targets and says what is left of each.
pub(super) async fn end(targets: &[Target]) -> Vec<Vec<Process>> {
    let grace_until = Instant::now() + GRACE;
    let give_up = grace_until + KILL_WAIT;
    let mut signalled = HashSet::new();
    loop {
        let left = living(targets).await;
        let now = Instant::now();
        if left.iter().all(Vec::is_empty) || now >= give_up {
            return left;
        }
        for &process in left.iter().flatten() {
            if now >= grace_until {
                process.signal(Signal::KILL);
            } else if signalled.insert(process) {
                process.signal(Signal::TERM);
                process.signal(Signal::CONT);
            }
        }
        sleep(POLL).await;
    }
}

//! Ending processes that are not our children: TERM once to each, a grace, then KILL until none is left.
//!
//! What has to end is looked for again before every round, for a dying job may still start something. Each process is
//! signalled by its descriptor after its start time was compared, so that a recycled pid is never hit.

use crate::processes::{
    blocking,
    live::{GRACE, KILL_WAIT, POLL},
    mark,
};
use muster_core::case::Identifier;
use muster_host::process::Process;
use rustix::process::Signal;
use std::collections::HashSet;
use tokio::time::{Instant, sleep};

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
    let mut told = HashSet::new();
    loop {
        let left = living(targets).await;
        let now = Instant::now();
        if left.iter().all(Vec::is_empty) || now >= give_up {
            return left;
        }
        for &process in left.iter().flatten() {
            if now >= grace_until {
                process.signal(Signal::KILL);
            } else if told.insert(process) {
                process.signal(Signal::TERM);
                process.signal(Signal::CONT);
            }
        }
        sleep(POLL).await;
    }
}

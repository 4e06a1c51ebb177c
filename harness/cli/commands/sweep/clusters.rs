//! What abandoned sessions left on Kubernetes clusters.
//!
//! ```text
//! places: of the jobs in the database, and of the system's partitions  -inventory-> Found -is_to_delete-> deleted
//! kept for inspection:          deleted when its time is over, with --kept when its owner is gone
//! left by an abandoned session: deleted; if nothing is known of the owner, it stays
//! ```

use super::OwnerStates;
use crate::{args::Cli, wiring::owners};
use muster_core::{
    case::SessionId,
    decisions::liveness::{Evidence, OwnerState, owner_state},
    error::{SchedulerError, chain},
    job::scheduler::{Disposition, Job, Leftovers, Scheduler},
};
use muster_host::clock;
use muster_k8s::{ClusterPlace, Found, Handle, Inventory, Kubernetes};
use muster_text::time::Timestamp;
use std::{sync::Arc, time::Duration};
use tokio::{sync::Semaphore, task::JoinSet};

/// How many deletions run at once.
const AT_ONCE: usize = 16;

/// The clusters, and their objects that carry our label.
pub struct Clusters {
    kubernetes: Arc<Kubernetes>,
    pub inventory: Inventory,
}

/// Something that was deleted, or not.
pub struct Ended {
    pub found: Found,
    /// What is left of it, one line each.
    pub left: Vec<String>,
}

/// Lists every place that the database or the system names. `None`: there is none.
pub async fn look(cli: &Cli, jobs: &[&Job]) -> anyhow::Result<Option<Clusters>> {
    let Some(kubernetes) = owners::clusters(cli, jobs)? else { return Ok(None) };
    let inventory = kubernetes.inventory().await;
    Ok(Some(Clusters { kubernetes, inventory }))
}

/// Whether it depends on the owner whether something is deleted.
fn depends_on_owner(found: &Found, with_kept: bool, now: Timestamp) -> bool {
    found.kept.is_none_or(|kept| with_kept && !kept.is_over(now))
}

/// Whether something is deleted. `is_owner_gone`: that is certain.
fn is_to_delete(found: &Found, is_owner_gone: bool, with_kept: bool, now: Timestamp) -> bool {
    let is_overdue = found.kept.is_some_and(|kept| kept.is_over(now));
    is_overdue || (is_owner_gone && depends_on_owner(found, with_kept, now))
}

impl Clusters {
    pub fn kubernetes(&self) -> &Kubernetes {
        &self.kubernetes
    }

    /// The current time, by the server where something was found if it sends one.
    fn now(&self, found: &Found) -> Timestamp {
        self.inventory.now.get(&found.place).copied().unwrap_or_else(clock::now)
    }

    /// The sessions whose owners decide what is deleted.
    pub fn in_question(&self, with_kept: bool) -> impl Iterator<Item = &SessionId> {
        let found = self.inventory.found.iter().filter(move |found| depends_on_owner(found, with_kept, self.now(found)));
        found.map(|found| &found.job.session)
    }

    pub fn to_delete(&self, states: &OwnerStates, with_kept: bool) -> Vec<Found> {
        let is_owner_gone = |found: &Found| states.get(&found.job.session) == Some(&OwnerState::Gone);
        let found = self.inventory.found.iter();
        found.filter(|found| is_to_delete(found, is_owner_gone(found), with_kept, self.now(found))).cloned().collect()
    }

    /// Deletes what was found, and the Leases of sessions of which nothing is left.
    pub async fn end(&self, to_delete: Vec<Found>, states: &OwnerStates) -> Vec<Ended> {
        let slots = Arc::new(Semaphore::new(AT_ONCE));
        let mut tasks = JoinSet::new();
        for found in to_delete {
            let (kubernetes, slots) = (Arc::clone(&self.kubernetes), Arc::clone(&slots));
            tasks.spawn(async move {
                let _slot = slots.acquire_owned().await.ok();
                let left = left(kubernetes.cleanup(&found.job, Disposition::Delete).await);
                Ended { found, left }
            });
        }
        let mut ended = tasks.join_all().await;
        ended.sort_by(|one, other| one.found.job.identifier.cmp(&other.found.job.identifier));
        self.delete_leases(&ended, states).await;
        ended
    }

    async fn delete_leases(&self, ended: &[Ended], states: &OwnerStates) {
        let is_gone = |job: &Job| ended.iter().any(|ended| ended.left.is_empty() && ended.found.job.is_same(job));
        for ((place, session), lease) in &self.inventory.sessions {
            let by_lease =
                || owner_state(&Evidence { leases: vec![lease.heartbeat(lease, Duration::ZERO)], ..Evidence::default() });
            let is_owner_gone = states.get(session).copied().unwrap_or_else(by_lease) == OwnerState::Gone;
            let is_here = |found: &&Found| found.place == *place && found.job.session == *session;
            let mut here = self.inventory.found.iter().filter(is_here);
            if is_owner_gone
                && here.all(|found| found.kept.is_some() || is_gone(&found.job))
                && let Err(error) = self.kubernetes.delete_lease(place, session).await
            {
                tracing::debug!(error = %chain(&error), "the Lease of an abandoned session stays");
            }
        }
    }

    /// Whether nothing of a job was found. Objects that may not be listed were asked for by name.
    pub fn has_nothing_of(&self, job: &Job) -> bool {
        let Ok(Handle { place, .. }) = Handle::of(job) else { return false };
        let is_blind = |(blind, _): &(ClusterPlace, SchedulerError)| *blind == place;
        let is_there = |found: &Found| found.job.is_same(job);
        !self.inventory.unknown.contains(&place)
            && !self.inventory.blind.iter().any(is_blind)
            && !self.inventory.found.iter().any(is_there)
    }
}

fn left(answer: Result<Leftovers, SchedulerError>) -> Vec<String> {
    match answer {
        Ok(leftovers) => leftovers.items,
        Err(error) => vec![chain(&error)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::{case::Identifier, job::scheduler_kind::SchedulerKind};
    use muster_k8s::Kept;
    use muster_text::Value;

    fn found(kept: Option<Kept>) -> Found {
        let job = Job {
            identifier: Identifier::from_letters([0; 8]),
            session: SessionId("s".into()),
            case: "case".into(),
            scheduler: SchedulerKind::K8s,
            stage: "stage".into(),
            handle: Value::Null,
        };
        Found { job, place: ClusterPlace { context: None, namespace: "n".into() }, kept }
    }

    #[test]
    fn only_what_is_overdue_or_whose_owner_is_owner_gone_is_deleted() {
        let (now, past, future) = (Timestamp(10), Some(Kept::Until(Timestamp(9))), Some(Kept::Until(Timestamp(11))));
        //  kept, owner gone, --kept -> goes
        let rows = [
            (None, false, false, false),
            (None, true, false, true),
            (past, false, false, true),
            (future, true, false, false),
            (future, true, true, true),
            (future, false, true, false),
            (Some(Kept::Unknown), true, false, false),
            (Some(Kept::Unknown), true, true, true),
        ];
        for (kept, is_owner_gone, with_kept, goes) in rows {
            assert_eq!(is_to_delete(&found(kept), is_owner_gone, with_kept, now), goes, "{kept:?} {is_owner_gone} {with_kept}");
        }
    }
}

//! What dead sessions left on Kubernetes clusters.
//!
//! ```text
//! places: of the jobs in the database, and of the system's partitions  -census-> Found -is_doomed-> deleted
//! kept to be looked at:      goes when its time is over, with --kept when its session is
//! left by a dead session:    see `life`; a session of which nothing is known is let be
//! ```

use crate::{args::Cli, wiring::owners};
use muster_core::{
    case::SessionId,
    decisions::liveness::{Life, Signs, life},
    error::{SchedulerError, chain},
    job::scheduler::{Disposition, Job, Leftovers, Scheduler, Scope},
};
use muster_host::clock;
use muster_k8s::{ClusterPlace, Found, Handle, Inventory, Kubernetes};
use muster_text::time::Timestamp;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, task::JoinSet};

/// As many deletions are waited for at once.
const AT_ONCE: usize = 16;

/// The clusters, and what there is.
pub struct Clusters {
    kubernetes: Arc<Kubernetes>,
    pub census: Inventory,
}

/// Something that was deleted, or not.
pub struct Ended {
    pub found: Found,
    /// What is left of it, one line each.
    pub left: Vec<String>,
}

/// Looks at every place that the database or the system knows; `None`: there is none.
pub async fn look(cli: &Cli, jobs: &[&Job]) -> anyhow::Result<Option<Clusters>> {
    let Some(kubernetes) = owners::clusters(cli, jobs)? else { return Ok(None) };
    let census = kubernetes.inventory(&Scope::default()).await;
    Ok(Some(Clusters { kubernetes, census }))
}

/// Whether it depends on the life of its session if something goes.
fn may_go(found: &Found, with_kept: bool, now: Timestamp) -> bool {
    found.kept.is_none_or(|kept| with_kept && !kept.is_over(now))
}

/// Whether something goes. `is_dead`: its session is known to be.
fn is_doomed(found: &Found, is_dead: bool, with_kept: bool, now: Timestamp) -> bool {
    let is_overdue = found.kept.is_some_and(|kept| kept.is_over(now));
    is_overdue || (is_dead && may_go(found, with_kept, now))
}

impl Clusters {
    /// The connections.
    pub fn kubernetes(&self) -> &Kubernetes {
        &self.kubernetes
    }

    /// What time it is where something was found, as far as its server says.
    fn now(&self, found: &Found) -> Timestamp {
        self.census.now.get(&found.place).copied().unwrap_or_else(clock::now)
    }

    /// The sessions on whose lives it depends what goes.
    pub fn in_question(&self, with_kept: bool) -> impl Iterator<Item = &SessionId> {
        let found = self.census.found.iter().filter(move |found| may_go(found, with_kept, self.now(found)));
        found.map(|found| &found.job.session)
    }

    /// What goes.
    pub fn doomed(&self, lives: &BTreeMap<SessionId, Life>, with_kept: bool) -> Vec<Found> {
        let is_dead = |found: &Found| lives.get(&found.job.session) == Some(&Life::Dead);
        let found = self.census.found.iter();
        found.filter(|found| is_doomed(found, is_dead(found), with_kept, self.now(found))).cloned().collect()
    }

    /// Deletes it, and the Leases of sessions of which nothing is left.
    pub async fn end(&self, doomed: Vec<Found>, lives: &BTreeMap<SessionId, Life>) -> Vec<Ended> {
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        let mut tasks = JoinSet::new();
        for found in doomed {
            let (kubernetes, turns) = (Arc::clone(&self.kubernetes), Arc::clone(&turns));
            tasks.spawn(async move {
                let _turn = turns.acquire_owned().await.ok();
                let left = left(kubernetes.cleanup(&found.job, Disposition::Delete).await);
                Ended { found, left }
            });
        }
        let mut ended = tasks.join_all().await;
        ended.sort_by(|one, other| one.found.job.identifier.cmp(&other.found.job.identifier));
        self.bury(&ended, lives).await;
        ended
    }

    async fn bury(&self, ended: &[Ended], lives: &BTreeMap<SessionId, Life>) {
        let is_gone = |job: &Job| ended.iter().any(|ended| ended.left.is_empty() && ended.found.job.is_same(job));
        for ((place, session), lease) in &self.census.sessions {
            let by_lease = || life(&Signs { leases: vec![lease.sign(lease, Duration::ZERO)], ..Signs::default() });
            let is_dead = lives.get(session).copied().unwrap_or_else(by_lease) == Life::Dead;
            let is_here = |found: &&Found| found.place == *place && found.job.session == *session;
            let mut here = self.census.found.iter().filter(is_here);
            if is_dead
                && here.all(|found| found.kept.is_some() || is_gone(&found.job))
                && let Err(error) = self.kubernetes.delete_lease(place, session).await
            {
                tracing::debug!(error = %chain(&error), "a dead session's Lease stays");
            }
        }
    }

    /// Jobs of the database of which the census has seen nothing: what it may not list it has asked for by name.
    pub fn has_nothing_of(&self, job: &Job) -> bool {
        let Ok(Handle { place, .. }) = Handle::of(job) else { return false };
        let is_blind = |(blind, _): &(ClusterPlace, SchedulerError)| *blind == place;
        let is_there = |found: &Found| found.job.is_same(job);
        !self.census.unknown.contains(&place)
            && !self.census.blind.iter().any(is_blind)
            && !self.census.found.iter().any(is_there)
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
    fn only_what_is_known_to_be_dead_or_overdue_goes() {
        let (now, past, future) = (Timestamp(10), Some(Kept::Until(Timestamp(9))), Some(Kept::Until(Timestamp(11))));
        //  kept, dead, --kept -> goes
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
        for (kept, is_dead, with_kept, goes) in rows {
            assert_eq!(is_doomed(&found(kept), is_dead, with_kept, now), goes, "{kept:?} {is_dead} {with_kept}");
        }
    }
}

//! What dead sessions left on Kubernetes clusters.
//!
//! ```text
//! places: of the jobs in the database, and of the system's partitions  -census-> Found -is_doomed-> deleted
//! kept to be looked at:      goes when its time is over, with --kept when its session is
//! left by a dead session:    dead in the database, or its Lease has expired; whom nobody knows is let be
//! ```

use crate::{args::Cli, selection};
use muster_core::{
    case::SessionId,
    error::{SchedulerError, chain},
    scheduler::{Disposition, Job, Leftovers, Scheduler, Scope},
    time::Timestamp,
};
use muster_k8s::{
    Kubernetes,
    census::{Census, Found},
    contexts::Contexts,
    handle::{ClusterPlace, Handle},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::{sync::Semaphore, task::JoinSet};

/// As many deletions are waited for at once.
const AT_ONCE: usize = 16;

/// The clusters, and what there is.
pub(super) struct Clusters {
    kubernetes: Arc<Kubernetes>,
    pub(super) census: Census,
}

/// Something that was deleted, or not.
pub(super) struct Ended {
    pub(super) found: Found,
    /// What is left of it, one line each.
    pub(super) left: Vec<String>,
}

/// Looks at every place that the database or the system knows; `None`: there is none.
pub(super) async fn look(cli: &Cli, jobs: &[Job]) -> anyhow::Result<Option<Clusters>> {
    let jobs: Vec<&Job> = jobs.iter().filter(|job| job.scheduler.is_kubernetes()).collect();
    let options = partitions(cli);
    if jobs.is_empty() && options.is_empty() {
        return Ok(None);
    }
    let contexts = Contexts::load()?;
    let mut places = Vec::new();
    for (context, namespace) in options {
        places.push(contexts.place(context.as_deref(), namespace.as_deref())?);
    }
    let kubernetes = Arc::new(Kubernetes::new(contexts).in_places(places).around(jobs));
    let census = kubernetes.census(&Scope::default()).await;
    Ok(Some(Clusters { kubernetes, census }))
}

/// Context and namespace of the system's partitions on Kubernetes. A system that cannot be told is no reason not to sweep.
fn partitions(cli: &Cli) -> BTreeSet<(Option<String>, Option<String>)> {
    let site = selection::site(&cli.files.config_file, &cli.files.checkpath, cli.files.system.as_deref(), false);
    let Ok(site) = site else { return BTreeSet::new() };
    let on_kubernetes = site.system.partitions.iter().filter(|partition| partition.scheduler.is_kubernetes());
    let text = |options: &muster_core::Value, key: &str| options[key].as_str().map(str::to_owned);
    on_kubernetes
        .map(|partition| (text(&partition.sched_options, "context"), text(&partition.sched_options, "namespace")))
        .collect()
}

/// Whether something goes. `lives`: whether its session does, as far as the database knows.
fn is_doomed(found: &Found, lives: Option<bool>, with_kept: bool, now: Timestamp) -> bool {
    let is_dead = lives == Some(false) || (lives.is_none() && found.lease == Some(false));
    match found.kept {
        Some(kept) => kept.is_over(now) || (with_kept && is_dead),
        None => is_dead,
    }
}

impl Clusters {
    /// What goes.
    pub(super) fn doomed(&self, lives: &BTreeMap<SessionId, bool>, with_kept: bool, now: Timestamp) -> Vec<Found> {
        let life = |found: &&Found| lives.get(&found.job.session).copied();
        let found = self.census.found.iter();
        found.filter(|found| is_doomed(found, life(found), with_kept, now)).cloned().collect()
    }

    /// Deletes it, and the Leases of sessions of which nothing is left.
    pub(super) async fn end(&self, doomed: Vec<Found>, lives: &BTreeMap<SessionId, bool>) -> Vec<Ended> {
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

    async fn bury(&self, ended: &[Ended], lives: &BTreeMap<SessionId, bool>) {
        let is_gone = |job: &Job| ended.iter().any(|ended| ended.left.is_empty() && ended.found.job.is_same(job));
        for ((place, session), has_lease) in &self.census.sessions {
            let is_dead = lives.get(session).map_or(!has_lease, |lives| !lives);
            let is_here = |found: &&Found| found.place == *place && found.job.session == *session;
            let mut here = self.census.found.iter().filter(is_here);
            if is_dead
                && here.all(|found| found.kept.is_some() || is_gone(&found.job))
                && let Err(error) = self.kubernetes.bury(place, session).await
            {
                tracing::debug!(error = %chain(&error), "a dead session's Lease stays");
            }
        }
    }

    /// Jobs of the database of which the census has seen nothing: what it may not list it has asked for by name.
    pub(super) fn has_nothing_of(&self, job: &Job) -> bool {
        let Ok(Handle { place, .. }) = Handle::of(job) else { return false };
        let is_blind = |(blind, _): &(ClusterPlace, SchedulerError)| *blind == place;
        let is_there = |found: &Found| found.job.is_same(job);
        !self.census.blind.iter().any(is_blind) && !self.census.found.iter().any(is_there)
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
    use muster_core::{Value, case::Identifier, site::SchedulerKind};
    use muster_k8s::census::Kept;

    fn found(lease: Option<bool>, kept: Option<Kept>) -> Found {
        let job = Job {
            identifier: Identifier::from_letters([0; 8]),
            session: SessionId("s".into()),
            case: "case".into(),
            scheduler: SchedulerKind::K8s,
            stage: "stage".into(),
            handle: Value::Null,
        };
        Found { job, place: ClusterPlace { context: None, namespace: "n".into() }, lease, kept }
    }

    #[test]
    fn only_what_is_known_to_be_dead_or_overdue_goes() {
        let (now, past, future) = (Timestamp(10), Some(Kept::Until(Timestamp(9))), Some(Kept::Until(Timestamp(11))));
        let (alive, dead) = (Some(true), Some(false));
        //  lease, kept, database, --kept -> goes
        let rows = [
            (None, None, None, false, false),
            (None, None, dead, false, true),
            (None, None, alive, false, false),
            (dead, None, None, false, true),
            (alive, None, None, false, false),
            // Killed a moment ago: its Lease has not expired yet.
            (alive, None, dead, false, true),
            // Cut off from the cluster, but not dead.
            (dead, None, alive, false, false),
            (None, past, alive, false, true),
            (None, future, dead, false, false),
            (None, future, dead, true, true),
            (None, future, alive, true, false),
            (None, Some(Kept::Unknown), dead, false, false),
            (None, Some(Kept::Unknown), dead, true, true),
        ];
        for (lease, kept, lives, with_kept, goes) in rows {
            assert_eq!(is_doomed(&found(lease, kept), lives, with_kept, now), goes, "{lease:?} {kept:?} {lives:?} {with_kept}");
        }
    }
}

//! Claims the sessions whose jobs are to be removed: the verdicts on their owners, and the right to remove.
//!
//! ```text
//! inventory -add-> Verdicts -wait for heartbeats-> Gone -claim: by compare-and-swap-> jobs are removed -> given back
//! ```
//! A session may be taken over during the wait. So each verdict is made sure of directly before something is removed, and
//! until that is done this process holds the session: nobody else takes it over.

use crate::ownership::{Finding, Owners, OwnershipNote, Wait, heartbeat::SignOfLife};
use muster_core::{case::SessionId, decisions::liveness::OwnerState};
use muster_host::owner;
use muster_store::{Held, SessionState, Store, StoreError};
use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    path::PathBuf,
    time::Duration,
};
use tokio::{
    fs,
    time::{Instant, timeout},
};

/// A database that does not answer by then may be locked for long. After a signal the user does not wait for it.
pub const GIVE_BACK_LIMIT: Duration = Duration::from_secs(2);

/// A folder that is not found by then is not waited for.
const LOOK_LIMIT: Duration = Duration::from_secs(1);

/// The verdicts on sessions.
#[derive(Default)]
pub(super) struct Verdicts(BTreeMap<SessionId, Verdict>);

struct Verdict {
    /// What is known of its owner, and who holds it in the database. `held` is `None` if nobody can take the session over.
    finding: Finding,
    /// Since when it is watched; `None`: nothing can change any more.
    since: Option<Instant>,
    /// The folder of a session that has not ended, as the database knows it.
    workdir: Option<PathBuf>,
}

impl Verdict {
    fn certain(life: OwnerState, held: Option<Held>) -> Self {
        Self { finding: Finding { life, leases: Vec::new(), held }, since: None, workdir: None }
    }
}

impl Verdicts {
    pub(super) fn state(&self, session: &SessionId) -> Option<OwnerState> {
        self.0.get(session).map(|verdict| verdict.finding.life)
    }

    pub(super) fn is_gone(&self, session: &SessionId) -> bool {
        self.state(session) == Some(OwnerState::Gone)
    }

    /// Looks at the owners of more sessions, and waits as long as `wait` allows.
    pub(super) async fn add(&mut self, sessions: &BTreeSet<&SessionId>, owners: &Owners<'_>, wait: Wait) {
        let (mut open, since) = (BTreeMap::new(), Instant::now());
        for &session in sessions {
            let row = match owners.reader {
                Some(reader) => reader.session_of(session, &owner::is_alive).await,
                None => Ok(None),
            };
            let verdict = match row {
                Ok(Some(row)) if row.state == SessionState::Ended => {
                    // Nobody takes over what has ended, unless a signal ended it.
                    Verdict::certain(OwnerState::Gone, row.session.interrupted.then_some(row.held))
                }
                // Without a row it may be another user's, or another database's.
                Ok(row) => {
                    open.insert(session.clone(), row);
                    continue;
                }
                Err(error) => {
                    (owners.tell)(OwnershipNote::Unread { session, error });
                    Verdict::certain(OwnerState::Unknown, None)
                }
            };
            self.0.insert(session.clone(), verdict);
        }
        let rows = open.iter().map(|(session, row)| (session.clone(), row.as_ref().map(|row| row.held.clone())));
        for (session, finding) in owners.find(rows, wait).await {
            let workdir = open.remove(&session).flatten().map(|row| row.session.workdir);
            self.0.insert(session, Verdict { finding, since: Some(since), workdir });
        }
    }

    /// Returns whether the database knows one of these, and it may be taken over.
    pub(super) fn may_be_taken_over(&self, sessions: &BTreeSet<&SessionId>) -> bool {
        sessions.iter().any(|session| self.0.get(session).is_some_and(|verdict| verdict.finding.held.is_some()))
    }

    /// The sessions whose owners are gone and that can be finished from this machine: their folders are here.
    pub(super) async fn unfinished(&self) -> Vec<SessionId> {
        let mut found = Vec::new();
        for (session, verdict) in self.0.iter().filter(|(session, _)| self.is_gone(session)) {
            let Some(workdir) = &verdict.workdir else { continue };
            // A file system may not answer.
            let is_here = timeout(LOOK_LIMIT, fs::metadata(workdir)).await;
            if matches!(is_here, Ok(Ok(folder)) if folder.is_dir()) {
                found.push(session.clone());
            }
        }
        found
    }

    /// Makes sure that the owners of these sessions are still gone, and holds the sessions that the database knows. What was taken over
    /// meanwhile is not gone any more. What cannot be claimed is left alone: its errors are returned, and the others are claimed.
    pub(super) async fn claim(
        &mut self,
        sessions: &BTreeSet<&SessionId>,
        owners: &Owners<'_>,
        store: Option<&Store>,
        claims: &mut Claims,
    ) -> Vec<(SessionId, StoreError)> {
        let mut unclaimed = Vec::new();
        for &session in sessions {
            let Some(Verdict { finding, since, .. }) = self.0.get_mut(session) else { continue };
            if finding.life != OwnerState::Gone {
                continue;
            }
            if let Some(since) = since {
                owners.look_again(session, finding, since.elapsed()).await;
            }
            if let (OwnerState::Gone, Some(held), Some(store)) = (finding.life, &finding.held, store) {
                match claims.add(store, session, held).await {
                    Ok(()) => {}
                    Err(StoreError::Taken { .. }) => finding.life = OwnerState::Alive,
                    Err(error) => {
                        finding.life = OwnerState::Unknown;
                        unclaimed.push((session.clone(), error));
                        continue;
                    }
                }
            }
            if finding.life != OwnerState::Gone {
                (owners.tell)(OwnershipNote::TakenOver { session });
            }
        }
        unclaimed
    }
}

/// Does what holds sessions, until `end` comes. Then it is dropped, and the sessions are given back: `None`.
pub async fn held_until<T>(
    claims: &mut Claims,
    end: impl Future<Output = ()>,
    work: impl AsyncFnOnce(&mut Claims) -> T,
) -> Option<T> {
    tokio::select! {
        done = work(claims) => return Some(done),
        () = end => {}
    }
    let _given_back = timeout(GIVE_BACK_LIMIT, claims.give_back()).await;
    None
}

/// Sessions that this process holds while it removes what they have left. If that is dropped, they are still given back.
#[derive(Default)]
pub struct Claims {
    store: Option<Store>,
    /// Each with the owner to whom it belongs.
    held: Vec<(SessionId, Held)>,
    /// They end with this.
    heartbeats: Vec<SignOfLife>,
}

impl Claims {
    /// Holds one more session, whose owner is gone.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if it is not held any more as `held` says.
    pub async fn add(&mut self, store: &Store, session: &SessionId, held: &Held) -> Result<(), StoreError> {
        let here = owner::this_owner();
        self.store = Some(store.clone());
        // Before it is so: if this is dropped, the claim may still be written.
        self.held.push((session.clone(), held.clone()));
        if let Err(error) = store.claim(session, held, &here).await {
            self.held.pop();
            return Err(error);
        }
        self.heartbeats.push(SignOfLife::start(store, session, async {}));
        Ok(())
    }

    /// Anybody may take the sessions over again.
    pub async fn give_back(&mut self) {
        let Self { store: Some(store), held, heartbeats } = mem::take(self) else { return };
        drop(heartbeats);
        for (session, Held { owner, .. }) in held {
            if let Err(error) = store.give_back(&session, &owner::this_owner(), &owner).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "a session is still held by this process");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_claim_that_fails_is_no_takeover() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("results.db")).await.unwrap();
        let session = SessionId("s".into());
        let held = Held { owner: owner::this_owner(), heartbeat: 0 };
        let gone = || Verdict::certain(OwnerState::Gone, Some(held.clone()));
        let owners = Owners { reader: None, schedulers: &[], tell: &|_| () };
        let claimed = async |claims: &mut Claims| {
            let mut verdicts = Verdicts(BTreeMap::from([(session.clone(), gone())]));
            let unclaimed = verdicts.claim(&BTreeSet::from([&session]), &owners, Some(&store), claims).await;
            (unclaimed.into_iter().map(|(session, _)| session).collect::<Vec<_>>(), verdicts.state(&session))
        };
        // Nobody holds it as the verdict says.
        assert_eq!(claimed(&mut Claims::default()).await, (Vec::new(), Some(OwnerState::Alive)));
        store.close().await.unwrap();
        assert_eq!(claimed(&mut Claims::default()).await, (vec![session.clone()], Some(OwnerState::Unknown)));
    }
}

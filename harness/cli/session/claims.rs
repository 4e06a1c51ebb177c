//! What is known of the owners of sessions whose jobs are to be removed, and the right to do that.
//!
//! ```text
//! inventory -add-> Verdicts -wait for heartbeats-> Gone -claim: by compare-and-swap-> jobs are removed -> given back
//! ```
//! A session may be taken over during the wait. So each verdict is made sure of directly before something is removed, and
//! until that is done this process holds the session: nobody else takes it over.

use crate::wiring::owners::{Finding, Owners, Wait};
use muster_core::{case::SessionId, decisions::liveness::OwnerState};
use muster_host::owner;
use muster_session::heartbeat;
use muster_store::{Held, Reader, SessionState, Store, StoreError};
use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    path::PathBuf,
    time::Duration,
};
use tokio::{
    fs,
    task::JoinSet,
    time::{Instant, timeout},
};

/// A database that does not answer by then may be locked for long. After a signal the user does not wait for it.
pub const GIVE_BACK_LIMIT: Duration = Duration::from_secs(2);

/// A folder that is not found by then is not waited for.
const LOOK_LIMIT: Duration = Duration::from_secs(1);

/// What is known of sessions.
#[derive(Default)]
pub struct Verdicts(BTreeMap<SessionId, Verdict>);

struct Verdict {
    state: OwnerState,
    /// Who held it when the verdict was made. `None`: the database does not know it, or nobody takes it over any more.
    held: Option<Held>,
    /// The signs of its owner, and since when they are watched. `None`: it has ended.
    signs: Option<(Finding, Instant)>,
    /// The folder of a session that has not ended, as the database knows it.
    workdir: Option<PathBuf>,
}

impl Verdicts {
    pub fn state(&self, session: &SessionId) -> Option<OwnerState> {
        self.0.get(session).map(|verdict| verdict.state)
    }

    pub fn is_gone(&self, session: &SessionId) -> bool {
        self.state(session) == Some(OwnerState::Gone)
    }

    /// Looks at the owners of more sessions, and waits as long as `wait` allows.
    pub async fn add(&mut self, sessions: &BTreeSet<&SessionId>, owners: &Owners<'_>, wait: Wait) {
        let (mut open, mut workdirs, since) = (Vec::new(), BTreeMap::new(), Instant::now());
        for &session in sessions {
            match row(owners.reader, session).await {
                Ok(Some(Known { held, workdir: None })) => {
                    self.0.insert(session.clone(), Verdict { state: OwnerState::Gone, held, signs: None, workdir: None });
                }
                Ok(row) => {
                    let (held, workdir) = row.map_or((None, None), |row| (row.held, row.workdir));
                    workdirs.extend(workdir.map(|workdir| (session.clone(), workdir)));
                    open.push((session.clone(), held));
                }
                Err(error) => {
                    owners.terminal.note(&format!("warning: session {session} is left alone: {:#}", anyhow::Error::new(error)));
                    self.0
                        .insert(session.clone(), Verdict { state: OwnerState::Unknown, held: None, signs: None, workdir: None });
                }
            }
        }
        let mut held: BTreeMap<SessionId, Option<Held>> = open.iter().cloned().collect();
        for (session, finding) in owners.find(open, wait).await {
            let held = held.remove(&session).flatten();
            let workdir = workdirs.remove(&session);
            let verdict = Verdict { state: finding.life, held, signs: Some((finding, since)), workdir };
            self.0.insert(session, verdict);
        }
    }

    /// Whether the database knows one of these, and it may be taken over.
    pub fn may_be_taken_over(&self, sessions: &BTreeSet<&SessionId>) -> bool {
        sessions.iter().any(|session| self.0.get(session).is_some_and(|verdict| verdict.held.is_some()))
    }

    /// The sessions whose owners are gone and that can be finished from this machine: their folders are here.
    pub async fn unfinished(&self) -> Vec<&SessionId> {
        let mut found = Vec::new();
        for (session, verdict) in self.0.iter().filter(|(_, verdict)| verdict.state == OwnerState::Gone) {
            let Some(workdir) = &verdict.workdir else { continue };
            // A file system may not answer.
            let is_here = timeout(LOOK_LIMIT, fs::metadata(workdir)).await;
            if matches!(is_here, Ok(Ok(folder)) if folder.is_dir()) {
                found.push(session);
            }
        }
        found
    }

    /// Makes sure that the owners of these sessions are still gone, and holds the sessions that the database knows. What was taken over
    /// meanwhile is not gone any more. What cannot be claimed is left alone: its errors are returned, and the others are claimed.
    pub async fn claim(
        &mut self,
        sessions: &BTreeSet<&SessionId>,
        owners: &Owners<'_>,
        store: Option<&Store>,
        claims: &mut Claims,
    ) -> Vec<anyhow::Error> {
        let mut unclaimed = Vec::new();
        for &session in sessions {
            let Some(verdict) = self.0.get_mut(session).filter(|verdict| verdict.state == OwnerState::Gone) else { continue };
            if let Some((finding, since)) = &mut verdict.signs {
                owners.look_again(session, finding, since.elapsed()).await;
                verdict.state = finding.life;
            }
            if let (OwnerState::Gone, Some(held), Some(store)) = (verdict.state, &verdict.held, store) {
                match claims.add(store, session, held).await {
                    Ok(()) => {}
                    Err(StoreError::Taken { .. }) => verdict.state = OwnerState::Alive,
                    Err(error) => {
                        verdict.state = OwnerState::Unknown;
                        unclaimed.push(anyhow::Error::new(error).context(self::unclaimed(session)));
                        continue;
                    }
                }
            }
            if verdict.state != OwnerState::Gone {
                owners.terminal.note(&format!("note: session {session} was taken over meanwhile: nothing of it is removed"));
            }
        }
        unclaimed
    }
}

/// What failed if a claim did.
pub fn unclaimed(session: &SessionId) -> String {
    format!("claim session {session}, so that nobody takes it over while its jobs are removed: nothing of it is removed")
}

/// What the database knows of a session.
struct Known {
    /// Who holds it. Nobody takes over what has ended, unless a signal ended it.
    held: Option<Held>,
    /// Its folder; `None`: it has ended.
    workdir: Option<PathBuf>,
}

async fn row(reader: Option<&Reader>, session: &SessionId) -> Result<Option<Known>, StoreError> {
    let Some(reader) = reader else { return Ok(None) };
    let row = reader.session_of(session, &owner::is_alive).await?;
    // It may be another user's, or another database's.
    Ok(row.map(|row| {
        let has_ended = row.state == SessionState::Ended;
        let held = (!has_ended || row.session.interrupted).then_some(row.held);
        Known { held, workdir: (!has_ended).then_some(row.session.workdir) }
    }))
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
    heartbeats: JoinSet<()>,
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
        self.heartbeats.spawn(heartbeat::until_taken(store.clone(), session.clone(), here, heartbeat::timing()));
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
    use crate::terminal::Terminal;

    #[tokio::test]
    async fn a_claim_that_fails_is_no_takeover() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("results.db")).await.unwrap();
        let session = SessionId("s".into());
        let held = Held { owner: owner::this_owner(), heartbeat: 0 };
        let gone = || Verdict { state: OwnerState::Gone, held: Some(held.clone()), signs: None, workdir: None };
        let terminal = Terminal { color: false, live: false, unicode: false, level: 0, aside: false };
        let owners = Owners { reader: None, schedulers: &[], terminal };
        let claimed = async |claims: &mut Claims| {
            let mut verdicts = Verdicts(BTreeMap::from([(session.clone(), gone())]));
            let unclaimed = verdicts.claim(&BTreeSet::from([&session]), &owners, Some(&store), claims).await;
            (unclaimed.iter().map(ToString::to_string).collect::<Vec<_>>(), verdicts.state(&session))
        };
        // Nobody holds it as the verdict says.
        assert_eq!(claimed(&mut Claims::default()).await, (Vec::new(), Some(OwnerState::Alive)));
        store.close().await.unwrap();
        assert_eq!(claimed(&mut Claims::default()).await, (vec![unclaimed(&session)], Some(OwnerState::Unknown)));
    }
}

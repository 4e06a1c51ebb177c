//! Sessions that ended before they are stored: imported ones, and example data.

use crate::{Held, Owner, Store, StoreError};
use futures_util::{StreamExt, TryStreamExt, stream};
use muster_core::{
    night::NightSpan,
    result::{CaseResult, Outcome, Session},
};
use muster_text::time::Timestamp;
use std::collections::HashSet;

/// So many results wait at once: as many as fit into two transactions.
const AT_ONCE: usize = 2 * super::BATCH;

impl Store {
    /// Writes a session of a night with all its results, in the order in which they finished. Its end is that of its last result if
    /// nobody knows it.
    ///
    /// # Errors
    /// [`StoreError::AlreadyStored`] if there is a session of its id.
    pub async fn write_whole(
        &self,
        session: &Session,
        night: &NightSpan,
        owner: &Owner,
        results: &[CaseResult],
    ) -> Result<(), StoreError> {
        let begun = Session { night: Some(night.date), ended: None, ..session.clone() };
        self.begin(&begun, owner).await?;
        self.plan(&session.id, night, results.iter().map(|result| result.name.clone()).collect()).await?;
        self.write_results(session, owner, results, |_| true).await
    }

    /// Writes what is missing of such a session, whose importer was killed. `stored`: its results that are there.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if it is not held any more as `from` says.
    pub async fn write_rest(
        &self,
        session: &Session,
        night: &NightSpan,
        (from, owner): (&Held, &Owner),
        results: &[CaseResult],
        stored: &[CaseResult],
    ) -> Result<(), StoreError> {
        self.take_over(&session.id, from, owner).await?;
        self.plan(&session.id, night, results.iter().map(|result| result.name.clone()).collect()).await?;
        // Aborted ones are deleted when a session is taken over.
        let kept = stored.iter().filter(|result| result.outcome != Outcome::Abort);
        let kept: HashSet<(String, u32)> = kept.map(|result| (result.name.to_string(), result.attempt)).collect();
        self.write_results(session, owner, results, |result| !kept.contains(&(result.name.to_string(), result.attempt))).await
    }

    /// Writes some results, and the end.
    async fn write_results(
        &self,
        session: &Session,
        owner: &Owner,
        results: &[CaseResult],
        is_missing: impl Fn(&CaseResult) -> bool,
    ) -> Result<(), StoreError> {
        // Many at once, in their order: each is acknowledged when its transaction is committed.
        let missing = results.iter().filter(|result| is_missing(result)).map(|result| self.finished(&session.id, result));
        stream::iter(missing).buffered(AT_ONCE).try_collect::<()>().await?;
        let last = results.iter().map(|result| result.times.finished).max();
        let ended: Timestamp = session.ended.or(last).unwrap_or(session.started);
        self.end(&session.id, owner, ended, session.interrupted).await
    }
}

//! Sessions that ended before they are stored: imported ones, and example data.

use crate::{Owner, Store, StoreError};
use futures_util::future::try_join_all;
use muster_core::{
    night::Night,
    result::{CaseResult, Session},
};
use muster_text::time::Timestamp;

impl Store {
    /// Writes a session of a night with all its results, in the order in which they finished. Its end is that of its last result if
    /// nobody knows it.
    pub async fn write_whole(
        &self,
        session: &Session,
        night: &Night,
        owner: &Owner,
        results: &[CaseResult],
    ) -> Result<(), StoreError> {
        let begun = Session { night: Some(night.date), ended: None, ..session.clone() };
        self.begin(&begun, owner).await?;
        self.plan(&session.id, night, results.iter().map(|result| result.name.clone()).collect()).await?;
        // All at once: each is acknowledged when its transaction is committed.
        try_join_all(results.iter().map(|result| self.finished(&session.id, result))).await?;
        let last = results.iter().map(|result| result.times.finished).max();
        let ended: Timestamp = session.ended.or(last).unwrap_or(session.started);
        self.end(&session.id, owner, ended, session.interrupted).await
    }
}

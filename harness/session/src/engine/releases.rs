//! Tears down what cases have left: after the last user, one after another on its task; before a round that replaces it, and at
//! the end of the session, as many of a partition at once as there are slots.

use crate::engine::{
    Shared,
    dependencies::Release,
    teardown::{self, TeardownReport},
};
use futures_util::{
    future::{BoxFuture, join_all},
    stream::{self, StreamExt},
};
use std::{collections::BTreeMap, sync::Arc};
use tokio::time::Instant;

impl Shared {
    /// Tears down on a task of its own.
    pub(super) fn release_soon(self: &Arc<Self>, releases: Vec<Release>) {
        if !releases.is_empty() {
            let shared = Arc::clone(self);
            self.runtime.spawn(async move { shared.release(releases).await });
        }
    }

    /// Tears down what has no user any more. The session is not idle before.
    pub(super) async fn release(&self, releases: Vec<Release>) {
        let since = Instant::now();
        for release in releases {
            let report = self.torn_down(&release, since).await;
            let mut state = self.state();
            state.dependencies.released(release.id, report);
            state.releasing -= 1;
            if state.is_idle() {
                self.news.notify_waiters();
            }
        }
    }

    /// Tears down in waves: those of one need nothing of each other.
    pub(super) async fn release_all(&self, waves: Vec<Vec<Release>>) {
        let since = Instant::now();
        for wave in waves {
            let mut lanes: BTreeMap<String, Vec<BoxFuture<'_, ()>>> = BTreeMap::new();
            for release in wave {
                let lane = self.lane_of(&release.result.name.partition);
                lanes.entry(lane).or_default().push(Box::pin(async move {
                    let report = self.torn_down(&release, since).await;
                    self.state().dependencies.released(release.id, report);
                }));
            }
            let with_slots = |(lane, releases): (String, Vec<_>)| {
                let slots = self.state().lanes.get(&lane).map_or(1, |lane| lane.slots);
                stream::iter(releases).buffer_unordered(slots).collect::<()>()
            };
            join_all(lanes.into_iter().map(with_slots)).await;
        }
    }

    async fn torn_down(&self, release: &Release, since: Instant) -> TeardownReport {
        teardown::release(&self.context, &self.schedulers, release, since).await
    }
}

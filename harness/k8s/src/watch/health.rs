//! Whether the watches see anything: since when which of them does not, and why.

use super::follow::Source;
use crate::client::error::{ApiError, Why};
use std::{collections::BTreeMap, time::Duration};
use tokio::{sync::watch, time::Instant};

/// One for all watches of a session in a place.
#[derive(Clone)]
pub(super) struct Health(watch::Sender<Downs>);

/// The watches that see nothing.
pub(crate) type Downs = BTreeMap<Source, Down>;

/// A watch that sees nothing.
#[derive(Debug, Clone)]
pub(crate) struct Down {
    /// Since when.
    pub(crate) since: Instant,
    /// The last refusal.
    pub(crate) error: ApiError,
}

impl Down {
    /// How long it may still stay so; `None`: it cannot pass.
    pub(crate) fn patience(&self, limit: Duration) -> Option<Duration> {
        let passes = matches!(self.error.why(), Why::Transient | Why::Unauthorized | Why::Expired);
        passes.then(|| limit.saturating_sub(self.since.elapsed()))
    }
}

impl Health {
    pub(super) fn new() -> Self {
        Self(watch::Sender::default())
    }

    pub(super) fn receiver(&self) -> watch::Receiver<Downs> {
        self.0.subscribe()
    }

    pub(super) fn up(&self, source: &Source) {
        self.0.send_if_modified(|downs| downs.remove(source).is_some());
    }

    pub(super) fn down(&self, source: &Source, since: Instant, error: &ApiError) {
        let new = Down { since, error: error.clone() };
        self.0.send_modify(|downs| {
            downs.entry(source.clone()).and_modify(|down| down.error = error.clone()).or_insert(new);
        });
    }
}

//! The only code that speaks HTTP: connections to one namespace of one cluster, as one user.
//!
//! ```text
//! Cluster -create, get, list, patch, replace, delete--> send (counted, limited, retried)  -> Created | Value | ApiError
//!         -log, watch---------------------------------> streams (one attempt)             -> bytes, events
//!         -resolve------------------------------------> discovery (once for each group and version)
//! ApiError -why-> Why -classify-> SchedulerError, one sentence
//! ```
//! Decisions are not made here: `launch` and `cleanup` decide what a refusal means for a case, `status` what objects mean.

mod budget;
mod connection;
mod count;
mod discovery;
mod error;
mod objects;
mod path;
mod send;
mod slim;
mod streams;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use budget::{Budget, Shares};
pub use connection::contexts::Contexts;
pub(crate) use connection::{Route, route};
pub(crate) use count::Requests;
pub(crate) use discovery::Contact;
pub use error::ContextError;
pub(crate) use error::{ApiError, ConnectError, Why, grants::REFUSAL_LIMIT};
pub use objects::Selection;
pub(crate) use objects::{Dated, Deleted, Listed};
pub(crate) use send::jittered;
pub(crate) use streams::{LogQuery, WatchEvent, Watched};

use crate::api::{ClusterPlace, ServerClock};
use connection::login::Login;
use count::Counters;
use discovery::Served;
use error::grants::Grants;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::sync::Semaphore;

/// As many creations are sent at once. Deletions do not wait for them: what frees room goes first.
const CREATES_AT_ONCE: usize = 16;

/// A connection to one namespace of one cluster.
pub struct Cluster {
    place: ClusterPlace,
    login: Arc<Login>,
    grants: Mutex<Grants>,
    counters: Counters,
    budget: Arc<Budget>,
    creates: Semaphore,
    served: Mutex<BTreeMap<String, Served>>,
    warned: Mutex<BTreeSet<String>>,
    timeouts: Timeouts,
    clock: ServerClock,
}

/// The times after which a silent connection counts as broken. Both are tried again.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// A request has no answer.
    pub answer: Duration,
    /// A watch has shown neither an event nor a bookmark, of which there is about one a minute.
    pub silence: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { answer: Duration::from_secs(30), silence: Duration::from_mins(3) }
    }
}

impl Cluster {
    /// Reads how to connect. Whether there are credentials and the server answers shows with the first request.
    ///
    /// # Errors
    /// The kubeconfig, or the pod that Muster runs in, does not say how.
    pub async fn connect(place: &ClusterPlace) -> Result<Arc<Self>, ConnectError> {
        Self::connect_within(place, Arc::default()).await
    }

    /// Reads how to connect, and shares the limits of a budget with other clusters.
    ///
    /// # Errors
    /// As `connect`.
    pub async fn connect_within(place: &ClusterPlace, budget: Arc<Budget>) -> Result<Arc<Self>, ConnectError> {
        connection::config(place).await?;
        Ok(Self::new(place.clone(), None, budget))
    }

    /// `client`: a connection that is there already, as in tests.
    pub(crate) fn new(place: ClusterPlace, client: Option<kube::Client>, budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            login: Login::new(place.clone(), client),
            place,
            grants: Mutex::default(),
            counters: Counters::default(),
            creates: Semaphore::new(budget.creates(CREATES_AT_ONCE)),
            budget,
            served: Mutex::default(),
            warned: Mutex::default(),
            timeouts: Timeouts::default(),
            clock: ServerClock::default(),
        })
    }

    /// With other limits.
    #[must_use]
    pub(crate) fn with_timeouts(mut self: Arc<Self>, timeouts: Timeouts) -> Arc<Self> {
        if let Some(own) = Arc::get_mut(&mut self) {
            own.timeouts = timeouts;
        }
        self
    }

    /// Gets credentials, if there are none yet. Dropped, it ends the program that it waits for.
    pub(crate) async fn log_in(&self) -> Result<(), ConnectError> {
        self.login.first().await
    }

    /// The place that it leads to.
    pub fn place(&self) -> &ClusterPlace {
        &self.place
    }

    /// What may be open at once.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The server's clock.
    pub fn clock(&self) -> &ServerClock {
        &self.clock
    }

    /// The requests that were sent so far.
    pub fn requests(&self) -> Requests {
        self.counters.read()
    }
}

//! The connection in use, and a new one when its credentials expire. There is at most one renewal at a time.
//!
//! ```text
//! current --still good--> use it
//!         '-about to expire, refused (401), none yet--> renew --a plugin runs, the kubeconfig is read-> current
//!                                                          '-fails-> its error for all who wait, and until the pause is over
//! ```

use crate::api::{ClusterPlace, clock};
use crate::client::{ConnectError, connection};
use muster_core::decisions::backoff::Backoff;
use muster_text::time::Timestamp;
use parking_lot::RwLock;
use std::{sync::Arc, time::Duration};
use tokio::{sync::Mutex, time::Instant};

/// Credentials that end sooner are renewed.
const RESERVE: Duration = Duration::from_mins(1);
/// Credentials that were renewed and are refused again are not renewed before this.
const PAUSES: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(10) };

/// A connection with credentials.
#[derive(Clone)]
pub(in crate::client) struct Live {
    pub(in crate::client) client: kube::Client,
    expires: Option<Timestamp>,
    /// Which, in order.
    number: u64,
}

/// How one place is reached.
pub(in crate::client) struct Login {
    place: ClusterPlace,
    current: RwLock<Option<Live>>,
    last: Mutex<Renewal>,
}

/// The last renewal, but for the first connection.
#[derive(Default)]
struct Renewal {
    not_before: Option<Instant>,
    pause: Duration,
    failed: Option<ConnectError>,
}

impl Live {
    fn lasts(&self, length: Duration) -> bool {
        self.expires.is_none_or(|expires| expires > clock::now().plus(length))
    }
}

impl Login {
    /// `client`: a connection that is there already.
    pub(in crate::client) fn new(place: ClusterPlace, client: Option<kube::Client>) -> Arc<Self> {
        let live = client.map(|client| Live { client, expires: None, number: 0 });
        Arc::new(Self { place, current: RwLock::new(live), last: Mutex::default() })
    }

    /// A connection whose credentials are good, as far as they say so themselves.
    pub(in crate::client) async fn live(self: &Arc<Self>) -> Result<Live, ConnectError> {
        let current = self.current();
        match current {
            Some(live) if live.lasts(RESERVE) => Ok(live),
            Some(old) => match self.renew(Some(&old)).await {
                Err(_) if old.lasts(Duration::ZERO) => Ok(old),
                renewed => renewed,
            },
            None => self.renew(None).await,
        }
    }

    /// The first connection, if there is none. Dropped, it ends the plugin that it waits for.
    pub(in crate::client) async fn first(&self) -> Result<(), ConnectError> {
        if self.current().is_none() { self.renew_once(None).await.map(drop) } else { Ok(()) }
    }

    /// Another connection than this one, whose credentials were refused; `None`: there is no other yet.
    pub(in crate::client) async fn instead_of(self: &Arc<Self>, refused: &Live) -> Result<Option<Live>, ConnectError> {
        let live = self.renew(Some(refused)).await?;
        Ok(Some(live).filter(|live| live.number != refused.number))
    }

    fn current(&self) -> Option<Live> {
        self.current.read().clone()
    }

    /// On a task of its own: it serves all who wait, even if the first of them does not wait any more.
    async fn renew(self: &Arc<Self>, stale: Option<&Live>) -> Result<Live, ConnectError> {
        let (login, stale) = (Arc::clone(self), stale.map(|live| live.number));
        let renewal = tokio::spawn(async move { login.renew_once(stale).await });
        renewal.await.unwrap_or_else(|lost| Err(self.failed(lost.to_string())))
    }

    async fn renew_once(&self, stale: Option<u64>) -> Result<Live, ConnectError> {
        let mut last = self.last.lock().await;
        let current = self.current();
        let is_paused = last.not_before.is_some_and(|time| Instant::now() < time);
        match (&current, &last.failed) {
            (_, Some(failed)) if is_paused => return Err(failed.clone()),
            (Some(live), _) if is_paused || Some(live.number) != stale => return Ok(live.clone()),
            _ => {}
        }
        let connected = connection::client(&self.place).await;
        last.pause = if connected.is_ok() { PAUSES.first } else { PAUSES.next(last.pause) };
        last.not_before = (current.is_some() || connected.is_err()).then(|| Instant::now() + last.pause);
        match connected {
            Ok((client, expires)) => {
                last.failed = None;
                let live = Live { client, expires, number: current.map_or(0, |live| live.number + 1) };
                *self.current.write() = Some(live.clone());
                Ok(live)
            }
            Err(error) => {
                // What worked before is not wrong now: a file that is being written, a program that is being updated.
                let error = if current.is_some() { self.failed(error.to_string()) } else { error };
                last.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    fn failed(&self, why: String) -> ConnectError {
        ConnectError::Credentials { context: connection::name(&self.place).to_owned(), why }
    }
}

//! One watch that never ends: list, watch from there, list again when the server has forgotten.
//!
//! ```text
//!        +---------------- Expired (410), resync ----------------+
//!        v                                                       |
//! list --+--> watch --- ends by its time, breaks --> watch again-'
//!  '- fails: Report::down, pause with jitter, again
//! ```
//! A server that says `Expired` over and over gets one request of all watches in [`EXPIRED_EACH`].
//! Objects that a list no longer has are reported as vanished: a watch that was down cannot have reported their deletion.

use super::health::Report;
use crate::{
    api::Resource,
    client::{ApiError, Cluster, Listed, Selection, WatchEvent, Watched, Why, jittered},
};
use futures_util::StreamExt;
use muster_core::{case::Identifier, decisions::backoff::Backoff};
use muster_text::Value;
use parking_lot::Mutex;
use std::{collections::BTreeSet, future::Future, marker::PhantomData, sync::Arc, time::Duration};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};

const PAUSES: Backoff = Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(10) };
/// The interval between requests after two `Expired` in a row.
const EXPIRED_EACH: Duration = Duration::from_secs(5);

/// When the next request may be sent by any watch whose versions expire at once.
#[derive(Debug, Clone, Default)]
pub(super) struct Pace(Arc<Mutex<Option<Instant>>>);

impl Pace {
    /// Waits before a request, after so many `Expired` in a row.
    async fn wait(&self, expired: u32) {
        let turn = {
            let mut next = self.0.lock();
            turn(&mut next, expired, Instant::now())
        };
        sleep_until(turn).await;
    }
}

/// When the next request may be sent.
fn turn(next: &mut Option<Instant>, expired: u32, now: Instant) -> Instant {
    if expired < 2 {
        return now;
    }
    let turn = next.unwrap_or(now + EXPIRED_EACH).max(now);
    *next = Some(turn + EXPIRED_EACH);
    turn
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source {
    pub(crate) resource: Resource,
    /// `None`: all of the namespace.
    pub(super) selector: Option<String>,
    /// The only job that this watch is for; `None`: it serves all.
    pub(crate) job: Option<Identifier>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change<T> {
    /// It is like this now.
    Applied(T),
    /// It is gone, and was like this last.
    Deleted(T),
    /// The object with this uid is gone.
    Vanished(String),
    /// Every object of the list was reported.
    Listed,
}

/// Receives the changes.
pub(super) trait Sink<T>: Send + Sync {
    fn take(&self, change: Change<T>) -> impl Future<Output = ()> + Send;
}

/// Watches until it is dropped.
pub(super) async fn follow<T: Watched>(
    cluster: Arc<Cluster>,
    source: Source,
    resync: Arc<Notify>,
    report: Report,
    pace: Pace,
    sink: impl Sink<T>,
) {
    let (known, version) = (BTreeSet::new(), String::new());
    let mut watching = Watching { cluster, source, report, pace, expired: 0, sink, known, version, shows: PhantomData };
    loop {
        watching.pace.wait(watching.expired).await;
        if !watching.list().await {
            continue;
        }
        watching.pace.wait(watching.expired).await;
        tokio::select! {
            () = resync.notified() => {}
            () = watching.watch_on() => {}
        }
    }
}

struct Watching<T, S> {
    cluster: Arc<Cluster>,
    source: Source,
    report: Report,
    pace: Pace,
    /// The number of `Expired` in a row.
    expired: u32,
    sink: S,
    /// The uids of all objects that were reported as present.
    known: BTreeSet<String>,
    version: String,
    shows: PhantomData<fn() -> T>,
}

impl<T: Watched, S: Sink<T>> Watching<T, S> {
    async fn list(&mut self) -> bool {
        let which = Selection { labels: self.source.selector.as_deref(), fields: None };
        match self.cluster.list(&self.source.resource, which).await {
            Ok(Listed { items, version }) => {
                self.report.up();
                self.version = version;
                let items: Vec<T> = items.into_iter().filter_map(understood).collect();
                let listed: BTreeSet<String> = items.iter().filter_map(T::uid).map(str::to_owned).collect();
                let gone: Vec<String> = self.known.difference(&listed).cloned().collect();
                for uid in gone {
                    self.sink.take(Change::Vanished(uid)).await;
                }
                self.known = listed;
                for item in items {
                    self.sink.take(Change::Applied(item)).await;
                }
                self.sink.take(Change::Listed).await;
                true
            }
            Err(error) => {
                self.report.down(&error);
                sleep(jittered(if error.why().passes() { PAUSES.first } else { PAUSES.longest })).await;
                false
            }
        }
    }

    /// Returns when everything has to be listed again.
    async fn watch_on(&mut self) {
        let mut pause = PAUSES.first;
        loop {
            let started = Instant::now();
            match self.watch_once().await {
                Ok(()) => {}
                Err(error) if error.why() == Why::Expired => {
                    self.expired = if started.elapsed() > PAUSES.longest { 0 } else { self.expired + 1 };
                    if self.expired == 1 {
                        sleep(jittered(PAUSES.first)).await;
                    }
                    return;
                }
                Err(error) => {
                    tracing::debug!(%error, "a watch broke");
                    self.report.down(&error);
                }
            }
            if started.elapsed() > PAUSES.longest {
                self.expired = 0;
                pause = PAUSES.first;
                continue;
            }
            // Not at once, and not all together: a server that ends watches at once is about to go.
            sleep(jittered(pause)).await;
            pause = PAUSES.next(pause);
        }
    }

    async fn watch_once(&mut self) -> Result<(), ApiError> {
        let Source { resource, selector, .. } = &self.source;
        let mut events = self.cluster.watch::<T>(resource, selector.as_deref(), &self.version).await?;
        self.report.up();
        while let Some(event) = events.next().await {
            match event? {
                WatchEvent::Bookmark(version) => self.version = version,
                WatchEvent::Applied(object) => {
                    self.remember(&object);
                    self.known.extend(object.uid().map(str::to_owned));
                    self.sink.take(Change::Applied(object)).await;
                }
                WatchEvent::Deleted(object) => {
                    self.remember(&object);
                    object.uid().map(|uid| self.known.remove(uid));
                    self.sink.take(Change::Deleted(object)).await;
                }
            }
        }
        Ok(())
    }

    fn remember(&mut self, object: &T) {
        if let Some(version) = object.version() {
            version.clone_into(&mut self.version);
        }
    }
}

/// Objects that cannot be parsed are skipped.
fn understood<T: Watched>(item: Value) -> Option<T> {
    T::read(item).inspect_err(|error| tracing::warn!(%error, "a listed object cannot be read")).ok()
}

#[cfg(test)]
mod tests {
    use super::{super::health::Health, *};
    use crate::client::testing::{self, Reply};
    use serde_json::json;
    use tokio::time::timeout;

    #[derive(Clone, Default)]
    struct Recorded(Arc<Mutex<Vec<String>>>);

    impl Sink<Value> for Recorded {
        async fn take(&self, change: Change<Value>) {
            let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            self.0.lock().push(match &change {
                Change::Applied(object) => format!("{} is there", name(object)),
                Change::Deleted(object) => format!("{} is deleted", name(object)),
                Change::Vanished(uid) => format!("{uid} has vanished"),
                Change::Listed => "listed".to_owned(),
            });
        }
    }

    fn pod(name: &str, version: &str) -> Value {
        json!({"metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": version}})
    }

    fn event(kind: &str, object: &Value) -> Value {
        json!({"type": kind, "object": object})
    }

    /// Follows a server until it is asked for a fourth watch.
    async fn recorded(mut answer: impl FnMut(bool, usize) -> Reply + Send + 'static) -> (Vec<String>, Vec<String>) {
        let (mut lists, mut watches) = (0, 0);
        let (cluster, requests) = testing::cluster(move |line, _| {
            let is_watch = line.contains("watch=true");
            let count = if is_watch { &mut watches } else { &mut lists };
            *count += 1;
            if is_watch && *count == 4 { Reply::events(&[], true) } else { answer(is_watch, *count) }
        });
        let source = Source { resource: Resource::of("v1", "Pod"), selector: Some("rfm-session=s".into()), job: None };
        let recorded = Recorded::default();
        let report = Health::new().of(source.clone());
        let following = follow(cluster, source, Arc::default(), report, Pace::default(), recorded.clone());
        let _ = timeout(Duration::from_mins(1), following).await;
        let lines = recorded.0.lock().clone();
        let version = |line: &String| line.split("resourceVersion=").nth(1).unwrap_or("list").to_owned();
        (lines, requests.full().iter().map(version).collect())
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_goes_on_where_the_last_one_ended() {
        let (recorded, versions) = recorded(|is_watch, count| match (is_watch, count) {
            (false, _) => Reply::list("1", &[pod("a", "1")]),
            (true, 1) => Reply::events(&[event("ADDED", &pod("b", "2")), event("MODIFIED", &pod("a", "3"))], false),
            (true, 2) => Reply::events(&[event("BOOKMARK", &json!({"metadata": {"resourceVersion": "7"}}))], false),
            _ => Reply::events(&[event("DELETED", &pod("a", "8"))], false),
        })
        .await;
        assert_eq!(recorded, ["a is there", "listed", "b is there", "a is there", "a is deleted"]);
        assert_eq!(versions, ["list", "1", "3", "7", "8"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_vanished_while_a_watch_was_expired_is_reported() {
        let (recorded, versions) = recorded(|is_watch, count| match (is_watch, count) {
            (false, 1) => Reply::list("1", &[pod("a", "1"), pod("b", "1")]),
            (false, _) => Reply::list("9", &[pod("b", "5")]),
            (true, 1) => {
                Reply::events(&[event("ERROR", &json!({"code": 410, "reason": "Expired", "message": "too old"}))], false)
            }
            (true, 2) => Reply::refusal(410, "Expired", "too old"),
            _ => Reply::refusal(503, "ServiceUnavailable", "restarting"),
        })
        .await;
        let expected =
            ["a is there", "b is there", "listed", "uid-a has vanished", "b is there", "listed", "b is there", "listed"];
        assert_eq!(recorded, expected);
        assert_eq!(versions, ["list", "1", "list", "9", "list", "9", "9"]);
    }

    /// Two watches: of the pods and of a Job.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_always_says_expired_is_asked_less_and_less() {
        let started = Instant::now();
        let asked: Arc<Mutex<Vec<Duration>>> = Arc::default();
        let seen = Arc::clone(&asked);
        let (cluster, _) = testing::cluster(move |line, _| {
            seen.lock().push(started.elapsed());
            if line.contains("watch=true") { Reply::refusal(410, "Expired", "too old") } else { Reply::list("1", &[]) }
        });
        let pace = Pace::default();
        let one = |kind: &str| {
            let source = Source { resource: Resource::of("v1", kind), selector: None, job: None };
            let report = Health::new().of(source.clone());
            follow(Arc::clone(&cluster), source, Arc::default(), report, pace.clone(), Recorded::default())
        };
        let _ = timeout(Duration::from_mins(2), futures_util::future::join(one("Pod"), one("ConfigMap"))).await;
        let asked = asked.lock().clone();
        let (first, later): (Vec<Duration>, Vec<Duration>) = asked.iter().partition(|at| **at < Duration::from_secs(10));
        assert!(first.len() <= 10, "{first:?}");
        assert!(later.windows(2).all(|pair| pair[1].saturating_sub(pair[0]) >= EXPIRED_EACH), "{later:?}");
        assert!(later.len() >= 20, "{later:?}");
    }
}

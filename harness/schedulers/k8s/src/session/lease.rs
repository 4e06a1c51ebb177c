//! Shows that a session lives: a Lease in each place that it uses, renewed while it lives.
//!
//! ```text
//! hold (first launch) -> create -> renew again and again ... -> release: deleted
//!                          |- no right to it: a note, once; tried again
//!                          '- another holder's: only if it has expired, by compare-and-swap on its version
//! take_over (attach): the same compare-and-swap, at once, on the version in which the owner was found to be gone
//! ```
//! A killed session leaves its Lease, which expires. How old it is only the server says that keeps it: when it was last changed
//! (`managedFields[].time`) against the date of the same answer. The times in its spec are by the clock of its holder, and are
//! for people.

use crate::{
    api::{ClusterPlace, Resource, SESSION_LABEL, clock},
    client::{ApiError, Cluster, Dated, Selection, Why},
};
use kube::api::PropagationPolicy;
use muster_core::{case::SessionId, decisions::liveness::HeartbeatTiming, job::inventory as job};
use muster_text::{Value, time::Timestamp};
use parking_lot::Mutex;
use serde_json::json;
use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    process,
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::{task::JoinHandle, time::sleep};

/// A renewal that failed is tried again after this, if not sooner.
const RETRY: Duration = Duration::from_secs(10);

/// This process, among all that may hold a Lease.
static HOLDER: LazyLock<String> =
    LazyLock::new(|| format!("muster-{}-{:016x}", process::id(), RandomState::new().hash_one(process::id())));

/// The Lease of one session in one place.
pub(crate) struct Lease {
    keeper: Keeper,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// A Lease as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseSeen {
    /// The version of the object: another one is a heartbeat.
    version: String,
    holder: String,
    /// How long it lasts without being renewed.
    limit: Duration,
    /// How long ago it was changed, by the server's clock.
    age: Option<Duration>,
}

impl LeaseSeen {
    fn of(Dated { object, age }: &Dated) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let limit = object["spec"]["leaseDurationSeconds"].as_u64().map(Duration::from_secs);
        Self {
            version: text(&object["metadata"]["resourceVersion"]),
            holder: text(&object["spec"]["holderIdentity"]),
            limit: limit.unwrap_or(HeartbeatTiming::default().limit),
            age: *age,
        }
    }

    pub(crate) fn into_lease(self, place: &ClusterPlace, session: SessionId) -> job::Lease {
        let Self { version, limit, age, .. } = self;
        job::Lease { session, place: place_of(place), version, limit, age }
    }

    /// By the server's clock; one without dates is not known to have expired.
    fn has_expired(&self) -> bool {
        self.age.is_some_and(|age| age > self.limit)
    }
}

impl Lease {
    pub(crate) fn new(cluster: Arc<Cluster>, session: &SessionId, timing: HeartbeatTiming) -> Self {
        Self { keeper: Keeper { cluster, session: session.clone(), timing }, task: Mutex::default() }
    }

    /// From now on, until [`Lease::release`].
    pub(crate) fn hold(&self) {
        self.start(None);
    }

    /// Takes it from a holder that is gone, in the version that was `seen`, or creates it; from now on it is held. `false`: another process was
    /// faster, or the holder lives.
    pub(crate) async fn take_over(&self, seen: Option<&str>) -> Result<bool, ApiError> {
        match self.keeper.write(seen).await {
            Ok(version) => self.start(Some(version)),
            Err(error) if matches!(error.why(), Why::Exists | Why::Conflict) || error.is_gone() => return Ok(false),
            // Without the right to Leases the database alone says who owns a session.
            Err(error) if error.why() == Why::NotAllowed => self.start(None),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    fn start(&self, version: Option<String>) {
        let mut task = self.task.lock();
        if task.is_none() {
            *task = Some(tokio::spawn(self.keeper.clone().keep(version)));
        }
    }

    /// The session is over. Its Lease is deleted, although it would expire anyway.
    pub(crate) async fn release(&self) {
        let task = self.task.lock().take();
        // A task that has ended has lost the Lease to another process.
        let Some(task) = task.filter(|task| !task.is_finished()) else { return };
        task.abort();
        let name = name(&self.keeper.session);
        if let Err(error) = self.keeper.cluster.delete(&resource(), &name, None, PropagationPolicy::Background).await
            && error.why() != Why::NotAllowed
        {
            tracing::debug!(%error, "the session's Lease stays until it expires");
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut().take() {
            task.abort();
        }
    }
}

#[derive(Clone)]
struct Keeper {
    cluster: Arc<Cluster>,
    session: SessionId,
    timing: HeartbeatTiming,
}

impl Keeper {
    /// Holds the Lease unless another process does. `version`: of the object, if it is held already.
    async fn keep(self, mut version: Option<String>) {
        let (mut was_held, mut was_logged) = (version.is_some(), false);
        if was_held {
            sleep(self.timing.interval).await;
        }
        loop {
            let pause = match self.write(version.as_deref()).await {
                Ok(renewed) => {
                    (version, was_held) = (Some(renewed), true);
                    self.timing.interval
                }
                Err(error) if matches!(error.why(), Why::Exists | Why::Conflict) => {
                    match look(&self.cluster, &self.session).await {
                        Ok(Some(seen)) if seen.holder == *HOLDER || seen.has_expired() => {
                            version = Some(seen.version);
                            Duration::ZERO
                        }
                        Ok(Some(seen)) if was_held => {
                            tracing::warn!(holder = seen.holder, "the session's Lease was taken over by another process");
                            return;
                        }
                        _ => RETRY.min(self.timing.interval),
                    }
                }
                // A server that has just started refuses everything for a moment.
                Err(error) if error.why() == Why::NotAllowed && !was_held => {
                    if !std::mem::replace(&mut was_logged, true) {
                        tracing::info!(%error, "no Lease: `muster sweep` on other machines cannot tell whether this session lives");
                    }
                    self.timing.interval
                }
                Err(error) => {
                    tracing::debug!(%error, "the session's Lease was not renewed");
                    version = version.filter(|_| !error.is_gone());
                    RETRY.min(self.timing.interval)
                }
            };
            sleep(pause).await;
        }
    }

    /// Creates it, or renews it if it still is of this version. Returns the new version.
    async fn write(&self, version: Option<&str>) -> Result<String, ApiError> {
        let mut metadata = json!({"name": name(&self.session), "labels": {SESSION_LABEL: self.session.0}});
        let now = clock::micro_time(clock::now());
        let spec = json!({
            "holderIdentity": *HOLDER,
            "leaseDurationSeconds": self.timing.limit.as_secs().max(1),
            "acquireTime": now,
            "renewTime": now,
        });
        let lease =
            |metadata| json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec});
        let written = match version {
            None => self.cluster.create(&resource(), &lease(metadata), false).await?.object,
            Some(version) => {
                metadata["resourceVersion"] = json!(version);
                self.cluster.replace(&resource(), &name(&self.session), &lease(metadata)).await?
            }
        };
        Ok(written["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
    }
}

/// The Lease of a session as it is now; `None`: there is none, or we may not ask.
pub(crate) async fn look(cluster: &Cluster, session: &SessionId) -> Result<Option<LeaseSeen>, ApiError> {
    match cluster.get_dated(&resource(), &name(session)).await {
        Ok(lease) => Ok(Some(LeaseSeen::of(&lease))),
        Err(error) if error.is_gone() || error.why() == Why::NotAllowed => Ok(None),
        Err(error) => Err(error),
    }
}

/// All Leases of sessions in this place, and what time it is there; empty where we may not ask.
pub(crate) async fn sessions(cluster: &Cluster) -> Result<(BTreeMap<SessionId, LeaseSeen>, Option<Timestamp>), ApiError> {
    let which = Selection { labels: Some(SESSION_LABEL), fields: None };
    let (leases, now) = match cluster.list_dated(&resource(), which).await {
        Ok(listed) => listed,
        Err(error) if error.why() == Why::NotAllowed => (Vec::new(), None),
        Err(error) => return Err(error),
    };
    let session = |lease: &Dated| {
        let session = lease.object["metadata"]["labels"][SESSION_LABEL].as_str()?;
        Some((SessionId(session.to_owned()), LeaseSeen::of(lease)))
    };
    Ok((leases.iter().filter_map(session).collect(), now))
}

/// Deletes the Lease of an abandoned session, in the version in which its owner was found to be gone.
///
/// # Errors
/// `Conflict` when another process has taken the session over since.
pub(crate) async fn delete(cluster: &Cluster, lease: &job::Lease) -> Result<(), ApiError> {
    cluster.delete_version(&resource(), &name(&lease.session), &lease.version).await.map(|_| ())
}

/// As [`job::Lease::place`] has it.
pub(crate) fn place_of(place: &ClusterPlace) -> String {
    serde_json::to_string(place).unwrap_or_default()
}

/// The place of a Lease that `into_lease` has made.
pub(crate) fn read_place(place: &str) -> Option<ClusterPlace> {
    serde_json::from_str(place).ok()
}

fn name(session: &SessionId) -> String {
    format!("rfm-session-{}", session.0.to_lowercase())
}

fn resource() -> Resource {
    Resource { plural: Some("leases".into()), ..Resource::of("coordination.k8s.io/v1", "Lease") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::{Reply, cluster};
    use muster_core::decisions::liveness::{Evidence, Heartbeat, LastHeartbeat, OwnerState, owner_state};

    fn session() -> SessionId {
        SessionId("s1".into())
    }

    /// A Lease that was last changed at a time of the server's, and renewed at one of its holder's.
    fn lease(changed: Option<&str>, renewed: &str) -> Value {
        let fields =
            changed.map(|time| json!([{"manager": "muster", "time": "2026-01-01T00:00:00Z"}, {"manager": "x", "time": time}]));
        json!({
            "metadata": {"name": "rfm-session-s1", "resourceVersion": "7", "labels": {"rfm-session": "s1"}, "managedFields": fields},
            "spec": {"holderIdentity": "another", "renewTime": renewed, "leaseDurationSeconds": 150},
        })
    }

    async fn seen(lease: Value, date: Option<&'static str>) -> LeaseSeen {
        let reply = Reply::list("9", &[lease]);
        let reply = date.into_iter().fold(reply, |reply, date| reply.header("Date", date));
        let (cluster, _) = cluster(move |_, _| reply.clone());
        let (mut sessions, _) = sessions(&cluster).await.unwrap();
        sessions.remove(&session()).unwrap()
    }

    #[tokio::test]
    async fn a_lease_is_as_old_as_the_server_that_keeps_it_says() {
        let (early, late) = (Some("Thu, 01 Jan 2026 00:04:30 GMT"), Some("Thu, 01 Jan 2026 00:04:31 GMT"));
        let changed = Some("2026-01-01T00:02:00Z");
        let silent = |left, last| OwnerState::Silent { left: Duration::from_secs(left), last };
        // The holder has a clock that is ten minutes slow, or fast.
        let (slow, fast) = ("2025-12-31T23:52:00.000000Z", "2026-01-01T00:12:00.000000Z");
        let rows = [
            (changed, slow, early, silent(0, LastHeartbeat::Recent)),
            (changed, fast, late, OwnerState::Gone),
            (Some("2026-01-01T00:04:40Z"), slow, early, silent(150, LastHeartbeat::Recent)),
            // Without dates it is watched.
            (None, slow, late, silent(150, LastHeartbeat::Undated)),
            (changed, slow, None, silent(150, LastHeartbeat::Undated)),
        ];
        for (changed, renewed, date, expected) in rows {
            let place = ClusterPlace { context: Some("c".into()), namespace: "n".into() };
            let seen = seen(lease(changed, renewed), date).await.into_lease(&place, session());
            assert_eq!(read_place(&seen.place), Some(place));
            let signs = Evidence { leases: vec![Heartbeat::of(&seen, &seen, Duration::ZERO)], ..Evidence::default() };
            assert_eq!(owner_state(&signs), expected, "{changed:?} {renewed} {date:?}");
        }
    }

    #[tokio::test]
    async fn a_lease_is_taken_over_in_the_version_in_which_its_holder_was_found_dead_or_not_at_all() {
        let seen = seen(lease(None, "2026-01-01T00:00:00.000000Z"), None).await;
        for (reply, taken) in [
            (Reply::json(&json!({"metadata": {"resourceVersion": "8"}})), true),
            (Reply::refusal(409, "Conflict", "the object has been modified"), false),
            (Reply::refusal(404, "NotFound", "leases not found"), false),
        ] {
            let (cluster, requests) = cluster(move |line, sent| {
                assert_eq!((line.starts_with("PUT"), &sent["metadata"]["resourceVersion"]), (true, &json!("7")));
                assert_eq!(sent["spec"]["holderIdentity"], **HOLDER);
                reply.clone()
            });
            let lease = Lease::new(cluster, &session(), HeartbeatTiming::default());
            assert_eq!(lease.take_over(Some(&seen.version)).await.unwrap(), taken);
            assert_eq!(requests.full().len(), 1);
        }
    }

    #[tokio::test]
    async fn the_lease_of_an_abandoned_session_is_deleted_in_the_version_that_was_seen() {
        let place = ClusterPlace { context: Some("c".into()), namespace: "n".into() };
        let seen = seen(lease(None, "2026-01-01T00:00:00.000000Z"), None).await.into_lease(&place, session());
        for (reply, deleted) in [
            (Reply::json(&json!({"kind": "Status"})), true),
            (Reply::refusal(409, "Conflict", "the ResourceVersion in the precondition does not match"), false),
        ] {
            let (cluster, _) = cluster(move |line, sent| {
                assert!(line.starts_with("DELETE"), "{line}");
                assert_eq!(sent["preconditions"], json!({"resourceVersion": "7"}));
                reply.clone()
            });
            assert_eq!(delete(&cluster, &seen).await.is_ok(), deleted);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_another_process_has_taken_is_left_alone() {
        let (cluster, requests) = cluster(|line, _| match line {
            line if line.starts_with("POST") => Reply::json(&json!({"metadata": {"resourceVersion": "6"}})),
            line if line.starts_with("PUT") => Reply::refusal(409, "Conflict", "the object has been modified"),
            _ => Reply::json(&lease(None, "2026-01-01T00:00:00.000000Z")),
        });
        let lease = Lease::new(cluster, &session(), HeartbeatTiming::default());
        lease.hold();
        tokio::time::sleep(Duration::from_mins(30)).await;
        let methods: Vec<String> = requests.full().iter().map(|line| line[..4].trim().to_owned()).collect();
        assert_eq!(methods, ["POST", "PUT", "GET"]);
        lease.release().await;
        assert_eq!(requests.full().len(), 3, "it is not deleted");
    }
}

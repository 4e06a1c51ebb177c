//! Says to everybody that a session is alive: a Lease in each place that it uses, renewed while it lives.
//!
//! ```text
//! hold (first launch) -> create -> renew every two minutes ... -> release: deleted
//!                          '- no right to it: a note, once; the session runs without
//! ```
//! A killed session leaves its Lease, which expires: that is how `muster sweep` on another machine knows that it is dead.

use crate::{
    client::{
        Cluster, Deletion, Propagation, Selection,
        error::{ApiError, Why},
    },
    clock,
    handle::{Resource, SESSION_LABEL},
};
use muster_core::{Value, case::SessionId, time::Timestamp};
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{task::JoinHandle, time::sleep};

const RENEW: Duration = Duration::from_mins(2);
/// Who has not renewed for so long is dead: three renewals may fail.
const LIVES: Duration = Duration::from_mins(8);

/// The Lease of one session in one place.
pub(crate) struct Lease {
    cluster: Arc<Cluster>,
    session: SessionId,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Lease {
    pub(crate) fn new(cluster: Arc<Cluster>, session: &SessionId) -> Self {
        Self { cluster, session: session.clone(), task: Mutex::default() }
    }

    /// From now on, until [`Lease::release`].
    pub(crate) fn hold(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.is_none() {
            *task = Some(tokio::spawn(keep(Arc::clone(&self.cluster), self.session.clone())));
        }
    }

    /// The session is over. That its Lease goes too is a courtesy: it would expire.
    pub(crate) async fn release(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(task) = task else { return };
        task.abort();
        let how = Deletion { propagation: Propagation::Background, uid: None };
        if let Err(error) = self.cluster.delete(&resource(), &name(&self.session), &how).await
            && error.why() != Why::NotAllowed
        {
            tracing::debug!(%error, "the session's Lease stays until it expires");
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

async fn keep(cluster: Arc<Cluster>, session: SessionId) {
    let mut held: Option<Value> = None;
    loop {
        let renewed = match held.take() {
            Some(lease) => renew(&cluster, &session, lease).await,
            None => create(&cluster, &session).await,
        };
        match renewed {
            Ok(lease) => held = Some(lease),
            Err(error) if error.why() == Why::NotAllowed => {
                tracing::info!(%error, "no Lease: `muster sweep` on other machines cannot tell whether this session lives");
                return;
            }
            // Taken over from a process that died, or changed by somebody: read it, and renew that.
            Err(error) if matches!(error.why(), Why::Exists | Why::Conflict) => {
                held = cluster.get(&resource(), &name(&session)).await.ok();
                if held.is_some() {
                    continue;
                }
            }
            Err(error) => tracing::debug!(%error, "the session's Lease was not renewed"),
        }
        sleep(RENEW).await;
    }
}

async fn create(cluster: &Cluster, session: &SessionId) -> Result<Value, ApiError> {
    let metadata = json!({"name": name(session), "labels": {SESSION_LABEL: session.0}});
    let now = clock::micro_time(clock::now());
    let spec = json!({
        "holderIdentity": format!("muster-{session}"),
        "leaseDurationSeconds": LIVES.as_secs(),
        "acquireTime": now,
        "renewTime": now,
    });
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec});
    Ok(cluster.create(&resource(), &lease, false).await?.object)
}

async fn renew(cluster: &Cluster, session: &SessionId, mut lease: Value) -> Result<Value, ApiError> {
    lease["spec"]["renewTime"] = json!(clock::micro_time(clock::now()));
    cluster.replace(&resource(), &name(session), &lease).await
}

/// Whether the sessions with a Lease in this place are alive; empty where we may not ask.
pub(crate) async fn sessions(cluster: &Cluster) -> Result<BTreeMap<SessionId, bool>, ApiError> {
    let which = Selection { labels: Some(SESSION_LABEL), fields: None };
    let leases = match cluster.list(&resource(), which).await {
        Ok(listed) => listed.items,
        Err(error) if error.why() == Why::NotAllowed => Vec::new(),
        Err(error) => return Err(error),
    };
    let now = clock::now();
    let life = |lease: &Value| {
        let session = lease["metadata"]["labels"][SESSION_LABEL].as_str()?;
        Some((SessionId(session.to_owned()), is_alive(lease, now)))
    };
    Ok(leases.iter().filter_map(life).collect())
}

/// Deletes the Lease of a dead session.
pub(crate) async fn bury(cluster: &Cluster, session: &SessionId) -> Result<(), ApiError> {
    let how = Deletion { propagation: Propagation::Background, uid: None };
    cluster.delete(&resource(), &name(session), &how).await.map(|_| ())
}

/// One without a time that can be read is taken to be alive.
fn is_alive(lease: &Value, now: Timestamp) -> bool {
    let spec = &lease["spec"];
    let Some(renewed) = spec["renewTime"].as_str().and_then(clock::parse) else { return true };
    let lives = spec["leaseDurationSeconds"].as_u64().map_or(LIVES, Duration::from_secs);
    now.since(renewed) <= lives
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

    #[test]
    fn a_lease_lives_as_long_as_it_says() {
        let at = |text: &str| clock::parse(text).unwrap();
        let lease = |renewed: &str| json!({"spec": {"renewTime": renewed, "leaseDurationSeconds": 150}});
        let now = at("2026-01-01T00:05:00Z");
        assert!(is_alive(&lease("2026-01-01T00:02:30.000000Z"), now));
        assert!(!is_alive(&lease("2026-01-01T00:02:29.000000Z"), now));
        assert!(is_alive(&json!({"spec": {}}), now));
    }
}

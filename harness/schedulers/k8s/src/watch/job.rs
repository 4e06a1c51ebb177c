//! Follows one job through its watches: events in, `Observed` out. No I/O.
//! Longer than other files: its tests, which need its private fields, stand below it.

use crate::{
    api::ServerClock,
    client::Watched,
    job::{
        Handle, LiveObject, Observed, Seen, SeenPod, Trouble,
        replaced_pods::controller,
        told::{Told, needs_events},
    },
    status::is_hopeless,
    watch::ownership::Ownership,
};
use k8s_openapi::api::core::v1::Pod;
use muster_core::decisions::backoff::Backoff;
use muster_text::time::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// The intervals of fetching `Trouble`; they grow while it stays the same.
const TROUBLE_PAUSES: Backoff = Backoff { first: Duration::from_secs(10), longest: Duration::from_mins(5) };
/// The interval while a pod's verdict waits for its events.
const ENDS_PAUSE: Duration = Duration::from_secs(2);
/// The interval between requests for all jobs with unchanged `Trouble`: a thousand may wait for hours.
const TROUBLE_RATION: Duration = Duration::from_mins(3);

/// A job that is watched.
pub(super) struct Tracked {
    sender: watch::Sender<Arc<Observed>>,
    /// Name of the workload.
    pub(super) name: String,
    /// An operator creates Jobs or similar objects for it, and those create the pods.
    pub(super) is_composed: bool,
    pub(super) is_pod: bool,
    kind: String,
    /// Of the workload, once it is known. Others of its name are its predecessors, and their pods are not its own.
    uid: Option<String>,
    ownership: Ownership,
    /// Set if the launch was confirmed, perhaps to another process: a workload that no list has is then gone.
    pub(super) manifest: Option<LiveObject>,
    clock: ServerClock,
    deleted_by_us: bool,
    trouble_due: Instant,
    /// As `trouble_due`, while the events of a pod are awaited that has ended.
    ends_due: Instant,
    trouble_pause: Duration,
}

impl Tracked {
    pub(super) fn new(handle: &Handle, clock: ServerClock, is_adopted: bool) -> Self {
        let observed = Observed { since: clock.now(), from_the_start: !is_adopted, ..Observed::default() };
        let workload = handle.workload();
        Self {
            sender: watch::Sender::new(Arc::new(observed)),
            name: workload.map(|object| object.name.clone()).unwrap_or_default(),
            is_composed: workload.is_some_and(|object| !object.resource.is_pod() && !object.resource.is_job()),
            is_pod: workload.is_some_and(|object| object.resource.is_pod()),
            kind: workload.map(|object| object.resource.kind.clone()).unwrap_or_default(),
            uid: workload.and_then(|object| object.uid.clone()).filter(|uid| !uid.is_empty()),
            ownership: Ownership::of(handle),
            manifest: workload.filter(|_| is_adopted).map(|object| object.manifest.clone().into()),
            clock,
            deleted_by_us: false,
            trouble_due: Instant::now(),
            ends_due: Instant::now(),
            trouble_pause: TROUBLE_PAUSES.first,
        }
    }

    pub(super) fn receiver(&self) -> watch::Receiver<Arc<Observed>> {
        self.sender.subscribe()
    }

    pub(super) fn observed(&self) -> Arc<Observed> {
        Arc::clone(&self.sender.borrow())
    }

    /// The workload has this uid. What was seen of a predecessor is forgotten.
    pub(super) fn launched(&mut self, handle: &Handle) {
        let uid = handle.workload().and_then(|object| object.uid.clone()).unwrap_or_default();
        if uid.is_empty() || self.uid.as_ref() == Some(&uid) {
            return;
        }
        self.uid = Some(uid);
        self.ownership.launched(handle);
        let observed = self.observed();
        let is_stale = observed.workload.object().is_some_and(|object| self.is_predecessor(object.uid()));
        let foreign: Vec<_> =
            observed.pods.iter().filter(|seen| self.is_foreign(&seen.pod)).map(|seen| &seen.pod.metadata.uid).collect();
        if is_stale || !foreign.is_empty() {
            self.change(|observed| {
                if is_stale {
                    observed.workload = Seen::NotYet;
                }
                observed.pods.retain(|seen| !foreign.contains(&&seen.pod.metadata.uid));
            });
        }
    }

    /// Whether an object with the workload's name is another one.
    fn is_predecessor(&self, uid: Option<&str>) -> bool {
        matches!((&self.uid, uid), (Some(own), Some(uid)) if own != uid)
    }

    /// Whether a pod belongs to something else, as far as it says so itself. Nothing is known of it before the launch.
    fn is_foreign(&self, pod: &Pod) -> bool {
        let uid = pod.metadata.uid.as_deref();
        if self.is_pod && pod.metadata.name.as_deref() == Some(&self.name) {
            return self.is_predecessor(uid);
        }
        let is_same_kind = controller(pod)
            .is_some_and(|owner| owner.kind == self.kind && owner.name == self.name && self.is_predecessor(Some(&owner.uid)));
        self.uid.is_some() && (is_same_kind || self.ownership.denies(pod, &self.sender.borrow().pods))
    }

    /// The objects of which one has to own a pod, if that does not say itself whose it is; once for each owner.
    pub(super) fn to_prove(&self, pod: &Pod) -> Option<BTreeSet<String>> {
        if self.uid.is_none() || self.is_foreign(pod) { None } else { self.ownership.to_prove(pod, &self.sender.borrow().pods) }
    }

    /// A pod looks as if it were its own, and is not.
    pub(super) fn ignore(&self, pod: &Pod) {
        let name = pod.metadata.name.clone().unwrap_or_default();
        if !self.sender.borrow().foreign.contains(&name) {
            self.change(|observed| _ = observed.foreign.insert(name));
        }
    }

    /// The kinds of the owners of its pods are known.
    pub(super) fn knows_owners(&self) -> bool {
        self.ownership.is_known()
    }

    /// Nobody knows yet whose an owner is.
    pub(super) fn ask_again(&self, owner: &str) {
        self.ownership.ask_again(owner);
    }

    /// The pods of this owner are not its own.
    pub(super) fn disown(&self, owner: &str) {
        let is_its = |seen: &SeenPod| controller(&seen.pod).is_some_and(|of| of.uid == owner);
        self.change(|observed| {
            let names = observed.pods.iter().filter(|seen| is_its(seen)).map(|seen| seen.name().to_owned());
            observed.foreign.extend(names.collect::<Vec<_>>());
            observed.pods.retain(|seen| !is_its(seen));
        });
        self.ownership.disown(owner);
    }

    /// Everything that vanishes from now on was deleted by Muster.
    pub(super) fn deleted_by_us(&mut self) {
        self.deleted_by_us = true;
        self.change(|observed| {
            for pod in observed.pods.iter_mut().filter(|pod| !pod.gone) {
                pod.deleted_by_us = true;
            }
        });
    }

    /// It cannot be stopped, nor its logs be read.
    pub(super) fn unreachable(&self) {
        self.change(|observed| observed.unreachable = true);
    }

    /// The workload is, or was last, like this.
    pub(super) fn workload(&self, object: LiveObject, gone: bool) {
        if self.is_predecessor(object.uid()) {
            return;
        }
        self.change(|observed| observed.workload = if gone { Seen::Gone(object) } else { Seen::Present(object) });
    }

    /// A pod is, or was last, like this.
    pub(super) fn pod(&self, pod: Pod, gone: bool) {
        if self.is_foreign(&pod) {
            return self.ignore(&pod);
        }
        let pod = Arc::new(pod);
        if self.is_pod && pod.metadata.name.as_deref() == Some(&self.name) {
            self.workload(LiveObject::of(Arc::clone(&pod)), gone);
        }
        let deleted_by_us = self.deleted_by_us;
        let now = self.clock.now();
        self.change(|observed| {
            note_hopeless(&mut observed.hopeless, &pod, now);
            put(&mut observed.pods, pod, gone.then_some(now), deleted_by_us);
        });
    }

    /// It has this uid and is not there any more.
    pub(super) fn vanished(&self, uid: &str) {
        let observed = self.observed();
        if let Seen::Present(object) = &observed.workload
            && object.uid() == Some(uid)
        {
            self.workload(object.clone(), true);
        }
        if observed.pods.iter().any(|pod| !pod.gone && pod.pod.metadata.uid.as_deref() == Some(uid)) {
            let ours = self.deleted_by_us;
            self.change(|observed| {
                for pod in observed.pods.iter_mut().filter(|pod| pod.pod.metadata.uid.as_deref() == Some(uid)) {
                    pod.gone = true;
                    pod.deleted_by_us |= ours;
                }
            });
        }
    }

    /// Everything was listed after this job was taken over.
    pub(super) fn listed(&mut self) {
        if let Some(manifest) = self.manifest.take()
            && matches!(self.sender.borrow().workload, Seen::NotYet)
        {
            self.workload(manifest, true);
        }
    }

    /// When `Trouble` may be fetched again; `None`: now. `ration`: when the next of the jobs that have waited for
    /// long may be fetched.
    pub(super) fn trouble_turn(&mut self, now: Instant, ration: &mut Instant) -> Option<Instant> {
        let observed = self.sender.borrow();
        let is_known =
            |seen: &SeenPod| seen.pod.metadata.uid.as_ref().is_none_or(|uid| observed.trouble.ended_pods.contains(uid));
        let ends_are_awaited = observed.pods.iter().any(|seen| needs_events(seen) && !is_known(seen));
        drop(observed);
        let due = if ends_are_awaited { self.ends_due.min(self.trouble_due) } else { self.trouble_due };
        if now < due {
            return Some(due);
        }
        self.ends_due = now + ENDS_PAUSE;
        if ends_are_awaited {
            return None;
        }
        if self.trouble_pause == TROUBLE_PAUSES.longest {
            if now < *ration {
                return Some(*ration);
            }
            *ration = now + TROUBLE_RATION;
        }
        self.trouble_due = now + self.trouble_pause;
        None
    }

    pub(super) fn trouble(&mut self, trouble: Trouble) {
        let news = {
            let known = &self.sender.borrow().trouble;
            known.events != trouble.events || known.kueue != trouble.kueue || known.denied != trouble.denied
        };
        self.trouble_pause = if news { TROUBLE_PAUSES.first } else { TROUBLE_PAUSES.next(self.trouble_pause) };
        self.trouble_due = Instant::now() + self.trouble_pause;
        self.change(|observed| observed.trouble = trouble);
    }

    fn change(&self, change: impl FnOnce(&mut Observed)) {
        self.sender.send_modify(|observed| change(Arc::make_mut(observed)));
    }
}

/// Remembers since when the scheduler finds no node for a pod: the time of the condition does not change with its message.
fn note_hopeless(hopeless: &mut BTreeMap<String, Timestamp>, pod: &Pod, now: Timestamp) {
    let Some(uid) = &pod.metadata.uid else { return };
    if is_hopeless(pod) {
        hopeless.entry(uid.clone()).or_insert(now);
    } else {
        hopeless.remove(uid);
    }
}

/// Replaces a pod, or inserts it after the older ones. `gone`: when its deletion was seen.
fn put(pods: &mut Vec<SeenPod>, pod: Arc<Pod>, gone: Option<Timestamp>, deleted_by_us: bool) {
    let known = pods.iter().position(|known| known.pod.metadata.uid == pod.metadata.uid);
    let age = |pod: &Pod| (pod.metadata.creation_timestamp.as_ref().map(|time| time.0), pod.metadata.name.clone());
    let place = known.unwrap_or_else(|| {
        let place = pods.partition_point(|known| age(&known.pod) <= age(&pod));
        pods.insert(place, SeenPod::new(Arc::clone(&pod)));
        place
    });
    let seen = &mut pods[place];
    seen.told = seen.told.or_else(|| Told::of(&pod, Some(&seen.pod)));
    seen.pod = pod;
    if let Some(now) = gone {
        // Deleted without a grace.
        seen.told = seen.told.or((!seen.is_over()).then_some(Told::At(now)));
        seen.gone = true;
    }
    seen.deleted_by_us |= deleted_by_us;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::{ClusterPlace, Resource},
        job::Object,
    };
    use serde_json::json;

    fn handle(api_version: &str, kind: &str) -> Handle {
        let resource = Resource::of(api_version, kind);
        let object = Object { resource, name: "rfm-x".into(), manifest: json!({"kind": kind}), uid: Some("w".into()) };
        Handle {
            place: ClusterPlace { context: None, namespace: "n".into() },
            objects: vec![object],
            workload: 0,
            expected_pods: None,
            rules: crate::kind::WorkloadRules::default(),
            keep_seconds: 0,
            ..Handle::default()
        }
    }

    fn pod(name: &str, uid: &str, second: u8) -> Pod {
        let created = format!("2026-01-01T00:00:0{second}Z");
        serde_json::from_value(json!({"metadata": {"name": name, "uid": uid, "creationTimestamp": created}})).unwrap()
    }

    fn names(tracked: &Tracked) -> Vec<(String, bool, bool)> {
        let observed = tracked.observed();
        let one = |pod: &SeenPod| (pod.pod.metadata.name.clone().unwrap_or_default(), pod.gone, pod.deleted_by_us);
        observed.pods.iter().map(one).collect()
    }

    #[test]
    fn pods_are_kept_oldest_first_and_stay_when_they_are_gone() {
        let tracked = Tracked::new(&handle("batch/v1", "Job"), ServerClock::default(), false);
        tracked.pod(pod("b", "2", 2), false);
        tracked.pod(pod("a", "1", 1), false);
        tracked.pod(pod("b", "2", 2), true);
        tracked.vanished("1");
        tracked.vanished("unknown");
        assert_eq!(names(&tracked), [("a".into(), true, false), ("b".into(), true, false)]);
    }

    #[test]
    fn how_long_no_node_could_take_a_pod_is_counted_from_the_first_word_of_it() {
        let tracked = Tracked::new(&handle("batch/v1", "Job"), ServerClock::default(), false);
        let says = |reasons: &str| {
            let message = format!("0/1 nodes are available: {reasons}.");
            let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message});
            let mut value = serde_json::to_value(pod("a", "1", 1)).unwrap();
            value["status"] = json!({"conditions": [condition]});
            tracked.pod(serde_json::from_value(value).unwrap(), false);
            tracked.observed().hopeless.get("1").copied()
        };
        let first = says("1 node(s) didn't match Pod's node affinity/selector");
        assert!(first.is_some());
        assert_eq!(says("1 node(s) had untolerated taint {team: a}"), first);
        assert_eq!(says("1 Insufficient cpu"), None, "another pod may go");
    }

    /// Objects of an earlier job with the same identifier, which the watch reports late.
    #[test]
    fn a_predecessor_and_its_pods_are_not_the_job() {
        let mut tracked = Tracked::new(&handle("batch/v1", "Job"), ServerClock::default(), false);
        let job = |uid: &str| LiveObject::from(json!({"kind": "Job", "metadata": {"name": "rfm-x", "uid": uid}}));
        let owned = |name: &str, uid: &str, owner: &str| {
            let mut pod = serde_json::to_value(pod(name, uid, 1)).unwrap();
            pod["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "rfm-x", "uid": owner}]);
            serde_json::from_value::<Pod>(pod).unwrap()
        };
        tracked.uid = None;
        tracked.workload(job("old"), false);
        tracked.pod(owned("a", "1", "old"), false);
        tracked.pod(owned("b", "2", "w"), false);
        tracked.launched(&handle("batch/v1", "Job"));
        assert!(matches!(tracked.observed().workload, Seen::NotYet));
        tracked.workload(job("w"), false);
        tracked.workload(job("old"), true);
        tracked.pod(owned("a", "1", "old"), true);
        assert!(matches!(tracked.observed().workload, Seen::Present(_)));
        assert_eq!(names(&tracked), [("b".into(), false, false)]);
    }

    #[test]
    fn a_pod_is_its_own_workload() {
        let tracked = Tracked::new(&handle("v1", "Pod"), ServerClock::default(), false);
        assert!(matches!(tracked.observed().workload, Seen::NotYet));
        tracked.pod(pod("rfm-x", "w", 1), false);
        assert!(matches!(tracked.observed().workload, Seen::Present(_)));
        tracked.vanished("w");
        assert!(matches!(tracked.observed().workload, Seen::Gone(_)));
    }

    #[test]
    fn what_muster_deletes_is_distinguished_from_what_others_delete() {
        let mut tracked = Tracked::new(&handle("batch/v1", "Job"), ServerClock::default(), false);
        tracked.pod(pod("a", "1", 1), true);
        tracked.pod(pod("b", "2", 2), false);
        tracked.deleted_by_us();
        tracked.vanished("2");
        assert_eq!(names(&tracked), [("a".into(), true, false), ("b".into(), true, true)]);
    }

    #[test]
    fn a_job_that_was_taken_over_and_is_not_listed_is_gone() {
        let mut adopted = Tracked::new(&handle("batch/v1", "Job"), ServerClock::default(), true);
        let mut fresh = Tracked::new(&handle("batch/v1", "Job"), ServerClock::default(), false);
        adopted.listed();
        fresh.listed();
        assert!(matches!(adopted.observed().workload, Seen::Gone(_)));
        assert!(matches!(fresh.observed().workload, Seen::NotYet));
    }

    #[tokio::test(start_paused = true)]
    async fn trouble_that_stays_the_same_is_asked_for_less_often() {
        let mut tracked = Tracked::new(&handle("batch/v1", "Job"), ServerClock::default(), false);
        let (mut pauses, mut ration) = (Vec::new(), Instant::now());
        for _ in 0..6 {
            assert_eq!(tracked.trouble_turn(Instant::now(), &mut ration), None);
            tracked.trouble(Trouble::default());
            let due = tracked.trouble_turn(Instant::now(), &mut ration).unwrap();
            pauses.push((due - Instant::now()).as_secs());
            tokio::time::sleep_until(due).await;
        }
        assert_eq!(pauses, [20, 40, 80, 160, 300, 300]);
        let mut other = tracked;
        assert_eq!(other.trouble_turn(Instant::now(), &mut ration), None);
        other.trouble_due = Instant::now();
        assert_eq!(other.trouble_turn(Instant::now(), &mut ration), Some(ration), "another had its turn just now");
    }
}

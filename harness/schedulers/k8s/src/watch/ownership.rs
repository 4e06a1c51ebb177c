//! Decides the owner of a pod, as far as the pod says it. Owners that it leaves open are asked for once each (`owners`). No I/O.

use crate::job::{Handle, Object, SeenPod, replaced_pods::controller};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::OwnerReference};
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// What may own the pods of a job.
pub(super) struct Ownership {
    /// Uids of everything that its manifest has created.
    own: BTreeSet<String>,
    /// The kinds that may own its pods; `None`: any, or none.
    kinds: Option<BTreeSet<String>>,
    /// Uids of owners that are asked for, or were.
    asked: Mutex<BTreeSet<String>>,
    /// Those of them that are another's.
    disowned: Mutex<BTreeSet<String>>,
}

impl Ownership {
    pub(super) fn of(handle: &Handle) -> Self {
        Self { own: uids(handle), kinds: kinds(handle), asked: Mutex::default(), disowned: Mutex::default() }
    }

    /// All objects of the manifest were created.
    pub(super) fn launched(&mut self, handle: &Handle) {
        self.own = uids(handle);
    }

    /// The kinds of the owners of its pods are known.
    pub(super) fn is_known(&self) -> bool {
        self.kinds.is_some()
    }

    /// Whether a pod belongs to something else. `pods`: those of the job.
    pub(super) fn denies(&self, pod: &Pod, pods: &[SeenPod]) -> bool {
        if pod.metadata.uid.as_ref().is_some_and(|uid| self.own.contains(uid)) {
            return false;
        }
        match controller(pod) {
            None => self.kinds.is_some(),
            Some(owner) if self.has(&owner.uid, pods) => false,
            Some(owner) => {
                self.disowned.lock().contains(&owner.uid)
                    || self.kinds.as_ref().is_some_and(|kinds| !kinds.contains(&kind_of(owner)))
            }
        }
    }

    /// Whether it is of the manifest, or a pod of the job.
    fn has(&self, uid: &str, pods: &[SeenPod]) -> bool {
        self.own.contains(uid) || pods.iter().any(|seen| seen.pod.metadata.uid.as_deref() == Some(uid))
    }

    /// The objects of which one has to own a pod, if its owner is not known yet.
    pub(super) fn to_prove(&self, pod: &Pod, pods: &[SeenPod]) -> Option<BTreeSet<String>> {
        let owner = controller(pod).filter(|owner| self.kinds.is_some() && !self.has(&owner.uid, pods))?;
        self.asked.lock().insert(owner.uid.clone()).then(|| self.own.clone())
    }

    /// There was no answer: it is asked again with the next change of one of its pods.
    pub(super) fn ask_again(&self, owner: &str) {
        self.asked.lock().remove(owner);
    }

    /// This owner is another's.
    pub(super) fn disown(&self, owner: &str) {
        self.disowned.lock().insert(owner.to_owned());
    }
}

/// Of the objects that were created, as far as the server has answered.
fn uids(handle: &Handle) -> BTreeSet<String> {
    handle.objects.iter().filter_map(|object| object.uid.clone()).filter(|uid| !uid.is_empty()).collect()
}

/// What the rules say, and what helpers of the manifest create for their pods.
fn kinds(handle: &Handle) -> Option<BTreeSet<String>> {
    let between = |object: &Object| match object.resource.kind.as_str() {
        "Deployment" => Some("ReplicaSet.apps".to_owned()),
        "CronJob" => Some("Job.batch".to_owned()),
        _ => None,
    };
    let is_pod = handle.workload().is_some_and(|object| object.resource.is_pod());
    let own = if is_pod { Some(&[][..]) } else { handle.rules.pods.owners.as_deref() };
    own.map(|own| own.iter().cloned().chain(handle.objects.iter().filter_map(between)).collect())
}

/// `Job.batch`, whatever its version; `Pod`.
fn kind_of(owner: &OwnerReference) -> String {
    owner.api_version.split_once('/').map_or_else(|| owner.kind.clone(), |(group, _)| format!("{}.{group}", owner.kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::{Resource, ServerClock},
        status::testing::{handle, pod},
        watch::job::Tracked,
    };

    fn handle_of(api_version: &str, kind: &str) -> Handle {
        let mut handle = handle(kind);
        handle.objects[0].resource = Resource::of(api_version, kind);
        handle.objects[0].uid = Some("w".into());
        handle
    }

    #[test]
    fn the_owner_says_whose_a_pod_is() {
        type Owner = Option<(&'static str, &'static str, &'static str)>;
        type Row = ((&'static str, &'static str), Option<&'static [&'static str]>, Owner, bool);
        let (job, between) = (("batch/v1", "Job"), ("jobset.x-k8s.io/v1alpha2", "JobSet"));
        let rows: [Row; 9] = [
            (job, Some(&[]), Some(("batch/v1", "Job", "w")), true),
            (job, Some(&[]), Some(("batch/v1", "Job", "other")), false),
            (job, Some(&[]), None, false),
            (job, Some(&[]), Some(("apps/v1", "ReplicaSet", "r")), false),
            (between, Some(&["Job.batch"]), Some(("batch/v1", "Job", "child")), true),
            (between, Some(&["Job.batch"]), Some(("batch.volcano.sh/v1", "Job", "child")), false),
            (between, Some(&["Job.batch"]), None, false),
            (("example.org/v1", "Unknown"), None, None, true),
            (("v1", "Pod"), None, None, false),
        ];
        for ((api_version, kind), owners, owner, is_own) in rows {
            let mut handle = handle_of(api_version, kind);
            handle.rules.pods.owners = owners.map(|owners| owners.iter().map(|owner| (*owner).to_owned()).collect());
            let tracked = Tracked::new(&handle, ServerClock::default(), false);
            let mut pod = pod("{metadata: {name: a, uid: p}}");
            pod.metadata.owner_references = owner.map(|(api_version, kind, uid)| {
                vec![OwnerReference {
                    api_version: api_version.into(),
                    kind: kind.into(),
                    uid: uid.into(),
                    ..OwnerReference::default()
                }]
            });
            tracked.pod(pod, false);
            let seen = tracked.observed();
            assert_eq!((seen.pods.len(), seen.foreign.len()), (usize::from(is_own), usize::from(!is_own)), "{kind} {owner:?}");
        }
        let mut deployed = handle_of("batch/v1", "Job");
        deployed.objects.insert(0, Object { resource: Resource::of("apps/v1", "Deployment"), ..deployed.objects[0].clone() });
        deployed.rules.pods.owners = Some(Vec::new());
        assert!(kinds(&deployed).unwrap().contains("ReplicaSet.apps"), "its helper's pods");
    }

    #[test]
    fn the_pods_of_an_owner_that_turns_out_to_be_anothers_go() {
        let mut handle = handle_of("jobset.x-k8s.io/v1alpha2", "JobSet");
        handle.rules.pods.owners = Some(vec!["Job.batch".into()]);
        let tracked = Tracked::new(&handle, ServerClock::default(), false);
        let mut pod = pod("{metadata: {name: a, uid: p}}");
        let (api_version, kind) = ("batch/v1".to_owned(), "Job".to_owned());
        pod.metadata.owner_references =
            Some(vec![OwnerReference { api_version, kind, uid: "child".into(), ..OwnerReference::default() }]);
        assert!(tracked.to_prove(&pod).is_some_and(|roots| roots.contains("w")));
        assert_eq!(tracked.to_prove(&pod), None, "one question for each owner");
        tracked.pod(pod.clone(), false);
        tracked.disown("child");
        tracked.pod(pod, false);
        let seen = tracked.observed();
        assert_eq!((seen.pods.len(), seen.foreign.len()), (0, 1));
    }
}

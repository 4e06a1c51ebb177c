//! Objects for tests, written as YAML.

use crate::{
    api::{ClusterPlace, Resource},
    job::{Assessment, Handle, JobState, Object, Observed, Seen, SeenPod},
    kind::WorkloadRules,
};
use k8s_openapi::{api::core::v1::Pod, jiff};
use muster_core::job::scheduler::JobStatus;
use muster_text::{Value, time::Timestamp};
use std::sync::Arc;

/// Any object, as the server would show it.
pub(crate) fn yaml(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A pod; a spec without containers is completed.
pub(crate) fn pod(text: &str) -> Pod {
    let mut value = yaml(text);
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut)
        && !spec.contains_key("containers")
    {
        spec.insert("containers".into(), serde_json::json!([{"name": "main"}]));
    }
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A job `x` of one object of this kind.
pub(crate) fn handle(kind: &str) -> Handle {
    let api_version = match kind {
        "Pod" => "v1",
        "Job" => "batch/v1",
        "JobSet" => "jobset.x-k8s.io/v1alpha2",
        _ => "example.org/v1",
    };
    Handle {
        place: ClusterPlace { context: Some("eidf".into()), namespace: "ns".into() },
        objects: vec![Object { resource: Resource::of(api_version, kind), name: "x".into(), manifest: Value::Null, uid: None }],
        workload: 0,
        expected_pods: None,
        rules: WorkloadRules::default(),
        keep_seconds: 86_400,
        ..Handle::default()
    }
}

/// A job as observed, described in YAML. `@5` in it is five seconds after it was created.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) handle: Handle,
    pub(crate) observed: Observed,
    pub(crate) now: Timestamp,
}

const BASE: &str = "
kind: Pod
apiVersion: v1
metadata: {creationTimestamp: '@0', uid: u}
spec: {nodeName: n1, restartPolicy: Never, containers: [{name: main}]}
status: {startTime: '@1'}";

impl Scene {
    /// A workload of this kind, named `x`, that nothing is known of.
    pub(crate) fn of(kind: &str) -> Self {
        Self { handle: handle(kind), observed: Observed { since: at(0), ..Observed::default() }, now: at(5) }
    }

    /// A Pod `x` on n1, with this laid over it.
    pub(crate) fn own_pod(text: &str) -> Self {
        Self::of("Pod").pod("x", text)
    }

    /// A Job `x` with this laid over it.
    pub(crate) fn job(text: &str) -> Self {
        Self::of("Job").object(text)
    }

    pub(crate) fn object(mut self, text: &str) -> Self {
        let own = &self.handle.objects[0];
        let mut object = serde_json::json!({
            "apiVersion": own.resource.api_version(), "kind": own.resource.kind, "metadata": {"name": "x", "uid": "u"}, "spec": {},
        });
        lay_over(&mut object, timed(text));
        self.observed.workload = Seen::Present(object.into());
        self
    }

    /// The object vanishes, as it was last.
    pub(crate) fn object_gone(mut self) -> Self {
        if let Seen::Present(object) = self.observed.workload {
            self.observed.workload = Seen::Gone(object);
        }
        self
    }

    /// One more pod, on n1 unless it says otherwise.
    pub(crate) fn pod(mut self, name: &str, text: &str) -> Self {
        let mut object = timed(BASE);
        object["metadata"]["name"] = name.into();
        lay_over(&mut object, timed(text));
        let pod: Pod = serde_json::from_value(object).unwrap_or_else(|error| panic!("{error}\n{text}"));
        self.observed.trouble.ended_pods.extend(pod.metadata.uid.clone());
        self.observed.pods.push(SeenPod::new(Arc::new(pod)));
        self
    }

    /// The last pod vanishes.
    pub(crate) fn gone(mut self) -> Self {
        self.observed.pods.last_mut().unwrap().gone = true;
        self
    }

    /// The last pod was deleted by us.
    pub(crate) fn by_us(mut self) -> Self {
        self.observed.pods.last_mut().unwrap().deleted_by_us = true;
        self
    }

    /// An event of `KIND NAME`, newer than those before it.
    pub(crate) fn event(mut self, about: &str, reason: &str, message: &str) -> Self {
        let (kind, name) = about.split_once(' ').unwrap();
        let kind_of_event = if matches!(reason, "Pulling" | "Killing") { "Normal" } else { "Warning" };
        let event = serde_json::json!({
            "metadata": {}, "involvedObject": {"kind": kind, "name": name}, "reason": reason, "message": message,
            "type": kind_of_event, "count": 1, "firstTimestamp": time(3), "lastTimestamp": time(4),
            "source": {"component": "tester"},
        });
        self.observed.trouble.events.push(Arc::new(serde_json::from_value(event).unwrap()));
        self
    }

    pub(crate) fn kueue(mut self, conditions: &str) -> Self {
        let workload = timed(&format!("{{spec: {{active: true}}, status: {{conditions: [{conditions}]}}}}"));
        self.observed.trouble.kueue = Some(Arc::new(workload));
        self
    }

    pub(crate) fn expecting(mut self, pods: u32) -> Self {
        self.handle.expected_pods = Some(pods);
        self
    }

    pub(crate) fn rules(mut self, text: &str) -> Self {
        self.handle.rules = serde_json::from_value(yaml(text)).unwrap();
        self
    }

    pub(crate) fn at(mut self, seconds: i64) -> Self {
        self.now = at(seconds);
        self
    }

    pub(crate) fn assess(&self) -> Assessment {
        super::assess(&self.handle, &self.observed, self.now)
    }

    /// The names of the pods whose logs are judged.
    pub(crate) fn judged(&self) -> Vec<String> {
        match self.assess().state {
            JobState::Status(JobStatus::Ended(ending)) => {
                ending.pods.into_iter().filter(|pod| pod.judged).map(|pod| pod.name).collect()
            }
            state => panic!("it has not ended: {state:?}"),
        }
    }

    /// The assessment in words, one fact a line.
    pub(crate) fn says(&self) -> String {
        let Assessment { state, recheck_in, stuck } = self.assess();
        let mut lines = Vec::new();
        match state {
            JobState::Hopeless(why) => lines.push(format!("hopeless: {why}")),
            JobState::Broken(why) => lines.push(format!("broken: {why}")),
            JobState::Status(JobStatus::NotSeen) => lines.push("not seen".into()),
            JobState::Status(JobStatus::Pending { why }) => lines.push(format!("pending: {why}")),
            JobState::Status(JobStatus::Running { since, nodes, partly_ended, .. }) => {
                lines.push(format!("running since @{} on {nodes:?}", seconds(since)));
                lines.extend(partly_ended);
            }
            JobState::Status(JobStatus::Gone { why, cause }) => lines.push(format!("gone ({why:?}): {cause}")),
            JobState::Status(JobStatus::Ended(ending)) => {
                let exits = ending
                    .exits
                    .iter()
                    .map(|exit| format!("{}@{} {:?}", exit.section, exit.node.as_deref().unwrap_or("?"), exit.exit));
                let exits = exits.collect::<Vec<_>>().join(", ");
                lines.push(format!("ended @{}-@{}: {exits}", seconds(ending.started), seconds(ending.ended)));
                let superseded =
                    ending.superseded.iter().map(|exit| format!("{} {:?}", exit.section, exit.exit)).collect::<Vec<_>>();
                lines.extend(
                    ending.pods.iter().filter(|pod| pod.uid.starts_with("unseen")).map(|pod| format!("unread: {}", pod.name)),
                );
                lines.extend((!superseded.is_empty()).then(|| format!("superseded: {}", superseded.join(", "))));
                lines.extend(ending.disruption.map(|why| format!("disrupted: {why:?}")));
                lines.extend(ending.limit.map(|clock| format!("limit: {clock:?}")));
                lines.extend(ending.cause.map(|cause| format!("cause: {cause}")));
                lines.extend(ending.notes.iter().map(|note| format!("note: {note}")));
            }
        }
        if stuck {
            lines.push("stuck".into());
        }
        lines.extend(recheck_in.map(|after| format!("again in {after:?}")));
        lines.join("\n")
    }
}

const START: i64 = 1_767_261_600;

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp((START + seconds) * 1_000_000)
}

fn seconds(time: Timestamp) -> i64 {
    time.seconds() - START
}

fn time(seconds: i64) -> String {
    jiff::Timestamp::from_second(START + seconds).unwrap().to_string()
}

/// YAML with `'@5'` for times.
pub(crate) fn timed(text: &str) -> Value {
    let mut value = yaml(text);
    walk(&mut value);
    value
}

fn walk(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(after) = text.strip_prefix('@').and_then(|after| after.parse().ok()) {
                *text = time(after);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(walk),
        Value::Object(map) => map.values_mut().for_each(walk),
        _ => {}
    }
}

/// Maps merge, null removes, everything else replaces.
fn lay_over(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                if value.is_null() {
                    under.remove(&key);
                } else {
                    lay_over(under.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (under, over) => *under = over,
    }
}

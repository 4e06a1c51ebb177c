//! The Job controller, as far as tests need it: completions, parallelism, indexes, retries, suspension, conditions.

use super::{Deletion, World, now, quota::terminal, store::Key, uid};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{sync::mpsc, time::sleep};

/// How long a Job waits whose pods may not be created.
const RETRY: Duration = Duration::from_millis(300);

/// Looks at every Job that is named, until the world ends.
pub(crate) async fn control(world: Weak<World>, mut named: mpsc::UnboundedReceiver<Key>) {
    while let Some(key) = named.recv().await {
        let Some(world) = world.upgrade() else { return };
        // A Job that was named a thousand times meanwhile is looked at once.
        let mut keys = BTreeSet::from([key]);
        while let Ok(key) = named.try_recv() {
            keys.insert(key);
        }
        for key in keys {
            reconcile(&world, &key);
        }
    }
}

fn reconcile(world: &Arc<World>, key: &Key) {
    let (job, pods) = {
        let state = world.state();
        let Some(job) = state.store.get(key).cloned() else { return };
        let own = state.store.dependents(uid(&job)).into_iter().filter(|key| key.is("", "pods"));
        let pods: Vec<(Key, Arc<Value>)> =
            own.filter_map(|key| state.store.get(&key).map(|pod| (key.clone(), Arc::clone(pod)))).collect();
        (job, pods)
    };
    if !job["metadata"]["deletionTimestamp"].is_null() || ended(&job) {
        return;
    }
    let count = |phase: &str| pods.iter().filter(|(_, pod)| pod["status"]["phase"] == phase).count();
    let active: Vec<&(Key, Arc<Value>)> =
        pods.iter().filter(|(_, pod)| !terminal(pod) && pod["metadata"]["deletionTimestamp"].is_null()).collect();
    let (succeeded, failed) = (count("Succeeded"), count("Failed"));
    let spec = &job["spec"];
    let number = |field: &str, default: u64| usize::try_from(spec[field].as_u64().unwrap_or(default)).unwrap_or(usize::MAX);
    let parallelism = number("parallelism", 1);
    let completions = number("completions", spec["parallelism"].as_u64().unwrap_or(1));
    let too_many = failed > number("backoffLimit", 6);
    let suspended = spec["suspend"] == true;

    if suspended || too_many {
        for (key, _) in &active {
            let _ = world.delete(key, &Deletion::default());
        }
    }
    let mut blocked = false;
    let wanted = parallelism.min(completions.saturating_sub(succeeded)).saturating_sub(active.len());
    if !suspended && !too_many {
        for n in 0..wanted {
            let index = indexed(spec).then(|| free_index(&pods, n));
            if let Err(no) = world.create(&pod_key(key), pod(&job, index), false) {
                failed_create(world, key, &job, &no.message);
                blocked = true;
                break;
            }
        }
    }
    let done = succeeded >= completions;
    let ready = active.iter().filter(|(_, pod)| pod["status"]["phase"] == "Running").count();
    let _ = world.change(key, |job| {
        let status = &mut job["status"];
        status["active"] = json!(if done || too_many || suspended { 0 } else { active.len() + wanted });
        status["ready"] = json!(ready);
        status["succeeded"] = json!(succeeded);
        status["failed"] = json!(failed);
        if status["startTime"].is_null() && !suspended {
            status["startTime"] = json!(now());
        }
        if done {
            status["completionTime"] = json!(now());
            conditions(
                status,
                &["SuccessCriteriaMet", "Complete"],
                "CompletionsReached",
                "Reached expected number of succeeded pods",
            );
        } else if too_many {
            conditions(
                status,
                &["FailureTarget", "Failed"],
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            );
        } else if suspended && status["conditions"].is_null() {
            conditions(status, &["Suspended"], "JobSuspended", "Job suspended");
        }
        Ok(())
    });
    if blocked {
        let (jobs, key) = (world.jobs.clone(), key.clone());
        tokio::spawn(async move {
            sleep(RETRY).await;
            let _ = jobs.send(key);
        });
    }
}

fn ended(job: &Value) -> bool {
    let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .filter(|condition| condition["status"] == "True")
        .any(|condition| condition["type"] == "Complete" || condition["type"] == "Failed")
}

fn conditions(status: &mut Value, types: &[&str], reason: &str, message: &str) {
    let condition = |kind: &&str| json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now(), "lastProbeTime": now()});
    status["conditions"] = types.iter().map(condition).collect();
}

fn indexed(spec: &Value) -> bool {
    spec["completionMode"] == "Indexed"
}

/// The n-th index that no pod has which lives or succeeded.
fn free_index(pods: &[(Key, Arc<Value>)], n: usize) -> usize {
    let index = |pod: &Value| pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"].as_str()?.parse().ok();
    let taken: Vec<usize> =
        pods.iter().filter(|(_, pod)| pod["status"]["phase"] != "Failed").filter_map(|(_, pod)| index(pod)).collect();
    (0..).filter(|index| !taken.contains(index)).nth(n).unwrap_or(n)
}

fn pod_key(job: &Key) -> Key {
    Key { group: String::new(), plural: "pods".into(), namespace: job.namespace.clone(), name: String::new() }
}

fn pod(job: &Value, index: Option<usize>) -> Value {
    let (name, uid) = (job["metadata"]["name"].as_str().unwrap_or_default(), uid(job));
    let template = &job["spec"]["template"];
    let mut meta = template["metadata"].clone();
    if !meta.is_object() {
        meta = json!({});
    }
    let mut set = |part: &str, key: &str, value: &str| meta[part][key] = json!(value);
    for key in ["job-name", "batch.kubernetes.io/job-name"] {
        set("labels", key, name);
    }
    for key in ["controller-uid", "batch.kubernetes.io/controller-uid"] {
        set("labels", key, uid);
    }
    if let Some(index) = index {
        set("labels", "batch.kubernetes.io/job-completion-index", &index.to_string());
        set("annotations", "batch.kubernetes.io/job-completion-index", &index.to_string());
    }
    meta["generateName"] = json!(index.map_or_else(|| format!("{name}-"), |index| format!("{name}-{index}-")));
    meta["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid,
        "controller": true, "blockOwnerDeletion": true}]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]})
}

/// The only sign of a quota that a Job gives.
fn failed_create(world: &Arc<World>, key: &Key, job: &Value, why: &str) {
    let involved =
        json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": key.namespace, "name": key.name, "uid": uid(job)});
    let event = json!({"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "FailedCreate", "count": 1,
        "metadata": {"generateName": format!("{}.", key.name)}, "involvedObject": involved, "firstTimestamp": now(), "lastTimestamp": now(),
        "source": {"component": "job-controller"}, "message": format!("Error creating: {why}")});
    let events = Key { plural: "events".into(), ..pod_key(key) };
    let _ = world.create(&events, event, false);
}

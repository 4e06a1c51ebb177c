//! The life of a pod: what scheduler and kubelet would do with it, as its script says.
//!
//! ```text
//! Pending -node, PodScheduled-> Pending -run-> Running -exit-> Succeeded | Failed
//!    deletionTimestamp: containers end with 143, the object goes        activeDeadlineSeconds: Failed, DeadlineExceeded
//! ```

use super::{World, containers, now, script::Step, store::Key, uid};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::Notify, time::sleep};

const NODE: &str = "node-1";

struct Life {
    world: Arc<World>,
    key: Key,
    uid: String,
    poke: Arc<Notify>,
}

/// Why a life ends before its script.
enum Over {
    /// The pod is gone, or about to be.
    Deleted,
    Deadline,
}

pub(crate) async fn live(world: Arc<World>, key: Key, steps: Vec<Step>, poke: Arc<Notify>) {
    let Some(uid) = world.state().store.get(&key).map(|pod| uid(pod).to_owned()) else { return };
    let life = Life { world, key, uid, poke };
    let over = life.play(steps).await;
    match over {
        Ok(()) => {}
        Err(Over::Deadline) => {
            life.fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline", 137);
        }
        Err(Over::Deleted) => life.terminated(143, None, &all),
    }
    life.world.pod_is_over(&life.key, &life.uid);
}

fn all(_: &str) -> bool {
    true
}

impl Life {
    async fn play(&self, steps: Vec<Step>) -> Result<(), Over> {
        if !matches!(steps.first(), Some(Step::Unschedulable(_))) {
            self.scheduled();
        }
        for step in steps {
            match step {
                Step::Wait(length) => self.wait(Some(length)).await?,
                Step::Unschedulable(why) => self.condition("PodScheduled", "False", "Unschedulable", &why),
                Step::Waiting { reason, message } => self.waiting(&reason, &message),
                Step::Run => self.run(),
                Step::Log { container, text } => self.log(container.as_deref(), text.as_bytes()),
                Step::Lines { count, every } => self.lines(count, every).await?,
                Step::Exit { container, code, reason } => match container {
                    Some(container) => self.terminated(code, reason.as_deref(), &|name| name == container),
                    None => self.terminated(code, reason.as_deref(), &all),
                },
                Step::Restart(code) => self.restart(code),
                Step::Fail { reason, message } => self.fail(&reason, &message, 137),
                Step::Hang => self.wait(None).await?,
            }
            self.interrupted()?;
        }
        Ok(())
    }

    async fn lines(&self, count: u64, every: Duration) -> Result<(), Over> {
        for n in 1..=count {
            self.log(None, format!("line {n}\n").as_bytes());
            if !every.is_zero() {
                self.wait(Some(every)).await?;
            }
        }
        Ok(())
    }

    async fn wait(&self, length: Option<Duration>) -> Result<(), Over> {
        let end = length.map(|length| Instant::now() + length);
        loop {
            let deadline = self.interrupted()?;
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            let next = [left, deadline].into_iter().flatten().min().unwrap_or(Duration::from_hours(1));
            tokio::select! {
                () = sleep(next) => {}
                () = self.poke.notified() => {}
            }
        }
    }

    /// Did somebody end it? If not: how long until its deadline.
    fn interrupted(&self) -> Result<Option<Duration>, Over> {
        let state = self.world.state();
        let pod = state.store.get(&self.key).filter(|pod| uid(pod) == self.uid).ok_or(Over::Deleted)?;
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            return Err(Over::Deleted);
        }
        let started: Option<Timestamp> = pod["status"]["startTime"].as_str().and_then(|time| time.parse().ok());
        let Some((seconds, started)) = pod["spec"]["activeDeadlineSeconds"].as_i64().zip(started) else { return Ok(None) };
        let active = Timestamp::now().duration_since(started).as_secs_f64();
        let left = f64::from(i32::try_from(seconds).unwrap_or(i32::MAX)) - active;
        if left <= 0.0 { Err(Over::Deadline) } else { Ok(Some(Duration::from_secs_f64(left))) }
    }

    fn scheduled(&self) {
        self.change(|pod| {
            pod["spec"]["nodeName"] = json!(NODE);
            pod["status"]["startTime"] = json!(now());
            condition(pod, "PodScheduled", "True", "", "");
        });
    }

    fn condition(&self, kind: &str, status: &str, reason: &str, message: &str) {
        self.change(|pod| condition(pod, kind, status, reason, message));
    }

    fn waiting(&self, reason: &str, message: &str) {
        self.change(|pod| {
            each_status(pod, &all, |status| status["state"] = json!({"waiting": {"reason": reason, "message": message}}));
        });
    }

    fn run(&self) {
        if self.scheduled_late() {
            self.scheduled();
        }
        self.begin_logs(&all);
        self.change(|pod| {
            pod["status"]["phase"] = json!("Running");
            let init = init_containers(pod);
            each_status(pod, &all, |status| {
                let started = json!({"running": {"startedAt": now()}});
                let done = json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now(), "finishedAt": now()}});
                let over = status["name"].as_str().is_some_and(|name| init.iter().any(|init| init == name));
                status["state"] = if over { done } else { started };
                status["ready"] = json!(true);
                status["started"] = json!(true);
            });
            condition(pod, "Ready", "True", "", "");
        });
    }

    fn scheduled_late(&self) -> bool {
        self.world.state().store.get(&self.key).is_some_and(|pod| pod["spec"]["nodeName"].is_null())
    }

    fn begin_logs(&self, which: &dyn Fn(&str) -> bool) {
        let mut state = self.world.state();
        let Some(pod) = state.store.get(&self.key).map(Arc::clone) else { return };
        for container in containers(&pod).iter().filter(|name| which(name)) {
            state.logs.begin(&self.uid, container);
        }
        for container in init_containers(&pod) {
            if let Some(log) = state.logs.get(&self.uid, &container, false) {
                log.write(format!("{container} is done\n").as_bytes());
                log.end();
            }
        }
    }

    fn log(&self, container: Option<&str>, bytes: &[u8]) {
        let state = self.world.state();
        let first = || {
            let pod = state.store.get(&self.key)?;
            pod["spec"]["containers"][0]["name"].as_str().map(str::to_owned)
        };
        let Some(container) = container.map(str::to_owned).or_else(first) else { return };
        let log = state.logs.get(&self.uid, &container, false);
        drop(state);
        if let Some(log) = log {
            log.write(bytes);
        }
    }

    /// Containers end, and with the last of them the pod. Statuses first, logs then: as a real node, which sometimes does it so.
    fn terminated(&self, code: i64, reason: Option<&str>, which: &dyn Fn(&str) -> bool) {
        let mut ended = Vec::new();
        self.change(|pod| {
            let started = pod["status"]["phase"] == "Running";
            each_status(pod, which, |status| {
                if !started || !status["state"]["terminated"].is_null() {
                    return;
                }
                let reason = reason.unwrap_or(if code == 0 { "Completed" } else { "Error" });
                let started = status["state"]["running"]["startedAt"].clone();
                status["state"] =
                    json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now()}});
                status["ready"] = json!(false);
                ended.extend(status["name"].as_str().map(str::to_owned));
            });
            finish(pod);
        });
        self.end_logs(&ended);
    }

    fn end_logs(&self, containers: &[String]) {
        let state = self.world.state();
        for container in containers {
            if let Some(log) = state.logs.get(&self.uid, container, false) {
                log.end();
            }
        }
    }

    fn restart(&self, code: i64) {
        let Some(pod) = self.world.state().store.get(&self.key).map(Arc::clone) else { return };
        let init = init_containers(&pod);
        let main = |name: &str| !init.iter().any(|init| init == name);
        let names: Vec<String> = containers(&pod).into_iter().filter(|name| main(name)).collect();
        self.end_logs(&names);
        {
            let mut state = self.world.state();
            for name in &names {
                state.logs.begin(&self.uid, name);
            }
        }
        self.change(|pod| {
            each_status(pod, &main, |status| {
                let reason = if code == 0 { "Completed" } else { "Error" };
                let started = status["state"]["running"]["startedAt"].clone();
                status["lastState"] =
                    json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now()}});
                status["restartCount"] = json!(status["restartCount"].as_i64().unwrap_or(0) + 1);
                status["state"] = json!({"running": {"startedAt": now()}});
            });
        });
    }

    fn fail(&self, reason: &str, message: &str, code: i64) {
        self.terminated(code, None, &all);
        self.change(|pod| {
            pod["status"]["phase"] = json!("Failed");
            pod["status"]["reason"] = json!(reason);
            pod["status"]["message"] = json!(message);
        });
    }

    fn change(&self, change: impl FnOnce(&mut Value)) {
        let _ = self.world.change(&self.key, |pod| {
            if uid(pod) == self.uid {
                change(pod);
            }
            Ok(())
        });
    }
}

fn init_containers(pod: &Value) -> Vec<String> {
    let all = pod["spec"]["initContainers"].as_array().into_iter().flatten();
    all.filter(|container| container["restartPolicy"] != "Always")
        .filter_map(|container| container["name"].as_str().map(str::to_owned))
        .collect()
}

fn condition(pod: &mut Value, kind: &str, status: &str, reason: &str, message: &str) {
    let new = json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now()});
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    if let Some(conditions) = pod["status"]["conditions"].as_array_mut() {
        conditions.retain(|condition| condition["type"] != kind);
        conditions.push(new);
    }
}

/// Every container's status that is wanted; they are made when they are not there.
fn each_status(pod: &mut Value, which: &dyn Fn(&str) -> bool, mut change: impl FnMut(&mut Value)) {
    for (spec, field) in [("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")] {
        let names: Vec<Value> =
            pod["spec"][spec].as_array().into_iter().flatten().map(|container| container["name"].clone()).collect();
        if names.is_empty() {
            continue;
        }
        if !pod["status"][field].is_array() {
            let status = |name: &Value| {
                json!({"name": name, "restartCount": 0, "ready": false, "image": "fake", "imageID": "", "state": {"waiting": {"reason": "ContainerCreating"}},
                    "containerID": format!("containerd://{}-{}", uid(pod), name.as_str().unwrap_or_default())})
            };
            pod["status"][field] = names.iter().map(status).collect();
        }
        for status in pod["status"][field].as_array_mut().into_iter().flatten() {
            if status["name"].as_str().is_some_and(which) {
                change(status);
            }
        }
    }
}

/// The phase that follows from the main containers, once all have ended.
fn finish(pod: &mut Value) {
    let codes: Option<Vec<i64>> = pod["status"]["containerStatuses"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|status| status["state"]["terminated"]["exitCode"].as_i64())
        .collect();
    let Some(codes) = codes.filter(|codes| !codes.is_empty()) else { return };
    let phase = if codes.iter().all(|code| *code == 0) { "Succeeded" } else { "Failed" };
    pod["status"]["phase"] = json!(phase);
    condition(pod, "Ready", "False", "PodCompleted", "");
}

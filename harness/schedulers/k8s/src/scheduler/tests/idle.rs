//! Counts the requests of a session to a server while nothing happens: an hour of it, on the runtime's clock.

use crate::scheduler::*;
use crate::{
    api::Resource,
    client::testing::{self, Reply, Requests},
};
use futures_util::{StreamExt, future::join_all};
use muster_core::case::Identifier;
use serde_json::json;
use tokio::time::timeout;

const CASES: usize = 40;
const HOUR: Duration = Duration::from_hours(1);

fn identifier(number: usize) -> Identifier {
    let digit = |place: u32| u8::try_from(number / 26_usize.pow(place) % 26).unwrap();
    Identifier::from_letters([0, 1, 2, 3, 4, 5, 6, 7].map(digit))
}

fn pod(number: usize, phase: &str) -> Value {
    let labels = json!({"rfm": identifier(number).as_str(), "rfm-session": "s"});
    let state = if phase == "Running" { json!({"running": {}}) } else { json!({"waiting": {"reason": "ContainerCreating"}}) };
    let status = json!({"phase": phase, "startTime": "2026-01-01T00:00:00Z", "containerStatuses": [
        {"name": "main", "ready": false, "restartCount": 0, "image": "i", "imageID": "i", "state": state}]});
    json!({"metadata": {"name": format!("rfm-x-{number}"), "uid": format!("u{number}"), "labels": labels},
        "spec": {"nodeName": "n1", "containers": [{"name": "main"}]}, "status": status})
}

/// A pod that was launched long ago.
fn job(number: usize) -> Job {
    let handle = json!({"place": testing::place(), "workload": 0, "expected_pods": 1, "rules": {}, "keep_seconds": 60, "objects": [
        {"resource": Resource::of("v1", "Pod"), "name": format!("rfm-x-{number}"), "manifest": {}, "uid": format!("u{number}")}]});
    Job {
        identifier: identifier(number),
        session: SessionId("s".into()),
        case: "case".into(),
        scheduler: crate::SCHEDULER.own_name().into(),
        stage: "stage".into(),
        handle: handle.into(),
    }
}

/// A server on which all pods stay in this phase.
fn server(phase: &'static str) -> (Kubernetes, Requests) {
    let (cluster, requests) = testing::cluster(move |line, body| match line {
        line if line.contains("watch=true") || line.contains("follow=true") => Reply::events(&[], true),
        line if line.contains("/leases") => Reply::json(body),
        line if line.contains("labelSelector=rfm-session") => {
            Reply::list("1", &(0..CASES).map(|number| pod(number, phase)).collect::<Vec<_>>())
        }
        _ => Reply::list("1", &[]),
    });
    let kubernetes = Kubernetes::new(Contexts::default());
    kubernetes.clusters.lock().insert(testing::place(), Arc::new(OnceCell::new_with(Some(cluster))));
    (kubernetes, requests)
}

/// Waits for a job and reads its log, as the session does.
async fn follow(kubernetes: &Kubernetes, job: &Job) {
    let wait = async {
        let mut seen = None;
        loop {
            seen = Some(kubernetes.wait(job, seen.as_ref()).await.expect("it goes on"));
        }
    };
    let read = async {
        let mut chunks = kubernetes.collect_logs(job, LogMarks::default());
        while chunks.next().await.is_some() {}
    };
    tokio::join!(wait, read);
}

/// The requests of an hour, those that open a watch left out, after ten minutes of first requests.
async fn asked_in_an_idle_hour(phase: &'static str) -> Vec<String> {
    let (kubernetes, requests) = server(phase);
    let shared = kubernetes.shared(&testing::place(), &SessionId("s".into())).await.expect("a connection");
    shared.lease.hold();
    let jobs: Vec<Job> = (0..CASES).map(job).collect();
    let mut all = Box::pin(join_all(jobs.iter().map(|job| follow(&kubernetes, job))));
    assert!(timeout(Duration::from_mins(10), &mut all).await.is_err());
    let before = requests.full().len();
    assert!(timeout(HOUR, &mut all).await.is_err());
    let asked = requests.full().split_off(before);
    let renewals = asked.iter().filter(|line| line.contains("watch=true")).count();
    assert!((1..=21).contains(&renewals), "{renewals} renewals of one watch");
    asked.into_iter().filter(|line| !line.contains("watch=true")).collect()
}

#[tokio::test(start_paused = true)]
async fn an_idle_hour_of_running_cases_takes_less_than_a_request_a_minute() {
    let asked = asked_in_an_idle_hour("Running").await;
    assert!(asked.len() <= 60, "{}", asked.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn an_idle_hour_of_waiting_cases_takes_less_than_a_request_a_minute() {
    let asked = asked_in_an_idle_hour("Pending").await;
    let events = asked.iter().filter(|line| line.contains("/events")).count();
    assert!(events > 0, "no job asks why it waits");
    assert!(asked.len() <= 60, "{}", asked.join("\n"));
}

//! A machine whose clock is wrong.

use crate::scheduler::*;
use crate::{
    api::{Resource, clock},
    client::testing::{self, Reply},
};
use jiff::{Timestamp as Instant, fmt::rfc2822::DateTimePrinter};
use muster_core::case::Identifier;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_pod_has_run_as_long_as_the_server_says_though_our_clock_is_ten_minutes_off() {
    for ahead in [-600, 0, 600] {
        let of_server = |seconds: i64| Instant::from_microsecond(clock::now().0 + (ahead + seconds) * 1_000_000).unwrap();
        let date: &'static str = DateTimePrinter::new().timestamp_to_rfc9110_string(&of_server(0)).unwrap().leak();
        let state = json!({"running": {"startedAt": of_server(-20).to_string()}});
        let pod = json!({"metadata": {"name": "rfm-x", "uid": "u", "labels": {"rfm": "aaaaaaaa", "rfm-session": "s"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "main"}]},
            "status": {"phase": "Running", "containerStatuses": [
                {"name": "main", "ready": true, "restartCount": 0, "image": "i", "imageID": "i", "state": state}]}});
        let (cluster, _) = testing::cluster(move |line, _| match line {
            line if line.contains("watch=true") => Reply::events(&[], true),
            line if line.contains("/pods?") => Reply::list("1", std::slice::from_ref(&pod)).header("Date", date),
            _ => Reply::list("1", &[]),
        });
        let kubernetes = Kubernetes::new(Contexts::default());
        kubernetes.clusters.lock().insert(testing::place(), Arc::new(tokio::sync::OnceCell::new_with(Some(cluster))));
        let handle = json!({"place": testing::place(), "workload": 0, "expected_pods": 1, "rules": {}, "keep_seconds": 60, "objects": [
            {"resource": Resource::of("v1", "Pod"), "name": "rfm-x", "manifest": {}, "uid": "u"}]});
        let job = Job {
            identifier: Identifier::parse("aaaaaaaa").unwrap(),
            session: SessionId("s".into()),
            case: "case".into(),
            scheduler: crate::SCHEDULER.own_name().into(),
            stage: "stage".into(),
            handle: handle.into(),
        };
        let mut seen = None;
        let since = loop {
            let status = kubernetes.wait(&job, seen.as_ref()).await.unwrap();
            if let JobStatus::Running { since, .. } = status {
                break since;
            }
            seen = Some(status);
        };
        let ran = clock::now().since(since).as_secs();
        assert!((15..=25).contains(&ran), "{ahead}: {ran} s");
    }
}

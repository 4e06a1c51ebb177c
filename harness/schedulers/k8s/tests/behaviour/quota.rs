//! A quota for one pod, and three cases.

use crate::test_cluster::{TestCluster, is_over, pod};
use muster_core::job::scheduler::{Job, Launch, Scheduler};
use serde_json::{Value, json};
use std::sync::Mutex;

fn wants_a_cpu() -> Value {
    let mut manifest = pod("", "run 400ms; exit 0");
    manifest["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    manifest
}

pub(crate) async fn cases_that_wait_for_quota_get_it_in_turn(cluster: TestCluster) {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "compute"},
        "spec": {"hard": {"requests.cpu": "1"}}});
    cluster.fake().create("default", quota).expect("a quota");
    let first = cluster.launch(&cluster.plan(wants_a_cpu())).await;
    let jobs: Vec<Job> = (0..2).map(|_| cluster.plan(wants_a_cpu())).collect();
    for job in &jobs {
        let refused = cluster.scheduler.launch(job).await.expect("an answer");
        assert!(matches!(refused, Launch::NotNow { .. }), "{refused:?}");
    }
    let started = Mutex::new(Vec::new());
    let one = async |number: usize| {
        let job = cluster.launch(&jobs[number]).await;
        started.lock().expect("no panic").push(number);
        cluster.wait_for(&job, is_over).await;
        cluster.delete(&job).await;
    };
    let free = async {
        cluster.wait_for(&first, is_over).await;
        cluster.delete(&first).await;
    };
    // The later one asks first, and still waits.
    tokio::join!(one(1), one(0), free);
    assert_eq!(*started.lock().expect("no panic"), [0, 1]);
}

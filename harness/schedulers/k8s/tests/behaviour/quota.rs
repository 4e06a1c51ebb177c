//! Room for one, wanted by three.

use crate::ground::{Ground, is_over, pod};
use muster_core::job::scheduler::{Job, Launch, Scheduler};
use serde_json::{Value, json};
use std::sync::Mutex;

fn wants_a_cpu() -> Value {
    let mut manifest = pod("", "run 400ms; exit 0");
    manifest["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    manifest
}

pub(crate) async fn who_waits_for_quota_gets_it_in_turn(ground: Ground) {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "compute"},
        "spec": {"hard": {"requests.cpu": "1"}}});
    ground.fake().create("default", quota).expect("a quota");
    let first = ground.launch(&ground.plan(wants_a_cpu())).await;
    let jobs: Vec<Job> = (0..2).map(|_| ground.plan(wants_a_cpu())).collect();
    for job in &jobs {
        let refused = ground.scheduler.launch(job).await.expect("an answer");
        assert!(matches!(refused, Launch::NotNow { .. }), "{refused:?}");
    }
    let began = Mutex::new(Vec::new());
    let one = async |number: usize| {
        let job = ground.launch(&jobs[number]).await;
        began.lock().expect("no panic").push(number);
        ground.wait_for(&job, is_over).await;
        ground.delete(&job).await;
    };
    let free = async {
        ground.wait_for(&first, is_over).await;
        ground.delete(&first).await;
    };
    // The later one asks first, and still waits.
    tokio::join!(one(1), one(0), free);
    assert_eq!(*began.lock().expect("no panic"), [0, 1]);
}

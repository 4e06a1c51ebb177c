//! When the API server refuses what it granted before, or one object of one case.

use crate::{
    broken::{assert_whole, live_beside},
    ground::{Ground, is_over, is_running, job, pod},
};
use futures_util::future::join_all;
use muster_core::{
    error::{Class, chain},
    job::scheduler::{Exit, Job, JobStatus, Launch, Scheduler},
};
use muster_fake_api::Fault;
use serde_json::json;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// What a server says whose caches are not full yet.
const REFUSALS: [(u16, &str, &str); 3] = [
    (401, "Unauthorized", "Unauthorized"),
    (403, "Forbidden", r#"pods is forbidden: User "u" cannot watch resource "pods" in API group "" in the namespace "default""#),
    (404, "NotFound", "404 page not found"),
];

pub(crate) async fn a_refusal_that_passes_ends_no_running_case(ground: Ground) {
    for (code, reason, message) in REFUSALS {
        let lived = live_beside(&ground, async |_| {
            for part in ["watch=true", "/log"] {
                ground.fake().fault(Fault::status("GET", part, code, reason, message).times(2));
            }
            ground.fake().cut("watch=true");
            ground.fake().cut("/log");
        })
        .await;
        assert_whole(&lived);
        ground.delete(&lived.job).await;
    }
}

pub(crate) async fn launches_wait_for_one_on_trial_while_they_are_refused(ground: Ground) {
    let first = ground.launch(&ground.plan(pod("", "run; exit 0"))).await;
    ground.wait_for(&first, is_over).await;
    ground.fake().deny("create", "pods");
    let jobs: Vec<Job> = (0..20).map(|_| ground.plan(pod("", "run; exit 0"))).collect();
    let Launch::NotNow { why, .. } = ground.scheduler.launch(&jobs[0]).await.expect("it waits") else {
        panic!("it was launched")
    };
    assert!(why.contains(r#"cannot create resource "pods""#), "{why}");
    let before = ground.asked("POST", "/pods");
    let restored = async {
        sleep(Duration::from_millis(2500)).await;
        assert!(ground.asked("POST", "/pods") - before <= 1, "{} tries", ground.asked("POST", "/pods") - before);
        ground.fake().allow_all();
    };
    let (launched, ()) = tokio::join!(join_all(jobs.iter().map(|job| ground.launch(job))), restored);
    for job in &launched {
        let status = ground.wait_for(job, is_over).await;
        assert!(matches!(&status, JobStatus::Ended(ending) if ending.exits[0].exit == Exit::Code(0)), "{status:?}");
    }
    assert!(ground.asked("POST", "/pods") - before <= jobs.len() + 2);
}

pub(crate) async fn what_was_never_granted_is_refused_at_once(ground: Ground) {
    ground.fake().deny("create", "pods");
    let error = ground.scheduler.launch(&ground.plan(pod("", "run; exit 0"))).await.expect_err("a refusal");
    assert_eq!((error.class, error.made_nothing), (Class::Config, true), "{}", chain(&error));
    assert_eq!(ground.asked("POST", "/pods"), 1);
    // A right that another kind has proves nothing.
    ground.fake().allow_all();
    ground.launch(&ground.plan(pod("", "run; exit 0"))).await;
    ground.fake().deny("create", "jobs");
    let error = ground.scheduler.launch(&ground.plan(job(1, "", "run; exit 0"))).await.expect_err("a refusal");
    assert_eq!(error.class, Class::Config, "{}", chain(&error));
}

pub(crate) async fn a_selector_that_is_none_ends_its_own_case_alone(ground: Ground) {
    ground.fake().register("example.org", "v1", "Thing", "things");
    let wrong = "unable to parse requirement: <nil>: Invalid value: \"a b\"";
    ground.fake().fault(Fault::status("GET", "labelSelector=a%20b", 400, "BadRequest", wrong).times(1000));
    let other = ground.launch(&ground.plan(pod("", "run; hang"))).await;
    let manifest = json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "behaviour"}, "spec": {}});
    let rule = json!({"match": {"group": "example.org", "kind": "Thing"}, "succeeded": "false", "pods": {"selector": "a b"}});
    let thing = ground.launch(&ground.plan_with(manifest, &json!({"k8s_workloads": [rule]}))).await;
    let error = timeout(Duration::from_secs(20), async {
        let mut seen = None;
        loop {
            match ground.scheduler.wait(&thing, seen.as_ref()).await {
                Ok(status) => seen = Some(status),
                Err(error) => return error,
            }
        }
    });
    let error = error.await.expect("it ends");
    assert_eq!(error.class, Class::Config);
    assert!(chain(&error).contains("`pods.selector: a b`"), "{}", chain(&error));
    let status = ground.wait_for(&other, is_running).await;
    assert!(timeout(Duration::from_secs(1), ground.scheduler.wait(&other, Some(&status))).await.is_err(), "it runs on");
    ground.delete(&thing).await;
    ground.delete(&other).await;
}

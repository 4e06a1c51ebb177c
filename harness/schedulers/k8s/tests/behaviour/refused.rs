//! When the API server refuses what it granted before, or one object of one case.

use crate::{
    broken::{assert_whole, live_beside},
    test_cluster::{TestCluster, is_over, is_running, job, pod},
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

pub(crate) async fn a_refusal_that_passes_ends_no_running_case(cluster: TestCluster) {
    for (code, reason, message) in REFUSALS {
        let lived = live_beside(&cluster, async |_| {
            for part in ["watch=true", "/log"] {
                cluster.fake().fault(Fault::status("GET", part, code, reason, message).times(2));
            }
            cluster.fake().cut("watch=true");
            cluster.fake().cut("/log");
        })
        .await;
        assert_whole(&lived);
        cluster.delete(&lived.job).await;
    }
}

pub(crate) async fn launches_wait_for_one_on_trial_while_they_are_refused(cluster: TestCluster) {
    let first = cluster.launch(&cluster.plan(pod("", "run; exit 0"))).await;
    cluster.wait_for(&first, is_over).await;
    cluster.fake().deny("create", "pods");
    let jobs: Vec<Job> = (0..20).map(|_| cluster.plan(pod("", "run; exit 0"))).collect();
    let Launch::NotNow { why, .. } = cluster.scheduler.launch(&jobs[0]).await.expect("it waits") else {
        panic!("it was launched")
    };
    assert!(why.contains(r#"cannot create resource "pods""#), "{why}");
    let before = cluster.asked("POST", "/pods");
    let restored = async {
        sleep(Duration::from_millis(2500)).await;
        assert!(cluster.asked("POST", "/pods") - before <= 1, "{} tries", cluster.asked("POST", "/pods") - before);
        cluster.fake().allow_all();
    };
    let (launched, ()) = tokio::join!(join_all(jobs.iter().map(|job| cluster.launch(job))), restored);
    for job in &launched {
        let status = cluster.wait_for(job, is_over).await;
        assert!(matches!(&status, JobStatus::Ended(ending) if ending.exits[0].exit == Exit::Code(0)), "{status:?}");
    }
    assert!(cluster.asked("POST", "/pods") - before <= jobs.len() + 2);
}

pub(crate) async fn what_was_never_granted_is_refused_at_once(cluster: TestCluster) {
    cluster.fake().deny("create", "pods");
    let error = cluster.scheduler.launch(&cluster.plan(pod("", "run; exit 0"))).await.expect_err("a refusal");
    assert_eq!((error.class, error.nothing_created), (Class::Config, true), "{}", chain(&error));
    assert_eq!(cluster.asked("POST", "/pods"), 1);
    // A right that another kind has proves nothing.
    cluster.fake().allow_all();
    cluster.launch(&cluster.plan(pod("", "run; exit 0"))).await;
    cluster.fake().deny("create", "jobs");
    let error = cluster.scheduler.launch(&cluster.plan(job(1, "", "run; exit 0"))).await.expect_err("a refusal");
    assert_eq!(error.class, Class::Config, "{}", chain(&error));
}

pub(crate) async fn credentials_that_are_not_accepted_have_created_nothing(cluster: TestCluster) {
    // Of every request: credentials that were accepted once may be so again, and the launch waits.
    for method in ["GET", "POST", "PATCH", "PUT"] {
        cluster.fake().fault(Fault::status(method, "/", 401, "Unauthorized", "Unauthorized").times(1000));
    }
    let error = cluster.scheduler.launch(&cluster.plan(pod("", "run; exit 0"))).await.expect_err("a refusal");
    assert_eq!((error.class, error.nothing_created), (Class::Config, true), "{}", chain(&error));
}

pub(crate) async fn a_selector_that_is_none_ends_its_own_case_alone(cluster: TestCluster) {
    cluster.fake().register("example.org", "v1", "Thing", "things");
    let wrong = "unable to parse requirement: <nil>: Invalid value: \"a b\"";
    cluster.fake().fault(Fault::status("GET", "labelSelector=a%20b", 400, "BadRequest", wrong).times(1000));
    let other = cluster.launch(&cluster.plan(pod("", "run; hang"))).await;
    let manifest = json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "behaviour"}, "spec": {}});
    let rule = json!({"match": {"group": "example.org", "kind": "Thing"}, "succeeded": "false", "pods": {"selector": "a b"}});
    let thing = cluster.launch(&cluster.plan_with(manifest, &json!({"k8s_workloads": [rule]}))).await;
    let error = timeout(Duration::from_secs(20), async {
        let mut seen = None;
        loop {
            match cluster.scheduler.wait(&thing, seen.as_ref()).await {
                Ok(status) => seen = Some(status),
                Err(error) => return error,
            }
        }
    });
    let error = error.await.expect("it ends");
    assert_eq!(error.class, Class::Config);
    assert!(chain(&error).contains("`pods.selector: a b`"), "{}", chain(&error));
    let status = cluster.wait_for(&other, is_running).await;
    assert!(timeout(Duration::from_secs(1), cluster.scheduler.wait(&other, Some(&status))).await.is_err(), "it runs on");
    cluster.delete(&thing).await;
    cluster.delete(&other).await;
}

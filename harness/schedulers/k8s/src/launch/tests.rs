//! Launches against a server that answers as it is told.

use super::*;
use crate::api::{NAME, Resource};
use crate::{
    client::testing::{self, Reply, Requests},
    job::Seen,
    kind::WorkloadRules,
};
use muster_core::{
    case::{Identifier, SessionId},
    error::chain,
};
use serde_json::json;
use std::sync::Arc;

const FULL: &str =
    "pods \"x\" is forbidden: exceeded quota: compute, requested: requests.cpu=2, used: requests.cpu=3, limited: requests.cpu=4";

fn object(api_version: &str, kind: &str, name: &str, spec: &Value) -> Object {
    let labels = json!({"rfm": "abcdefgh"});
    let manifest = json!({"kind": kind, "metadata": {"name": name, "labels": labels}, "spec": spec});
    Object { resource: Resource::of(api_version, kind), name: name.into(), manifest, uid: None }
}

fn pod() -> Object {
    object("v1", "Pod", "rfm-x", &containers())
}

fn containers() -> Value {
    json!({"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]})
}

fn config() -> Object {
    object("v1", "ConfigMap", "rfm-c", &json!({}))
}

fn gang(replicas: u32) -> Object {
    let template = json!({"metadata": {"labels": {"rfm": "abcdefgh"}}, "spec": containers()});
    object("kubeflow.org/v2beta1", "MPIJob", "rfm-x", &json!({"replicas": replicas, "template": template}))
}

fn job(letter: char) -> Job {
    Job {
        identifier: Identifier::parse(&letter.to_string().repeat(8)).unwrap(),
        session: SessionId("s".into()),
        case: format!("case {letter}"),
        scheduler: NAME.into(),
        stage: "stage".into(),
        handle: JobHandle::default(),
    }
}

fn ours() -> Job {
    Job { identifier: Identifier::parse("abcdefgh").unwrap(), ..job('a') }
}

fn handle(objects: Vec<Object>) -> Handle {
    let (workload, rules) = (objects.len() - 1, WorkloadRules::default());
    Handle { place: testing::place(), objects, workload, expected_pods: None, rules, keep_seconds: 0, ..Handle::default() }
}

/// A shared whose server answers the watches, the Lease and the kinds itself, and everything else with `answer`.
fn shared(mut answer: impl FnMut(&str) -> Reply + Send + 'static) -> (SharedState, Requests) {
    let (cluster, requests) = testing::cluster(move |line, _| match line {
        line if line.contains("watch=true") => Reply::events(&[], true),
        line if line.contains("leases") => Reply::json(&json!({})),
        "GET /apis/kubeflow.org/v2beta1" => {
            Reply::json(&json!({"resources": [{"name": "mpijobs", "kind": "MPIJob", "namespaced": true}]}))
        }
        "GET /apis/jobset.x-k8s.io/v1alpha2" => {
            Reply::json(&json!({"resources": [{"name": "jobsets", "kind": "JobSet", "namespaced": true}]}))
        }
        line if line.contains("labelSelector=rfm-session") => Reply::list("1", &[]),
        line => answer(line),
    });
    (SharedState::new(cluster, &SessionId("s".into()), muster_core::decisions::liveness::HeartbeatTiming::default()), requests)
}

fn there(label: &str, session: &str) -> Reply {
    let labels = json!({"rfm": label, "rfm-session": session});
    Reply::json(&json!({"metadata": {"name": "rfm-x", "uid": "u-1", "labels": labels}}))
}

/// What was asked beside watches and Leases.
fn asked(requests: &Requests) -> Vec<String> {
    let lines = requests.full();
    let shared =
        |line: &String| line.contains("leases") || line.contains("rfm-session") || line.contains("/apis/kubeflow.org/v2beta1");
    lines
        .into_iter()
        .filter(|line| !shared(line) || line.starts_with("POST /api/v1"))
        .map(|line| line.replace("/api/v1/namespaces/n/", ""))
        .collect()
}

fn uids(launched: &Launch) -> Vec<Option<String>> {
    let Launch::Launched(job) = launched else { return Vec::new() };
    Handle::of(job).unwrap().objects.iter().map(|object| object.uid.clone()).collect()
}

#[tokio::test]
async fn helpers_come_first_and_every_uid_is_kept() {
    let (shared, requests) = shared(|line| match line {
        line if line.starts_with("GET") => Reply::list("1", &[]),
        line if line.contains("configmaps") => Reply::json(&json!({"metadata": {"uid": "u-c"}})),
        _ => Reply::json(&json!({"metadata": {"uid": "u-p"}})),
    });
    let launched = launch(&shared, &ours(), handle(vec![config(), pod()])).await.unwrap();
    assert_eq!(uids(&launched), [Some("u-c".into()), Some("u-p".into())]);
    let expected = ["GET resourcequotas?limit=500", "POST configmaps?fieldValidation=Warn", "POST pods?fieldValidation=Warn"];
    assert_eq!(asked(&requests), expected);
}

#[tokio::test]
async fn what_a_secret_holds_is_sent_and_is_not_in_what_is_stored_of_the_launch() {
    let secret = || {
        let mut secret = object("v1", "Secret", "rfm-s", &json!({}));
        secret.manifest["stringData"] = json!({"token": "hunter2"});
        secret.manifest["data"] = json!({"key": "aHVudGVyMg=="});
        secret
    };
    let (first, requests) = shared(|line| match line {
        line if line.starts_with("GET") => Reply::list("1", &[]),
        _ => Reply::json(&json!({"metadata": {"uid": "u"}})),
    });
    let created = launch(&first, &ours(), handle(vec![secret(), pod()])).await.unwrap();
    assert_eq!(asked(&requests)[1..], ["POST secrets?fieldValidation=Warn", "POST pods?fieldValidation=Warn"]);
    // One that an earlier launch has created without an answer.
    let (again, _) = shared(|line| match line {
        line if line.starts_with("GET") => there("abcdefgh", "s"),
        _ => Reply::refusal(403, "Forbidden", FULL),
    });
    again.set_unanswered(&ours().identifier, true);
    let found = launch(&again, &ours(), handle(vec![secret(), pod()])).await.unwrap();
    for launched in [created, found] {
        let Launch::Launched(job) = launched else { panic!("{launched:?}") };
        let stored = &Handle::of(&job).unwrap().objects[0];
        assert_eq!(
            (&stored.manifest["stringData"], &stored.manifest["data"]),
            (&json!({"token": "***"}), &json!({"key": "***"}))
        );
        assert!(stored.uid.is_some() && stored.manifest["metadata"]["name"] == "rfm-s", "{stored:?}");
    }
}

#[tokio::test]
async fn what_a_lost_answer_created_is_found_again_and_what_is_anothers_is_not_taken() {
    let exists = || Reply::refusal(409, "AlreadyExists", "pods \"rfm-x\" already exists");
    let answer = |label: &'static str, session: &'static str| {
        move |line: &str| if line.starts_with("POST") { exists() } else { there(label, session) }
    };
    let (mine, _) = shared(answer("abcdefgh", "s"));
    assert_eq!(uids(&launch(&mine, &ours(), handle(vec![pod()])).await.unwrap()), [Some("u-1".into())]);
    // One whose identifier is ours by chance, and one that only has the name.
    let mut said = Vec::new();
    for (label, session) in [("abcdefgh", "another"), ("zzzzzzzz", "s")] {
        let (anothers, requests) = shared(answer(label, session));
        let answer = launch(&anothers, &ours(), handle(vec![pod()])).await.unwrap();
        let Launch::Taken { by } = answer else { panic!("{answer:?}") };
        said.push(by);
        assert_eq!(asked(&requests), ["POST pods?fieldValidation=Warn", "GET pods/rfm-x"], "it is left alone");
    }
    assert_eq!(said[0], said[1]);
    insta::assert_snapshot!(said[0], @"pod rfm-x in namespace n");
}

/// The quota is full because of the very pod that was created.
#[tokio::test]
async fn what_may_have_been_created_is_looked_for_before_a_quota_can_refuse_it() {
    let (shared, requests) = shared(|line| match line {
        "GET /api/v1/namespaces/n/pods/rfm-x" => there("abcdefgh", "s"),
        line if line.starts_with("GET") => Reply::refusal(404, "NotFound", "no such object"),
        _ => Reply::refusal(403, "Forbidden", FULL),
    });
    shared.set_unanswered(&ours().identifier, true);
    let launched = launch(&shared, &ours(), handle(vec![config(), pod()])).await.unwrap();
    assert_eq!(uids(&launched), [None, Some("u-1".into())]);
    assert_eq!(asked(&requests), ["GET pods/rfm-x", "GET configmaps/rfm-c"]);
    // What is there no longer is created.
    let Launch::NotNow { .. } = launch(&shared, &job('b'), handle(vec![pod()])).await.unwrap() else { panic!() };
    assert_eq!(asked(&requests).last().map(String::as_str), Some("POST pods?fieldValidation=Warn"));
}

/// The connection is lost after the pod was created.
#[tokio::test(start_paused = true)]
async fn a_launch_without_an_answer_is_looked_for_by_the_next_one() {
    let is_back = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let back = Arc::clone(&is_back);
    let (shared, _) = shared(move |line| match line {
        line if line.starts_with("GET") => there("abcdefgh", "s"),
        _ if back.load(std::sync::atomic::Ordering::Relaxed) => Reply::refusal(403, "Forbidden", FULL),
        _ => Reply::refusal(504, "Timeout", "no answer"),
    });
    launch(&shared, &ours(), handle(vec![pod()])).await.unwrap_err();
    is_back.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(uids(&launch(&shared, &ours(), handle(vec![pod()])).await.unwrap()), [Some("u-1".into())]);
    assert!(!shared.is_unanswered(&ours().identifier));
}

/// After a takeover a job of the same name is removed and created again, and the watch is late.
#[tokio::test]
async fn what_the_watch_still_shows_of_a_predecessor_is_not_the_job() {
    let pod_of = |uid: &str| json!({"metadata": {"name": "rfm-x", "uid": uid, "resourceVersion": "1", "labels": {"rfm": "abcdefgh", "rfm-session": "s"}}});
    let (seen, late) = tokio::sync::watch::channel(false);
    let (cluster, _) = testing::cluster(move |line, _| match line {
        line if line.contains("watch=true") => {
            seen.send_replace(true);
            Reply::events(&[json!({"type": "DELETED", "object": pod_of("old")})], true)
        }
        line if line.contains("labelSelector=rfm-session") => Reply::list("1", &[pod_of("old")]),
        line if line.contains("leases") => Reply::json(&json!({})),
        _ => Reply::json(&pod_of("new")),
    });
    let timing = muster_core::decisions::liveness::HeartbeatTiming::default();
    let shared = SharedState::new(cluster, &SessionId("s".into()), timing);
    let Launch::Launched(launched) = launch(&shared, &ours(), handle(vec![pod()])).await.unwrap() else { panic!() };
    let mut observed = shared.observe(&launched, &Handle::of(&launched).unwrap());
    let mut late = late;
    late.wait_for(|seen| *seen).await.unwrap();
    for _ in 0..20 {
        let now = Arc::clone(&observed.borrow_and_update());
        assert!(matches!(now.workload, Seen::NotYet) && now.pods.is_empty(), "{now:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_case_without_quota_waits_in_the_queue_and_those_after_it_do_not_ask() {
    let (shared, requests) = shared(|_| Reply::refusal(403, "Forbidden", FULL));
    let Launch::NotNow { why, retry_after, .. } = launch(&shared, &job('a'), handle(vec![pod()])).await.unwrap() else {
        panic!()
    };
    insta::assert_snapshot!(why, @"quota compute: requests.cpu requested 2, used 3, limited 4");
    assert_eq!(retry_after, Duration::from_secs(1));
    let Launch::NotNow { why, .. } = launch(&shared, &job('b'), handle(vec![pod()])).await.unwrap() else { panic!() };
    insta::assert_snapshot!(why, @"case a is before it in the queue for requests.cpu");
    assert_eq!(asked(&requests), ["POST pods?fieldValidation=Warn"]);
}

#[tokio::test]
async fn who_waits_for_room_holds_nothing() {
    let (shared, requests) = shared(|line| match line {
        line if line.starts_with("GET") => Reply::list("1", &[]),
        line if line.contains("pods") => Reply::refusal(403, "Forbidden", FULL),
        _ => Reply::json(&json!({"metadata": {"uid": "u-c"}})),
    });
    let launched = launch(&shared, &ours(), handle(vec![config(), pod()])).await.unwrap();
    assert!(matches!(launched, Launch::NotNow { .. }), "{launched:?}");
    assert_eq!(asked(&requests).last().map(String::as_str), Some("DELETE configmaps/rfm-c"));
}

/// The least Role may not read quotas, so that the pod is tried before: its account is created only then.
#[tokio::test]
async fn a_pod_whose_account_the_manifest_creates_is_launched() {
    for (account, launched) in [("rfm-sa", true), ("nobody", false)] {
        let lacking = format!(
            "pods \"rfm-x\" is forbidden: error looking up service account n/{account}: serviceaccount \"{account}\" not found"
        );
        let (shared, _) = shared(move |line| match line {
            line if line.contains("resourcequotas") => Reply::refusal(
                403,
                "Forbidden",
                "resourcequotas is forbidden: User \"u\" cannot list resource \"resourcequotas\"",
            ),
            line if line.contains("dryRun=All") => Reply::refusal(403, "Forbidden", &lacking),
            _ => Reply::json(&json!({"metadata": {"uid": "u-1"}})),
        });
        let objects = vec![object("v1", "ServiceAccount", "rfm-sa", &json!({})), pod()];
        assert_eq!(launch(&shared, &ours(), handle(objects)).await.is_ok(), launched, "{account}");
    }
}

#[tokio::test]
async fn a_gang_that_can_never_stand_together_is_refused_before_it_exists() {
    let quota = json!({"metadata": {"name": "compute"}, "status": {"hard": {"requests.cpu": "4"}}});
    let (shared, requests) = shared(move |line| match line {
        line if line.starts_with("GET") => Reply::list("1", std::slice::from_ref(&quota)),
        _ => Reply::json(&json!({"metadata": {"uid": "u"}})),
    });
    let error = launch(&shared, &ours(), handle(vec![gang(3)])).await.unwrap_err();
    assert_eq!(error.class, Class::Config);
    insta::assert_snapshot!(chain(&error), @"create mpijob.kubeflow.org rfm-x: 3 pods of 2 each: requests.cpu requested 6, but quota compute has 4 at all: ask for less, or have the quota raised");
    assert_eq!(asked(&requests), ["GET resourcequotas?limit=500"]);
    let launched = launch(&shared, &ours(), handle(vec![gang(2)])).await.unwrap();
    assert!(matches!(launched, Launch::Launched(_)));
    assert!(asked(&requests).contains(&"POST pods?fieldValidation=Warn&dryRun=All".to_owned()), "{:?}", asked(&requests));
}

/// An `MPIJob` as it is: a launcher and workers, each with a template of its own.
fn launcher_and_workers(workers: u32) -> Object {
    let template = || json!({"metadata": {"labels": {"rfm": "abcdefgh"}}, "spec": containers()});
    let replicas =
        json!({"Launcher": {"replicas": 1, "template": template()}, "Worker": {"replicas": workers, "template": template()}});
    object("kubeflow.org/v2beta1", "MPIJob", "rfm-x", &json!({ "mpiReplicaSpecs": replicas }))
}

fn shared_with_pods(pods: u32) -> (SharedState, Requests) {
    let quota = json!({"metadata": {"name": "compute"}, "status": {"hard": {"pods": pods.to_string()}}});
    shared(move |line| match line {
        line if line.starts_with("GET") => Reply::list("1", std::slice::from_ref(&quota)),
        _ => Reply::json(&json!({"metadata": {"uid": "u"}})),
    })
}

#[tokio::test]
async fn pods_of_all_templates_stand_together_in_a_quota() {
    let (shared, requests) = shared_with_pods(2);
    let error = launch(&shared, &ours(), handle(vec![launcher_and_workers(2)])).await.unwrap_err();
    assert_eq!((error.class, error.nothing_created), (Class::Config, true));
    insta::assert_snapshot!(chain(&error), @"create mpijob.kubeflow.org rfm-x: 3 pods at once: pods requested 3, but quota compute has 2 at all: ask for less, or have the quota raised");
    assert_eq!(asked(&requests), ["GET resourcequotas?limit=500"]);
    let launched = launch(&shared, &ours(), handle(vec![launcher_and_workers(1)])).await.unwrap();
    assert!(matches!(launched, Launch::Launched(_)), "{launched:?}");
}

/// A `JobSet` whose second job starts when the first one has ended.
#[tokio::test]
async fn pods_that_follow_each_other_are_not_added() {
    let (shared, _) = shared_with_pods(2);
    let job = |name: &str, depends_on: &Value| {
        let template = json!({"spec": {"parallelism": 2, "completions": 2, "template": {"spec": containers()}}});
        json!({"name": name, "dependsOn": depends_on, "template": template})
    };
    let jobs = [job("prepare", &json!([])), job("train", &json!([{"name": "prepare", "status": "Complete"}]))];
    let job_set = object("jobset.x-k8s.io/v1alpha2", "JobSet", "rfm-x", &json!({ "replicatedJobs": jobs }));
    let launched = launch(&shared, &ours(), handle(vec![job_set])).await.unwrap();
    assert!(matches!(launched, Launch::Launched(_)), "{launched:?}");
}

#[tokio::test]
async fn room_for_the_pods_of_all_templates_is_given_once() {
    let (shared, _) = shared_with_pods(5);
    let (first, second) = (job('a'), job('b'));
    let of = |workers| handle(vec![launcher_and_workers(workers)]);
    let (first, second) = tokio::join!(launch(&shared, &first, of(2)), launch(&shared, &second, of(2)));
    let answers = [first.unwrap(), second.unwrap()];
    let why: Vec<&String> =
        answers.iter().filter_map(|answer| if let Launch::NotNow { why, .. } = answer { Some(why) } else { None }).collect();
    assert_eq!(why, ["quota compute: pods requested 3, used 3, limited 5"], "one of two is launched");
}

#[tokio::test]
async fn files_are_not_read_while_a_case_waits_for_quota() {
    let (shared, _) = shared(|line| match line {
        line if line.starts_with("GET") => Reply::list("1", &[json!({"metadata": {"name": "compute"}})]),
        line if line.contains("dryRun") => Reply::refusal(403, "Forbidden", FULL),
        _ => Reply::json(&json!({"metadata": {"uid": "u"}})),
    });
    // The stage folder is not there: to read it is an error.
    let staging = muster_core::job::workload::Staging { folder: "src".into(), readonly_files: vec![], limit: None };
    let handle = Handle { sources: Some(staging), ..handle(vec![config(), pod()]) };
    let answer = launch(&shared, &ours(), handle).await;
    assert!(matches!(answer, Ok(Launch::NotNow { .. })), "{answer:?}");
}

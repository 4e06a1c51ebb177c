//! From launch to cleanup, when nothing goes wrong but the workload.

use crate::test_cluster::{TestCluster, container, is_over, is_running, job, lines, pod};
use muster_core::{
    case::SessionId,
    job::{
        handle::JobHandle,
        scheduler::{Disposition, Exit, JobStatus, Launch, Scheduler},
    },
};
use muster_k8s::Handle;
use serde_json::json;

pub(crate) async fn a_pod_lives_and_leaves_nothing(cluster: TestCluster) {
    let lived = cluster.live(pod("for n in 1 2 3; do echo line $n; sleep 0.1; done", "run; lines 3 100ms; exit 0")).await;
    let exits: Vec<Exit> = lived.ending().exits.iter().map(|exit| exit.exit).collect();
    assert_eq!((exits, lived.logs.only()), (vec![Exit::Code(0)], lines(3).as_str()));
    assert_eq!(lived.ending().exits[0].section, lived.logs.order[0], "exits and logs meet by title");
    assert_eq!(lived.logs.gaps, Vec::<String>::new());
    cluster.delete(&lived.job).await;
}

pub(crate) async fn what_has_the_name_already_is_left_alone(cluster: TestCluster) {
    let planned = cluster.plan(pod("echo line 1", "run; lines 1; exit 0"));
    // The other session drew the same letters, and has a pod of the same name.
    let mut anothers = planned.clone();
    anothers.session = SessionId("another".into());
    let mut handle = Handle::clone(&Handle::of(&planned).expect("a handle"));
    handle.objects[0].manifest["metadata"]["labels"]["rfm-session"] = json!("another");
    anothers.handle = JobHandle::of(handle);
    let anothers = cluster.launch(&anothers).await;
    let answer = cluster.scheduler.launch(&planned).await.expect("an answer");
    assert!(matches!(&answer, Launch::Taken { by } if by.starts_with("pods rfm-behaviour-")), "{answer:?}");
    assert_eq!(cluster.cleanup(&planned, Disposition::Delete).await.items, Vec::<String>::new());
    assert_ne!(cluster.left(&anothers).await, Vec::<String>::new());
    let lived = cluster.live(pod("echo line 1", "run; lines 1; exit 0")).await;
    assert_eq!(lived.ending().exits[0].exit, Exit::Code(0));
    cluster.delete(&lived.job).await;
    cluster.delete(&anothers).await;
}

pub(crate) async fn a_jobs_pods_are_sections_in_order(cluster: TestCluster) {
    let lived = cluster.live(job(3, "echo line 1", "run; lines 1; exit 0")).await;
    assert_eq!(lived.ending().exits.len(), 3);
    let names: Vec<&String> = lived.logs.order.iter().collect();
    assert_eq!(names.len(), 3);
    for (index, name) in names.into_iter().enumerate() {
        assert!(name.contains(&format!("-{index}-")), "{index} {name}");
        assert_eq!(lived.logs.text(name), "line 1\n");
    }
    cluster.delete(&lived.job).await;
}

pub(crate) async fn a_failed_pod_is_reported_and_kept_until_it_is_deleted(cluster: TestCluster) {
    let lived = cluster.live(pod("echo line 1; exit 3", "run; lines 1; exit 3")).await;
    assert_eq!(lived.ending().exits[0].exit, Exit::Code(3));
    assert_eq!(lived.logs.only(), "line 1\n");
    let kept = cluster.cleanup(&lived.job, Disposition::Stop).await;
    assert_eq!(kept.items, Vec::<String>::new());
    assert!(!kept.look.is_empty() && !kept.delete.is_empty(), "{kept:?}");
    assert!(!cluster.left(&lived.job).await.is_empty());
    cluster.delete(&lived.job).await;
}

pub(crate) async fn a_pod_that_is_stopped_ends_and_stays(cluster: TestCluster) {
    let job = cluster.launch(&cluster.plan(pod("echo line 1; sleep 600", "run; lines 1; hang"))).await;
    cluster.wait_for(&job, is_running).await;
    let stop = async { cluster.cleanup(&job, Disposition::Stop).await };
    let (stopped, logs) = tokio::join!(stop, cluster.logs(&job));
    assert_eq!(stopped.items, Vec::<String>::new());
    assert_eq!(logs.only(), "line 1\n");
    assert!(!cluster.left(&job).await.is_empty());
    let status = cluster.wait_for(&job, is_over).await;
    assert!(
        !matches!(&status, JobStatus::Ended(ending) if ending.exits.iter().all(|exit| exit.exit == Exit::Code(0))),
        "{status:?}"
    );
    cluster.delete(&job).await;
}

pub(crate) async fn every_container_has_its_section(cluster: TestCluster) {
    let mut manifest = pod("echo line 1", "run; lines 1; log@side two; wait 100ms; exit 0");
    manifest["spec"]["initContainers"] = json!([container("fetch", "echo fetch is done")]);
    manifest["spec"]["containers"] = json!([container("main", "echo line 1"), container("side", "echo two")]);
    let lived = cluster.live(manifest).await;
    let texts: Vec<(String, String)> = lived
        .logs
        .texts
        .iter()
        .map(|(title, text)| {
            (title.rsplit('/').next().unwrap_or_default().to_owned(), String::from_utf8_lossy(text).into_owned())
        })
        .collect();
    let expected = [("fetch", "fetch is done\n"), ("main", "line 1\n"), ("side", "two\n")];
    assert_eq!(texts, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    cluster.delete(&lived.job).await;
}

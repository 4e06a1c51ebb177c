//! How well a session treats the API server.

use crate::test_cluster::{TestCluster, is_running, pod};
use futures_util::future::join_all;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::sleep;

const CASES: usize = 20;

/// What a session asks once: kinds, lists, watches, its Lease.
const SHARED: usize = 12;

pub(crate) async fn a_case_of_one_container_takes_four_requests(cluster: TestCluster) {
    let one = async || {
        let lived = cluster.live(pod("", "run; lines 3 100ms; exit 0")).await;
        assert_eq!(lived.logs.gaps, Vec::<String>::new());
        cluster.cleanup(&lived.job, muster_core::job::scheduler::Disposition::Delete).await
    };
    let left = join_all((0..CASES).map(|_| one())).await;
    assert!(left.iter().all(|left| left.items.is_empty()), "{left:?}");
    let requests = cluster.fake().requests();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for request in &requests {
        let is_log = request.path.ends_with("/log");
        let what = match &*request.method {
            "POST" if request.path.ends_with("/pods") => "creation",
            "GET" if is_log && request.query.contains("follow=true") => "log, followed",
            "GET" if is_log => "log, read again",
            "DELETE" => "deletion",
            _ => "shared",
        };
        *counts.entry(what).or_default() += 1;
    }
    let shared = counts.remove("shared").unwrap_or_default();
    // A case that ends before its stream is opened is only read.
    let followed = counts.remove("log, followed").unwrap_or_default();
    assert!(followed <= CASES, "{followed} followed: {requests:?}");
    let of_each = ["creation", "deletion", "log, read again"].map(|what| (what, CASES));
    assert_eq!(counts, BTreeMap::from(of_each), "{requests:?}");
    assert!(shared <= SHARED, "{shared} beside: {requests:?}");
    assert!(requests.iter().all(|request| request.agent.starts_with("muster/")));
}

pub(crate) async fn nothing_is_asked_while_nothing_changes(cluster: TestCluster) {
    let job = cluster.launch(&cluster.plan(pod("", "run; hang"))).await;
    let quiet = async {
        cluster.wait_for(&job, is_running).await;
        // The log's stream is opened now.
        sleep(Duration::from_millis(300)).await;
        cluster.fake().forget_requests();
        sleep(Duration::from_secs(5)).await;
        cluster.fake().requests()
    };
    let requests = tokio::select! {
        requests = quiet => requests,
        logs = cluster.logs(&job) => panic!("the log ended: {logs:?}"),
    };
    assert!(requests.len() <= 1, "{requests:?}");
    cluster.delete(&job).await;
}

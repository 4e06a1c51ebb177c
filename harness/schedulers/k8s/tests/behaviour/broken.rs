//! When the API server fails, and the workload does not.

use crate::test_cluster::{Lived, TestCluster, is_over, is_running, lines, pod};
use muster_core::job::scheduler::{Disruption, Exit, Job, JobStatus};
use muster_fake_api::{Fault, Proxy};
use std::time::Duration;
use tokio::time::sleep;

const NAMESPACE: &str = "default";

/// Runs a pod of a hundred lines, and something beside it once it runs.
pub(crate) async fn live_beside(cluster: &TestCluster, beside: impl AsyncFnOnce(&Job)) -> Lived {
    let job = cluster.launch(&cluster.plan(pod("", "run; lines 100 15ms; exit 0"))).await;
    let trouble = async {
        cluster.wait_for(&job, is_running).await;
        beside(&job).await;
    };
    let (status, logs, ()) = tokio::join!(cluster.wait_for(&job, is_over), cluster.logs(&job), trouble);
    Lived { job, status, logs }
}

pub(crate) fn assert_whole(lived: &Lived) {
    assert_eq!(lived.ending().exits[0].exit, Exit::Code(0));
    assert_eq!(lived.logs.gaps, Vec::<String>::new());
    assert_eq!(lived.logs.only(), lines(100));
}

pub(crate) async fn a_log_that_is_cut_five_times_is_byte_identical(cluster: TestCluster) {
    for bytes in [17, 200, 40, 555, 1_000] {
        cluster.fake().fault(Fault::cut("follow=true", bytes));
    }
    let lived = live_beside(&cluster, async |_| {}).await;
    assert_whole(&lived);
    assert!(cluster.asked("GET", "follow=true") >= 6);
    cluster.delete(&lived.job).await;
}

pub(crate) async fn a_pod_that_vanished_between_two_watches_is_gone(cluster: TestCluster) {
    let job = cluster.launch(&cluster.plan(pod("", "run; hang"))).await;
    cluster.wait_for(&job, is_running).await;
    let api = cluster.fake();
    api.down().await;
    for pod in api.list("pods", NAMESPACE) {
        api.delete("pods", NAMESPACE, pod["metadata"]["name"].as_str().expect("a name"), true);
    }
    api.compact();
    api.up().await.expect("the port");
    let status = cluster.wait_for(&job, is_over).await;
    assert!(matches!(status, JobStatus::Gone { why: Disruption::Deleted, .. }), "{status:?}");
    cluster.delete(&job).await;
}

pub(crate) async fn an_expired_watch_lists_again(cluster: TestCluster) {
    let lived = live_beside(&cluster, async |_| {
        cluster.fake().fault(Fault::status("GET", "watch=true", 410, "Expired", "too old resource version: 1 (9)"));
        cluster.fake().cut("watch=true");
        sleep(Duration::from_millis(300)).await;
        cluster.fake().fault(Fault::stream_error("watch=true", 410, "Expired"));
        cluster.fake().cut("watch=true");
    })
    .await;
    assert_whole(&lived);
    assert!(
        cluster.asked("GET", "labelSelector=rfm-session") - cluster.asked("GET", "watch=true") >= 3,
        "listed again after each"
    );
    cluster.delete(&lived.job).await;
}

pub(crate) async fn too_many_requests_are_sent_again_later(cluster: TestCluster) {
    cluster.fake().fault(Fault::too_many("POST", "/pods", 1));
    cluster.fake().fault(Fault::too_many("GET", "labelSelector", 1));
    cluster.fake().fault(Fault::too_many("GET", "/log", 1).times(2));
    let lived = live_beside(&cluster, async |_| {}).await;
    assert_whole(&lived);
    cluster.fake().fault(Fault::too_many("DELETE", "/pods", 1));
    cluster.delete(&lived.job).await;
    assert_eq!([cluster.asked("POST", "/pods"), cluster.asked("DELETE", "/pods")], [2, 2]);
    assert!(cluster.asked("GET", "/log") >= 3);
}

pub(crate) async fn credentials_that_expire_are_read_again(cluster: TestCluster) {
    let lived = live_beside(&cluster, async |_| {
        cluster.rotate_token("second");
        cluster.fake().cut("watch=true");
        cluster.fake().cut("/log");
    })
    .await;
    assert_whole(&lived);
    assert!(cluster.asked("GET", "watch=true") >= 2 && cluster.asked("GET", "/log") >= 3, "both were opened again");
    cluster.delete(&lived.job).await;
}

pub(crate) async fn a_token_file_that_is_rotated_is_read_again(cluster: TestCluster) {
    cluster.rotate_token_file("first-of-file");
    let lived = live_beside(&cluster, async |_| {
        cluster.rotate_token_file("second-of-file");
        cluster.fake().cut("watch=true");
        cluster.fake().cut("/log");
    })
    .await;
    assert_whole(&lived);
    cluster.delete(&lived.job).await;
}

pub(crate) async fn a_creation_whose_answer_is_lost_is_adopted(cluster: TestCluster) {
    cluster.fake().fault(Fault::swallow("POST", "/pods"));
    let lived = live_beside(&cluster, async |_| {}).await;
    assert_whole(&lived);
    assert_eq!((cluster.fake().list("pods", NAMESPACE).len(), cluster.asked("POST", "/pods")), (1, 2));
    cluster.delete(&lived.job).await;
}

pub(crate) async fn a_server_that_restarts_does_not_end_a_run(cluster: TestCluster) {
    let lived = live_beside(&cluster, async |_| {
        for _ in 0..2 {
            sleep(Duration::from_millis(200)).await;
            cluster.fake().down().await;
            sleep(Duration::from_millis(200)).await;
            cluster.fake().up().await.expect("the port");
        }
    })
    .await;
    assert_whole(&lived);
    cluster.delete(&lived.job).await;
}

pub(crate) async fn connections_that_fall_silent_are_opened_again(mut cluster: TestCluster) {
    let proxy = Proxy::start(None).expect("a port");
    cluster.through(&proxy, Duration::from_secs(1));
    let mut silent = 0;
    let lived = live_beside(&cluster, async |_| {
        silent = proxy.tunnels().len();
        proxy.silence();
    })
    .await;
    assert_whole(&lived);
    assert!(silent >= 2, "the watch and the log have a tunnel each: {silent}");
    assert!(proxy.tunnels().len() > silent, "what was silent was opened again: {:?}", proxy.tunnels());
    cluster.delete(&lived.job).await;
}

//! When the API server fails, and the workload does not.

use crate::ground::{Ground, Lived, is_over, is_running, lines, pod};
use muster_core::job::scheduler::{Disruption, Exit, Job, JobStatus};
use muster_fake_api::{Fault, Proxy};
use std::time::Duration;
use tokio::time::sleep;

const NAMESPACE: &str = "default";

/// Runs a pod of a hundred lines, and something beside it once it runs.
pub(crate) async fn live_beside(ground: &Ground, beside: impl AsyncFnOnce(&Job)) -> Lived {
    let job = ground.launch(&ground.plan(pod("", "run; lines 100 15ms; exit 0"))).await;
    let trouble = async {
        ground.wait_for(&job, is_running).await;
        beside(&job).await;
    };
    let (status, logs, ()) = tokio::join!(ground.wait_for(&job, is_over), ground.logs(&job), trouble);
    Lived { job, status, logs }
}

pub(crate) fn assert_whole(lived: &Lived) {
    assert_eq!(lived.ending().exits[0].exit, Exit::Code(0));
    assert_eq!(lived.logs.gaps, Vec::<String>::new());
    assert_eq!(lived.logs.only(), lines(100));
}

pub(crate) async fn a11_a_log_that_is_cut_five_times_is_byte_identical(ground: Ground) {
    for bytes in [17, 200, 40, 555, 1_000] {
        ground.fake().fault(Fault::cut("follow=true", bytes));
    }
    let lived = live_beside(&ground, async |_| {}).await;
    assert_whole(&lived);
    assert!(ground.asked("GET", "follow=true") >= 6);
    ground.delete(&lived.job).await;
}

pub(crate) async fn a_pod_that_vanished_while_nobody_watched_is_gone(ground: Ground) {
    let job = ground.launch(&ground.plan(pod("", "run; hang"))).await;
    ground.wait_for(&job, is_running).await;
    let api = ground.fake();
    api.down().await;
    for pod in api.list("pods", NAMESPACE) {
        api.delete("pods", NAMESPACE, pod["metadata"]["name"].as_str().expect("a name"), true);
    }
    api.compact();
    api.up().await.expect("the port");
    let status = ground.wait_for(&job, is_over).await;
    assert!(matches!(status, JobStatus::Gone { why: Disruption::Deleted, .. }), "{status:?}");
    ground.delete(&job).await;
}

pub(crate) async fn an_expired_watch_lists_again(ground: Ground) {
    let lived = live_beside(&ground, async |_| {
        ground.fake().fault(Fault::status("GET", "watch=true", 410, "Expired", "too old resource version: 1 (9)"));
        ground.fake().cut("watch=true");
        sleep(Duration::from_millis(300)).await;
        ground.fake().fault(Fault::stream_error("watch=true", 410, "Expired"));
        ground.fake().cut("watch=true");
    })
    .await;
    assert_whole(&lived);
    assert!(ground.asked("GET", "labelSelector=rfm-session") - ground.asked("GET", "watch=true") >= 3, "listed again after each");
    ground.delete(&lived.job).await;
}

pub(crate) async fn too_many_requests_are_sent_again_later(ground: Ground) {
    ground.fake().fault(Fault::too_many("POST", "/pods", 1));
    ground.fake().fault(Fault::too_many("GET", "labelSelector", 1));
    ground.fake().fault(Fault::too_many("GET", "/log", 1).times(2));
    let lived = live_beside(&ground, async |_| {}).await;
    assert_whole(&lived);
    ground.fake().fault(Fault::too_many("DELETE", "/pods", 1));
    ground.delete(&lived.job).await;
    assert_eq!([ground.asked("POST", "/pods"), ground.asked("DELETE", "/pods")], [2, 2]);
    assert!(ground.asked("GET", "/log") >= 3);
}

pub(crate) async fn credentials_that_expire_are_read_again(ground: Ground) {
    let lived = live_beside(&ground, async |_| {
        ground.rotate_token("second");
        ground.fake().cut("watch=true");
        ground.fake().cut("/log");
    })
    .await;
    assert_whole(&lived);
    assert!(ground.asked("GET", "watch=true") >= 2 && ground.asked("GET", "/log") >= 3, "both were opened again");
    ground.delete(&lived.job).await;
}

pub(crate) async fn a_token_file_that_is_rotated_is_read_again(ground: Ground) {
    ground.rotate_token_file("first-of-file");
    let lived = live_beside(&ground, async |_| {
        ground.rotate_token_file("second-of-file");
        ground.fake().cut("watch=true");
        ground.fake().cut("/log");
    })
    .await;
    assert_whole(&lived);
    ground.delete(&lived.job).await;
}

pub(crate) async fn a_creation_whose_answer_is_lost_is_adopted(ground: Ground) {
    ground.fake().fault(Fault::swallow("POST", "/pods"));
    let lived = live_beside(&ground, async |_| {}).await;
    assert_whole(&lived);
    assert_eq!((ground.fake().list("pods", NAMESPACE).len(), ground.asked("POST", "/pods")), (1, 2));
    ground.delete(&lived.job).await;
}

pub(crate) async fn a_server_that_restarts_does_not_end_a_run(ground: Ground) {
    let lived = live_beside(&ground, async |_| {
        for _ in 0..2 {
            sleep(Duration::from_millis(200)).await;
            ground.fake().down().await;
            sleep(Duration::from_millis(200)).await;
            ground.fake().up().await.expect("the port");
        }
    })
    .await;
    assert_whole(&lived);
    ground.delete(&lived.job).await;
}

pub(crate) async fn connections_that_fall_silent_are_opened_again(mut ground: Ground) {
    let proxy = Proxy::start(None).expect("a port");
    ground.through(&proxy, Duration::from_secs(1));
    let mut silent = 0;
    let lived = live_beside(&ground, async |_| {
        silent = proxy.tunnels().len();
        proxy.silence();
    })
    .await;
    assert_whole(&lived);
    assert!(silent >= 2, "the watch and the log have a tunnel each: {silent}");
    assert!(proxy.tunnels().len() > silent, "what was silent was opened again: {:?}", proxy.tunnels());
    ground.delete(&lived.job).await;
}

//! A node that begins a new file while the log is read.

use super::{Scene, lines};
use muster_fake_api::Fault;
use std::time::Duration;
use tokio::time::sleep;

#[tokio::test]
async fn a_rotation_while_the_stream_is_cut_is_a_gap() {
    let scene = Scene::new().await;
    scene.pod("run; lines 10; wait 300ms; log after; exit 0");
    let rotate = async {
        sleep(Duration::from_millis(150)).await;
        scene.api.fault(Fault::status("GET", "/log", 500, "InternalError", "no").times(3));
        scene.api.cut("/log");
        scene.api.write_log("default", "x", "main", b"lost\n");
        scene.api.rotate_log("default", "x", "main");
    };
    let (collected, ()) = tokio::join!(scene.collect(), rotate);
    assert_eq!(collected.gaps.len(), 1, "{:?}", collected.gaps);
    assert!(collected.gaps[0].contains("may be missing: the node rotated the log"), "{:?}", collected.gaps);
    assert!(collected.text("x").ends_with("after\n"));
}

#[tokio::test]
async fn a_long_log_that_is_rotated_while_it_is_followed_has_a_gap() {
    let scene = Scene::new().await;
    scene.pod("run; log first; wait 300ms; log after; exit 0");
    let rotate = async {
        sleep(Duration::from_millis(100)).await;
        scene.api.write_log("default", "x", "main", lines(40_000).as_bytes());
        sleep(Duration::from_millis(100)).await;
        // The stream goes on with the new file, as the kubelet's does.
        scene.api.write_log("default", "x", "main", b"lost\n");
        scene.api.rotate_log("default", "x", "main");
    };
    let (collected, ()) = tokio::join!(scene.collect(), rotate);
    assert!(collected.text("x").ends_with("line 40000\nafter\n"));
    insta::assert_snapshot!(collected.gaps.join("\n"), @"x: the log was rotated on the node while it was read: lines may be missing; raise containerLogMaxSize of the kubelet, or print less");
}

#[tokio::test]
async fn a_long_log_that_is_not_rotated_is_whole_and_takes_one_request_more() {
    let scene = Scene::new().await;
    scene.api.fault(Fault::status("GET", "limitBytes", 500, "InternalError", "no"));
    scene.pod("run; lines 40000; exit 0");
    sleep(Duration::from_millis(500)).await;
    let collected = scene.collect().await;
    assert_eq!((collected.text("x") == lines(40_000), collected.gaps), (true, Vec::<String>::new()));
    assert_eq!(scene.log_requests(), 3, "one of them failed");
}

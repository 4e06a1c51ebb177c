//! A node that begins a new file while the log is read.

use super::{Collected, Scene, lines};
use crate::job::LogRotation;
use muster_fake_api::Fault;
use std::time::Duration;
use tokio::time::sleep;

#[tokio::test]
async fn a_rotation_while_the_stream_is_cut_is_a_gap() {
    let scene = Scene::new().await;
    scene.pod("run; lines 10; wait 2s; log after; exit 0");
    let rotate = async {
        scene.collected(1).await;
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
async fn a_log_that_is_followed_through_all_its_files_is_whole() {
    let scene = Scene::new().await;
    scene.pod("run; log first; hang");
    let file = |file| lines(3_000) + &format!("the last of file {file}\n");
    let whole = ["first\n".into(), file(0), file(1), file(2)].concat();
    let rotate = async {
        let mut written = "first\n".len();
        for number in 0..3 {
            // The node begins a new file before the end of this one is read, but not a second one.
            scene.collected(written).await;
            scene.api.write_log("default", "x", "main", file(number).as_bytes());
            if number < 2 {
                scene.api.rotate_log("default", "x", "main");
            }
            written += file(number).len();
        }
        scene.collected(written).await;
        scene.api.update("pods", "default", "x", |pod| pod["status"]["phase"] = "Succeeded".into());
    };
    let (collected, ()) = tokio::join!(scene.collect(), rotate);
    assert!(collected.text("x") == whole);
    assert_eq!(collected.gaps, Vec::<String>::new());
}

/// The stream answers late: what was written meanwhile arrives at once, as if the node had held it back.
async fn rotated_unnoticed(log_rotation: LogRotation) -> Collected {
    let mut scene = Scene::new().await;
    scene.handle.log_rotation = log_rotation;
    scene.api.fault(Fault::late("GET", "follow=true", Duration::from_millis(2_400)));
    scene.pod("run; log first; wait 3s; log after; exit 0");
    let rotate = async {
        sleep(Duration::from_millis(2_200)).await;
        scene.api.write_log("default", "x", "main", lines(40_000).as_bytes());
        sleep(Duration::from_millis(400)).await;
        scene.api.rotate_log("default", "x", "main");
    };
    let (collected, ()) = tokio::join!(scene.collect(), rotate);
    assert!(collected.text("x").ends_with("line 40000\nafter\n"));
    collected
}

#[tokio::test]
async fn a_long_log_that_was_rotated_and_may_have_lost_a_file_has_a_gap() {
    let collected = rotated_unnoticed(LogRotation::Invalid).await;
    insta::assert_snapshot!(collected.gaps.join("\n"), @"x: the log was rotated on the node while it was read: lines may be missing; raise containerLogMaxSize of the kubelet, or print less");
}

#[tokio::test]
async fn a_check_may_do_without_the_lines_that_a_rotation_may_have_cost() {
    let collected = rotated_unnoticed(LogRotation::Warn).await;
    assert_eq!(collected.gaps, Vec::<String>::new());
    assert_eq!(collected.warnings.len(), 1);
    assert!(collected.warnings[0].starts_with("x: the log was rotated on the node"), "{:?}", collected.warnings);
}

#[tokio::test]
async fn a_log_that_was_followed_to_its_end_is_whole_though_its_last_file_is_empty() {
    let scene = Scene::new().await;
    scene.pod("run; lines 300; wait 1s; exit 0");
    let rotate = async {
        scene.collected(lines(300).len()).await;
        scene.api.rotate_log("default", "x", "main");
    };
    let (collected, ()) = tokio::join!(scene.collect(), rotate);
    assert_eq!((collected.text("x"), collected.gaps.clone()), (lines(300).as_str(), Vec::new()));
}

#[tokio::test]
async fn a_stream_that_ended_without_its_container_proves_no_end() {
    // In the middle of a line, and long before the end; in milliseconds.
    let whole_lines = lines(300).lines().take(30).map(|line| "2026-01-01T00:00:00.000000000Z \n".len() + line.len()).sum();
    for (after, wait) in [(1_000, 300), (whole_lines, 4_000)] {
        let mut scene = Scene::new().await;
        scene.pace.lag = Duration::from_secs(20);
        scene.api.fault(Fault::end("follow=true", after));
        scene.pod(&format!("run; lines 300; wait {wait}ms; exit 0"));
        let rotate = async {
            scene.collected(1).await;
            scene.api.rotate_log("default", "x", "main");
        };
        let (collected, ()) = tokio::join!(scene.collect(), rotate);
        assert!(collected.text("x").len() < lines(300).len());
        let why = "while it was not being read; the node answered with no line of it";
        assert!(collected.gaps.concat().ends_with(why), "{wait}: {:?}", collected.gaps);
    }
}

#[tokio::test]
async fn a_long_log_without_a_hole_is_whole_and_takes_no_request_more() {
    let scene = Scene::new().await;
    scene.pod("run; lines 40000; exit 0");
    sleep(Duration::from_millis(500)).await;
    let collected = scene.collect().await;
    assert_eq!((collected.text("x") == lines(40_000), collected.gaps), (true, Vec::<String>::new()));
    assert_eq!(scene.log_requests(), 2, "its end is seen twice; nothing can have been lost, so nothing more is asked");
}

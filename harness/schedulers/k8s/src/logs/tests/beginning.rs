//! Logs whose beginning may be missing, and answers that are no log.

use super::{Collected, Scene, lines};
use crate::job::LogRotation;
use futures_util::future::join_all;
use muster_fake_api::Fault;
use std::time::Duration;
use tokio::time::sleep;

/// Longer than a node needs to begin another file.
const LATE: Duration = Duration::from_millis(4_200);
const NOT_PROVEN: &str = "x: the node may have rotated away the beginning of the log, or all of it: its container started at ";

#[tokio::test]
async fn a_silent_container_takes_one_request_more_and_its_log_is_whole() {
    for (script, text) in [("run; wait 5s; log late; wait 100ms; exit 0", "late\n"), ("run; wait 5s; exit 0", "")] {
        let mut scene = Scene::new().await;
        scene.pace.silence.longest = Duration::from_mins(1);
        scene.pod(script);
        let collected = scene.collect().await;
        assert_eq!((collected.text("x"), collected.gaps.clone(), scene.log_requests()), (text, vec![], 3), "{script}");
    }
}

/// Every request for the log is answered late, or refused for as long.
async fn first_read_late(fault: Fault, script: &str, rotation: LogRotation) -> Collected {
    let mut scene = Scene::new().await;
    scene.handle.log_rotation = rotation;
    scene.api.fault(fault);
    scene.pod(script);
    scene.collect().await
}

#[tokio::test]
async fn a_log_that_is_first_read_late_is_whole_only_if_its_first_line_is_early() {
    let late = || Fault::late("GET", "/log", LATE).times(2);
    let rows = [
        ("run; wait 3s; lines 20; wait 2s; exit 0", 1),
        ("run; wait 5s; exit 0", 1),
        ("run; lines 20; wait 5s; exit 0", 0),
        ("run; wait 1s; exit 0", 0),
    ];
    let all = rows.map(|(script, _)| first_read_late(late(), script, LogRotation::Invalid));
    for ((script, gaps), collected) in rows.into_iter().zip(join_all(all).await) {
        assert_eq!(collected.gaps.len(), gaps, "{script}: {:?}", collected.gaps);
        assert!(collected.gaps.iter().all(|why| why.starts_with(NOT_PROVEN)), "{:?}", collected.gaps);
    }
    let warned = first_read_late(late(), rows[0].0, LogRotation::Warn).await;
    assert_eq!((warned.gaps.len(), warned.warnings.len(), warned.text("x")), (0, 1, lines(20).as_str()));
}

#[tokio::test]
async fn a_log_of_which_a_file_was_rotated_away_while_the_server_was_away_is_not_proven() {
    for (script, rotated) in [("run; wait 3s; lines 20; wait 5s; exit 0", true), ("run; wait 10s; exit 0", false)] {
        let mut scene = Scene::new().await;
        scene.pace.silence.longest = Duration::from_mins(1);
        scene.pod(script);
        let away = async {
            // The log was seen empty.
            sleep(Duration::from_millis(1_500)).await;
            scene.api.down().await;
            sleep(LATE).await;
            if rotated {
                scene.api.rotate_log("default", "x", "main");
            }
            scene.api.up().await.unwrap();
        };
        let (collected, ()) = tokio::join!(scene.collect(), away);
        assert_eq!(collected.text("x"), "");
        assert!(collected.gaps[0].starts_with(NOT_PROVEN), "{script}: {:?}", collected.gaps);
    }
}

#[tokio::test]
async fn a_stream_of_a_silent_container_that_is_cut_briefly_proves_the_beginning_still() {
    let mut scene = Scene::new().await;
    scene.pace.silence.longest = Duration::from_mins(1);
    scene.pod("run; wait 6s; log late; wait 100ms; exit 0");
    let cut = async {
        sleep(Duration::from_millis(2_500)).await;
        scene.api.cut("follow=true");
    };
    let (collected, ()) = tokio::join!(scene.collect(), cut);
    assert_eq!((collected.text("x"), collected.gaps.clone(), scene.log_requests()), ("late\n", vec![], 5));
}

/// As a proxy does that ends silent connections: the pause before the next stream does not grow.
#[tokio::test]
async fn a_stream_of_a_silent_container_that_is_cut_again_and_again_proves_the_beginning_still() {
    let mut scene = Scene::new().await;
    scene.pace.silence.longest = Duration::from_mins(1);
    (scene.pace.pause.first, scene.pace.pause.longest) = (Duration::from_secs(1), Duration::from_secs(4));
    scene.pod("run; wait 19s; log late; wait 100ms; exit 0");
    let cuts = async {
        for _ in 0..3 {
            sleep(Duration::from_millis(5_600)).await;
            scene.api.cut("follow=true");
        }
    };
    let (collected, ()) = tokio::join!(scene.collect(), cuts);
    assert_eq!((collected.text("x"), collected.gaps.clone()), ("late\n", vec![]));
}

#[tokio::test]
async fn who_goes_on_with_a_log_does_not_judge_its_beginning_again() {
    let mut scene = Scene::new().await;
    scene.pod("run; wait 3s; lines 60 5ms; wait 1s; exit 0");
    let mut collected = Collected::default();
    scene.collect_into(&mut collected, 3).await;
    assert_ne!(collected.text("x"), "");
    scene.marks = collected.marks();
    scene.collect_into(&mut collected, usize::MAX).await;
    assert_eq!((collected.text("x"), collected.gaps.clone()), (lines(60).as_str(), vec![]));
}

#[tokio::test]
async fn a_clock_of_the_node_that_is_wrong_proves_nothing() {
    for ahead in [-20, 20] {
        let scene = Scene::new().await;
        scene.api.clock_ahead(ahead);
        scene.api.fault(Fault::late("GET", "/log", LATE).times(2));
        scene.pod("run; wait 3s; lines 20; wait 2s; exit 0");
        let collected = scene.collect().await;
        assert!(collected.gaps[0].starts_with(NOT_PROVEN), "{ahead}: {:?}", collected.gaps);
    }
}

#[tokio::test]
async fn an_answer_that_is_no_log_is_asked_for_again_and_then_a_gap_with_its_text() {
    let said = |text: &str| format!("x: the end of the log could not be read: {text}");
    let page = format!("<html>\n<body>\n<h1>502 Bad Gateway</h1>\n{}\n</body>", "x".repeat(500));
    let rows = [
        (
            "unable to retrieve container logs for containerd://3f2",
            said("unable to retrieve container logs for containerd://3f2"),
        ),
        (&page, said(&format!("<html> <body> <h1>502 Bad Gateway</h1> {}...", "x".repeat(161)))),
        (r#"{"kind":"Status","code":500}"#, said(r#"{"kind":"Status","code":500}"#)),
        ("2026-01-0", said("2026-01-0")),
    ];
    for (text, why) in rows {
        let scene = Scene::new().await;
        scene.api.fault(Fault::text("/log", text).times(1_000));
        scene.pod("run; lines 5; wait 1s; exit 0");
        let collected = scene.collect().await;
        assert_eq!((collected.text("x"), collected.gaps.clone()), ("", vec![why]));
    }
    let scene = Scene::new().await;
    scene.api.fault(Fault::text("/log", "<html>").times(3));
    scene.pod("run; lines 5; wait 500ms; exit 0");
    let collected = scene.collect().await;
    assert_eq!((collected.text("x"), collected.gaps.clone()), (lines(5).as_str(), vec![]), "the next answer is a log");
}

#[tokio::test]
async fn a_log_that_ends_in_a_text_of_the_node_is_not_whole() {
    let scene = Scene::new().await;
    let stamp = jiff::Timestamp::now();
    let text = format!("{stamp:.9} line 1\nrpc error: code = Unavailable\n");
    scene.api.fault(Fault::text("/log", &text).times(1_000));
    scene.pod("run; lines 5; wait 200ms; exit 0");
    let collected = scene.collect().await;
    assert_eq!(collected.text("x"), "line 1\n");
    assert_eq!(collected.gaps, ["x: the end of the log could not be read: rpc error: code = Unavailable"]);
}

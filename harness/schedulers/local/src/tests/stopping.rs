//! Jobs that have to be ended.

use super::{Field, chunks, ending, until};
use crate::inventory;
use muster_core::{
    case::SessionId,
    job::{
        scheduler::{Disposition, Exit, Scheduler},
        stage_folder::LOG_FILE,
    },
};
use std::{
    fs,
    time::{Duration, Instant},
};

/// Launches, waits for the word `ready` in the log, stops, and says how it ended and how long that took.
async fn stop(field: &Field, body: &str) -> (Exit, Duration, String) {
    let job = field.launch(body).await;
    let log = || fs::read_to_string(job.stage.join(LOG_FILE)).unwrap_or_default();
    until("ready", || log().contains("ready\n")).await;
    let started = Instant::now();
    let leftovers = field.scheduler.cleanup(&job, Disposition::Stop).await.unwrap();
    let took = started.elapsed();
    assert!(leftovers.items.is_empty(), "{leftovers:?}");
    let exit = ending(&field.scheduler, &job).await.exits[0].exit;
    assert_eq!(chunks(&field.scheduler, &job).await.len(), 3, "logs after a stop");
    assert!(field.scheduler.cleanup(&job, Disposition::Delete).await.unwrap().items.is_empty());
    (exit, took, log())
}

#[tokio::test]
async fn term_ends_a_job_at_once_and_kill_a_stubborn_one_after_two_seconds() {
    let field = Field::new();
    let loops = "while :; do sleep 0.05; done";
    let bodies = [
        "echo ready; sleep 60".to_owned(),
        format!("trap '' TERM; echo ready; {loops}"),
        "sh -c 'echo ready; kill -STOP $$; sleep 60'".to_owned(),
        // The shell above dies of TERM at once; what it ran still has its two seconds.
        format!("sh -c 'trap \"sleep 0.3; echo saved; exit 0\" TERM; echo ready; {loops}'; true"),
    ];
    let stopped = futures_util::future::join_all(bodies.iter().map(|body| stop(&field, body))).await;
    let (at_once, patience) = (Duration::from_millis(1900), Duration::from_secs(2));
    assert!(stopped[0].0 == Exit::Code(143) && stopped[0].1 < at_once, "{:?}", stopped[0]);
    assert!(stopped[1].0 == Exit::Signal(9) && stopped[1].1 >= patience, "{:?}", stopped[1]);
    assert!(stopped[2].1 < at_once, "{:?}", stopped[2]);
    assert!(stopped[3].0 == Exit::Code(143) && stopped[3].2.ends_with("saved\n") && stopped[3].1 < at_once, "{:?}", stopped[3]);
    assert_eq!(field.living(), []);
}

#[tokio::test]
async fn a_daemon_that_left_the_group_is_found_and_swept() {
    let field = Field::new();
    let daemon = "setsid sh -c ': > up; exec sleep 60' & while [ ! -e up ]; do sleep 0.01; done";
    let ran = field.run(daemon).await;
    let only_ours_is_dead = |session: &SessionId| *session != field.session;
    assert_eq!(inventory::find(std::slice::from_ref(&ran.job), |_| true), []);
    let found = inventory::find(std::slice::from_ref(&ran.job), only_ours_is_dead);
    assert_eq!((found.len(), found[0].commands.as_slice()), (1, &["sleep 60".to_owned()][..]));
    assert_eq!(found[0].case.as_deref(), Some("probe @generic:default+builtin"));
    let swept = inventory::end(found).await;
    assert!(swept[0].left.is_empty());
    assert_eq!(field.living(), []);
    assert_eq!(inventory::find(&[], only_ours_is_dead), []);
}

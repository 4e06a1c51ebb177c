//! Jobs that have to be ended.

use super::{Field, chunks, ending, until};
use crate::{LocalHandle, LocalScheduler, inventory};
use muster_core::job::{
    handle::JobHandle,
    inventory::{Found, Scope},
    scheduler::{Disposition, Exit, Job, Scheduler},
    stage_folder::LOG_FILE,
};
use muster_host::process::Machine;
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

const DAEMON: &str = "setsid sh -c ': > up; exec sleep 60' & while [ ! -e up ]; do sleep 0.01; done";

/// What there is of this test's session: others run beside it.
fn ours(field: &Field, found: Vec<Found>) -> Vec<Found> {
    found.into_iter().filter(|found| found.job.session == field.session).collect()
}

#[tokio::test]
async fn a_daemon_that_left_the_group_is_found_and_cleaned_up() {
    let field = Field::new();
    let job = field.run(DAEMON).await.job;
    // Another process sweeps.
    let sweeper = LocalScheduler::default();
    let scope = Scope { jobs: vec![job.clone()], ..Scope::default() };
    for (scope, case) in [(&scope, "probe @generic:default+builtin"), (&Scope::default(), "a job that no database knows")] {
        let inventory = sweeper.inventory(scope).await.unwrap();
        assert!(!inventory.absent.contains(&job.id()));
        let found = ours(&field, inventory.found);
        assert_eq!((found.len(), found[0].job.case.as_str(), found[0].has_ended), (1, case, !scope.jobs.is_empty()));
        assert!(found[0].what.starts_with("process ") && found[0].what.ends_with(" (sleep 60)"), "{}", found[0].what);
    }
    let found = ours(&field, sweeper.inventory(&Scope::default()).await.unwrap().found);
    assert!(sweeper.cleanup(&found[0].job, Disposition::Delete).await.unwrap().items.is_empty());
    assert_eq!(field.living(), []);
    let inventory = sweeper.inventory(&scope).await.unwrap();
    assert!(inventory.absent.contains(&job.id()) && ours(&field, inventory.found).is_empty());
}

#[tokio::test]
async fn what_jobs_have_left_running_ends_with_the_session() {
    let field = Field::new();
    let job = field.run(DAEMON).await.job;
    assert!(field.scheduler.close(None).await.unwrap().is_empty());
    assert_eq!(field.living().len(), 1, "who takes the session over goes on with it");
    let removed = field.scheduler.close(Some(&field.session)).await.unwrap();
    assert_eq!((removed.len(), &removed[0].found.job.identifier), (1, &job.identifier));
    assert!(removed[0].left.is_empty());
    assert_eq!(field.living(), []);
    assert!(field.scheduler.close(Some(&field.session)).await.unwrap().is_empty());
}

#[test]
fn what_ran_on_another_machine_is_neither_found_nor_absent() {
    let field = Field::new();
    let job = field.plan("true");
    let here = &field.scheduler.here;
    let rows = [
        (here.clone(), true),
        (Machine { boot_id: "earlier".into(), ..here.clone() }, true),
        (Machine { host: "far".into(), boot_id: "x".into(), ..here.clone() }, false),
    ];
    for (machine, is_absent) in rows {
        let handle = LocalHandle { machine, ..LocalHandle::clone(&LocalHandle::of(&job).unwrap()) };
        let job = Job { handle: JobHandle::of(handle), ..job.clone() };
        let inventory = inventory::look(std::slice::from_ref(&job), here);
        assert_eq!(inventory.absent.contains(&job.id()), is_absent);
        assert!(ours(&field, inventory.found).is_empty());
    }
}

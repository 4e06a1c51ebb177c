//! Jobs that another harness launched, and one that was killed.

use super::{Field, chunks, ending, launch, until};
use crate::{LocalHandle, LocalScheduler};
use muster_core::job::{
    handle::JobHandle,
    scheduler::{Disposition, Disruption, Exit, Job, JobStatus, Scheduler},
    stage_folder::{EXIT_FILE, LOG_FILE},
};
use muster_host::process::{Machine, Process};
use std::{
    fs,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

const PLANS: &str = "MUSTER_TEST_PLANS";

/// Not a test by itself: the harness that [`jobs_outlive_a_killed_harness`] starts and kills. It launches the planned
/// jobs and writes what it launched beside the plans.
#[tokio::test]
#[ignore = "started by another test"]
async fn harness_to_be_killed() {
    let Ok(plans) = std::env::var(PLANS).map(PathBuf::from) else { return };
    let scheduler = LocalScheduler::default();
    let jobs: Vec<Job> = serde_json::from_slice(&fs::read(&plans).unwrap()).unwrap();
    let mut launched = Vec::new();
    for job in &jobs {
        launched.push(launch(&scheduler, job).await);
    }
    fs::write(plans.with_extension("tmp"), serde_json::to_vec(&launched).unwrap()).unwrap();
    fs::rename(plans.with_extension("tmp"), plans.with_extension("launched")).unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
}

/// A child that is killed with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn jobs_outlive_a_killed_harness() {
    let field = Field::new();
    let bodies = [
        "for i in 1 2 3 4 5 6 7 8; do echo out$i; echo err$i >&2; sleep 0.1; done; exit 6",
        "sleep 60",
        "setsid sh -c ': > up; exec sleep 60' & while [ ! -e up ]; do sleep 0.01; done; sleep 60",
        "sleep 60 & kill -KILL $PPID",
        "trap '' TERM; while :; do sleep 0.05; done",
    ];
    let planned: Vec<Job> = bodies.iter().map(|body| field.plan(body)).collect();
    let plans = field.folder.path().join("plans");
    fs::write(&plans, serde_json::to_vec(&planned).unwrap()).unwrap();
    let harness = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::found_again::harness_to_be_killed", "--ignored"])
        .env(PLANS, &plans)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut harness = Killed(harness);
    until("launched", || plans.with_extension("launched").exists()).await;
    until("the daemon is up", || planned[2].stage.join("up").exists()).await;
    harness.0.kill().unwrap();
    harness.0.wait().unwrap();

    let launched: Vec<Job> = serde_json::from_slice(&fs::read(plans.with_extension("launched")).unwrap()).unwrap();
    let scheduler = LocalScheduler::default();
    let first = ending(&scheduler, &launched[0]).await;
    assert_eq!(first.exits[0].exit, Exit::Code(6));
    let log = fs::read_to_string(launched[0].stage.join(LOG_FILE)).unwrap();
    assert_eq!(log.lines().skip(3).count(), 16, "{log}");
    assert_eq!(chunks(&scheduler, &launched[0]).await.len(), 3);

    // The store has the plan alone: the harness was killed before it could store the launch.
    let running = scheduler.wait(&planned[1], None).await.unwrap();
    assert!(matches!(running, JobStatus::Running { .. }), "{running:?}");
    let jobs = [&planned[1], &launched[2], &launched[3], &launched[4]];
    let cleanups = jobs.map(|job| scheduler.cleanup(job, Disposition::Stop));
    for leftovers in futures_util::future::join_all(cleanups).await {
        assert!(leftovers.unwrap().items.is_empty());
    }
    assert_eq!(field.living(), []);
    assert_eq!(ending(&scheduler, &planned[1]).await.exits[0].exit, Exit::Code(143));
    assert_eq!(ending(&scheduler, &launched[4]).await.exits[0].exit, Exit::Unknown);
}

#[tokio::test]
async fn a_job_that_left_no_trace_says_why() {
    let field = Field::new();
    let job = field.plan("true");
    let with = |change: &dyn Fn(&mut LocalHandle)| {
        let mut handle = LocalHandle::clone(&LocalHandle::of(&job).unwrap());
        change(&mut handle);
        Job { handle: JobHandle::of(handle), ..job.clone() }
    };
    let gone = Process { pid: 1 << 22, start_time: 1 };
    let killed = with(&|handle| handle.leader = Some(gone));
    let rebooted = with(&|handle| handle.machine.boot_id = "earlier".into());
    let elsewhere =
        with(&|handle| handle.machine = Machine { host: "far".into(), boot_id: "x".into(), ..field.scheduler.here.clone() });

    let status = field.scheduler.wait(&job, None).await.unwrap();
    assert!(
        matches!(&status, JobStatus::Gone { why: Disruption::Deleted, cause } if cause == "the job was never started"),
        "{status:?}"
    );
    let status = field.scheduler.wait(&rebooted, None).await.unwrap();
    assert!(
        matches!(&status, JobStatus::Gone { why: Disruption::Node, cause } if cause.ends_with("was rebooted while the job ran")),
        "{status:?}"
    );
    let ended = ending(&field.scheduler, &killed).await;
    assert_eq!(ended.exits[0].exit, Exit::Unknown);
    insta::assert_snapshot!(ended.cause.unwrap(), @"the job is gone and left no exit status: it was killed together with its shell");
    assert!(field.scheduler.wait(&elsewhere, None).await.is_err());
    let leftovers = field.scheduler.cleanup(&elsewhere, Disposition::Delete).await.unwrap();
    assert_eq!(leftovers.items, [format!("processes of job {} on far: run `muster sweep` there", job.identifier)]);

    // On a shared file system the exit file shows even an end on another host.
    fs::write(job.stage.join(EXIT_FILE), "4\n").unwrap();
    assert_eq!(ending(&field.scheduler, &elsewhere).await.exits[0].exit, Exit::Code(4));
}

#[tokio::test]
async fn a_recycled_pid_is_never_signalled() {
    let field = Field::new();
    let mut command = Command::new("sleep");
    let mut stranger = Killed(command.arg("20").env_clear().process_group(0).spawn().unwrap());
    let process = Process::of(i32::try_from(stranger.0.id()).unwrap());
    let job = field.plan("true");
    let here = &field.scheduler.here;
    let rows = [
        (Process { start_time: process.start_time - 1, ..process }, here.clone()),
        (process, Machine { boot_id: "earlier".into(), ..here.clone() }),
        (process, Machine { pid_namespace: "pid:[1]".into(), ..here.clone() }),
    ];
    for (leader, machine) in rows {
        let handle = LocalHandle { leader: Some(leader), machine, ..LocalHandle::clone(&LocalHandle::of(&job).unwrap()) };
        let job = Job { handle: JobHandle::of(handle), ..job.clone() };
        field.scheduler.cleanup(&job, Disposition::Delete).await.unwrap();
        assert!(process.lives(), "{leader:?}");
    }
    assert!(stranger.0.try_wait().unwrap().is_none());
    // The same with the right facts ends it: the rows above do not pass because nothing was tried.
    let handle = LocalHandle { leader: Some(process), ..LocalHandle::clone(&LocalHandle::of(&job).unwrap()) };
    let job = Job { handle: JobHandle::of(handle), ..job };
    assert!(field.scheduler.cleanup(&job, Disposition::Delete).await.unwrap().items.is_empty());
    assert!(stranger.0.wait().unwrap().code().is_none());
}

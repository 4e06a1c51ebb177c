//! The status of a job. Of a job of this harness, its own task knows it ([`own_job`]).
//!
//! A job of another harness, which is gone or still runs, is not our child. What is known of it comes from its handle, from
//! `/proc` and from the stage folder, where its shell leaves the exit status.

use crate::{
    LocalScheduler,
    plan::LocalHandle,
    processes::{
        exit, mark,
        own_job::{self, POLL, State},
    },
};
use muster_core::{
    error::{Class, SchedulerError},
    job::{
        scheduler::{Disruption, Exit, Job, JobStatus},
        stage_folder::{EXIT_FILE, LOG_FILE, SCRIPT_FILE, read_status},
    },
};
use muster_host::process::{Machine, Process, Reach};
use muster_stage::{blocking, fault};
use muster_text::time::Timestamp;
use std::{fs, path::Path, time::UNIX_EPOCH};
use tokio::time::sleep;

impl LocalScheduler {
    /// Returns as soon as the status differs from `seen`.
    pub(crate) async fn next_status(&self, job: &Job, seen: Option<&JobStatus>) -> Result<JobStatus, SchedulerError> {
        let status = self.wait_for_change(job, seen).await?;
        if let JobStatus::Ended(ending) = &status
            && let Some(why) = fault(job, ending).await
        {
            return Err(SchedulerError::plain(Class::Config, why));
        }
        Ok(status)
    }

    pub(crate) async fn wait_for_change(&self, job: &Job, seen: Option<&JobStatus>) -> Result<JobStatus, SchedulerError> {
        let Some(own) = self.own_job(job) else { return wait(job, &self.here, seen).await };
        let mut changes = own.subscribe();
        loop {
            let status = match &*changes.borrow_and_update() {
                State::Launching => JobStatus::NotSeen,
                State::Failed => break,
                State::Running { since, .. } => JobStatus::Running {
                    since: *since,
                    nodes: vec![self.here.host.clone()],
                    partly_ended: None,
                    has_ended: false,
                },
                State::Ended { ending, .. } => JobStatus::Ended((**ending).clone()),
            };
            if Some(&status) != seen {
                return Ok(status);
            }
            if changes.changed().await.is_err() {
                break;
            }
        }
        wait(job, &self.here, seen).await
    }
}

/// What is known of it now, and who leads it if it runs.
struct Observed {
    status: JobStatus,
    leader: Option<Process>,
}

/// Returns as soon as the status differs from `seen`.
pub(super) async fn wait(job: &Job, here: &Machine, seen: Option<&JobStatus>) -> Result<JobStatus, SchedulerError> {
    let handle = LocalHandle::of(job)?;
    loop {
        let (job, handle, here) = (job.clone(), handle.clone(), here.clone());
        match blocking(move || look(&job, &handle, &here)).await? {
            Observed { status, .. } if Some(&status) != seen => return Ok(status),
            Observed { leader: Some(leader), .. } => ended(leader).await,
            Observed { leader: None, .. } => std::future::pending().await,
        }
    }
}

/// What is known of it now.
fn look(job: &Job, handle: &LocalHandle, here: &Machine) -> Result<Observed, SchedulerError> {
    let reach = handle.machine.seen_from(here);
    let leader = if reach == Reach::Here { living_leader(job, handle) } else { None };
    let since = || handle.started.or_else(|| modified(&job.stage.join(SCRIPT_FILE))).unwrap_or_default();
    let host = &handle.machine.host;
    if leader.is_some() {
        return Ok(Observed {
            status: JobStatus::Running { since: since(), nodes: vec![host.clone()], partly_ended: None, has_ended: false },
            leader,
        });
    }
    let exit_file = job.stage.join(EXIT_FILE);
    let status = fs::read_to_string(&exit_file).ok().and_then(|content| read_status(&content));
    let log_written = modified(&job.stage.join(LOG_FILE));
    // The exit file is there from the start, and empty.
    let exit_written = || status.and_then(|_| modified(&exit_file));
    let ended_at = || exit_written().or(log_written).unwrap_or_default();
    let ended = |exit, cause: Option<String>| JobStatus::Ended(exit::ending(host, since(), ended_at(), exit, cause));
    let gone = |why, cause: String| JobStatus::Gone { why, cause };
    let status = match (status, reach) {
        (Some(code), _) => ended(Exit::Code(code), None),
        (None, Reach::RebootedSince) => gone(Disruption::Node, format!("{host} was rebooted while the job ran")),
        (None, Reach::OtherHost | Reach::OtherNamespace) => {
            let place = format!("see the processes of job {} on {host} from {}", job.identifier, here.host);
            return Err(SchedulerError::plain(Class::Infra, place));
        }
        (None, Reach::Here) if handle.leader.is_none() && log_written.is_none() => {
            gone(Disruption::Deleted, "the job was never started".to_owned())
        }
        (None, Reach::Here) => {
            let cause = "the job is gone and left no exit status: it was killed together with its shell";
            ended(Exit::Unknown, Some(cause.to_owned()))
        }
    };
    Ok(Observed { status, leader: None })
}

/// The leader that the store knows, or the marked one if the harness died before it could store it.
fn living_leader(job: &Job, handle: &LocalHandle) -> Option<Process> {
    if let Some(leader) = handle.leader {
        return leader.lives().then_some(leader);
    }
    let living = mark::scan();
    let is_leader = |one: &&mark::Living| {
        one.process.pid == one.group && one.mark.as_ref().is_some_and(|mark| mark.identifier == job.identifier)
    };
    // The shell is the oldest: what it starts in groups of its own starts later.
    living.iter().filter(is_leader).map(|one| one.process).min_by_key(|process| (process.start_time, process.pid))
}

/// Until it has exited.
async fn ended(leader: Process) {
    #[cfg(target_os = "linux")]
    if let Some(pid) = rustix::process::Pid::from_raw(leader.pid)
        && leader.lives()
        && own_job::wait_pidfd(pid).await
    {
        return;
    }
    while leader.lives() {
        sleep(POLL * 8).await;
    }
}

fn modified(path: &Path) -> Option<Timestamp> {
    let since_epoch = fs::metadata(path).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp(i64::try_from(since_epoch.as_micros()).ok()?))
}

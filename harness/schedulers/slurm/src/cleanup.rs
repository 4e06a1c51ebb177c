//! Ending a job, and seeing that it has ended.
//!
//! Slurm's records cannot be deleted, so `Stop` and `Delete` are the same here. A job whose end is known needs no command. What comes
//! later of a launch whose answer was lost finds the tombstone, and does nothing.

use crate::{
    files,
    plan::Handle,
    poll::{Cluster, Tracked},
};
use muster_core::{
    error::{Class, SchedulerError},
    job::scheduler::{Disposition, Job, JobStatus, Leftovers},
};
use muster_stage::blocking;
use muster_text::shell;
use std::{fs, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// After `KillWait`, for epilogues and slow nodes.
const EPILOGUE: Duration = Duration::from_secs(90);
/// How often a job is cancelled that goes on.
const AGAIN: Duration = Duration::from_secs(15);
/// How long a job is looked for that has no number.
const SEARCH: Duration = Duration::from_secs(3);

pub(crate) async fn clean(cluster: &Arc<Cluster>, job: &Job, how: Disposition) -> Result<Leftovers, SchedulerError> {
    if Handle::of(job)?.id.is_none() && cluster.commands.queue.is_unsubmitted(&job.identifier) {
        // It waited for its turn at sbatch, and never had it.
        let stage = job.stage.clone();
        blocking(move || tombstone(&stage)).await;
        return Ok(Leftovers { is_gone: true, ..Leftovers::default() });
    }
    let tracked = cluster.track(job)?;
    let was_over = tracked.is_over() && !tracked.handle().doubtful && tracked.others().is_empty();
    if !was_over {
        let stage = job.stage.clone();
        tracked.end();
        blocking(move || tombstone(&stage)).await;
        let left = end(cluster, &tracked, job).await?;
        if !left.is_empty() {
            return Ok(Leftovers { items: left, look: look(cluster, job, &tracked), ..Leftovers::default() });
        }
    }
    let look = look(cluster, job, &tracked);
    if how == Disposition::Delete {
        cluster.forget(job);
    }
    Ok(Leftovers { is_gone: true, look, ..Leftovers::default() })
}

/// A folder that is gone needs none.
fn tombstone(stage: &std::path::Path) {
    if let Err(error) = fs::write(stage.join(files::CANCELLED), "") {
        // A full disk: the job is cancelled all the same.
        drop(error);
    }
}

/// Cancels and waits. What is left has a line each.
async fn end(cluster: &Arc<Cluster>, tracked: &Tracked, job: &Job) -> Result<Vec<String>, SchedulerError> {
    let handle = tracked.handle();
    if tracked.handle().id.is_none() || handle.doubtful {
        search(cluster, tracked, &handle).await?;
    }
    let limit = cluster.config().await.kill_wait + EPILOGUE;
    let give_up = Instant::now() + limit;
    // What has ended by itself is over soon, and needs no command.
    if matches!(tracked.known().status, Some(JobStatus::Ended(_))) {
        let _ = timeout(AGAIN, over(tracked)).await;
    }
    loop {
        let mut ids: Vec<String> = tracked.others();
        if !tracked.is_over() {
            ids.extend(tracked.handle().id.clone());
        }
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        for id in &ids {
            cluster.cancel(id).await?;
        }
        let is_over = timeout(AGAIN.min(give_up.saturating_duration_since(Instant::now())), over(tracked)).await.is_ok();
        if is_over && tracked.others().is_empty() {
            return Ok(Vec::new());
        }
        if Instant::now() >= give_up {
            let id = ids.join(" ");
            return Ok(vec![format!("job {id} ({}) has not ended within {} s: scancel {id}", job.case, limit.as_secs())]);
        }
        if is_over {
            // Others of its name end with the next look.
            cluster.look_soon();
            sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Returns when nothing of it runs any more.
async fn over(tracked: &Tracked) {
    let mut known = tracked.subscribe();
    while !known.borrow_and_update().over && known.changed().await.is_ok() {}
}

/// A job whose number is not known, or which may have a double: by its name.
async fn search(cluster: &Arc<Cluster>, tracked: &Tracked, handle: &Handle) -> Result<(), SchedulerError> {
    let started = Instant::now();
    loop {
        let words = ["-h", "-a", "--me", "-n", &handle.name, "-o", "%A"];
        let found = cluster.answer("squeue", &words).await.map_err(|error| match error.class {
            Class::Infra => SchedulerError { class: Class::Outage, ..error },
            _ => error,
        })?;
        let ids: Vec<&str> = found.split_whitespace().collect();
        for id in &ids {
            cluster.cancel(id).await?;
        }
        if !ids.is_empty() || started.elapsed() >= SEARCH {
            if ids.is_empty() && tracked.handle().id.is_none() {
                tracked.give_up();
            }
            return Ok(());
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// The commands that show more of it.
fn look(cluster: &Cluster, job: &Job, tracked: &Tracked) -> Vec<String> {
    let Some(id) = tracked.handle().id.clone() else { return Vec::new() };
    let command = |words: &[&str]| {
        let via = cluster.place.via.iter().map(String::as_str);
        let place = cluster.commands.cluster();
        let (program, rest) = words.split_first().map_or(("", words), |(program, rest)| (*program, rest));
        let all = via.chain([program]).chain(place.iter().map(String::as_str)).chain(rest.iter().copied());
        all.map(shell::quote).collect::<Vec<_>>().join(" ")
    };
    let mut look = vec![command(&["scontrol", "show", "job", &id])];
    if cluster.known_config().accounting {
        look.push(command(&["sacct", "-j", &id, "-o", "jobid,state,exitcode,nodelist,maxrss"]));
    }
    look.push(format!("ls -l {}", shell::quote(&job.stage.to_string_lossy())));
    look
}

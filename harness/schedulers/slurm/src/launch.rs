//! Submitting a job, and finding it again if the answer was lost.
//!
//! A failed sbatch proves nothing: a controller that hangs takes the request later. So after a silence the job is looked for by its
//! name, and only if it is not there for a while it is submitted again. A guard in the script lets one of two jobs run.

use crate::{
    answers::{
        State,
        jobs::{QUEUE, queue},
    },
    command::NoAnswer,
    files::{self, UNFINISHED_EXIT, framing},
    plan::Handle,
    poll::{Cluster, is_outage},
};
use muster_core::{
    error::{Class, SchedulerError},
    job::{
        handle::JobHandle,
        scheduler::{Job, Launch},
        stage_folder::{LOG_FILE, SCRIPT_FILE},
    },
};
use muster_host::{clock, files as host_files};
use muster_stage::blocking;
use muster_text::time::Timestamp;
use regex::Regex;
use std::{
    io::{self, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

/// A site that takes no more jobs now: the next request comes after this time, or after the other while own jobs make room as they end.
const NO_ROOM: Duration = Duration::from_secs(30);
const OWN_JOBS: Duration = Duration::from_secs(5);
/// A request whose answer was lost has reached the controller by then, or never will.
const LOST: Duration = Duration::from_mins(1);
/// Between two looks for a job whose answer was lost.
const SEARCH: Duration = Duration::from_secs(5);

pub(crate) async fn launch(cluster: &Arc<Cluster>, job: &Job) -> Result<Launch, SchedulerError> {
    let handle = Handle::of(job)?;
    if handle.id.is_some() {
        return Ok(Launch::Launched(job.clone()));
    }
    let most = cluster.known_partition(handle.partition.as_deref()).and_then(|partition| partition.max_time);
    let script = within(&handle, most);
    let written = {
        let job = job.clone();
        blocking(move || write(&job, &script)).await
    };
    let prepared =
        written.map_err(|error| SchedulerError::new(Class::Infra, format!("write to {}", job.stage.display()), error))?;
    let lost = prepared.lost;
    if lost.is_some() || !prepared.is_new {
        // Launched before: by this process, whose answer was lost, or by one that is gone.
        if let Some(launched) = find(cluster, job, &handle, lost.or(prepared.written)).await? {
            return Ok(Launch::Launched(launched));
        }
        let now = clock::now();
        let since = lost.map_or(Duration::MAX, |lost| now.since(lost));
        if since < LOST {
            let what = format!("sbatch: its answer was lost, and there is no job {} yet", handle.name);
            return Err(SchedulerError { retry_after: Some(SEARCH), ..SchedulerError::plain(Class::Outage, what) });
        }
    }
    let started = clock::now();
    let path = job.stage.join(SCRIPT_FILE).to_string_lossy().into_owned();
    let words: Vec<String> = ["--parsable".to_owned()].into_iter().chain(cluster.commands.cluster()).chain([path]).collect();
    let doubtful = lost.is_some();
    let answer = match cluster.commands.submit(&words, &handle.pass_env, handle.policy.submit_limit).await {
        Ok(answer) => answer,
        Err(NoAnswer::Silent(..)) => {
            return recover(cluster, job, &handle, started, "sbatch: no answer").await;
        }
        Err(error) => return Err(error.into()),
    };
    if answer.is_ok() {
        let id = answer.stdout.lines().last().unwrap_or_default().trim().split(';').next().unwrap_or_default().to_owned();
        if id.is_empty() {
            return recover(cluster, job, &handle, started, "sbatch: an empty answer").await;
        }
        let launched = known(job, &handle, id, started, doubtful);
        cluster.track(&launched)?;
        return Ok(Launch::Launched(launched));
    }
    let complaint = answer.complaint();
    match classify(&complaint, &handle.policy.resubmit) {
        Refusal::NoRoom => {
            let retry_after = if cluster.has_launched_jobs() { OWN_JOBS } else { NO_ROOM };
            Ok(Launch::NotNow { why: shortened(&complaint), retry_after, created: None })
        }
        // It has not reached the controller.
        Refusal::Away => {
            Err(SchedulerError::plain(Class::Outage, format!("sbatch: {}", shortened(&complaint))).with_nothing_created())
        }
        Refusal::Lost => recover(cluster, job, &handle, started, &format!("sbatch: {}", shortened(&complaint))).await,
        Refusal::Identity => Err(SchedulerError::plain(Class::Infra, format!("sbatch: {complaint}")).with_nothing_created()),
        Refusal::Mistake => {
            Err(SchedulerError::plain(Class::Config, format!("sbatch: {}", shortened(&complaint))).with_nothing_created())
        }
    }
}

/// The answer was lost: the job may be there.
async fn recover(
    cluster: &Arc<Cluster>,
    job: &Job,
    handle: &Handle,
    started: Timestamp,
    why: &str,
) -> Result<Launch, SchedulerError> {
    let stage = job.stage.clone();
    let _ = blocking(move || std::fs::write(stage.join(LOST_FILE), started.0.to_string())).await;
    if let Ok(Some(launched)) = find(cluster, job, handle, Some(started)).await {
        Ok(Launch::Launched(launched))
    } else {
        let error = SchedulerError::plain(Class::Outage, format!("{why}; job {} may have been submitted", handle.name));
        Err(SchedulerError { retry_after: Some(SEARCH), ..error })
    }
}

/// When an answer was lost.
const LOST_FILE: &str = "rfm_job.lost";

/// Looks for a job by its name, in the stage folder, the queue and the accounting.
async fn find(
    cluster: &Arc<Cluster>,
    job: &Job,
    handle: &Handle,
    since: Option<Timestamp>,
) -> Result<Option<Job>, SchedulerError> {
    let since = since.unwrap_or_else(clock::now);
    let stage = job.stage.clone();
    let runner = blocking(move || files::runner(&stage)).await.map(|(id, _)| id);
    let id = if let Some(id) = runner {
        Some(id)
    } else {
        let rows = queue(&cluster.answer("squeue", &["-h", "--me", "-t", "all", "-n", &handle.name, "-o", QUEUE]).await?);
        // A refused sbatch leaves a job behind that never ran.
        let real = rows.iter().filter(|row| row.name == handle.name && row.reason != "BadConstraints");
        let listed = real.min_by_key(|row| row.submitted).map(|row| row.id.clone());
        match listed {
            Some(id) => Some(id),
            None if cluster.config().await.accounting => {
                let records = cluster.records_since("--name", &handle.name, since).await.unwrap_or_default();
                let real = |record: &&crate::answers::jobs::Record| {
                    record.name == handle.name && !(record.state == State::Failed && record.started.is_none())
                };
                records.iter().find(real).map(|record| record.id.clone())
            }
            None => None,
        }
    };
    let Some(id) = id else { return Ok(None) };
    let launched = known(job, handle, id, since, true);
    cluster.track(&launched)?;
    Ok(Some(launched))
}

/// The job with what its launch has found out.
fn known(job: &Job, handle: &Handle, id: String, launched: Timestamp, doubtful: bool) -> Job {
    job.with(JobHandle::of(Handle { id: Some(id), launched: Some(launched), doubtful, ..handle.clone() }))
}

/// What a launch has found in the stage folder.
struct Prepared {
    /// The files were not there before.
    is_new: bool,
    /// When they were written before.
    written: Option<Timestamp>,
    /// When an answer to an earlier launch was lost.
    lost: Option<Timestamp>,
}

/// Writes script and log, so that no file server has to say later that they are not there.
fn write(job: &Job, script: &str) -> io::Result<Prepared> {
    let log = job.stage.join(LOG_FILE);
    let lost = std::fs::read_to_string(job.stage.join(LOST_FILE)).ok();
    let lost = lost.and_then(|text| text.trim().parse().ok()).map(Timestamp);
    let is_new = match host_files::create_new(&log) {
        Ok(mut file) => {
            file.write_all(framing(&job.identifier).as_bytes())?;
            file.sync_all()?;
            true
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(error),
    };
    if is_new {
        let path = job.stage.join(SCRIPT_FILE);
        host_files::write_script(&path, script)?;
        std::fs::File::open(&path)?.sync_all()?;
        host_files::create(&job.stage.join(UNFINISHED_EXIT))?;
    }
    Ok(Prepared { is_new, written: modified(&log).filter(|_| !is_new), lost })
}

fn modified(path: &Path) -> Option<Timestamp> {
    let since = std::fs::metadata(path).ok()?.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp(i64::try_from(since.as_micros()).ok()?))
}

/// The script with a time limit that its partition allows. Muster's own limit is exact; Slurm's, a minute longer, only ends what
/// Muster has lost.
fn within(handle: &Handle, most: Option<u64>) -> String {
    let (Some(minutes), Some(most)) = (handle.minutes, most) else { return handle.script.clone() };
    if minutes == most + 1 {
        let line = |minutes: u64| format!("#SBATCH --time={minutes}\n");
        return handle.script.replacen(&line(minutes), &line(most), 1);
    }
    handle.script.clone()
}

/// Why sbatch has not submitted a job.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// There is a limit on jobs, which passes.
    NoRoom,
    /// The controller was not reached.
    Away,
    /// It was reached, and did not answer.
    Lost,
    /// It does not believe who asks.
    Identity,
    /// This can never be submitted.
    Mistake,
}

fn classify(complaint: &str, resubmit: &[String]) -> Refusal {
    const FULL: [&str; 6] = [
        "MaxSubmitJob",
        "GrpSubmitJobs",
        "temporarily unable to accept job",
        "job queue full",
        "Rate limit exceeded",
        "RPC rate limited",
    ];
    const IDENTITY: [&str; 4] = ["authentication", "If munged is up", "Invalid authentication", "Munge encode failed"];
    const AWAY: [&str; 4] = ["Unable to contact", "connect failure", "Connection refused", "Connection timed out"];
    let has = |signs: &[&str]| signs.iter().any(|sign| complaint.contains(sign));
    let again = resubmit.iter().filter_map(|text| Regex::new(text).ok()).any(|regex| regex.is_match(complaint));
    if again || has(&FULL) {
        Refusal::NoRoom
    } else if has(&IDENTITY) {
        Refusal::Identity
    } else if has(&AWAY) {
        Refusal::Away
    } else if is_outage(complaint) {
        Refusal::Lost
    } else {
        Refusal::Mistake
    }
}

/// Without what every line begins with.
fn shortened(complaint: &str) -> String {
    complaint.replace("sbatch: error: ", "").replace("Batch job submission failed: ", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sbatch_says_decides_whether_a_job_may_exist() {
        let rows = [
            (
                "sbatch: error: QOSMaxSubmitJobPerUserLimit; sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
                Refusal::NoRoom,
            ),
            (
                "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit)",
                Refusal::Mistake,
            ),
            ("sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)", Refusal::Away),
            ("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", Refusal::Lost),
            ("sbatch: error: Batch job submission failed: Protocol authentication error", Refusal::Identity),
            (
                "sbatch: error: invalid partition specified: gpuu; sbatch: error: Batch job submission failed: Invalid partition name specified",
                Refusal::Mistake,
            ),
            ("sbatch: error: plugin: try later", Refusal::NoRoom),
        ];
        for (complaint, refusal) in rows {
            assert_eq!(classify(complaint, &["try later".to_owned()]), refusal, "{complaint}");
        }
    }
}

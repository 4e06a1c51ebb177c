//! Submitting a job, and finding it again if the answer was lost.
//!
//! A failed sbatch proves nothing: a controller that hangs takes the request later. So after a silence the job is looked for by its
//! name, and only if it is not there for a while it is submitted again. A guard in the script lets one of two jobs run.

mod files;
mod refusal;
mod validate;

pub(crate) use validate::validate;

use crate::{
    answers::jobs::{QUEUE, queue},
    command::{Delay, LONG_PATIENCE, LimitKey, NoAnswer, PATIENCE, Turn},
    files::runner,
    launch::{
        files::{note_lost, prepare, text},
        refusal::{Refusal, classify, shortened, submitted, with_options},
    },
    plan::Handle,
    poll::Cluster,
};
use muster_core::{
    error::{Class, SchedulerError},
    job::{
        handle::JobHandle,
        scheduler::{Job, Launch},
        stage_folder::SCRIPT_FILE,
    },
};
use muster_host::clock;
use muster_stage::blocking;
use muster_text::time::Timestamp;
use std::{sync::Arc, time::Duration};

/// After a launch had no turn: it waits on in the queue at once.
const AGAIN: Duration = Duration::from_millis(100);
/// A request whose answer was lost has reached the controller by then, or never will.
const LOST: Duration = Duration::from_mins(1);
/// Between two looks for a job whose answer was lost.
const SEARCH: Duration = Duration::from_secs(5);

/// One launch.
struct Attempt<'a> {
    cluster: &'a Arc<Cluster>,
    job: &'a Job,
    handle: Arc<Handle>,
    limits: LimitKey,
}

pub(crate) async fn launch(cluster: &Arc<Cluster>, job: &Job) -> Result<Launch, SchedulerError> {
    let handle = Handle::of(job)?;
    if handle.id.is_some() {
        return Ok(Launch::Launched(job.clone()));
    }
    let limits = LimitKey::of(&handle.script);
    let attempt = Attempt { cluster, job, handle, limits };
    let commands = &cluster.commands;
    let mut lost = None;
    if !commands.queue.is_unsubmitted(&job.identifier) {
        match attempt.prepared().await? {
            Found::Launched(launched) => return Ok(Launch::Launched(*launched)),
            Found::Lost(at) => lost = Some(at),
            Found::Nothing => commands.queue.set_unsubmitted(&job.identifier),
        }
    }
    let patience = if lost.is_some() { LONG_PATIENCE } else { PATIENCE };
    let own_jobs = || cluster.has_launched_jobs();
    let mut turn = match commands.queue.turn(&job.identifier, &attempt.limits, lost.is_some(), patience, own_jobs).await {
        Ok(turn) => turn,
        Err(delay) => return delayed(delay, lost.is_some()),
    };
    turn.submits();
    attempt.submit(turn, lost.is_some()).await
}

/// What there is of a job before it is submitted.
enum Found {
    Launched(Box<Job>),
    /// Its files, and since then no job: the answer to its launch was lost.
    Lost(Timestamp),
    Nothing,
}

impl Attempt<'_> {
    /// Writes the files, unless they are there; then it was launched before: by this process, whose answer was lost, or by one
    /// that is gone.
    async fn prepared(&self) -> Result<Found, SchedulerError> {
        let script = text(&self.handle, &self.cluster.commands);
        let (stage, identifier) = (self.job.stage.clone(), self.job.identifier.clone());
        let written = blocking(move || prepare(&stage, &identifier, &script)).await;
        let not_written = |error| SchedulerError::new(Class::Infra, format!("write to {}", self.job.stage.display()), error);
        let prepared = written.map_err(not_written)?;
        if prepared.lost.is_none() && prepared.is_new {
            return Ok(Found::Nothing);
        }
        if let Some(launched) = self.find(prepared.lost.or(prepared.written)).await? {
            return Ok(Found::Launched(Box::new(launched)));
        }
        let Some(lost) = prepared.lost else { return Ok(Found::Nothing) };
        if clock::now().since(lost) < LOST {
            let what = format!("sbatch: its answer was lost, and there is no job {} yet", self.handle.name);
            return Err(SchedulerError { retry_after: Some(SEARCH), ..SchedulerError::plain(Class::Outage, what) });
        }
        Ok(Found::Lost(lost))
    }

    async fn submit(&self, turn: Turn<'_>, doubtful: bool) -> Result<Launch, SchedulerError> {
        let (handle, commands) = (&self.handle, &self.cluster.commands);
        let started = clock::now();
        let path = self.job.stage.join(SCRIPT_FILE).to_string_lossy().into_owned();
        let words: Vec<String> = ["--parsable".to_owned()].into_iter().chain(commands.cluster()).chain([path]).collect();
        let answer = match commands.submit(&turn, &words, &handle.pass_env, handle.policy.submit_limit).await {
            Ok(answer) => answer,
            Err(NoAnswer::Silent(..)) => return self.recover(turn, started, "sbatch: no answer").await,
            Err(error) => {
                turn.mistaken();
                return Err(error.into());
            }
        };
        let id = submitted(&answer.stdout);
        if let Some(id) = id.filter(|_| answer.is_ok()) {
            let launched = self.known(id.to_owned(), started, doubtful);
            let tracked = self.cluster.track(&launched)?;
            turn.let_in(move || tracked.is_over());
            return Ok(Launch::Launched(launched));
        }
        if answer.is_ok() {
            return self.recover(turn, started, "sbatch: an answer without the number of a job").await;
        }
        let complaint = answer.complaint();
        let why = shortened(&complaint);
        if id.is_some() {
            // It may be the job's, or a figure of a wrapper.
            return self.recover(turn, started, &format!("sbatch: {why}")).await;
        }
        match classify(&answer, &handle.policy.resubmit) {
            Refusal::NoRoom => {
                turn.refused(&why);
                Ok(Launch::NotNow { why, retry_after: AGAIN, created: None })
            }
            Refusal::Away => {
                let what = format!("sbatch: {why}");
                turn.no_answer(&what, true);
                Err(SchedulerError::plain(Class::Outage, what).with_nothing_created())
            }
            Refusal::Lost => self.recover(turn, started, &format!("sbatch: {why}")).await,
            Refusal::Identity => {
                turn.mistaken();
                Err(SchedulerError::plain(Class::Infra, format!("sbatch: {complaint}")).with_nothing_created())
            }
            Refusal::Mistake => {
                turn.mistaken();
                let why = with_options(&why, &handle.script);
                Err(SchedulerError::plain(Class::Config, format!("sbatch: {why}")).with_nothing_created())
            }
        }
    }

    /// The answer was lost: the job may be there.
    async fn recover(&self, turn: Turn<'_>, started: Timestamp, why: &str) -> Result<Launch, SchedulerError> {
        turn.no_answer(why, false);
        let stage = self.job.stage.clone();
        blocking(move || note_lost(&stage, started)).await;
        if let Ok(Some(launched)) = self.find(Some(started)).await {
            Ok(Launch::Launched(launched))
        } else {
            let error = SchedulerError::plain(Class::Outage, format!("{why}; job {} may have been submitted", self.handle.name));
            Err(SchedulerError { retry_after: Some(SEARCH), ..error })
        }
    }

    /// Looks for a job by its name, in the stage folder, the queue and the accounting.
    async fn find(&self, since: Option<Timestamp>) -> Result<Option<Job>, SchedulerError> {
        let (cluster, handle) = (self.cluster, &self.handle);
        let since = since.unwrap_or_else(clock::now);
        let stage = self.job.stage.clone();
        let runner = blocking(move || runner(&stage)).await.map(|(id, _)| id);
        let id = if let Some(id) = runner {
            Some(id)
        } else {
            let rows =
                queue(&cluster.answer("squeue", &["-h", "-a", "--me", "-t", "all", "-n", &handle.name, "-o", QUEUE]).await?);
            let real = rows.iter().filter(|row| row.name == handle.name && !row.was_refused());
            let listed = real.min_by_key(|row| row.submitted).map(|row| row.id.clone());
            match listed {
                Some(id) => Some(id),
                None if cluster.config().await.accounting => {
                    let records = cluster.records_since("--name", &handle.name, since).await.unwrap_or_default();
                    let mut real = records.iter().filter(|record| record.name == handle.name && !record.was_refused());
                    real.next().map(|record| record.id.clone())
                }
                None => None,
            }
        };
        let Some(id) = id else { return Ok(None) };
        let launched = self.known(id, since, true);
        let tracked = cluster.track(&launched)?;
        cluster.commands.queue.found(&self.job.identifier, &self.limits, move || tracked.is_over());
        Ok(Some(launched))
    }

    /// The job with what its launch has found out. Its script is in the stage folder.
    fn known(&self, id: String, launched: Timestamp, doubtful: bool) -> Job {
        let script = String::new();
        let handle = Handle { id: Some(id), launched: Some(launched), doubtful, script, ..(*self.handle).clone() };
        self.job.with(JobHandle::of(handle))
    }
}

/// It had no turn. Nothing was created, and it keeps its place.
fn delayed(delay: Delay, is_lost: bool) -> Result<Launch, SchedulerError> {
    let why = match delay {
        Delay::Busy => "waits for its turn at sbatch".to_owned(),
        Delay::Full(why) => why,
        Delay::Away(why) => {
            let error = SchedulerError { retry_after: Some(PATIENCE), ..SchedulerError::plain(Class::Outage, why) };
            return Err(if is_lost { error } else { error.with_nothing_created() });
        }
    };
    Ok(Launch::NotNow { why, retry_after: AGAIN, created: None })
}

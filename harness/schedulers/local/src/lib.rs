//! The scheduler `local`: job scripts as processes of this machine.
//!
//! Each job is a `/bin/sh` in a process group of its own, its standard input empty, its output appended to a file in
//! the stage folder by itself. It owes nothing to the harness: when that is killed, the job runs on, its log stays
//! whole and its exit status is written beside it; the handle in the store, or the marks in `/proc`, find it again.
//!
//! ```text
//! handle   what the store keeps          launch  stage folder and spawn     process  facts of the OS
//! live     a job of this harness         logs    where its log lies         mark     RFM_ID in /proc
//! again    a job of an earlier harness   exit    status to words            detect   this machine's processor
//! end      ending strangers              sweep    what dead sessions left    owner   leases
//! ```
//! Not done here: any limit but the two seconds between TERM and KILL, any decision on keeping the stage folder (it is
//! the engine's), and daemons that leave the process group, until a sweep looks for marks. Linux is what is tested;
//! other Unix systems have a plain fallback without marks.

mod cleanup;
pub mod detect;
mod handle;
pub mod inventory;
mod launch;
mod logs;
mod processes;
pub mod staging;
mod status;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use crate::{
    cleanup::Target,
    launch::{Environment, HARNESS, Refusal},
    processes::{
        blocking, exit,
        live::{Live, State, lock},
        mark,
    },
    staging::Stager,
};
use futures_util::{FutureExt, StreamExt, TryFutureExt, stream};
use muster_core::{
    case::Identifier,
    error::{Class, SchedulerError},
    scheduler::{Chunks, Disposition, Exit, Fut, Job, JobStatus, Launch, Leftovers, LogMarks, Scheduler, Scope, Staged},
    scheduler_kind::SchedulerKind,
    stage_folder,
    workload::{Program, Staging, Workload},
};
use muster_host::process::{Machine, Process, Reach};
use muster_text::{diagnostic::Diagnostic, time::Timestamp};
use std::{
    collections::HashMap,
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

pub use crate::{
    handle::LocalHandle,
    processes::mark::{RFM_ID, RFM_SESSION},
};

/// After `NotNow`: a process or a descriptor is free again when some job ends.
const ROOM_RETRY: Duration = Duration::from_secs(1);

type Jobs = Arc<Mutex<HashMap<Identifier, Arc<Live>>>>;

/// Processes of this machine. One instance serves all local partitions of a session.
#[derive(Debug)]
pub struct LocalScheduler {
    here: Machine,
    environment: Arc<Environment>,
    jobs: Jobs,
    stager: Stager,
}

impl Default for LocalScheduler {
    fn default() -> Self {
        Self::new()
    }
}

impl LocalScheduler {
    /// Reads the machine's and the environment's facts once, so that planning needs no I/O.
    pub fn new() -> Self {
        Self {
            here: Machine::here(),
            environment: Arc::new(std::env::vars_os().collect()),
            jobs: Jobs::default(),
            stager: Stager::default(),
        }
    }

    /// Lets jobs find the harness, and its kernels, as `$MUSTER`.
    #[must_use]
    pub fn with_harness(mut self, program: PathBuf) -> Self {
        Arc::make_mut(&mut self.environment).insert(HARNESS.into(), program.into());
        self
    }

    fn live(&self, job: &Job) -> Option<Arc<Live>> {
        lock(&self.jobs).get(&job.identifier).cloned()
    }

    /// The entry of this identifier, and whether this call made it.
    fn enter(&self, job: &Job, host: &str) -> (Arc<Live>, bool) {
        let mut jobs = lock(&self.jobs);
        let mut is_new = false;
        let live = jobs.entry(job.identifier.clone()).or_insert_with(|| {
            is_new = true;
            Arc::new(Live::new(host.into()))
        });
        (live.clone(), is_new)
    }

    async fn launch_once(&self, job: &Job) -> Result<Launch, SchedulerError> {
        let handle = LocalHandle::of(job)?;
        if handle.leader.is_some() {
            return Ok(Launch::Launched(job.clone()));
        }
        let (live, is_new) = self.enter(job, &handle.machine.host);
        if is_new {
            let (job, environment, jobs, live) = (job.clone(), self.environment.clone(), self.jobs.clone(), live.clone());
            // On a thread of its own it comes to its end even if this future is dropped.
            let spawning = blocking(move || match launch::spawn(&job, &handle, &environment) {
                Ok(spawned) => {
                    live.begin(spawned);
                    None
                }
                Err(refusal) => {
                    lock(&jobs).remove(&job.identifier);
                    live.fail();
                    Some(refusal)
                }
            });
            match spawning.await {
                None => {}
                Some(Refusal::NoRoom(why)) => return Ok(Launch::NotNow { why, retry_after: ROOM_RETRY }),
                Some(Refusal::Failed(error)) => return Err(error),
            }
        }
        match beyond_launch(&live).await {
            Some((leader, since)) => Ok(Launch::Launched(handle::launched(job, leader, since))),
            None => Err(SchedulerError::plain(Class::Infra, format!("launch {} at the second call", job.identifier))),
        }
    }

    async fn wait_for_change(&self, job: &Job, seen: Option<&JobStatus>) -> Result<JobStatus, SchedulerError> {
        let Some(live) = self.live(job) else { return status::wait(job, &self.here, seen).await };
        let mut changes = live.subscribe();
        loop {
            let status = match &*changes.borrow_and_update() {
                State::Launching => JobStatus::NotSeen,
                State::Failed => break,
                State::Running { since, .. } => {
                    JobStatus::Running { since: *since, nodes: vec![self.here.host.clone()], partly_ended: None }
                }
                State::Ended { ending, .. } => JobStatus::Ended((**ending).clone()),
            };
            if Some(&status) != seen {
                return Ok(status);
            }
            if changes.changed().await.is_err() {
                break;
            }
        }
        status::wait(job, &self.here, seen).await
    }

    async fn clean(&self, job: &Job, how: Disposition) -> Result<Leftovers, SchedulerError> {
        let host = &self.here.host;
        let Some(live) = self.live(job) else { return self.clean_again(job).await };
        let leader = beyond_launch(&live).await.map(|(leader, _)| leader);
        if !live.stop().await {
            let group = leader.map_or(0, |leader| leader.pid);
            let item = format!("processes of job {} on {host} that do not end: kill -KILL -- -{group}", job.identifier);
            return Ok(Leftovers { items: vec![item], ..Leftovers::default() });
        }
        if how == Disposition::Delete {
            lock(&self.jobs).remove(&job.identifier);
        }
        Ok(Leftovers::default())
    }

    /// A job of an earlier harness, perhaps one that was killed before it could tell the store of the launch.
    async fn clean_again(&self, job: &Job) -> Result<Leftovers, SchedulerError> {
        let handle = LocalHandle::of(job)?;
        let host = &handle.machine.host;
        match handle.machine.seen_from(&self.here) {
            Reach::Here => {}
            Reach::RebootedSince => return Ok(Leftovers::default()),
            Reach::OtherHost | Reach::OtherNamespace => {
                let items = vec![format!("processes of job {} on {host}: run `muster sweep` there", job.identifier)];
                return Ok(Leftovers { items, ..Leftovers::default() });
            }
        }
        let left = cleanup::end(&[Target { identifier: job.identifier.clone(), leader: handle.leader }]).await.concat();
        let items = if left.is_empty() { Vec::new() } else { vec![exit::leftover(&job.identifier, host, &left)] };
        Ok(Leftovers { items, ..Leftovers::default() })
    }

    async fn list_marked(&self, scope: &Scope) -> Result<Vec<Job>, SchedulerError> {
        let scan = || mark::jobs(&mark::scan());
        let in_scope = blocking(scan)
            .await
            .into_iter()
            .filter(|(mark, _)| scope.session.as_ref().is_none_or(|session| *session == mark.session));
        let jobs = in_scope.map(|(mark, found)| {
            let handle = LocalHandle {
                script: String::new(),
                staging: None,
                pass_env: Vec::new(),
                machine: self.here.clone(),
                leader: None,
                started: None,
                found,
            };
            Job {
                identifier: mark.identifier,
                session: mark.session,
                case: String::new(),
                scheduler: SchedulerKind::Local,
                stage: PathBuf::new(),
                handle: handle.into_value(),
            }
        });
        Ok(jobs.collect())
    }
}

/// Another process may launch it, with another working directory.
fn absolute(staging: Staging) -> Staging {
    Staging { folder: std::path::absolute(&staging.folder).unwrap_or(staging.folder), ..staging }
}

/// Why the program of a job that is over was never begun: its script could not load a module, say. Then there is nothing
/// to judge, whatever statuses the check allows.
async fn fault(job: &Job, status: &JobStatus) -> Option<String> {
    let JobStatus::Ended(ending) = status else { return None };
    // What passes need not be asked.
    ending.exits.iter().find(|section| section.exit == Exit::Code(stage_folder::FAULT_STATUS))?;
    let path = job.stage.join(stage_folder::FAULT_FILE);
    let text = blocking(move || std::fs::read_to_string(path)).await.ok()?;
    Some(text.trim_end().to_owned())
}

/// Waits until the launch is answered: its leader and start, or `None` if it came to nothing.
async fn beyond_launch(live: &Live) -> Option<(Process, Timestamp)> {
    let mut states = live.subscribe();
    let state = states.wait_for(|state| *state != State::Launching).await.ok()?;
    match &*state {
        State::Running { leader, since } => Some((*leader, *since)),
        State::Ended { leader, ending } => Some((*leader, ending.started)),
        State::Launching | State::Failed => None,
    }
}

impl Scheduler for LocalScheduler {
    fn plan(&self, workload: &Workload) -> Result<Job, Vec<Diagnostic>> {
        let Program::Script { text, pass_env } = &workload.program else {
            let mistake = Diagnostic::general(format!("`{}` has no script for the scheduler `local`", workload.case));
            return Err(vec![mistake.hint("set `executable` or `command`")]);
        };
        if let Some(node) = workload.sched_options.get("node").and_then(muster_text::Value::as_str)
            && node != rustix::system::uname().nodename().to_string_lossy()
        {
            let mistake =
                Diagnostic::general(format!("`{}` is to run on {node}, and `local` runs on this machine", workload.case));
            return Err(vec![mistake.hint("leave the node out, or name this one")]);
        }
        let handle = LocalHandle {
            script: text.clone(),
            staging: workload.staging.clone().map(absolute),
            pass_env: pass_env.clone(),
            machine: self.here.clone(),
            leader: None,
            started: None,
            found: Vec::new(),
        };
        Ok(Job {
            identifier: workload.identifier.clone(),
            session: workload.session.clone(),
            case: workload.case.to_string(),
            scheduler: SchedulerKind::Local,
            stage: workload.stage.clone(),
            handle: handle.into_value(),
        })
    }

    fn stage<'a>(&'a self, job: &'a Job, mut cancelled: Pin<Box<dyn Future<Output = ()> + Send + 'a>>) -> Option<Staged<'a>> {
        // A job that cannot be read is refused at its launch.
        let LocalHandle { staging, leader: None, .. } = LocalHandle::of(job).ok()? else { return None };
        let staging = staging?;
        let what = staging.folder.display().to_string();
        let done = Box::pin(async move { self.stager.stage(staging, job.stage.clone(), cancelled.as_mut()).await });
        Some(Staged { what, done })
    }

    fn launch<'a>(&'a self, job: &'a Job) -> Fut<'a, Launch> {
        Box::pin(self.launch_once(job))
    }

    fn wait<'a>(&'a self, job: &'a Job, seen: Option<&'a JobStatus>) -> Fut<'a, JobStatus> {
        Box::pin(async move {
            let status = self.wait_for_change(job, seen).await?;
            match fault(job, &status).await {
                Some(why) => Err(SchedulerError::plain(Class::Config, why)),
                None => Ok(status),
            }
        })
    }

    /// Waits for the end, then names the part of the file. What is being written now is read from the file itself.
    fn collect_logs<'a>(&'a self, job: &'a Job, _from: LogMarks) -> Chunks<'a> {
        let ended = async move {
            let mut status = self.wait_for_change(job, None).await?;
            while let JobStatus::NotSeen | JobStatus::Pending { .. } | JobStatus::Running { .. } = status {
                status = self.wait_for_change(job, Some(&status)).await?;
            }
            let started = if let JobStatus::Ended(ending) = status { ending.started } else { Timestamp::default() };
            let (job, host) = (job.clone(), self.host_of(job));
            blocking(move || logs::chunks(&job, &host, started)).await
        };
        let chunks = ended.map_ok(|chunks| stream::iter(chunks).map(Ok)).map(|result| match result {
            Ok(chunks) => chunks.left_stream(),
            Err(error) => stream::iter([Err(error)]).right_stream(),
        });
        Box::pin(chunks.flatten_stream())
    }

    /// `Stop` and `Delete` are the same here: processes end, and the stage folder is the engine's.
    fn cleanup<'a>(&'a self, job: &'a Job, how: Disposition) -> Fut<'a, Leftovers> {
        Box::pin(self.clean(job, how))
    }

    fn list<'a>(&'a self, scope: &'a Scope) -> Fut<'a, Vec<Job>> {
        Box::pin(self.list_marked(scope))
    }
}

impl LocalScheduler {
    /// The host in the log's framing: the one that launched.
    fn host_of(&self, job: &Job) -> String {
        job.handle["machine"]["host"].as_str().unwrap_or(&self.here.host).to_owned()
    }
}

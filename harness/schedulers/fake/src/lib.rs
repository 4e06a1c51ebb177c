//! The scheduler `fake`: follows a scenario of statuses, logs, delays and errors. For rehearsals, and for every test of
//! the form "what if".
//!
//! Its server does what real ones do: it finishes a request whose client is gone, and keeps
//! everything that is not deleted. Time is tokio's, so a test with a paused clock runs hours at once. The latest calls
//! are recorded, in order.

mod scenario;
mod server;

use self::server::Server;
use futures_util::{StreamExt, stream};
use muster_core::{
    case::Identifier,
    error::{Class, SchedulerError},
    job::{
        descriptor::{Descriptor, Files, Form, Rehearses, SharedKey},
        inventory::{Inventory, Scope},
        scheduler::{Chunk, Chunks, Disposition, Disruption, Fut, Job, JobStatus, Launch, Leftovers, LogMarks, Scheduler},
        workload::Workload,
    },
};
use muster_host::files;
use muster_text::{Value, decode::Key, diagnostic::Diagnostic, yaml::Node};
use std::{collections::BTreeMap, io, path::Path, sync::Arc, time::Duration};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, sleep_until},
};

/// The key of a check that holds its scenario.
const KEY: &str = "fake";

/// The facts about the scheduler that need no connection.
pub static SCHEDULER: Descriptor = Descriptor {
    names: &["fake"],
    descr: "a scenario of statuses and logs: nothing runs",
    forms: &[Form::Anything],
    own_keys: &[Key::of::<Node>(KEY, "The scenario of the `fake` scheduler: statuses, logs, delays and errors.")],
    shared_keys: &[
        ("num_nodes", SharedKey::Ignores),
        ("num_tasks_per_node", SharedKey::Ignores),
        ("num_tasks_per_socket", SharedKey::Ignores),
        ("num_tasks_per_core", SharedKey::Ignores),
        ("num_cpus_per_task", SharedKey::Ignores),
        ("num_gpus_per_node", SharedKey::Ignores),
        ("exclusive_access", SharedKey::Ignores),
        ("use_multithreading", SharedKey::Ignores),
        ("extra_resources", SharedKey::Ignores),
    ],
    starters: &[("fake", include_str!("starter.yaml"))],
    files: Files::Unused,
    outlives_harness: false,
    rehearses: Some(Rehearses { key: KEY, check }),
    connect: |_| Ok(Arc::new(FakeScheduler::default())),
    look: Some(|_| Ok(Arc::new(FakeScheduler::default()))),
    ..Descriptor::NONE
};

/// One call of the trait's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// `plan`
    Plan,
    /// `launch`
    Launch,
    /// `wait`
    Wait,
    /// `collect_logs`
    Collect,
    /// `cleanup` with `Stop`
    Stop,
    /// `cleanup` with `Delete`
    Delete,
}

/// Follows the scenarios of its jobs.
#[derive(Debug, Clone, Default)]
pub struct FakeScheduler {
    server: Arc<Server>,
}

impl FakeScheduler {
    /// The latest 10,000 calls, in order.
    pub fn calls(&self) -> Vec<(Call, Identifier)> {
        self.server.calls()
    }

    /// Returns the jobs that were launched and not deleted.
    pub fn jobs(&self) -> Vec<Job> {
        self.server.jobs()
    }

    /// Returns the number of launches that have made a job, deleted or not.
    pub fn created(&self) -> usize {
        self.server.created()
    }
}

/// Writes the files that a job leaves.
fn write_files(stage: &Path, texts: &BTreeMap<String, String>) -> io::Result<()> {
    for (path, text) in texts {
        let path = stage.join(path);
        files::create_dir_all(path.parent().unwrap_or(stage))?;
        files::write(&path, text)?;
    }
    Ok(())
}

impl Scheduler for FakeScheduler {
    fn plan(&self, workload: &Workload) -> Result<Job, Vec<Diagnostic>> {
        self.server.record(Call::Plan, &workload.identifier);
        let scenario = workload.own.get(KEY).cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        scenario::read(&scenario)?;
        // As text: ten thousand jobs wait at once, and a tree of values is many times as large.
        Ok(Job::of(workload, SCHEDULER.own_name(), Value::from(scenario.to_string()).into()))
    }

    fn launch<'a>(&'a self, job: &'a Job) -> Fut<'a, Launch> {
        Box::pin(async move {
            self.server.record(Call::Launch, &job.identifier);
            let scenario = stored(&job.handle).ok_or_else(|| unreadable(&job.handle))?;
            write_files(&job.stage, &scenario.files)
                .map_err(|error| SchedulerError::new(Class::Infra, "write the files of the scenario", error))?;
            let delay = Duration::from_millis(scenario.launch.delay_ms);
            let (server, job) = (Arc::clone(&self.server), job.clone());
            let (reply, answer) = oneshot::channel();
            tokio::spawn(async move {
                sleep(delay).await;
                let _ = reply.send(server.create(job, scenario));
            });
            answer.await.unwrap_or_else(|_| Err(SchedulerError::plain(Class::Infra, "reach the server")))
        })
    }

    fn wait<'a>(&'a self, job: &'a Job, seen: Option<&'a JobStatus>) -> Fut<'a, JobStatus> {
        Box::pin(async move {
            self.server.record(Call::Wait, &job.identifier);
            loop {
                let Some(found) = self.server.find(job) else { return missing(seen).await };
                let changed = found.changed();
                let now = Instant::now();
                let status = found.status(now)?;
                if Some(&status) != seen {
                    return Ok(status);
                }
                tokio::select! {
                    () = changed => {}
                    () = until(found.next_change(now)) => {}
                }
            }
        })
    }

    fn collect_logs<'a>(&'a self, job: &'a Job, from: LogMarks) -> Chunks<'a> {
        self.server.record(Call::Collect, &job.identifier);
        let Some(found) = self.server.find(job) else { return stream::empty().boxed() };
        let sent = found.log(&from).into_iter();
        stream::unfold((found, Some(sent)), |(found, sent)| async move {
            let mut sent = sent?;
            let batch: Vec<Result<Chunk, SchedulerError>> = match sent.next() {
                Some((at, chunk)) if found.reaches(at).await => vec![chunk],
                _ => {
                    let ends = found.log_ends().await.into_iter().map(Ok).collect();
                    return Some((ends, (found, None)));
                }
            };
            Some((batch, (found, Some(sent))))
        })
        .flat_map(stream::iter)
        .boxed()
    }

    fn cleanup<'a>(&'a self, job: &'a Job, how: Disposition) -> Fut<'a, Leftovers> {
        Box::pin(async move {
            let call = if how == Disposition::Stop { Call::Stop } else { Call::Delete };
            self.server.record(call, &job.identifier);
            let Some(found) = self.server.find(job) else { return Ok(Leftovers::default()) };
            sleep(found.cleanup_delay()).await;
            let items = found.clean()?;
            match how {
                Disposition::Stop => found.stop(),
                Disposition::Delete if items.is_empty() => self.server.delete(&job.identifier),
                Disposition::Delete => {}
            }
            Ok(Leftovers { items, ..Leftovers::default() })
        })
    }

    /// Its jobs end with the process that launched them.
    fn inventory<'a>(&'a self, scope: &'a Scope) -> Fut<'a, Inventory> {
        let absent = scope.jobs.iter().filter(|job| self.server.find(job).is_none()).map(Job::id).collect();
        Box::pin(async { Ok(Inventory { absent, ..Inventory::default() }) })
    }
}

/// Looks for mistakes in a scenario.
///
/// # Errors
/// Every mistake in it; only the first if its shape is wrong.
fn check(scenario: &Value) -> Result<(), Vec<Diagnostic>> {
    scenario::read(scenario).map(drop)
}

/// The scenario that a plan holds.
fn stored(handle: &Value) -> Option<scenario::Scenario> {
    let scenario: Value = serde_json::from_str(handle.as_str()?).ok()?;
    scenario::read(&scenario).ok()
}

fn unreadable(handle: &Value) -> SchedulerError {
    SchedulerError::plain(Class::Config, format!("read the scenario {handle}"))
}

/// What was there is gone; what was never there may still come.
async fn missing(seen: Option<&JobStatus>) -> Result<JobStatus, SchedulerError> {
    match seen {
        None => Ok(JobStatus::NotSeen),
        Some(JobStatus::NotSeen | JobStatus::Gone { .. }) => std::future::pending().await,
        Some(_) => {
            Ok(JobStatus::Gone { why: Disruption::Deleted, cause: "it was deleted by another user or program".to_owned() })
        }
    }
}

async fn until(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}

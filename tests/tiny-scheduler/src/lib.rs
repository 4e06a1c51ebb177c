//! The scheduler `notes`: a job is a file in a folder, which says a text when its time is over. Nothing runs, and every process
//! that sees the folder sees the same jobs: a small model of a cluster.
//!
//! It shows how a scheduler is added (ARCHITECTURE.md, "Adding a scheduler"), and its tests hold that nothing else has to change.

use futures_util::{StreamExt, stream};
use muster_core::{
    case::Identifier,
    error::{Class, SchedulerError},
    job::{
        descriptor::{Descriptor, Form, Setting, SharedKey},
        handle::JobHandle,
        inventory::{Found, Inventory, Scope},
        scheduler::{
            Channel, Chunk, Chunks, Disposition, Disruption, Ending, Exit, Finding, Fut, Job, JobStatus, Launch, Leftovers,
            LogMarks, Nodes, Scheduler, SectionExit,
        },
        stdout::SectionOrigin,
        workload::Workload,
    },
};
use muster_host::clock;
use muster_text::{Value, decode::Key, diagnostic::Diagnostic, keys, time::Timestamp};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    task::Poll,
    thread,
    time::Duration,
};

/// Its block of a check.
const NOTE: &str = "note";

/// How often a job is looked at.
const POLL: Duration = Duration::from_millis(20);

/// Its nodes, and which of them are fast.
const NODES: [(&str, bool); 3] = [("desk-1", true), ("desk-2", true), ("desk-3", false)];

/// The facts about the scheduler that need no connection.
pub static SCHEDULER: Descriptor = Descriptor {
    names: &["notes"],
    descr: "notes in a folder, each a job that says its text",
    forms: &[Form::Own(NOTE)],
    own_keys: &[Key::of::<Note>(NOTE, "What a job says, and when it ends.")],
    required: &[NOTE],
    options: &[
        Key::of::<String>("folder", "Where the notes are."),
        Key::of::<String>("node", "The only node that a job may run on."),
    ],
    site_options: &[("folder", "write it in the partition's `sched_options`")],
    shared_keys: &[("launcher", SharedKey::Takes)],
    never_masked: &["folder", "node", "seconds"],
    starters: &[("notes", include_str!("starter.yaml"))],
    node_states: &["all", "avail", "fast"],
    settings: |options| {
        let folder = folder(options).display().to_string();
        vec![Setting { name: "notes", value: folder, source: None }]
    },
    connect: |_| Ok(Arc::new(Notes)),
    look: Some(|_| Ok(Arc::new(Notes))),
    planner: Some(|_| Ok(Arc::new(Notes))),
    ..Descriptor::NONE
};

keys! {
    /// Its block of a check.
    pub struct Note ("a note") {
        /// What the job says.
        @required text: String,
        /// When it ends, in seconds after its launch. Default: 0.
        seconds: f64,
    }
}

/// A planned job, and what is written when it is launched.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Handle {
    folder: PathBuf,
    node: String,
    text: String,
    seconds: f64,
}

/// A launched job, as it is in its file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Launched {
    job: Job,
    since: Timestamp,
}

struct Notes;

/// Where the notes of a partition are.
fn folder(options: &Value) -> PathBuf {
    options["folder"].as_str().unwrap_or("notes").into()
}

fn handle(job: &Job) -> Result<Arc<Handle>, SchedulerError> {
    job.handle.read().map_err(|error| SchedulerError::new(Class::Config, "read a stored note", error))
}

fn file(folder: &Path, identifier: &Identifier) -> PathBuf {
    folder.join(format!("{identifier}.json"))
}

/// The launched job, unless it is gone. The plan alone says where it would be.
fn find(job: &Job) -> Result<Option<Launched>, SchedulerError> {
    let path = file(&handle(job)?.folder, &job.identifier);
    let error = |cause: io::Error| SchedulerError::new(Class::Infra, format!("read {}", path.display()), cause);
    match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|cause| error(cause.into())),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(error(cause)),
    }
}

impl Launched {
    fn status(&self) -> Result<JobStatus, SchedulerError> {
        let handle = handle(&self.job)?;
        let Handle { node, seconds, .. } = &*handle;
        let ends = self.since.plus(Duration::try_from_secs_f64(*seconds).unwrap_or_default());
        if clock::now() < ends {
            return Ok(JobStatus::Running { since: self.since, nodes: vec![node.clone()], partly_ended: None, has_ended: false });
        }
        let exit = SectionExit { section: node.clone(), node: Some(node.clone()), exit: Exit::Code(0), ..SectionExit::default() };
        Ok(JobStatus::Ended(Ending { started: self.since, ended: ends, exits: vec![exit], ..Ending::default() }))
    }
}

/// Waits for a moment, on any executor.
async fn pause() {
    let mut started = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut started, true) {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        thread::spawn(move || {
            thread::sleep(POLL);
            waker.wake();
        });
        Poll::Pending
    })
    .await;
}

/// The whole log, when the job has ended.
async fn log(job: &Job) -> Result<Vec<Chunk>, SchedulerError> {
    loop {
        let Some(launched) = find(job)? else { return Ok(Vec::new()) };
        let JobStatus::Ended(_) = launched.status()? else {
            pause().await;
            continue;
        };
        let Handle { node, text, .. } = &*handle(job)?;
        let origin = SectionOrigin { created: launched.since, node: Some(node.clone()), ..SectionOrigin::new(node) };
        return Ok(vec![
            Chunk::Open(Channel::Log, origin),
            Chunk::Bytes { section: node.clone(), at: 0, data: format!("{text}\n").into_bytes(), time: None },
            Chunk::End { section: node.clone() },
        ]);
    }
}

impl Scheduler for Notes {
    fn plan(&self, workload: &Workload) -> Result<Job, Vec<Diagnostic>> {
        let (own, options) = (&workload.own[NOTE], &workload.sched_options);
        let node = options["node"].as_str().unwrap_or(NODES[0].0);
        if NODES.iter().all(|(name, _)| *name != node) {
            return Err(vec![Diagnostic::general(format!("there is no node {node}")).hint("take one of desk-1, desk-2, desk-3")]);
        }
        let text = own["text"].as_str().unwrap_or_default();
        let handle = Handle {
            folder: folder(options),
            node: node.to_owned(),
            text: workload.shared.get("launcher").and_then(Value::as_str).map_or(text.to_owned(), |by| format!("{by}: {text}")),
            seconds: own["seconds"].as_f64().unwrap_or_default(),
        };
        Ok(Job::of(workload, SCHEDULER.own_name(), JobHandle::of(handle)))
    }

    fn preview(&self, workload: &Workload) -> Result<Option<String>, Vec<Diagnostic>> {
        let handle = self.plan(workload)?.handle;
        let text = |key: &str| handle[key].as_str().unwrap_or_default().to_owned();
        Ok(Some(format!("# a note on {}\n{}\n", text("node"), text("text"))))
    }

    /// Nothing can be launched where there is a file `closed`.
    fn preflight<'a>(&'a self, workloads: &'a mut (dyn Iterator<Item = Workload> + Send)) -> Fut<'a, Vec<Finding>> {
        let is_closed = |workload: &Workload| folder(&workload.sched_options).join("closed").exists();
        let workloads = workloads.enumerate().filter(|(_, workload)| is_closed(workload)).map(|(at, _)| at).collect::<Vec<_>>();
        let finding = Finding { workloads, what: "the folder is closed".to_owned(), hint: None };
        Box::pin(async { Ok(vec![finding]) })
    }

    fn launch<'a>(&'a self, job: &'a Job) -> Fut<'a, Launch> {
        Box::pin(async {
            let folder = &handle(job)?.folder;
            let failed = |cause: io::Error| SchedulerError::new(Class::Infra, format!("write to {}", folder.display()), cause);
            if find(job)?.is_none() {
                let note = Launched { job: job.clone(), since: clock::now() };
                fs::create_dir_all(folder).map_err(failed)?;
                // Whoever reads it sees all of it or none.
                let (path, part) = (file(folder, &job.identifier), folder.join(format!("{}.part", job.identifier)));
                fs::write(&part, serde_json::to_vec(&note).map_err(|cause| failed(cause.into()))?).map_err(failed)?;
                fs::rename(part, path).map_err(failed)?;
            }
            Ok(Launch::Launched(job.clone()))
        })
    }

    fn wait<'a>(&'a self, job: &'a Job, seen: Option<&'a JobStatus>) -> Fut<'a, JobStatus> {
        Box::pin(async move {
            loop {
                let status = match (find(job)?, seen) {
                    (Some(launched), _) => launched.status()?,
                    (None, None | Some(JobStatus::NotSeen)) => JobStatus::NotSeen,
                    (None, Some(_)) => JobStatus::Gone { why: Disruption::Deleted, cause: "its note was removed".to_owned() },
                };
                if Some(&status) != seen {
                    return Ok(status);
                }
                pause().await;
            }
        })
    }

    fn collect_logs<'a>(&'a self, job: &'a Job, _from: LogMarks) -> Chunks<'a> {
        let chunks = |log: Result<Vec<Chunk>, SchedulerError>| match log {
            Ok(chunks) => chunks.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        };
        stream::once(log(job)).flat_map(move |log| stream::iter(chunks(log))).boxed()
    }

    fn cleanup<'a>(&'a self, job: &'a Job, _how: Disposition) -> Fut<'a, Leftovers> {
        Box::pin(async {
            let path = file(&handle(job)?.folder, &job.identifier);
            match fs::remove_file(&path) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                    Ok(Leftovers { items: vec![format!("{} ({cause}): rm {0}", path.display())], ..Leftovers::default() })
                }
                _ => Ok(Leftovers { is_gone: true, ..Leftovers::default() }),
            }
        })
    }

    fn nodes<'a>(&'a self, _workload: &'a Workload, state: &'a str) -> Fut<'a, Nodes> {
        let nodes = NODES.iter().filter(|(_, is_fast)| state != "fast" || *is_fast).map(|(name, _)| (*name).to_owned()).collect();
        Box::pin(async { Ok(Nodes::of(nodes)) })
    }

    fn inventory<'a>(&'a self, scope: &'a Scope) -> Fut<'a, Inventory> {
        let of_jobs = scope.jobs.iter().filter_map(|job| Some(handle(job).ok()?.folder.clone()));
        let mut folders: Vec<PathBuf> = scope.partitions.iter().map(folder).chain(of_jobs).collect();
        folders.sort();
        folders.dedup();
        Box::pin(async move {
            let paths = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().filter_map(Result::ok);
            let notes = paths.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ending| ending == "json"));
            let launched = notes.filter_map(|path| serde_json::from_slice::<Launched>(&fs::read(path).ok()?).ok());
            let found = |Launched { job, .. }| Found {
                what: format!("note {}", job.identifier),
                cost: None,
                kept: None,
                place: String::new(),
                has_ended: false,
                job,
            };
            let mut found: Vec<Found> = launched.map(found).collect();
            found.sort_by(|one, other| one.job.identifier.cmp(&other.job.identifier));
            let is_absent = |job: &&Job| !found.iter().any(|found| found.job.is_same(job));
            let absent = scope.jobs.iter().filter(is_absent).map(Job::id).collect();
            Ok(Inventory { found, absent, ..Inventory::default() })
        })
    }
}

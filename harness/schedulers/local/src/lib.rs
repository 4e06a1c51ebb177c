//! The scheduler `local`: job scripts as processes of this machine.
//!
//! Each job is a `/bin/sh` in a process group of its own, its standard input empty, its output appended to a file in
//! the stage folder by itself. It does not depend on the harness: when that is killed, the job runs on, its log stays
//! whole and its exit status is written beside it. The handle in the store, or the marks in `/proc`, find it again.
//!
//! ```text
//! plan       a workload as a handle, which the store keeps
//! launch     stage folder and shell
//! status     of a job of an earlier harness      processes  jobs of this harness, marks in /proc, exit statuses
//! logs       where the log of a job is           detect     the processor of this machine
//! cleanup    ending what is not our child        inventory  what sessions that are gone left running
//! node       what distinguishes this machine
//! ```
//! Not done here: limits other than the two seconds between TERM and KILL, decisions on keeping the stage folder (the
//! engine makes them), and daemons that leave the process group, until a sweep looks for marks. Linux is what is tested;
//! other Unix systems have a plain fallback without marks.

mod cleanup;
pub mod detect;
mod inventory;
mod launch;
mod logs;
mod node;
mod plan;
mod processes;
mod status;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use crate::{
    launch::{Environment, HARNESS},
    plan::LocalHandle,
    processes::own_job::OwnJob,
};
use muster_core::{
    case::{Identifier, SessionId},
    job::{
        descriptor::{ConnectError, Descriptor, Files, Form, Harness, SharedKey},
        inventory::{Inventory, Removed, Scope},
        scheduler::{Chunks, Disposition, Fut, Job, JobStatus, Launch, Leftovers, LogMarks, NodeSeen, Nodes, Scheduler, Staged},
        workload::Workload,
    },
};
use muster_host::process::Machine;
use muster_stage::{Stager, blocking};
use muster_text::{Value, decode::Key, diagnostic::Diagnostic};
use parking_lot::Mutex;
use std::{collections::HashMap, future::Future, path::PathBuf, pin::Pin, sync::Arc};

/// The facts about the scheduler that need no connection.
pub static SCHEDULER: Descriptor = Descriptor {
    names: &["local"],
    descr: "job scripts as processes of this machine",
    forms: &[Form::Script],
    wrong_options: plan::wrong_options,
    never_masked: &["staging.limit", "machine", "leader", "started"],
    options: &[Key::of::<String>("node", "The host name of this machine: any other is refused.")],
    // As in ReFrame, whose local scheduler passes over the shape of a job.
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
        ("launcher", SharedKey::Refuses("write the program that starts the tasks into `executable`")),
        ("launcher_options", SharedKey::Refuses("write them into `executable`, after the program that starts the tasks")),
        ("launcher_modifier", SharedKey::Refuses("write it into `executable`, before the program that starts the tasks")),
        ("access", SharedKey::Refuses("a process of this machine is submitted to nobody")),
        ("resources", SharedKey::Refuses("a process of this machine asks nobody for resources")),
    ],
    starters: &[("local", include_str!("starter.yaml"))],
    files: Files::Shared,
    // The files of a launch are made once.
    finds_launched: false,
    // This machine takes jobs as long as Muster runs on it.
    node_states: &["all", "avail", "idle"],
    complete_processor: Some(detect::complete),
    connect,
    found: || Some(Vec::new()),
    look: Some(connect),
    is_here: true,
    ..Descriptor::NONE
};

#[expect(clippy::unnecessary_wraps, reason = "others may fail")]
fn connect(harness: &Harness) -> Result<Arc<dyn Scheduler>, ConnectError> {
    let local = LocalScheduler::default();
    Ok(Arc::new(match &harness.program {
        Some(program) => local.with_harness(program.clone()),
        None => local,
    }))
}

type Jobs = Arc<Mutex<HashMap<Identifier, Arc<OwnJob>>>>;

/// Processes of this machine. One instance serves all local partitions of a session.
#[derive(Debug)]
pub struct LocalScheduler {
    here: Machine,
    environment: Arc<Environment>,
    jobs: Jobs,
    stager: Stager,
}

impl Default for LocalScheduler {
    /// Reads the machine's and the environment's facts once, so that planning needs no I/O.
    fn default() -> Self {
        Self {
            here: Machine::here(),
            environment: Arc::new(std::env::vars_os().collect()),
            jobs: Jobs::default(),
            stager: Stager::default(),
        }
    }
}

impl LocalScheduler {
    /// Lets jobs find the harness, and its kernels, as `$MUSTER`.
    #[must_use]
    pub fn with_harness(mut self, program: PathBuf) -> Self {
        Arc::make_mut(&mut self.environment).insert(HARNESS.into(), program.into());
        self
    }

    fn own_job(&self, job: &Job) -> Option<Arc<OwnJob>> {
        self.jobs.lock().get(&job.identifier).cloned()
    }
}

impl Scheduler for LocalScheduler {
    fn plan(&self, workload: &Workload) -> Result<Job, Vec<Diagnostic>> {
        self.planned(workload)
    }

    fn stage<'a>(&'a self, job: &'a Job, mut cancelled: Pin<Box<dyn Future<Output = ()> + Send + 'a>>) -> Option<Staged<'a>> {
        // A job that cannot be read is refused at its launch.
        let handle = LocalHandle::of(job).ok().filter(|handle| handle.leader.is_none())?;
        let staging = handle.staging.clone()?;
        let what = staging.folder.display().to_string();
        let done = Box::pin(async move { self.stager.stage(staging, job.stage.clone(), cancelled.as_mut()).await });
        Some(Staged { what, done })
    }

    fn describe_nodes<'a>(&'a self, _partitions: &'a [Value]) -> Fut<'a, Vec<NodeSeen>> {
        Box::pin(async { Ok(vec![node::this(&self.here.host)]) })
    }

    fn launch<'a>(&'a self, job: &'a Job) -> Fut<'a, Launch> {
        Box::pin(self.launch_once(job))
    }

    fn wait<'a>(&'a self, job: &'a Job, seen: Option<&'a JobStatus>) -> Fut<'a, JobStatus> {
        Box::pin(self.next_status(job, seen))
    }

    fn collect_logs<'a>(&'a self, job: &'a Job, _from: LogMarks) -> Chunks<'a> {
        self.log(job)
    }

    /// `Stop` and `Delete` are the same here: processes end, and the stage folder is the engine's.
    fn cleanup<'a>(&'a self, job: &'a Job, how: Disposition) -> Fut<'a, Leftovers> {
        Box::pin(self.clean(job, how))
    }

    fn nodes<'a>(&'a self, _workload: &'a Workload, _state: &'a str) -> Fut<'a, Nodes> {
        Box::pin(async { Ok(Nodes::of(vec![self.here.host.clone()])) })
    }

    fn inventory<'a>(&'a self, scope: &'a Scope) -> Fut<'a, Inventory> {
        let (jobs, here) = (scope.jobs.clone(), self.here.clone());
        Box::pin(async move { Ok(blocking(move || inventory::look(&jobs, &here)).await) })
    }

    fn close<'a>(&'a self, over: Option<&'a SessionId>) -> Fut<'a, Vec<Removed>> {
        Box::pin(async move {
            Ok(match over {
                Some(session) => self.end_daemons(session).await,
                None => Vec::new(),
            })
        })
    }
}

//! Planning: a workload as a handle from which any process of this machine can launch it. The store keeps the handle.

use crate::{LocalScheduler, SCHEDULER};
use muster_core::{
    error::{Class, SchedulerError},
    job::{
        descriptor::{NODE, WrongOption},
        handle::JobHandle,
        scheduler::Job,
        workload::{Program, Staging, Workload},
    },
};
use muster_host::process::{Machine, Process};
use muster_stage::absolute;
use muster_text::{Value, diagnostic::Diagnostic, time::Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// [`Job::handle`] of a local job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LocalHandle {
    /// The text of `rfm_job.sh`.
    pub script: String,
    /// The files that are put into the stage folder first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staging: Option<Staging>,
    /// Variables taken over from the harness' own environment.
    pub pass_env: Vec<String>,
    /// The machine on which the pids below have a meaning.
    pub machine: Machine,
    /// The shell that runs the script, leader of its process group; `None` before the launch.
    pub leader: Option<Process>,
    /// The time of the start; `None` before the launch.
    pub started: Option<Timestamp>,
}

impl LocalHandle {
    /// Reads the handle of a job.
    ///
    /// # Errors
    /// It is not the handle of a local job.
    pub(crate) fn of(job: &Job) -> Result<Arc<Self>, SchedulerError> {
        job.handle
            .read()
            .map_err(|error| SchedulerError::new(Class::Config, format!("read the handle of job {}", job.identifier), error))
    }
}

/// `job` with what its launch found out.
pub(super) fn launched(job: &Job, planned: &LocalHandle, leader: Process, started: Timestamp) -> Job {
    job.with(JobHandle::of(LocalHandle { leader: Some(leader), started: Some(started), ..planned.clone() }))
}

impl LocalScheduler {
    pub(crate) fn planned(&self, workload: &Workload) -> Result<Job, Vec<Diagnostic>> {
        let Program::Script { text, pass_env } = &workload.program else {
            let mistake = Diagnostic::general(format!("`{}` has no script for the scheduler `local`", workload.case));
            return Err(vec![mistake.hint("set `executable` or `command`")]);
        };
        if let Some(node) = elsewhere(&workload.sched_options, &self.here) {
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
        };
        Ok(Job::of(workload, SCHEDULER.own_name(), JobHandle::of(handle)))
    }
}

/// The node that a job is to run on, if that is not this one.
fn elsewhere<'a>(options: &'a Value, here: &Machine) -> Option<&'a str> {
    options.get(NODE)?.as_str().filter(|node| *node != here.host)
}

/// See [`Descriptor::wrong_options`](muster_core::job::descriptor::Descriptor::wrong_options).
pub(crate) fn wrong_options(options: &Value) -> Vec<WrongOption> {
    let here = Machine::here();
    let Some(node) = elsewhere(options, &here) else { return Vec::new() };
    let mistake =
        Diagnostic::general(format!("`sched_options.{NODE}`: {node} is not this machine, and `local` runs on no other"));
    vec![WrongOption { name: NODE, mistake: mistake.hint(format!("leave it out, or write {}", here.host)) }]
}

//! The methods of the trait. Jobs are planned and shown; nothing is launched yet, so that no other method is ever called.

use crate::plan::{self, Handle};
use muster_core::{
    error::{Class, SchedulerError},
    job::{
        inventory::{Inventory, Scope},
        scheduler::{Chunks, Disposition, Fut, Job, JobStatus, Launch, Leftovers, LogRequest, Scheduler},
        workload::Workload,
    },
};
use muster_text::diagnostic::Diagnostic;

/// Why a partition on EC2 cannot be run on.
pub(crate) const NOT_YET: &str = "this version of Muster plans jobs on EC2 and launches none: see them with --dry-run, or leave the partition out with --system or -n";

/// Plans from files alone.
#[derive(Debug)]
pub(crate) struct Planner;

fn not_yet<T: Send>() -> Fut<'static, T> {
    Box::pin(async { Err(SchedulerError::plain(Class::Unsupported, NOT_YET)) })
}

impl Scheduler for Planner {
    fn plan(&self, workload: &Workload) -> Result<Job, Vec<Diagnostic>> {
        plan::planned(workload)
    }

    fn preview(&self, workload: &Workload) -> Result<Option<String>, Vec<Diagnostic>> {
        plan::handle(workload).map(|handle: Handle| Some(plan::preview(&handle)))
    }

    fn launch<'a>(&'a self, _: &'a Job) -> Fut<'a, Launch> {
        not_yet()
    }

    fn wait<'a>(&'a self, _: &'a Job, _: Option<&'a JobStatus>) -> Fut<'a, JobStatus> {
        not_yet()
    }

    fn collect_logs<'a>(&'a self, _: &'a Job, _: LogRequest) -> Chunks<'a> {
        Box::pin(futures_util::stream::empty())
    }

    fn cleanup<'a>(&'a self, _: &'a Job, _: Disposition) -> Fut<'a, Leftovers> {
        not_yet()
    }

    fn inventory<'a>(&'a self, _: &'a Scope) -> Fut<'a, Inventory> {
        not_yet()
    }
}

//! The methods of the trait, each led to where it is done. One instance for all partitions of a session.

use crate::{
    cleanup, distribute, doctor, inventory, launch, logs,
    plan::{self, Handle},
    poll::Clusters,
    preflight,
};
use muster_core::{
    case::SessionId,
    error::{Class, SchedulerError},
    job::{
        descriptor::Harness,
        inventory::{Examined, Inventory, Removed, Scope},
        scheduler::{
            CallLimits, Chunks, Disposition, Finding, Fut, Job, JobStatus, Launch, Leftovers, LogMarks, NodeSeen, Nodes,
            Scheduler, Staged, asked_by_preflight,
        },
        workload::Workload,
    },
    probe::Probe,
};
use muster_stage::{Stager, fault};
use muster_text::{Value, diagnostic::Diagnostic};
use std::{future::Future, pin::Pin, time::Duration};

#[derive(Debug)]
pub(crate) struct Slurm {
    pub(crate) clusters: Clusters,
    stager: Stager,
}

impl Slurm {
    pub(crate) fn new(harness: &Harness) -> Self {
        Self { clusters: Clusters::new(harness.program.clone()), stager: Stager::default() }
    }
}

impl Scheduler for Slurm {
    /// Slurm kills at last after `KillWait`, and epilogues take their time. A launch that waits for others
    /// returns before its limit.
    fn limits(&self) -> CallLimits {
        CallLimits {
            launch: Duration::from_mins(5),
            silence: Duration::from_secs(90),
            cleanup: Duration::from_mins(3),
            ..CallLimits::default()
        }
    }

    fn plan(&self, workload: &Workload) -> Result<Job, Vec<Diagnostic>> {
        plan::planned(workload)
    }

    fn preview(&self, workload: &Workload) -> Result<Option<String>, Vec<Diagnostic>> {
        Ok(self.plan(workload)?.handle["script"].as_str().map(str::to_owned))
    }

    fn dry_run<'a>(&'a self, workload: &'a Workload) -> Fut<'a, Option<Vec<String>>> {
        Box::pin(async move {
            let mistakes = |mistakes: Vec<Diagnostic>| {
                let messages: Vec<String> = mistakes.into_iter().map(|mistake| mistake.message).collect();
                SchedulerError::plain(Class::Config, messages.join("; "))
            };
            let job = self.plan(workload).map_err(mistakes)?;
            let cluster = self.clusters.of(&job)?;
            launch::validate(&cluster, &job).await.map(Some)
        })
    }

    fn preflight<'a>(&'a self, workloads: &'a mut (dyn Iterator<Item = Workload> + Send)) -> Fut<'a, Vec<Finding>> {
        let jobs: Vec<Option<Job>> = workloads.map(|workload| self.plan(&workload).ok()).collect();
        Box::pin(preflight::findings(&self.clusters, jobs))
    }

    fn probes<'a>(&'a self, examined: Examined<'a>) -> Vec<Probe<'a>> {
        doctor::questions(&self.clusters, examined, asked_by_preflight(self, examined))
    }

    fn stage<'a>(&'a self, job: &'a Job, mut cancelled: Pin<Box<dyn Future<Output = ()> + Send + 'a>>) -> Option<Staged<'a>> {
        let handle = Handle::of(job).ok().filter(|handle| handle.id.is_none())?;
        let staging = handle.staging.clone()?;
        let what = staging.folder.display().to_string();
        let done = Box::pin(async move { self.stager.stage(staging, job.stage.clone(), cancelled.as_mut()).await });
        Some(Staged { what, done })
    }

    fn launch<'a>(&'a self, job: &'a Job) -> Fut<'a, Launch> {
        Box::pin(async move { launch::launch(&self.clusters.of(job)?, job).await })
    }

    fn wait<'a>(&'a self, job: &'a Job, seen: Option<&'a JobStatus>) -> Fut<'a, JobStatus> {
        Box::pin(async move {
            let status = self.clusters.of(job)?.next_status(job, seen).await?;
            if let JobStatus::Ended(ending) = &status
                && let Some(why) = fault(job, ending).await
            {
                return Err(SchedulerError::plain(Class::Config, why));
            }
            Ok(status)
        })
    }

    fn collect_logs<'a>(&'a self, job: &'a Job, _from: LogMarks) -> Chunks<'a> {
        logs::log(self.clusters.of(job), job)
    }

    fn cleanup<'a>(&'a self, job: &'a Job, how: Disposition) -> Fut<'a, Leftovers> {
        Box::pin(async move { cleanup::clean(&self.clusters.of(job)?, job, how).await })
    }

    fn nodes<'a>(&'a self, workload: &'a Workload, state: &'a str) -> Fut<'a, Nodes> {
        Box::pin(distribute::nodes(&self.clusters, workload, state))
    }

    fn describe_nodes<'a>(&'a self, partitions: &'a [Value]) -> Fut<'a, Vec<NodeSeen>> {
        Box::pin(async { Ok(inventory::described_nodes(&self.clusters, partitions).await) })
    }

    fn inventory<'a>(&'a self, scope: &'a Scope) -> Fut<'a, Inventory> {
        Box::pin(async move { Ok(inventory::look(&self.clusters, scope).await) })
    }

    fn close<'a>(&'a self, _over: Option<&'a SessionId>) -> Fut<'a, Vec<Removed>> {
        self.clusters.close();
        Box::pin(async { Ok(Vec::new()) })
    }
}

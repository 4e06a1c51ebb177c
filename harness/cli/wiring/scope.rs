//! The schedulers that are asked what there is and who owns it: those of known jobs, of the system's partitions, and of this machine.

use crate::{
    args::Cli,
    inputs::selection::{self, Site},
    wiring,
};
use muster_core::{
    error::{Class, SchedulerError},
    job::{descriptor::NamedScheduler, inventory::Scope, scheduler::Job},
};
use muster_session::ownership::InScope;
use std::collections::BTreeMap;

/// The schedulers that can be connected to, and why the others cannot.
pub struct Scoped {
    pub schedulers: Vec<InScope>,
    pub unreachable: Vec<SchedulerError>,
}

/// The schedulers of some jobs, those of the system's partitions, and that of this machine. To look for Leases: a scheduler that
/// cannot be connected to has none. If the system is unknown, the jobs remain.
pub fn in_scope<'a>(cli: &Cli, jobs: impl IntoIterator<Item = &'a Job>) -> Scoped {
    in_scope_of(cli, selection::site(&cli.files, false).ok().as_ref(), jobs)
}

/// Returns the schedulers in scope, of a system that is known.
pub fn in_scope_of<'a>(cli: &Cli, site: Option<&Site>, jobs: impl IntoIterator<Item = &'a Job>) -> Scoped {
    let schedulers = &cli.files.schedulers;
    let here = schedulers.all().iter().filter(|descriptor| descriptor.is_here).map(|descriptor| NamedScheduler::of(descriptor));
    let mut scopes: BTreeMap<&str, (NamedScheduler, Scope)> = here.map(|named| (named.name, (named, Scope::default()))).collect();
    let new = |named: NamedScheduler| (named, Scope::default());
    for job in jobs {
        let Some(named) = schedulers.find(&job.scheduler) else { continue };
        scopes.entry(named.own_name()).or_insert_with(|| new(named)).1.jobs.push(job.clone());
    }
    for partition in site.into_iter().flat_map(|site| &site.system.partitions) {
        let named = partition.scheduler;
        let (_, Scope { partitions, .. }) = scopes.entry(named.own_name()).or_insert_with(|| new(named));
        if !partitions.contains(&partition.sched_options) {
            partitions.push(partition.sched_options.clone());
        }
    }
    let mut all = Scoped { schedulers: Vec::new(), unreachable: Vec::new() };
    for (name, (named, scope)) in scopes {
        match named.look.map(|look| look(&wiring::harness())) {
            Some(Ok(scheduler)) => all.schedulers.push(InScope { name, scheduler, scope }),
            Some(Err(cause)) => {
                tracing::debug!(error = %cause, scheduler = name, "a scheduler is not looked at");
                all.unreachable.push(SchedulerError::new(Class::Infra, format!("connect to `{name}`"), cause));
            }
            None => {}
        }
    }
    all
}

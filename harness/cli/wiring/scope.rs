//! The schedulers that are asked what there is and who owns it: those of known jobs, of the system's partitions, and of this machine.

use crate::{args::Cli, inputs::selection, wiring};
use muster_core::job::{
    inventory::Scope,
    scheduler::{Job, Scheduler},
    scheduler_kind::SchedulerKind,
};
use std::{collections::BTreeMap, sync::Arc};

/// A scheduler, and where it looks.
pub struct InScope {
    pub kind: SchedulerKind,
    pub scheduler: Arc<dyn Scheduler>,
    pub scope: Scope,
}

/// The schedulers of some jobs, those of the system's partitions, and that of this machine.
pub fn in_scope<'a>(cli: &Cli, jobs: impl IntoIterator<Item = &'a Job>) -> anyhow::Result<Vec<InScope>> {
    let mut scopes = BTreeMap::from([(SchedulerKind::Local, Scope::default())]);
    for job in jobs {
        scopes.entry(wiring::shared_name(job.scheduler)).or_default().jobs.push(job.clone());
    }
    // If the system is unknown, the jobs remain.
    let site = selection::site(&cli.files.config_file, &cli.files.checkpath, cli.files.system.as_deref(), false);
    for partition in site.iter().flat_map(|site| &site.system.partitions) {
        let Scope { partitions, .. } = scopes.entry(wiring::shared_name(partition.scheduler)).or_default();
        if !partitions.contains(&partition.sched_options) {
            partitions.push(partition.sched_options.clone());
        }
    }
    let connect = |(kind, scope)| Some((kind, scope, wiring::connect_to_look(kind)?));
    scopes
        .into_iter()
        .filter_map(connect)
        .map(|(kind, scope, scheduler)| Ok(InScope { kind, scheduler: scheduler?, scope }))
        .collect()
}

/// The same, to look for Leases only: a scheduler that cannot be connected to has none.
pub fn in_scope_if_connected<'a>(cli: &Cli, jobs: impl IntoIterator<Item = &'a Job>) -> Vec<InScope> {
    in_scope(cli, jobs).unwrap_or_else(|error| {
        tracing::debug!(error = %format!("{error:#}"), "no Lease is looked for");
        Vec::new()
    })
}

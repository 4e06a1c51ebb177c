//! `--dry-run=server`: sbatch validates a script, and submits nothing.

use crate::{
    launch::{
        files::text,
        refusal::{Refusal, classify, shortened, with_options},
    },
    plan::Handle,
    poll::Cluster,
};
use muster_core::{
    error::{Class, SchedulerError},
    job::scheduler::Job,
};

const NOT_AVAILABLE: &str = "Requested node configuration is not available";

/// What Slurm warns of. The script goes through standard input: there is no stage folder.
pub(crate) async fn validate(cluster: &Cluster, job: &Job) -> Result<Vec<String>, SchedulerError> {
    let handle = Handle::of(job)?;
    let script = text(&handle, &cluster.commands);
    let answer = cluster.commands.test(script, &handle.pass_env, handle.policy.submit_limit).await;
    // Whatever has kept it from answering, it has refused nothing.
    let answer = answer.map_err(|error| SchedulerError { class: Class::Outage, ..error.into() })?;
    if answer.is_ok() {
        return Ok(Vec::new());
    }
    let complaint = answer.complaint();
    let what = format!("sbatch: {}", shortened(&complaint));
    // It says so of nodes that are drained, too. Where more is wrong, a line before it says what.
    if !complaint.contains("; ") && complaint.contains(NOT_AVAILABLE) {
        return Ok(vec![what]);
    }
    match classify(&answer, &handle.policy.resubmit) {
        // A launch would wait until there is.
        Refusal::NoRoom => Ok(vec![what]),
        Refusal::Away | Refusal::Lost => Err(SchedulerError::plain(Class::Outage, what)),
        Refusal::Identity => Err(SchedulerError::plain(Class::Infra, what)),
        Refusal::Mistake => Err(SchedulerError::plain(Class::Config, with_options(&what, &handle.script))),
    }
}

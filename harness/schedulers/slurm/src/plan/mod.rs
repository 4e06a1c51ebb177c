//! Planning: a workload as a handle from which any process that sees the stage folder can launch and follow the job. No I/O.
//!
//! ```text
//! options   `sched_options`: the table of sbatch's options        access   `access` and `resources`, as ReFrame has them
//! policy    what a site decides for all its jobs                  script   the text of `rfm_job.sh`
//! ```

mod access;
mod options;
mod policy;
mod script;

pub(crate) use access::wrong_shared;
pub(crate) use options::{JOINED, OPTIONS, REFUSED, wrong_options};
pub(crate) use policy::{Place, Policy};
pub(crate) use script::{Header, KEEP_STATUS};

use crate::plan::options::Options;
use muster_core::{
    error::{Class, SchedulerError},
    job::{
        handle::JobHandle,
        scheduler::Job,
        workload::{Program, Staging, Workload},
    },
};
use muster_stage::absolute;
use muster_text::{Value, diagnostic::Diagnostic, time::Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use std::sync::Arc;

/// The name of the scheduler.
pub(crate) const NAME: &str = "slurm";
/// The most of a check's name that is in the name of a job.
const NAME_LIMIT: usize = 40;

/// [`Job::handle`] of a Slurm job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Handle {
    pub place: Place,
    /// The job's name: it ends in the identifier.
    pub name: String,
    /// The text of `rfm_job.sh`.
    pub script: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staging: Option<Staging>,
    /// Variables taken over from the harness' own environment.
    #[serde(default)]
    pub pass_env: Vec<String>,
    #[serde(default, skip_serializing_if = "Policy::is_default")]
    pub policy: Policy,
    /// `--partition`, if one is named.
    #[serde(default)]
    pub partition: Option<String>,
    /// `--time` in minutes; `None`: the partition's default.
    #[serde(default)]
    pub minutes: Option<u64>,
    /// The memory that it asks for, as sbatch's option says it: `4G`, `2G for each processor`; `None`: the site's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// `--nodes`, if it is a number.
    #[serde(default)]
    pub nodes: Option<u64>,
    /// The job's number; `None` before the launch.
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub launched: Option<Timestamp>,
    /// An answer to its launch was lost: there may be another job of its name.
    #[serde(default)]
    pub doubtful: bool,
}

impl Handle {
    /// Reads the handle of a job.
    ///
    /// # Errors
    /// It is not the handle of a Slurm job.
    pub(crate) fn of(job: &Job) -> Result<Arc<Self>, SchedulerError> {
        job.handle
            .read()
            .map_err(|error| SchedulerError::new(Class::Config, format!("read the handle of job {}", job.identifier), error))
    }
}

/// Where the jobs of a partition are, by its options.
pub(crate) fn place_of(options: &Value) -> Place {
    Options::read(options).map(|options| options.place).unwrap_or_default()
}

/// The partition that the site names for its jobs, with `access` or among the options of sbatch.
pub(crate) fn partition_of(options: &Value, shared: &Map<String, Value>) -> Option<String> {
    let access = access::read("access", script::texts(shared.get("access").unwrap_or(&Value::Null))).unwrap_or_default();
    let flags = Options::read(options).map(|options| options.flags).unwrap_or_default();
    access.flags.into_iter().chain(flags).rfind(|(name, _)| name == "partition")?.1
}

/// A workload as a job.
pub(crate) fn planned(workload: &Workload) -> Result<Job, Vec<Diagnostic>> {
    with_header(workload).map(|(job, _)| job)
}

/// The same, with the options that it is submitted with.
pub(crate) fn with_header(workload: &Workload) -> Result<(Job, Header), Vec<Diagnostic>> {
    let Program::Script { text, pass_env } = &workload.program else {
        let mistake = Diagnostic::general(format!("`{}` has no script for the scheduler `slurm`", workload.case));
        return Err(vec![mistake.hint("set `executable` or `command`")]);
    };
    let options = Options::read(&workload.sched_options)?;
    let name = name(workload);
    // Of 0 minutes, Slurm makes no limit.
    let minutes = workload.limits.run.map(|limit| limit.as_secs().div_ceil(60).max(1));
    let header = script::header(workload, &options, &name, minutes)?;
    let handle = Handle {
        place: options.place,
        script: script::script(&header, workload, text),
        name,
        staging: workload.staging.clone().map(absolute),
        pass_env: pass_env.clone(),
        partition: header.value("partition").map(str::to_owned),
        nodes: header.value("nodes").and_then(|nodes| nodes.parse().ok()),
        memory: memory(&header),
        minutes,
        policy: options.policy,
        id: None,
        launched: None,
        doubtful: false,
    };
    Ok((Job::of(workload, NAME, JobHandle::of(handle)), header))
}

/// The memory of the options, in words. 0 is all that the node has.
fn memory(header: &Header) -> Option<String> {
    const OPTIONS: [(&str, &str); 3] =
        [("mem", "on each node"), ("mem-per-cpu", "for each processor"), ("mem-per-gpu", "for each GPU")];
    let (value, per) = OPTIONS.iter().find_map(|(option, per)| Some((header.value(option)?, per)))?;
    let unit = if value.ends_with(|last: char| last.is_ascii_digit()) { "M" } else { "" };
    (value != "0").then(|| format!("{value}{unit} {per}"))
}

/// `rfm-NAME-abcdefgh`, of letters that every command takes as they are.
fn name(workload: &Workload) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_.".contains(c) { c } else { '-' };
    let check: String = workload.case.check.chars().map(plain).take(NAME_LIMIT).collect();
    format!("rfm-{check}-{}", workload.identifier)
}

#[cfg(test)]
mod tests;

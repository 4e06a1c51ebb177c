//! The scheduler `slurm`: batch jobs of a Slurm cluster, submitted and followed with the commands of its users.
//!
//! Only `sbatch squeue sacct scancel scontrol sinfo` are called, as an ordinary user, with text formats that are the same in every
//! version. One squeue asks for all jobs of a session. The exit file in the stage folder is the first source of how a job ended, so
//! that accounting may be off, and the job's name carries the identifier, so that a launch whose answer was lost is found.
//!
//! ```text
//! plan       a workload as a script and a handle    command    starting Slurm's commands
//! launch     sbatch, and lost answers               answers    what the commands print
//! poll       one look at the queue for all jobs     status     what a job is, and why it waits
//! logs       the log in the stage folder            files      the other files there; log_tail: what Slurm wrote into the log
//! cleanup    scancel, verified                      inventory  what carries our name
//! preflight  what can never run                     distribute nodes by state
//! doctor     what `muster doctor` asks
//! scheduler  the methods of the trait
//! ```

mod answers;
mod cleanup;
mod command;
mod distribute;
mod doctor;
mod files;
mod inventory;
mod launch;
mod log_tail;
mod logs;
mod plan;
mod poll;
mod preflight;
mod scheduler;
mod status;

use crate::scheduler::Slurm;
use muster_core::{
    job::descriptor::{Descriptor, Files, Form, Setting, SharedKey},
    launcher::Launchers,
};
use muster_text::Value;
use std::sync::Arc;

/// The facts about the scheduler that need no connection.
pub static SCHEDULER: Descriptor = Descriptor {
    names: &[plan::NAME, "squeue"],
    descr: "batch jobs of a Slurm cluster",
    forms: &[Form::Script],
    options: plan::OPTIONS,
    refused_options: plan::REFUSED,
    site_options: &[
        ("policy", "write it in the partition's `sched_options`"),
        ("job_submit_timeout", "write it in the partition's `sched_options`"),
        ("resubmit_on_errors", "write it in the partition's `sched_options`"),
    ],
    joined_options: plan::JOINED,
    wrong_options: plan::wrong_options,
    wrong_shared: plan::wrong_shared,
    shared_keys: &[
        ("num_nodes", SharedKey::Takes),
        ("num_tasks_per_node", SharedKey::Takes),
        ("num_tasks_per_socket", SharedKey::Takes),
        ("num_tasks_per_core", SharedKey::Takes),
        ("num_cpus_per_task", SharedKey::Takes),
        ("num_gpus_per_node", SharedKey::Takes),
        ("exclusive_access", SharedKey::Takes),
        ("use_multithreading", SharedKey::Takes),
        ("extra_resources", SharedKey::Takes),
        ("launcher", SharedKey::Takes),
        ("launcher_options", SharedKey::Takes),
        ("launcher_modifier", SharedKey::Takes),
        ("access", SharedKey::Takes),
        ("resources", SharedKey::Takes),
    ],
    launchers: Launchers {
        usual: "srun --kill-on-bad-exit=1",
        named: &[
            ("srun", "srun"),
            ("mpirun", "mpirun -np {num_tasks}"),
            ("mpiexec", "mpiexec -n {num_tasks}"),
            ("mpirun-openmpi", "mpirun -np {num_tasks} [--map-by ppr:{num_tasks_per_node}:node]"),
            ("mpirun-intelmpi", "mpirun -n {num_tasks} [-ppn {num_tasks_per_node}]"),
            ("ibrun", "ibrun"),
            ("local", ""),
            ("none", ""),
        ],
    },
    keep_status: plan::KEEP_STATUS,
    starters: &[(plan::NAME, include_str!("starter.yaml"))],
    never_masked: &["place", "name", "id", "launched", "staging.limit", "policy", "partition", "minutes", "nodes", "doubtful"],
    files: Files::Shared,
    is_cluster: true,
    node_states: &[
        "all",
        "avail",
        "idle",
        "idle*",
        "mixed",
        "mix",
        "allocated",
        "alloc",
        "completing",
        "comp",
        "down",
        "drain",
        "drained",
        "draining",
        "fail",
        "reserved",
        "resv",
        "maintenance",
        "maint",
        "planned",
        "cloud",
        "powered_down",
    ],
    settings,
    connect: |harness| Ok(Arc::new(Slurm::new(harness))),
    found: || command::is_installed().then(Vec::new),
    look: Some(|harness| Ok(Arc::new(Slurm::new(harness)))),
    planner: Some(|harness| Ok(Arc::new(Slurm::new(harness)))),
    ..Descriptor::NONE
};

/// The partition and the account of checks that name none.
fn settings(options: &Value) -> Vec<Setting> {
    let setting = |name| {
        let value = options.get(name).and_then(Value::as_str)?.to_owned();
        Some(Setting { name, value, source: None })
    };
    ["partition", "account", "qos", "reservation"].into_iter().filter_map(setting).collect()
}

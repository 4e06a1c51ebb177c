//! The scheduler `ec2`: scripts on instances of their own, without ssh, with a timer in each that ends it.
//!
//! Harness and instances meet in S3 alone. Tags are the memory: by them any process finds, follows and ends what another has launched.
//!
//! ```text
//! cloud      the calls of EC2 and S3, behind a trait
//! config     what checks and sites may say: key tables, and the types of their values
//! plan       a workload as a handle, and as the request for its instances
//! agent      the script that an instance runs when it boots
//! decide     what follows from what EC2 and the agents say: states, offers, logs
//! preflight  what is known before the first launch
//! resolve    what a session learns once of images and types
//! launch     asking for instances                 poll       one look at a region for all of its jobs
//! logs       from S3 and from consoles            cleanup    ending instances, and what they had; objects: those in S3
//! data       what instances fetch                 outputs    the files that a script leaves, into its stage folder
//! inventory  what carries our tags                failure    what follows from a call without an answer
//! rights     the policy that plans need, and the commands that prepare an account
//! scheduler  the methods of the trait
//! ```

mod agent;
mod cleanup;
mod cloud;
mod config;
mod data;
mod decide;
mod failure;
mod inventory;
mod launch;
mod logs;
mod objects;
mod outputs;
mod plan;
mod poll;
mod preflight;
mod resolve;
mod rights;
mod scheduler;
#[cfg(test)]
mod tests;

pub use rights::{Plan, plan, policy, setup};

use crate::{
    config::{CONFIG, Config},
    scheduler::Ec2,
};
use muster_core::job::descriptor::{Descriptor, Files, Form, SharedKey};
use muster_host::clock;
use muster_text::decode::Key;
use std::{ptr, sync::Arc};

const BY_TYPE: SharedKey = SharedKey::Refuses("choose an `instance_type` in `ec2_config`");

/// The facts about the scheduler that need no connection.
pub static SCHEDULER: Descriptor = Descriptor {
    names: &[plan::NAME],
    descr: "scripts on EC2 instances",
    forms: &[Form::Script],
    own_keys: &[Key::of::<Config>(
        CONFIG,
        "What the instances of a case are; `num_tasks` is their number. Only the scheduler ec2 reads it.",
    )],
    required: &[CONFIG],
    is_text: config::is_text,
    options: config::OPTIONS,
    site_options: config::SITE_OPTIONS,
    wrong_options: config::wrong_options,
    shared_keys: &[
        ("num_nodes", SharedKey::Refuses("write `num_tasks`: each instance is a task")),
        ("num_cpus_per_task", BY_TYPE),
        ("num_gpus_per_node", BY_TYPE),
        ("exclusive_access", SharedKey::Ignores),
        ("access", SharedKey::Refuses("write `security_groups`, `instance_profile` or `tags` in `sched_options`")),
        ("resources", BY_TYPE),
        ("launcher", SharedKey::Refuses("write `mpirun` into `executable`: it finds the instances of the case")),
        ("use_multithreading", SharedKey::Refuses("write `cpu_options: { threads_per_core: 1 }` in `ec2_config`")),
    ],
    // By these the instances of a job are found and ended; the script alone may hold a secret.
    never_masked: &[
        "place",
        "bucket",
        "prefix",
        "name",
        "token",
        "tags.rfm",
        "tags.rfm-session",
        "tags.rfm-managed",
        "lifetime",
        "poll_interval",
        "launched",
        "ids",
    ],
    starters: &[("ec2", include_str!("starter.yaml"))],
    files: Files::Sent,
    is_cluster: true,
    connect: |_| Ok(Arc::new(ec2())),
    look: Some(|_| Ok(Arc::new(ec2()))),
    planner: Some(|_| Ok(Arc::new(ec2()))),
    ..Descriptor::NONE
};

/// Connections are opened when something is asked at a place.
fn ec2() -> Ec2 {
    Ec2::new(Box::new(cloud::connect), Arc::new(clock::now))
}

/// Returns whether a partition with this scheduler runs on EC2: for commands about EC2 alone.
pub fn is_ec2(descriptor: &Descriptor) -> bool {
    ptr::eq(descriptor, &raw const SCHEDULER)
}

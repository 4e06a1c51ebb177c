//! The scheduler `ec2`: scripts on instances of their own. Its checks are listed, linted and rendered; nothing is launched yet.

use muster_core::job::descriptor::{Descriptor, Files, Form, SharedKey};
use muster_text::decode::{Key, Mapping, Ordered};
use std::time::Duration;

const BY_TYPE: SharedKey = SharedKey::Refuses("choose an `instance_type` in `ec2_config`");

/// What is known of it without a connection.
pub static SCHEDULER: Descriptor = Descriptor {
    names: &["ec2"],
    descr: "scripts on EC2 instances, which can be listed and checked but not launched yet",
    forms: &[Form::Script],
    own_keys: &[Key::of::<Mapping>("ec2_config", "Settings of EC2, passed to the scheduler ec2 unchanged.")],
    required: &["ec2_config"],
    options: &[
        Key::of::<String>("region", "The region of the instances."),
        Key::of::<String>("bucket", "Where scripts go and logs come from: `s3://bucket/prefix`."),
        Key::of::<Vec<String>>("subnets", "Subnets of the instances, tried in order."),
        Key::of::<Vec<String>>("security_groups", "Security groups of the instances."),
        Key::of::<String>("instance_profile", "The instance profile, whose role the job has."),
        Key::of::<Mapping>("tags", "Tags of all that is created."),
        Key::of::<Duration>("max_keep", "The longest that a failed instance is kept."),
        Key::of::<Ordered<f64>>("price_per_hour", "Prices by instance type."),
        Key::of::<String>("endpoint_url", "The address of the API, for tests."),
    ],
    shared_keys: &[
        ("num_nodes", SharedKey::Refuses("write `num_tasks`: each instance is a task")),
        ("num_cpus_per_task", BY_TYPE),
        ("num_gpus_per_node", BY_TYPE),
        ("exclusive_access", SharedKey::Ignores),
        ("use_multithreading", BY_TYPE),
    ],
    starters: &[("ec2", include_str!("starter.yaml"))],
    files: Files::Elsewhere("fetch the files in `prerun_cmds`"),
    is_cluster: true,
    connect: |_| {
        Err("Muster can list and check its cases but not launch them yet: leave the partition out with --system or -n".into())
    },
    ..Descriptor::NONE
};

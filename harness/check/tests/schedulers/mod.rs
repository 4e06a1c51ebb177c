//! The schedulers of `muster`, for tests.

use muster_core::job::descriptor::{Descriptor, Schedulers};

pub(crate) fn schedulers() -> Schedulers {
    static ALL: &[&Descriptor] = &[
        &muster_k8s::SCHEDULER,
        &muster_ec2::SCHEDULER,
        &muster_slurm::SCHEDULER,
        &muster_local::SCHEDULER,
        &muster_fake::SCHEDULER,
    ];
    Schedulers::new(ALL)
}

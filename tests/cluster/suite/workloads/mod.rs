//! What a workload does and what becomes of its case.

pub(super) mod custom_resources;
pub(super) mod failures;
pub(super) mod lifecycle;
pub(super) mod limits;

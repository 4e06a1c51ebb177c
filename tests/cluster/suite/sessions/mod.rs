//! Sessions that are interrupted, killed or without an API server, and those that go on.

pub(super) mod interruptions;
pub(super) mod outages;
pub(super) mod owners;

//! The processes of jobs: those that this harness started, the marks by which those of others are found, and how one ended.

pub(crate) mod exit;
pub(crate) mod mark;
pub(crate) mod own_job;

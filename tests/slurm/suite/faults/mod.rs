//! What goes wrong around a job: nodes, the controller, the queue, submissions, limits, files, clocks.

pub(crate) mod controller;
pub(crate) mod doubt;
pub(crate) mod files;
pub(crate) mod limits;
pub(crate) mod nodes;
pub(crate) mod queue;
pub(crate) mod submission;

//! What goes wrong around a job: nodes, the controller, the queue, limits, files, clocks.

pub(crate) mod controller;
pub(crate) mod files;
pub(crate) mod limits;
pub(crate) mod nodes;
pub(crate) mod queue;

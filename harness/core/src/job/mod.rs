//! The values that a scheduler is given and gives back: a workload, a job, its states, its stdout.

pub mod descriptor;
pub mod handle;
pub mod inventory;
pub mod outputs;
pub mod scheduler;
pub mod stage_folder;
pub mod status;
pub mod stdout;
pub mod workload;

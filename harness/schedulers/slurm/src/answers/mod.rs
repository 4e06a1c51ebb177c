//! Readers of what Slurm's commands print. Pure.
//!
//! ```text
//! state      states of jobs            jobs      squeue, sacct, scontrol show job
//! nodes      sinfo                     settings  scontrol show config, scontrol show partition
//! descriptions   scontrol show node
//! ```

pub(crate) mod descriptions;
pub(crate) mod jobs;
pub(crate) mod nodes;
pub(crate) mod settings;
mod state;

pub(crate) use state::State;

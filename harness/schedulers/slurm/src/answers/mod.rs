//! What Slurm's commands print, read. Pure.
//!
//! ```text
//! state      states of jobs            jobs    squeue, sacct, scontrol show job
//! nodes      sinfo                     list    n[1-3]
//! settings   scontrol show config, scontrol show partition
//! ```

pub(crate) mod jobs;
mod list;
pub(crate) mod nodes;
pub(crate) mod settings;
mod state;

pub(crate) use list::expand;
pub(crate) use state::State;

//! Turns check and site files into cases that are ready to run. Pure: texts and facts come in, values go out.
//!
//! ```text
//! site        where checks run: systems, partitions, environments; the site file
//! files       what is written in a check file, after `extends`, overrides and references
//! cases       checks, `when`, parameters, fixtures -> test cases
//! selection   which cases run, in which order, on which nodes
//! render      a case with nothing left to fill in: Workload and Rules
//! lint        what is probably not meant
//! ```
//! Each directory imports only those above it.

pub mod cases;
pub mod files;
pub mod lint;
pub mod render;
pub mod selection;
pub mod site;

#[cfg(test)]
#[path = "../tests/schedulers/mod.rs"]
mod testing;

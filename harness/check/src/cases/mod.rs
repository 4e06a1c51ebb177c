//! Expands checks to cases: one for each point of its parameters, partition and environment.

pub mod check;
pub mod dependencies;
pub mod other_files;
pub mod parameter;
pub mod scope;
pub mod test_case;
pub mod variables;
pub mod when;

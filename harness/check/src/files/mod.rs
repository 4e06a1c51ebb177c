//! The content of check files, before there are cases.

pub mod check_file;
pub mod extends;
pub mod load;
pub mod named_as_keys;
pub mod needs;
pub mod overrides;
pub mod reference_file;
pub mod references;
pub mod settings;
pub mod staging;

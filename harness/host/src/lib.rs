//! What Muster does on the machine it runs on, for all crates that touch files. It knows nothing of checks and imports nothing.

pub mod file_limit;
pub mod files;
pub mod replace;

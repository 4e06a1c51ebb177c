//! What Muster does on the machine it runs on, for all crates that touch files. It knows nothing of checks and imports nothing.

pub mod clock;
pub mod file_limit;
pub mod files;
pub mod owner;
pub mod process;
pub mod replace;

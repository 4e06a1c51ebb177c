//! Functions of the machine that Muster runs on: accounts, clock, processes, processors, files. Knows nothing of checks and jobs.

pub mod account;
pub mod clock;
pub mod file_limit;
pub mod files;
pub mod owner;
pub mod process;
pub mod processor;
pub mod replace;
pub mod user_folders;

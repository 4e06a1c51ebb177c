//! What a run writes: files and their modes, reports, the output of a test binary.

mod database;
mod file_modes;
mod help;
mod libtest;
mod reports;
mod secrets;
mod streams;
mod surroundings;
mod unanswered;

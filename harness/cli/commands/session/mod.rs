//! The actions that run a session: `-r`, `attach`, and the cases as the tests of a test binary.

pub mod attach;
mod cases;
mod command_line;
mod distribute;
pub mod libtest;
pub mod plan;
mod restore;
mod resume;
pub mod run;

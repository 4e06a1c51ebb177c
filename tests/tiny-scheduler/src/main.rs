//! Muster with one scheduler more. It takes Muster's arguments.

use muster_core::job::descriptor::Descriptor;
use muster_tiny_scheduler::SCHEDULER;
use std::{ffi::OsString, process::ExitCode};

fn main() -> ExitCode {
    let argv: Vec<OsString> = std::env::args_os().collect();
    let schedulers: Vec<&Descriptor> = muster::SCHEDULERS.iter().copied().chain([&SCHEDULER]).collect();
    muster::run(&argv, schedulers.leak())
}

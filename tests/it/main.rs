//! Behaviour of the whole program, as its users see it: every test runs the real binary in a folder of its own.

#[path = "../common/mod.rs"]
mod common;
mod sandbox;
#[path = "../common/walked.rs"]
mod walked;

mod checks;
mod compat;
mod convert;
mod docs;
mod ec2;
mod k8s;
mod output;
mod results;
mod run;
mod session;
mod upkeep;

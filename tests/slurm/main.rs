//! Muster on a real Slurm: real jobs, real limits, real preemption, real faults.
//!
//! `cargo test` makes namespaces with `tests/slurm/run` and runs all tests of this file in them; the tests start the clusters
//! that they want. Where that cannot be, every test is ignored, and the reason is printed; with `MUSTER_SLURM_TESTS=required`, as
//! in CI, that is a failure. `MUSTER_SLURM_TESTS=off` leaves them out.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/servers.rs"]
mod servers;
mod suite;
#[path = "../common/walked.rs"]
mod walked;

use libtest_mimic::Trial;
use servers::{Servers, judged};
use std::process::ExitCode;
use suite::TESTS;

const SLURM: Servers = Servers {
    what: "a real Slurm",
    script: "tests/slurm/run",
    arguments: &["--no-cluster"],
    variable: "MUSTER_SLURM_TESTS",
    inside: "MUSTER_SLURM",
    at_once: 8,
};

fn main() -> ExitCode {
    let trial = |&(name, run): &(&'static str, fn())| Trial::test(name, move || judged(run));
    SLURM.run(TESTS.iter().map(trial).collect())
}

//! Muster on an EC2 whose instances really run what they are given (moto, and what it lacks: `fixture`).
//!
//! `cargo test` starts the fixture with `tests/ec2/run`, and all tests of this file beside it; each test has a cloud of its own.
//! Where that cannot be, every test is ignored, and the reason is printed; with `MUSTER_EC2_TESTS=required`, as in CI, that is a
//! failure. `MUSTER_EC2_TESTS=off` leaves them out.

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "the tests of the scheduler use the rest")]
mod common;
#[path = "../common/servers.rs"]
mod servers;
mod suite;

use libtest_mimic::Trial;
use servers::{Servers, judged};
use std::process::ExitCode;
use suite::TESTS;

const EC2: Servers = Servers {
    what: "an EC2 for tests",
    script: "tests/ec2/run",
    arguments: &[],
    variable: "MUSTER_EC2_TESTS",
    inside: "MUSTER_EC2",
    at_once: 8,
};

fn main() -> ExitCode {
    let trial = |&(name, run): &(&'static str, fn())| Trial::test(name, move || judged(run));
    EC2.run(TESTS.iter().map(trial).collect())
}

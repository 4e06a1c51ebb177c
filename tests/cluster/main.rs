//! Muster on a real Kubernetes: real pods, real quotas, real queues, real faults.
//!
//! `cargo test` starts one cluster with `tests/cluster/run`, runs all tests of this file in it and takes it down. Where that
//! cannot be (no root, no container runtime), every test is ignored, and the reason is printed; with
//! `MUSTER_CLUSTER_TESTS=required`, as in CI, that is a failure. `MUSTER_CLUSTER_TESTS=off` leaves them out.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/servers.rs"]
mod servers;
mod suite;

use libtest_mimic::Trial;
use servers::{Servers, judged};
use std::{process::ExitCode, sync::RwLock};
use suite::{Alone, TESTS, Test};

/// Tests that break the cluster for a while have it for themselves.
static CLUSTER: RwLock<()> = RwLock::new(());

const KUBERNETES: Servers = Servers {
    what: "a real Kubernetes",
    script: "tests/cluster/run",
    arguments: &["--nodes", "2", "--gpus", "8", "--with", "kueue,jobset"],
    variable: "MUSTER_CLUSTER_TESTS",
    inside: "MUSTER_CLUSTER",
    at_once: 6,
};

fn main() -> ExitCode {
    KUBERNETES.run(TESTS.iter().map(trial).collect())
}

fn trial(test: &Test) -> Trial {
    let Test { name, alone, run } = *test;
    Trial::test(name, move || match alone {
        Alone::No => {
            let _shared = CLUSTER.read();
            judged(run)
        }
        Alone::Yes => {
            let _mine = CLUSTER.write();
            judged(run)
        }
    })
}

//! Muster on a real Kubernetes: real pods, real quotas, real queues, real faults.
//!
//! `cargo test` starts one cluster with `tests/cluster/run`, runs all tests of this file in it and takes it down. Where that
//! cannot be (no root, no container runtime), every test is ignored, and the reason is printed; with
//! `MUSTER_CLUSTER_TESTS=required`, as in CI, that is a failure. `MUSTER_CLUSTER_TESTS=off` leaves them out.

#[path = "../common/mod.rs"]
mod common;
mod suite;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::{
    env,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::RwLock,
};
use suite::{Alone, TESTS, Test};

/// Tests that break the cluster for a while have it for themselves.
static CLUSTER: RwLock<()> = RwLock::new(());

/// How many tests at once: each mostly waits for its pods.
const AT_ONCE: usize = 6;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    if env::var_os("MUSTER_CLUSTER").is_some() {
        arguments.test_threads.get_or_insert(AT_ONCE);
        return libtest_mimic::run(&arguments, TESTS.iter().map(trial).collect()).exit_code();
    }
    if arguments.list {
        return libtest_mimic::run(&arguments, TESTS.iter().map(trial).collect()).exit_code();
    }
    let wanted = env::var("MUSTER_CLUSTER_TESTS").unwrap_or_default();
    let reason = if wanted == "off" { Some("MUSTER_CLUSTER_TESTS=off".to_owned()) } else { obstacle() };
    match reason {
        None => in_a_cluster(),
        Some(reason) => {
            eprintln!("\n!!! SKIPPED: {} tests on a real Kubernetes did NOT run: {reason}\n", TESTS.len());
            if wanted == "required" {
                return ExitCode::FAILURE;
            }
            let ignored = |test: &Test| {
                let reason = reason.clone();
                Trial::ignorable_test(test.name, move || Ok(Completion::ignored_with(reason)))
            };
            libtest_mimic::run(&arguments, TESTS.iter().map(ignored).collect()).exit_code()
        }
    }
}

/// A panic is a failed test; the others go on.
fn trial(test: &Test) -> Trial {
    let Test { name, alone, run } = *test;
    Trial::test(name, move || {
        let outcome = match alone {
            Alone::No => {
                let _shared = CLUSTER.read();
                panic::catch_unwind(AssertUnwindSafe(run))
            }
            Alone::Yes => {
                let _mine = CLUSTER.write();
                panic::catch_unwind(AssertUnwindSafe(run))
            }
        };
        outcome.map_err(|panic| {
            let message = panic.downcast_ref::<String>().cloned();
            Failed::from(message.or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned())).unwrap_or_default())
        })
    })
}

/// This very program, with its arguments, in a cluster.
fn in_a_cluster() -> ExitCode {
    let program = env::current_exe().expect("this program's path");
    let mut command = Command::new(script("run"));
    command.args(["--nodes", "2", "--gpus", "8", "--with", "kueue,jobset", "--"]).arg(program).args(env::args_os().skip(1));
    match command.stdin(Stdio::null()).status() {
        Ok(status) => ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)),
        Err(error) => {
            eprintln!("tests/cluster/run could not be started: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Why there can be no cluster here, in one sentence.
fn obstacle() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("this needs Linux".to_owned());
    }
    let check = Command::new(script("run")).arg("--check").stdin(Stdio::null()).output().ok()?;
    if check.status.success() {
        return None;
    }
    let output = String::from_utf8_lossy(&check.stderr).trim().to_owned();
    Some(if output.is_empty() { "tests/cluster/run --check failed".to_owned() } else { output })
}

/// A script of `tests/cluster`.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster").join(name)
}

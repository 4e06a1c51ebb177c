//! A test binary whose tests need real servers: it starts itself again where they are, or says why it cannot.
//!
//! A script of the folder starts the servers around a command, and says with `--check` whether it could. Where it could not (no
//! root, packages that are missing), every test is ignored, and the reason is printed; with `VARIABLE=required`, as in CI, that is a
//! failure. `VARIABLE=off` leaves the tests out.

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::{
    env,
    panic::{self, UnwindSafe},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

/// The servers of a test binary.
pub(crate) struct Servers {
    /// What they are: `a real Kubernetes`.
    pub(crate) what: &'static str,
    /// The script that starts them, from the root of the repository.
    pub(crate) script: &'static str,
    /// Its arguments before the command.
    pub(crate) arguments: &'static [&'static str],
    /// The environment variable that leaves the tests out or requires them.
    pub(crate) variable: &'static str,
    /// The environment variable that the script sets for the command.
    pub(crate) inside: &'static str,
    /// How many tests at once: each mostly waits.
    pub(crate) at_once: usize,
}

impl Servers {
    pub(crate) fn run(&self, trials: Vec<Trial>) -> ExitCode {
        let mut arguments = Arguments::from_args();
        if env::var_os(self.inside).is_some() || arguments.list {
            arguments.test_threads.get_or_insert(self.at_once);
            return libtest_mimic::run(&arguments, trials).exit_code();
        }
        let wanted = env::var(self.variable).unwrap_or_default();
        let reason = if wanted == "off" { Some(format!("{}=off", self.variable)) } else { self.obstacle() };
        let Some(reason) = reason else { return self.this_program_inside() };
        eprintln!("\n!!! SKIPPED: {} tests on {} did NOT run: {reason}\n", trials.len(), self.what);
        if wanted == "required" {
            return ExitCode::FAILURE;
        }
        let ignored = |trial: &Trial| {
            let reason = reason.clone();
            Trial::ignorable_test(trial.name(), move || Ok(Completion::ignored_with(reason)))
        };
        libtest_mimic::run(&arguments, trials.iter().map(ignored).collect()).exit_code()
    }

    /// This very program, with its arguments, where the servers are.
    fn this_program_inside(&self) -> ExitCode {
        let program = env::current_exe().expect("this program's path");
        let mut command = Command::new(self.path());
        command.args(self.arguments).arg("--").arg(program).args(env::args_os().skip(1));
        match command.stdin(Stdio::null()).status() {
            Ok(status) => ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)),
            Err(error) => {
                eprintln!("{} could not be started: {error}", self.script);
                ExitCode::FAILURE
            }
        }
    }

    /// Why there can be no servers here, in one sentence.
    fn obstacle(&self) -> Option<String> {
        if !cfg!(target_os = "linux") {
            return Some("this needs Linux".to_owned());
        }
        let check = match Command::new(self.path()).arg("--check").stdin(Stdio::null()).output() {
            Ok(check) => check,
            Err(error) => return Some(format!("{} could not be started: {error}", self.script)),
        };
        if check.status.success() {
            return None;
        }
        let output = String::from_utf8_lossy(&check.stderr).trim().to_owned();
        Some(if output.is_empty() { format!("{} --check failed", self.script) } else { output })
    }

    fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(self.script)
    }
}

/// Runs a test. A panic is its failure; the others go on.
pub(crate) fn judged(run: impl FnOnce() + UnwindSafe) -> Result<(), Failed> {
    panic::catch_unwind(run).map_err(|panic| {
        let message = panic.downcast_ref::<String>().cloned();
        Failed::from(message.or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned())).unwrap_or_default())
    })
}

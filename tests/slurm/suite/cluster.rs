//! The Slurm clusters of the tests: two that all share, and one for each test that breaks it.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

/// A user of the clusters (`tests/slurm/run` makes them).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    /// Who runs Muster.
    Alice,
    /// Another user.
    Bob,
}

/// Whether there is a database of ended jobs, with accounts and limits.
#[derive(Clone, Copy)]
pub(crate) enum Accounting {
    Off,
    On,
}

/// One Slurm, of three nodes with 4 CPUs each.
pub(crate) struct Cluster {
    folder: PathBuf,
}

impl User {
    pub(crate) fn id(self) -> u32 {
        match self {
            Self::Root => 0,
            Self::Alice => 7001,
            Self::Bob => 7002,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Alice => "alice",
            Self::Bob => "bob",
        }
    }

    /// Makes a command this user's, with an environment as after a login.
    pub(crate) fn becomes(self, command: &mut Command) {
        if self != Self::Root {
            command.uid(self.id()).gid(self.id()).env("HOME", home(self)).env("USER", self.name()).env("LOGNAME", self.name());
        }
    }
}

/// The folder of this run: in memory, and seen by all nodes.
pub(crate) fn run_folder() -> PathBuf {
    PathBuf::from(env::var_os("MUSTER_SLURM_DIR").expect("the tests run within tests/slurm/run"))
}

fn home(user: User) -> PathBuf {
    run_folder().join("home").join(user.name())
}

impl Cluster {
    /// The cluster of all tests that break nothing and need no accounting.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::own(Accounting::Off))
    }

    /// The same with accounting.
    pub(crate) fn with_accounting() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::own(Accounting::On))
    }

    /// One for the caller alone.
    pub(crate) fn own(accounting: Accounting) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let folder = run_folder().join(format!("c{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        let cluster = Self { folder };
        cluster.script(
            "up",
            match accounting {
                Accounting::Off => &[],
                Accounting::On => &["--accounting"],
            },
        );
        cluster
    }

    /// Its `SLURM_CONF`.
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.join("slurm.conf")
    }

    /// Ends slurmctld, slurmdbd, mariadbd or a node at once.
    pub(crate) fn stop(&self, part: &str) {
        self.script("stop", &[part]);
    }

    pub(crate) fn start(&self, part: &str) {
        self.script("start", &[part]);
    }

    /// A part that is there and answers nothing, until `resume`.
    pub(crate) fn hang(&self, part: &str) {
        self.script("hang", &[part]);
    }

    pub(crate) fn resume(&self, part: &str) {
        self.script("resume", &[part]);
    }

    /// What each node runs after each job.
    pub(crate) fn set_epilog(&self, line: &str) {
        let script = self.folder.join("epilog");
        fs::write(&script, format!("#!/bin/sh\n{line}\n")).expect("a script");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a program");
        self.set("Epilog", &script.to_string_lossy());
    }

    /// Changes its configuration.
    pub(crate) fn set(&self, key: &str, value: &str) {
        let before = fs::read_to_string(self.config()).expect("a configuration");
        let others = before.lines().filter(|line| line.split('=').next() != Some(key));
        let config = others.fold(String::new(), |text, line| text + line + "\n");
        fs::write(self.config(), format!("{config}{key}={value}\n")).expect("a configuration");
        self.run(User::Root, &["scontrol", "reconfigure"]);
    }

    fn script(&self, command: &str, arguments: &[&str]) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm/cluster");
        let mut started = Command::new(script);
        started.arg(command).arg(&self.folder).args(arguments).stdin(Stdio::null());
        // Daemons keep what they inherit, so a pipe would never end.
        let log = self.folder.with_extension(format!("{command}.log"));
        let file = fs::File::create(&log).expect("a log");
        let status = started.stdout(file.try_clone().expect("a file")).stderr(file).status().expect("the script");
        assert!(
            status.success(),
            "tests/slurm/cluster {command} {arguments:?}: {}",
            fs::read_to_string(&log).unwrap_or_default()
        );
    }

    /// A command of Slurm's, as a user.
    pub(crate) fn command(&self, user: User, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        user.becomes(&mut command);
        command.env("SLURM_CONF", self.config()).env("LC_ALL", "C").stdin(Stdio::null());
        command
    }

    /// Runs it; panics if it fails.
    pub(crate) fn run(&self, user: User, words: &[&str]) -> String {
        let output = self.output(user, words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn output(&self, user: User, words: &[&str]) -> Output {
        self.command(user, words[0]).args(&words[1..]).output().unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// The jobs of a user that have not ended: name, state.
    pub(crate) fn jobs(&self, user: User) -> Vec<(String, String)> {
        let all = self.run(User::Root, &["squeue", "-h", "-u", user.name(), "-t", "PD,CF,R,CG,S,ST", "-o", "%j %T"]);
        all.lines().filter_map(|line| line.split_once(' ')).map(|(name, state)| (name.to_owned(), state.to_owned())).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A test that failed has a panic of its own already.
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm/cluster");
        let _ = Command::new(script).arg("down").arg(&self.folder).stdin(Stdio::null()).stdout(Stdio::null()).status();
    }
}

//! A session that others look at, while it runs and afterwards, without the right to write anything of it.

use crate::{
    common::eventually,
    sandbox::{Ended, Sandbox},
};
use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command},
    time::Duration,
};

const SITE: &str = "name: here\nhostnames: ['.*']\npartitions:\n  - { name: fake, scheduler: fake, environs: [default] }\n  - { name: busy, scheduler: fake, environs: [default], max_jobs: 1 }\nenvironments: [{ name: default }]\n";

/// One case ends, one runs, one is pending, and of two that run one after the other the second waits.
const CHECKS: &str = "\
name: quick
valid_systems: ['here:fake']
sanity: []
---
name: runs
valid_systems: ['here:fake']
parameters: { size: [64, 128] }
fake: { statuses: [{ state: running, nodes: [gpu-07, gpu-08] }, { after_ms: 100000, state: ended }] }
sanity: []
---
name: queued
valid_systems: ['here:fake']
fake: { statuses: [{ state: pending, why: 0/3 nodes have a free GPU }, { after_ms: 100000, state: ended }] }
sanity: []
---
name: serial
valid_systems: ['here:busy']
parameters: { n: [1, 2] }
fake: { statuses: [{ state: running }, { after_ms: 100000, state: ended }] }
sanity: []
";

/// A session that runs until it is killed.
struct Running {
    sandbox: Sandbox,
    child: Child,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start() -> Self {
        let sandbox = Sandbox::with_check(CHECKS);
        sandbox.write("site-config/here.yaml", SITE);
        let args = ["-c", "check.yaml", "-r", "--db", "state/r.db", "--file-mode", "0644"];
        let child = sandbox.command(&args).spawn().expect("runs");
        let running = Self { sandbox, child };
        let is_stored = || running.results(&["results", "show"], None).stdout.contains("quick");
        eventually("a stored result", Duration::from_secs(30), is_stored);
        running
    }

    fn results(&self, args: &[&str], user: Option<&Path>) -> Ended {
        let mut command = self.sandbox.command(&[args, &["--db", "state/r.db"]].concat());
        if let Some(binary) = user {
            let from = command;
            command = Command::new(binary);
            command.args(from.get_args()).current_dir(self.sandbox.path("")).uid(NOBODY).gid(NOBODY);
        }
        self.sandbox.ended(&command.output().expect("the binary runs"))
    }
}

/// A user who owns nothing.
const NOBODY: u32 = 65534;

/// The program in a folder that everybody can read: the build folder may be private.
fn for_everybody(sandbox: &Sandbox) -> std::path::PathBuf {
    fs::set_permissions(sandbox.path(""), fs::Permissions::from_mode(0o755)).expect("a folder");
    let (binary, copy) = (Path::new(env!("CARGO_BIN_EXE_muster")), sandbox.path("muster"));
    fs::hard_link(binary, &copy).or_else(|_| fs::copy(binary, &copy).map(drop)).expect("a copy of the program");
    copy
}

#[test]
fn another_user_reads_the_results_of_a_session_while_it_runs_and_after_it_was_killed() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("!!! SKIPPED: reading as another user needs root");
        return;
    }
    let mut running = Running::start();
    let binary = for_everybody(&running.sandbox);
    let files = || {
        let folder = fs::read_dir(running.sandbox.path("state")).expect("a folder");
        let mut names: Vec<_> = folder.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    let before = files();
    assert_eq!(before, ["r.db", "r.db-shm", "r.db-wal"]);
    for moment in ["while it runs", "after it was killed"] {
        for command in [&["results", "list"][..], &["results", "show"]] {
            let ended = running.results(command, Some(&binary));
            assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{moment}: {}", ended.stdout);
        }
        assert!(running.results(&["results", "show"], Some(&binary)).stdout.contains("quick"), "{moment}");
        let refused = running.results(&["results", "migrate"], Some(&binary));
        assert_eq!(refused.code, Some(2), "{}", refused.stdout);
        running.child.kill().expect("killed");
        running.child.wait().expect("killed");
    }
    let folder = fs::read_dir(running.sandbox.path("state")).expect("a folder");
    assert_eq!(folder.count(), before.len(), "a reader leaves nothing");
}

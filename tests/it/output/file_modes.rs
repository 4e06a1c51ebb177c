//! The modes of everything that a run leaves, and what of the command line is stored.

use crate::sandbox::{Ended, Sandbox};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

const SITE: &str = "\
name: here
hostnames: '.*'
partitions:
  - { name: fake, scheduler: fake }
  - { name: local, scheduler: local }
";

/// A case that fails, one that passes and keeps a file, and one whose log has two sections.
const CHECKS: &str = "\
name: fails
valid_systems: ['here:local']
executable: 'echo no'
sanity: [{ found: 'yes' }]
---
name: passes
valid_systems: ['here:local']
sourcesdir: src
executable: 'umask > umask.txt; echo speed 7'
keep_files: [umask.txt, input.txt]
sanity: [{ found: speed }]
perf_variables: { speed: { pattern: 'speed (\\d+)', unit: MB/s } }
---
name: played
valid_systems: ['here:fake']
fake:
  logs: [{ section: pod-0, text: \"a\\n\" }, { section: pod-1, text: \"b\\n\" }]
sanity: []
";

const RUN: [&str; 11] = [
    "-c",
    "check.yaml",
    "-r",
    "--report-html",
    "reports/page.html",
    "--report-junit",
    "reports/junit.xml",
    "--report-markdown",
    "reports/summary.md",
    "--perflogdir",
    "perflogs",
];

fn sandbox(site: &str) -> Sandbox {
    let sandbox = Sandbox::with_check(CHECKS);
    sandbox.write("site-config/here.yaml", site).write("src/input.txt", "input\n").write("src/below/more.txt", "more\n");
    sandbox
}

/// The program with a umask that is not the test's.
fn under(umask: &str, sandbox: &Sandbox, args: &[&str], more_env: &[(&str, &str)]) -> Ended {
    let inner = sandbox.command(args);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "umask \"$0\"; exec \"$@\"", umask]).arg(inner.get_program()).args(inner.get_args());
    command.current_dir(inner.get_current_dir().expect("a folder")).envs(more_env.iter().copied());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    sandbox.ended(&command.output().expect("the binary runs"))
}

/// What a job wrote itself, and what was staged for it, have the modes that they had.
fn is_the_jobs(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ["umask.txt", "input.txt", "more.txt"].contains(&&*name)
}

/// Every file and folder of a run that has another mode than it should have, and how many have the right one.
fn modes(sandbox: &Sandbox, file: u32) -> (Vec<String>, usize) {
    let folder = file | (file & 0o444) >> 2;
    let (mut wrong, mut right) = (Vec::new(), 0);
    let mut ahead: Vec<PathBuf> = ["stage", "output", "reports", "perflogs", "state"].map(|root| sandbox.path(root)).into();
    while let Some(path) = ahead.pop() {
        let found = fs::symlink_metadata(&path).expect("it is there");
        if found.is_dir() {
            ahead.extend(fs::read_dir(&path).expect("a folder").flatten().map(|entry| entry.path()));
        }
        if found.is_symlink() || is_the_jobs(&path) {
            continue;
        }
        let is_folder = found.is_dir() || path.ends_with("rfm_job.sh");
        let (mode, wanted) = (found.permissions().mode() & 0o777, if is_folder { folder } else { file });
        if mode == wanted { right += 1 } else { wrong.push(format!("{} {mode:04o}, not {wanted:04o}", path.display())) }
    }
    (wrong, right)
}

fn names(sandbox: &Sandbox, root: &str) -> String {
    let mut names = String::new();
    let mut ahead = vec![sandbox.path(root)];
    while let Some(folder) = ahead.pop() {
        for path in fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path()) {
            names.push_str(&path.file_name().unwrap_or_default().to_string_lossy());
            names.push('\n');
            ahead.extend(path.is_dir().then_some(path));
        }
    }
    names
}

#[test]
fn whatever_the_umask_everything_that_a_run_leaves_has_its_mode_and_the_job_keeps_the_umask() {
    let open_site = format!("{SITE}file_mode: 0640\n");
    let rows: [(&str, &[&str], &str, u32); 6] = [
        (SITE, &[], "000", 0o600),
        (SITE, &[], "077", 0o600),
        (SITE, &["--file-mode", "0640"], "000", 0o640),
        (SITE, &["--file-mode", "0640"], "077", 0o640),
        (&open_site, &[], "077", 0o640),
        (&open_site, &["--file-mode", "600"], "000", 0o600),
    ];
    for (site, more, umask, file) in rows {
        let sandbox = sandbox(site);
        let ended = under(umask, &sandbox, &[&RUN, more].concat(), &[]);
        assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
        let (wrong, right) = modes(&sandbox, file);
        assert!(wrong.is_empty(), "umask {umask}, {more:?}:\n{}", wrong.join("\n"));
        assert!(right >= 30, "only {right} files and folders");
        let mut output = sandbox.path("output/here/local/default");
        output.push(fs::read_dir(&output).expect("a folder").flatten().next().expect("a case").file_name());
        assert_eq!(fs::read_to_string(output.join("umask.txt")).expect("kept"), format!("0{umask}\n"));
    }
}

#[test]
fn what_a_killed_harness_leaves_is_private_too() {
    let sandbox = sandbox(SITE);
    let ended = under("000", &sandbox, &["-c", "check.yaml", "-r", "-n", "played"], &[("RFM_CRASH_AT", "log-drained")]);
    assert_eq!(ended.code, None, "{}{}", ended.stdout, ended.stderr);
    fs::create_dir(sandbox.path("perflogs")).expect("a folder");
    fs::set_permissions(sandbox.path("perflogs"), fs::Permissions::from_mode(0o700)).expect("mine");
    let (wrong, _) = modes(&sandbox, 0o600);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let left = names(&sandbox, "stage") + &names(&sandbox, "state");
    for name in [".rfm_spool.0", ".rfm_spool.1", "results.db", "results.db-wal", "results.db-shm"] {
        assert!(left.lines().any(|line| line == name), "{name} is not there:\n{left}");
    }
}

#[test]
fn a_file_that_was_there_keeps_its_mode() {
    let sandbox = sandbox(SITE);
    under("022", &sandbox, &[&RUN[..], &["--file-mode", "0644"]].concat(), &[]);
    under("022", &sandbox, &RUN, &[]);
    let mode = |path: &str| format!("{:04o}", fs::metadata(sandbox.path(path)).expect(path).permissions().mode() & 0o777);
    let modes = ["state/muster/results.db", "perflogs/here/local/passes.csv", "reports/page.html"].map(mode);
    assert_eq!(modes, ["0644"; 3]);
}

#[test]
fn a_wider_mode_opens_the_folders_that_a_narrower_one_has_left() {
    let sandbox = sandbox(SITE);
    under("022", &sandbox, &RUN, &[]);
    for root in ["reports", "perflogs", "state"] {
        fs::remove_dir_all(sandbox.path(root)).expect("it is mine");
    }
    let ended = under("022", &sandbox, &[&RUN[..], &["--file-mode", "0640"]].concat(), &[]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let (wrong, _) = modes(&sandbox, 0o640);
    let wrong: Vec<_> = wrong.into_iter().filter(|line| !line.contains("/.lock ")).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_mode_that_makes_no_sense_is_bad_usage() {
    let sandbox = sandbox(SITE);
    let ended = sandbox.muster(&["-c", "check.yaml", "-r", "--file-mode", "0750"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("`0750` is not a file mode: folders get x where files get r"), "{}", ended.stderr);
    let ended = sandbox.muster(&["-c", "check.yaml", "-r", "--file-mode", "0666"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("others must not write"), "{}", ended.stderr);
    sandbox.write("site-config/here.yaml", &format!("{SITE}file_mode: u+r\n"));
    let ended = sandbox.muster(&["-c", "check.yaml", "-r"]);
    assert!(ended.stderr.contains("site-config/here.yaml:6:12") && ended.stderr.contains("such as 0640"), "{}", ended.stderr);
}

//! `sourcesdir`: what is in a stage folder before a job runs.

use crate::{common::eventually, sandbox::Sandbox};
use std::{
    fs,
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

const CHECK: &str = "name: staged\nvalid_systems: ['*']\nexecutable: ./run.sh && ls -F\nsanity: [{ found: hello }]\n";

/// A folder with a check, and a script in the folder `sources` beside it.
fn sandbox(sources: &str, keys: &str) -> Sandbox {
    let sandbox = Sandbox::with_check(&format!("{CHECK}{keys}"));
    let script = format!("{sources}/run.sh");
    sandbox.write(&script, "#!/bin/sh\necho hello > made; cat made\n");
    let runs = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(sandbox.path(&script), runs).expect("permissions");
    sandbox
}

fn run(sandbox: &Sandbox, more: &[&str]) -> crate::sandbox::Ended {
    sandbox.muster(&[&["-c", "check.yaml", "-r", "--nocolor", "--db", "r.db"], more].concat())
}

/// What the only case has printed.
fn log(sandbox: &Sandbox, root: &str) -> String {
    let mut folder = sandbox.path(root);
    while !folder.join("rfm_job.out").exists() {
        folder =
            fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path()).find(|path| path.is_dir()).expect("one");
    }
    fs::read_to_string(folder.join("rfm_job.out")).expect("a log")
}

#[test]
fn a_folder_is_staged_before_the_script_runs_and_gone_after_a_pass() {
    let sandbox = sandbox("input", "sourcesdir: input\nreadonly_files: [data]\n");
    sandbox.write("input/data/big.bin", "x").write("input/.gitignore", "*.o\n").write("input/a.o", "x");
    let ended = run(&sandbox, &[]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{}", ended.stdout);
    let log = log(&sandbox, "output");
    assert!(log.contains("hello\ndata@\nmade\nrfm_job.exit\nrfm_job.out\nrfm_job.sh*\nrun.sh*\n"), "{log}");
    assert!(!sandbox.path("input/made").exists(), "the source was changed");
    assert!(!fs::exists(sandbox.path("output/run.sh")).unwrap_or(true));
    assert!(sandbox.path("input/data/big.bin").exists(), "a link was followed when the stage folder was removed");
}

#[test]
fn a_folder_called_src_is_staged_unless_the_check_says_no() {
    let sandbox = sandbox("src", "");
    assert_eq!(run(&sandbox, &[]).code, Some(0));
    let dry = sandbox.muster(&["-c", "check.yaml", "--dry-run"]);
    assert!(dry.stdout.contains("# stages src\n"), "{}", dry.stdout);
    let without = self::sandbox("src", "sourcesdir: null\n");
    assert_eq!(run(&without, &[]).code, Some(1), "127: there is no run.sh");
}

#[test]
fn a_retry_and_a_second_run_stage_again() {
    let sandbox = sandbox("src", "prerun_cmds: 'test ! -e made && echo gone > run.sh'\n");
    for _ in 0..2 {
        let ended = run(&sandbox, &["--max-retries", "1"]);
        assert_eq!(ended.code, Some(1), "{}", ended.stdout);
        assert!(!ended.stdout.contains("made: File exists"), "{}", ended.stdout);
        assert!(sandbox.read("src/run.sh").contains("hello"));
    }
}

#[test]
fn a_base_in_another_folder_brings_its_own_sources() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "bases/base.yaml",
        "name: base\nabstract: true\nsourcesdir: files\nexecutable: cat who\nsanity: [{ found: bases }]\n",
    );
    sandbox.write("bases/files/who", "bases\n");
    sandbox.write("checks/check.yaml", "name: derived\nextends: ../bases/base.yaml#base\nvalid_systems: ['*']\n");
    sandbox.write("checks/files/who", "checks\n");
    let ended = sandbox.muster(&["-c", "checks", "-r", "--nocolor", "--db", "r.db"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{}", ended.stdout);
}

#[test]
fn a_folder_that_is_computed_or_gone_fails_its_case_with_the_reason() {
    let sandbox = sandbox("a", "parameters: { dir: [a, b] }\nsourcesdir: '${{ dir }}'\n");
    let ended = run(&sandbox, &[]);
    assert_eq!(ended.code, Some(3), "{}", ended.stdout);
    let why = "stage `sourcesdir`: the folder [FOLDER]/b of `sourcesdir` does not exist";
    assert!(ended.stdout.contains(why) && ended.stdout.contains("1 error"), "{}", ended.stdout);
}

#[test]
fn where_nothing_is_shared_it_is_a_mistake_that_says_what_to_do_instead() {
    let check = CHECK.replace("name: staged\n", "name: staged\nk8s_config: { kind: Pod }\nsourcesdir: input\n");
    let sandbox = Sandbox::with_check(&check);
    sandbox.write("input/a", "");
    sandbox.write("site.yaml", "name: s\npartitions: [{ name: k, scheduler: k8s, environs: [default] }, { name: f, scheduler: fake, environs: [default] }]\nenvironments: [{ name: default }]\n");
    let ended = sandbox.muster(&["-C", "site.yaml", "--system", "s", "-c", "check.yaml", "-l"]);
    assert_eq!(ended.code, Some(2));
    insta::assert_snapshot!(ended.stderr, @"
    error: `sourcesdir` cannot be staged on `k8s`, which shares no file system with the harness
     --> check.yaml:3:13
      |
    3 | sourcesdir: input
      |             ^^^^^
      |
      = help: put the files into the image, into a ConfigMap or volume that the manifest mounts, or fetch them in `prerun_cmds`; `sourcesdir: null` under `when` leaves it out there

    error: 1 mistake in 1 file
    ");
}

/// A folder `src` that cannot be read until something feeds the pipe which it has as its `.gitignore`: staging lasts as long.
fn sandbox_that_waits(keys: &str) -> Sandbox {
    let sandbox = sandbox("src", &format!("readonly_files: [.gitignore]\n{keys}"));
    pipe(&sandbox, "src/.gitignore");
    let site = "name: here\nhostnames: ['.*']\npartitions: [{ name: p, scheduler: local, environs: [default], max_jobs: 9 }]\n";
    sandbox.write("site-config/here.yaml", &format!("{site}environments: [{{ name: default }}]\n"));
    sandbox
}

fn pipe(sandbox: &Sandbox, path: &str) {
    assert!(Command::new("mkfifo").arg(sandbox.path(path)).status().expect("mkfifo runs").success());
}

#[test]
fn a_pipe_among_the_sources_is_a_mistake_with_its_name() {
    let sandbox = sandbox("src", "");
    pipe(&sandbox, "src/queue");
    let ended = run(&sandbox, &[]);
    assert_eq!(ended.code, Some(3), "{}", ended.stdout);
    let why = "stage `sourcesdir`: [FOLDER]/src/queue is a pipe, and only files and folders can be staged: remove it, or name it \
               under `readonly_files`, which are linked";
    assert!(ended.stdout.contains(why), "{}", ended.stdout);
}

#[test]
fn staging_ends_at_its_own_limit() {
    let sandbox = sandbox_that_waits("stage_limit: 1\n");
    let started = Instant::now();
    let ended = run(&sandbox, &["--report-file", "report.json"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stdout);
    let why = "staging [FOLDER]/src took more than 1.0s (stage_limit): name its large files under `readonly_files`";
    assert!(ended.stdout.contains(why), "{}", ended.stdout);
    let report = sandbox.read("report.json");
    assert!(report.contains(r#""infra""#) && report.contains(r#""stage""#), "{report}");
    assert!(started.elapsed() < Duration::from_secs(40), "{:?}", started.elapsed());
}

#[test]
fn while_folders_are_staged_other_cases_run_and_none_is_lost() {
    let plain = "---\nname: plain\nvalid_systems: ['*']\nsourcesdir: null\nexecutable: touch ../../../../../done\nsanity: []\n";
    let eight = "parameters: { n: [1, 2, 3, 4, 5, 6, 7, 8] }\nmax_pending_time: 1\n";
    let sandbox = sandbox_that_waits(&format!("{eight}{plain}"));
    let child = sandbox.command(&["-c", "check.yaml", "-r", "--nocolor", "--db", "r.db"]).spawn().expect("runs");
    eventually("a case without sources", Duration::from_secs(30), || sandbox.path("done").exists());
    // It is longer than the cases may wait: staging is no waiting.
    sleep(Duration::from_millis(1200));
    let feed = format!("while :; do : > '{}'; done", sandbox.path("src/.gitignore").display());
    let mut feeding = Command::new("sh").args(["-c", &feed]).spawn().expect("sh runs");
    let ended = sandbox.ended(&child.wait_with_output().expect("ends"));
    feeding.kill().and_then(|()| feeding.wait()).expect("it can be ended");
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{}", ended.stdout);
    assert!(ended.stdout.contains("Ran 9/9 test case(s)"), "{}", ended.stdout);
}

#[test]
fn ctrl_c_ends_a_session_that_stages() {
    let sandbox = sandbox_that_waits("");
    let child = sandbox.command(&["-c", "check.yaml", "-r", "--nocolor", "--db", "r.db"]).spawn().expect("runs");
    let stage = sandbox.path("stage/here/p/default");
    eventually("a stage folder", Duration::from_secs(30), || {
        fs::read_dir(&stage).is_ok_and(|mut folders| folders.next().is_some())
    });
    let started = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs").success());
    let ended = sandbox.ended(&child.wait_with_output().expect("ends"));
    assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("1 aborted"), "{}", ended.stdout);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert!(fs::read_dir(&stage).is_ok_and(|mut folders| folders.next().is_none()), "a half-filled stage folder is left");
}

//! Ctrl-C and `kill -9` at the worst moment: nothing is lost, and what is left can be swept.

use crate::{
    common::{copy_environment, eventually},
    sandbox::{Ended, Sandbox, terminal},
};
use std::{
    io::{BufRead, BufReader, PipeReader, PipeWriter, Read, pipe},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Once,
    thread,
    time::Duration,
};
use tokio::signal::unix::{SignalKind, signal};

const LONG: &str = "name: long\nvalid_systems: ['*']\nparameters: { n: [1, 2, 3] }\nexecutable: |-\n  echo $$ > pid\n  sleep 300\nsanity: []\n---\nname: short\nvalid_systems: ['*']\nexecutable: echo\nsanity: []\n";

const SITE: &str = "name: here\nhostnames: ['.*']\npartitions: [{ name: p, scheduler: local, environs: [default], max_jobs: 4 }]\nenvironments: [{ name: default }]\n";

fn send(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().expect("kill runs");
    assert!(status.success());
}

/// The pids of the jobs that run, by what they wrote into their stage folders.
fn pids(sandbox: &Sandbox) -> Vec<String> {
    let Ok(folders) = std::fs::read_dir(sandbox.path("stage/here/p/default")) else { return vec![] };
    folders
        .filter_map(|folder| std::fs::read_to_string(folder.ok()?.path().join("pid")).ok())
        .map(|pid| pid.trim().to_owned())
        .filter(|pid| !pid.is_empty())
        .collect()
}

fn alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Under `nohup`, this process ignores HUP, and so would every program that it starts. What a process handles, a program that it
/// starts does not inherit.
fn let_children_hear_hangups() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or_default();
        if ignored.trim().ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f']) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let _within = runtime.enter();
            drop(signal(SignalKind::hangup()).expect("a handler"));
        }
    });
}

fn started() -> (Sandbox, Child) {
    let_children_hear_hangups();
    let sandbox = Sandbox::with_check(LONG);
    sandbox.write("site-config/here.yaml", SITE);
    let child =
        sandbox.command(&["-c", "check.yaml", "-r", "--db", "r.db", "--report-file", "report.json"]).spawn().expect("runs");
    eventually("three running jobs", Duration::from_secs(20), || pids(&sandbox).len() == 3);
    (sandbox, child)
}

#[test]
fn the_first_signal_stops_cleans_up_stores_and_reports() {
    for name in ["INT", "TERM", "HUP"] {
        let (sandbox, child) = started();
        let running = pids(&sandbox);
        send(&child, name);
        let ended = sandbox.ended(&child.wait_with_output().expect("ends"));
        assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
        // `short` may or may not have had its turn.
        assert!(ended.stdout.contains("3 aborted") || ended.stdout.contains("4 aborted"), "{}", ended.stdout);
        assert!(running.iter().all(|pid| !alive(pid)), "a job survived SIG{name}");
        assert!(sandbox.read("report.json").contains("\"abort\""));
        assert!(sandbox.muster(&["results", "list", "--db", "r.db"]).stdout.contains("interrupted"));
    }
}

#[test]
fn the_second_signal_leaves_at_once_and_names_what_may_be_left() {
    let sandbox = Sandbox::with_check(
        "name: stubborn\nvalid_systems: ['*']\nexecutable: |-\n  trap '' TERM\n  echo $$ > pid\n  while :; do sleep 0.1; done\nsanity: []\n",
    );
    sandbox.write("site-config/here.yaml", SITE);
    let child = sandbox.command(&["-c", "check.yaml", "-r", "--db", "r.db"]).spawn().expect("runs");
    eventually("a running job", Duration::from_secs(20), || pids(&sandbox).len() == 1);
    send(&child, "INT");
    thread::sleep(Duration::from_millis(1200));
    send(&child, "INT");
    let ended = sandbox.ended(&child.wait_with_output().expect("ends"));
    assert_eq!(ended.code, Some(130));
    assert!(ended.stderr.contains("may be left: stubborn") && ended.stderr.contains("muster sweep"), "{}", ended.stderr);
    let swept = sandbox.muster(&["sweep", "--db", "r.db"]);
    assert_eq!(swept.code, Some(0), "{}{}", swept.stdout, swept.stderr);
    assert!(pids(&sandbox).iter().all(|pid| !alive(pid)));
}

/// Runs more cases than a pipe has room for, with stdout in a pipe that nobody reads, until all results are stored.
fn unread(flags: &[&str], stderr: impl FnOnce(&PipeWriter) -> Stdio) -> (Sandbox, Child, PipeReader) {
    let sandbox = Sandbox::with_check(
        "name: many\nvalid_systems: ['*']\nparameters: { n: '${{ range(800) }}' }\nexecutable: echo\nsanity: []\n",
    );
    sandbox.write("site-config/here.yaml", SITE);
    let (reader, writer) = pipe().expect("a pipe");
    let mut command = sandbox.command(&[&["-c", "check.yaml", "-r", "--db", "r.db"], flags].concat());
    let child = command.env("TERM", "xterm").env_remove("NO_COLOR").stderr(stderr(&writer)).stdout(writer).spawn().expect("runs");
    eventually("all results are stored", Duration::from_mins(1), || {
        sandbox.muster(&["results", "list", "--db", "r.db"]).stdout.contains("800/800")
    });
    thread::sleep(Duration::from_secs(1));
    (sandbox, child, reader)
}

#[test]
fn the_second_signal_ends_a_process_whose_output_nobody_reads() {
    type Stderr = fn(&PipeWriter) -> Stdio;
    let rows: [(&[&str], Stderr); 4] = [
        // The main thread waits for libtest's printer.
        (&["--format", "json"], |_| Stdio::piped()),
        // The session has ended, and is reported.
        (&[], |_| Stdio::piped()),
        // `2>&1`
        (&[], |stdout| stdout.try_clone().expect("a pipe").into()),
        // The live view holds the screen.
        (&[], |_| {
            let (ours, theirs) = terminal();
            thread::spawn(move || std::io::copy(&mut { ours }, &mut std::io::sink()));
            theirs().into()
        }),
    ];
    for (number, (flags, stderr)) in rows.into_iter().enumerate() {
        let (_sandbox, mut child, _reader) = unread(flags, stderr);
        assert_eq!(child.try_wait().expect("a state"), None, "{number}: 800 results fit into a pipe");
        send(&child, "INT");
        thread::sleep(Duration::from_millis(1200));
        send(&child, "INT");
        let ends = || child.try_wait().expect("a state").is_some();
        eventually(&format!("{number}: the end of the process"), Duration::from_secs(6), ends);
        assert_eq!(child.wait().expect("ended").code(), Some(130), "{number}");
    }
}

#[test]
fn a_signal_after_the_end_of_a_session_leaves_its_reports_whole() {
    let (sandbox, child, mut reader) = unread(&["--report-file", "report.json"], |_| Stdio::piped());
    send(&child, "INT");
    let printed = thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    let ended = sandbox.ended(&child.wait_with_output().expect("ends"));
    assert!(printed.join().expect("joins").is_ok_and(|bytes| bytes > 0));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("interrupted by SIGINT: the session has ended"), "{}", ended.stderr);
    assert_eq!(sandbox.read("report.json").matches("\"word\": \"pass\"").count(), 800);
}

#[test]
fn a_terminal_that_goes_away_hangs_up_more_than_once_and_is_reported_to_all_the_same() {
    let (sandbox, child) = started();
    let running = pids(&sandbox);
    for _ in 0..3 {
        send(&child, "HUP");
        thread::sleep(Duration::from_millis(10));
    }
    let ended = sandbox.ended(&child.wait_with_output().expect("ends"));
    assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    assert!(sandbox.read("report.json").contains("\"abort\""));
    assert!(running.iter().all(|pid| !alive(pid)));
}

#[test]
fn timeout_signals_a_process_and_its_group_and_that_is_one_request() {
    let (sandbox, child) = started();
    let running = pids(&sandbox);
    for _ in 0..2 {
        send(&child, "TERM");
        thread::sleep(Duration::from_millis(20));
    }
    let ended = sandbox.ended(&child.wait_with_output().expect("ends"));
    assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    assert!(!ended.stderr.contains("second signal: ending within seconds"), "{}", ended.stderr);
    assert!(sandbox.read("report.json").contains("\"abort\""));
    assert!(running.iter().all(|pid| !alive(pid)));
}

#[test]
fn after_kill_9_results_are_there_and_a_sweep_ends_the_rest() {
    let (sandbox, mut child) = started();
    let running = pids(&sandbox);
    eventually("the result of `short`", Duration::from_secs(20), || {
        sandbox.muster(&["results", "show", "--db", "r.db"]).stdout.contains("OK")
    });
    send(&child, "KILL");
    child.wait().expect("ends");
    assert!(running.iter().all(|pid| alive(pid)), "jobs outlive a killed harness");

    let listed = sandbox.muster(&["results", "list", "--db", "r.db"]);
    assert!(listed.stdout.contains("interrupted"), "{}{}", listed.stdout, listed.stderr);
    let would = sandbox.muster(&["sweep", "--dry-run", "--db", "r.db"]);
    assert!(would.stdout.contains("3 job(s)") && running.iter().all(|pid| alive(pid)), "{}", would.stdout);
    let swept = sandbox.muster(&["sweep", "--db", "r.db"]);
    assert!(swept.stdout.contains("3 job(s) removed\n"), "{}{}", swept.stdout, swept.stderr);
    assert!(running.iter().all(|pid| !alive(pid)));
    assert!(sandbox.muster(&["sweep", "--db", "r.db"]).stdout.contains("0 job(s)"));
}

/// Where the fixture of a check has its stage folder.
fn fixture_folder(sandbox: &Sandbox) -> PathBuf {
    let run = sandbox.muster(&["-c", "check.yaml", "-r", "--db", "first.db", "--keep-stage-files"]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let folders = std::fs::read_dir(sandbox.path("stage/here/p/default")).expect("stage folders");
    let folder = folders.flatten().map(|folder| folder.path()).find(|path| path.to_string_lossy().contains("/build_"));
    std::fs::remove_dir_all(sandbox.path("stage")).expect("removed");
    folder.expect("a fixture")
}

/// Ends the `strace` that holds a thread of a process that has ended: only then is its exit code known.
fn end_tracer(child: &Child) {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("threads");
    let status = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
    let tracer = |status: String| {
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).map(|pid| pid.trim().to_owned());
        tracer.filter(|pid| pid != "0")
    };
    if let Some(pid) = tasks.flatten().map(status).find_map(tracer) {
        assert!(Command::new("kill").args(["-KILL", &pid]).status().expect("kill runs").success());
    }
}

/// A file system that does not answer: `strace` lets every look at one folder take a minute.
#[test]
fn signals_reach_a_session_whose_file_system_does_not_answer() {
    if !Command::new("strace").args(["-o", "/dev/null", "true"]).status().is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: signals_reach_a_session_whose_file_system_does_not_answer: strace does not run here");
        return;
    }
    // The look before a teardown, and the one after the last user.
    for teardown in ["teardown_cmds: 'true'\n", ""] {
        let sandbox = Sandbox::with_check(&format!(
            "name: build\nexecutable: echo\n{teardown}sanity: []\n---\nname: user\nvalid_systems: ['*']\nfixtures: {{ b: {{ check: build, scope: environment }} }}\nexecutable: echo\nsanity: []\n"
        ));
        sandbox.write("site-config/here.yaml", SITE);
        let folder = fixture_folder(&sandbox);
        let inner = sandbox.command(&["-c", "check.yaml", "-r", "--db", "r.db", "--reruns", "1"]);
        let mut command = Command::new("strace");
        command.args(["-D", "-f", "-q", "-o", "trace", "-e", "trace=statx", "-e", "inject=statx:delay_enter=60000000", "-P"]);
        command.arg(&folder).arg(inner.get_program()).args(inner.get_args()).current_dir(sandbox.path(""));
        copy_environment(&inner, &mut command);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("strace runs");
        let is_looked_at = || std::fs::read_to_string(sandbox.path("trace")).is_ok_and(|trace| trace.contains("statx("));
        eventually("a look at the folder of the fixture", Duration::from_secs(30), is_looked_at);
        thread::sleep(Duration::from_millis(200));
        send(&child, "INT");
        thread::sleep(Duration::from_millis(1200));
        send(&child, "INT");
        eventually(&format!("`{teardown}`: the end of the process"), Duration::from_secs(4), || !alive(&child.id().to_string()));
        end_tracer(&child);
        let ended = sandbox.ended(&child.wait_with_output().expect("ended"));
        assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("interrupted by SIGINT: stopping what runs"), "{}", ended.stderr);
        assert!(ended.stderr.contains("second signal: ending within seconds"), "{}", ended.stderr);
    }
}

#[test]
fn an_interrupt_counts_what_never_began_in_one_line() {
    let sandbox = Sandbox::with_check(
        "name: many\nvalid_systems: ['*']\nparameters: { n: '${{ range(200) }}' }\nexecutable: echo $$ > pid; sleep 300\nsanity: []\n",
    );
    sandbox.write("site-config/here.yaml", SITE);
    let child = sandbox.command(&["-c", "check.yaml", "-r", "--db", "r.db"]).spawn().expect("runs");
    eventually("four running jobs", Duration::from_secs(20), || pids(&sandbox).len() == 4);
    send(&child, "INT");
    let ended = sandbox.ended(&child.wait_with_output().expect("ends"));
    assert_eq!(ended.code, Some(130));
    assert_eq!(ended.stdout.matches("[    ABORT ]").count(), 4, "{}", ended.stdout);
    assert!(ended.stdout.contains("200 cases aborted; 4 had started, and their stage folders are kept\n"), "{}", ended.stdout);
}

/// Sends the signal and waits for the end, for less time than a database that is locked is waited for.
fn ends_at_once(sandbox: &Sandbox, mut child: Child, name: &str) -> Ended {
    send(&child, name);
    eventually("the end of the process", Duration::from_secs(6), || child.try_wait().expect("a state").is_some());
    sandbox.ended(&child.wait_with_output().expect("ended"))
}

#[test]
fn a_signal_ends_a_process_that_waits_for_the_database_to_begin_a_session() {
    let sandbox = Sandbox::with_check("name: quick\nvalid_systems: ['*']\nexecutable: echo\nsanity: []\n");
    sandbox.write("site-config/here.yaml", SITE);
    let args = ["-c", "check.yaml", "-r", "--db", "r.db"];
    assert_eq!(sandbox.muster(&args).code, Some(0));
    for flags in [&[][..], &["--restore-session"]] {
        let locked = muster_test_database::Locked::new(&sandbox.path("r.db")).expect("a lock");
        let mut child = sandbox.command(&[&args, flags].concat()).spawn().expect("runs");
        // The header comes directly before the beginning.
        let mut header = [0];
        child.stdout.as_mut().expect("stdout").read_exact(&mut header).expect("a header");
        thread::sleep(Duration::from_millis(500));
        let ended = ends_at_once(&sandbox, child, "INT");
        drop(locked);
        assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("interrupted by SIGINT: nothing was launched"), "{}", ended.stderr);
    }
}

/// A session of another host, by its row, whose job is here and ends only by `KILL`.
fn left_by_another_host() -> Sandbox {
    let sandbox = Sandbox::with_check(
        "name: stubborn\nvalid_systems: ['*']\nexecutable: |-\n  trap '' TERM\n  echo $$ > pid\n  while :; do sleep 0.1; done\nsanity: []\n",
    );
    sandbox.write("site-config/here.yaml", SITE);
    let mut child = sandbox.command(&["-c", "check.yaml", "-r", "--db", "r.db"]).spawn().expect("runs");
    eventually("a running job", Duration::from_secs(20), || pids(&sandbox).len() == 1);
    child.kill().expect("kill -9");
    child.wait().expect("its end");
    let elsewhere = "UPDATE session SET owner_host = 'far-away', owner_boot_id = 'another'";
    muster_test_database::create(&sandbox.path("r.db"), elsewhere).expect("a row");
    sandbox
}

/// Waits until the sweep holds the session: then its owner is a process of this host.
fn sweep_that_holds_the_session(sandbox: &Sandbox) -> Child {
    let child = sandbox.command(&["sweep", "--db", "r.db"]).env("RFM_LIVENESS_LIMIT", "2").spawn().expect("runs");
    eventually("a session that is held", Duration::from_secs(20), || listed(sandbox).contains("running"));
    child
}

fn end_what_is_left(sandbox: &Sandbox) {
    let swept =
        sandbox.ended(&sandbox.command(&["sweep", "--db", "r.db"]).env("RFM_LIVENESS_LIMIT", "2").output().expect("runs"));
    assert_eq!(swept.code, Some(0), "{}{}", swept.stdout, swept.stderr);
    assert!(pids(sandbox).iter().all(|pid| !alive(pid)));
}

fn listed(sandbox: &Sandbox) -> String {
    sandbox.muster(&["results", "list", "--db", "r.db"]).stdout
}

#[test]
fn a_sweep_that_has_waited_for_a_heartbeat_ends_at_a_signal_and_gives_the_session_back() {
    let sandbox = left_by_another_host();
    let ended = ends_at_once(&sandbox, sweep_that_holds_the_session(&sandbox), "TERM");
    assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    let line = "interrupted by SIGTERM: the sweep has not ended, and leftovers may stay";
    assert!(ended.stderr.contains(line), "{}", ended.stderr);
    assert!(listed(&sandbox).contains("unknown"), "it is that of the other host again: {}", listed(&sandbox));
    end_what_is_left(&sandbox);
}

/// What comes after the wait for a heartbeat: here the database is locked.
#[test]
fn who_has_waited_for_a_heartbeat_and_then_waits_for_the_database_ends_at_a_signal() {
    let sandbox = left_by_another_host();
    let session = ["-c", "check.yaml", "-r", "--db", "r.db"];
    for args in [
        vec!["sweep", "--db", "r.db"],
        vec!["attach", "--db", "r.db"],
        [&session[..], &["--resume"]].concat(),
        [&session[..], &["--restore-session"]].concat(),
    ] {
        let mut child = sandbox.command(&args).env("RFM_LIVENESS_LIMIT", "2").spawn().expect("runs");
        let mut notes = BufReader::new(child.stderr.take().expect("stderr"));
        let mut text = String::new();
        while !text.contains("waiting for a heartbeat") {
            assert_ne!(notes.read_line(&mut text).expect("text"), 0, "{args:?}: it does not wait: {text}");
        }
        let locked = muster_test_database::Locked::new(&sandbox.path("r.db")).expect("a lock");
        thread::sleep(Duration::from_secs(3));
        let ended = ends_at_once(&sandbox, child, "INT");
        drop(locked);
        notes.read_to_string(&mut text).expect("text");
        assert_eq!(ended.code, Some(130), "{args:?}: {text}");
        assert!(text.contains("interrupted by SIGINT: "), "{args:?}: {text}");
    }
    end_what_is_left(&sandbox);
}

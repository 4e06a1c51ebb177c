//! Whether a session lives, seen from another container, another database and by another clock.

use crate::common::{copy_environment, eventually};
use crate::suite::{
    manifest::{check, pod},
    sandbox::Sandbox,
};
use std::{
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

/// After so many seconds without a heartbeat a session counts as abandoned.
const LIMIT: u64 = 8;

/// The binary in another container, on another host. Not its first process: that one cannot be killed from within.
fn elsewhere(sandbox: &Sandbox, args: &[&str]) -> Command {
    let inner = here(sandbox, args);
    let mut command = Command::new("unshare");
    command.args([
        "--uts",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        "hostname far-away; \"$@\"; exit $?",
        "sh",
    ]);
    command.arg(inner.get_program()).args(inner.get_args()).current_dir(inner.get_current_dir().expect("a folder"));
    copy_environment(&inner, &mut command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn here(sandbox: &Sandbox, args: &[&str]) -> Command {
    let mut command = sandbox.command(args);
    command.env("RFM_LIVENESS_LIMIT", LIMIT.to_string());
    command
}

/// Two pods of a session elsewhere that run for a while.
fn running(sandbox: &Sandbox, seconds: u32) -> Child {
    sandbox.write("check.yaml", &check(&pod(&format!("echo hello; sleep {seconds}")), "parameters: { n: [1, 2] }"));
    let child = elsewhere(sandbox, &["-c", "check.yaml", "-r"]).spawn().expect("unshare");
    let pods = || sandbox.kubectl(&["get", "pods", "-l", "rfm", "--field-selector=status.phase=Running", "-o", "name"]);
    eventually("two running pods", Duration::from_mins(1), || pods().lines().count() == 2);
    child
}

fn lease(sandbox: &Sandbox) -> String {
    sandbox.kubectl(&["get", "leases", "-l", "rfm-session", "-o", "name"]).trim().to_owned()
}

fn holder(sandbox: &Sandbox) -> String {
    sandbox.kubectl(&["get", "leases", "-l", "rfm-session", "-o", "jsonpath={.items[*].spec.holderIdentity}"])
}

/// Sets the time of the renewal as a holder whose clock is wrong would.
fn renewed_at(sandbox: &Sandbox, time: &str) {
    let patch = format!("{{\"spec\":{{\"renewTime\":\"{time}\"}}}}");
    sandbox.kubectl(&["patch", &lease(sandbox), "--type=merge", "-p", &patch]);
}

fn sweep_with_another_database(sandbox: &Sandbox) -> crate::suite::sandbox::Ended {
    sandbox.ended(&here(sandbox, &["sweep", "--db", "another.db"]).output().expect("muster"))
}

pub(crate) fn a_session_lives_and_dies_by_the_clock_of_the_server() {
    let sandbox = Sandbox::new();
    let mut child = running(&sandbox, 600);
    // Ten minutes slow: by its own clock it has not been renewed for long.
    renewed_at(&sandbox, "2020-01-01T00:00:00.000000Z");
    let swept = sweep_with_another_database(&sandbox).expect(0);
    assert_eq!(sandbox.left().len(), 2, "a living session is not swept: {}{}", swept.stdout, swept.stderr);
    child.kill().expect("kill -9");
    child.wait().expect("its end");
    // Fast: by its own clock it will have been renewed tomorrow.
    renewed_at(&sandbox, "2099-01-01T00:00:00.000000Z");
    sweep_with_another_database(&sandbox).expect(0);
    assert_eq!(sandbox.left().len(), 2, "it may still live");
    sleep(Duration::from_secs(LIMIT + 2));
    sweep_with_another_database(&sandbox).expect(0);
    assert_eq!((sandbox.left(), lease(&sandbox)), (vec![], String::new()));
}

pub(crate) fn a_session_that_was_killed_in_another_container_is_attached_and_its_lease_taken() {
    let sandbox = Sandbox::new();
    let mut child = running(&sandbox, 30);
    let refused = sandbox.ended(&here(&sandbox, &["attach", "2"]).output().expect("muster")).expect(2);
    assert!(
        refused.stderr.contains("is still running, as process ") && refused.stderr.contains(" on far-away"),
        "{}",
        refused.stderr
    );
    child.kill().expect("kill -9");
    child.wait().expect("its end");
    let (killed, before) = (Instant::now(), holder(&sandbox));
    let listed = sandbox.ended(&here(&sandbox, &["results", "list"]).output().expect("muster"));
    assert!(listed.stdout.contains("running"), "its Lease has not expired: {}", listed.stdout);
    let attached = here(&sandbox, &["attach"]).spawn().expect("muster");
    eventually("another holder", Duration::from_secs(40), || ![String::new(), before.clone()].contains(&holder(&sandbox)));
    assert!(killed.elapsed() >= Duration::from_secs(LIMIT - 3), "{:?}", killed.elapsed());
    sweep_with_another_database(&sandbox).expect(0);
    let ended = sandbox.ended(&attached.wait_with_output().expect("its end")).expect(0);
    assert!(ended.stderr.contains("waiting for a heartbeat of process "), "{}", ended.stderr);
    assert_eq!(ended.report["totals"]["passed"], 2, "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!((sandbox.left(), lease(&sandbox)), (vec![], String::new()));
}

pub(crate) fn of_two_that_attach_at_the_same_time_with_two_databases_one_gets_the_lease() {
    let sandbox = Sandbox::new();
    let mut child = running(&sandbox, 30);
    child.kill().expect("kill -9");
    child.wait().expect("its end");
    // As on a file system that was copied: the row alone would be given to both.
    let copied = Command::new("cp").args(["-r"]).args([sandbox.path("state"), sandbox.path("copy")]).status().expect("cp");
    assert!(copied.success());
    let attach = |state: &str| here(&sandbox, &["attach"]).env("XDG_STATE_HOME", sandbox.path(state)).spawn().expect("muster");
    let ends = [attach("state"), attach("copy")].map(|child| sandbox.ended(&child.wait_with_output().expect("its end")));
    let mut codes = ends.each_ref().map(|end| end.code);
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(2)], "{ends:?}");
    let refused = |end: &&crate::suite::sandbox::Ended| {
        end.stderr.contains("taken over by another process") || end.stderr.contains("is still running")
    };
    assert_eq!(ends.iter().filter(refused).count(), 1, "{ends:?}");
    assert_eq!(sandbox.left(), [""; 0]);
}

pub(crate) fn what_sweep_has_removed_is_disrupted_when_it_is_attached() {
    let sandbox = Sandbox::new();
    let mut child = running(&sandbox, 600);
    child.kill().expect("kill -9");
    child.wait().expect("its end");
    sleep(Duration::from_secs(LIMIT + 2));
    sandbox.ended(&here(&sandbox, &["sweep"]).output().expect("muster")).expect(0);
    assert_eq!(sandbox.left(), [""; 0]);
    let ended = sandbox.ended(&here(&sandbox, &["attach"]).output().expect("muster")).expect(3);
    for case in ended.report["cases"].as_array().expect("cases") {
        assert_eq!((&case["outcome"]["word"], &case["outcome"]["detail"]), (&"disrupted".into(), &"deleted".into()), "{case}");
        assert_eq!(case["cause"], "removed by muster sweep");
        assert!(case["times"]["total_s"].as_f64().unwrap_or_default() >= 10.0, "{}", case["times"]);
    }
}

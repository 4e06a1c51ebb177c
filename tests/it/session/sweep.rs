//! `muster sweep`: what it says of a case that is named, and of a session that it cannot claim.

use crate::{common::eventually, sandbox::Sandbox};
use muster_test_database::{create, rows};
use std::{process::Child, thread, time::Duration};

/// A session with one case, which runs until it is ended.
fn running(sandbox: &Sandbox, name: &str) -> Child {
    let check = format!("name: {name}\nvalid_systems: ['*']\nexecutable: 'touch \"$HOME/{name}\"; sleep 60'\nsanity: []\n");
    sandbox.write(&format!("{name}.check.yaml"), &check);
    let mut command = sandbox.command(&["-c", &format!("{name}.check.yaml"), "-r"]);
    let child = command.env("HOME", sandbox.path("")).spawn().expect("the binary runs");
    eventually("a running case", Duration::from_secs(30), || sandbox.path(name).exists());
    // What is not waited for is committed soon.
    thread::sleep(Duration::from_millis(600));
    child
}

fn kill(mut child: Child) {
    child.kill().expect("kill -9");
    child.wait().expect("its end");
}

#[test]
fn a_session_that_cannot_be_claimed_keeps_nothing_of_others() {
    let sandbox = Sandbox::new();
    kill(running(&sandbox, "one"));
    kill(running(&sandbox, "two"));
    let database = sandbox.path("state/muster/results.db");
    // Whichever is claimed first: the other is swept all the same.
    let refuse =
        "CREATE TRIGGER no BEFORE UPDATE OF owner_pid ON session WHEN OLD.number = 1 BEGIN SELECT RAISE(ABORT, 'no'); END";
    create(&database, refuse).expect("a trigger");
    let swept = sandbox.muster(&["sweep"]);
    let (text, session) = (&swept.stdout, &rows(&database, "SELECT id FROM session WHERE number = 1").expect("a session")[0]);
    let why = format!(
        "error: claim session {session}, so that nobody takes it over while its jobs are removed: nothing of it is removed: "
    );
    assert!(swept.code == Some(1) && text.contains(&why), "{text}{}", swept.stderr);
    assert!(text.contains("\nremoved two @") && text.contains("\n1 job(s) removed\n"), "{text}{}", swept.stderr);
    create(&database, "DROP TRIGGER no").expect("no trigger");
    let swept = sandbox.muster(&["sweep"]);
    assert!(swept.code == Some(0) && swept.stdout.starts_with("removed one @"), "{}{}", swept.stdout, swept.stderr);
}

#[test]
fn a_job_whose_removal_cannot_be_stored_stays_and_the_others_go() {
    let sandbox = Sandbox::new();
    kill(running(&sandbox, "one"));
    kill(running(&sandbox, "two"));
    let database = sandbox.path("state/muster/results.db");
    let refuse = "CREATE TRIGGER no BEFORE UPDATE ON job WHEN OLD.session = 1 BEGIN SELECT RAISE(ABORT, 'no'); END";
    create(&database, refuse).expect("a trigger");
    let swept = sandbox.muster(&["sweep"]);
    let text = &swept.stdout;
    assert!(swept.code == Some(1) && text.contains("could not remove one @"), "{text}{}", swept.stderr);
    assert!(text.contains("removed two @") && text.contains("\n1 job(s) removed, 1 could not be removed\n"), "{text}");
    create(&database, "DROP TRIGGER no").expect("no trigger");
    assert_eq!(sandbox.muster(&["sweep"]).code, Some(0));
}

#[test]
fn a_case_that_is_named_is_removed_or_it_is_said_why_not() {
    let sandbox = Sandbox::new();
    let dead = running(&sandbox, "dead");
    let alive = running(&sandbox, "alive");
    kill(dead);
    let database = sandbox.path("state/muster/results.db");
    let id = |session: u32| {
        rows(&database, &format!("SELECT identifier FROM job WHERE session = {session}")).expect("a job").remove(0)
    };
    let (dead, living) = (id(1), id(2));
    for arguments in [&["sweep", "--kept"][..], &["sweep", "--dry-run"]] {
        let swept = |id: &str| {
            let ended = sandbox.muster(&[arguments, &["--id", id]].concat());
            (ended.code, ended.stdout)
        };
        let (code, text) = swept("abcdefgh");
        let nothing = "nothing that was found has the identifier `abcdefgh`: `muster sweep --dry-run --kept` lists all\n";
        assert!(code == Some(1) && text.starts_with(nothing), "{text}");
        let (code, text) = swept(&living);
        assert!(code == Some(1) && text.starts_with("not removed: alive @") && text.contains(": its session runs\n"), "{text}");
    }
    let swept = sandbox.muster(&["sweep", "--id", &dead]);
    assert!(swept.code == Some(0) && swept.stdout.starts_with("removed dead @"), "{}", swept.stdout);
    assert_eq!(sandbox.muster(&["sweep", "--id", &dead]).code, Some(1), "it is gone");
    kill(alive);
    assert_eq!(sandbox.muster(&["sweep"]).code, Some(0));
}

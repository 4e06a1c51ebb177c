//! Fixtures and dependencies on this machine: what runs, in which order, and what is left.

use crate::{common::eventually, sandbox::Sandbox};
use std::{process::Command, time::Duration};

const SITE: &str = "name: here\nhostnames: ['.*']\npartitions: [{ name: p, scheduler: local, environs: [e1, e2], max_jobs: 1 }]\nenvironments: [{ name: e1 }, { name: e2 }]\n";

fn sandbox(text: &str) -> Sandbox {
    let sandbox = Sandbox::with_check(text);
    sandbox.write("site-config/here.yaml", SITE);
    sandbox
}

const BUILD: &str = "name: build\nexecutable: echo made > file; echo DIR=$PWD\noutputs: { dir: 'DIR=(.*)' }\nteardown_cmds: cp file ../../../../../torn-down\nsanity: []\n";

fn user(rest: &str) -> String {
    format!(
        "{BUILD}---\nname: user\nvalid_systems: ['*']\nfixtures: {{ b: {{ check: build, scope: environment }} }}\n{rest}\nsanity: []\n"
    )
}

#[test]
fn what_a_fixture_left_is_read_and_torn_down_after_the_last_user() {
    let text = user(
        "parameters: { n: [1, 2] }\nexecutable: test ! -e ../../../../../torn-down && cat ${{ fixtures.b.stagedir }}/file ${{ fixtures.b.outputs.dir }}/file",
    );
    let sandbox = sandbox(&text);
    let run = sandbox.muster(&["-c", "check.yaml", "-p", "e1", "-r", "--db", "r.db", "--nocolor"]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("Ran 3/3 test case(s) from 3 check(s)"), "{}", run.stdout);
    assert_eq!(sandbox.read("torn-down"), "made\n");
    let left: Vec<_> = std::fs::read_dir(sandbox.path("stage/here/p/e1")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_name_selects_what_it_needs_and_a_fixture_is_not_to_be_selected() {
    let sandbox = sandbox(&user("executable: echo"));
    let list = sandbox.muster(&["-c", "check.yaml", "-n", "user", "-l", "--nocolor"]);
    let lines: Vec<&str> = list.stdout.lines().map(|line| line.rsplit_once(" /").map_or(line, |(name, _)| name)).collect();
    assert_eq!(
        lines,
        ["[List of matched checks]", "- user", "    ^build ~here:p+e1 'b", "    ^build ~here:p+e2 'b", "Found 1 check(s)"]
    );
    assert_eq!(sandbox.muster(&["-c", "check.yaml", "-n", "build", "-l"]).code, Some(2));
}

#[test]
fn a_failing_fixture_is_shown_once_and_its_users_are_skipped_with_its_name() {
    let text = user("parameters: { n: [1, 2] }\nexecutable: echo").replace("echo made", "exit 3; echo made");
    let sandbox = sandbox(&text);
    let run = sandbox.muster(&["-c", "check.yaml", "-p", "e1", "-r", "--db", "r.db", "--nocolor"]);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert_eq!(run.stdout.matches("FAILURE INFO for build").count(), 1, "{}", run.stdout);
    let cause = "skipped: it depends on build ~here:p+e1 @here:p+e1, which ended as fail{workload}";
    assert_eq!(run.stdout.matches(cause).count(), 2, "{}", run.stdout);
    assert!(run.stdout.contains("(1 failure(s), 0 expected failure(s), 2 skipped, 0 aborted)"), "{}", run.stdout);
}

#[test]
fn a_circle_is_refused_with_its_path() {
    let one =
        |name: &str, on: &str| format!("name: {name}\nvalid_systems: ['*']\ndepends_on: {on}\nexecutable: echo\nsanity: []\n");
    let sandbox = sandbox(&format!("{}---\n{}---\n{}", one("a", "b"), one("b", "c"), one("c", "a")));
    let run = sandbox.muster(&["-c", "check.yaml", "-r"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("a check cannot depend on itself: a -> b -> c -> a"), "{}", run.stderr);
}

#[test]
fn after_an_interrupt_what_was_built_is_torn_down() {
    let sandbox = sandbox(&user("executable: echo > ../../../../../running; sleep 300"));
    let command = &["-c", "check.yaml", "-p", "e1", "-r", "--db", "r.db"];
    let child = sandbox.command(command).spawn().expect("runs");
    eventually("the user", Duration::from_secs(20), || sandbox.path("running").exists());
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(status.success());
    let ended = sandbox.ended(&child.wait_with_output().expect("ends"));
    assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(sandbox.read("torn-down"), "made\n", "{}", ended.stderr);
}

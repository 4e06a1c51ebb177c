//! Fixtures and dependencies on this machine: what runs, in which order, and what is left.

use crate::{
    common::eventually,
    sandbox::{Ended, Sandbox},
};
use insta::assert_snapshot;
use serde_json::Value;
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
fn a_fixture_in_another_file_comes_alone_and_with_the_folder_beside_it() {
    let sandbox = sandbox(
        "name: user\nvalid_systems: ['*']\nfixtures: { b: { check: ../lib/build.yaml#build } }\nexecutable: cat ${{ fixtures.b.stagedir }}/out\nsanity: [{ found: ^input$ }]\n",
    );
    let other = "name: other\nvalid_systems: ['*']\nexecutable: 'true'\nsanity: []\n";
    let build = "name: build\nvalid_systems: ['*']\nexecutable: cp in out\nsanity: []\n";
    sandbox.write("checks/user.yaml", &sandbox.read("check.yaml"));
    sandbox.write("lib/build.yaml", &format!("{other}---\n{build}")).write("lib/src/in", "input\n");
    let run = sandbox.muster(&["-c", "checks/user.yaml", "-p", "e1", "-r", "--db", "r.db", "--nocolor"]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("Ran 2/2 test case(s) from 2 check(s)"), "{}", run.stdout);
    let list = sandbox.muster(&["-c", "checks/user.yaml", "-l", "--nocolor"]);
    assert!(list.stdout.ends_with("Found 1 check(s)\n"), "{}", list.stdout);
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

/// A fixture that counts how often it was built, and users of which the second takes long unless `again` is there.
fn interrupted(teardown: &str) -> (Sandbox, Vec<&'static str>) {
    let sandbox = sandbox(&format!(
        "name: build\nexecutable: echo once >> ../../../../../built; echo made > file\n{teardown}sanity: []\n---\n\
         name: user\nvalid_systems: ['*']\nfixtures: {{ b: {{ check: build, scope: environment }} }}\n\
         parameters: {{ n: [1, 2] }}\nexecutable: |-\n  cat ${{{{ fixtures.b.stagedir }}}}/file || exit 1\n  \
         echo ${{{{ n }}}} >> ../../../../../ran\n  test ${{{{ n }}}} = 1 && exit\n  \
         while ! test -e ../../../../../again; do sleep 0.1; done\nsanity: []\n"
    ));
    (sandbox, vec!["-c", "check.yaml", "-p", "e1", "-r", "--db", "r.db", "--nocolor"])
}

/// Runs until the second user runs, and sends a signal.
fn cut_short(sandbox: &Sandbox, command: &[&str], signal: &str) -> Ended {
    let child = sandbox.command(command).spawn().expect("runs");
    let second = || std::fs::read_to_string(sandbox.path("ran")).is_ok_and(|ran| ran.lines().count() == 2);
    eventually("the second user", Duration::from_secs(20), second);
    // What nobody waits for is in the database soon.
    std::thread::sleep(Duration::from_millis(300));
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
    assert!(status.success());
    sandbox.write("again", "");
    sandbox.ended(&child.wait_with_output().expect("ends"))
}

/// `name attempt outcome` of every attempt in the run report, sorted.
fn attempts(sandbox: &Sandbox) -> Vec<String> {
    let report: Value = serde_json::from_str(&sandbox.read("reports/out/latest.json")).expect("JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |case: &Value| format!("{} {} {}", text(&case["name"]), case["attempt"], text(&case["outcome"]["word"]));
    let mut lines: Vec<String> = report["cases"].as_array().expect("cases").iter().map(line).collect();
    lines.sort();
    lines
}

fn folders(sandbox: &Sandbox, place: &str) -> Vec<String> {
    let found = std::fs::read_dir(sandbox.path(place)).expect("a folder").map(|entry| entry.expect("an entry"));
    found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_fixture_that_was_torn_down_runs_again_for_the_users_that_are_left() {
    let (sandbox, command) = interrupted("teardown_cmds: 'true'\n");
    assert_eq!(cut_short(&sandbox, &command, "-INT").code, Some(130));
    assert!(!folders(&sandbox, "stage/here/p/e1").iter().any(|name| name.starts_with("build")));
    let run = sandbox.muster(&[&command[..], &["--restore-session"]].concat());
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert_eq!(attempts(&sandbox), ["build ~here:p+e1 1 pass", "user %n=1 1 pass", "user %n=2 1 pass"]);
    assert_eq!((sandbox.read("built"), sandbox.read("ran")), ("once\n".repeat(2), "1\n2\n2\n".to_owned()));
    assert!(run.stderr.contains("1 case(s) are restored, 2 run"), "{}", run.stderr);
}

/// It was torn down after a signal, and the process that made it again is killed meanwhile.
#[test]
fn a_fixture_that_is_made_again_counts_once() {
    let (sandbox, mut command) = interrupted("teardown_cmds: 'true'\n");
    command.push("--resume");
    assert_eq!(cut_short(&sandbox, &command, "-INT").code, Some(130));
    let killed = sandbox.command(&command).env("RFM_CRASH_AT", "launched").output().expect("the binary runs");
    assert_eq!(killed.status.code(), None, "it was not killed");
    let run = sandbox.muster(&command);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let counts: Vec<&str> = run
        .stdout
        .lines()
        .filter(|line| line.contains(" OK ] "))
        .filter_map(|line| line.split(' ').find(|word| word.starts_with('(')))
        .collect();
    assert_eq!(counts, ["(2/3)", "(3/3)"], "{}", run.stdout);
}

#[test]
fn a_fixture_that_was_kept_is_named_and_serves_the_users_that_are_left() {
    let (sandbox, command) = interrupted("");
    let ended = cut_short(&sandbox, &command, "-INT");
    let kept: Vec<&str> = ended.stdout.lines().skip_while(|line| !line.starts_with("KEPT")).take(3).collect();
    let kept = kept.join("\n");
    assert_snapshot!(kept, @"
    KEPT: what 1 case left behind
      build ~here:p+e1 /e728fc39 @here:p+e1
          rm -r [FOLDER]/stage/here/p/e1/build_e728fc3936b4d7dd
    ");
    let run = sandbox.muster(&[&command[..], &["--restore-session"]].concat());
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert_eq!((sandbox.read("built"), attempts(&sandbox).len()), ("once\n".to_owned(), 3));
    assert!(!folders(&sandbox, "stage/here/p/e1").iter().any(|name| name.starts_with("build")), "the last user is over");
}

#[test]
fn attach_runs_a_fixture_again_that_is_gone_and_tells_of_it_once() {
    // The second user was not started, or started on what is gone, or runs by itself.
    for (step, built) in [("result-stored:2", 2), ("intent-stored:3", 2), ("", 1)] {
        let (sandbox, command) = interrupted("");
        if step.is_empty() {
            assert_eq!(cut_short(&sandbox, &command, "-KILL").code, None);
        } else {
            sandbox.write("again", "");
            let output = sandbox.command(&command).env("RFM_CRASH_AT", step).output().expect("the binary runs");
            assert_eq!(output.status.code(), None, "{step}: it was not killed");
        }
        for name in folders(&sandbox, "stage/here/p/e1").iter().filter(|name| name.starts_with("build")) {
            std::fs::remove_dir_all(sandbox.path("stage/here/p/e1").join(name)).unwrap();
        }
        let run = sandbox.muster(&["attach", "--db", "r.db", "--nocolor"]);
        assert_eq!(run.code, Some(0), "{step}: {}{}", run.stdout, run.stderr);
        assert_eq!(sandbox.read("built").lines().count(), built, "{step}: {}", run.stdout);
        let attempt = built;
        let expected = [format!("build ~here:p+e1 {attempt} pass"), "user %n=1 1 pass".into(), "user %n=2 1 pass".into()];
        assert_eq!(attempts(&sandbox), expected, "{step}");
    }
}

#[test]
fn a_second_signal_names_what_was_not_torn_down() {
    let text = user("executable: |-\n  trap '' TERM\n  echo > ../../../../../running\n  while :; do sleep 0.1; done");
    let sandbox = sandbox(&text);
    let child = sandbox.command(&["-c", "check.yaml", "-p", "e1", "-r", "--db", "r.db"]).spawn().expect("runs");
    eventually("the user", Duration::from_secs(20), || sandbox.path("running").exists());
    for _ in 0..2 {
        let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
        assert!(status.success());
        std::thread::sleep(Duration::from_millis(1200));
    }
    let ended = sandbox.ended(&child.wait_with_output().expect("ends"));
    assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    let reported = ended.stderr.lines().filter(|line| line.starts_with("not torn down: build")).count();
    assert!(reported == 1 && ended.stderr.contains("muster attach"), "{}", ended.stderr);
    assert_eq!(sandbox.muster(&["sweep", "--db", "r.db"]).code, Some(0));
}

/// A fixture that is torn down without end unless `again` is there, and a user that finds out whether that still goes on.
const TORN_DOWN: &str = "name: build\nexecutable: echo made > file\nteardown_cmds: |-\n  echo $$ >> ../../../../../tearing\n  \
    test -e ../../../../../again && exit\n  sleep 300\nsanity: []\n---\n\
    name: user\nvalid_systems: ['*']\nfixtures: { b: { check: build, scope: environment } }\nexecutable: |-\n  \
    echo > ../../../../../running\n  test -e ../../../../../again || sleep 300\n  \
    grep -qs 'State:.[^Z]' /proc/$(head -n 1 ../../../../../tearing)/status && exit 1\n  cat ${{ fixtures.b.stagedir }}/file\nsanity: [{ found: made }]\n";

#[test]
fn a_teardown_that_was_cut_short_ends_before_the_users_run_again() {
    for signal in ["-INT", "-KILL"] {
        let sandbox = sandbox(TORN_DOWN);
        let child = sandbox.command(&["-c", "check.yaml", "-p", "e1", "-r", "--db", "r.db"]).spawn().expect("runs");
        let pid = child.id().to_string();
        let send =
            |signal: &str| assert!(Command::new("kill").args([signal, pid.as_str()]).status().expect("kill runs").success());
        eventually("the user", Duration::from_secs(20), || sandbox.path("running").exists());
        send("-INT");
        let tearing = || std::fs::read_to_string(sandbox.path("tearing")).is_ok_and(|pids| pids.ends_with('\n'));
        eventually("the teardown", Duration::from_secs(20), tearing);
        // What comes earlier belongs to the first signal.
        std::thread::sleep(Duration::from_millis(1200));
        send(signal);
        let ended = sandbox.ended(&child.wait_with_output().expect("ends"));
        let process = format!("/proc/{}/status", sandbox.read("tearing").trim());
        // Where nobody reaps orphans, a zombie stays.
        let runs = || std::fs::read_to_string(&process).is_ok_and(|status| !status.contains("State:\tZ"));
        let output = |begin: &str| ended.stderr.lines().find_map(|line| line.strip_prefix(begin));
        let attach = if signal == "-INT" {
            assert_eq!(ended.code, Some(130), "{}", ended.stderr);
            assert!(!runs(), "it goes on: {}", ended.stderr);
            assert!(output("torn down in part: build").is_some() && !ended.stderr.contains("may"), "{}", ended.stderr);
            output("continue, and tear down at the end, with: muster ").expect("a command").to_owned()
        } else {
            assert!(runs(), "it ends with the harness");
            "attach --db r.db".to_owned()
        };
        sandbox.write("again", "");
        let attach = attach.replace("[FOLDER]", &sandbox.path("").to_string_lossy());
        let words: Vec<&str> = attach.split(' ').collect();
        let run = sandbox.muster(&words);
        assert_eq!(run.code, Some(0), "{attach}: {}{}", run.stdout, run.stderr);
        assert!(!runs());
        assert_eq!(sandbox.read("tearing").lines().count(), 3, "what was started is done again, and the new one is torn down");
    }
}

/// `write` is a dependency of the fixture `build`, and fails the first time if it is to.
fn chain(first: &str) -> Sandbox {
    sandbox(&format!(
        "name: write\nvalid_systems: ['*']\nexecutable: {first}\nsanity: []\n---\n\
         name: build\ndepends_on: write\nexecutable: echo build >> ../../../../../ran; echo made > file\nsanity: []\n---\n\
         name: user\nvalid_systems: ['*']\nfixtures: {{ b: {{ check: build, scope: environment }} }}\n\
         executable: echo user >> ../../../../../ran; cat ${{{{ fixtures.b.stagedir }}}}/file\nsanity: []\n"
    ))
}

fn counted(sandbox: &Sandbox, name: &str) -> usize {
    sandbox.read("ran").lines().filter(|line| *line == name).count()
}

#[test]
fn when_a_dependency_passes_on_its_retry_what_waited_for_it_runs() {
    let sandbox = chain("echo write >> ../../../../../ran; test $(wc -l < ../../../../../ran) -ge 2");
    let run = sandbox.muster(&["-c", "check.yaml", "-p", "e1", "-r", "--db", "r.db", "--nocolor", "--max-retries", "1"]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let expected =
        ["build ~here:p+e1 1 skip", "build ~here:p+e1 2 pass", "user 1 skip", "user 2 pass", "write 1 fail", "write 2 pass"];
    assert_eq!(attempts(&sandbox), expected);
    let report: Value = serde_json::from_str(&sandbox.read("reports/out/latest.json")).expect("JSON");
    let flaky = report["cases"].as_array().unwrap().iter().filter(|case| case["flaky"] == true).map(|case| &case["name"]);
    assert_eq!(flaky.collect::<Vec<_>>(), ["write"], "what waited had not failed");
}

#[test]
fn copies_share_a_fixture_and_what_that_depends_on() {
    let sandbox = chain("echo write >> ../../../../../ran");
    let run = |flags: &[&str]| {
        let command = [&["-c", "check.yaml", "-p", "e1", "-r", "--db", "r.db", "--nocolor"], flags].concat();
        let run = sandbox.muster(&command);
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        assert!(!run.stdout.contains("SKIP"), "{}", run.stdout);
        let counts = ["write", "build", "user"].map(|name| counted(&sandbox, name));
        std::fs::remove_file(sandbox.path("ran")).unwrap();
        counts
    };
    assert_eq!(run(&["--repeat", "3"]), [1, 1, 3]);
    assert_eq!(run(&["--reruns", "2"]), [3, 3, 3]);
    assert_eq!(run(&["--repeat", "2", "--reruns", "1"]), [2, 2, 4]);
}

//! The `checks` target: a test binary whose tests are cases, as `cargo test` and a real nextest run it.

use crate::sandbox::{Ended, Sandbox};
use std::{
    path::Path,
    process::{Command, Stdio},
};

const CHECKS: &str = "name: pass
valid_systems: [\"*\"]
parameters: { n: [1, 2] }
executable: echo run ${{ n }}
sanity: [{ found: run }]
---
name: fail
valid_systems: [\"*\"]
executable: echo nothing
sanity: [{ found: something }]
---
name: skipped
valid_systems: [\"*\"]
executable: echo nothing
when: [{ if: \"partition.name == 'default'\", skip: not here }]
sanity: []
";

const SKIPPED: &str = "[local] skipped @local:default+default";

/// A command of cargo on this workspace that runs the sandbox's checks.
fn cargo(sandbox: &Sandbox, program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MUSTER_")) {
        command.env_remove(name);
    }
    // What cargo tells its children of the build that runs them is not for another one.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG") || name.starts_with("CARGO_MANIFEST") || name.starts_with("NEXTEST") {
            command.env_remove(name);
        }
    }
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("MUSTER_CHECKPATH", sandbox.path("")).env("MUSTER_PREFIX", sandbox.path("")).env("MUSTER_SYSTEM", "local");
    command.env("XDG_STATE_HOME", sandbox.path("state")).env("CARGO_TERM_COLOR", "never");
    command
}

fn run(sandbox: &Sandbox, program: &str, args: &[&str]) -> Ended {
    sandbox.ended(&cargo(sandbox, program, args).output().expect(program))
}

fn test(sandbox: &Sandbox, args: &[&str]) -> Ended {
    // With the features of the build that runs this: `cargo test --workspace`.
    let own = ["test", "--offline", "--quiet", "--workspace", "--test", "checks", "--"];
    run(sandbox, env!("CARGO"), &[&own, args].concat())
}

#[test]
fn cargo_test_lists_selects_and_runs_cases_and_prints_nothing_of_its_own() {
    let sandbox = Sandbox::new();
    sandbox.write("a.check.yaml", CHECKS);
    let list = test(&sandbox, &["--list", "--format", "terse"]);
    let expected = "[local] pass %n=1 @local:default+default: test\n[local] pass %n=2 @local:default+default: test\n\
                    [local] fail @local:default+default: test\n[local] skipped @local:default+default: test\n";
    assert_eq!((list.code, &*list.stdout), (Some(0), expected), "{}", list.stderr);
    assert_eq!(test(&sandbox, &["--list", "--format", "terse", "--ignored"]).stdout, "");

    let exact = test(&sandbox, &["--exact", "[local] pass %n=2 @local:default+default", "--nocapture"]);
    assert_eq!(exact.code, Some(0), "{}{}", exact.stdout, exact.stderr);
    assert!(
        exact.stdout.contains("running 1 test") && exact.stdout.contains("1 passed; 0 failed; 0 ignored"),
        "{}",
        exact.stdout
    );

    let all = test(&sandbox, &["--format", "json"]);
    assert_eq!(all.code, Some(101), "{}", all.stderr);
    let lines: Vec<serde_json::Value> =
        all.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    let events = |event: &str| lines.iter().filter(|line| line["type"] == "test" && line["event"] == event).count();
    assert_eq!((events("ok"), events("failed"), events("ignored")), (2, 1, 1), "{}", all.stdout);

    // A test binary in which nothing ran ends well, as libtest's do, unless skips are refused.
    for (refused, code, counts) in [("false", 0, "0 failed; 1 ignored"), ("true", 101, "1 failed; 0 ignored")] {
        let exact = ["test", "--offline", "--quiet", "--workspace", "--test", "checks", "--", "--exact", SKIPPED];
        let mut command = cargo(&sandbox, env!("CARGO"), &exact);
        let skipped = sandbox.ended(&command.env("MUSTER_FAIL_ON_SKIP", refused).output().expect("cargo"));
        assert_eq!(skipped.code, Some(code), "{refused}: {}{}", skipped.stdout, skipped.stderr);
        assert!(skipped.stdout.contains(counts), "{refused}: {}", skipped.stdout);
    }

    let none = test(&sandbox, &["no such case"]);
    assert_eq!(none.code, Some(0));
    assert!(none.stdout.contains("running 0 tests"), "{}", none.stdout);
}

#[test]
fn a_case_that_is_asked_for_brings_its_fixture_along() {
    let sandbox = Sandbox::new();
    let build = "name: build\nexecutable: echo built > product\nsanity: []\n";
    let user = |name: &str| {
        format!(
            "---\nname: {name}\nvalid_systems: [\"*\"]\nfixtures: {{ build: {{ check: build, scope: session }} }}\n\
             executable: cat ${{{{ fixtures.build.stagedir }}}}/product\nsanity: [{{ found: built }}]\n"
        )
    };
    sandbox.write("a.check.yaml", &format!("{build}{}{}", user("one"), user("two")));
    let names = test(&sandbox, &["--list", "--format", "terse"]);
    let two =
        names.stdout.lines().find_map(|line| line.strip_suffix(": test").filter(|name| name.contains(" two"))).expect("listed");
    let run = test(&sandbox, &["--exact", two]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("1 passed; 0 failed"), "{}", run.stdout);
    assert_eq!(sandbox.muster(&["check", "lint", "--allow", "no-sanity", "a.check.yaml"]).code, Some(0));
}

#[test]
fn a_check_with_a_mistake_is_in_no_list() {
    let sandbox = Sandbox::new();
    let wrong = "---\nname: wrong\nvalid_systems: [\"*\"]\nexecutable: echo ${{ vars.none }}\nsanity: []\n";
    sandbox.write("a.check.yaml", &format!("{CHECKS}{wrong}"));
    let listed = test(&sandbox, &["--list", "--format", "terse"]);
    assert_eq!(listed.code, Some(2), "{}", listed.stderr);
    assert!(listed.stdout.contains("pass %n=1") && !listed.stdout.contains("wrong"), "{}{}", listed.stdout, listed.stderr);
}

#[test]
fn a_file_with_mistakes_is_no_empty_list() {
    let sandbox = Sandbox::new();
    sandbox.write("a.check.yaml", &CHECKS.replace("executable: echo nothing", "executabel: echo nothing"));
    for args in [&["--list"][..], &[]] {
        let ended = test(&sandbox, args);
        assert!(ended.code != Some(0) && ended.stderr.contains("did you mean `executable`"), "{args:?} {}", ended.stderr);
    }
    assert!(!sandbox.path("stage").exists(), "something was launched");
}

#[test]
fn a_real_nextest_runs_a_folder_of_checks() {
    let sandbox = Sandbox::new();
    sandbox.write("a.check.yaml", CHECKS);
    // The gate says where it has built one.
    let nextest = std::env::var("MUSTER_CI_NEXTEST").unwrap_or_else(|_| "cargo-nextest".to_owned());
    let found = Command::new(&nextest).args(["nextest", "--version"]).stdout(Stdio::null()).status();
    if let Err(error) = &found {
        assert!(std::env::var_os("MUSTER_CI_NEXTEST").is_none(), "{nextest}: {error}");
        println!("SKIPPED: no cargo-nextest here ({error})");
        return;
    }
    let junit = "[profile.muster.junit]\npath = \"junit.xml\"\n";
    sandbox.write("nextest.toml", junit);
    let config = sandbox.path("nextest.toml");
    let args = [
        "nextest",
        "run",
        "--offline",
        "--test",
        "checks",
        "--no-fail-fast",
        "--color",
        "never",
        "--config-file",
        &config.to_string_lossy(),
    ];
    let ended = run(&sandbox, &nextest, &args);
    assert_eq!(ended.code, Some(100), "{}", ended.stderr);
    assert!(ended.stderr.contains("4 tests run: 3 passed, 1 failed"), "{}", ended.stderr);
    for case in ["pass %n=1", "pass %n=2", "skipped"] {
        let line = format!("muster::checks [local] {case} @local:default+default");
        assert!(ended.stderr.lines().any(|text| text.contains("PASS") && text.contains(&line)), "{line}: {}", ended.stderr);
    }
    assert!(ended.stderr.contains("fail{sanity}"), "the cause is shown: {}", ended.stderr);
    assert!(Path::new(&sandbox.path("reports/out")).exists(), "each test is a session with its report");
    let args = [&args[..], &["-E", "test(=[local] pass %n=1 @local:default+default)"]].concat();
    let one = run(&sandbox, &nextest, &args);
    assert_eq!(one.code, Some(0), "{}", one.stderr);
    assert!(one.stderr.contains("1 test run: 1 passed, 3 skipped"), "{}", one.stderr);
}

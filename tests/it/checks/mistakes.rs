//! Five ways and more to get it wrong: each gets one sentence that says what, where and what to do.

use crate::sandbox::Sandbox;
use insta::assert_snapshot;
use std::fmt::Write;

const GOOD: &str = "name: good\nvalid_systems: ['*']\nexecutable: echo hello\nsanity: [{ found: hello }]\n";

#[test]
fn all_mistakes_of_all_files_are_reported_at_once_and_nothing_is_launched() {
    let sandbox = Sandbox::new();
    sandbox.write("checks/good.check.yaml", GOOD);
    sandbox.write(
        "checks/bad.check.yaml",
        "name: bad\nvalid_systems: ['*']\nexecutabel: ./a.out\ntime_limit: 5 minutes\nsanity:\n  - found: '(unclosed'\n  - assert: max(extractal('x')) < 1\n",
    );
    sandbox.write(
        "checks/other.check.yaml",
        "name: other\nvalid_systems: ['*']\nexecutable: ./x ${{ blocks }}\nsanity: []\nvariables: { block: 1 }\n",
    );
    let ended = sandbox.muster(&["-c", "checks", "-r"]);
    assert_eq!(ended.code, Some(2));
    assert!(!sandbox.path("stage").exists(), "something was launched");
    assert_snapshot!(ended.stderr);
}

#[test]
fn a_listing_lists_what_is_right_and_still_ends_with_2() {
    let sandbox = Sandbox::new();
    sandbox
        .write("good.check.yaml", GOOD)
        .write("bad.check.yaml", "name: bad\nvalid_systems: 7up\ndescription: x\nsanity: []\nexecutable: a\n");
    let ended = sandbox.muster(&["-c", ".", "-l"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stdout.contains("- good /"), "{}", ended.stdout);
    assert!(ended.stderr.contains("write `descr`"), "{}", ended.stderr);
}

#[test]
fn bad_usage_is_one_sentence() {
    let sandbox = Sandbox::with_check(GOOD);
    let rows: [&[&str]; 8] = [
        &["-r"],
        &["-c", "nowhere", "-l"],
        &["-c", "check.yaml", "-l", "-n", "good["],
        &["-c", "check.yaml", "-l", "-n", "godo"],
        &["-c", "check.yaml", "-l", "--system", "eidf"],
        &["-c", "check.yaml", "-l", "-E", "nme == 'a'"],
        &["-c", "check.yaml"],
        &["results", "show", "2026"],
    ];
    let mut text = String::new();
    for args in rows {
        let ended = sandbox.muster(args);
        let _ = writeln!(text, "$ muster {}\n[{}] {}", args.join(" "), ended.code.unwrap_or(-1), ended.stderr);
        assert_eq!(ended.code, Some(2), "{args:?}");
    }
    assert_snapshot!(text);
}

#[test]
fn a_system_that_cannot_be_launched_on_yet_says_so_before_anything_runs() {
    let sandbox = Sandbox::new();
    sandbox.write("check.yaml", "name: pod\nvalid_systems: [k]\nec2_config: {}\nexecutable: a\nsanity: []\n");
    sandbox.write(
        "site-config/k.yaml",
        "name: k\npartitions: [{ name: p, scheduler: ec2, environs: [default] }]\nenvironments: [{ name: default }]\n",
    );
    let listed = sandbox.muster(&["-c", "check.yaml", "--system", "k", "-l"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let ended = sandbox.muster(&["-c", "check.yaml", "--system", "k", "-r"]);
    assert_eq!(ended.code, Some(2));
    assert_snapshot!(ended.stderr);
}

#[test]
fn a_partition_on_kubernetes_without_a_cluster_says_so_before_anything_runs() {
    let sandbox = Sandbox::new();
    sandbox.write("check.yaml", "name: pod\nvalid_systems: [k]\nimage: busybox\ncommand: [true]\nsanity: []\n");
    sandbox.write(
        "site-config/k.yaml",
        "name: k\npartitions: [{ name: p, scheduler: k8s, environs: [default] }]\nenvironments: [{ name: default }]\n",
    );
    let mut command = sandbox.command(&["-c", "check.yaml", "--system", "k", "-r"]);
    command.env("KUBECONFIG", "missing").env_remove("KUBERNETES_SERVICE_HOST");
    let ended = sandbox.ended(&command.output().expect("runs"));
    assert_eq!(ended.code, Some(2));
    assert_snapshot!(ended.stderr);
}

#[test]
fn references_are_checked_when_they_are_loaded() {
    let sandbox = Sandbox::with_check(
        "name: r\nvalid_systems: ['*']\nexecutable: a\nsanity: []\nperf_variables: { bw: { pattern: '(\\d+)', unit: GB/s } }\nreference:\n  '*': { bw: [100, 0.1, 0.1, MB/s], bandwidth: [1, null, null] }\n",
    );
    let ended = sandbox.muster(&["-c", "check.yaml", "-r"]);
    assert_eq!(ended.code, Some(2));
    assert_snapshot!(ended.stderr);
}

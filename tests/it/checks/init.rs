//! `muster init`: what it writes, what it refuses, and that its printed commands work.

use crate::sandbox::{Ended, Sandbox};
use insta::assert_snapshot;
use serde_json::json;
use std::fs;

/// With neither Slurm nor a kubeconfig, unless `kubeconfig` is written.
fn init(sandbox: &Sandbox, args: &[&str]) -> Ended {
    let mut command = sandbox.command(&[&["init"], args].concat());
    command.env("KUBECONFIG", sandbox.path("kubeconfig")).env_remove("KUBERNETES_SERVICE_HOST").env("PATH", "/nowhere");
    sandbox.ended(&command.output().expect("the binary runs"))
}

fn kubeconfig(sandbox: &Sandbox) {
    let context = json!({ "name": "bench", "context": { "cluster": "c", "user": "u", "namespace": "gpu-tests" } });
    let cluster = json!({ "name": "c", "cluster": { "server": "http://127.0.0.1:1" } });
    let config = json!({ "apiVersion": "v1", "kind": "Config", "current-context": "bench", "contexts": [context],
        "clusters": [cluster], "users": [{ "name": "u", "user": {} }] });
    sandbox.write("kubeconfig", &config.to_string());
}

fn refused(sandbox: &Sandbox, args: &[&str]) -> String {
    let ended = init(sandbox, args);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}");
    ended.stderr
}

/// A site file without the name of this host.
fn site(sandbox: &Sandbox, name: &str) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    sandbox.read(&format!("site-config/{name}.yaml")).replace(&host.replace('.', r"\\."), "HOST")
}

#[test]
fn a_machine_without_a_cluster_gets_a_site_and_a_check_whose_printed_commands_work() {
    let sandbox = Sandbox::new();
    let ended = init(&sandbox, &["--site-name", "here"]);
    assert_snapshot!(ended.stdout);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    assert_snapshot!(site(&sandbox, "here"));
    let commands: Vec<&str> = ended.stdout.lines().filter_map(|line| line.strip_prefix("  muster ")).collect();
    assert_eq!(commands.len(), 4, "{}", ended.stdout);
    for command in commands {
        let command = command.split("  ").next().unwrap_or_default();
        let ended = sandbox.paste(&format!("muster {command}"), ".");
        assert_eq!(ended.code, Some(0), "{command}: {}{}", ended.stdout, ended.stderr);
    }
    for args in [&["check", "fmt", "--check", "."][..], &["check", "lint", "checks"]] {
        let ended = sandbox.muster(args);
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{args:?} {}", ended.stdout);
    }
}

#[test]
fn what_a_kubeconfig_says_is_in_the_site_file_and_the_first_check_is_for_the_cluster() {
    let sandbox = Sandbox::new();
    kubeconfig(&sandbox);
    let ended = init(&sandbox, &["--site-name", "bench", "my site"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    assert_snapshot!(ended.stdout);
    let moved = Sandbox::new();
    moved.write("site-config/bench.yaml", &sandbox.read("my site/site-config/bench.yaml"));
    assert_snapshot!(site(&moved, "bench"));
    assert!(sandbox.read("my site/checks/hello/hello.check.yaml").contains("%scheduler=k8s"));
}

#[test]
fn flags_choose_the_scheduler_and_its_options() {
    let sandbox = Sandbox::new();
    let args = ["--scheduler", "k8s", "--context", "prod", "--namespace", "n", "--site-name", "prod", "a"];
    assert_eq!(init(&sandbox, &args).code, Some(0));
    let text = sandbox.read("a/site-config/prod.yaml");
    assert!(text.contains("      context: \"prod\"\n      namespace: \"n\"\n") && !text.contains("local"), "{text}");
    let args = ["--scheduler", "slurm", "--option", "partition=gpu", "--option", "account=a=b", "--site-name", "hpc", "b"];
    assert_eq!(init(&sandbox, &args).code, Some(0));
    let text = sandbox.read("b/site-config/hpc.yaml");
    assert!(text.contains("      partition: \"gpu\"\n      account: \"a=b\"\n"), "{text}");
    assert_eq!(sandbox.muster(&["-c", "b/checks", "-C", "b/site-config", "--system", "hpc", "-lC"]).code, Some(0));
}

#[test]
fn an_option_that_is_a_list_is_written_as_one() {
    let sandbox = Sandbox::new();
    let options =
        ["region=eu-west-1", "bucket=s3://bench", "subnets=subnet-0a1b2c3d, subnet-1b2c3d4e", "tags={\"team\": \"hpc\"}"];
    let mut args = vec!["--scheduler", "ec2", "--site-name", "aws", "a"];
    args.extend(options.iter().flat_map(|option| ["--option", option]));
    let ended = init(&sandbox, &args);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let text = sandbox.read("a/site-config/aws.yaml");
    assert!(
        text.contains("      subnets: [\"subnet-0a1b2c3d\",\"subnet-1b2c3d4e\"]\n      tags: {\"team\":\"hpc\"}\n"),
        "{text}"
    );
    assert_eq!(sandbox.muster(&["-c", "a/checks", "-C", "a/site-config", "--system", "aws", "-lC"]).code, Some(0));
    let wrong = refused(&sandbox, &["--scheduler", "ec2", "--option", "subnets=subnet-1", "b"]);
    assert_snapshot!(wrong, @"error: --option subnets=subnet-1: `subnet-1` is not a subnet (write `subnet-` and 8 or 17 hex digits)");
}

#[test]
fn what_is_there_is_never_overwritten() {
    for (there, left) in
        [("site-config/here.yaml", "checks/hello/hello.check.yaml"), ("checks/hello/hello.check.yaml", "site-config/here.yaml")]
    {
        let sandbox = Sandbox::new();
        sandbox.write(there, "mine");
        let said = refused(&sandbox, &["--site-name", "here"]);
        assert_eq!(said, format!("error: {there} is there already: nothing was written\n"));
        let folder = left.split('/').next().expect("a folder");
        assert!(sandbox.read(there) == "mine" && !sandbox.path(folder).exists(), "{there}");
    }
    let sandbox = Sandbox::new();
    sandbox.write("checks", "a file");
    let said = refused(&sandbox, &["--site-name", "here"]);
    assert!(said.starts_with("error: the folder checks/hello cannot be made: "), "{said}");
    assert_eq!(fs::read_dir(sandbox.path("site-config")).expect("a folder").count(), 0);
}

#[test]
fn what_cannot_be_meant_is_refused_with_a_hint() {
    let sandbox = Sandbox::new();
    let refused = |args: &[&str]| refused(&sandbox, args);
    assert_snapshot!(refused(&["--scheduler", "k8"]), @"error: --scheduler k8: there is no such scheduler: did you mean `k8s`?");
    assert_snapshot!(refused(&["--scheduler", "local", "--context", "x"]), @"error: `context` is not an option of local: name another with --scheduler");
    assert_snapshot!(refused(&["--scheduler", "slurm", "--option", "acount=x"]), @"error: `acount` is not an option of slurm: did you mean `account`?");
    assert_snapshot!(refused(&["--option", "partition"]), @"error: --option partition has no `=`: write KEY=VALUE");
    assert_snapshot!(refused(&["--site-name", "my site"]), @"error: --site-name my site: use letters, digits, `_` and `-`, a letter or digit first");
    assert_snapshot!(refused(&["--scheduler", "k8s", "--option", "labels=a"]), @r#"error: `sched_options.labels`: invalid type: string "a", expected a map"#);
    assert_eq!(fs::read_dir(sandbox.path("")).expect("a folder").count(), 0);
}

#[test]
fn the_printed_commands_name_the_system_where_another_site_file_claims_this_host() {
    let sandbox = Sandbox::new();
    let other = "name: another\nhostnames: ['.*']\npartitions: [{ name: p, scheduler: local }]\n";
    sandbox.write("site-config/a.yaml", other);
    let ended = init(&sandbox, &["--site-name", "zzz"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    let commands: Vec<&str> = ended.stdout.lines().filter_map(|line| line.strip_prefix("  muster ")).collect();
    assert_eq!(commands.len(), 4, "{}", ended.stdout);
    assert!(commands.iter().all(|command| command.starts_with("-c checks --system zzz ")), "{}", ended.stdout);
}

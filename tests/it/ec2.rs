//! `muster ec2 policy` and `setup`, and what `--dry-run` shows of a check for EC2.

use crate::sandbox::{Ended, Sandbox};
use insta::assert_snapshot;

const SITE: &str = "
name: aws
partitions:
  - name: c7i
    scheduler: ec2
    environs: [default]
    sched_options: { region: eu-west-1, bucket: s3://bench/ci, subnets: [subnet-0a1b2c3d], tags: { team: hpc } }
environments: [{ name: default }]
";

const CHECK: &str = "
name: triad
valid_systems: [\"*\"]
time_limit: 20m
num_tasks: 2
ec2_config: { ami: ami-0abc1234, instance_type: c7i.large }
executable: ./triad
sanity: []
";

fn muster(args: &[&str]) -> Ended {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("site.yaml", SITE);
    sandbox.muster(&[&["-c", "check.yaml", "-C", "site.yaml"], args].concat())
}

#[test]
fn the_policy_and_the_commands_are_those_of_the_selected_checks() {
    let policy = muster(&["--system", "aws", "ec2", "policy", "--account", "123456789012"]);
    assert_eq!((policy.code, policy.stderr.as_str()), (Some(0), ""));
    let sids: Vec<&str> = policy.stdout.lines().filter_map(|line| line.trim().strip_prefix("\"Sid\": ")).collect();
    assert_snapshot!(sids.concat(), @r#""Read","LaunchFrom","LaunchTagged","OnlyWithTokens","TagOnCreate","MoveExpiry","OwnOnly","MakeGroups","MakeGroupsIn","Objects","List","Keys","#);
    assert!(policy.stdout.contains("arn:aws:ec2:eu-west-1:123456789012:subnet/subnet-0a1b2c3d"), "{}", policy.stdout);
    let setup = muster(&["--system", "aws", "ec2", "setup", "--print"]);
    assert_eq!((setup.code, setup.stderr.as_str()), (Some(0), ""));
    assert!(setup.stdout.contains("aws s3api create-bucket --region eu-west-1 --bucket bench"), "{}", setup.stdout);
}

#[test]
fn what_is_missing_is_said() {
    let local = muster(&["--system", "local", "ec2", "policy"]);
    assert_eq!(local.code, Some(2));
    assert_snapshot!(local.stderr, @"error: none of the 1 selected case(s) runs on EC2: choose a system with --system");
    assert_eq!(muster(&["--system", "aws", "ec2", "setup"]).code, Some(2), "it runs nothing itself");
    let account = muster(&["--system", "aws", "ec2", "policy", "--account", "me"]);
    assert!(account.stderr.contains("an account has 12 digits"), "{}", account.stderr);
}

#[test]
fn a_dry_run_shows_the_request_and_the_script() {
    let shown = muster(&["--system", "aws", "--dry-run"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""));
    for part in
        ["# 2 instance(s) in eu-west-1, objects in s3://bench/ci/", "InstanceInitiatedShutdownBehavior: terminate", "./triad"]
    {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
}

/// A site with a price, and cases that need so many instances.
fn priced(args: &[&str]) -> Ended {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("site.yaml", &SITE.replace("tags: ", "price_per_hour: { c7i.large: 0.1 }, currency: EUR, tags: "));
    sandbox.muster(&[&["-c", "check.yaml", "-C", "site.yaml", "--system", "aws"], args].concat())
}

#[test]
fn a_run_that_may_cost_too_much_launches_nothing() {
    // Two instances for 75 minutes: 0.25.
    let fits = priced(&["--dry-run", "--max-cost", "0.25"]);
    assert_eq!(fits.code, Some(0), "{}", fits.stderr);
    assert_snapshot!(fits.stderr, @"at most this run uses 2.50 instance-hours, 0.2500 EUR");
    for args in [&["-r", "--max-cost=0.24"], &["--dry-run", "--max-cost=0.24"]] {
        let refused = priced(args);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains("error: this run may cost up to 0.2500 EUR, more than --max-cost=0.2400"));
    }
    let retried = priced(&["-r", "--max-cost=0.5", "--max-retries=2"]);
    assert_eq!(retried.code, Some(2), "{}", retried.stderr);
    assert_snapshot!(retried.stderr, @"
    error: this run may cost up to 0.7500 EUR, more than --max-cost=0.5000: select fewer cases, or lower `time_limit`, `keep_failed` or the number of attempts
    nothing was launched
    ");
    let endless = priced(&["-r", "--max-cost=5", "--duration=1h"]);
    assert!(endless.stderr.contains("--max-cost cannot say what --duration costs"), "{}", endless.stderr);
    let unknown = muster(&["--system", "aws", "--dry-run", "--max-cost", "100"]);
    assert_eq!(unknown.code, Some(2));
    assert_snapshot!(unknown.stderr, @"error: it is not known what an hour of c7i.large costs: add `price_per_hour` to the site file, or --max-cost-unknown=allow");
    let allowed = muster(&["--system", "aws", "--dry-run", "--max-cost", "100", "--max-cost-unknown=allow"]);
    assert_eq!(allowed.code, Some(0), "{}", allowed.stderr);
    assert_snapshot!(allowed.stderr, @"at most this run uses 2.50 instance-hours, price of c7i.large unknown");
    let free = muster(&["--system", "local", "--dry-run", "--max-cost", "0"]);
    assert_eq!(free.code, Some(0), "{}", free.stderr);
}

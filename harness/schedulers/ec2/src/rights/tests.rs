//! Policies and commands of some plans.

use super::*;
use crate::plan::testing::{plain, site, workload};
use std::{
    io::Write,
    process::{Command, Stdio},
};

fn planned(config: Value, options: Value, instances: u32) -> Plan {
    plan(&Workload { num_tasks: instances, ..workload(config, options) }).unwrap()
}

/// A job that needs more than others.
fn demanding() -> Plan {
    let config = json!({
        "ami": "resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023", "instance_type": "p5.48xlarge", "placement": "cluster",
        "data": [{ "src": "s3://sets/imagenet/", "dest": "data" }, { "src": "s3://sets/one.tar", "dest": "x" }],
    });
    let options =
        json!({ "region": "us-gov-west-1", "bucket": "s3://other", "subnets": ["subnet-0a1b2c3d"], "instance_profile": "host" });
    planned(config, options, 2)
}

#[test]
fn a_plain_job_needs_no_groups_no_roles_and_no_parameters() {
    let policy = policy(&[planned(plain(), site(), 1)], "123456789012");
    insta::assert_snapshot!(format!("{policy:#}"));
}

#[test]
fn what_a_job_needs_beside_that_is_allowed_where_it_needs_it() {
    let (plain, both) = (planned(plain(), site(), 1), [planned(plain(), site(), 1), demanding()]);
    let sids = |policy: &Value| -> Vec<String> {
        policy["Statement"].as_array().unwrap().iter().map(|one| one["Sid"].as_str().unwrap().to_owned()).collect()
    };
    let (few, more) = (policy(&[plain], "*"), policy(&both, "*"));
    let added: Vec<String> = sids(&more).into_iter().filter(|sid| !sids(&few).contains(sid)).collect();
    assert_eq!(added, ["MakeGroups", "MakeGroupsIn", "Parameters", "PassRoles", "Data", "ListData"]);
    let text = more.to_string();
    for part in [
        "arn:aws-us-gov:ssm:us-gov-west-1::parameter/aws/service/ami-amazon-linux-latest/al2023",
        "arn:aws-us-gov:iam::*:role/host",
        "arn:aws-us-gov:s3:::other/muster/*",
        "arn:aws:s3:::bench/ci/*",
        "ec2:DeletePlacementGroup",
        "arn:aws-us-gov:kms:us-gov-west-1:*:key/*",
        "s3.us-gov-west-1.*",
        "arn:aws-us-gov:s3:::sets/imagenet/*",
        "arn:aws-us-gov:s3:::sets/one.tar",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(policy(&[], "*")["Statement"], json!([]), "nothing needs nothing");
}

#[test]
fn the_commands_of_setup_are_a_script_that_can_be_read() {
    let text = setup(&[planned(plain(), site(), 1), planned(plain(), site(), 3)]);
    insta::assert_snapshot!(text);
    let mut sh = Command::new("sh").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    sh.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(sh.wait().unwrap().success());
}

/// Names and domains as botocore's `endpoints.json` has them.
#[test]
fn each_region_is_in_the_cloud_that_amazon_has_it_in() {
    let rows = [
        ("eu-west-1", "aws", "amazonaws.com"),
        ("xx-new-9", "aws", "amazonaws.com"),
        ("cn-north-1", "aws-cn", "amazonaws.com.cn"),
        ("us-gov-west-1", "aws-us-gov", "amazonaws.com"),
        ("eusc-de-east-1", "aws-eusc", "amazonaws.eu"),
        ("us-iso-east-1", "aws-iso", "c2s.ic.gov"),
        ("us-isob-east-1", "aws-iso-b", "sc2s.sgov.gov"),
        ("eu-isoe-west-1", "aws-iso-e", "cloud.adc-e.uk"),
        ("us-isof-south-1", "aws-iso-f", "csp.hci.ic.gov"),
    ];
    for (region, name, domain) in rows {
        let found = partition(region);
        assert_eq!((found.name, found.domain), (name, domain), "{region}");
    }
}

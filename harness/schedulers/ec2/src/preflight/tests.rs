use super::*;
use crate::{
    cloud::{CloudError, CredentialsEnd, Instance, InstanceType, Reservation, Subnet, action, fake::Fake, fake::refused},
    plan::{
        self,
        testing::{plain, site, workload},
    },
};
use muster_core::job::scheduler::Scheduler;
use muster_text::Value;
use serde_json::json;
use std::{fmt::Write, sync::Arc, time::Duration};

const NOW: Timestamp = Timestamp(1_796_000_000_000_000);

fn end(minutes: u64, is_final: bool) -> CredentialsEnd {
    CredentialsEnd { at: NOW.plus(Duration::from_mins(minutes)), is_final }
}

fn planned(config: Value, options: Value, tasks: u32) -> Handle {
    let mut workload = workload(config, options);
    workload.num_tasks = tasks;
    plan::handle(&workload).unwrap()
}

async fn found(fake: &Arc<Fake>, handles: &[Handle]) -> Vec<Finding> {
    let planned: Vec<(usize, &Handle)> = handles.iter().enumerate().collect();
    let written = crate::poll::Written::default();
    findings(&**fake, &Resolver::new(fake.clone()), &planned, NOW, Writes::AnObject(&written)).await.findings
}

fn refuse(fake: &Fake, service: &'static str, action: &str, code: &str, message: &str) {
    let (action, code, message) = (action.to_owned(), code.to_owned(), message.to_owned());
    fake.refuse(CloudError::Refused { service, action, code, message, status: 400, origin: String::new() });
}

fn plus(mut base: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        base[key] = value.clone();
    }
    base
}

fn with(more: &Value) -> Value {
    plus(plain(), more)
}

fn of_block(more: &Value) -> Value {
    plus(json!({ "market": "capacity-block", "capacity_reservation": "cr-0123456789abcdef0" }), more)
}

fn reservation(zone: &str, minutes: u64) -> Reservation {
    Reservation {
        id: "cr-0123456789abcdef0".to_owned(),
        state: "active".to_owned(),
        zone: zone.to_owned(),
        starts: Some(NOW),
        ends: Some(NOW.plus(Duration::from_mins(minutes))),
    }
}

fn instance(tags: crate::cloud::Tags) -> Instance {
    Instance {
        id: "i-0123456789abcdef0".to_owned(),
        index: 0,
        state: "running".to_owned(),
        reason: None,
        instance_type: "c7i.8xlarge".to_owned(),
        zone: "eu-west-1a".to_owned(),
        image: "ami-0abc1234def567890".to_owned(),
        private_ip: None,
        launched: Some(NOW),
        is_spot: false,
        token: String::new(),
        tags,
    }
}

/// A row: its name, what is different in the region, and the workload.
type Row = (&'static str, Box<dyn Fn(&Fake)>, Handle);

fn row(name: &'static str, change: impl Fn(&Fake) + 'static, handle: Handle) -> Row {
    (name, Box::new(change), handle)
}

fn rows() -> Vec<Row> {
    let arm = |fake: &Fake| fake.state().images[0].architecture = "arm64".to_owned();
    let other = |name: &str, fake: &Fake| {
        let known: InstanceType = fake.state().types[0].clone();
        fake.state().types.push(InstanceType { name: name.to_owned(), ..known });
    };
    let plan = |more: Value| planned(with(&more), site(), 1);
    let as_planned = || planned(plain(), site(), 1);
    vec![
        row("no region", Fake::is_nowhere, as_planned()),
        row("no image", |_| {}, plan(json!({ "ami": "ami-0123456789abcdef0" }))),
        row("no parameter", |_| {}, plan(json!({ "ami": "resolve:ssm:/none" }))),
        row("no image of that name", |_| {}, plan(json!({ "ami": { "owner": "self", "name": "x-*" } }))),
        row("image not ready", |fake| fake.state().images[0].state = "pending".to_owned(), as_planned()),
        row("image on instance store", |fake| fake.state().images[0].is_on_ebs = false, as_planned()),
        row("small volume", |_| {}, plan(json!({ "volume": { "size": 4 } }))),
        row("architecture", arm, as_planned()),
        row("type with a typo", |_| {}, plan(json!({ "instance_type": ["c7i.8xlrge", "c7i.8xlarge"] }))),
        row("unknown type", |_| {}, plan(json!({ "instance_type": "zz9.nano" }))),
        row("no disks", |_| {}, plan(json!({ "instance_store": "/scratch" }))),
        row("no EFA", |_| {}, plan(json!({ "network": "efa" }))),
        row(
            "not in these zones",
            move |fake| {
                other("p5.48xlarge", fake);
                fake.state().offerings.push(("p5.48xlarge".to_owned(), "eu-west-1c".to_owned()));
            },
            plan(json!({ "instance_type": "p5.48xlarge" })),
        ),
        row("no subnet", |fake| drop(fake.state().subnets.pop()), as_planned()),
        row(
            "small subnets",
            |fake| fake.state().subnets.iter_mut().for_each(|subnet: &mut Subnet| subnet.addresses = 11),
            planned(plain(), site(), 12),
        ),
        row("no capacity block", |_| {}, plan(of_block(&json!({})))),
        row(
            "capacity block ends",
            |fake| fake.state().reservations.push(reservation("eu-west-1a", 49)),
            plan(of_block(&json!({}))),
        ),
        row(
            "capacity block elsewhere",
            |fake| fake.state().reservations.push(reservation("eu-west-1c", 500)),
            plan(of_block(&json!({}))),
        ),
        row(
            "missing rights for groups and for ending",
            |fake| {
                let tags = crate::cloud::Tags::from([("rfm-managed".to_owned(), "true".to_owned())]);
                fake.state().instances.push(instance(tags));
                for action in ["CreateSecurityGroup", "CreatePlacementGroup", "TerminateInstances", "CreateTags"] {
                    refuse(fake, "EC2", action, "UnauthorizedOperation", "");
                }
            },
            planned(with(&json!({ "placement": "cluster" })), site(), 2),
        ),
        row("no bucket", |fake| refuse(fake, "S3", "PutObject", "NoSuchBucket", ""), as_planned()),
        row("bucket elsewhere", |fake| refuse(fake, "S3", "PutObject", "PermanentRedirect", ""), as_planned()),
        row(
            "missing rights",
            |fake| {
                refuse(fake, "S3", "PutObject", "AccessDenied", "");
                refuse(fake, "S3", "ListObjectsV2", "AccessDenied", "");
                refuse(fake, "EC2", "DescribeInstances", "UnauthorizedOperation", "");
                refuse(fake, "EC2", "DescribeSubnets", "UnauthorizedOperation", "");
                refuse(fake, "EC2", "RunInstances with DryRun", "UnauthorizedOperation", "Encoded: xyz");
            },
            as_planned(),
        ),
        row("a right to read what was written", |fake| refuse(fake, "S3", "GetObject", "AccessDenied", ""), as_planned()),
        row(
            "a key of KMS",
            |fake| {
                let said =
                    "User: arn:aws:iam::1:user/x is not authorized to perform: kms:GenerateDataKey on resource: arn:aws:kms:y";
                refuse(fake, "S3", "PutObject", "AccessDenied", said);
            },
            as_planned(),
        ),
        row(
            "missing rights, one of which hides the image",
            |fake| {
                refuse(fake, "SSM", "GetParameter", "AccessDeniedException", "");
                refuse(fake, "EC2", "RunInstances with DryRun", "UnauthorizedOperation", "Encoded: xyz");
            },
            plan(json!({ "ami": "resolve:ssm:/image" })),
        ),
        row(
            "missing rights, one of which hides the types",
            |fake| {
                refuse(fake, "EC2", "DescribeInstanceTypes", "UnauthorizedOperation", "");
                refuse(fake, "EC2", "RunInstances with DryRun", "InvalidGroup.NotFound", "a guess");
            },
            as_planned(),
        ),
        row(
            "unknown caller",
            |fake| refuse(fake, "EC2", "DescribeImages", "AuthFailure", "AWS was not able to validate the credentials"),
            as_planned(),
        ),
        row(
            "clock",
            |fake| {
                let message = "The difference is too large: the clock of this machine is 16 min ahead of Amazon's: set it, for example with NTP";
                refuse(fake, "S3", "PutObject", "RequestTimeTooSkewed", message);
            },
            as_planned(),
        ),
        row(
            "clock, at EC2",
            |fake| {
                let message =
                    "Request has expired.: the clock of this machine is 6 min behind Amazon's: set it, for example with NTP";
                refuse(fake, "EC2", "DescribeInstances", "RequestExpired", message);
            },
            as_planned(),
        ),
        row("credentials end", |fake| fake.state().credentials_end = Some(end(12, true)), as_planned()),
        row(
            "quota",
            |fake| {
                let message = "You have requested more vCPU capacity than your current vCPU limit of 384 allows";
                refuse(fake, "EC2", "RunInstances with DryRun", "VcpuLimitExceeded", message);
            },
            planned(plain(), site(), 24),
        ),
        row(
            "security group",
            |fake| refuse(fake, "EC2", "RunInstances with DryRun", "InvalidGroup.NotFound", "sg-1 does not exist"),
            as_planned(),
        ),
        row(
            "account",
            |fake| refuse(fake, "EC2", "RunInstances with DryRun", "OptInRequired", "You are not subscribed"),
            as_planned(),
        ),
    ]
}

#[tokio::test]
async fn credentials_that_end_too_early_are_no_mistake_where_others_may_follow() {
    let fake = Arc::new(Fake::default());
    fake.state().credentials_end = Some(end(12, false));
    assert!(found(&fake, &[planned(plain(), site(), 24)]).await.is_empty());
}

#[tokio::test]
async fn each_mistake_that_a_region_knows_is_said_with_what_to_do() {
    let mut said = String::new();
    for (name, change, handle) in rows() {
        let fake = Arc::new(Fake::default());
        change(&fake);
        let found = found(&fake, &[handle]).await;
        writeln!(said, "{name}").unwrap();
        assert!(!found.is_empty(), "{name}");
        for Finding { what, hint, .. } in found {
            writeln!(said, "  {what}\n    {}", hint.unwrap_or_default()).unwrap();
        }
    }
    insta::assert_snapshot!(said);
}

#[tokio::test]
async fn what_may_pass_is_no_finding() {
    let planned = || planned(plain(), site(), 4);
    assert_eq!(found(&Arc::new(Fake::default()), &[planned()]).await, []);
    for (action, code) in [
        ("RunInstances with DryRun", "InsufficientInstanceCapacity"),
        ("RunInstances with DryRun", "RequestLimitExceeded"),
        ("DescribeSubnets", "InternalError"),
        ("DescribeInstanceTypes", "RequestLimitExceeded"),
        ("PutObject", "SlowDown"),
    ] {
        let fake = Arc::new(Fake::default());
        fake.refuse(refused(action, code, "your current vCPU limit of 384 allows", 503));
        assert_eq!(found(&fake, &[planned()]).await, [], "{code}");
    }
    let fake = Arc::new(Fake::default());
    fake.refuse(refused("RunInstances with DryRun", "VcpuLimitExceeded", "your current vCPU limit of 384 allows", 400));
    assert_eq!(found(&fake, &[planned()]).await, [], "others may end");
    let fake = Arc::new(Fake::default());
    fake.refuse(CloudError::Unreached { service: "EC2", action: "DescribeImages".to_owned(), why: "refused".to_owned() });
    assert_eq!(found(&fake, &[planned()]).await, []);
}

#[tokio::test]
async fn the_requests_are_the_same_for_one_workload_and_for_many_and_leave_nothing() {
    let alike: Vec<Handle> = (0..200).map(|_| planned(plain(), site(), 1)).collect();
    let fake = Arc::new(Fake::default());
    assert_eq!(found(&fake, &alike).await, []);
    let mut calls = fake.state().calls.clone();
    calls.sort_unstable();
    assert_eq!(
        calls,
        [
            "DeleteObjects",
            "DescribeImages",
            "DescribeInstanceTypeOfferings",
            "DescribeInstanceTypes",
            "DescribeInstances",
            "DescribeSubnets",
            "GetObject",
            "ListObjectsV2",
            "PutObject",
            "RunInstances with DryRun",
        ]
    );
    assert!(fake.state().objects.is_empty());
}

#[tokio::test]
async fn a_finding_names_the_workloads_that_it_ends() {
    let handles = [
        planned(plain(), site(), 1),
        planned(with(&json!({ "volume": { "size": 4 } })), site(), 1),
        planned(plain(), site(), 1),
        planned(with(&json!({ "volume": { "size": 4 } })), site(), 2),
    ];
    let found = found(&Arc::new(Fake::default()), &handles).await;
    assert_eq!(found.iter().map(|finding| &finding.workloads[..]).collect::<Vec<_>>(), [&[1, 3][..]]);
}

#[tokio::test]
async fn what_only_looks_writes_nothing() {
    let fake = Arc::new(Fake::default());
    refuse(&fake, "S3", "ListObjectsV2", "AccessDenied", "");
    let handle = planned(plain(), site(), 1);
    let found = findings(&*fake, &Resolver::new(fake.clone()), &[(0, &handle)], NOW, Writes::Nothing).await.findings;
    assert_eq!(
        found.iter().map(|finding| &*finding.what).collect::<Vec<_>>(),
        ["the AWS credentials do not allow s3:ListBucket"]
    );
    assert!(!fake.state().calls.iter().any(|call| ["PutObject", "DeleteObjects"].contains(call)), "{:?}", fake.state().calls);
}

fn ec2(fake: &Arc<Fake>) -> crate::scheduler::Ec2 {
    let cloud = fake.clone();
    crate::scheduler::Ec2::new(Box::new(move |_| Ok(cloud.clone())), Arc::new(|| NOW))
}

#[tokio::test(start_paused = true)]
async fn what_a_preflight_has_written_goes_at_once_or_with_the_session() {
    let written = |fake: &Fake| fake.state().objects.keys().filter(|(_, key)| key.ends_with("/preflight")).count();
    for is_refused in [true, false] {
        let fake = Arc::new(Fake::default());
        let ec2 = ec2(&fake);
        let one = workload(plain(), site());
        if is_refused {
            refuse(&fake, "S3", "DeleteObjects", "InternalError", "no");
            ec2.preflight(&mut std::iter::once(one)).await.unwrap();
        } else {
            // An interrupt comes when it was written.
            let asked = fake.state().calls.len();
            for calls in asked.. {
                fake.state().stops_after = Some(calls);
                let mut workloads = std::iter::once(one.clone());
                let _ = tokio::time::timeout(Duration::from_millis(1), ec2.preflight(&mut workloads)).await;
                if written(&fake) > 0 {
                    break;
                }
            }
            fake.state().stops_after = None;
        }
        assert_eq!(written(&fake), 1);
        refuse(&fake, "S3", "DeleteObjects", "InternalError", "no");
        let left = ec2.close(None).await.unwrap_err().to_string();
        assert!(left.starts_with("s3://bench/ci/") && left.ends_with("preflight --region eu-west-1`"), "{left}");
        ec2.close(None).await.unwrap();
        assert_eq!(written(&fake), 0, "{is_refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_s3_failed_to_write_may_be_there_and_is_deleted() {
    for (status, deletes) in [(403, 0), (500, 1)] {
        let fake = Arc::new(Fake::default());
        let (service, action, code) = ("S3", action::PUT_OBJECT.to_owned(), "InternalError".to_owned());
        fake.refuse(CloudError::Refused { service, action, code, message: String::new(), status, origin: String::new() });
        ec2(&fake).preflight(&mut std::iter::once(workload(plain(), site()))).await.unwrap();
        let deleted = fake.state().calls.iter().filter(|call| **call == action::DELETE_OBJECTS).count();
        assert_eq!(deleted, deletes, "{status}");
    }
}

struct Cases(Vec<muster_core::job::workload::Workload>);

impl muster_core::job::inventory::Workloads for Cases {
    fn all(&self) -> Box<dyn Iterator<Item = muster_core::job::workload::Workload> + Send + '_> {
        Box::new(self.0.iter().cloned())
    }
}

#[tokio::test(start_paused = true)]
async fn a_doctor_says_of_a_region_that_does_not_answer_that_it_does_not() {
    let (fake, options) = (Arc::new(Fake::default()), site());
    let (ec2, cases) = (ec2(&fake), Cases(vec![workload(plain(), site())]));
    let examined =
        muster_core::job::inventory::Examined { options: &options, shared: &serde_json::Map::new(), workloads: &cases };
    let ask = async || {
        let mut said = Vec::new();
        for probe in ec2.probes(examined) {
            let answer = tokio::time::timeout(muster_core::probe::EACH, probe.answer).await.expect("in time");
            said.extend(answer.into_iter().map(|one| format!("{} {}: {}", one.level, one.topic, one.what)));
        }
        said.join("\n")
    };
    let well = ask().await;
    assert!(well.contains("ok cases: nothing is known"), "{well}");
    for answered in [0, 3] {
        fake.state().stops_after = Some(answered);
        let silent = ask().await;
        assert!(silent.contains("error cases: eu-west-1: no answer within 8 s") && !silent.contains("ok cases"), "{silent}");
        fake.state().stops_after = None;
    }
}

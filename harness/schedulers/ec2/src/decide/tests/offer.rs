//! Tests of the requests after refusals.

use crate::{
    decide::offer::{Next, Refused, next_offer},
    plan::{Bought, Offer},
};
use muster_core::error::Class;
use std::time::Duration;

/// Two subnets, spot first.
fn offers() -> Vec<Offer> {
    let offer = |bought, subnet: &str| Offer { instance_type: "c7i.8xlarge".into(), subnet: subnet.into(), bought };
    let subnets = ["subnet-a", "subnet-b"];
    [Bought::Spot, Bought::OnDemand].into_iter().flat_map(|bought| subnets.map(|subnet| offer(bought, subnet))).collect()
}

fn refused(offer: usize, code: &str) -> Refused {
    Refused { offer, code: code.into(), message: "no".into(), status: if code.starts_with("Insufficient") { 500 } else { 400 } }
}

fn next(refused: &[Refused]) -> Next {
    next_offer(&offers(), refused, &[Some(128); 4])
}

fn wait(next: Next) -> String {
    let Next::Wait(why) = next else { panic!("{next:?}") };
    why
}

#[test]
fn each_offer_is_tried_once_where_there_is_no_capacity() {
    const NONE: &str = "InsufficientInstanceCapacity";
    assert_eq!(next(&[]), Next::Try(0));
    let mut tried = Vec::new();
    for at in 0..3 {
        tried.push(refused(at, NONE));
        assert_eq!(next(&tried), Next::Try(at + 1), "a capacity error has the status 500 and is not sent again");
    }
    tried.push(refused(3, "Unsupported"));
    let why = wait(next(&tried));
    insta::assert_snapshot!(why, @"no capacity (c7i.8xlarge in subnet-a: InsufficientInstanceCapacity; c7i.8xlarge in subnet-b: InsufficientInstanceCapacity; c7i.8xlarge in subnet-a: InsufficientInstanceCapacity; c7i.8xlarge in subnet-b: Unsupported)");
}

#[test]
fn a_quota_that_is_too_small_fails_at_once_and_one_that_is_used_up_is_waited_for() {
    let quota = |offer, message: &str| Refused { message: message.into(), ..refused(offer, "VcpuLimitExceeded") };
    let small = quota(2, "You have requested more vCPU capacity than your current vCPU limit of 64 allows");
    let Next::Fail { class, why } = next(std::slice::from_ref(&small)) else { panic!("it can never run") };
    assert_eq!(class, Class::Config);
    insta::assert_snapshot!(why, @"it needs 128 vCPUs and the quota of this account is 64, so that it can never run (VcpuLimitExceeded)");
    let enough = quota(2, "You have requested more vCPU capacity than your current vCPU limit of 384 allows");
    assert!(matches!(next(&[enough]), Next::Wait(_)), "other subnets have the same quota");
    assert!(matches!(next(&[refused(0, "InsufficientInstanceCapacity"), small.clone()]), Next::Wait(_)), "spot may come");
    assert!(matches!(next_offer(&offers(), &[small], &[]), Next::Wait(_)), "how many it needs is not known");
    assert_eq!(next(&[refused(0, "MaxSpotInstanceCountExceeded")]), Next::Try(2), "on demand has another quota");
    assert!(matches!(next(&[refused(3, "MaxSpotInstanceCountExceeded")]), Next::Wait(_)));
    for others in ["VolumeLimitExceeded", "InstanceLimitExceeded", "NetworkInterfaceLimitExceeded"] {
        let other = Refused { message: "your maximum storage limit of 20 TiB".into(), ..refused(3, others) };
        assert!(matches!(next(&[other]), Next::Wait(_)), "{others}");
    }
    for own in ["TagLimitExceeded", "SecurityGroupsPerInstanceLimitExceeded", "AttachmentLimitExceeded"] {
        assert!(matches!(next(&[refused(3, own)]), Next::Fail { class: Class::Config, .. }), "{own}");
    }
}

#[test]
fn a_quota_of_one_family_leaves_the_others() {
    let of = |types: &[&str]| -> Vec<Offer> {
        let offer = |kind: &&str| Offer { instance_type: (*kind).into(), subnet: "subnet-a".into(), bought: Bought::OnDemand };
        types.iter().map(offer).collect()
    };
    // types, those that were refused, what is next
    let rows: [(&[&str], &[usize], Option<usize>); 6] = [
        (&["p5.48xlarge", "p4d.24xlarge", "g6.48xlarge"], &[0], Some(2)),
        (&["c7i.8xlarge", "m7i.8xlarge", "im4gn.8xlarge", "hpc7a.96xlarge"], &[0], Some(3)),
        (&["trn1.32xlarge", "t3.large"], &[0], Some(1)),
        (&["u-6tb1.metal", "x2idn.32xlarge"], &[0], Some(1)),
        (&["g5.xlarge", "p5.48xlarge", "g6.xlarge"], &[0, 1], None),
        (&["vt1.3xlarge", "gr6.4xlarge"], &[0], None),
    ];
    for (types, tried, expected) in rows {
        let tried: Vec<Refused> = tried.iter().map(|at| refused(*at, "VcpuLimitExceeded")).collect();
        let next = next_offer(&of(types), &tried, &[]);
        match expected {
            Some(at) => assert_eq!(next, Next::Try(at), "{types:?}"),
            None => assert!(matches!(next, Next::Wait(_)), "{types:?}: {next:?}"),
        }
    }
    let small = Refused { message: "current vCPU limit of 64 allows".into(), ..refused(0, "VcpuLimitExceeded") };
    let offers = of(&["c7i.24xlarge", "m7i.24xlarge", "c7i.large"]);
    let next = |refused: &[Refused]| next_offer(&offers, refused, &[Some(96), Some(96), Some(2)]);
    assert_eq!(next(std::slice::from_ref(&small)), Next::Try(2), "what needs less may have room in the same quota");
    let full = [small.clone(), Refused { offer: 2, ..small.clone() }];
    assert!(matches!(next(&full), Next::Wait(_)), "2 of 64 may become free");
    let none = [refused(0, "InsufficientInstanceCapacity"), Refused { offer: 1, ..small }];
    assert_eq!(next(&none), Next::Try(2));
}

#[test]
fn a_busy_server_gets_the_same_request_again_with_growing_pauses() {
    let busy = |count: usize| vec![Refused { status: 503, ..refused(0, "Unavailable") }; count];
    let pauses: Vec<Next> = (1..8).map(|count| next(&busy(count))).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30].map(|seconds| Next::Again(Duration::from_secs(seconds))));
    assert!(matches!(next(&busy(8)), Next::Fail { class: Class::Outage, .. }));
    // Who asks too often waits with all others, within `max_pending_time`.
    let throttled = |count: usize| next(&vec![refused(0, "RequestLimitExceeded"); count]);
    assert_eq!(throttled(3), Next::Again(Duration::from_secs(4)));
    insta::assert_snapshot!(wait(throttled(4)), @"EC2 takes no more requests now (RequestLimitExceeded: no)");
    let unavailable = Refused { status: 503, ..refused(0, "Unavailable") };
    assert_eq!(next(&[unavailable]), Next::Again(Duration::from_secs(1)));
    let after_capacity = [refused(0, "InsufficientInstanceCapacity"), refused(1, "RequestLimitExceeded")];
    assert_eq!(next(&after_capacity), Next::Again(Duration::from_secs(1)));
}

#[test]
fn a_token_that_another_process_had_is_renewed_for_the_same_offer_and_not_for_ever() {
    let mut tried = vec![refused(0, "InsufficientInstanceCapacity")];
    for _ in 0..3 {
        tried.push(refused(1, "IdempotentParameterMismatch"));
        assert_eq!(next(&tried), Next::Renew(1));
    }
    tried.push(refused(1, "IdempotentParameterMismatch"));
    assert!(matches!(next(&tried), Next::Fail { class: Class::Infra, .. }));
    assert_eq!(next(&[refused(1, "IdempotentInstanceTerminated")]), Next::Renew(1), "what it launched has ended");
}

#[test]
fn what_cannot_work_fails_with_the_words_of_ec2() {
    let class = |one: Refused| match next(&[one]) {
        Next::Fail { class, why } => Some((class, why)),
        _ => None,
    };
    let config = |code: &str| Some((Class::Config, format!("{code}: no")));
    for code in ["UnauthorizedOperation", "InvalidAMIID.NotFound", "InvalidSubnetID.NotFound", "InvalidParameterValue"] {
        assert_eq!(class(refused(0, code)), config(code));
    }
    let unknown = Refused { message: "Invalid IAM Instance Profile name".into(), ..refused(0, "InvalidParameterValue") };
    assert_eq!(next(&vec![unknown.clone(); 10]), Next::Again(Duration::from_secs(5)), "a new profile takes a minute");
    assert!(matches!(next(&vec![unknown; 11]), Next::Fail { class: Class::Config, .. }));
}

//! Cases that end by themselves, and what is left of them.

use super::{cloud::Cloud, place::Place};
use serde_json::{Value, json};
use std::{collections::BTreeSet, process::Command};

/// Options of a site that is asked often.
const OFTEN: &str = "poll_interval: 1s";

fn nothing_is_left(cloud: &Cloud) {
    let left = cloud.left();
    let is_empty = |what: &Value| what.as_array().is_some_and(Vec::is_empty);
    assert!(left.as_object().is_some_and(|left| left.values().all(is_empty)), "{left}");
}

/// Statements 1 and 4.
pub(crate) fn a_passing_script_leaves_its_log_and_nothing_else() {
    let cloud = Cloud::start();
    let check = "time_limit: 2m\nexecutable: 'echo out; echo err >&2; uname -s'\nsanity: [{ found: ^out$ }, { found: ^err$ }]";
    let place = Place::new(&cloud, OFTEN, check, "");
    let ended = place.run(&[]).expect_case(0, "pass", &[]);
    nothing_is_left(&cloud);
    let instances = cloud.instances();
    assert_eq!(instances.len(), 1);
    assert_eq!(instances[0]["reason"], "Client.InstanceInitiatedShutdown", "{}", instances[0]);
    let requests = cloud.requests("RunInstances");
    let launches: Vec<&Value> = requests.iter().filter(|request| request["DryRun"].is_null()).collect();
    assert_eq!(launches.len(), 1, "{requests:?}");
    let request = launches[0];
    let tags = |of: usize| -> BTreeSet<String> {
        let tag = |n: usize| request[format!("TagSpecification.{of}.Tag.{n}.Key")].as_str().map(str::to_owned);
        (1..20).map_while(tag).collect()
    };
    for (number, kind) in [(1, "instance"), (2, "volume"), (3, "network-interface")] {
        assert_eq!(request[format!("TagSpecification.{number}.ResourceType")], kind);
        let all = tags(number);
        for tag in ["rfm", "rfm-managed", "rfm-session", "rfm-check", "rfm-expires", "Name"] {
            assert!(all.contains(tag), "{kind}: {all:?}");
        }
    }
    for (key, value) in [
        ("MetadataOptions.HttpTokens", "required"),
        ("InstanceInitiatedShutdownBehavior", "terminate"),
        ("BlockDeviceMapping.1.Ebs.Encrypted", "true"),
        ("BlockDeviceMapping.1.Ebs.VolumeType", "gp3"),
    ] {
        assert_eq!(request[key], value, "{key}: {request}");
    }
    assert!(request["ClientToken"].as_str().is_some_and(|token| token.starts_with("rfm-") && token.ends_with("-0")));
    // Statement 20: of all that was written here, and of what EC2 was told but for the user data.
    let found = Command::new("grep").args(["-rlE", "X-Amz-Signature|X-Amz-Credential"]).arg(place.file(".")).output();
    assert_eq!(String::from_utf8_lossy(&found.expect("grep").stdout), "", "files with addresses");
    assert!(!request.to_string().contains("X-Amz-"), "{request}");
    let stdout = String::from_utf8_lossy(&ended.kept("rfm_job.out")).into_owned();
    let tag = |name: &str| instances[0]["tags"][name].as_str().unwrap_or_default().to_owned();
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[..2], [tag("rfm").as_str(), ""]);
    assert_eq!(lines[2], format!("-------{}-0-------", tag("Name")));
    assert_eq!(lines[3..], ["out", "err", "Linux"]);
}

/// Statement 2.
pub(crate) fn three_instances_have_three_sections_and_the_first_begins_when_all_are_ready() {
    let cloud = Cloud::start();
    let check = "time_limit: 2m\nnum_tasks: 3\nexecutable: 'wc -l <$RFM_HOSTFILE'\nsanity: [{ found: '^ *3$' }]";
    Place::new(&cloud, OFTEN, check, "").run(&[]).expect_case(0, "pass", &[]);
    nothing_is_left(&cloud);
    assert_eq!(cloud.instances().len(), 3);
}

/// Statement 5.
pub(crate) fn a_connection_that_breaks_after_the_launch_leads_to_one_set_of_instances() {
    let cloud = Cloud::start();
    // The first is the question of the preflight.
    cloud.fault(json!({ "action": "RunInstances", "reset": "after", "n": 2 }));
    Place::new(&cloud, OFTEN, "time_limit: 2m\nexecutable: 'true'\nsanity: []", "").run(&[]).expect_case(0, "pass", &[]);
    assert_eq!(cloud.instances().len(), 1);
    nothing_is_left(&cloud);
}

/// Statement 6.
pub(crate) fn a_zone_without_capacity_is_asked_once_and_the_next_one_at_once() {
    let cloud = Cloud::start();
    let first = cloud.subnets[0].clone();
    cloud.ask("capacity", json!({ "n": 0, "subnet": first }));
    Place::new(&cloud, OFTEN, "time_limit: 2m\nexecutable: 'true'\nsanity: []", "").run(&[]).expect_case(0, "pass", &[]);
    let requests = cloud.requests("RunInstances");
    let subnets: Vec<&Value> =
        requests.iter().filter(|request| request["DryRun"].is_null()).map(|request| &request["SubnetId"]).collect();
    assert_eq!(subnets, [&json!(cloud.subnets[0]), &json!(cloud.subnets[1])]);
}

/// Statement 8.
pub(crate) fn a_request_that_ec2_is_too_busy_for_is_sent_again() {
    let cloud = Cloud::start();
    let check = "time_limit: 2m\nexecutable: 'true'\nsanity: []";
    let place = Place::new(&cloud, OFTEN, check, "");
    place.run(&[]).expect_case(0, "pass", &[]);
    let before = cloud.calls("RunInstances");
    cloud.fault(json!({ "action": "DescribeInstances", "code": "RequestLimitExceeded", "status": 503, "n": 2 }));
    place.run(&[]).expect_case(0, "pass", &[]);
    assert!(cloud.calls("RunInstances") > before);
    assert_eq!(cloud.instances().len(), 2);
    nothing_is_left(&cloud);
}

/// Statement 22.
pub(crate) fn a_log_of_forty_mebibytes_is_whole() {
    let cloud = Cloud::start();
    let check = "time_limit: 2m\nexecutable: 'seq 1 5400000 | head -c 41943040; printf end'\nsanity: [{ found: 'end$' }]";
    Place::new(&cloud, OFTEN, check, "").run(&[]).expect_case(0, "pass", &[]);
    nothing_is_left(&cloud);
}

/// Statement 26.
pub(crate) fn instances_that_are_listed_late_are_waited_for() {
    let cloud = Cloud::start();
    cloud.set(json!({ "visible": 5 }));
    Place::new(&cloud, OFTEN, "time_limit: 2m\nexecutable: 'true'\nsanity: []", "").run(&[]).expect_case(0, "pass", &[]);
    assert_eq!(cloud.instances().len(), 1);
}

/// Statement 23.
pub(crate) fn a_group_that_is_still_in_use_is_deleted_when_it_is_not() {
    let cloud = Cloud::start();
    cloud.fault(json!({ "action": "DeleteSecurityGroup", "code": "DependencyViolation", "status": 400, "n": 2 }));
    let check = "time_limit: 2m\nnum_tasks: 2\nexecutable: 'true'\nsanity: []";
    Place::new(&cloud, OFTEN, check, "").run(&[]).expect_case(0, "pass", &[]);
    assert!(cloud.calls("DeleteSecurityGroup") >= 3);
    nothing_is_left(&cloud);
}

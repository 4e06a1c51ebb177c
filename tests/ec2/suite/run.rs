//! Cases that end by themselves, and what is left of them.

use super::{cloud::Cloud, place::Place};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, process::Command};

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
    let check = "time_limit: 2m\nnum_tasks: 3\nexecutable: 'cut -d\" \" -f1 $RFM_HOSTFILE'\nsanity: []";
    let place = Place::new(&cloud, OFTEN, check, "");
    let ended = place.run(&[]).expect_case(0, "pass", &[]);
    nothing_is_left(&cloud);
    let mut instances = cloud.instances();
    instances.sort_by_key(|one| one["rank"].as_u64());
    assert_eq!(instances.len(), 3);
    let stdout = String::from_utf8_lossy(&ended.kept("rfm_job.out")).into_owned();
    let name = instances[0]["tags"]["Name"].as_str().unwrap_or_default();
    let heads: Vec<&str> = stdout.lines().filter(|line| line.starts_with("-------")).collect();
    assert_eq!(heads, [0, 1, 2].map(|rank| format!("-------{name}-{rank}-------")));
    let section = stdout.split("-------\n").nth(1).unwrap_or_default();
    let hosts: Vec<&str> = section.lines().take(3).collect();
    assert_eq!(hosts, instances.iter().map(|one| one["ip"].as_str().unwrap_or_default()).collect::<Vec<_>>(), "{stdout}");
    // An agent says `booted`, then `ready`: so often before `go`, which the first waits for.
    let puts = cloud.requests("PutObject");
    let path = |put: &Value| put["path"].as_str().unwrap_or_default().to_owned();
    let go = puts.iter().position(|put| path(put).ends_with("/go")).expect("an object `go`");
    for rank in 0..3 {
        let said = puts[..go].iter().filter(|put| path(put).ends_with(&format!("/{rank}/status"))).count();
        assert!(said >= 2, "rank {rank} was not ready: {:?}", puts.iter().map(path).collect::<Vec<_>>());
    }
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

/// Statement 8, of the launch itself.
pub(crate) fn a_launch_that_ec2_is_too_busy_for_is_sent_again_with_its_token() {
    let cloud = Cloud::start();
    cloud.fault(json!({ "action": "RunInstances", "code": "RequestLimitExceeded", "status": 503, "n": 2, "dry": false }));
    Place::new(&cloud, OFTEN, "time_limit: 2m\nexecutable: 'true'\nsanity: []", "").run(&[]).expect_case(0, "pass", &[]);
    let requests = cloud.requests("RunInstances");
    let tokens: Vec<&Value> = requests.iter().map(|request| &request["ClientToken"]).filter(|token| !token.is_null()).collect();
    assert!(tokens.len() == 3 && tokens.iter().all(|token| *token == tokens[0]), "{tokens:?}");
    assert_eq!(cloud.instances().len(), 1);
    nothing_is_left(&cloud);
}

/// Statement 22.
pub(crate) fn a_log_of_forty_mebibytes_is_whole() {
    let cloud = Cloud::start();
    let script = r"seq 1 5400000 | head -c 41943040; printf '\377\376\000\nend'";
    let executable = script.replace('\'', "''");
    let check = format!("time_limit: 2m\nnum_tasks: 2\nexecutable: '{executable}'\nsanity: [{{ found: 'end$' }}]");
    let place = Place::new(&cloud, OFTEN, &check, "");
    let ended = place.run(&[]).expect_case(0, "pass", &[]);
    nothing_is_left(&cloud);
    let made = Command::new("sh").args(["-c", script]).output().expect("sh").stdout;
    let stdout = ended.kept("rfm_job.out");
    let name = cloud.instances()[0]["tags"]["Name"].as_str().unwrap_or_default().to_owned();
    let first = format!("-------{name}-0-------\n");
    let found = stdout.windows(first.len()).position(|window| window == first.as_bytes());
    let log = &stdout[found.expect("the first section") + first.len()..];
    assert!(log.starts_with(&made), "the log is not as it was written");
    let rest = String::from_utf8_lossy(&log[made.len()..]).into_owned();
    let begins_a_line = rest.starts_with('\n') && rest.trim_start().starts_with(&format!("-------{name}-1-------\n"));
    assert!(begins_a_line, "the next section: {rest}");
    let segments: BTreeSet<String> = cloud
        .requests("PutObject")
        .iter()
        .filter_map(|put| Some(put["path"].as_str()?.split_once("/0/log.")?.1.to_owned()))
        .collect();
    assert_eq!(segments, ["000", "001", "002"].map(str::to_owned).into());
}

/// What the tests of EC2 cannot do, as it is asked for.
pub(crate) fn fabric_groups_and_capacity_blocks_are_asked_for_as_documented() {
    let cloud = Cloud::start();
    let check = |config: &str| {
        format!("name: c\nvalid_systems: ['*']\ntime_limit: 2m\nexecutable: 'true'\nsanity: []\nec2_config: {{ {config} }}\n")
    };
    let place = Place::new(&cloud, OFTEN, "executable: true\ntime_limit: 1m", "");
    let image = &cloud.image;
    place.write("c.check.yaml", &check(&format!("ami: {image}, instance_type: p4d.24xlarge, network: efa, placement: cluster")));
    place.run(&[]).expect_case(0, "pass", &[]);
    let launch = |number: usize| {
        let launches = cloud.requests("RunInstances").into_iter().filter(|request| request["DryRun"].is_null());
        launches.collect::<Vec<_>>().remove(number)
    };
    let asked = launch(0);
    assert_eq!(asked["NetworkInterface.1.InterfaceType"], "efa", "{asked}");
    assert_eq!(asked["NetworkInterface.1.DeviceIndex"], "0");
    assert_eq!(asked["NetworkInterface.4.InterfaceType"], "efa-only", "a p4d has four network cards");
    assert_eq!(asked["NetworkInterface.4.NetworkCardIndex"], "3");
    let group = cloud.requests("CreatePlacementGroup").into_iter().find(|request| request["DryRun"].is_null()).expect("a group");
    assert_eq!((&group["Strategy"], &group["GroupName"]), (&json!("cluster"), &asked["Placement.GroupName"]));
    nothing_is_left(&cloud);

    let block = "cr-0123456789abcdef0";
    let zone = "eu-west-1a";
    let of_block = |ends: &str| {
        cloud.set(json!({ "reservations": [{
            "capacityReservationId": block, "state": "active", "availabilityZone": zone,
            "startDate": "2026-01-01T00:00:00.000Z", "endDate": ends,
        }] }));
    };
    of_block("2099-01-01T00:00:00.000Z");
    let parameter = &cloud.parameter;
    let config = format!(
        "ami: 'resolve:ssm:{parameter}', instance_type: c7i.large, market: capacity-block, capacity_reservation: {block}"
    );
    place.write("c.check.yaml", &check(&config));
    place.run(&[]).expect_case(0, "pass", &[]);
    let asked = launch(1);
    assert_eq!(asked["ImageId"], json!(image), "the value of the parameter");
    assert_eq!(asked["InstanceMarketOptions.MarketType"], "capacity-block");
    let target = "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId";
    assert_eq!(asked[target], block);
    assert_eq!(cloud.calls("GetParameter"), 1);

    of_block("2026-01-02T00:00:00.000Z");
    place.run(&[]).expect_case(3, "error{config}", &["is reclaimed (2026-01-01 23:30 UTC, 30m before its end)"]);
}

/// Statement 27.
pub(crate) fn the_printed_policy_allows_every_call_of_a_run_and_no_other() {
    let cloud = Cloud::start();
    let check = "time_limit: 2m\nnum_tasks: 2\nexecutable: 'true'\nsanity: []";
    let place = Place::new(&cloud, OFTEN, check, "placement: cluster");
    let printed = place.command(&["-c", "c.check.yaml", "ec2", "policy"]).output().expect("muster");
    let policy: Value = serde_json::from_slice(&printed.stdout).expect("a policy");
    cloud.set(json!({ "policy": policy }));
    place.run(&[]).expect_case(0, "pass", &[]);
    nothing_is_left(&cloud);
    let answers = cloud.ask("requests", json!({}));
    let refused = answers["requests"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|each| each["status"] == 403 && each["parameters"]["guest"] != true);
    assert_eq!(refused.collect::<Vec<_>>(), Vec::<&Value>::new());
    assert!(!policy.to_string().contains("CreateVpc") && !policy.to_string().contains("ec2:*"), "{policy}");

    // Without one of them, all that are missing are said at once, and nothing is launched.
    let before = cloud.instances().len();
    let allowed = policy["Statement"].as_array().into_iter().flatten();
    let fewer: Vec<Value> = allowed
        .filter(|one| !["MakeGroups", "MakeGroupsIn", "List"].contains(&one["Sid"].as_str().unwrap_or("")))
        .cloned()
        .collect();
    cloud.set(json!({ "policy": { "Version": "2012-10-17", "Statement": fewer } }));
    let parts = ["ec2:CreatePlacementGroup", "ec2:CreateSecurityGroup", "s3:ListBucket"];
    place.run(&[]).expect_case(3, "error{config}", &parts);
    assert_eq!(cloud.instances().len(), before);
}

/// Usage and cost, as the report has them.
pub(crate) fn a_run_says_what_it_has_used_and_what_that_cost() {
    let cloud = Cloud::start();
    let check = "time_limit: 2m\nexecutable: 'sleep 2'\nsanity: []";
    let place = Place::new(&cloud, "poll_interval: 1s, price_per_hour: { c7i.large: 3600 }, currency: EUR", check, "");
    let ended = place.run(&["--max-cost", "3500"]).expect_case(0, "pass", &[]);
    let usage = &ended.case()["usage"];
    let seconds = usage["instance_seconds"].as_u64().unwrap_or_default();
    assert!((2..60).contains(&seconds), "{usage}");
    let cost = usage["cost"].as_f64().unwrap_or_default();
    let expected = f64::from(u32::try_from(seconds).unwrap_or(0));
    assert!((cost - expected).abs() < 1e-6 && usage["currency"] == "EUR", "an hour costs 3600: {usage}");
    assert!(ended.text.contains("instance-hours"), "{}", ended.text);
    let node = &ended.case()["described_nodes"][0];
    assert_eq!((&node["class"], &node["facts"]["image"]), (&json!("c7i.large"), &json!(cloud.image)), "{node}");
    assert!(node["facts"]["kernel"].is_string() && node["facts"]["zone"].is_string(), "{node}");
    let refused = place.run(&["--max-cost", "100"]);
    assert_eq!(refused.code, Some(2), "{}", refused.text);
    assert_eq!(cloud.instances().len(), 1);
}

/// A descriptor of Anubis becomes a check that runs.
pub(crate) fn a_converted_descriptor_runs() {
    let cloud = Cloud::start();
    let place = Place::new(&cloud, OFTEN, "executable: true\ntime_limit: 1m", "");
    let descriptor = format!(
        "spec_version = \"0.1.0\"\n[info]\ndescription = \"d\"\nexecution_engine = \"aws.ec2\"\n[info.labels]\ntask_name = \"triad\"\n\
         [aws.ec2]\nimage = \"{}\"\n[hardware]\ninstance_type = \"c7i.large\"\n[env.vars]\nRATE = \"1.5\"\n\
         [ml]\nbenchmark_code = \"$(BAI_SCRIPTS_PATH)/run.sh\"\n\
         [[output.metrics]]\nname = \"rate\"\nunits = \"GB/s\"\npattern = 'rate=([-+]?\\d*\\.\\d+|\\d+)'\n",
        cloud.image
    );
    place.write("benchmark.toml", &descriptor);
    let converted = place.command(&["convert", "benchmark.toml", "-o", "converted"]).output().expect("muster");
    let said = String::from_utf8_lossy(&converted.stdout).into_owned() + &String::from_utf8_lossy(&converted.stderr);
    let check = place.file("converted/benchmark.check.yaml");
    let yaml = fs::read_to_string(&check).unwrap_or_else(|error| panic!("{error}: {said}"));
    // What it says is missing.
    assert!(said.contains("write `time_limit`"), "{said}");
    fs::write(&check, format!("{yaml}\ntime_limit: 2m\n")).expect("a limit");
    fs::create_dir_all(place.file("converted/src")).expect("a folder");
    let script = place.write("converted/src/run.sh", "#!/bin/sh\necho rate=$RATE\n");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).expect("permissions");
    let running = place.start(&mut place.command(&["-c", "converted/benchmark.check.yaml", "-r"]));
    let ended = running.ended().expect_case(0, "pass", &[]);
    assert_eq!(ended.case()["measurements"][0]["value"], 1.5, "{yaml}");
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

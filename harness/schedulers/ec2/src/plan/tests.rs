//! Workloads as requests: what is sent, in which order, and what is refused.

use super::*;
use crate::plan::request::{Found, run_instances};
use crate::plan::testing::{plain, site, workload};
use muster_core::job::workload::Limits;
use serde_json::json;

fn with(options: &[(&str, Value)]) -> Value {
    let mut site = site();
    for (key, value) in options {
        site[*key] = value.clone();
    }
    site
}

fn found(handle: &Handle) -> Found {
    Found {
        image_id: "ami-0abc1234def567890".into(),
        root_device: "/dev/xvda".into(),
        root_gib: 30,
        data_gib: 0,
        network_cards: 4,
        own_group: handle.needs_group().then(|| "sg-00000001".into()),
        expires: "1795600000".into(),
        user_data: "H4sI".into(),
    }
}

/// The first request of a workload.
fn request(workload: &Workload) -> Value {
    let handle = handle(workload).unwrap();
    run_instances(&handle, &handle.offers[0], &found(&handle), 0)
}

fn mistakes(workload: &Workload) -> Vec<String> {
    let shown = |mistake: Diagnostic| format!("{} ({})", mistake.message, mistake.hint.unwrap_or_default());
    handle(workload).unwrap_err().into_iter().map(shown).collect()
}

#[test]
fn a_request_ends_on_shutdown_and_carries_all_tags_from_the_first_moment() {
    let request = request(&workload(plain(), with(&[("tags", json!({ "team": "hpc" }))])));
    insta::assert_snapshot!(format!("{request:#}"));
}

#[test]
fn what_a_check_chooses_is_in_the_request() {
    let config = json!({
        "ami": "ami-0abc1234def567890", "instance_type": "p5.48xlarge", "network": "efa", "market": "capacity-block",
        "capacity_reservation": "cr-0abc1234", "cpu_options": { "threads_per_core": 1 },
        "volume": { "size": 200, "type": "io2", "iops": 5000 },
    });
    let options = with(&[("security_groups", json!(["sg-0a1b2c3d"])), ("instance_profile", "host".into())]);
    let request = request(&Workload { num_tasks: 2, ..workload(config, options) });
    let common = ["Monitoring", "MetadataOptions", "TagSpecifications", "UserData", "ClientToken"];
    let special: serde_json::Map<String, Value> =
        request.as_object().unwrap().clone().into_iter().filter(|(key, _)| !common.contains(&key.as_str())).collect();
    insta::assert_snapshot!(format!("{:#}", Value::Object(special)));
}

#[test]
fn subnets_are_tried_first_then_types_then_on_demand() {
    let config = json!({ "ami": "ami-0abc1234", "instance_type": ["c7i.large", "c7a.large"], "market": "spot-or-on-demand" });
    let handle = handle(&workload(config, site())).unwrap();
    let offers: Vec<String> = handle
        .offers
        .iter()
        .map(|offer| format!("{} {} {}", offer.bought.word(), offer.instance_type, &offer.subnet[7..9]))
        .collect();
    assert_eq!(
        offers,
        [
            "spot c7i.large 0a",
            "spot c7i.large 1b",
            "spot c7a.large 0a",
            "spot c7a.large 1b",
            "on demand c7i.large 0a",
            "on demand c7i.large 1b",
            "on demand c7a.large 0a",
            "on demand c7a.large 1b",
        ]
    );
    let tokens: Vec<Value> =
        (0..2).map(|n| run_instances(&handle, &handle.offers[n as usize], &found(&handle), n)["ClientToken"].clone()).collect();
    assert_eq!(tokens, ["rfm-20261125-120000-abcdefgh-aotugiob-0", "rfm-20261125-120000-abcdefgh-aotugiob-1"]);
    assert!(tokens.iter().all(|token| token.as_str().unwrap().len() < 60), "EC2 takes 64");
}

#[test]
fn several_instances_without_a_group_get_one_of_their_own() {
    let several = |options| Workload { num_tasks: 3, ..workload(plain(), options) };
    let own = request(&several(site()));
    assert_eq!((&own["MinCount"], &own["MaxCount"], &own["SecurityGroupIds"]), (&json!(3), &json!(3), &json!(["sg-00000001"])));
    let of_site = request(&several(with(&[("security_groups", json!(["sg-0a1b2c3d"]))])));
    assert_eq!(of_site["SecurityGroupIds"], json!(["sg-0a1b2c3d"]));
    assert_eq!(request(&workload(plain(), site())).get("SecurityGroupIds"), None, "one instance talks to nobody");
}

#[test]
fn an_instance_lives_for_its_limit_its_keep_and_a_quarter_of_an_hour() {
    let lifetime = |keep: Option<u64>, options: Value, config: Value| {
        let keep_failed = keep.map(Duration::from_secs);
        handle(&Workload { keep_failed, ..workload(config, options) }).unwrap().lifetime
    };
    let usual = lifetime(None, site(), plain());
    assert_eq!((usual.timer_minutes(), usual.expires_after()), (20 + 30 + 15, (20 + 30 + 15 + 10) * 60));
    assert_eq!(lifetime(Some(0), site(), plain()).timer_minutes(), 35, "nothing is kept");
    assert_eq!(lifetime(Some(7200), with(&[("max_keep", "1h".into())]), plain()).keep, 3600, "the site has a limit");
    let metal = json!({ "ami": "ami-0abc1234", "instance_type": "c7i.metal-24xl" });
    assert_eq!(lifetime(None, site(), metal.clone()).boot, 1500, "bare metal boots for long");
    let mut quick = metal;
    quick["boot_timeout"] = "90s".into();
    assert_eq!(lifetime(None, site(), quick).boot, 90);
}

#[test]
fn no_instance_runs_longer_than_its_addresses_work() {
    let of = |limit: Duration| Workload {
        limits: Limits { pending: None, run: Some(limit), judge: Duration::ZERO },
        ..workload(plain(), site())
    };
    let week = Duration::from_hours(7 * 24);
    assert_eq!(handle(&of(week.saturating_sub(Duration::from_mins(10)))).unwrap().lifetime.limit, 7 * 86_400 - 600);
    insta::assert_snapshot!(mistakes(&of(Duration::from_hours(8 * 24))).join("\n"), @"`stream @aws:c7i+` may run for 8d, and the addresses by which its log is sent work for 7d after the launch (lower `time_limit` to 6d23h50m or less)");
}

#[test]
fn everything_that_keeps_a_case_from_being_planned_is_said_at_once() {
    let nothing =
        Workload { limits: Limits { pending: None, run: None, judge: Duration::ZERO }, ..workload(json!({}), json!({})) };
    insta::assert_snapshot!(mistakes(&nothing).join("\n"));
    let program = Program::Own { env_vars: Vec::new() };
    insta::assert_snapshot!(mistakes(&Workload { program, ..workload(plain(), site()) }).join("\n"), @"`stream @aws:c7i+` has no script for the scheduler `ec2` (set `executable` or `command`)");
}

#[test]
fn a_handle_is_stored_and_read_as_it_was() {
    let job = planned(&workload(plain(), site())).unwrap();
    let stored: JobHandle = serde_json::from_str(&serde_json::to_string(&job.handle).unwrap()).unwrap();
    assert_eq!(*stored.read::<Handle>().unwrap(), handle(&workload(plain(), site())).unwrap());
}

#[test]
fn a_preview_is_the_request_with_what_is_tried_after_it_and_the_script() {
    let config = json!({
        "ami": "resolve:ssm:/aws/image", "instance_type": ["c7i.8xlarge", "c7a.8xlarge"], "network": "efa", "placement": "cluster",
        "instance_store": "/scratch",
    });
    let handle = handle(&Workload { num_tasks: 2, ..workload(config, site()) }).unwrap();
    insta::assert_snapshot!(preview(&handle));
}

//! Cases that do not end well: what is said of them, and what stays.

use super::{cloud::Cloud, place::Place};
use crate::common::eventually;
use serde_json::{Value, json};
use std::{
    thread::sleep,
    time::{Duration, Instant},
};

const OFTEN: &str = "poll_interval: 1s";

/// Waits until S3 has the beginning of the log of the first instance: its agent has said something after that.
fn await_log(cloud: &Cloud) {
    eventually("a part of the log", Duration::from_mins(1), || {
        let puts = cloud.requests("PutObject");
        let paths: Vec<&str> = puts.iter().filter_map(|put| put["path"].as_str()).collect();
        let log = paths.iter().position(|path| path.ends_with("/0/log.000"));
        log.is_some_and(|log| paths[log..].iter().any(|path| path.ends_with("/0/status")))
    });
}

fn live(cloud: &Cloud) -> Vec<Value> {
    cloud.instances().into_iter().filter(|one| one["state"] == "running" || one["state"] == "pending").collect()
}

/// Statement 11.
pub(crate) fn a_script_that_fails_keeps_its_instance_for_a_while() {
    let cloud = Cloud::start();
    let check = "time_limit: 2m\nkeep_failed: 20m\nexecutable: 'echo bad; exit 7'\nsanity: []";
    let place = Place::new(&cloud, OFTEN, check, "");
    let ended = place.run(&[]).expect_case(1, "fail{workload}", &["7"]);
    let kept = live(&cloud);
    assert_eq!(kept.len(), 1, "{}", ended.text);
    let shutdowns = kept[0]["shutdowns"].to_string();
    assert!(shutdowns.contains("-P +20"), "{shutdowns}");
    assert!(!ended.text.contains("start-session"), "its role is none that could answer: {}", ended.text);
    // One command removes the instance and all that it had.
    let identifier = ended.case()["identifier"].as_str().unwrap_or_default();
    let command = format!("--kept --id {identifier}");
    assert!(ended.text.contains(&command) && ended.text.contains("what was kept goes by itself at 2"), "{}", ended.text);
    for (other, code, left) in [("aaaaaaaa", 1, 1), (identifier, 0, 0)] {
        let swept = place.start(&mut place.command(&["sweep", "--kept", "--id", other])).ended();
        assert_eq!((swept.code, live(&cloud).len()), (Some(code), left), "{}", swept.text);
    }
    assert_eq!(cloud.left()["objects"], json!([]));

    let cloud = Cloud::start();
    let check = "time_limit: 2m\nkeep_failed: 0s\nexecutable: 'exit 7'\nsanity: []";
    Place::new(&cloud, OFTEN, check, "").run(&[]).expect_case(1, "fail{workload}", &["7"]);
    assert!(live(&cloud).is_empty());
    assert_eq!(cloud.left()["objects"], json!([]));
}

/// Statement 9.
pub(crate) fn a_host_that_is_lost_ends_its_case_with_the_log_so_far() {
    let cloud = Cloud::start();
    let check = "time_limit: 2m\nexecutable: 'echo first; sleep 100'\nsanity: []";
    let place = Place::new(&cloud, OFTEN, check, "");
    let running = place.started(&[]);
    let id = cloud.await_state("running", 1).remove(0);
    await_log(&cloud);
    cloud.ask("crash", json!({ "id": id }));
    let ended = running.ended().expect_case(3, "disrupted{node}", &[&id, "Server.InternalError"]);
    assert!(live(&cloud).is_empty());
    let stdout = String::from_utf8_lossy(&ended.kept("rfm_job.out")).into_owned();
    assert!(stdout.ends_with("-0-------\nfirst\n"), "{stdout}");
}

/// EC2 takes the request, and has no room when the instance is to start.
pub(crate) fn instances_without_room_at_their_start_are_asked_for_elsewhere() {
    let cloud = Cloud::start();
    cloud.ask("set", json!({ "launch_failure": ["Server.InsufficientInstanceCapacity", "Insufficient capacity", 1] }));
    let place = Place::new(&cloud, OFTEN, "time_limit: 2m\nexecutable: echo began\nsanity: [{ found: began }]", "");
    place.run(&[]).expect_case(0, "pass", &[]);
    let launches = cloud.requests("RunInstances").into_iter().filter(|one| one["DryRun"].is_null());
    let subnets: Vec<Value> = launches.map(|one| one["SubnetId"].clone()).collect();
    let asked: Vec<&str> = subnets.iter().filter_map(Value::as_str).collect();
    assert_eq!(asked, cloud.subnets[..2]);
    assert!(live(&cloud).is_empty());
}

/// Statement 15.
pub(crate) fn a_script_that_ignores_term_is_killed_at_its_limit() {
    let cloud = Cloud::start();
    let check =
        "time_limit: 4s\nkeep_failed: 0s\nexecutable: 'trap \"\" TERM; echo began; while :; do sleep 1; done'\nsanity: []";
    Place::new(&cloud, OFTEN, check, "").run(&[]).expect_case(1, "timeout{run}", &[]);
    assert!(live(&cloud).is_empty());
}

/// Statement 12, with a type that refuses to skip the shutdown of its system.
pub(crate) fn an_interrupt_ends_all_instances() {
    let cloud = Cloud::start();
    let config = "instance_type: [t2.micro]";
    let place = Place::new(&cloud, OFTEN, "time_limit: 2m\nexecutable: 'echo began; sleep 100'\nsanity: []", config);
    let running = place.started(&["-vv"]);
    await_log(&cloud);
    running.signal("INT");
    let ended = running.ended();
    assert_eq!(ended.code, Some(130), "{}", ended.text);
    assert!(live(&cloud).is_empty());
    assert_eq!(cloud.left()["objects"], json!([]), "{}", ended.text);
    let stdout = String::from_utf8_lossy(&ended.kept("rfm_job.out")).into_owned();
    assert!(stdout.ends_with("-0-------\nbegan\n"), "{stdout}");
    let ends = cloud.requests("TerminateInstances");
    let skips = ends.iter().map(|end| end["SkipOsShutdown"] == "true").collect::<Vec<_>>();
    assert_eq!(skips, [true, false], "{}", ended.text);
    assert!(ended.text.contains("SkipOsShutdown is not supported on Xen instance types"), "{}", ended.text);
}

/// Statement 12, with a second signal.
pub(crate) fn a_second_interrupt_says_what_may_be_left() {
    let cloud = Cloud::start();
    let place = Place::new(&cloud, OFTEN, "time_limit: 2m\nexecutable: 'echo began; sleep 100'\nsanity: []", "");
    let running = place.started(&[]);
    cloud.await_state("running", 1);
    sleep(Duration::from_secs(3));
    cloud.fault(json!({ "action": "TerminateInstances", "code": "InternalError", "status": 500, "n": 1000 }));
    running.signal("INT");
    sleep(Duration::from_secs(2));
    running.signal("INT");
    let ended = running.ended();
    assert_eq!(ended.code, Some(130), "{}", ended.text);
    let identifier = cloud.instances()[0]["tags"]["rfm"].as_str().unwrap_or_default().to_owned();
    for part in ["may be left: c", &format!("({identifier})"), "end what is left with: muster sweep"] {
        assert!(ended.text.contains(part), "{part}: {}", ended.text);
    }
}

/// Statement 10: the log is that of S3 and, after it, of the console.
pub(crate) fn an_outage_of_s3_at_the_end_loses_nothing_that_the_console_has() {
    let cloud = Cloud::start();
    // It tries thirty times.
    cloud.set(json!({ "pause": 0.3 }));
    let script = "for n in 1 2 3 4 5 6; do echo line $n; sleep 1; done; sleep 6; echo last; exit 7";
    let check = format!("time_limit: 2m\nkeep_failed: 0s\nexecutable: '{script}'\nsanity: []");
    let place = Place::new(&cloud, OFTEN, &check, "");
    let running = place.started(&[]);
    // Some of the log has come, then nothing more does.
    await_log(&cloud);
    cloud.ask("outage", json!({ "mode": "503", "who": "guests" }));
    let ended = running.ended().expect_case(1, "fail{workload}", &["7"]);
    let stdout = String::from_utf8_lossy(&ended.kept("rfm_job.out")).into_owned();
    let lines: Vec<&str> = stdout.lines().skip(3).collect();
    assert_eq!(lines, ["line 1", "line 2", "line 3", "line 4", "line 5", "line 6", "last"], "{stdout}");
}

/// Statement 10, from the start.
pub(crate) fn an_instance_that_never_reaches_s3_is_given_up_with_its_console() {
    let cloud = Cloud::start();
    let check = "time_limit: 2m\nexecutable: 'true'\nsanity: []";
    let place = Place::new(&cloud, OFTEN, check, "boot_timeout: 5s");
    cloud.ask("outage", json!({ "mode": "refuse", "who": "guests" }));
    place.run(&[]).expect_case(3, "error{infra}", &["gave no sign of life within 5.0s", "Its console"]);
    assert!(live(&cloud).is_empty());
}

/// Statement 17.
pub(crate) fn a_rank_that_is_lost_ends_its_case_at_once_and_is_named() {
    let cloud = Cloud::start();
    let check = "time_limit: 2m\nnum_tasks: 3\nexecutable: 'echo began; sleep 100'\nsanity: []";
    let place = Place::new(&cloud, OFTEN, check, "");
    let running = place.started(&[]);
    await_log(&cloud);
    let lost = cloud.instances().into_iter().find(|one| one["rank"] == 2).expect("a third instance");
    let id = lost["id"].as_str().unwrap_or_default().to_owned();
    let began = Instant::now();
    cloud.ask("crash", json!({ "id": id }));
    let ended = running.ended().expect_case(3, "disrupted{node}", &[&format!("rank 2 ({id}) was lost")]);
    assert!(began.elapsed() < Duration::from_secs(45), "{:?}", began.elapsed());
    assert!(cloud.requests("PutObject").iter().any(|put| put["path"].as_str().unwrap_or_default().ends_with("/stop")));
    assert!(live(&cloud).is_empty(), "{}", ended.text);
}

/// Statement 16, with what follows.
pub(crate) fn a_case_whose_capacity_was_taken_away_is_launched_again() {
    let cloud = Cloud::start();
    let check = "time_limit: 2m\non_disruption: retry\nexecutable: 'echo began; sleep 8; echo over'\nsanity: [{ found: ^over$ }]";
    let place = Place::new(&cloud, OFTEN, check, "market: spot");
    let running = place.started(&[]);
    let id = cloud.await_state("running", 1).remove(0);
    await_log(&cloud);
    cloud.ask("spot", json!({ "id": id, "after": 2 }));
    let ended = running.ended();
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    let cases = ended.report["cases"].as_array().cloned().unwrap_or_default();
    let said = |case: &Value| (case["attempt"].as_u64(), case["outcome"]["word"].as_str().map(str::to_owned));
    assert_eq!(cases.iter().map(said).collect::<Vec<_>>(), [(Some(1), Some("disrupted".into())), (Some(2), Some("pass".into()))]);
    assert_ne!(cases[0]["identifier"], cases[1]["identifier"]);
    assert_eq!(cloud.instances().len(), 2);
}

pub(crate) fn a_sweep_says_what_is_left_and_what_it_costs_and_removes_it() {
    let cloud = Cloud::start();
    let options = "poll_interval: 1s, price_per_hour: { c7i.large: 3600 }";
    let check = "time_limit: 2m\nnum_tasks: 2\nexecutable: 'echo began; sleep 100'\nsanity: []";
    let place = Place::new(&cloud, options, check, "");
    let running = place.started(&[]);
    let ids = cloud.await_state("running", 2);
    sleep(Duration::from_secs(3));
    running.signal("KILL");
    running.ended();
    let looked = place.start(&mut place.command(&["sweep", "--dry-run"])).ended();
    for part in [
        &*ids[0],
        &*ids[1],
        "c7i.large, running for ",
        "security group sg-",
        "so far 0.",
        " instance-hours of c7i.large, ",
        " USD",
    ] {
        assert!(looked.text.contains(part), "{part}: {}", looked.text);
    }
    assert_eq!(live(&cloud).len(), 2, "nothing was removed");
    let swept = place.start(&mut place.command(&["sweep"])).ended();
    assert_eq!(swept.code, Some(0), "{}", swept.text);
    let left = cloud.left();
    for what in ["instances", "volumes", "groups", "objects"] {
        assert_eq!(left[what], json!([]), "{what}: {}", swept.text);
    }
}

/// Statement 16.
pub(crate) fn spot_capacity_that_is_taken_away_is_said_to_be() {
    let cloud = Cloud::start();
    let place = Place::new(&cloud, OFTEN, "time_limit: 2m\nexecutable: 'echo began; sleep 100'\nsanity: []", "market: spot");
    let running = place.started(&[]);
    let id = cloud.await_state("running", 1).remove(0);
    await_log(&cloud);
    cloud.ask("spot", json!({ "id": id, "after": 3 }));
    running.ended().expect_case(3, "disrupted{preempted}", &[&id]);
    assert!(live(&cloud).is_empty());
}

/// Statement 13.
pub(crate) fn a_session_that_was_killed_is_finished_by_the_next_one_and_nothing_is_launched_twice() {
    let cloud = Cloud::start();
    let check = "time_limit: 2m\nexecutable: 'echo began; sleep 8; echo over'\nsanity: [{ found: ^began$ }, { found: ^over$ }]";
    let place = Place::new(&cloud, OFTEN, check, "");
    let running = place.started(&[]);
    cloud.await_state("running", 1);
    sleep(Duration::from_secs(3));
    running.signal("KILL");
    running.ended();
    place.run(&["--resume"]).expect_case(0, "pass", &[]);
    assert_eq!(cloud.instances().len(), 1);
    assert_eq!(cloud.left()["instances"], json!([]));
    assert_eq!(cloud.left()["objects"], json!([]));
}

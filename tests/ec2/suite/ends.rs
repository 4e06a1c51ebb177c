//! Cases that do not end well: what is said of them, and what stays.

use super::{cloud::Cloud, place::Place};
use serde_json::{Value, json};

const OFTEN: &str = "poll_interval: 1s";

fn live(cloud: &Cloud) -> Vec<Value> {
    cloud.instances().into_iter().filter(|one| one["state"] == "running" || one["state"] == "pending").collect()
}

/// Statement 11.
pub(crate) fn a_script_that_fails_keeps_its_instance_for_a_while() {
    let cloud = Cloud::start();
    let check = "time_limit: 2m\nkeep_failed: 20m\nexecutable: 'echo bad; exit 7'\nsanity: []";
    let ended = Place::new(&cloud, OFTEN, check, "").run(&[]).expect_case(1, "fail{workload}", &["7"]);
    let kept = live(&cloud);
    assert_eq!(kept.len(), 1, "{}", ended.text);
    let shutdowns = kept[0]["shutdowns"].to_string();
    assert!(shutdowns.contains("-P +20"), "{shutdowns}");
    let id = kept[0]["id"].as_str().unwrap_or_default();
    assert!(ended.text.contains(&format!("aws ssm start-session --region eu-west-1 --target {id}")), "{}", ended.text);

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
    std::thread::sleep(std::time::Duration::from_secs(8));
    cloud.ask("crash", json!({ "id": id }));
    running.ended().expect_case(3, "disrupted{node}", &[&id, "Server.InternalError"]);
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

/// Statement 12.
pub(crate) fn an_interrupt_ends_all_instances() {
    let cloud = Cloud::start();
    let place = Place::new(&cloud, OFTEN, "time_limit: 2m\nexecutable: 'echo began; sleep 100'\nsanity: []", "");
    let running = place.started(&[]);
    cloud.await_state("running", 1);
    std::thread::sleep(std::time::Duration::from_secs(5));
    running.signal("INT");
    let ended = running.ended();
    assert_eq!(ended.code, Some(130), "{}", ended.text);
    assert!(live(&cloud).is_empty());
    assert_eq!(cloud.left()["objects"], json!([]), "{}", ended.text);
}

/// Statement 16.
pub(crate) fn spot_capacity_that_is_taken_away_is_said_to_be() {
    let cloud = Cloud::start();
    let place = Place::new(&cloud, OFTEN, "time_limit: 2m\nexecutable: 'echo began; sleep 100'\nsanity: []", "market: spot");
    let running = place.started(&[]);
    let id = cloud.await_state("running", 1).remove(0);
    std::thread::sleep(std::time::Duration::from_secs(6));
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
    std::thread::sleep(std::time::Duration::from_secs(3));
    running.signal("KILL");
    running.ended();
    place.run(&["--resume"]).expect_case(0, "pass", &[]);
    assert_eq!(cloud.instances().len(), 1);
    assert_eq!(cloud.left()["instances"], json!([]));
    assert_eq!(cloud.left()["objects"], json!([]));
}

//! The minimal Role: enough, and each verb of it necessary.

use super::{
    manifest::{check, pod},
    place::{Place, kubectl},
};
use serde_json::Value;

/// A kubeconfig that speaks as the ServiceAccount `muster` of the namespace.
fn as_service_account(place: &Place) -> String {
    place.kubectl(&["create", "serviceaccount", "muster"]);
    let token = place.kubectl(&["create", "token", "muster"]);
    let config: Value = serde_json::from_str(&kubectl(&["config", "view", "--raw", "-o", "json"])).expect("a kubeconfig");
    let mut config = config;
    config["users"] = serde_json::json!([{ "name": "sa", "user": { "token": token.trim() } }]);
    config["contexts"] =
        serde_json::json!([{ "name": "sa", "context": { "cluster": config["clusters"][0]["name"], "user": "sa" } }]);
    config["current-context"] = "sa".into();
    place.write("sa.json", &config.to_string());
    place.path("sa.json").to_string_lossy().into_owned()
}

/// One case that passes and one that is stopped.
fn checks() -> String {
    let stopped = check(&pod("echo hello; sleep 60"), "time_limit: 1s").replacen("name: case", "name: stopped", 1);
    format!("{}---\n{stopped}", check(&pod("echo hello"), "max_pending_time: 15s"))
}

fn run(place: &Place, kubeconfig: &str) -> super::place::Ended {
    let output = place.command(&["-c", "check.yaml", "-r"]).env("KUBECONFIG", kubeconfig).output().expect("muster");
    place.kubectl(&["delete", "pods,leases", "--all", "--wait=false", "--now"]);
    place.ended(&output)
}

/// Verbs that an undisturbed run of a few seconds does not need: an answer to a creation that was lost, a deletion that the
/// watch does not show. Without a lease a session runs, too; it is for `muster sweep`, which then cannot tell who lives.
const RARE: [(&str, &str); 6] =
    [("get", "pods"), ("create", "leases"), ("get", "leases"), ("list", "leases"), ("update", "leases"), ("delete", "leases")];

pub(crate) fn the_printed_role_is_enough_and_each_verb_is_needed() {
    let place = Place::new();
    place.write("check.yaml", &checks());
    let role = place.muster(&["k8s", "role", "--required-only", "-c", "check.yaml", "--service-account", "muster"]);
    let kubeconfig = as_service_account(&place);
    place.create(&role.expect(0).stdout);
    let ended = run(&place, &kubeconfig).expect(1);
    let outcomes = |ended: &super::place::Ended| -> Vec<String> {
        let cases = ended.report["cases"].as_array().cloned().unwrap_or_default();
        let mut words: Vec<_> = cases.iter().map(|case| format!("{} {}", case["name"], case["outcome"]["word"])).collect();
        words.sort();
        words
    };
    let undisturbed = outcomes(&ended);
    assert_eq!(undisturbed, ["\"case\" \"pass\"", "\"stopped\" \"timeout\""], "{}", ended.stdout);
    assert!(!ended.stderr.contains("forbidden") && !ended.stdout.contains("forbidden"), "{}{}", ended.stdout, ended.stderr);

    let roles: Value = serde_json::from_str(&place.kubectl(&["get", "roles", "-o", "json"])).expect("JSON");
    let role = &roles["items"][0];
    let name = role["metadata"]["name"].as_str().expect("a name");
    for (at, rule) in role["rules"].as_array().expect("rules").iter().enumerate() {
        let resource = rule["resources"][0].as_str().expect("a resource");
        for (number, verb) in rule["verbs"].as_array().expect("verbs").iter().enumerate() {
            if RARE.contains(&(verb.as_str().unwrap_or_default(), resource)) {
                continue;
            }
            let pointer = format!("/rules/{at}/verbs/{number}");
            // A rule must have a verb: another takes its place.
            let with = |verb: &str| format!("[{{\"op\":\"replace\",\"path\":\"{pointer}\",\"value\":\"{verb}\"}}]");
            place.kubectl(&["patch", "role", name, "--type=json", "-p", &with("deletecollection")]);
            let ended = run(&place, &kubeconfig);
            let said = format!("{}{}", ended.stdout, ended.stderr);
            let noticed = outcomes(&ended) != undisturbed || said.contains("forbidden") || said.contains("may not");
            assert!(noticed, "{verb} {resource} is not needed: {said}");
            place.kubectl(&["patch", "role", name, "--type=json", "-p", &with(verb.as_str().unwrap_or_default())]);
        }
    }
}

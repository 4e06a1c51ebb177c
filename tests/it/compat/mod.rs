//! What Muster 0.1.0 at commit 7e861fd has written and accepted: a database, reports, stage folders, files, flags.
//!
//! `record` made `recorded/` with that program. It is never made again with a later one; a format that changes gets a migration or an
//! alias, not a new recording.

use crate::sandbox::{Ended, Sandbox};
use muster_fake_api::FakeApi;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The session that has ended, and the one whose harness was killed. The latter had run one of three cases and started the second.
fn sessions() -> (String, String) {
    let text = read("recorded/sessions.sql");
    let mut ids = text.lines().filter_map(|line| line.strip_prefix("INSERT INTO session VALUES(")?.split('\'').nth(1));
    let mut next = || ids.next().expect("two sessions").to_owned();
    (next(), next())
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/compat").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).expect(name)
}

/// A folder as that version left it, with a database of these statements.
fn old(database: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    for file in ["site", "figures.check", "long.check", "keys.check", "pod.check"] {
        sandbox.write(&format!("{file}.yaml"), &read(&format!("{file}.yaml")));
    }
    let stage = "stage/old/here/default/long_e2a9c5c852b75954";
    for file in ["rfm_job.out", "rfm_job.sh", "rfm_job.exit"] {
        sandbox.write(&format!("{stage}/{file}"), &here(&sandbox, &read(&format!("recorded/{stage}/{file}"))));
    }
    sandbox.write("report.json", &here(&sandbox, &read("recorded/report.json")));
    let file = sandbox.path("state/muster/results.db");
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    muster_test_database::create(&file, &here(&sandbox, database)).expect("the statements of the recording");
    sandbox
}

/// Puts this folder and this machine in the place of those of the recording: a session can only be taken over where it ran.
fn here(sandbox: &Sandbox, text: &str) -> String {
    let machine = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").map(|link| link.display().to_string()).unwrap_or_default();
    text.replace("@FOLDER@", sandbox.path("").display().to_string().trim_end_matches('/'))
        .replace("@HOST@", &machine("/proc/sys/kernel/hostname"))
        .replace("@BOOT@", &machine("/proc/sys/kernel/random/boot_id"))
        .replace("@PIDNS@", &namespace)
}

fn muster(sandbox: &Sandbox, args: &[&str]) -> Ended {
    sandbox.ended(&sandbox.command(args).env("RFM_LIVENESS_LIMIT", "4").output().expect("the binary runs"))
}

fn on_site(sandbox: &Sandbox, args: &[&str]) -> Ended {
    muster(sandbox, &[&["-C", "site.yaml", "--system", "old"], args].concat())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn report(sandbox: &Sandbox) -> Value {
    json(&sandbox.read("reports/out/latest.json"))
}

/// Name and outcome of every case, sorted.
fn outcomes(report: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_case = |case: &Value| {
        format!("{}: {} {}", word(&case["name"]), word(&case["outcome"]["word"]), word(&case["outcome"]["detail"]))
    };
    let mut all: Vec<String> = report["cases"].as_array().expect("cases").iter().map(of_case).collect();
    all.sort();
    all
}

/// Whatever `old` says, `new` says too. It may have more keys.
fn holds(old: &Value, new: &Value, at: &str) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, old) in old {
                let at = format!("{at}.{key}");
                holds(old, new.get(key).unwrap_or_else(|| panic!("{at} is gone")), &at);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            assert_eq!(old.len(), new.len(), "{at}");
            old.iter().zip(new).enumerate().for_each(|(index, (old, new))| holds(old, new, &format!("{at}[{index}]")));
        }
        // Its last number counts what was added.
        (Value::String(old), Value::String(new)) if at == "report.report_version" => {
            assert_eq!(old.split('.').next(), new.split('.').next(), "{at}");
        }
        _ => assert_eq!(old, new, "{at}"),
    }
}

/// Readers refuse the database, and name the command that brings it up to date.
fn migrated(sandbox: &Sandbox) {
    for command in [&["results", "list"][..], &["results", "show"]] {
        let refused = muster(sandbox, command);
        assert_eq!(refused.code, Some(2), "{}", refused.stdout);
        assert!(refused.stderr.contains("`muster results migrate --db [FOLDER]/state/muster/results.db`"), "{}", refused.stderr);
    }
    let migrated = muster(sandbox, &["results", "migrate"]);
    assert_eq!((migrated.code, &*migrated.stderr), (Some(0), ""), "{}", migrated.stdout);
}

#[test]
fn sessions_in_an_old_database_are_listed_and_shown() {
    let sandbox = old(&read("recorded/sessions.sql"));
    let (ended, interrupted) = sessions();
    migrated(&sandbox);
    let listed = muster(&sandbox, &["results", "list"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let line = |id: &str| listed.stdout.lines().find(|line| line.contains(id)).unwrap_or_else(|| panic!("{}", listed.stdout));
    assert!(line(&ended).ends_with("  ended"), "{}", listed.stdout);
    // That version stored no PID namespace, without which a process id says nothing.
    assert!(line(&interrupted).ends_with("  unknown"), "{}", listed.stdout);
    let shown = sandbox.command(&["results", "show", "--json", &ended]).output().expect("the binary runs");
    let shown = json(&String::from_utf8_lossy(&shown.stdout));
    holds(&json(&sandbox.read("report.json")), &shown, "report");
    let columns = muster_test_database::columns(&sandbox.path("state/muster/results.db")).expect("the database");
    let recorded = Sandbox::new();
    muster_test_database::create(&recorded.path("old.db"), &read("recorded/sessions.sql")).expect("the recording");
    let old = muster_test_database::columns(&recorded.path("old.db")).expect("the recording");
    assert_eq!(old.difference(&columns).collect::<Vec<_>>(), [""; 0], "columns that are gone");
}

#[test]
fn the_figures_of_an_old_session_are_written_as_they_were() {
    let sandbox = old(&read("recorded/sessions.sql"));
    migrated(&sandbox);
    let ended = muster(&sandbox, &["results", "show", &sessions().0, "--perflogdir", "perflogs"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let mut files = vec![sandbox.path("perflogs")];
    let mut lines = BTreeSet::new();
    while let Some(file) = files.pop() {
        if file.is_dir() {
            files.extend(fs::read_dir(&file).expect("a folder").map(|entry| entry.expect("an entry").path()));
        } else {
            lines.extend(fs::read_to_string(&file).expect("a perflog").lines().map(str::to_owned));
        }
    }
    let recorded = here(&sandbox, &read("recorded/perflog.csv"));
    assert_eq!(lines, recorded.lines().map(str::to_owned).collect());
}

#[test]
fn an_old_session_is_attached_and_its_job_judged_from_what_it_left() {
    let sandbox = old(&read("recorded/sessions.sql"));
    let ended = muster(&sandbox, &["attach"]);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let report = report(&sandbox);
    assert_eq!(report["session"]["id"], sessions().1.as_str());
    assert_eq!(outcomes(&report), ["long %n=1: pass ", "long %n=2: pass ", "long %n=3: pass "]);
    let rates = report["cases"].as_array().expect("cases").iter().map(|case| case["measurements"][0]["value"].clone());
    let mut rates: Vec<f64> = rates.filter_map(|rate| rate.as_f64()).collect();
    rates.sort_by(f64::total_cmp);
    assert_eq!(rates, [10.5, 20.5, 30.5]);
    let second = report["cases"].as_array().expect("cases").iter().find(|case| case["name"] == "long %n=2").expect("the second");
    assert!(
        read("recorded/sessions.sql").contains(&format!("VALUES(2,{},8,1,'launched'", quoted(&second["identifier"]))),
        "{second}"
    );
    let swept = muster(&sandbox, &["sweep", "--dry-run"]);
    assert!(swept.stdout.starts_with("0 job(s)"), "{}", swept.stdout);
}

fn quoted(text: &Value) -> String {
    format!("'{}'", text.as_str().unwrap_or_default())
}

#[test]
fn an_old_session_is_restored() {
    let (ended, interrupted) = sessions();
    let mut recorded = outcomes(&json(&read("recorded/report.json")));
    // It had a second attempt of whatever failed.
    recorded.dedup();
    let expected = ["long %n=1: pass ", "long %n=2: pass ", "long %n=3: pass "].map(str::to_owned);
    for (session, flags, code, restored, outcome) in [
        (&ended, &["-c", "figures.check.yaml"][..], 1, 0, &recorded[..]),
        (&ended, &["-c", "figures.check.yaml", "--failed"], 1, 2, &recorded),
        (&interrupted, &["-c", "long.check.yaml"], 0, 1, &expected),
    ] {
        let sandbox = old(&read("recorded/sessions.sql"));
        let ended = on_site(&sandbox, &[flags, &["-r", "--restore-session", session]].concat());
        assert_eq!(ended.code, Some(code), "{flags:?} {}\n{}", ended.stdout, ended.stderr);
        let report = report(&sandbox);
        let cases = report["cases"].as_array().expect("cases");
        assert_eq!(cases.iter().filter(|case| case["restored_from"] == session.as_str()).count(), restored, "{flags:?}");
        assert_eq!(outcomes(&report), outcome, "{flags:?}");
    }
}

#[test]
fn old_files_give_the_same_cases_with_the_same_outcomes() {
    let sandbox = old(&read("recorded/sessions.sql"));
    for file in ["figures", "keys", "long", "pod"] {
        let listed = on_site(&sandbox, &["-c", &format!("{file}.check.yaml"), "-l", "C"]);
        assert_eq!((listed.code, listed.stdout), (Some(0), read(&format!("recorded/{file}.list"))), "{}", listed.stderr);
    }
    let described = on_site(&sandbox, &["-c", "keys.check.yaml", "--describe"]);
    holds(&json(&read("recorded/keys.describe.json")), &json(&described.stdout), "describe");
    let shown = on_site(&sandbox, &["config", "show"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    for word in ["here", "stage", "cluster", "zen3", "10m", "5m"] {
        assert!(shown.stdout.contains(word), "{word}: {}", shown.stdout);
    }
    let ended = on_site(&sandbox, &["-c", "figures.check.yaml", "-r", "--max-retries=1"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(outcomes(&report(&sandbox)), outcomes(&json(&read("recorded/report.json"))));
}

#[test]
fn every_key_of_old_files_is_still_a_key() {
    for (file, keys) in [("check", read("recorded/check.keys")), ("site", read("recorded/site.keys"))] {
        let schema =
            fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{file}.schema.json"))).expect("a schema");
        let mut known = BTreeSet::new();
        properties(&json(&schema), &mut known);
        let gone: Vec<_> = keys.lines().filter(|key| !known.contains(*key)).collect();
        assert_eq!(gone, [""; 0], "keys of {file} files that are gone");
    }
}

fn properties(schema: &Value, keys: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            keys.extend(object.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(key, _)| key.clone()));
            object.values().for_each(|value| properties(value, keys));
        }
        Value::Array(values) => values.iter().for_each(|value| properties(value, keys)),
        _ => {}
    }
}

#[test]
fn every_command_has_the_flags_that_it_had() {
    let sandbox = Sandbox::new();
    for line in read("recorded/flags.txt").lines() {
        let (command, flags) = line.split_once(": ").expect("COMMAND: FLAGS");
        let command_words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
        let with = |words: &[&str]| muster(&sandbox, &[&command_words[..], words, &["--help"]].concat());
        let help = with(&[]);
        assert_eq!(help.code, Some(0), "{command}: {}", help.stderr);
        let words: BTreeSet<&str> = help.stdout.split(|c: char| c.is_whitespace() || ",.=[]".contains(c)).collect();
        // A flag that the command ignores is not in its help.
        let is_taken = |flag: &str| with(&[flag]).code == Some(0) || with(&[flag, "1"]).code == Some(0);
        let gone: Vec<_> = flags.split(' ').filter(|flag| !words.contains(flag) && !is_taken(flag)).collect();
        assert_eq!(gone, [""; 0], "flags of `muster {command}` that are gone:\n{}", help.stdout);
    }
}

/// The database of a session on Kubernetes, and a cluster.
fn on_kubernetes() -> (Sandbox, FakeApi, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let api = runtime.block_on(FakeApi::start()).expect("a server");
    (old(&read("recorded/pod.sql")), api, runtime)
}

fn with_cluster(sandbox: &Sandbox, api: &FakeApi, args: &[&str]) -> Ended {
    let mut command = sandbox.command(args);
    command.env("KUBECONFIG", api.kubeconfig()).env_remove("KUBERNETES_SERVICE_HOST").env("RFM_LIVENESS_LIMIT", "4");
    sandbox.ended(&command.output().expect("the binary runs"))
}

#[test]
fn an_old_session_on_kubernetes_is_attached_by_the_plan_that_it_has_stored() {
    let (sandbox, api, _runtime) = on_kubernetes();
    let ended = with_cluster(&sandbox, &api, &["attach"]);
    // The plan leads to a pod that this server has never had: somebody has deleted it.
    assert_eq!(ended.code, Some(3), "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(outcomes(&report(&sandbox)), ["pod: disrupted deleted"], "{}", ended.stdout);
}

#[test]
fn what_an_old_session_left_on_kubernetes_is_swept() {
    let (sandbox, api, _runtime) = on_kubernetes();
    let text = read("recorded/pod.sql");
    let manifest = text.split("\"manifest\":").nth(1).expect("the plan");
    let manifest = serde_json::Deserializer::from_str(manifest).into_iter::<Value>().next().expect("an object").expect("JSON");
    api.insert("default", manifest.clone()).expect("a known kind");
    let name = manifest["metadata"]["name"].as_str().expect("a name");
    let planned = with_cluster(&sandbox, &api, &["sweep", "--dry-run"]);
    assert_eq!(planned.code, Some(2), "a look brings no database up to date: {}", planned.stdout);
    assert!(planned.stderr.contains("`muster results migrate --db "), "{}", planned.stderr);
    let migrated = sandbox.muster(&["results", "migrate"]);
    assert_eq!(migrated.code, Some(0), "{}", migrated.stderr);
    let planned = with_cluster(&sandbox, &api, &["sweep", "--dry-run"]);
    assert!(planned.stdout.contains("1 job(s)"), "{}{}", planned.stdout, planned.stderr);
    assert!(api.get("pods", "default", name).is_some());
    let swept = with_cluster(&sandbox, &api, &["sweep"]);
    assert_eq!(swept.code, Some(0), "{}{}", swept.stdout, swept.stderr);
    assert!(api.get("pods", "default", name).is_none(), "{}{}", swept.stdout, swept.stderr);
}

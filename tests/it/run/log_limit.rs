//! `max_log`: how much of a log is kept, and what becomes of a case with a longer one.

use crate::sandbox::Sandbox;
use std::fs;

const SITE: &str = "\
name: here
hostnames: '.*'
partitions:
  - { name: local, scheduler: local, max_log: 50KB }
  - { name: whole, scheduler: local, max_log: null, max_pending_time: null, stage_limit: null, time_limit: null }
  - { name: fake, scheduler: fake, max_log_action: warn }
";

/// 100,000 bytes in lines of a hundred.
const JOB: &str =
    "executable: \"head -c 100000 /dev/zero | tr '\\\\0' x | fold -w 99; echo; echo last\"\nsanity: [{ found: xxx }]\n";

/// The outcome, whether the limit is reported, and how long the log is in the end.
fn run(keys: &str) -> (String, bool, u64) {
    let place = if keys.contains("valid_systems") { "" } else { "valid_systems: ['here:local']\n" };
    let sandbox = Sandbox::with_check(&format!("name: long\n{place}{JOB}{keys}\n"));
    sandbox.write("site-config/here.yaml", SITE);
    let ended = sandbox.muster(&["-c", "check.yaml", "-r"]);
    let report: serde_json::Value = serde_json::from_str(&sandbox.read("reports/out/latest.json")).expect("JSON");
    let case = &report["cases"][0];
    let folder = case["folder"].as_str().unwrap_or_else(|| panic!("a folder: {case}\n{}", ended.stdout));
    let log = fs::metadata(std::path::Path::new(folder).join("rfm_job.out")).expect("a log").len();
    let outcome =
        case["outcome"].as_object().map(|outcome| outcome.values().filter_map(|v| v.as_str()).collect::<Vec<_>>().join(" "));
    (outcome.unwrap_or_default(), ended.stdout.contains("(max_log): what follows was not kept"), log)
}

#[test]
fn a_log_is_kept_up_to_the_limit_of_its_check_or_partition() {
    // The keys of the check; then the outcome, whether the limit is reported, and how long the log is at least and at most.
    let rows = [
        ("", "invalid", true, 50_000..51_000),
        ("max_log: 20 KB", "invalid", true, 20_000..21_000),
        ("max_log_action: warn", "pass", true, 50_000..51_000),
        ("max_log: 1MB", "pass", false, 100_000..103_000),
        ("max_log: null", "pass", false, 100_000..103_000),
    ];
    for (keys, outcome, reported, len) in rows {
        let (found, is_reported, log) = run(keys);
        assert!(found.starts_with(outcome), "{keys}: {found}");
        assert_eq!(is_reported, reported, "{keys}");
        assert!(len.contains(&log), "{keys}: {log} bytes");
    }
}

#[test]
fn a_figure_that_the_limit_cuts_in_two_is_not_judged() {
    let sandbox = Sandbox::with_check(
        "name: cut\nvalid_systems: ['here:local']\nexecutable: echo ready; echo value=1000000\nmax_log: 14\nmax_log_action: warn\n\
         sanity: [{ found: ready }]\nperf_variables: { v: { pattern: 'value=(?<value>\\d+)', unit: MB/s } }\n",
    );
    sandbox.write("site-config/here.yaml", SITE);
    let ended = sandbox.muster(&["-c", "check.yaml", "-r"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    let report: serde_json::Value = serde_json::from_str(&sandbox.read("reports/out/latest.json")).expect("JSON");
    let case = &report["cases"][0];
    assert!(case["measurements"].as_array().is_none_or(|all| all.iter().all(|one| one["value"].is_null())), "{case}");
    let folder = std::path::Path::new(case["folder"].as_str().expect("a folder"));
    let log = fs::read_to_string(folder.join("rfm_job.out")).expect("a log");
    assert!(log.ends_with("-------\nready\n"), "{log}");
}

#[test]
fn null_is_no_limit_of_a_partition_and_config_show_says_so() {
    let (found, is_reported, log) = run("valid_systems: ['here:whole']");
    assert!(found.starts_with("pass") && !is_reported && log > 100_000, "{found}, {log} bytes");
    let sandbox = Sandbox::new();
    sandbox.write("site-config/here.yaml", SITE);
    let shown = sandbox.muster(&["config", "show"]).stdout;
    let whole = shown.split("Partition here:").find(|part| part.starts_with("whole")).expect("a partition");
    for key in ["max_log", "max_pending_time", "stage_limit", "time_limit"] {
        let line = whole.lines().find(|line| line.split_whitespace().next() == Some(key)).expect(key);
        assert_eq!(line.split_whitespace().nth(1), Some("none"), "{line}");
    }
    assert_eq!(shown.matches("file-mode").count(), 1, "{shown}");
    let fake = shown.split("Partition here:").find(|part| part.starts_with("fake")).expect("a partition");
    assert!(fake.lines().any(|line| line.split_whitespace().take(2).eq(["max_log_action", "warn"])), "{fake}");
}

#[test]
fn a_limit_that_is_no_amount_of_data_is_reported_with_its_place() {
    let sandbox = Sandbox::with_check(&format!("name: long\nvalid_systems: ['*']\n{JOB}max_log: 2 parsecs\n"));
    let ended = sandbox.muster(&["-c", "check.yaml", "-r"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("`2 parsecs` is not an amount of data"), "{}", ended.stderr);
    assert!(ended.stderr.contains("check.yaml:5:10"), "{}", ended.stderr);
    let sandbox = Sandbox::with_check(&format!("name: long\nvalid_systems: ['*']\n{JOB}stage_limit: 0\n"));
    let ended = sandbox.muster(&["-c", "check.yaml", "-r"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("nothing is done in no time"), "{}", ended.stderr);
}

//! `-r` on this machine: outcomes, reports, exit codes, what is stored and what is left.

use crate::sandbox::Sandbox;
use serde_json::Value;

const CHECKS: &str = r#"
name: pass
valid_systems: ["*"]
executable: echo "speed = 42.5 MB/s"
sanity: [{ found: speed }]
perf_variables: { speed: { pattern: 'speed = (?<value>\S+) (?<unit>\S+)', unit: GB/s } }
reference: { "*": { speed: [0.0425, -0.1, 0.1, GB/s] } }
---
name: slow
valid_systems: ["*"]
executable: echo "speed = 30"
sanity: [{ found: speed }]
perf_variables: { speed: { pattern: 'speed = (\S+)', unit: MB/s } }
reference: { local: { speed: [42, -0.1, null, MB/s] } }
---
name: insane
valid_systems: ["*"]
executable: echo nothing to see
sanity: [{ found: speed, msg: the benchmark printed no figure }]
---
name: crash
valid_systems: ["*"]
executable: sh -c 'echo half a result; exit 7'
sanity: [{ found: whole }]
---
name: endless
valid_systems: ["*"]
executable: sleep 60
time_limit: 1
sanity: []
---
name: blind
valid_systems: ["*"]
executable: echo no figure
sanity: []
perf_variables: { speed: { pattern: 'speed = (\S+)', unit: MB/s } }
---
name: left-out
valid_systems: ["*"]
executable: echo
sanity: []
when: [{ if: "partition.processor.num_cores > 0", skip: only for machines without processors }]
---
name: known
valid_systems: ["*"]
executable: "false"
sanity: []
xfail: ticket 4711
---
name: surprise
valid_systems: ["*"]
executable: "true"
sanity: []
xfail: ticket 4712
"#;

fn report(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&sandbox.read("report.json")).expect("JSON")
}

fn outcome(case: &Value) -> String {
    let outcome = &case["outcome"];
    match outcome["detail"].as_str() {
        Some(detail) => format!("{}{{{detail}}}", outcome["word"].as_str().unwrap_or_default()),
        None => outcome["word"].as_str().unwrap_or_default().to_owned(),
    }
}

#[test]
fn every_outcome_has_its_cause_and_the_session_its_exit_code() {
    let sandbox = Sandbox::with_check(CHECKS);
    let ended =
        sandbox.muster(&["-c", "check.yaml", "-r", "--performance-report=csv", "--report-file", "report.json", "--db", "r.db"]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let report = report(&sandbox);
    let cases = report["cases"].as_array().expect("cases");
    let mut outcomes: Vec<(String, String)> = cases
        .iter()
        .map(|case| (case["name"]["check"].as_str().or(case["check"].as_str()).unwrap_or_default().to_owned(), outcome(case)))
        .collect();
    outcomes.sort();
    let expected = [
        ("blind", "invalid{metrics}"),
        ("crash", "fail{workload}"),
        ("endless", "timeout{run}"),
        ("insane", "fail{sanity}"),
        ("known", "xfail"),
        ("left-out", "skip"),
        ("pass", "pass"),
        ("slow", "fail{performance}"),
        ("surprise", "xpass"),
    ];
    assert_eq!(outcomes, expected.map(|(check, outcome)| (check.to_owned(), outcome.to_owned())));
    for case in cases.iter().filter(|case| outcome(case) != "pass") {
        let cause = case["cause"].as_str().unwrap_or_default();
        assert!(!cause.is_empty() && !cause.contains('\n'), "{case}");
    }
    for text in ["the benchmark printed no figure", "status 7", "ticket 4712", "failed to meet reference", "-n /"] {
        assert!(ended.stdout.contains(text), "no `{text}` in\n{}", ended.stdout);
    }

    // What passed is in output/, what failed is in stage/, and the store knows all of it.
    let left = |root: &str| std::fs::read_dir(sandbox.path(root).join("local/default/default")).map_or(0, Iterator::count);
    assert_eq!((left("output"), left("stage")), (2, 6));
    let shown = sandbox.muster(&["results", "show", "--db", "r.db"]);
    for (check, _) in expected {
        assert!(shown.stdout.contains(check), "{check} is not in\n{}", shown.stdout);
    }
    assert!(sandbox.muster(&["results", "list", "--db", "r.db"]).stdout.contains("ended"));
}

#[test]
fn a_unit_in_the_text_is_converted() {
    let sandbox = Sandbox::with_check(CHECKS);
    let ended = sandbox.muster(&["-c", "check.yaml", "-r", "-n", "pass", "--report-file", "report.json", "--db", "r.db"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("P: speed: 0.0425 GB/s (r:0.0425, l:0.03825, u:0.04675)"), "{}", ended.stdout);
    assert!(ended.stdout.contains("[  PASSED  ] Ran 1/1 test case(s)"), "{}", ended.stdout);
}

#[test]
fn the_script_and_the_stdout_of_a_pass_are_kept() {
    let sandbox = Sandbox::with_check(
        "name: hello\nvalid_systems: ['*']\nexecutable: echo hello; echo to stderr >&2\nenv_vars: { WHO: you }\nsanity: [{ found: ^hello$ }, { found: ^to stderr$ }]\n",
    );
    let ended = sandbox.muster(&["-c", "check.yaml", "-r", "--db", "r.db"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let output = sandbox.path("output/local/default/default");
    let folder = std::fs::read_dir(&output).expect("output").next().expect("one case").expect("readable").path();
    let stdout = std::fs::read_to_string(folder.join("rfm_job.out")).expect("a stdout");
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[0].len(), 8, "the identifier: {stdout}");
    assert!(lines[2].starts_with("-------") && lines[2].ends_with("-------"), "{stdout}");
    assert_eq!(lines[3..], ["hello", "to stderr"]);
    assert!(std::fs::read_to_string(folder.join("rfm_job.sh")).expect("a script").contains("export WHO=\"you\""));
    assert!(!sandbox.path("stage/local/default/default").join(folder.file_name().expect("a name")).exists());
}

#[test]
fn a_last_line_without_a_newline_is_judged_like_any_other() {
    let sandbox = Sandbox::with_check(
        "name: n\nvalid_systems: ['*']\nexecutable: printf 'one\\nspeed = 5 MB/s'\nsanity: [{ found: ^one$ }, { found: speed }]\nperf_variables: { speed: { pattern: 'speed = (\\S+)', unit: MB/s } }\n",
    );
    let ended = sandbox.muster(&["-c", "check.yaml", "-r", "--db", "r.db"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("P: speed: 5 MB/s"), "{}", ended.stdout);
}

#[test]
fn libtests_formats_own_stdout() {
    let sandbox = Sandbox::with_check(CHECKS);
    let ended = sandbox.muster(&["-c", "check.yaml", "-r", "-n", "pass", "-n", "insane", "--format", "json", "--db", "r.db"]);
    assert_eq!(ended.code, Some(1));
    let events: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let ok = |event: &&str| events.iter().filter(|line| line["type"] == "test" && line["event"] == **event).count();
    assert_eq!((ok(&"ok"), ok(&"failed")), (1, 1), "{}", ended.stdout);
}

#[test]
fn maxfail_stops_launching() {
    let sandbox = Sandbox::with_check(
        "name: f\nvalid_systems: ['*']\nparameters: { n: [1, 2, 3, 4, 5, 6] }\nexecutable: exit 1\nsanity: []\n",
    );
    let ended = sandbox.muster(&["-c", "check.yaml", "-r", "--maxfail", "2", "--exec-policy", "serial", "--db", "r.db"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stdout.contains("2 failure(s)") && ended.stdout.contains("4 aborted"), "{}", ended.stdout);
}

#[test]
fn quiet_leaves_the_summary_and_quieter_leaves_nothing_but_failures() {
    let sandbox = Sandbox::with_check("name: q\nvalid_systems: ['*']\nexecutable: echo\nsanity: []\n");
    let one = sandbox.muster(&["-c", "check.yaml", "-r", "-q", "--db", "r.db"]);
    assert!(one.stdout.contains("1 case") && !one.stdout.contains("RUN"), "{}", one.stdout);
    let two = sandbox.muster(&["-c", "check.yaml", "-r", "-qq", "--db", "r.db"]);
    assert_eq!(two.stdout, "");
}

/// Whoever opens a pipe waits for its writer.
#[test]
fn a_job_that_puts_a_pipe_in_the_place_of_its_log_holds_nobody_up() {
    let sandbox = Sandbox::with_check(
        "name: pipe\nvalid_systems: ['*']\nparameters: { n: [1, 2, 3, 4, 5, 6, 7, 8] }\nexecutable: rm rfm_job.out; mkfifo \
         rfm_job.out\nsanity: []\n---\nname: other\nvalid_systems: ['*']\nexecutable: echo hello\nsanity: [{ found: hello }]\n",
    );
    let ended = sandbox.muster(&["-c", "check.yaml", "-r"]);
    assert_eq!(ended.code, Some(1), "{}\n{}", ended.stdout, ended.stderr);
    let report: Value = serde_json::from_str(&sandbox.read("reports/out/latest.json")).expect("JSON");
    assert_eq!(report["totals"]["passed"], 1, "{}", ended.stdout);
    assert!(ended.stdout.contains("not a regular file"), "{}", ended.stdout);
}

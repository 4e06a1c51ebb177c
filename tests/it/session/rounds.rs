//! Cases that run again, quarantine, rehearsals, and sessions that go on from others.

use crate::sandbox::{Ended, Sandbox};
use insta::assert_snapshot;
use serde_json::Value;

/// `flaky` fails the first time, `bad` always.
const CHECKS: &str = r#"
name: flaky
valid_systems: ["*"]
executable: 'echo once more >> "$MARKS/flaky"; test $(wc -l < "$MARKS/flaky") -ge 2'
sanity: []
---
name: good
valid_systems: ["*"]
executable: echo good
sanity: [{ found: good }]
---
name: bad
valid_systems: ["*"]
executable: echo bad
sanity: [{ found: good }]
"#;

/// A site whose jobs see where the test keeps its counters.
const SITE: &str = r#"
name: site
partitions: [{ name: here, scheduler: local, max_jobs: 2, pass_env: [MARKS] }]
modes:
  - { name: nightly, options: ["-n 'good|flaky'", --max-retries=1] }
  - { name: running, options: -r }
quarantine: [{ name: ^never-there$, reason: ticket 1, until: 2020-01-01 }]
"#;

pub(super) fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_check(CHECKS);
    sandbox.write("site.yaml", SITE);
    sandbox
}

pub(super) fn muster(sandbox: &Sandbox, args: &[&str]) -> Ended {
    let args = [&["-C", "site.yaml", "--system", "site", "-c", "check.yaml"], args].concat();
    let output = sandbox.command(&args).env("MARKS", sandbox.path("")).output().expect("the binary runs");
    sandbox.ended(&output)
}

/// The lines in brackets, without what differs between two runs.
fn progress(ended: &Ended) -> String {
    let without_time = |line: &str| match line.rsplit_once(" (") {
        Some((rest, time)) if time.ends_with("s)") && time.starts_with(|c: char| c.is_ascii_digit()) => rest.to_owned(),
        _ => line.to_owned(),
    };
    let lines = ended.stdout.lines().filter(|line| line.starts_with('['));
    let lines = lines.filter(|line| !line.starts_with("[Muster") && !line.contains("ed on 2") && !line.starts_with("[ RUN"));
    lines.map(without_time).collect::<Vec<_>>().join("\n")
}

/// `name attempt outcome` of every attempt in the run report, sorted.
pub(super) fn attempts(sandbox: &Sandbox) -> Vec<String> {
    let report: Value = serde_json::from_str(&sandbox.read("reports/out/latest.json")).expect("JSON");
    let line = |case: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", text(&case["name"]), case["attempt"], text(&case["outcome"]["word"]))
    };
    let mut lines: Vec<String> = report["cases"].as_array().expect("cases").iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn what_fails_is_retried_when_all_are_over_and_a_pass_then_is_enough() {
    let sandbox = sandbox();
    let ended = muster(&sandbox, &["-r", "--exec-policy=serial", "--max-retries", "2"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_snapshot!(progress(&ended), @"
    [==========] Running 3 check(s), 3 test case(s)
    [----------] start processing checks
    [     FAIL ] (1/3) flaky /bdbb9deb @site:here+default
    [       OK ] (2/3) good /770e6076 @site:here+default
    [     FAIL ] (3/3) bad /2f05d4b6 @site:here+default
    [==========] Retrying 2 failed case(s) (retry 1/2)
    [       OK ] (1/2) flaky /bdbb9deb @site:here+default (attempt 2)
    [     FAIL ] (2/2) bad /2f05d4b6 @site:here+default (attempt 2)
    [==========] Retrying 1 failed case(s) (retry 2/2)
    [     FAIL ] (1/1) bad /2f05d4b6 @site:here+default (attempt 3)
    [----------] all spawned checks have finished
    [  FAILED  ] Ran 3/3 test case(s) from 3 check(s) (1 failure(s), 0 expected failure(s), 0 skipped, 0 aborted)
    ");
    assert_eq!(attempts(&sandbox), ["bad 1 fail", "bad 2 fail", "bad 3 fail", "flaky 1 fail", "flaky 2 pass", "good 1 pass"]);
    // The first attempt's log is where it was.
    let first = sandbox.read("stage/site/here/default/bad_2f05d4b689d270ca/rfm_job.out");
    assert!(first.contains("bad"), "{first}");
    assert_eq!(muster(&sandbox, &["-r", "-n", "flaky|good"]).code, Some(0));
}

#[test]
fn a_pass_after_a_retry_does_not_fail_the_session() {
    let sandbox = sandbox();
    let ended = muster(&sandbox, &["-r", "-x", "bad", "--max-retries", "1"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    assert_eq!(attempts(&sandbox), ["flaky 1 fail", "flaky 2 pass", "good 1 pass"]);
    let report: Value = serde_json::from_str(&sandbox.read("reports/out/latest.json")).expect("JSON");
    let flaky = report["cases"].as_array().expect("cases").iter().filter(|case| case["flaky"] == true);
    assert_eq!(flaky.map(|case| case["name"].clone()).collect::<Vec<_>>(), ["flaky"]);
}

#[test]
fn nothing_is_retried_if_too_much_fails() {
    let sandbox = sandbox();
    let ended = muster(&sandbox, &["-r", "--max-retries", "2", "--retries-threshold", "50%"]);
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended.stderr, @"note: nothing is retried: 2 of 3 case(s) failed, more than --retries-threshold=50%");
    assert_eq!(attempts(&sandbox), ["bad 1 fail", "flaky 1 fail", "good 1 pass"]);
}

#[test]
fn in_reruns_every_failure_counts() {
    let sandbox = sandbox();
    let ended = muster(&sandbox, &["-r", "-x", "bad", "--reruns", "1", "--exec-policy", "serial"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert_snapshot!(progress(&ended), @"
    [==========] Running 2 check(s), 2 test case(s)
    [----------] start processing checks
    [     FAIL ] (1/2) flaky /bdbb9deb @site:here+default
    [       OK ] (2/2) good /770e6076 @site:here+default
    [==========] Running 2 case(s) again (run 2/2)
    [       OK ] (1/2) flaky /bdbb9deb @site:here+default (attempt 2)
    [       OK ] (2/2) good /770e6076 @site:here+default (attempt 2)
    [----------] all spawned checks have finished
    [  FAILED  ] Ran 4/4 test case(s) from 2 check(s) (1 failure(s), 0 expected failure(s), 0 skipped, 0 aborted)
    ");
    assert_eq!(attempts(&sandbox), ["flaky 1 fail", "flaky 2 pass", "good 1 pass", "good 2 pass"]);
    let ended = muster(&sandbox, &["-r", "-n", "good", "--duration", "5"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    assert!(attempts(&sandbox).len() > 1);
}

#[test]
fn maxfail_is_of_each_round() {
    let sandbox = sandbox();
    let all_fail = "name: fails\nvalid_systems: ['*']\nparameters: { n: [1, 2, 3] }\nexecutable: 'false'\nsanity: []\n";
    sandbox.write("check.yaml", all_fail);
    let ended = muster(&sandbox, &["-r", "--max-retries", "1", "--maxfail", "4"]);
    assert_eq!((ended.code, attempts(&sandbox).len()), (Some(1), 6), "{}", ended.stdout);
    // Once it is reached, nothing more happens.
    muster(&sandbox, &["-r", "--max-retries", "1", "--maxfail", "1", "--exec-policy", "serial"]);
    assert_eq!(attempts(&sandbox), ["fails %n=1 1 fail", "fails %n=2 1 abort", "fails %n=3 1 abort"]);
}

#[test]
fn what_is_in_quarantine_is_reported_and_does_not_fail_the_session() {
    let sandbox = sandbox();
    sandbox.write("later.yaml", "- { name: bad, reason: ticket 7, until: 2999-12-31 }\n");
    sandbox.write("over.yaml", "- { name: bad, reason: ticket 7, until: 2020-12-31 }\n");
    let ended = muster(&sandbox, &["-r", "-n", "good|bad", "--quarantine", "later.yaml"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    assert!(attempts(&sandbox).contains(&"bad 1 fail".to_owned()));
    let ended = muster(&sandbox, &["-r", "-n", "good|bad", "--quarantine", "over.yaml"]);
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended.stderr, @"note: `bad` was in quarantine until 2020-12-31 and counts again (ticket 7)");
    let again = "W: it was in quarantine until 2020-12-31 and counts again (ticket 7)";
    assert!(ended.stdout.contains(again), "{}", ended.stdout);
}

const ON_KUBERNETES: &str = r#"
name: nbody
valid_systems: ["*"]
k8s_config: { apiVersion: v1, kind: Pod, metadata: { name: x }, spec: { containers: [{ name: c, image: i }] } }
sanity: [{ found: GFLOP }]
perf_variables: { flops: { pattern: '(\S+) GFLOP', unit: GFLOP/s, per: section } }
"#;

#[test]
fn a_check_of_a_cluster_is_rehearsed_without_one() {
    let sandbox = Sandbox::with_check(ON_KUBERNETES);
    sandbox.write("site.yaml", "name: site\npartitions: [{ name: gpu, scheduler: k8s }]\n");
    sandbox.write("stdout.txt", "abcdefgh\n\n-------pod-0-------\n41 GFLOP/s\n\n-------pod-1-------\n42 GFLOP/s\n");
    sandbox.write("pod.log", "41 GFLOP/s\n");
    sandbox.write(
        "evicted.yaml",
        "statuses: [{ state: running, nodes: [n1] }, { after_ms: 30, state: gone, disruption: evicted, why: the node is full }]\n\
         logs: [{ section: pod-0, file: pod.log }]\n",
    );
    sandbox.write("wrong.yaml", "statuses: [{ state: running, nodes: [n1] }, { state: done }]\n");
    let rehearse = |file: &str| {
        let mut command = sandbox.command(&["-C", "site.yaml", "--system", "site", "-c", "check.yaml", "-r", "--rehearse", file]);
        sandbox.ended(&command.env("KUBECONFIG", "/nonexistent").output().expect("the binary runs"))
    };
    let ended = rehearse("stdout.txt");
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let figures: Vec<&str> = ended.stdout.lines().filter(|line| line.starts_with("P: ")).collect();
    assert!(figures.len() == 2 && figures[0].contains("41") && figures[1].contains("42"), "{}", ended.stdout);
    let ended = rehearse("evicted.yaml");
    assert_eq!(ended.code, Some(3), "{}", ended.stdout);
    assert!(ended.stdout.contains("the node is full"), "{}", ended.stdout);
    let wrong = [rehearse("wrong.yaml").stderr, rehearse("nowhere.yaml").stderr].concat();
    assert_snapshot!(wrong, @"
    error: the scenario cannot be read: unknown variant `done`, expected one of `not_seen`, `pending`, `running`, `ended`, `gone`
    error: --rehearse nowhere.yaml cannot be read: No such file or directory (os error 2)
    ");
    // None of it is history.
    let listed = sandbox.muster(&["results", "list"]);
    assert!(!listed.stdout.contains("site"), "{}", listed.stdout);
}

#[test]
fn a_mode_is_a_bundle_of_options() {
    let sandbox = sandbox();
    let ended = muster(&sandbox, &["-r", "--mode", "nightly"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(attempts(&sandbox), ["flaky 1 fail", "flaky 2 pass", "good 1 pass"]);
}

#[test]
fn flags_that_exclude_each_other_are_reported_in_one_sentence() {
    let sandbox = sandbox();
    sandbox.write("wrong.yaml", "- { name: '(', until: soon }\n");
    let rows: [&[&str]; 10] = [
        &["-r", "--reruns", "1", "--max-retries", "1"],
        &["-r", "--reruns", "1", "--duration", "1m"],
        &["-r", "--failed"],
        &["-r", "--mode", "nigtly"],
        &["-r", "--mode", "running"],
        &["-r", "--shard", "4/3"],
        &["-r", "--retries-threshold", "many"],
        &["-r", "-J", "nothing"],
        &["-r", "--quarantine", "wrong.yaml"],
        &["-r", "--restore-session"],
    ];
    let output = rows.map(|row| {
        let ended = muster(&sandbox, row);
        assert_eq!(ended.code, Some(2), "{row:?}: {}", ended.stderr);
        let text = ended.stderr.replace(&sandbox.path("").display().to_string(), "");
        format!("{}\n{}", row.join(" "), text.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n"))
    });
    assert_snapshot!(output.join("\n\n"));
}

const MANY: &str = r#"
name: many
valid_systems: ["*"]
parameters: { n: [1, 2, 3, 4, 5, 6, 7, 8] }
executable: 'echo ${{ n }} >> "$MARKS/ran"; sleep 0.1; test ${{ n }} -ne 2'
sanity: []
"#;

/// A session of eight cases that was killed when the sixth began to run.
fn killed() -> Sandbox {
    let sandbox = Sandbox::with_check(MANY);
    sandbox.write("site.yaml", SITE);
    let args = ["-C", "site.yaml", "--system", "site", "-c", "check.yaml", "-r"];
    let mut command = sandbox.command(&args);
    let output = command.env("MARKS", sandbox.path("")).env("RFM_CRASH_AT", "running:6").output().expect("the binary runs");
    assert_eq!(output.status.code(), None, "it was not killed");
    sandbox
}

#[test]
fn a_session_goes_on_from_one_that_was_killed_and_reports_each_case_once() {
    let sandbox = killed();
    let ended = muster(&sandbox, &["-r", "--restore-session"]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let expected: Vec<String> = (1..=8).map(|n| format!("many %n={n} 1 {}", if n == 2 { "fail" } else { "pass" })).collect();
    assert_eq!(attempts(&sandbox), expected);
    // What had ended did not run again; what was running was ended, and did.
    let ran = sandbox.read("ran");
    let times = |n: &str| ran.lines().filter(|line| *line == n).count();
    assert_eq!((times("1"), times("2"), times("8")), (1, 1, 1), "{ran}");
    let swept = sandbox.muster(&["sweep", "--dry-run"]);
    assert!(swept.stdout.starts_with("0 job(s)"), "{}", swept.stdout);
    // And from there only what was not well.
    let ended = muster(&sandbox, &["-r", "--restore-session", "--failed"]);
    let (session, rest) = ended.stderr.split_once(" of system `site` in ").expect("the session is named");
    assert!(session.starts_with("session 2") && rest.ends_with(": 7 case(s) are restored, 1 run\n"), "{}", ended.stderr);
    assert_eq!(attempts(&sandbox), expected);
    assert_eq!(sandbox.read("ran").lines().filter(|line| *line == "2").count(), 2);
}

#[test]
fn attach_goes_on_with_the_rounds_of_the_session() {
    let sandbox = Sandbox::with_check(CHECKS);
    sandbox.write("site.yaml", SITE);
    let args = ["-C", "site.yaml", "--system", "site", "-c", "check.yaml", "-r", "--max-retries", "1", "--exec-policy", "serial"];
    // The fourth result is that of the second round's first case.
    for step in ["result-stored:2", "result-stored:3", "launch-stored:4", "result-stored:4"] {
        let _ = std::fs::remove_file(sandbox.path("flaky"));
        let mut command = sandbox.command(&args);
        let output = command.env("MARKS", sandbox.path("")).env("RFM_CRASH_AT", step).output().expect("the binary runs");
        assert_eq!(output.status.code(), None, "{step}: it was not killed");
        let output = sandbox.command(&["attach"]).env("MARKS", sandbox.path("")).output().expect("the binary runs");
        let ended = sandbox.ended(&output);
        assert_eq!(ended.code, Some(1), "{step}: {}{}", ended.stdout, ended.stderr);
        let attempts = attempts(&sandbox);
        assert_eq!(attempts, ["bad 1 fail", "bad 2 fail", "flaky 1 fail", "flaky 2 pass", "good 1 pass"], "{step}");
    }
}

/// The command below `Rerun with:`.
fn rerun_with(text: &str) -> String {
    let line = text.lines().skip_while(|line| !line.contains("Rerun with:")).nth(1).expect("a command");
    line.trim().to_owned()
}

#[test]
fn the_command_below_a_failure_reproduces_it_in_any_folder() {
    let sandbox = sandbox();
    sandbox.write(
        "bad.yaml",
        "name: worse\nvalid_systems: ['*']\nvariables: { n: 1, api_token: none }\nexecutable: 'exit ${{ n }}'\nsanity: []\n",
    );
    let node = muster(&sandbox, &["-c", "bad.yaml", "-n", "worse", "--distribute=all", "-lC"]);
    let node = node.stdout.split("%.nid=").nth(1).and_then(|rest| rest.split(' ').next()).expect("this machine").to_owned();
    let flags = ["-C", "site.yaml", "--system", "site", "-c", "bad.yaml", "-S", "n=7", "--distribute", &node, "-r"];
    let ended = sandbox.muster(&flags);
    let command = rerun_with(&ended.stdout);
    let expected = format!("muster -C [FOLDER]/site.yaml -S n=7 --distribute {node} -c [FOLDER]/bad.yaml -n /");
    assert!(command.starts_with(&expected), "{command}");
    let shown = sandbox.muster(&["results", "show"]);
    assert_eq!(rerun_with(&shown.stdout), command, "the same for a stored session");
    // In another folder, and with its own results.
    sandbox.write("elsewhere/file", "");
    let again = sandbox.paste(&command, "elsewhere");
    assert!(
        again.stdout.contains("exit status 7") && again.stdout.contains(&format!("%.nid={node}")),
        "{}{}",
        again.stdout,
        again.stderr
    );

    let secret = sandbox.muster(&["-C", "site.yaml", "--system", "site", "-c", "bad.yaml", "-S", "api_token=abc", "-r"]);
    let command = rerun_with(&secret.stdout);
    assert!(command.contains("'api_token=***'") && command.ends_with("# write the secret out in place of ***"), "{command}");
}

#[test]
fn the_command_below_a_failure_runs_in_the_folders_that_were_given() {
    let sandbox = Sandbox::with_check("name: bad\nvalid_systems: ['*']\nexecutable: 'pwd; exit 7'\nsanity: []\n");
    sandbox.write("site.yaml", SITE);
    sandbox.write("elsewhere/file", "");
    for (flags, options, stage) in [
        (&["--stage", "mine/stage"][..], "--stage [FOLDER]/mine/stage ", "[FOLDER]/mine/stage/"),
        (&["--prefix", "mine"], "--prefix [FOLDER]/mine ", "[FOLDER]/mine/stage/"),
        (&["--prefix", "mine", "-s", "other"], "--prefix [FOLDER]/mine --stage [FOLDER]/other ", "[FOLDER]/other/"),
        (&[], "-c [FOLDER]/check.yaml", "[FOLDER]/elsewhere/stage/"),
    ] {
        let command = rerun_with(&muster(&sandbox, &[flags, &["-c", "check.yaml", "-r"]].concat()).stdout);
        assert!(command.starts_with(&format!("muster -C [FOLDER]/site.yaml {options}")), "{command}");
        assert_eq!(rerun_with(&sandbox.muster(&["results", "show"]).stdout), command, "the same for a stored session");
        let again = sandbox.paste(&command, "elsewhere");
        assert!(again.stdout.contains("exit status 7") && again.stdout.contains(stage), "{command}\n{}", again.stdout);
    }
}

#[test]
fn the_command_below_a_failure_names_what_the_other_checks_of_its_file_need() {
    let sandbox = Sandbox::with_check(
        "name: a\nvalid_systems: ['*']\nexecutable: 'exit 7'\nsanity: []\n---\nname: b\nvalid_systems: ['*']\ndepends_on: c\nexecutable: 'true'\nsanity: []\n",
    );
    sandbox.write("site.yaml", SITE);
    sandbox.write("other.yaml", "name: c\nvalid_systems: ['*']\nexecutable: 'true'\nsanity: []\n");
    let ended = muster(&sandbox, &["-c", "other.yaml", "-n", "^a", "-r"]);
    sandbox.write("elsewhere/file", "");
    let again = sandbox.paste(&rerun_with(&ended.stdout), "elsewhere");
    assert!(again.stdout.contains("exit status 7"), "{}{}", again.stdout, again.stderr);
}

//! `-` in the place of a file: reports on standard output, quarantine and rehearsals from standard input.

use crate::sandbox::{Ended, Sandbox};
use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
};

const GOOD: &str = "name: good\nvalid_systems: ['*']\nexecutable: echo hello\nsanity: [{ found: hello }]\n";
const RUN: [&str; 4] = ["-c", "check.yaml", "-r", "--db=r.db"];

fn run(sandbox: &Sandbox, more: &[&str]) -> Ended {
    sandbox.muster(&[&RUN[..], more].concat())
}

/// Runs a command with this on its standard input.
fn fed(sandbox: &Sandbox, mut command: Command, input: &str) -> Ended {
    let mut child = command.stdin(Stdio::piped()).spawn().expect("runs");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("read");
    sandbox.ended(&child.wait_with_output().expect("ends"))
}

#[test]
fn a_report_on_standard_output_is_alone_there() {
    let sandbox = Sandbox::with_check(GOOD);
    let rows = [
        ("--report-junit=-", "<?xml", "</testsuites>", "JUnit report: standard output"),
        ("--report-html=-", "<!doctype html>", "</html>", "HTML report: standard output"),
        ("--report-markdown=-", "#", "", "Summary: standard output"),
        ("--report-file=-", "{", "}", "Run report: standard output"),
    ];
    for (flag, first, last, place) in rows {
        let ended = run(&sandbox, &[flag]);
        assert_eq!(ended.code, Some(0), "{flag}: {}", ended.stderr);
        assert!(
            ended.stdout.to_lowercase().trim().starts_with(first) && ended.stdout.trim_end().ends_with(last),
            "{flag}: {}",
            ended.stdout
        );
        assert!(ended.stderr.contains("1 case in ") && ended.stderr.contains(place), "{flag}: {}", ended.stderr);
        assert!(!sandbox.path("-").exists(), "{flag}");
    }
    let report: serde_json::Value = serde_json::from_str(&run(&sandbox, &["--report-file=-"]).stdout).expect("JSON alone");
    assert_eq!(report["totals"]["passed"], 1);
    let shown = sandbox.muster(&["results", "show", "--db=r.db", "--report-junit=-"]);
    assert!(shown.stdout.starts_with("<?xml") && shown.stdout.ends_with("</testsuites>\n"), "{}", shown.stdout);
    let pipeline = sandbox.muster(&["-c", "check.yaml", "--ci-generate=-"]);
    assert!(pipeline.code == Some(0) && pipeline.stdout.contains("script:"), "{}{}", pipeline.stdout, pipeline.stderr);
    assert_eq!(pipeline.stderr, "");
}

#[test]
fn a_quiet_table_is_all_that_is_printed() {
    let check = format!("{GOOD}perf_variables: {{ letters: {{ value: count('hello') }} }}\n");
    let table = run(&Sandbox::with_check(&check), &["-qq", "--performance-report=csv"]).stdout;
    assert!(table.starts_with("name,") && table.lines().count() == 2, "{table}");
}

#[test]
fn a_standard_stream_has_one_file() {
    let sandbox = Sandbox::with_check(GOOD);
    let out = "write to standard output: give one of them a file\n";
    let rows: [(&[&str], String); 3] = [
        (&["--report-file=-", "--report-html=-"], format!("error: --report-file and --report-html both {out}")),
        (&["--report-junit=-", "--format=json"], format!("error: --report-junit and --format both {out}")),
        (
            &["--quarantine=-", "--rehearse=-"],
            "error: --quarantine and --rehearse both read standard input: give one of them a file\n".to_owned(),
        ),
    ];
    for (flags, expected) in rows {
        let ended = run(&sandbox, flags);
        assert_eq!((ended.code, ended.stderr, ended.stdout.as_str()), (Some(2), expected, ""), "{flags:?}");
    }
    assert!(!sandbox.path("r.db").exists(), "nothing has run");
}

#[test]
fn a_report_that_standard_output_does_not_take_is_exit_code_3() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let sandbox = Sandbox::with_check(GOOD);
    let mut command = sandbox.command(&[&RUN[..], &["--report-junit=-"]].concat());
    let ended = sandbox.ended(&command.stdout(full).output().expect("runs"));
    let sentence = "error: standard output could not be written: No space left on device (os error 28)\n";
    assert!(ended.code == Some(3) && ended.stderr.ends_with(sentence), "{:?} {}", ended.code, ended.stderr);
}

#[test]
fn quarantine_and_rehearsals_come_from_standard_input() {
    let sandbox = Sandbox::with_check(&GOOD.replace("echo hello", "'false'"));
    let quarantine = "- { name: good, reason: known, until: 2999-01-01 }\n";
    let ended = fed(&sandbox, sandbox.command(&[&RUN[..], &["--quarantine=-"]].concat()), quarantine);
    assert!(ended.code == Some(0) && ended.stdout.contains("known"), "{:?} {}{}", ended.code, ended.stdout, ended.stderr);
    let summary = "\n1 case failed in quarantine, which does not fail the session\n";
    assert!(ended.stdout.contains(summary), "{}", ended.stdout);
    let ended = fed(&sandbox, sandbox.command(&[&RUN[..], &["--rehearse=-"]].concat()), "hello\n");
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let ended = fed(&sandbox, sandbox.command(&[&RUN[..], &["--quarantine=-"]].concat()), "- { nam: x }\n");
    assert!(ended.code == Some(2) && ended.stderr.contains("standard input:1:"), "{:?} {}", ended.code, ended.stderr);
}

//! `keep_files` and `file`: what a job leaves beside its output, judged and kept.

use crate::sandbox::{Ended, Sandbox};
use std::{fs, path::PathBuf};

const CHECK: &str = "\
name: solver
valid_systems: ['*']
executable: |-
  mkdir -p results; printf 'step,err\\n1,0.5\\n2,0.001\\n' > results/err.csv; printf 'speed 42' > speed.txt
  printf '\\000\\001' > core.1; echo junk > junk; echo finished; ln -s junk link.txt
";

fn run(keys: &str, more: &[&str]) -> (Sandbox, Ended) {
    let sandbox = Sandbox::with_check(&format!("{CHECK}{keys}"));
    let ended = sandbox.muster(&[&["-c", "check.yaml", "-r", "--nocolor", "--db", "r.db"], more].concat());
    (sandbox, ended)
}

/// The folder of the only case below a root.
fn folder(sandbox: &Sandbox, root: &str) -> PathBuf {
    let mut folder = sandbox.path(root);
    while !folder.join("rfm_job.out").exists() {
        folder =
            fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path()).find(|path| path.is_dir()).expect("one");
    }
    folder
}

fn names(folder: &std::path::Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

const KEEPS: &str = "\
keep_files: [results, '*.txt', core.*]
sanity:
  - { found: '^2,', file: results/*.csv }
  - { assert: \"extractsingle(r'^2,(\\\\S+)$') < 0.01\", file: results/err.csv }
  - { not_found: speed }
perf_variables:
  speed: { pattern: 'speed (\\d+)', unit: MB/s, file: speed.txt }
  worst: { pattern: '^\\d+,(\\S+)$', reduce: max, file: '**/*.csv', per: section }
";

#[test]
fn kept_files_are_judged_and_stay_in_the_output_folder() {
    let (sandbox, ended) = run(KEEPS, &[]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("P: speed: 42 MB/s") && ended.stdout.contains("P: worst results/err.csv: 0.5"),
        "{}",
        ended.stdout
    );
    let output = folder(&sandbox, "output");
    assert_eq!(
        names(&output),
        ["core.1", "link.txt", "pods.json", "results", "rfm_job.exit", "rfm_job.out", "rfm_job.sh", "speed.txt"]
    );
    assert_eq!(fs::read_to_string(output.join("link.txt")).expect("a file"), "junk\n", "a link is kept as its file");
    let log = fs::read_to_string(output.join("rfm_job.out")).expect("a log");
    assert!(log.ends_with("finished\n\n-------link.txt-------\njunk\n\n-------results/err.csv-------\nstep,err\n1,0.5\n2,0.001\n\n-------speed.txt-------\nspeed 42\n"), "{log}");
    assert!(
        !fs::exists(sandbox.path("stage/local/default/default")).unwrap_or(true)
            || names(&sandbox.path("stage/local/default/default")).is_empty()
    );
    // A second pass, which keeps less, leaves nothing of the first.
    let keys = KEEPS.replace(", '*.txt', core.*", ", speed.txt");
    sandbox.write("check.yaml", &format!("{CHECK}{keys}"));
    for keep_stages in [false, true] {
        let more: &[&str] = if keep_stages { &["--keep-stage-files"] } else { &[] };
        let ended = sandbox.muster(&[&["-c", "check.yaml", "-r", "--nocolor", "--db", "r.db"], more].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stdout);
        assert_eq!(names(&output), ["pods.json", "results", "rfm_job.exit", "rfm_job.out", "rfm_job.sh", "speed.txt"]);
    }
}

#[test]
fn a_failure_names_the_file_and_leaves_the_stage_folder_as_it_is() {
    let cause = |sandbox: &Sandbox| {
        let report: serde_json::Value = serde_json::from_str(&sandbox.read("report.json")).expect("JSON");
        report["cases"][0]["cause"].as_str().expect("a cause").to_owned()
    };
    let report = ["--report-file", "report.json"];
    let keys =
        "keep_files: ['*.txt', core.*, '*.log']\nsanity: [{ not_found: speed, file: '*.txt' }, { found: x, file: '*.log' }]\n";
    let (sandbox, ended) = run(keys, &report);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    insta::assert_snapshot!(cause(&sandbox), @"`speed` found in speed.txt, line 1: `speed 42`; `x` could not be looked for: no text file fits `*.log`: kept were link.txt, speed.txt, core.1 (binary)");
    assert!(names(&folder(&sandbox, "stage")).contains(&"junk".to_owned()));
    let keys = "keep_files: ['*.log']\nsanity: []\nperf_variables: { v: { pattern: '(x)', file: '*.log' } }\n";
    let (sandbox, ended) = run(keys, &report);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    insta::assert_snapshot!(cause(&sandbox), @"`v`: no file fits `*.log`: none was kept");
}

#[test]
fn a_fixture_keeps_its_files_beside_its_folder() {
    let sandbox = Sandbox::with_check(&format!(
        "{}keep_files: speed.txt\nsanity: [{{ found: '42', file: speed.txt }}]\n---\nname: user\nvalid_systems: ['*']\nfixtures: {{ s: {{ check: solver }} }}\nexecutable: cat ${{{{ fixtures.s.stagedir }}}}/junk\nsanity: [{{ found: junk }}]\n",
        CHECK.replace("valid_systems: ['*']\n", ""),
    ));
    let ended = sandbox.muster(&["-c", "check.yaml", "-r", "--nocolor", "--db", "r.db"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{}", ended.stdout);
    let place = sandbox.path("output/local/default/default");
    let kept: Vec<_> = names(&place).into_iter().filter(|name| place.join(name).join("speed.txt").exists()).collect();
    assert_eq!(kept.len(), 1, "{:?}", names(&place));
}

#[test]
fn an_heir_judges_kept_files_again() {
    let check = "name: c\nvalid_systems: ['*']\nparameters: { n: [1, 2] }\nexecutable: echo speed ${{ n }} > out.txt\nkeep_files: out.txt\n\
                 sanity: [{ found: speed, file: out.txt }]\nperf_variables: { s: { pattern: '(\\d)', file: out.txt } }\n";
    let mut killed = 0;
    for step in crate::common::STEPS {
        let sandbox = Sandbox::with_check(check);
        let mut command = sandbox.command(&["-c", "check.yaml", "-r"]);
        let output = command.env("RFM_CRASH_AT", format!("{step}:1")).output().expect("the binary runs");
        if output.status.code().is_some() {
            continue;
        }
        killed += 1;
        let ended = sandbox.muster(&["attach"]);
        assert_eq!(ended.code, Some(0), "{step}: {}\n{}", ended.stdout, ended.stderr);
        let report: serde_json::Value = serde_json::from_str(&sandbox.read("reports/out/latest.json")).expect("JSON");
        assert_eq!(report["totals"]["passed"], 2, "{step}: {}", report["totals"]);
        let place = sandbox.path("output/local/default/default");
        for name in names(&place) {
            let log = fs::read_to_string(place.join(&name).join("rfm_job.out")).expect("a log");
            assert_eq!(log.matches("-------out.txt-------").count(), 1, "{step}: {log}");
            assert!(place.join(&name).join("out.txt").exists(), "{step}");
        }
    }
    assert!(killed >= 8, "only {killed} steps were reached");
}

#[test]
fn a_play_leaves_files_too() {
    let sandbox = Sandbox::with_check(&format!("{CHECK}{KEEPS}").replace("reduce: max, ", ""));
    sandbox.write("play.yaml", "files: { speed.txt: speed 7, results/err.csv: \"1,2\\n2,0.001\\n\" }\n");
    let ended = sandbox.muster(&["-c", "check.yaml", "-r", "--nocolor", "--rehearse", "play.yaml"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{}", ended.stdout);
    assert!(ended.stdout.contains("P: speed: 7 MB/s"), "{}", ended.stdout);
}

#[test]
fn a_carriage_return_ends_a_line_and_is_kept() {
    let check = |sanity: &str| {
        let log = r"printf 'Loading 100%%\rERROR: device lost\ntest FAILED\r\n'; printf 'a\r\nb\r' > x.txt";
        format!("name: bar\nvalid_systems: ['*']\nexecutable: |-\n  {log}\nkeep_files: [x.txt]\nsanity: [{sanity}]\n")
    };
    let judged = |sanity: &str| {
        let sandbox = Sandbox::with_check(&check(sanity));
        let ended = sandbox.muster(&["-c", "check.yaml", "-r", "--nocolor", "--db", "r.db"]);
        (sandbox, ended)
    };
    let (sandbox, passed) = judged(r"{ found: 'FAILED$' }, { found: '^a\nb$', file: x.txt }");
    assert_eq!(passed.code, Some(0), "{}", passed.stdout);
    let log = fs::read_to_string(folder(&sandbox, "output").join("rfm_job.out")).expect("a log");
    assert!(log.contains("Loading 100%\rERROR: device lost\ntest FAILED\r\n"), "{log:?}");
    let (_sandbox, failed) = judged("{ not_found: 'FAILED$' }");
    assert_eq!(failed.code, Some(1), "{}", failed.stdout);
    assert!(failed.stdout.contains(", line 3: `test FAILED`\n"), "{}", failed.stdout);
}

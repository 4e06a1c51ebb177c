//! Reports as files: all of them from one session, also an interrupted one, and what cannot be written.

use crate::sandbox::{Ended, Sandbox};
use std::fs;

const CHECK: &str = "name: speed\nvalid_systems: ['*']\nparameters: { n: [1, 2] }\nexecutable: 'echo speed ${{ n }}0 GB/s; test ${{ n }} = 1'\n\
    sanity: [{ found: speed }]\nperf_variables: { speed: { pattern: 'speed (\\S+)', unit: GB/s } }\nreference: { '*': { speed: [10, -0.1, null, GB/s] } }\n";

const ALL: [&str; 16] = [
    "-c",
    "check.yaml",
    "-r",
    "--db",
    "r.db",
    "--report-file",
    "r.json",
    "--report-junit",
    "out/r.xml",
    "--report-html",
    "out/r.html",
    "--report-markdown",
    "out/{sessionid}.md",
    "--perflogdir",
    "perflogs",
    "--failure-stats",
];

#[test]
fn one_session_writes_every_report_and_its_exit_code_stays() {
    let sandbox = Sandbox::with_check(CHECK);
    let summary = sandbox.path("summary.md");
    let mut command = sandbox.command(&ALL);
    let github = [("GITHUB_ACTIONS", "true".into()), ("GITHUB_STEP_SUMMARY", summary.clone().into_os_string())];
    let ended = sandbox.ended(&command.envs(github).env("GITHUB_WORKSPACE", sandbox.path("")).output().expect("runs"));
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(sandbox.read("out/r.xml").contains("<failure") && sandbox.read("out/r.html").contains("speed %n=2"));
    let log = sandbox.read("perflogs/local/default/speed.csv");
    assert_eq!((log.lines().count(), log.contains("pval")), (3, true), "{log}");
    let named = fs::read_dir(sandbox.path("out"))
        .expect("a folder")
        .flatten()
        .find(|entry| entry.path().extension().is_some_and(|end| end == "md"));
    assert_eq!(fs::read(named.expect("a summary").path()).expect("text"), fs::read(summary).expect("the job's page"));
    let annotation: Vec<_> = ended.stdout.lines().filter(|line| line.starts_with("::")).collect();
    assert_eq!(annotation.len(), 1, "{}", ended.stdout);
    assert!(
        annotation[0]
            .starts_with("::error file=check.yaml,line=1,title=FAIL speed %25n=2::speed %25n=2 @local:default+default%0A"),
        "{annotation:?}"
    );
    let again = sandbox.muster(&ALL);
    assert_eq!(
        (again.code, sandbox.read("perflogs/local/default/speed.csv").lines().count()),
        (Some(1), 5),
        "one header: {}",
        again.stderr
    );
    let past = sandbox.muster(&["results", "show", "--db", "r.db", "--report-html", "past.html", "--report-junit", "past.xml"]);
    assert_eq!(past.code, Some(0), "{}", past.stderr);
    assert!(sandbox.read("past.html").contains("speed %n=2") && sandbox.read("past.xml").contains("<failure"));
}

#[test]
fn a_report_that_cannot_be_written_is_reported_before_anything_runs() {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("file", "").write("templates/summary.md", "{{ verdikt }}").write("empty/readme.txt", "");
    let rows: [(&[&str], &str); 5] = [
        (
            &["--report-html", "file/r.html"],
            "the HTML report file/r.html cannot be written: choose another place with --report-html",
        ),
        (&["--report-junit", "."], "the JUnit report . cannot be written: choose another place with --report-junit"),
        (&["--perflogdir", "file"], "the perflogs in file cannot be written: choose another folder with --perflogdir"),
        (&["--report-templates", "empty"], "the templates in empty cannot be used: there is neither report.html nor summary.md"),
        (&["--report-templates", "templates"], "Variable `verdikt` is not defined"),
    ];
    for (place, sentence) in rows {
        let ended = sandbox.muster(&[&["-c", "check.yaml", "-r", "--db", "r.db"], place].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{place:?}: something ran");
        assert!(ended.stderr.contains(sentence), "{}", ended.stderr);
    }
}

#[test]
fn a_report_goes_into_a_pipe_and_a_device_that_takes_nothing_is_exit_code_3() {
    let sandbox = Sandbox::with_check(&CHECK.replace("[1, 2]", "[1]"));
    // The kernel's `full`, under another name: who may not make one sees the pipe alone.
    let has_device = made(&sandbox, &["full", "c", "1", "7"]);
    assert!(made(&sandbox, &["pipe", "p"]));
    let run = ["-c", "check.yaml", "-r", "--db", "r.db"];
    let pipe = sandbox.path("pipe");
    let reader = std::thread::spawn(move || fs::read_to_string(pipe).expect("a text"));
    let ended = sandbox.muster(&[&run[..], &["--report-markdown", "pipe"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(reader.join().expect("ends").contains("passed"));
    let mut unwritten = vec![("pipe", "os error 6")];
    unwritten.extend(has_device.then_some(("full", "os error 28")));
    for (place, cause) in unwritten {
        let show = ["results", "show", "--db", "r.db"];
        for (command, flag, what) in [
            (&run[..], "--report-html", "the HTML report"),
            (&run[..], "--report-file", "the run report"),
            (&show[..], "--report-junit", "the JUnit report"),
        ] {
            let ended = sandbox.muster(&[command, &[flag, place]].concat());
            let sentence = format!("error: {what} {place} could not be written: ");
            assert_eq!(ended.code, Some(3), "{flag} {place}: {}", ended.stderr);
            assert!(ended.stderr.contains(&sentence) && ended.stderr.contains(cause), "{}", ended.stderr);
            let kind = fs::symlink_metadata(sandbox.path(place)).expect("it is there").file_type();
            assert!(!kind.is_file(), "{place} was replaced");
        }
    }
    if has_device {
        let ended = sandbox.muster(&["-c", "check.yaml", "--ci-generate", "full"]);
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        assert!(ended.stderr.contains("the pipeline full could not be written"), "{}", ended.stderr);
    }
}

fn made(sandbox: &Sandbox, node: &[&str]) -> bool {
    let made = std::process::Command::new("mknod").args(node).current_dir(sandbox.path("")).output();
    made.is_ok_and(|made| made.status.success())
}

#[test]
fn what_goes_to_standard_output_by_its_name_stands_behind_what_was_printed() {
    let sandbox = Sandbox::with_check(&CHECK.replace("[1, 2]", "[1]"));
    let printed = fs::File::create(sandbox.path("all")).expect("a file");
    let mut command = sandbox.command(&["-c", "check.yaml", "-r", "--db", "r.db", "--report-markdown", "/dev/stdout"]);
    assert!(command.stdout(printed).status().expect("runs").success());
    let all = sandbox.read("all");
    let at = |text: &str| all.find(text).unwrap_or_else(|| panic!("no `{text}` in\n{all}"));
    assert!(at("[==========] Running") < at("\n## ") && at("\n## ") < at("Run report: "), "{all}");
}

#[test]
fn a_perflog_of_somebody_else_is_left_alone_and_the_session_says_so() {
    let sandbox = Sandbox::with_check(&CHECK.replace("[1, 2]", "[1]"));
    sandbox.write("perflogs/local/default/speed.csv", "result|job_completion_time|\n");
    let ended = sandbox.muster(&["-c", "check.yaml", "-r", "--db", "r.db", "--perflogdir", "perflogs"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let sentence = "the perflog perflogs/local/default/speed.csv has other columns: move it away, or choose another folder with --perflogdir";
    assert!(ended.stderr.contains(sentence), "{}", ended.stderr);
    assert_eq!(sandbox.read("perflogs/local/default/speed.csv"), "result|job_completion_time|\n");
}

#[test]
fn a_pipeline_is_written_for_the_selection() {
    let sandbox = Sandbox::with_check(CHECK);
    let ended = sandbox.muster(&["-c", "check.yaml", "-n", "n=2", "--ci-generate", "ci.yml"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Pipeline: ci.yml\n"), "{}", ended.stderr);
    let text = sandbox.read("ci.yml");
    assert!(text.contains("speed %n=2 @local:default+default:") && !text.contains("%n=1"), "{text}");
}

#[test]
fn a_pipeline_keeps_options_of_the_scheduler_but_never_a_secret() {
    let sandbox = Sandbox::with_check(CHECK);
    let generate = |more: &[&str]| sandbox.muster(&[&["-c", "check.yaml", "--ci-generate", "ci.yml"], more].concat());
    let ended = generate(&["-J", "node=vm", "--skip-performance-check"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let text = sandbox.read("ci.yml");
    assert!(text.contains("-J node=vm --skip-performance-check"), "{text}");
    let refused = generate(&["-J", "x.password=hunter2"]);
    let sentence = "error: -J x.password=*** has a secret, which would be in the pipeline: set it as a variable of the CI system instead (MUSTER_JOB_OPTION)\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (Some(2), sentence));
}

/// `user` needs a check of another file, a fixture of a third one, and a fixture of a file that is not named.
const CHAIN: [(&str, &str); 5] = [
    (
        "checks/user.check.yaml",
        "name: user\nvalid_systems: ['*']\ndepends_on: [between]\nfixtures: { built: { check: 'lib/build.yaml#build' } }\nexecutable: exit 7\nsanity: []\n",
    ),
    (
        "checks/between.check.yaml",
        "name: between\nvalid_systems: ['*']\nfixtures: { data: { check: data } }\nexecutable: echo\nsanity: []\n",
    ),
    ("checks/data.check.yaml", "name: data\nexecutable: echo\nsanity: []\n"),
    ("checks/lib/build.yaml", "name: build\nexecutable: echo\nsanity: []\n"),
    ("checks/unused.check.yaml", "name: unused\nvalid_systems: ['*']\nexecutable: echo\nsanity: []\n"),
];

#[test]
fn a_command_names_the_files_of_all_that_its_case_needs() {
    let sandbox = Sandbox::new();
    for (file, text) in CHAIN {
        sandbox.write(file, text);
    }
    sandbox.write(
        "checks/site-config/site.yaml",
        "name: here\nhostnames: ['.*']\npartitions: [{ name: p, scheduler: local, environs: [gcc, gcc13] }]\n\
         environments: [{ name: gcc }, { name: gcc13 }]\n",
    );
    sandbox.write("elsewhere/file", "");
    let command = |ended: &Ended| {
        let line = ended.stdout.lines().skip_while(|line| !line.contains("Rerun with:")).nth(1);
        line.unwrap_or_else(|| panic!("{}{}", ended.stdout, ended.stderr)).trim().to_owned()
    };
    let first = sandbox.muster(&["-c", "checks", "-n", "user", "-p", "^gcc$", "-r"]);
    let files =
        "-c [FOLDER]/checks/user.check.yaml -c [FOLDER]/checks/between.check.yaml -c [FOLDER]/checks/data.check.yaml -n /";
    assert!(command(&first).contains(files), "{}", command(&first));
    assert_eq!(command(&sandbox.muster(&["results", "show"])), command(&first), "the same for a stored session");
    let ran = "Ran 4/4 test case(s) from 4 check(s) (1 failure(s)";
    assert!(first.stdout.contains(ran), "{}", first.stdout);
    let again = sandbox.paste(&command(&first), "elsewhere");
    assert!(again.stdout.contains(ran) && again.stdout.contains("exit status 7"), "{}{}", again.stdout, again.stderr);

    let written = sandbox.muster(&["-c", "checks", "-n", "user", "--ci-generate", "ci.yml"]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let pipeline = sandbox.read("ci.yml");
    let jobs: Vec<_> =
        pipeline.lines().filter(|line| line.contains("- muster") && line.contains("-c checks/user.check.yaml")).collect();
    assert_eq!(jobs.len(), 2, "{pipeline}");
    for job in jobs {
        let ended = sandbox.paste(job.trim().trim_start_matches("- "), "");
        assert!(ended.stdout.contains(ran), "{job}: {}{}", ended.stdout, ended.stderr);
    }
}

const SKIPPED: &str = "name: ran\nvalid_systems: ['*']\ntags: [run]\nexecutable: 'true'\nsanity: []\n---\nname: left\nvalid_systems: ['*']\n\
    executable: 'true'\nwhen: [{ if: \"partition.name == 'default'\", skip: not here }]\nsanity: []\n---\nname: prepares\nvalid_systems: ['*']\n\
    executable: 'true'\nsanity: []\n---\nname: user\nvalid_systems: ['*']\nfixtures: { f: { check: prepares, scope: session } }\n\
    executable: 'true'\nwhen: [{ if: \"partition.name == 'default'\", skip: not here }]\nsanity: []\n";

#[test]
fn a_session_in_which_nothing_ran_has_passed_in_no_report() {
    let sandbox = Sandbox::with_check(SKIPPED);
    let rows: [(&[&str], i32, &str); 6] = [
        (&["-n", "left"], 3, "nothing ran: 1 case skipped, which proves nothing"),
        (&["-n", "left", "--repeat", "2"], 3, "nothing ran: 2 cases skipped, which proves nothing"),
        (&["-n", "user"], 3, "nothing but fixtures ran: 1 case skipped, which proves nothing"),
        (&["-n", "ran|left"], 0, ""),
        (&["-n", "ran|left", "--fail-on-skip"], 3, "1 case skipped, which --fail-on-skip does not accept"),
        (&["-n", "ran", "--fail-on-skip"], 0, ""),
    ];
    for (more, code, sentence) in rows {
        let ended = sandbox.muster(&[&ALL[..], more].concat());
        assert_eq!(ended.code, Some(code), "{more:?}: {}{}", ended.stdout, ended.stderr);
        let word = if code == 0 { "[  PASSED  ]" } else { "[  FAILED  ]" };
        assert!(ended.stdout.contains(word) && ended.stdout.contains(sentence), "{more:?}: {}", ended.stdout);
        let report: serde_json::Value = serde_json::from_str(&sandbox.read("r.json")).expect("JSON");
        assert_eq!(report["totals"]["exit_code"], code, "{more:?}");
        assert_eq!(sandbox.read("out/r.xml").contains("<error "), code == 3, "{more:?}");
        let html = sandbox.read("out/r.html");
        assert_eq!(html.contains("proves nothing") || html.contains("does not accept"), code == 3, "{more:?}");
        let shown = sandbox.muster(&["results", "show", "--db", "r.db"]).stdout;
        assert!(shown.contains(word) && shown.contains(sentence), "{more:?}: {shown}");
        let lines = sandbox.muster(&[&["-c", "check.yaml", "-r", "--format", "pretty"], more].concat());
        // To libtest a skipped case is an ignored test.
        let is_refused = code == 3 && more.contains(&"--fail-on-skip");
        assert_eq!(lines.stdout.contains("test result: FAILED"), is_refused, "{more:?}: {}", lines.stdout);
        assert_eq!(lines.code, Some(code), "{more:?}");
    }
}

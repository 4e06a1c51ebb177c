//! Secrets of the command line stand in no database, no report and nothing that is printed.

use crate::sandbox::{Ended, Sandbox};
use muster_fake_api::FakeApi;
use std::fs;
use tokio::runtime::Runtime;

const SECRET: &str = "correct-horse-battery";
/// As a pattern has it.
const IN_PATTERN: &str = r"correct\-horse\-battery";

fn with(sandbox: &Sandbox, args: &[&str], env: &[(&str, &str)]) -> Ended {
    let mut command = sandbox.command(args);
    command.envs(env.iter().copied());
    sandbox.ended(&command.output().expect("the binary runs"))
}

const SITE: &str = "\
name: here
hostnames: ['.*']
partitions:
  - { name: local, scheduler: local, environs: [e] }
  - { name: fake, scheduler: fake, environs: [e] }
  - { name: k8s, scheduler: k8s, environs: [e] }
environments: [{ name: e }]
";

/// What a case of each scheduler has in common: everything that is stored of it holds the secret.
const COMMON: &str = "\
variables: { api_token: none, copy: '${{ api_token }}' }
descr: 'calls with ${{ api_token }}'
sanity: [{ found: 'token \\[${{ api_token }}\\]' }, { assert: 'api_token != \"none\" && copy == api_token' }]
perf_variables: { n: { pattern: '(?P<key>\\S+) has (?P<value>\\d+)', unit: s } }
outputs: { token: 'token \\[(.+)\\]' }
";

/// A case that passes and leaves the secret to one that prints it and fails.
fn pair(scheduler: &str, (gives, fails): (&str, &str)) -> String {
    let here = format!("valid_systems: ['here:{scheduler}']\n");
    format!(
        "name: gives\n{here}{COMMON}{gives}\n---\nname: fails\n{here}depends_on: [gives]\n{}{fails}\n",
        COMMON.replace("found: 'token", "found: 'no token")
    )
}

const LOCAL: (&str, &str) = (
    "executable: 'echo \"token [${{ api_token }}]\"; echo \"${{ api_token }} has 1\"'\nteardown_cmds: 'echo ${{ api_token }}'",
    "executable: 'echo \"got ${{ deps.gives.outputs.token }}\"'",
);

const FAKE: (&str, &str) = (
    "fake: { logs: [{ section: pod-0, text: \"token [${{ api_token }}]\\n${{ api_token }} has 1\\n\" }] }",
    "fake: { logs: [{ section: pod-0, text: \"got ${{ deps.gives.outputs.token }}\\n\" }] }",
);

const K8S: (&str, &str) = (
    "k8s_config: { apiVersion: v1, kind: Pod, metadata: { name: gives, annotations: { t: '${{ api_token }}' } }, spec: { restartPolicy: Never, \
     containers: [{ name: main, image: 'busybox:1', command: [echo, '${{ api_token }}'] }] } }",
    "k8s_config: { apiVersion: v1, kind: Pod, metadata: { name: fails }, spec: { restartPolicy: Never, \
     containers: [{ name: main, image: 'busybox:1', command: [echo, '${{ deps.gives.outputs.token }}'] }] } }",
);

#[test]
fn a_secret_that_a_check_uses_everywhere_is_stored_and_reported_nowhere() {
    let runtime = Runtime::new().expect("a runtime");
    for (scheduler, checks) in [("local", LOCAL), ("fake", FAKE), ("k8s", K8S)] {
        let api = runtime.block_on(FakeApi::start()).expect("a server");
        api.script("gives", &format!("run; log token [{SECRET}]; log {SECRET} has 1; exit 0")).expect("a script");
        api.script("fails", &format!("run; log got {SECRET}; exit 0")).expect("a script");
        let kubeconfig = api.kubeconfig();
        let kubeconfig = kubeconfig.to_str().expect("text");
        let sandbox = Sandbox::with_check(&pair(scheduler, checks));
        sandbox.write("site.yaml", SITE);
        let set = format!("api_token={SECRET}");
        let reports = ["--report-html", "r.html", "--report-junit", "r.xml", "--report-markdown", "r.md", "--perflogdir", "perf"];
        let args =
            [&["-C", "site.yaml", "-c", "check.yaml", "-r", "-v", "-S", &set, "--performance-report"][..], &reports].concat();
        // Killed while the plan of each is stored, continued, and once more without a pause.
        for crash in ["intent-stored:1", "running:1", "intent-stored:2", "result-stored:2"] {
            let env = [("KUBECONFIG", kubeconfig), ("RFM_CRASH_AT", crash)];
            let ended = with(&sandbox, &args, &env);
            is_nowhere(&sandbox, &ended, scheduler, crash);
            // A pod or a scenario may be over before it is seen to run.
            if crash == "running:1" && ended.code.is_some() {
                continue;
            }
            assert_eq!(ended.code, None, "{scheduler} {crash}: {}{}", ended.stdout, ended.stderr);
            let ended = with(&sandbox, &["attach", "-v"], &[env[0], ("MUSTER_SETVAR", &set)]);
            assert_eq!(ended.code, Some(1), "{scheduler} {crash}: {}{}", ended.stdout, ended.stderr);
            assert!(ended.stdout.contains("1 fail{sanity}, 1 pass") && ended.stdout.contains("got ***"), "{}", ended.stdout);
            is_nowhere(&sandbox, &ended, scheduler, crash);
        }
        // What the first case has left is there again for the second.
        let again = [&args[..], &["--restore-session=latest", "--keep-stage-files"]].concat();
        let ended = with(&sandbox, &again, &[("KUBECONFIG", kubeconfig)]);
        assert_eq!(ended.code, Some(1), "{scheduler}: {}{}", ended.stdout, ended.stderr);
        is_nowhere(&sandbox, &ended, scheduler, "restored");
    }
}

/// Neither what a run has printed nor its files hold the secret: scripts, logs and stage folders are the job's own.
fn is_nowhere(sandbox: &Sandbox, ended: &Ended, scheduler: &str, step: &str) {
    let printed = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!printed.contains(SECRET) && !printed.contains(IN_PATTERN), "{scheduler} {step}: {printed}");
    is_stored_nowhere(sandbox, &[SECRET, IN_PATTERN]);
}

#[test]
fn a_secret_of_the_command_line_is_stored_nowhere_and_attach_asks_for_it() {
    let check = "name: three\nvalid_systems: ['*']\nparameters: { n: [1, 2, 3] }\nvariables: { api_token: none }\n\
                 executable: 'echo [${{ api_token }}] | tr a-z b-za'\nsanity: [{ found: dpssfdu }]\n";
    let set = format!("api_token={SECRET}");
    // The second case runs, or was about to be launched: its plan is in the database then.
    for (crash, extra) in [("running:2", "token=x9z"), ("intent-stored:2", "commit=1a2b")] {
        let sandbox = Sandbox::with_check(check);
        let args = ["-c", "check.yaml", "-r", "--exec-policy", "serial", "-S", &set, "--session-extras", extra];
        let ended = with(&sandbox, &args, &[("RFM_CRASH_AT", crash)]);
        assert_eq!(ended.code, None, "{}{}", ended.stdout, ended.stderr);
        let shown = sandbox.muster(&["results", "show", "--json"]);
        assert!(shown.stdout.contains("api_token=***") && !shown.stdout.contains(SECRET), "{}", shown.stdout);

        let refused = sandbox.muster(&["attach"]);
        assert_eq!(refused.code, Some(2), "{}", refused.stdout);
        let again = "MUSTER_SETVAR=api_token=... muster attach 20";
        assert!(refused.stderr.contains(again), "{}", refused.stderr);
        is_stored_nowhere(&sandbox, &[SECRET, "x9z"]);
        let ended = with(&sandbox, &["attach"], &[("MUSTER_SETVAR", &set)]);
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        let report = sandbox.read("reports/out/latest.json");
        assert!(report.contains("api_token=***") && !report.contains(SECRET), "{report}");
        is_stored_nowhere(&sandbox, &[SECRET, "x9z"]);
    }
}

/// What came from the environment or a mode is asked for like what was typed, in the variable of the same flag.
#[test]
fn attach_asks_for_a_secret_that_was_not_typed() {
    let check = "name: three\nvalid_systems: ['*']\nparameters: { n: [1, 2, 3] }\nvariables: { api_token: none, other: none }\n\
                 executable: 'echo \"${{ api_token }} ${{ other }}\" | tr a-z b-za'\nsanity: [{ found: dpssfdu.* uxp }]\n";
    let site = "name: here\nhostnames: ['.*']\npartitions: [{ name: p, scheduler: local, environs: [e] }]\n\
                environments: [{ name: e }]\nmodes: [{ name: secret, options: ['-S api_token=$TOKEN', '-S other=two'] }]\n";
    let token = format!("api_token={SECRET}");
    let listed = format!("other=two\n{token}");
    let sources: [(&[&str], (&str, &str)); 2] = [(&[], ("MUSTER_SETVAR", &listed)), (&["--mode", "secret"], ("TOKEN", SECRET))];
    for (more, variable) in sources {
        for crash in ["running:2", "intent-stored:2"] {
            let sandbox = Sandbox::with_check(check);
            sandbox.write("site-config/here.yaml", site);
            let args = [&["-c", "check.yaml", "-r", "--exec-policy", "serial"], more].concat();
            let ended = with(&sandbox, &args, &[variable, ("RFM_CRASH_AT", crash)]);
            assert_eq!(ended.code, None, "{}{}", ended.stdout, ended.stderr);
            let refused = sandbox.muster(&["attach"]);
            assert_eq!(refused.code, Some(2), "{}{}", refused.stdout, refused.stderr);
            assert!(refused.stderr.contains("MUSTER_SETVAR=api_token=... muster attach 20"), "{}", refused.stderr);
            is_stored_nowhere(&sandbox, &[SECRET]);
            let resumed = with(&sandbox, &[&args[..], &["--resume"]].concat(), &[variable, ("RFM_CRASH_AT", "result-stored:1")]);
            assert_eq!(resumed.code, None, "{}{}", resumed.stdout, resumed.stderr);
            let ended = with(&sandbox, &["attach"], &[("MUSTER_SETVAR", &token)]);
            assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
            assert!(ended.stdout.contains("3 pass"), "{}", ended.stdout);
            is_stored_nowhere(&sandbox, &[SECRET]);
        }
    }
}

#[test]
fn attach_asks_for_a_secret_in_the_variable_of_its_flag() {
    let runtime = Runtime::new().expect("a runtime");
    let api = runtime.block_on(FakeApi::start()).expect("a server");
    api.script("one", "run; exit 0").expect("a script");
    let kubeconfig = api.kubeconfig();
    let kubeconfig = ("KUBECONFIG", kubeconfig.to_str().expect("text"));
    let set = format!("labels.api_token={SECRET}");
    let check = "name: one\nvalid_systems: ['here:k8s']\nimage: busybox:1\ncommand: ['true']\nsanity: []\n";
    for (typed, variable) in [(&["-J", &set][..], None), (&[], Some(("MUSTER_JOB_OPTION", &*set)))] {
        let sandbox = Sandbox::with_check(check);
        sandbox.write("site.yaml", SITE);
        let args = [&["-C", "site.yaml", "-c", "check.yaml", "-r"], typed].concat();
        let env: Vec<_> = [kubeconfig, ("RFM_CRASH_AT", "intent-stored:1")].into_iter().chain(variable).collect();
        let ended = with(&sandbox, &args, &env);
        assert_eq!(ended.code, None, "{}{}", ended.stdout, ended.stderr);
        for env in [&[kubeconfig][..], &[kubeconfig, ("MUSTER_SETVAR", &set)]] {
            let refused = with(&sandbox, &["attach"], env);
            assert_eq!(refused.code, Some(2), "{}{}", refused.stdout, refused.stderr);
            let again = "MUSTER_JOB_OPTION=labels.api_token=... muster attach 20";
            assert!(refused.stderr.contains(again), "{}", refused.stderr);
        }
        let ended = with(&sandbox, &["attach"], &[kubeconfig, ("MUSTER_JOB_OPTION", &set)]);
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn a_short_secret_and_one_with_a_comma_are_masked_by_name() {
    for value in ["12345", "pa,ssword1", "1234567890123456"] {
        let check = "name: one\nvalid_systems: ['*']\nvariables: { api_token: none }\nexecutable: 'true ${{ api_token }}; false'\nsanity: []\n";
        let sandbox = Sandbox::with_check(check);
        let set = format!("-Sapi_token={value}");
        let ended = sandbox.muster(&["-c", "check.yaml", "-r", &set, "--report-html", "r.html", "--report-junit", "r.xml"]);
        assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.contains("-Sapi_token=***") && !ended.stdout.contains(value), "{}", ended.stdout);
        assert!(!sandbox.read("r.html").contains(value) && !sandbox.read("r.xml").contains(value));
        is_stored_nowhere(&sandbox, &[value]);
        let shown = sandbox.muster(&["config", "show"]).stdout;
        assert!(!shown.contains(value), "{shown}");
    }
}

#[test]
fn a_mistake_beside_a_secret_in_a_variable_shows_neither() {
    let sandbox = Sandbox::new();
    for (variable, value) in
        [("MUSTER_SESSION_EXTRAS", "api_token=s3cret,rest-of-it"), ("MUSTER_JOB_OPTION", "api_token=s3cret\n=rest-of-it")]
    {
        let ended = sandbox.ended(&sandbox.command(&["-l"]).env(variable, value).output().expect("the binary runs"));
        let text = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.code, Some(2), "{text}");
        assert!(text.contains(variable) && !text.contains("s3cret") && !text.contains("rest-of-it"), "{text}");
    }
    let shown = sandbox.command(&["config", "show"]).env("MUSTER_JOB_OPTION", "api_token=s3cret").output();
    let shown = sandbox.ended(&shown.expect("the binary runs")).stdout;
    assert!(shown.contains("api_token=***") && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn a_setting_without_its_equals_sign_shows_no_value() {
    let sandbox = Sandbox::new();
    for args in [
        ["-J", "password hunter2x"],
        ["-J", "db_password:hunter2x"],
        ["--session-extras", "db_password:hunter2x"],
        ["--session-extras", "a=1,token hunter2x"],
    ] {
        let refused = sandbox.muster(&[&args[..], &["-l"]].concat());
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains("***") && !refused.stderr.contains("hunter2x"), "{}", refused.stderr);
    }
    sandbox.write("muster.yaml", "setvar: api_token hunter2x\n");
    let shown = sandbox.muster(&["config", "show"]);
    assert!(shown.stdout.contains("api_token ***") && !shown.stdout.contains("hunter2x"), "{}{}", shown.stdout, shown.stderr);
    sandbox.write("muster.yaml", "job-option: ['password hunter2x']\n");
    let refused = sandbox.muster(&["-l"]);
    assert!(refused.code == Some(2) && !refused.stderr.contains("hunter2x"), "{}", refused.stderr);
}

#[test]
fn a_database_given_by_keywords_is_refused_without_its_password() {
    let sandbox = Sandbox::new();
    let keywords = "host=127.0.0.1 dbname=m user=ada password=hunter2x";
    for ended in [
        with(&sandbox, &["results", "list"], &[("MUSTER_DB", keywords)]),
        sandbox.muster(&["results", "list", "--db", keywords]),
        with(&sandbox, &["results", "list"], &[("MUSTER_DB", "postgres:/ada:hunter2x@h/db")]),
    ] {
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains("URL") && !ended.stderr.contains("hunter2x"), "{}", ended.stderr);
    }
    assert!(
        fs::read_dir(sandbox.path(""))
            .expect("a folder")
            .flatten()
            .all(|entry| !entry.file_name().to_string_lossy().contains('='))
    );
}

#[test]
fn what_a_job_prints_and_a_url_of_a_setting_are_masked_in_every_report() {
    let check = "name: one\nvalid_systems: ['*']\nvariables: { url: none }\n\
                 executable: 'echo dbPassword=hunter2x; echo \"Authorization: Token hunter2x\"; false'\nsanity: []\n";
    let sandbox = Sandbox::with_check(check);
    let files = ["--report-html", "r.html", "--report-junit", "r.xml", "--report-file", "r.json"];
    let set = ["-c", "check.yaml", "-r", "-S", "url=https://ada:hunter2x/secretA@h/x"];
    let ended = sandbox.muster(&[&set[..], &files].concat());
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    for file in ["r.html", "r.xml", "r.json"] {
        let text = sandbox.read(file);
        assert!(text.contains("dbPassword=***"), "{file}: {text}");
        assert!(!text.contains("hunter2x") && !text.contains("secretA"), "{file}: {text}");
    }
}

#[test]
fn a_mistake_in_the_name_of_a_setting_shows_no_value() {
    let check = "name: one\nvalid_systems: ['*']\nvariables: { api_token: none }\nexecutable: 'true'\n";
    let sandbox = Sandbox::with_check(check);
    for (setting, mistake) in [
        (
            "-Sapi_tokn=Zx9q",
            "-S api_tokn: no check has a variable, parameter or key `api_tokn`\n  = help: did you mean `api_token`?",
        ),
        (
            "-Papi_tokn=Zx9q",
            "-P api_tokn: no check has a variable, parameter or key `api_tokn`\n  = help: did you mean `api_token`?",
        ),
        ("-Japi_token=Zx9q", "-J api_token: unknown option `api_token` of the scheduler local"),
        ("-Jlables.api_token=Zx9q", "-J lables.api_token: unknown option `lables` of the scheduler local"),
    ] {
        let refused = sandbox.muster(&["-c", "check.yaml", "-l", setting]);
        assert!(refused.code == Some(2) && refused.stderr.contains(mistake), "{}", refused.stderr);
        assert!(!refused.stderr.contains("Zx9q") && !refused.stdout.contains("Zx9q"), "{}{}", refused.stdout, refused.stderr);
    }
}

#[test]
fn listings_mask_a_secret_in_what_a_check_says_of_itself() {
    let check = "name: one\nvalid_systems: ['*']\nvariables: { api_token: none }\ndescr: 'uses ${{ api_token }}'\nexecutable: 'true'\nsanity: []\n";
    let sandbox = Sandbox::with_check(check);
    for action in ["-L", "-LC", "--describe"] {
        let shown = sandbox.muster(&["-c", "check.yaml", action, "-Sapi_token=Zx9q"]);
        assert!(shown.code == Some(0) && shown.stdout.contains("uses ***"), "{}{}", shown.stdout, shown.stderr);
    }
}

#[test]
fn a_session_is_not_continued_with_another_value_of_its_secret() {
    let check = "name: one\nvalid_systems: ['*']\nvariables: { pin_token: none }\n\
                 executable: 'sleep 1; echo done ${{ pin_token }}'\nsanity: [{ found: 'done ${{ pin_token }}' }]\n";
    for crash in ["running:1", "intent-stored:1"] {
        let sandbox = Sandbox::with_check(check);
        let ended = with(&sandbox, &["-c", "check.yaml", "-r", "-Spin_token=12345"], &[("RFM_CRASH_AT", crash)]);
        assert_eq!(ended.code, None, "{}{}", ended.stdout, ended.stderr);
        // The first is text where a number was: JSON that is not valid.
        for other in ["abc", "12346"] {
            let set = format!("pin_token={other}");
            let why = "needs the secret `pin_token` with the value that it had";
            let refused = with(&sandbox, &["attach"], &[("MUSTER_SETVAR", &set)]);
            assert!(refused.code == Some(2) && refused.stderr.contains(why), "{crash}: {}{}", refused.stdout, refused.stderr);
            let refused = sandbox.muster(&["-c", "check.yaml", "-r", &format!("-S{set}"), "--resume"]);
            assert!(refused.code == Some(2) && refused.stderr.contains(why), "{crash}: {}{}", refused.stdout, refused.stderr);
        }
        let ended = with(&sandbox, &["attach"], &[("MUSTER_SETVAR", "pin_token=12345")]);
        assert!(ended.code == Some(0) && ended.stdout.contains("1 pass"), "{crash}: {}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn outputs_with_another_value_of_a_secret_are_made_again() {
    let check = "name: gives\nvalid_systems: ['*']\nvariables: { api_token: none }\nexecutable: 'echo token [${{ api_token }}]'\nsanity: []\n\
                 outputs: { token: 'token \\[(.+)\\]' }\n---\nname: work\nvalid_systems: ['*']\ndepends_on: [gives]\n\
                 variables: { api_token: none }\nexecutable: 'echo \"[${{ deps.gives.outputs.token }}]\"'\nsanity: [{ found: '\\[BBBB2222\\]' }]\n";
    let sandbox = Sandbox::with_check(check);
    let args = ["-c", "check.yaml", "-r", "--keep-stage-files"];
    let ended = sandbox.muster(&[&args[..], &["-Sapi_token=AAAA1111"]].concat());
    assert!(ended.code == Some(1) && ended.stdout.contains("1 fail{sanity}, 1 pass"), "{}{}", ended.stdout, ended.stderr);
    let same = ["--restore-session=latest", "--failed", "-Sapi_token=AAAA1111"];
    let ended = sandbox.muster(&[&args[..], &same].concat());
    assert!(ended.stderr.contains("1 case(s) are restored, 1 run"), "{}{}", ended.stdout, ended.stderr);
    let other = ["--restore-session=latest", "--failed", "-Sapi_token=BBBB2222"];
    let ended = sandbox.muster(&[&args[..], &other].concat());
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
}

/// The database and the run reports do not hold a text.
fn is_stored_nowhere(sandbox: &Sandbox, secrets: &[&str]) {
    let mut ahead = ["state", "reports", "perf", "r.html", "r.xml", "r.md"].map(|name| sandbox.path(name)).to_vec();
    while let Some(path) = ahead.pop() {
        if path.is_dir() {
            ahead.extend(fs::read_dir(&path).expect("a folder").flatten().map(|entry| entry.path()));
        } else if let Ok(bytes) = fs::read(&path) {
            for secret in secrets {
                let is_there = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
                assert!(!is_there, "{secret} is in {}", path.display());
            }
        }
    }
}

//! `muster.yaml` in the working folder, and the user's `config.yaml`.

use crate::sandbox::{Ended, NOBODY, Sandbox};
use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    process::Command,
};

const CHECK: &str = "name: a\nvalid_systems: ['*']\ntags: [gpu]\nexecutable: echo hello\nsanity: []\n---\nname: b\nvalid_systems: ['*']\nexecutable: echo hello\nsanity: []\n";

fn shown(sandbox: &Sandbox, args: &[&str], env: &[(&str, &str)]) -> String {
    let mut command = sandbox.command(&[args, &["config", "show"]].concat());
    command.envs(env.iter().copied());
    let ended = sandbox.ended(&command.output().expect("runs"));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    ended.stdout
}

fn row(text: &str, name: &str) -> String {
    let line = text.lines().find(|line| line.trim_start().starts_with(&format!("{name} "))).expect("a row");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_setting_comes_from_the_strongest_of_its_sources() {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("config/muster/config.yaml", "prefix: of-user\nmaxfail: 1\nnocolor: true\nmax-retries: 4\n");
    sandbox.write(
        "muster.yaml",
        "# of this project\ncheckpath: [check.yaml]\nmaxfail: 2\nnocolor: false\nmode: night\ntag: gpu\nconfig-file: s.yaml\n",
    );
    let site = "name: s\nhostnames: ['.*']\nmodes: [{ name: night, options: [--exec-policy=serial] }]\npartitions:\n\
                - { name: p, scheduler: local, environs: [default] }\nenvironments: [{ name: default }]\n";
    sandbox.write("s.yaml", site);
    let text = shown(&sandbox, &[], &[]);
    let rows = [
        ("prefix", "prefix of-user [FOLDER]/config/muster/config.yaml:1:1"),
        ("output", "output of-user/output [FOLDER]/config/muster/config.yaml:1:1 (prefix)"),
        ("maxfail", "maxfail 2 muster.yaml:3:1"),
        ("nocolor", "nocolor false muster.yaml:4:1"),
        ("exec-policy", "exec-policy serial mode night"),
        ("max-retries", "max-retries 4 [FOLDER]/config/muster/config.yaml:4:1"),
        ("settings", "settings files muster.yaml, [FOLDER]/config/muster/config.yaml"),
    ];
    for (name, expected) in rows {
        assert_eq!(row(&text, name), expected, "{text}");
    }
    let text = shown(&sandbox, &["--db=x.db"], &[("MUSTER_MAXFAIL", "3"), ("MUSTER_DB", "y.db")]);
    assert_eq!(
        (row(&text, "maxfail"), row(&text, "db")),
        ("maxfail 3 environment MUSTER_MAXFAIL".into(), "db x.db flag --db".into())
    );
    // The checks and the filter of the file, unless others are typed.
    let listed = |args: &[&str]| -> Ended { sandbox.muster(&[args, &["-l"]].concat()) };
    assert!(listed(&[]).stdout.contains("Found 1 check(s)"), "{}", listed(&[]).stdout);
    assert!(listed(&["-t", "!cpu"]).stdout.contains("Found 2 check(s)"));
    assert_eq!(sandbox.muster(&["-r"]).code, Some(0));
    assert!(sandbox.path("of-user/reports/out/latest.json").exists());
}

/// Each layer sets all keys of the table, and overrides the layers above it in the list.
#[test]
fn a_flag_outranks_a_mode_that_the_environment_that_the_project_that_the_user_that_the_default() {
    let keys = ["maxfail", "max-retries", "exec-order", "report-html"];
    let layers: [(&str, [&str; 4]); 6] = [
        ("default", ["-", "0", "-", "-"]),
        ("[FOLDER]/config/muster/config.yaml", ["1", "1", "name", "user.html"]),
        ("muster.yaml", ["2", "2", "rname", "project.html"]),
        ("environment", ["3", "3", "uid", "environment.html"]),
        ("mode night", ["4", "4", "ruid", "mode.html"]),
        ("flag", ["5", "5", "random", "flag.html"]),
    ];
    let yaml =
        |values: [&str; 4]| keys.iter().zip(values).fold(String::new(), |text, (key, value)| text + key + ": " + value + "\n");
    let flags = |values: [&str; 4]| keys.iter().zip(values).map(|(key, value)| format!("--{key}={value}")).collect::<Vec<_>>();
    let sandbox = Sandbox::with_check(CHECK);
    let site = "name: s\nhostnames: ['.*']\npartitions: [{ name: p, scheduler: local, environs: [default] }]\nenvironments: [{ name: default }]\n";
    sandbox.write(
        "site-config/s.yaml",
        &format!("{site}modes: [{{ name: night, options: [{}] }}]\n", flags(layers[4].1).join(", ")),
    );
    let (mut args, mut env): (Vec<String>, Vec<(String, String)>) = (vec!["-c".into(), "check.yaml".into()], Vec::new());
    for (at, (layer, values)) in layers.into_iter().enumerate() {
        match at {
            0 => {}
            1 => drop(sandbox.write("config/muster/config.yaml", &yaml(values))),
            2 => drop(sandbox.write("muster.yaml", &yaml(values))),
            3 => env.extend(
                keys.iter()
                    .zip(values)
                    .map(|(key, value)| (format!("MUSTER_{}", key.to_uppercase().replace('-', "_")), value.to_owned())),
            ),
            4 => args.push("--mode=night".into()),
            _ => args.extend(flags(values)),
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let text = shown(&sandbox, &args, &env);
        for (key, value) in keys.iter().zip(values) {
            let row = row(&text, key);
            assert!(row.starts_with(&format!("{key} {value} {layer}")), "{row} is not of layer {layer}: {value}");
        }
    }
}

#[test]
fn a_mistake_in_a_file_of_settings_is_bad_usage_and_keeps_nobody_from_help() {
    let sandbox = Sandbox::with_check(CHECK);
    let rows = [
        ("max-retrys: 2\n", "error: unknown setting `max-retrys`\n --> muster.yaml:1:1"),
        ("run: true\n", "error: `run` is an action: a file of settings has none\n --> muster.yaml:1:1"),
        ("maxfail: many\n", "error: invalid value 'many' for `maxfail`: invalid digit found in string\n --> muster.yaml:1:10"),
        ("a: [\n", "error: "),
    ];
    for (text, expected) in rows {
        sandbox.write("muster.yaml", text);
        let ended = sandbox.muster(&["-c", "check.yaml", "-l"]);
        assert!(ended.code == Some(2) && ended.stderr.starts_with(expected), "{text}: {:?} {}", ended.code, ended.stderr);
    }
    assert_eq!(sandbox.muster(&["--help"]).code, Some(0));
    assert_eq!(sandbox.muster(&["kernel", "flops", "--help"]).code, Some(0));
}

#[test]
fn a_pipe_called_muster_yaml_is_a_mistake_and_no_command_waits_for_its_writer() {
    let sandbox = Sandbox::with_check(CHECK);
    let made = Command::new("mkfifo").arg(sandbox.path("muster.yaml")).status();
    assert!(made.expect("mkfifo runs").success());
    let ended = |args: &[&str]| {
        let mut within = Command::new("timeout");
        let muster = sandbox.command(args);
        within.arg("10").arg(muster.get_program()).args(muster.get_args()).current_dir(sandbox.path(""));
        within.envs(muster.get_envs().filter_map(|(name, value)| Some((name, value?))));
        sandbox.ended(&within.output().expect("timeout runs"))
    };
    for args in [&["--version"][..], &["--help"], &["results", "--help"]] {
        assert_eq!(ended(args).code, Some(0), "{args:?}");
    }
    for args in [&["-c", "check.yaml", "-l"][..], &["results", "list"]] {
        let ended = ended(args);
        assert_eq!(ended.code, Some(2), "{args:?}");
        insta::allow_duplicates!(
            insta::assert_snapshot!(ended.stderr, @"error: the settings in muster.yaml cannot be read: it is not a regular file")
        );
    }
}

#[test]
fn a_mistake_in_a_file_of_settings_is_a_warning_for_commands_that_need_none() {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("muster.yaml", "sytem: x\n");
    for args in [&["completions", "bash"][..], &["man"], &["check", "fmt", "--check", "check.yaml"], &["init", "new"]] {
        let ended = sandbox.muster(args);
        let warning = "warning: the files of settings are ignored, for this command needs none:\nerror: unknown setting `sytem`";
        assert!(ended.code == Some(0) && ended.stderr.starts_with(warning), "{args:?}: {:?} {}", ended.code, ended.stderr);
        assert!(!ended.stdout.contains("sytem"), "{args:?}");
    }
    // These take the paths of the settings.
    for args in [&["check", "fmt", "--check"][..], &["completions", "--list", "tags"]] {
        assert_eq!(sandbox.muster(args).code, Some(2), "{args:?}");
    }
    assert!(sandbox.muster(&["completions", "--help"]).stdout.contains("muster completions <SHELL>"));
}

#[test]
fn the_system_in_use_is_shown_with_who_named_it() {
    let sandbox = Sandbox::new();
    sandbox.write("site-config/hpc.yaml", "name: hpc\npartitions: [{ name: here, scheduler: local }]\n");
    sandbox.write("muster.yaml", "system: hpc\n");
    for (args, by) in
        [(&["config", "show"][..], "by muster.yaml:1:1"), (&["--system", "hpc", "config", "show"], "by flag --system")]
    {
        let text = sandbox.muster(args).stdout;
        assert_eq!(text.lines().filter(|line| line.ends_with(by)).count(), 1, "{text}");
    }
}

#[test]
fn a_file_of_settings_with_another_ending_is_named() {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("muster.yml", "checkpath: check.yaml\n");
    let said = sandbox.muster(&["-l"]).stderr;
    assert!(said.ends_with("with -c PATH (muster.yml is not read: name it muster.yaml)\n"), "{said}");
    sandbox.write("muster.yaml", "maxfail: 1\n");
    let said = sandbox.muster(&["-l"]).stderr;
    assert!(said.ends_with("with -c PATH\n"), "{said}");
}

#[test]
fn secrets_of_a_site_file_are_masked() {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write(
        "s.yaml",
        "name: s\nhostnames: ['.*']\npartitions:\n- name: p\n  scheduler: k8s\n  environs: [default]\n\
         \x20 env_vars: { API_TOKEN: s3cret, PW: abc, MODE: fast }\n  extras: { db_password: s3cret }\n\
         \x20 prepare_cmds: ['export HF_TOKEN=s3cret-of-line']\n  sched_options: { annotations: { token: s3cret-of-pod } }\n\
         environments: [{ name: default }]\n",
    );
    let text = shown(&sandbox, &["-C", "s.yaml"], &[]);
    assert_eq!(row(&text, "env_vars"), "env_vars API_TOKEN=***, PW=***, MODE=fast s.yaml:7:3");
    assert_eq!(row(&text, "extras"), "extras db_password=*** s.yaml:8:3");
    assert_eq!(row(&text, "prepare_cmds"), "prepare_cmds export HF_TOKEN=*** s.yaml:9:3");
    assert!(!text.contains("s3cret") && !text.contains("abc"), "{text}");
}

#[test]
fn a_relative_folder_in_a_variable_of_xdg_is_ignored() {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("conf/muster/config.yaml", "maxfail: 1\n");
    sandbox.write("home/.config/muster/config.yaml", "maxfail: 2\n");
    let home = sandbox.path("home").display().to_string();
    let relative = [("XDG_CONFIG_HOME", "conf"), ("XDG_STATE_HOME", "state"), ("HOME", home.as_str())];
    let text = shown(&sandbox, &[], &relative);
    assert_eq!(row(&text, "maxfail"), "maxfail 2 [FOLDER]/home/.config/muster/config.yaml:1:1");
    assert_eq!(row(&text, "db"), "db [FOLDER]/home/.local/state/muster/results.db default");
}

#[test]
fn settings_behind_a_folder_that_is_closed_to_this_user_are_not_its_own() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("!!! SKIPPED: running as another user needs root");
        return;
    }
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("home/.config/muster/config.yaml", "maxfail: 1\n");
    let binary = sandbox.for_everybody();
    let mode = |path: &str, mode: u32| {
        fs::set_permissions(sandbox.path(path), fs::Permissions::from_mode(mode)).expect("a mode");
    };
    let run = |args: &[&str]| {
        let mut command = Command::new(&binary);
        command.args(args).current_dir(sandbox.path("")).env_remove("XDG_CONFIG_HOME").env("HOME", sandbox.path("home"));
        sandbox.ended(&command.uid(NOBODY).gid(NOBODY).output().expect("runs"))
    };
    // As `sudo -u` leaves it: the HOME of somebody else.
    mode("home", 0o700);
    let listed = run(&["-c", "check.yaml", "-l"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""));
    let settings = row(&run(&["config", "show"]).stdout, "settings");
    insta::assert_snapshot!(settings, @"settings files not [FOLDER]/home/.config/muster/config.yaml: [FOLDER]/home is closed to this user");
    // A folder of one's own, and a file that is there, are not passed over.
    chown(sandbox.path("home"), Some(NOBODY), Some(NOBODY)).expect("an owner");
    mode("home", 0o000);
    let own = run(&["-c", "check.yaml", "-l"]);
    mode("home", 0o755);
    mode("home/.config/muster/config.yaml", 0o600);
    let there = run(&["-c", "check.yaml", "-l"]);
    let expected = "error: the settings in [FOLDER]/home/.config/muster/config.yaml cannot be read: Permission denied";
    for ended in [own, there] {
        assert!(ended.code == Some(2) && ended.stderr.starts_with(expected), "{:?} {}", ended.code, ended.stderr);
    }
}

/// The exit code and the first line of standard error.
fn said(sandbox: &Sandbox, args: &[&str], env: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = sandbox.command(args);
    command.envs(env.iter().copied());
    let ended = sandbox.ended(&command.output().expect("runs"));
    (ended.code, ended.stderr.lines().next().unwrap_or_default().to_owned())
}

#[test]
fn what_is_typed_drops_what_it_excludes_and_sources_are_named_where_nothing_is_typed() {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("muster.yaml", "checkpath: [check.yaml]\nmax-retries: 1\n");
    assert_eq!(said(&sandbox, &["-r", "--reruns", "1"], &[]).0, Some(0));
    let text = shown(&sandbox, &["--reruns", "1"], &[]);
    assert_eq!(
        (row(&text, "max-retries"), row(&text, "reruns")),
        ("max-retries 0 default".into(), "reruns 1 flag --reruns".into())
    );
    assert_eq!(said(&sandbox, &["-r", "--max-retries", "1"], &[("MUSTER_RERUNS", "2")]).0, Some(0));
    let both = "error: --max-retries (muster.yaml:2:1) and --reruns (environment MUSTER_RERUNS) both say what runs again: give one of them";
    for args in [&["-r"][..], &["doctor"]] {
        assert_eq!(said(&sandbox, args, &[("MUSTER_RERUNS", "2")]), (Some(2), both.to_owned()), "{args:?}");
    }
    // Two that are typed are a mistake as before.
    let typed = "error: --max-retries and --reruns both say what runs again: give one of them";
    assert_eq!(said(&sandbox, &["-r", "--reruns", "1", "--max-retries", "2"], &[]), (Some(2), typed.to_owned()));
    sandbox.write("muster.yaml", "checkpath: [check.yaml]\nresume: true\n");
    assert_eq!(said(&sandbox, &["-r", "--reruns", "1"], &[]).0, Some(0));
}

#[test]
fn a_mode_that_was_set_for_all_commands_does_not_stop_those_that_need_none() {
    let sandbox = Sandbox::with_check(CHECK);
    assert_eq!(said(&sandbox, &["-c", "check.yaml", "-r"], &[]).0, Some(0));
    sandbox.write("report.py", "");
    let commands: [&[&str]; 9] = [
        &["man"],
        &["completions", "bash"],
        &["init", "--scheduler", "local", "made"],
        &["results", "list"],
        &["results", "show"],
        &["top", "--json"],
        &["check", "new", "two"],
        &["convert", "report.py"],
        &["sweep"],
    ];
    for args in commands {
        let (_, line) = said(&sandbox, args, &[("MUSTER_MODE", "nightly")]);
        assert!(!line.contains("no such mode"), "{args:?}: {line}");
    }
    for args in [&["night"][..], &["attach", "latest"], &["config", "show"]] {
        let (_, line) = said(&sandbox, args, &[("MUSTER_MODE", "nightly")]);
        assert!(!line.contains("no such mode"), "{args:?}: {line}");
    }
    sandbox.write("muster.yaml", "mode: nightly\n");
    assert_eq!(said(&sandbox, &["results", "list"], &[]), (Some(0), String::new()));
    // What uses it, or names it, is told.
    for args in [&["-c", "check.yaml", "-r"][..], &["results", "--mode", "x", "list"]] {
        let (code, line) = said(&sandbox, args, &[]);
        assert!(code == Some(2) && line.contains("has no such mode"), "{args:?}: {line}");
    }
}

#[test]
fn sweep_refuses_a_system_that_cannot_be_read() {
    let sandbox = Sandbox::new();
    sandbox.write("site.yaml", "name: trial\npartitions: [{ name: p, scheduler: local }]\n");
    sandbox.write("broken.yaml", "name: [\n");
    assert_eq!(said(&sandbox, &["sweep"], &[]), (Some(0), String::new()));
    assert_eq!(said(&sandbox, &["-C", "site.yaml", "--system", "trial", "sweep"], &[]), (Some(0), String::new()));
    let wrong: [&[&str]; 4] = [
        &["-C", "nope.yaml", "sweep"],
        &["-C", "site.yaml", "--system", "trail", "sweep"],
        &["-C", "site.yaml", "--system", "trial:nope", "sweep"],
        &["-C", "broken.yaml", "--system", "trial", "sweep"],
    ];
    for args in wrong {
        let (code, line) = said(&sandbox, args, &[]);
        assert!(code == Some(2) && line.starts_with("error: "), "{args:?}: {code:?} {line}");
    }
    // A mistake in the file of another system stops no sweep of this one, nor does one that is empty or no text.
    sandbox.write("empty.yaml", "# nothing yet\n");
    fs::write(sandbox.path("latin1.yaml"), b"name: caf\xe9\n").expect("a file");
    for file in ["broken.yaml", "empty.yaml", "latin1.yaml"] {
        let ended = sandbox.muster(&["-C", file, "-C", "site.yaml", "sweep"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "0 job(s) removed\n"), "{file}");
        assert!(ended.stderr.starts_with("warning: a site file has mistakes, and its system is not swept:"), "{}", ended.stderr);
        assert!(ended.stderr.contains(file), "{}", ended.stderr);
    }
}

#[test]
fn templates_that_a_session_cannot_use_are_an_error_of_doctor() {
    let sandbox = Sandbox::new();
    sandbox.write("muster.yaml", "report-templates: nowhere\n");
    let ended = sandbox.muster(&["doctor"]);
    let line = "  error    report templates: the templates in nowhere cannot be used";
    assert!(ended.code == Some(1) && ended.stdout.contains(line), "{}", ended.stdout);
}

#[test]
fn the_secret_of_a_parameter_is_not_shown() {
    let text = shown(&Sandbox::new(), &["-P", "api_token=hunter2,b"], &[]);
    assert!(row(&text, "parameterize").contains("api_token=***") && !text.contains("hunter2"), "{text}");
}

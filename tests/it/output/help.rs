//! The help of a command shows the flags that change what it does, and no others.

use crate::sandbox::Sandbox;
use std::{collections::BTreeSet, fs};

/// Not as `check fmt` writes it.
const CHECK: &str = "name:  one\nvalid_systems: ['*']\nexecutable: 'true'\nsanity: []\n";
const SITE: &str = "name: here\npartitions: [{ name: p, scheduler: local, environs: [default] }]\n\
                    environments: [{ name: default }]\n";

/// Values that a command stumbles over, or leaves a trace of, if it reads them. Colours, and how much is said, show on a terminal alone.
const FLAGS: [(&str, &str); 8] = [
    // A folder with a broken site file: some commands only look for that.
    ("--checkpath", "other"),
    ("--config-file", "nowhere"),
    ("--system", "nowhere"),
    ("--prefix", "check.yaml"),
    ("--stage", "check.yaml"),
    ("--output", "check.yaml"),
    ("--db", "none.db"),
    ("--report-html", "out.html"),
];

/// Commands, and how many of the words name them. Not here: `config show` prints every flag, `attach` and `sweep` need a process that was
/// killed, and `convert` has an `--output` of its own.
const COMMANDS: [(usize, &[&str]); 29] = [
    (1, &["init", "--scheduler", "local", "--site-name", "x"]),
    (1, &["doctor"]),
    (2, &["results", "list"]),
    (2, &["results", "show"]),
    (2, &["results", "causes"]),
    (2, &["results", "compare", "latest", "latest"]),
    (2, &["results", "history", "one"]),
    (2, &["results", "export", "csv"]),
    (2, &["results", "import", "report.json"]),
    (2, &["results", "suggest-references"]),
    (2, &["results", "migrate"]),
    (2, &["results", "rebuild"]),
    (2, &["results", "alias", "one", "two"]),
    (2, &["results", "delete", "nope"]),
    (2, &["results", "backup", "copy.db"]),
    (2, &["results", "prune", "--keep", "1d"]),
    (2, &["results", "annotate", "one", "--from", "2026-11-17", "--reason", "cooling"]),
    (2, &["results", "demo", "year.db", "--systems", "1", "--nights", "2"]),
    (1, &["night"]),
    (1, &["top", "--json"]),
    (2, &["k8s", "role"]),
    (2, &["ec2", "policy"]),
    (2, &["check", "new", "two"]),
    (2, &["check", "lint"]),
    (2, &["check", "fmt", "--check"]),
    (2, &["ec2", "setup", "--print"]),
    (1, &["completions", "bash"]),
    (2, &["kernel", "pipe", "--bytes", "4096", "--milliseconds", "1"]),
    (1, &["man"]),
];

/// What it prints, and what is there after it.
fn ended(model: &Sandbox, args: &[&str]) -> (Option<i32>, String, String, BTreeSet<String>) {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("site.yaml", SITE).write("other/site-config/site.yaml", "name: [\n");
    for file in ["results.db", "report.json"] {
        fs::copy(model.path(file), sandbox.path(file)).expect("a copy");
    }
    let mut command = sandbox.command(args);
    command.env("MUSTER_DB", "results.db");
    let ended = sandbox.ended(&command.output().expect("the binary runs"));
    let there = fs::read_dir(sandbox.path("")).expect("a folder").flatten();
    let there = there.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    // What a kernel measures differs from run to run.
    let is_measured = |letter: char| args[0] == "kernel" && (letter == '.' || letter == ' ' || letter.is_ascii_digit());
    (ended.code, ended.stdout.replace(is_measured, ""), ended.stderr, there)
}

#[test]
fn the_help_of_a_command_shows_exactly_the_flags_that_change_what_it_does() {
    let model = Sandbox::with_check(CHECK);
    let run = model.muster(&["-c", "check.yaml", "-r", "--db", "results.db", "--report-file", "report.json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let mut wrong = Vec::new();
    for (count, words) in COMMANDS {
        let help = model.muster(&[&words[..count], &["--help"]].concat()).stdout;
        let options: Vec<&str> = help.lines().map(str::trim_start).filter(|line| line.starts_with('-')).collect();
        let is_shown = |flag: &str| options.iter().any(|line| line.split([' ', ',', '=', '[']).any(|word| word == flag));
        let without = ended(&model, words);
        for (flag, value) in FLAGS {
            let is_used = ended(&model, &[words, &[flag, value]].concat()) != without;
            // It is refused, for it would mean that other systems lose nothing.
            let is_refused = words[..count] == ["results", "prune"] && flag == "--system";
            if is_used != (is_shown(flag) || is_refused) {
                wrong.push(format!("{}: {flag} is {}", words.join(" "), if is_used { "used" } else { "shown" }));
            }
        }
    }
    assert!(wrong.is_empty(), "used and not shown, or shown and not used:\n{}", wrong.join("\n"));
}

//! The README's commands do what it says: they are the first thing anyone tries.

use crate::sandbox::{Ended, Sandbox};
use std::path::Path;

const KUBECONFIG: &str = "\
apiVersion: v1
kind: Config
current-context: c
contexts: [{ name: c, context: { cluster: c, user: u } }]
users: [{ name: u, user: { token: t } }]
clusters: [{ name: c, cluster: { server: 'https://127.0.0.1:1' } }]
";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The arguments of every `cargo run -- ...` in the README.
fn commands() -> Vec<Vec<String>> {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("a README");
    let commands = readme.split("cargo run -- ").skip(1);
    let until_comment = |text: &str| text.split(['#', '`', '\n']).next().unwrap_or_default().to_owned();
    commands.map(|text| until_comment(text).split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn the_mistakes_that_the_readme_shows_are_printed_for_its_check() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("a README");
    let block = |kind: &str, begins: &str| {
        let blocks = readme.split(kind).skip(1).filter_map(|rest| rest.split("```").next());
        blocks.map(str::to_owned).find(|block| block.starts_with(begins)).unwrap_or_else(|| panic!("no block {begins}"))
    };
    let check = block("```yaml\n", "name: flops");
    let sandbox = Sandbox::new();
    sandbox.write("flops.check.yaml", &check.replace("  threads:", "  thread:").replace("sanity:", "sanitiy:"));
    let run = sandbox.muster(&["-c", "flops.check.yaml", "-l", "--nocolor"]);
    assert_eq!(run.code, Some(2), "{}", run.stdout);
    for mistake in block("```text\n", "error: ").split("\n\n") {
        assert!(run.stderr.contains(mistake.trim_end()), "{mistake}\n{}", run.stderr);
    }
    let whole = Sandbox::with_check(&check).muster(&["-c", ".", "-l", "--nocolor"]);
    assert_eq!((whole.code, &*whole.stderr), (Some(0), ""), "{}", whole.stdout);
}

/// The arguments of every `target/debug/muster ...` in the README.
fn built_commands() -> Vec<Vec<String>> {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("a README");
    let commands = readme.lines().filter_map(|line| line.strip_prefix("target/debug/muster "));
    commands.map(|line| line.split(" #").next().unwrap_or_default().split_whitespace().map(str::to_owned).collect()).collect()
}

/// Runs a command of the README in the root, on no cluster.
fn run(sandbox: &Sandbox, args: &[&str]) -> Ended {
    let kubeconfig = sandbox.write("kubeconfig", KUBECONFIG).path("kubeconfig");
    let mut muster = sandbox.command(args);
    muster.current_dir(root()).env("KUBECONFIG", kubeconfig).env_remove("KUBERNETES_SERVICE_HOST");
    sandbox.ended(&muster.output().expect("runs"))
}

#[test]
fn every_command_for_a_cluster_finds_its_cases() {
    let sandbox = Sandbox::new();
    let mut commands = built_commands();
    commands.retain(|command| command.iter().any(|word| word == "-C"));
    assert_eq!(commands.len(), 4);
    for command in commands {
        let args: Vec<&str> = command.iter().map(|word| if word == "-r" { "--dry-run" } else { word.as_str() }).collect();
        let ended = run(&sandbox, &args);
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{args:?}\n{}", ended.stdout);
        let shown = if args.contains(&"role") { "kind: RoleBinding" } else { "kind: " };
        assert!(ended.stdout.contains(shown), "{args:?}\n{}", ended.stdout);
    }
}

#[test]
fn the_commands_after_a_killed_session_and_the_rehearsal_do_what_the_readme_says() {
    let sandbox = Sandbox::new();
    let prefix = sandbox.path("prefix");
    let prefix = prefix.to_str().expect("text");
    let mut commands = built_commands();
    commands.retain(|command| !command.iter().any(|word| word == "-C"));
    let [attach, sweep, rehearse] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!((attach.join(" "), sweep.join(" ")), ("attach".into(), "sweep".into()));
    let first = run(&sandbox, &["-c", "checks/compute", "-n", "cores=one", "-r", "--prefix", prefix]);
    assert_eq!(first.code, Some(0), "{}{}", first.stdout, first.stderr);
    let ended = run(&sandbox, &["attach"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("was left by a process that is gone"), "{}", ended.stderr);
    assert_eq!(run(&sandbox, &["sweep"]).code, Some(0));
    let outputs = std::fs::read_dir(sandbox.path("prefix/output/local/default/default")).expect("the output folder");
    let log = outputs.map(|entry| entry.expect("an entry").path().join("rfm_job.out")).next().expect("a log");
    let mut args: Vec<&str> = rehearse.iter().map(String::as_str).collect();
    let at = args.iter().position(|word| *word == "last-time/rfm_job.out").expect("a log to judge");
    args[at] = log.to_str().expect("text");
    args.extend(["--prefix", prefix]);
    let judged = run(&sandbox, &args);
    assert_eq!(judged.code, Some(0), "{args:?}\n{}{}", judged.stdout, judged.stderr);
    assert!(judged.stdout.contains("[  PASSED  ] Ran 1/1 test case(s)"), "{}", judged.stdout);
}

#[test]
fn every_command_of_the_readme_ends_well_and_the_first_reports_figures() {
    let sandbox = Sandbox::new();
    let commands = commands();
    assert_eq!(commands.first().map(Vec::as_slice), Some(&["-c", "checks/", "-r", "--performance-report"].map(String::from)[..]));
    for (number, command) in commands.iter().enumerate() {
        let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
        let prefix = sandbox.path("prefix");
        args.extend(["--prefix", prefix.to_str().expect("text")]);
        let ended = sandbox.ended(&sandbox.command(&args).current_dir(root()).output().expect("runs"));
        assert_eq!(ended.code, Some(0), "{args:?}\n{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.stderr, "", "{args:?}");
        if number == 0 {
            for text in ["[  PASSED  ]", "PERFORMANCE REPORT", "GFLOP/s", "GB/s", "MB/s", " us "] {
                assert!(ended.stdout.contains(text), "no `{text}` in\n{}", ended.stdout);
            }
            let failed = ended.stdout.lines().filter(|line| line.trim_end().ends_with(" fail")).count();
            assert_eq!(failed, 0, "{}", ended.stdout);
            assert!(sandbox.path("prefix/reports/out/latest.json").exists());
            assert!(sandbox.muster(&["results", "show"]).stdout.contains("triad"), "the results are not stored");
        }
    }
}

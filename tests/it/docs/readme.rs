//! The README's commands do what it says: they are the first thing anyone tries.

use crate::sandbox::Sandbox;
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

#[test]
fn every_command_for_a_cluster_finds_its_cases() {
    let sandbox = Sandbox::new();
    let readme = std::fs::read_to_string(root().join("README.md")).expect("a README");
    let commands: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("target/debug/muster ")).collect();
    assert_eq!(commands.len(), 2);
    for command in commands {
        let words = command.split(" #").next().unwrap_or_default().split_whitespace();
        let args: Vec<&str> = words.map(|word| if word == "-r" { "--dry-run" } else { word }).collect();
        let kubeconfig = sandbox.write("kubeconfig", KUBECONFIG).path("kubeconfig");
        let mut muster = sandbox.command(&args);
        let ended = sandbox.ended(&muster.current_dir(root()).env("KUBECONFIG", kubeconfig).output().expect("runs"));
        assert_eq!(ended.code, Some(0), "{args:?}\n{}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.contains("@trial:pods"), "{args:?}\n{}", ended.stdout);
    }
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

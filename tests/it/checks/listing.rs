//! `-l`, filters, `--describe`, `--list-tags`, `--dry-run`, `config show`.

use crate::sandbox::Sandbox;
use serde_json::json;

const STREAM: &str = r#"
name: stream
descr: bandwidth of ${{ size }} bytes
tags: [memory, "${{ size }}"]
maintainers: [hpc-support]
valid_systems: ["*"]
parameters: { size: [1024, 2048], mode: [read, write] }
executable: echo
executable_opts: ["${{ size }}", "${{ mode }}"]
sanity: [{ found: '\d' }]
---
name: latency
tags: [network]
valid_systems: [local]
command: [true]
sanity: []
"#;

fn names(stdout: &str) -> Vec<String> {
    let lines = stdout.lines().filter_map(|line| line.strip_prefix("- "));
    lines.map(|line| line.rsplit_once(" /").map_or(line, |(name, _)| name).to_owned()).collect()
}

#[test]
fn filters_mean_what_they_mean_in_reframe() {
    let sandbox = Sandbox::with_check(STREAM);
    let rows: [(&[&str], &[&str]); 12] = [
        (
            &[],
            &[
                "stream %size=1024 %mode=read",
                "stream %size=1024 %mode=write",
                "stream %size=2048 %mode=read",
                "stream %size=2048 %mode=write",
                "latency",
            ],
        ),
        (&["-n", "latency"], &["latency"]),
        (&["-n", "size=1024 %mode=read"], &["stream %size=1024 %mode=read"]),
        (&["-n", "stream%size=2048%mode=write"], &["stream %size=2048 %mode=write"]),
        (&["-n", "!stream"], &["latency"]),
        (&["-n", "stream", "-n", "!read"], &["stream %size=1024 %mode=write", "stream %size=2048 %mode=write"]),
        (&["-x", "stream"], &["latency"]),
        (&["-t", "memory", "-t", "2048"], &["stream %size=2048 %mode=read", "stream %size=2048 %mode=write"]),
        (&["-t", "!memory"], &["latency"]),
        (&["-T", "^1024$", "-T", "net"], &["stream %size=2048 %mode=read", "stream %size=2048 %mode=write"]),
        (&["-E", "check == 'stream' && size > 1500 && mode == 'read'"], &["stream %size=2048 %mode=read"]),
        (&["-E", "scheduler == 'local'", "-E", "'network' in tags"], &["latency"]),
    ];
    for (filter, expected) in rows {
        let args: Vec<&str> = ["-c", "check.yaml", "-l"].into_iter().chain(filter.iter().copied()).collect();
        let ended = sandbox.muster(&args);
        assert_eq!(names(&ended.stdout), expected, "{filter:?}: {}", ended.stderr);
    }
}

#[test]
fn a_case_is_found_again_by_its_hash() {
    let sandbox = Sandbox::with_check(STREAM);
    let all = sandbox.muster(&["-c", "check.yaml", "-l"]);
    let (name, hash) =
        all.stdout.lines().nth(1).and_then(|line| line.strip_prefix("- ")?.rsplit_once(' ')).expect("a listed case");
    let one = sandbox.muster(&["-c", "check.yaml", "-l", "-n", hash]);
    assert_eq!(names(&one.stdout), [name]);
}

#[test]
fn tags_and_descriptions_are_filled_in() {
    let sandbox = Sandbox::with_check(STREAM);
    let tags = sandbox.muster(&["-c", "check.yaml", "--list-tags"]);
    assert_eq!(names(&tags.stdout), ["1024", "2048", "memory", "network"]);
    let described = sandbox.muster(&["-c", "check.yaml", "--describe", "-n", "size=2048.*write"]);
    let described: serde_json::Value = serde_json::from_str(&described.stdout).expect("JSON");
    assert_eq!(described[0]["descr"], "bandwidth of 2048 bytes");
    assert_eq!(described[0]["parameters"]["mode"], "write");
}

#[test]
fn a_case_that_will_be_skipped_is_listed_with_the_reason_and_its_description() {
    let sandbox = Sandbox::with_check(
        r#"
name: dot
descr: a sum of ${{ n }}
valid_systems: ["*"]
parameters: { n: [1, 2] }
executable: echo
sanity: []
when:
  - { if: "n == 2 && partition.name == 'default'", skip: too slow }
"#,
    );
    let listed = |list: &str| sandbox.muster(&["-c", "check.yaml", list]).stdout;
    for list in ["-lC", "-LC", "-L"] {
        let text = listed(list);
        assert!(text.lines().any(|line| line.starts_with("- dot %n=2") && line.ends_with(" (skip: too slow)")), "{text}");
        assert_eq!(text.matches("(skip: ").count(), 1, "{text}");
    }
    assert!(listed("-LC").contains("description:  a sum of 2"), "{}", listed("-LC"));
    let described: serde_json::Value = serde_json::from_str(&listed("--describe")).expect("JSON");
    assert_eq!((&described[0]["cases"][0]["skip"], &described[1]["cases"][0]["skip"]), (&json!(null), &json!("too slow")));
    assert_eq!(described[1]["descr"], "a sum of 2");
}

#[test]
fn variables_and_parameters_are_set_on_the_command_line() {
    let sandbox = Sandbox::with_check(
        r#"
name: a
valid_systems: ["*"]
variables: { blocks: 8, twice: "${{ blocks * 2 }}" }
executable: echo
executable_opts: ["${{ twice }}"]
sanity: []
"#,
    );
    let script = |args: &[&str]| sandbox.muster(&[&["-c", "check.yaml", "--dry-run"], args].concat()).stdout;
    assert!(script(&[]).contains("echo 16"), "{}", script(&[]));
    assert!(script(&["-S", "blocks=5"]).contains("echo 10"));
    assert!(script(&["-S", "a.blocks=6"]).contains("echo 12"));
    assert!(script(&["-S", "time_limit=7m"]).contains("time_limit 7m"));
    let swept = sandbox.muster(&["-c", "check.yaml", "-l", "-P", "blocks=1,2,3"]);
    assert_eq!(names(&swept.stdout), ["a %blocks=1", "a %blocks=2", "a %blocks=3"]);
    let wrong = sandbox.muster(&["-c", "check.yaml", "-l", "-S", "blokcs=1", "-S", "blocks=many"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("did you mean `blocks`?") && wrong.stderr.contains("is a number"), "{}", wrong.stderr);
}

#[test]
fn the_environment_stands_below_the_command_line_and_config_show_says_who_won() {
    let sandbox = Sandbox::with_check(STREAM);
    let shown = sandbox
        .command(&["config", "show", "--prefix", "here"])
        .env("MUSTER_PREFIX", "there")
        .env("MUSTER_EXEC_POLICY", "serial")
        .output();
    let shown = sandbox.ended(&shown.expect("runs"));
    let line = |name: &str| {
        shown
            .stdout
            .lines()
            .find(|line| line.trim_start().starts_with(name))
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(line("prefix"), "prefix here flag --prefix");
    assert_eq!(line("exec-policy"), "exec-policy serial environment MUSTER_EXEC_POLICY");
    assert_eq!(line("stage"), "stage here/stage flag --prefix (prefix)");
    assert_eq!(line("maxfail"), "maxfail - default");
}

#[test]
fn a_site_file_is_found_beside_the_checks_and_its_lines_are_named() {
    let sandbox = Sandbox::new();
    sandbox.write("checks/check.yaml", STREAM);
    sandbox.write("site-config/hpc.yaml", "name: hpc\npartitions:\n  - name: login\n    scheduler: local\n    environs: [gnu]\n    max_jobs: 3\nenvironments: [{ name: gnu }]\n");
    let shown = sandbox.muster(&["config", "show", "--system", "hpc"]);
    assert!(shown.stdout.contains("site-config/hpc.yaml:6:5"), "{}{}", shown.stdout, shown.stderr);
    let listed = sandbox.muster(&["-c", "checks", "-l=C", "--system", "hpc"]);
    assert!(listed.stdout.contains("@hpc:login+gnu"), "{}", listed.stdout);
    // `latency` is for the system `local` only.
    assert!(!listed.stdout.contains("latency"), "{}", listed.stdout);
}

#[test]
fn when_lays_settings_over_in_order() {
    let sandbox = Sandbox::with_check(
        r#"
name: w
valid_systems: ["*"]
tags: [base]
parameters: { n: [1, 2, 3] }
variables: { mode: plain }
time_limit: 1m
executable: echo
executable_opts: ["${{ mode }}", "${{ n }}"]
sanity: []
when:
  - { with: { n: [2, 3] }, variables: { mode: fancy }, tags+: [many] }
  - { if: "n == 3", skip: three is too many }
  - { if: "mode == 'fancy'", time_limit: 2m }
"#,
    );
    let listed = sandbox.muster(&["-c", "check.yaml", "-l", "-t", "many"]);
    assert_eq!(names(&listed.stdout), ["w %n=2"], "{}", listed.stderr);
    let plans = sandbox.muster(&["-c", "check.yaml", "--dry-run"]).stdout;
    assert!(plans.contains("echo plain 1") && plans.contains("time_limit 1m"), "{plans}");
    assert!(plans.contains("echo fancy 2") && plans.contains("time_limit 2m"), "{plans}");
    assert!(!plans.contains("n=3"), "{plans}");
}

const TWO_PARTITIONS: &str =
    "name: cluster\npartitions: [{ name: main, scheduler: local }, { name: low, scheduler: local, max_jobs: 1 }]\n";

#[test]
fn a_selected_partition_leaves_the_names_of_the_others_known() {
    let sandbox = Sandbox::with_check(
        r#"
name: two
valid_systems: ["cluster:main", "cluster:low"]
executable: echo 5
sanity: []
perf_variables: { speed: { pattern: '\d', unit: s } }
reference: { "cluster:low": { speed: [5, null, null, s] } }
when: [{ system: "cluster:low", env_vars: { A: b } }]
"#,
    );
    sandbox.write("site.yaml", TWO_PARTITIONS);
    let listed = sandbox.muster(&["-C", "site.yaml", "--system", "cluster:main", "-c", "check.yaml", "-l=C"]);
    assert!(listed.stdout.contains("@cluster:main"), "{}{}", listed.stdout, listed.stderr);
    assert!(!listed.stdout.contains("@cluster:low"), "{}", listed.stdout);
    assert_eq!((listed.code, &*listed.stderr), (Some(0), ""));
}

#[test]
fn a_site_file_that_is_named_and_not_used_is_warned_of() {
    let sandbox = Sandbox::with_check(STREAM);
    sandbox.write("site.yaml", TWO_PARTITIONS);
    let listed = |args: &[&str]| sandbox.muster(&[&["-c", "check.yaml", "-l"], args].concat());
    let unused = listed(&["-C", "site.yaml"]);
    assert_eq!(unused.code, Some(0), "{}", unused.stderr);
    assert!(unused.stderr.contains("warning: no `hostnames` of the site files match this host"), "{}", unused.stderr);
    assert!(unused.stderr.contains("use --system cluster"), "{}", unused.stderr);
    for args in [&[][..], &["-C", "site.yaml", "--system", "cluster"], &["-C", "site.yaml", "--system", "local"]] {
        let quiet = listed(args);
        assert!(!quiet.stderr.contains("`hostnames`"), "{args:?}: {}", quiet.stderr);
    }
}

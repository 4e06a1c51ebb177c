//! Checks for Kubernetes without a cluster: `--dry-run`, `muster k8s role`, and what they say of mistakes.

use crate::sandbox::{Ended, Sandbox};
use std::path::Path;

const SITE: &str = "
name: site
partitions:
  - name: gpu
    scheduler: k8s
    sched_options:
      context: cluster
      labels: { kueue.x-k8s.io/queue-name: queue }
      policy: { deny: [hostPath, privileged], max_pods: 8 }
";

const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: other
contexts:
  - { name: cluster, context: { cluster: c, user: u, namespace: bench } }
  - { name: other, context: { cluster: c, user: u } }
users: [{ name: u, user: { token: very-secret } }]
clusters: [{ name: c, cluster: { server: 'https://127.0.0.1:1' } }]
";

const IMAGE: &str = r#"
name: in-image
valid_systems: ["site:gpu"]
time_limit: 10m
max_pending_time: 1h
image: rfm.test/busybox:1
executable: echo $$ "${{ identifier }}"
env_vars: { LEVEL: 2 }
sanity: []
"#;

fn sandbox(check: &str) -> Sandbox {
    let sandbox = Sandbox::with_check(check);
    sandbox.write("site.yaml", SITE).write("kubeconfig", KUBECONFIG);
    sandbox
}

/// Runs the binary with the kubeconfig of that name.
fn with_kubeconfig(sandbox: &Sandbox, kubeconfig: &str, args: &[&str]) -> Ended {
    let mut command = sandbox.command(args);
    command.env("KUBECONFIG", sandbox.path(kubeconfig)).env_remove("KUBERNETES_SERVICE_HOST");
    sandbox.ended(&command.output().expect("the binary runs"))
}

fn dry_run(sandbox: &Sandbox, kubeconfig: &str) -> Ended {
    with_kubeconfig(sandbox, kubeconfig, &["-c", "check.yaml", "-C", "site.yaml", "--system", "site", "--dry-run"])
}

/// The API takes nothing but text there.
#[test]
fn numbers_in_the_text_fields_of_a_manifest_become_text() {
    let check = r#"
name: numbers
valid_systems: ["site:gpu"]
time_limit: 10m
parameters: { n: [5] }
k8s_config:
  apiVersion: v1
  kind: Pod
  metadata: { generateName: n-, labels: { size: "${{ n }}", level: 1 } }
  spec:
    containers:
      - { name: main, image: rfm.test/a:1, args: ["-n", "${{ n }}", 0.10], env: [{ name: SIZE, value: "${{ n }}" }], ports: [{ containerPort: 80 }] }
k8s_patch: { spec: { nodeSelector: { pool: "${{ n }}" }, priority: "${{ n }}" } }
sanity: []
"#;
    let ended = dry_run(&sandbox(check), "kubeconfig");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for line in ["size: '5'", "level: '1'", "- '5'", "- '0.10'", "value: '5'", "pool: '5'", "priority: 5", "- containerPort: 80"]
    {
        assert!(ended.stdout.lines().any(|shown| shown.trim() == line), "{line}\n{}", ended.stdout);
    }
}

/// What `-r` would say before the first launch.
#[test]
fn who_only_looks_sees_a_context_that_is_not_there_and_a_wrong_quarantine() {
    let sandbox = sandbox(IMAGE);
    sandbox.write("elsewhere", &KUBECONFIG.replace("name: cluster,", "name: another,"));
    sandbox.write("quarantine.yaml", "- { name: in-image, reason: ticket 1, until: soon }\n");
    let site = ["-c", "check.yaml", "-C", "site.yaml", "--system", "site"];
    for action in ["-l", "-lC", "-L", "--describe", "--dry-run", "-r"] {
        let ended = with_kubeconfig(&sandbox, "elsewhere", &[&site[..], &[action]].concat());
        let code = match action {
            "--dry-run" => 2,
            "-r" => 3,
            _ => 0,
        };
        assert_eq!(ended.code, Some(code), "{action}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("no context `cluster`"), "{action}: {}", ended.stderr);
        let ended = with_kubeconfig(&sandbox, "kubeconfig", &[&site[..], &[action, "--quarantine", "quarantine.yaml"]].concat());
        assert_eq!(ended.code, Some(2), "{action}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("quarantine.yaml:1:"), "{action}: {}", ended.stderr);
    }
    let listed = with_kubeconfig(&sandbox, "kubeconfig", &[&site[..], &["-l"]].concat());
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_context_that_is_not_there_ends_only_its_own_cases() {
    let sandbox = sandbox("name: both\nvalid_systems: ['*']\nimage: rfm.test/a:1\nexecutable: echo hello\nsanity: []\n");
    sandbox.write("elsewhere", &KUBECONFIG.replace("name: cluster,", "name: another,"));
    let local = "partitions:\n  - { name: login, scheduler: local }";
    sandbox.write("site.yaml", &SITE.replace("partitions:", local));
    let args = ["-c", "check.yaml", "-C", "site.yaml", "--system", "site", "-r"];
    let ended = with_kubeconfig(&sandbox, "elsewhere", &args);
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("warning: no context `cluster` in the kubeconfig"), "{}", ended.stderr);
    let report = sandbox.read("reports/out/latest.json");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let of = |case: &serde_json::Value| format!("{} {} {}", case["partition"], case["outcome"]["word"], case["cause"]);
    let mut cases: Vec<String> = report["cases"].as_array().expect("cases").iter().map(of).collect();
    cases.sort();
    insta::assert_snapshot!(cases.join("\n"));
}

#[test]
fn a_wrong_value_of_an_option_is_not_printed() {
    let sandbox = sandbox(IMAGE);
    let options = ["-c", "check.yaml", "-C", "site.yaml", "--system", "site", "-l", "-J"];
    let ended = with_kubeconfig(&sandbox, "kubeconfig", &[&options[..], &["max_lifetime=hunter2"]].concat());
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("-J max_lifetime: "), "{}", ended.stderr);
    assert!(!ended.stderr.contains("max_lifetime=hunter2"), "{}", ended.stderr);
}

#[test]
fn a_dry_run_prints_the_objects_as_they_would_be_sent() {
    let ended = dry_run(&sandbox(IMAGE), "kubeconfig");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ended.stdout);
}

#[test]
fn a_dry_run_works_without_any_kubeconfig_and_says_so() {
    let ended = dry_run(&sandbox(IMAGE), "missing");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let third = ended.stdout.lines().nth(2);
    assert_eq!(third, Some("# context cluster, namespace default, 1 pod(s)"), "{}", ended.stdout);
    let anywhere = sandbox(IMAGE);
    anywhere.write("site.yaml", &SITE.replace("      context: cluster\n", ""));
    let ended = dry_run(&anywhere, "missing");
    let third = ended.stdout.lines().nth(2);
    assert_eq!(third, Some("# no kubeconfig, so the context is not known, namespace default, 1 pod(s)"), "{}", ended.stdout);
}

#[test]
fn what_cannot_run_there_is_reported_once_with_its_place() {
    let check = r#"
name: root
valid_systems: ["site:gpu"]
parameters: { n: [1, 2] }
k8s_config:
  apiVersion: v1
  kind: Pod
  metadata: { generateName: root- }
  spec:
    restartPolicy: Never
    volumes: [{ name: node, hostPath: { path: / } }]
    containers: [{ name: main, image: "rfm.test/busybox:${{ n }}" }]
sanity: []
---
name: elsewhere
valid_systems: ["site:gpu"]
context: clutser
image: rfm.test/busybox:1
command: ["true"]
sanity: []
"#;
    let sandbox = sandbox(check);
    let ended = dry_run(&sandbox, "kubeconfig");
    assert_eq!(ended.code, Some(2));
    insta::assert_snapshot!(ended.stderr);
    let run = with_kubeconfig(&sandbox, "kubeconfig", &["-c", "check.yaml", "-C", "site.yaml", "--system", "site", "-r"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    // A context that is missing is a mistake of the place, and would keep no other case from running.
    let of_run = ended.stderr.replace("error: no context", "warning: no context").replace("2 mistakes", "1 mistake");
    assert_eq!(run.stderr, of_run + "nothing was launched\n");
}

#[test]
fn what_a_site_lays_over_pods_reaches_every_template_and_every_container() {
    let check = r#"
name: gang
valid_systems: ["site:gpu"]
k8s_config:
  apiVersion: batch/v1
  kind: Job
  metadata: { name: gang }
  spec:
    template:
      spec:
        restartPolicy: Never
        initContainers: [{ name: first, image: "rfm.test/busybox:1" }]
        containers: [{ name: one, image: "rfm.test/busybox:1" }, { name: two, image: "rfm.test/busybox:1" }]
k8s_patch: { spec: { template: { spec: { hostUsers: true } } } }
sanity: []
"#;
    let patch = "pod_patch:\n        spec:\n          hostUsers: false\n          containers: [{ name: '*', tty: false }]\n          \
                 initContainers: [{ name: first, stdin: false }]\n";
    let sandbox = sandbox(check);
    sandbox.write("site.yaml", &SITE.replace("      policy:", &format!("      {patch}      policy:")));
    let ended = dry_run(&sandbox, "kubeconfig");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let times = |text: &str| ended.stdout.matches(text).count();
    assert_eq!([times("tty: false"), times("stdin: false"), times("hostUsers: false")], [2, 1, 1], "{}", ended.stdout);
    sandbox.write("site.yaml", &SITE.replace("      policy:", "      pod_patch: { securityContext: {} }\n      policy:"));
    let wrong = dry_run(&sandbox, "kubeconfig");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("a pod template has `metadata` and `spec`, and no `securityContext`"), "{}", wrong.stderr);
}

#[test]
fn a_server_that_does_not_answer_is_named() {
    let sandbox = sandbox(IMAGE);
    let ended =
        with_kubeconfig(&sandbox, "kubeconfig", &["-c", "check.yaml", "-C", "site.yaml", "--system", "site", "--dry-run=server"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stdout.contains("# NOT VALIDATED: "), "{}\n{}", ended.stdout, ended.stderr);
    let (waits, last) = ended.stderr.trim_end().rsplit_once('\n').unwrap_or_default();
    assert_eq!(last, "the server gave no answer for 1 of 1 case(s)");
    let told = "no answer yet from k8s (partition gpu): a server that does not answer is given up after 1m";
    assert!(waits.lines().any(|line| line == told), "{waits}");
}

#[test]
fn the_least_role_is_made_from_the_selected_checks() {
    let sandbox = sandbox(IMAGE);
    let role = |more: &[&str]| {
        let args = [&["k8s", "role", "-c", "check.yaml", "-C", "site.yaml", "--system", "site"], more].concat();
        with_kubeconfig(&sandbox, "kubeconfig", &args)
    };
    let ended = role(&[]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ended.stdout);
    let named = role(&["--namespace", "mine", "--service-account", "runner", "--required-only"]).stdout;
    assert!(named.contains("namespace: mine\n") && named.contains("name: runner\n"), "{named}");
    assert!(!named.contains("bench") && !named.contains("resourcequotas"), "{named}");
    let nothing = with_kubeconfig(&sandbox, "kubeconfig", &["k8s", "role", "-c", "check.yaml", "--system", "local"]);
    assert_eq!(nothing.code, Some(2), "{}", nothing.stderr);
}

#[test]
fn namespace_and_context_of_the_command_line_reach_the_plan_and_config_show_says_who_won() {
    let sandbox = sandbox(IMAGE);
    let third = |more: &[&str]| {
        let args = [&["-c", "check.yaml", "-C", "site.yaml", "--system", "site", "--dry-run"], more].concat();
        with_kubeconfig(&sandbox, "kubeconfig", &args).stdout.lines().nth(2).unwrap_or_default().to_owned()
    };
    assert_eq!(third(&[]), "# context cluster, namespace bench, 1 pod(s)");
    assert_eq!(third(&["-S", "namespace=mine"]), "# context cluster, namespace mine, 1 pod(s)");
    assert_eq!(third(&["-S", "context=other"]), "# context other, namespace default, 1 pod(s)");
    let rows = |kubeconfig: &str, site: &str| {
        sandbox.write("site.yaml", site);
        let args = ["config", "show", "-C", "site.yaml", "--system", "site"];
        let shown = with_kubeconfig(&sandbox, kubeconfig, &args).stdout;
        let rows = shown.lines().filter(|line| ["  context ", "  namespace "].iter().any(|name| line.starts_with(name)));
        rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let open = SITE.replace("      context: cluster\n", "");
    let named = SITE.replace("context: cluster", "namespace: mine");
    assert_eq!(rows("kubeconfig", SITE), ["context cluster site.yaml:6:5", "namespace bench the context's"]);
    assert_eq!(rows("kubeconfig", &open), ["context other the kubeconfig's current context", "namespace default default"]);
    assert_eq!(rows("kubeconfig", &named), ["context other the kubeconfig's current context", "namespace mine site.yaml:6:5"]);
    assert_eq!(rows("missing", &open), ["context - no kubeconfig", "namespace default default"]);
    let unknown = rows("kubeconfig", &SITE.replace("context: cluster", "context: clutser"));
    assert_eq!(unknown, ["context clutser no context `clutser` in the kubeconfig; known: cluster, other"]);
}

#[test]
fn nothing_secret_of_a_kubeconfig_is_printed() {
    let sandbox = sandbox(IMAGE);
    for args in [&["--dry-run"][..], &["-vvv", "--dry-run"], &["-l"]] {
        let args = [&["-c", "check.yaml", "-C", "site.yaml", "--system", "site"], args].concat();
        let ended = with_kubeconfig(&sandbox, "kubeconfig", &args);
        assert!(!format!("{}{}", ended.stdout, ended.stderr).contains("very-secret"));
    }
    sandbox.write("kubeconfig", "users: [{ name: u, user: { token: very-secret } }]\ncontexts: 3");
    let ended = dry_run(&sandbox, "kubeconfig");
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("kubeconfig cannot be read: line 2 is not") && !ended.stderr.contains("very-secret"),
        "{}",
        ended.stderr
    );
}

#[test]
fn the_shipped_checks_plan_and_their_manifests_stay_as_they_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifests = ["checks/nbody/pod.yaml", "checks/nbody/job.yaml", "checks/ipu/ipujob.yaml"].map(|path| root.join(path));
    let texts = || manifests.each_ref().map(|path| std::fs::read_to_string(path).expect("a manifest"));
    let before = texts();
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["-c", "checks/nbody", "-c", "checks/ipu", "--system", "eidf", "--dry-run"]);
    command.current_dir(root).env("KUBECONFIG", sandbox.path("missing")).env_remove("KUBERNETES_SERVICE_HOST");
    let ended = sandbox.ended(&command.output().expect("the binary runs"));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let names: Vec<&str> = ended.stdout.lines().filter_map(|line| line.strip_prefix("  name: ")).collect();
    let expected = [
        "rfm-mnist-training-1-aaaaaaaa",
        "rfm-mnist-training-2-aaaaaaaa",
        "rfm-mnist-training-3-aaaaaaaa",
        "rfm-cuda-test-podaaaaaaaa",
        "rfm-cuda-test-podaaaaaaaa",
        "rfm-jobtest-aaaaaaaa",
    ];
    let mut sorted = names.clone();
    sorted.sort_unstable();
    let mut wanted = expected.to_vec();
    wanted.sort_unstable();
    assert_eq!(sorted, wanted);
    assert!(!ended.stdout.contains("rfm-rfm-"));
    assert_eq!(texts(), before);
}

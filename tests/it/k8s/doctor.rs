//! `muster doctor` against an API server of `tests/fake-api`: what it says, its exit code, and how long it waits.

use crate::{
    common::eventually,
    k8s::preflight::{CHECK, SITE, kubeconfig_of},
    sandbox::{Ended, Sandbox},
    walked::page,
};
use muster_fake_api::{FakeApi, Fault};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use std::{
    net::TcpListener,
    os::unix::process::ExitStatusExt,
    process::Command,
    thread,
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

struct Ground {
    api: FakeApi,
    sandbox: Sandbox,
    runtime: Runtime,
}

impl Ground {
    fn new() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let api = runtime.block_on(FakeApi::start()).expect("a server");
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" }, "status": {
            "conditions": [{ "type": "Ready", "status": "True" }], "allocatable": { "cpu": "8", "memory": "32Gi", "pods": "110" } } });
        api.insert("", node).expect("a known kind");
        let ground = Self { api, sandbox: Sandbox::with_check(CHECK), runtime };
        ground.sandbox.write("site.yaml", SITE);
        ground
    }

    fn doctor(&self, args: &[&str]) -> Ended {
        let mut command = self.sandbox.command(&[&["-C", "site.yaml", "-c", "check.yaml"], args, &["doctor"]].concat());
        command.env("KUBECONFIG", self.api.kubeconfig()).env_remove("KUBERNETES_SERVICE_HOST");
        self.sandbox.ended(&command.output().expect("the binary runs"))
    }

    /// The lines about partitions: those about this machine differ everywhere.
    fn of_partitions(&self, ended: &Ended) -> String {
        let (_, text) = ended.stdout.split_once("\nsite:").expect("a partition");
        let (text, _) = text.rsplit_once('\n').and_then(|(text, _)| text.rsplit_once('\n')).expect("a summary");
        format!("site:{text}").replace(&self.api.url(), "[SERVER]").replace("59m59s", "1h").replace("59m58s", "1h")
    }
}

const HERE: [&str; 4] = ["--system", "site:here", "-n", "pod"];

#[test]
fn a_cluster_on_which_all_is_well_has_a_line_for_each_thing_that_was_looked_at() {
    let ground = Ground::new();
    let ended = ground.doctor(&HERE);
    insta::assert_snapshot!(ground.of_partitions(&ended));
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{}", ended.stdout);
    let machine = ended.stdout.lines().take(7).map(|line| line.split(": ").next().unwrap_or_default()).collect::<Vec<_>>();
    assert!(
        machine[0] == "this machine" && machine[4].ends_with("  database") && machine[6].ends_with("  output"),
        "{machine:?}"
    );
    assert!(ground.api.requests().iter().all(|request| request.method == "GET" || request.has("reviews")), "it creates nothing");
}

#[test]
fn a_missing_right_a_full_quota_and_a_wrong_clock_are_named_with_what_to_do() {
    let ground = Ground::new();
    ground.api.deny("create", "pods");
    ground.api.deny("list", "events");
    ground.api.deny("list", "nodes");
    ground.api.clock_ahead(3600);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "compute"}, "spec": {"hard": {"limits.cpu": "8"}},
        "status": {"hard": {"limits.cpu": "8"}, "used": {"limits.cpu": "8"}}});
    ground.api.insert("default", quota).expect("a known kind");
    let ended = ground.doctor(&["--system", "site:here", "-n", "pod|large|unknown"]);
    insta::assert_snapshot!(ground.of_partitions(&ended));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
}

#[test]
fn files_that_flags_name_are_looked_at_and_none_is_made() {
    let ground = Ground::new();
    ground.sandbox.write("known.yaml", "- { name: pod, reason: ticket 1, until: 2999-01-01 }\n");
    ground.sandbox.write("wrong.yaml", "- { name: pod, reason: ticket 1, until: soon }\n");
    let flags = ["--report-junit", "new/junit.xml", "--report-html", "site.yaml/x.html", "--report-file", "."];
    let lists = ["--quarantine", "known.yaml", "--quarantine", "wrong.yaml", "--quarantine", "gone.yaml"];
    let ended = ground.doctor(&[&HERE[..], &flags, &lists].concat());
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let said = |topic: &str| {
        let mut lines = ended.stdout.lines().filter(|line| line.contains(&format!(" {topic}: ")));
        lines.next().unwrap_or_else(|| panic!("{topic}\n{}", ended.stdout)).to_owned()
    };
    assert!(said("JUnit report").starts_with("  ok ") && !ground.sandbox.path("new").exists(), "{}", said("JUnit report"));
    assert!(said("HTML report").starts_with("  error "), "{}", said("HTML report"));
    assert!(said("report file").starts_with("  error "), "{}", said("report file"));
    assert!(ended.stdout.contains("  ok       quarantine: known.yaml: 1 entries"), "{}", ended.stdout);
    assert!(ended.stdout.contains("  error    quarantine: wrong.yaml:1:"), "{}", ended.stdout);
    assert!(ended.stdout.contains("quarantine: --quarantine gone.yaml cannot be read"), "{}", ended.stdout);
}

#[test]
fn warnings_alone_are_no_failure() {
    let ground = Ground::new();
    ground.api.deny("list", "events");
    let ended = ground.doctor(&HERE);
    assert!(ended.stdout.contains("  warning  rights: rights in namespace default"), "{}", ended.stdout);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
}

#[test]
fn every_partition_is_examined_with_or_without_checks_and_programs_get_an_object() {
    let ground = Ground::new();
    let mut command = ground.sandbox.command(&["-C", "site.yaml", "doctor", "--json"]);
    command.env("KUBECONFIG", ground.api.kubeconfig()).env_remove("KUBERNETES_SERVICE_HOST");
    let ended = ground.sandbox.ended(&command.output().expect("the binary runs"));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let found: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((&found["system"], &found["level"]), (&json!("site"), &json!("error")));
    let findings = found["findings"].as_array().expect("findings");
    let namespace = findings.iter().find(|finding| finding["topic"] == "namespace" && finding["level"] == "error");
    let expected = json!({ "partition": "site:nowhere", "scheduler": "k8s", "topic": "namespace", "level": "error",
        "what": "there is no namespace nowhere (context fake)", "hint": "create it, or set `namespace`" });
    assert_eq!(namespace, Some(&expected));
    assert!(findings.iter().any(|finding| finding["partition"].is_null() && finding["topic"] == "stage"), "{findings:?}");
}

#[test]
fn mistakes_in_files_and_an_empty_selection_are_bad_usage() {
    let ground = Ground::new();
    let none = ground.doctor(&["--system", "site", "-n", "nothing-of-this"]);
    assert_eq!((none.code, &*none.stdout), (Some(2), ""), "{}", none.stderr);
    ground.sandbox.write("site.yaml", "name: site\npartitions: 7\n");
    let broken = ground.doctor(&["--system", "site"]);
    assert_eq!((broken.code, &*broken.stdout), (Some(2), ""), "{}", broken.stderr);
}

#[test]
fn a_context_that_is_not_in_the_kubeconfig_is_one_finding_with_a_hint() {
    let ground = Ground::new();
    let site = "name: site\npartitions: [{ name: here, scheduler: k8s, environs: [default], sched_options: { context: nope } }]\n\
                environments: [{ name: default }]\n";
    ground.sandbox.write("site.yaml", site);
    let ended = ground.doctor(&HERE);
    let said: Vec<&str> = ended.stdout.lines().filter(|line| line.contains("`nope`")).collect();
    assert!(said.len() == 1 && said[0].starts_with("  error    cluster: no context `nope` in"), "{}", ended.stdout);
    assert!(ended.stdout.contains("(correct `context`"), "{}", ended.stdout);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
}

/// What is another on another machine or cluster. The room below `stage`, and so what is said of it, is too.
const DIFFERS: [&str; 13] = [
    "65536",
    "/home/me/.local/state/muster/results.db",
    "31 GiB",
    "  warning  stage",
    "/scratch/me/stage",
    "310 MiB",
    " (remove what is not needed there, or choose another with --stage)",
    "mycluster:gpu",
    "v1.33.1",
    "https://k.example.org:6443",
    "triad, nbody, ior and 3 more",
    "bench (context prod)",
    "...)",
];

#[test]
fn the_example_of_the_page_is_what_it_prints() {
    let page = page("docs/doctor.md");
    let (_, example) = page.split_once("```text\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    // What is too long for the page goes on in the next line.
    let example = example.replace(&format!("\n{}", " ".repeat(11)), " ");
    let ground = Ground::new();
    ground.api.deny("create", "pods");
    let ended = ground.doctor(&["--system", "site:here", "-n", "pod|large|unknown", "--db", "results.db"]);
    let (lines, summary) = example.trim_end().rsplit_once('\n').expect("several lines");
    for line in lines.lines() {
        let fixed = DIFFERS.iter().fold(line.to_owned(), |line, differs| line.replace(differs, "\0"));
        let has_all = |printed: &str| {
            let mut rest = printed;
            fixed.split('\0').all(|part| rest.find(part).map(|at| rest = &rest[at + part.len()..]).is_some())
        };
        assert!(ended.stdout.lines().any(has_all), "{line}\n{}{}", ended.stdout, ended.stderr);
    }
    let count = |level: &str| lines.lines().filter(|line| line.starts_with(&format!("  {level} "))).count();
    assert_eq!(summary, format!("{} ok, {} warning(s), {} error(s)", count("ok"), count("warning"), count("error")));
}

/// A server that takes connections, and answers none.
fn silent(sandbox: &Sandbox, server: &TcpListener) -> Command {
    sandbox.write("site.yaml", SITE).write("kubeconfig", &kubeconfig_of(server));
    let mut command = sandbox.command(&["-C", "site.yaml", "-c", "check.yaml", "-n", "pod", "--system", "site:here", "doctor"]);
    command.env("KUBECONFIG", sandbox.path("kubeconfig")).env("NO_PROXY", "*").env_remove("KUBERNETES_SERVICE_HOST");
    command
}

#[test]
fn a_silent_server_is_given_up_within_seconds_and_a_line_says_what_is_waited_for() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let sandbox = Sandbox::with_check(CHECK);
    let mut command = silent(&sandbox, &server);
    let started = Instant::now();
    let ended = sandbox.ended(&command.output().expect("the binary runs"));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stderr.contains("site:here: waiting for an answer about cluster, 10 s at most"), "{}", ended.stderr);
    let expected =
        "  error    cluster: http://[ADDRESS], namespace default (context silent): no answer within 8 s (look at the address";
    let text = ended.stdout.replace(&server.local_addr().expect("an address").to_string(), "[ADDRESS]");
    assert!(text.contains(expected) && !text.contains("rights"), "{text}");
}

#[test]
fn a_signal_ends_it_at_once() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let sandbox = Sandbox::with_check(CHECK);
    let mut child = silent(&sandbox, &server).spawn().expect("the binary runs");
    thread::sleep(Duration::from_secs(2));
    let started = Instant::now();
    // Not INT, which a shell that starts the tests in the background has them ignore.
    kill_process(Pid::from_child(&child), Signal::TERM).expect("a signal");
    let status = child.wait().expect("its end");
    assert_eq!((status.signal(), started.elapsed() < Duration::from_secs(2)), (Some(15), true), "{status:?}");
}

/// The second server answers the first question, and nothing after it.
#[test]
fn a_place_that_falls_silent_is_named_and_takes_away_no_finding_of_another() {
    let ground = Ground::new();
    let silent = ground.runtime.block_on(FakeApi::named("silent")).expect("a server");
    silent.fault(Fault::late("", "/api", Duration::from_mins(1)).times(1000));
    let (mut both, other) = (ground.api.kubeconfig_parts("first"), silent.kubeconfig_parts("first"));
    for part in ["clusters", "users", "contexts"] {
        both[part].as_array_mut().expect("a list").push(other[part][0].clone());
    }
    let checks = ["fake", "silent"].map(|context| {
        format!("name: on-{context}\nvalid_systems: ['site:here']\nsched_options: {{ context: {context} }}\nimage: rfm.test/busybox:1\n\
                 executable: echo hello\nsanity: []\n")
    });
    ground.sandbox.write("kubeconfig", &both.to_string()).write("check.yaml", &checks.join("---\n"));
    let mut command = ground.sandbox.command(&["-C", "site.yaml", "-c", "check.yaml", "--system", "site:here", "doctor"]);
    command.env("KUBECONFIG", ground.sandbox.path("kubeconfig")).env("NO_PROXY", "*").env_remove("KUBERNETES_SERVICE_HOST");
    let ended = ground.sandbox.ended(&command.output().expect("the binary runs"));
    let text = ended.stdout.replace(&silent.url(), "[SILENT]");
    assert!(text.contains("  error    rights: [SILENT], namespace default (context silent): no answer within 8 s ("), "{text}");
    assert!(text.contains("  warning  capacity: [SILENT], namespace default (context silent): no answer within 8 s ("), "{text}");
    assert!(text.contains("  ok       rights: all ") && text.contains("  ok       namespace: default"), "{text}");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
}

#[test]
fn a_plugin_or_a_file_that_gives_no_answer_is_named_and_the_plugin_is_ended() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let sandbox = Sandbox::with_check(CHECK);
    let said = |change: &dyn Fn(&mut Value)| {
        let mut command = silent(&sandbox, &server);
        let mut kubeconfig: Value = serde_json::from_str(&kubeconfig_of(&server)).expect("JSON");
        change(&mut kubeconfig);
        sandbox.write("kubeconfig", &kubeconfig.to_string());
        let ended = sandbox.ended(&command.output().expect("the binary runs"));
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        ended.stdout
    };
    sandbox.write("plugin.sh", "echo $$ > pid\nexec sleep 300\n");
    let folder = sandbox.path("");
    let line = format!("cd '{}' && . ./plugin.sh", folder.display());
    let exec = json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", line], "interactiveMode": "Never" });
    let text = said(&|kubeconfig| kubeconfig["users"][0]["user"] = json!({ "exec": exec }));
    let expected = "(context silent): the credential plugin `sh` has given no answer within 8 s, and was ended (start it by hand";
    assert!(text.contains(expected) && !text.contains("look at the address"), "{text}");
    let pid = sandbox.read("pid").trim().parse().ok().and_then(Pid::from_raw).expect("it was started");
    eventually("the end of the plugin", Duration::from_secs(5), || test_kill_process(pid).is_err());
    assert!(Command::new("mkfifo").arg(sandbox.path("pipe")).status().expect("mkfifo").success());
    let pipe = sandbox.path("pipe");
    let text = said(&|kubeconfig| kubeconfig["users"][0]["user"] = json!({ "tokenFile": pipe }));
    assert!(text.contains("pipe cannot be read: no answer within 8 s"), "{text}");
    let text = said(&|kubeconfig| kubeconfig["clusters"][0]["cluster"]["certificate-authority"] = json!(pipe));
    assert!(text.contains("pipe cannot be read: no answer within 8 s"), "{text}");
    let mut command = silent(&sandbox, &server);
    let ended = sandbox.ended(&command.env("KUBECONFIG", &pipe).output().expect("the binary runs"));
    assert!(ended.stdout.contains("pipe cannot be read: no answer within 8 s"), "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn a_proxy_where_nothing_listens_is_not_in_order() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let sandbox = Sandbox::with_check(CHECK);
    let mut command = silent(&sandbox, &server);
    let mut kubeconfig: Value = serde_json::from_str(&kubeconfig_of(&server)).expect("JSON");
    kubeconfig["clusters"][0]["cluster"]["proxy-url"] = json!("http://127.0.0.1:1");
    sandbox.write("kubeconfig", &kubeconfig.to_string());
    let ended = sandbox.ended(&command.output().expect("the binary runs"));
    assert!(ended.stdout.contains("  warning  proxy: nothing has come through http://127.0.0.1:1, "), "{}", ended.stdout);
}

#[test]
fn a_site_file_of_which_no_system_is_used_is_a_warning() {
    let sandbox = Sandbox::with_check(CHECK);
    sandbox.write("far.yaml", "name: far\nhostnames: [no-such-host]\npartitions: []\n");
    let ended = sandbox.ended(&sandbox.command(&["-C", "far.yaml", "doctor"]).output().expect("the binary runs"));
    assert!(ended.stderr.contains("warning: no `hostnames` of the site files match this host"), "{}", ended.stderr);
}

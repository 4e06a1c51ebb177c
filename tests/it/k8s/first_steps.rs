//! From nothing to a first run on a cluster, with the commands that `muster init` prints.

use crate::sandbox::Sandbox;
use muster_fake_api::FakeApi;
use tokio::runtime::Runtime;

#[test]
fn what_init_writes_runs_with_the_commands_that_it_prints() {
    let runtime = Runtime::new().expect("a runtime");
    let api = runtime.block_on(FakeApi::start()).expect("a server");
    // What busybox would print of both variants.
    let line = |mib: u64| format!("log copied {} bytes, speed: 1234.5 MB/s", mib << 20);
    api.script("hello", &format!("run; {}; {}; exit 0", line(64), line(256))).expect("a script");
    let sandbox = Sandbox::new();
    let kubeconfig = format!("KUBECONFIG={}", api.kubeconfig().display());
    let paste = |command: &str| {
        let ended = sandbox.paste(&format!("unset KUBERNETES_SERVICE_HOST; {kubeconfig} {command}"), ".");
        assert_eq!(ended.code, Some(0), "{command}: {}{}", ended.stdout, ended.stderr);
        ended.stdout
    };
    let said = paste("muster init --scheduler k8s --context fake --namespace default --site-name cluster");
    for command in said.lines().filter_map(|line| line.trim_start().strip_prefix("muster ")) {
        let command = command.split("  ").next().unwrap_or_default();
        let printed = paste(&format!("muster {command}"));
        assert!(!command.ends_with("-r") || printed.contains("2 pass"), "{printed}");
    }
    assert_eq!(said.matches("muster -c").count(), 4, "{said}");
    // Once more, and a check of one's own.
    paste("muster check new --scheduler k8s checks/hello-again");
    assert!(paste("muster -c checks/hello-again -r").contains("2 pass"));
}

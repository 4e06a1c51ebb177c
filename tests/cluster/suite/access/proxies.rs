//! A cluster behind a proxy, with TLS from end to end: by the environment, by the kubeconfig, and within the cluster.

use crate::common::copy_environment;
use crate::suite::{
    manifest::{check, pod},
    sandbox::{Ended, Sandbox, kubectl},
};
use muster_fake_api::Proxy;
use serde_json::Value;
use std::process::Command;

/// The kubeconfig that the cluster gives to its users.
fn kubeconfig() -> Value {
    serde_json::from_str(&kubectl(&["config", "view", "--raw", "-o", "json"])).expect("a kubeconfig")
}

/// Runs the case; how many tunnels that took, all of them to `server`.
fn tunnels_of(sandbox: &Sandbox, proxy: &Proxy, server: &str, command: &mut Command) -> usize {
    let before = proxy.tunnels().len();
    let ended: Ended = sandbox.ended(&command.output().expect("muster")).expect(0);
    assert_eq!(ended.outcome(), "pass");
    let tunnels = proxy.tunnels().split_off(before);
    assert!(tunnels.iter().all(|target| target == server), "{tunnels:?}");
    tunnels.len()
}

pub(crate) fn a_cluster_behind_a_proxy_is_reached_through_it() {
    let (sandbox, proxy) = (Sandbox::new(), Proxy::start(None).expect("a port"));
    sandbox.write("check.yaml", &check(&pod("echo hello"), ""));
    let mut config = kubeconfig();
    let server = config["clusters"][0]["cluster"]["server"].as_str().expect("a server").replace("https://", "");
    let server = if server.contains(':') { server } else { format!("{server}:443") };
    let run = || sandbox.command(&["-c", "check.yaml", "-r"]);
    assert!(tunnels_of(&sandbox, &proxy, &server, run().env("HTTPS_PROXY", proxy.url())) > 0);
    let spared = [("https_proxy", proxy.url()), ("no_proxy", "192.0.2.0/24".to_owned())];
    assert_eq!(tunnels_of(&sandbox, &proxy, &server, run().envs(spared)), 0);
    config["clusters"][0]["cluster"]["proxy-url"] = proxy.url().into();
    sandbox.write("proxied.json", &config.to_string());
    let proxied = [("KUBECONFIG", sandbox.path("proxied.json").to_string_lossy().into_owned()), ("NO_PROXY", "*".to_owned())];
    assert!(tunnels_of(&sandbox, &proxy, &server, run().envs(proxied)) > 0);
    assert!(tunnels_of(&sandbox, &proxy, &server, within_a_pod(&sandbox, &server).env("https_proxy", proxy.url())) > 0);
}

/// Muster as in a pod: a ServiceAccount's folder where a pod has it, seen by nobody else, and no kubeconfig.
fn within_a_pod(sandbox: &Sandbox, server: &str) -> Command {
    let (host, port) = server.rsplit_once(':').expect("host:port");
    sandbox.kubectl(&[
        "create",
        "rolebinding",
        "edits",
        "--clusterrole=edit",
        &format!("--serviceaccount={}:default", sandbox.namespace),
    ]);
    sandbox.write("token", sandbox.kubectl(&["create", "token", "default"]).trim());
    sandbox.write("namespace", &sandbox.namespace);
    let authority = kubectl(&["get", "configmap", "kube-root-ca.crt", "-o", "jsonpath={.data.ca\\.crt}"]);
    sandbox.write("ca.crt", &authority);
    let script = "mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io && ln -s \"$0\" /run/secrets/kubernetes.io/serviceaccount \
                  && exec \"$@\"";
    let muster = sandbox.command(&["-c", "check.yaml", "-r"]);
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(sandbox.path(".")).arg(muster.get_program()).args(muster.get_args());
    command.current_dir(sandbox.path("."));
    copy_environment(&muster, &mut command);
    command
        .env_remove("KUBECONFIG")
        .env("HOME", "/nowhere")
        .env("KUBERNETES_SERVICE_HOST", host)
        .env("KUBERNETES_SERVICE_PORT", port);
    command.stdin(std::process::Stdio::null());
    command
}

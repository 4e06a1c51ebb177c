//! Proxies with the whole program: which one a cluster is reached through, on an API server whose name only the proxy knows.

use crate::sandbox::{Ended, Sandbox};
use muster_fake_api::{FakeApi, Proxy};
use serde_json::Value;
use tokio::runtime::Runtime;

const CHECK: &str =
    "name: case\nvalid_systems: ['*']\nimage: rfm.test/busybox:1\nexecutable: echo hello\nmax_pending_time: 30s\nsanity: []\n";

const SITE: &str = "name: site\nhostnames: ['.*']\npartitions: [{ name: pods, scheduler: k8s, environs: [default] }]\n\
                    environments: [{ name: default }]\n";

const NAMES: [&str; 6] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"];

/// A server, and a proxy that leads to it whatever it is asked for.
struct Ground {
    api: FakeApi,
    proxy: Proxy,
    sandbox: Sandbox,
    _runtime: Runtime,
}

impl Ground {
    fn new() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let api = runtime.block_on(FakeApi::start()).expect("a server");
        let proxy = Proxy::start(Some(api.url().replace("http://", ""))).expect("a port");
        let ground = Self { api, proxy, sandbox: Sandbox::with_check(CHECK), _runtime: runtime };
        ground.sandbox.write("site.yaml", SITE);
        ground
    }

    /// Runs the case on the server of this address, with more in the kubeconfig's cluster and in the environment.
    fn run(&self, server: &str, proxy_url: Option<&str>, environment: &[(&str, &str)]) -> Ended {
        let mut kubeconfig = self.api.kubeconfig_parts("first");
        let cluster = &mut kubeconfig["clusters"][0]["cluster"];
        cluster["server"] = server.into();
        if let Some(url) = proxy_url {
            cluster["proxy-url"] = url.into();
        }
        self.sandbox.write("kubeconfig", &kubeconfig.to_string());
        let mut command = self.sandbox.command(&["-c", "check.yaml", "-r"]);
        command.env("KUBECONFIG", self.sandbox.path("kubeconfig")).env_remove("KUBERNETES_SERVICE_HOST");
        command.env("MUSTER_CONFIG_FILE", self.sandbox.path("site.yaml"));
        for name in NAMES {
            command.env_remove(name);
        }
        command.envs(environment.iter().copied());
        self.sandbox.ended(&command.output().expect("the binary runs"))
    }
}

/// The kubeconfig's proxy-url, and the environment.
type Row<'a> = (Option<&'a str>, &'a [(&'a str, &'a str)]);

#[test]
fn a_cluster_is_reached_through_the_proxy_of_the_kubeconfig_or_the_environment() {
    let ground = Ground::new();
    let (proxy, named) = (ground.proxy.url(), "http://api.test:8001");
    let rows: [Row; 3] = [
        (Some(&proxy), &[("HTTP_PROXY", "http://127.0.0.1:1"), ("NO_PROXY", "*")]),
        (None, &[("HTTP_PROXY", &proxy), ("NO_PROXY", "other.test")]),
        (None, &[("http_proxy", &proxy.replace("http://", ""))]),
    ];
    for (proxy_url, environment) in rows {
        let before = ground.proxy.tunnels().len();
        let ended = ground.run(named, proxy_url, environment);
        assert_eq!(ended.code, Some(0), "{proxy_url:?} {environment:?}: {}{}", ended.stdout, ended.stderr);
        let tunnels = ground.proxy.tunnels().split_off(before);
        assert!(!tunnels.is_empty() && tunnels.iter().all(|target| target == "api.test:8001"), "{environment:?}: {tunnels:?}");
    }
}

#[test]
fn a_server_on_this_machine_or_in_no_proxy_is_reached_without_a_proxy() {
    let ground = Ground::new();
    let proxy = ground.proxy.url();
    let ended = ground.run(&ground.api.url(), None, &[("HTTP_PROXY", &proxy), ("HTTPS_PROXY", &proxy)]);
    assert_eq!((ended.code, ground.proxy.tunnels()), (Some(0), Vec::new()), "{}{}", ended.stdout, ended.stderr);
    let report: Value = serde_json::from_str(&ground.sandbox.read("reports/out/latest.json")).expect("JSON");
    assert_eq!(report["totals"]["passed"], 1);
}

#[test]
fn what_is_no_proxy_is_a_mistake_of_the_kubeconfig() {
    let ground = Ground::new();
    let ended = ground.run("http://api.test:8001", Some("ftp://user:secret@proxy.test"), &[]);
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    let reported = "context fake cannot be used: proxy-url is an address of `ftp`: use http, https or socks5";
    assert!(ended.stdout.contains(reported) && !ended.stdout.contains("secret"), "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn an_address_of_a_server_without_a_scheme_is_a_mistake_of_the_kubeconfig() {
    let ended = Ground::new().run("api.test:8001", None, &[]);
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("has no scheme: write https://"), "{}{}", ended.stdout, ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

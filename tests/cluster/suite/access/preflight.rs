//! What a cluster says before the first launch: each case learns all that it misses, and nothing of it is created.

use crate::suite::{
    manifest::{check, pod},
    sandbox::{Ended, Sandbox},
};
use serde_json::Value;

/// Each case with its outcome and cause.
fn cases(ended: &Ended) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |case: &Value| format!("{}: {} {}", text(&case["check"]), text(&case["outcome"]["word"]), text(&case["cause"]));
    let mut lines: Vec<String> = ended.report["cases"].as_array().expect("cases").iter().map(line).collect();
    lines.sort();
    lines
}

/// A check of this name; `more` are further lines of it.
fn named(name: &str, manifest: &str, more: &str) -> String {
    check(manifest, more).replace("name: case\n", &format!("name: {name}\n"))
}

pub(crate) fn all_rights_that_an_account_misses_are_named_at_once() {
    let sandbox = Sandbox::as_admin();
    sandbox.kubectl(&["create", "serviceaccount", "few"]);
    sandbox.kubectl(&["create", "role", "few", "--verb=get,list,watch,patch", "--resource=pods"]);
    let account = format!("--serviceaccount={}:few", sandbox.namespace);
    sandbox.kubectl(&["create", "rolebinding", "few", "--role=few", &account]);
    sandbox.write("check.yaml", &named("pod", &pod("echo hello"), ""));
    let mut command = sandbox.command(&["-c", "check.yaml", "-r"]);
    let output = command.env("KUBECONFIG", sandbox.kubeconfig_of("few")).output().expect("muster");
    let ended = sandbox.ended(&output).expect(3);
    let expected = format!(
        "pod: error rights in namespace {} (context sa) are missing: create, delete pods; get pods/log",
        sandbox.namespace
    );
    assert!(cases(&ended)[0].starts_with(&expected), "{:?}", cases(&ended));
    assert_eq!(sandbox.left(), [""; 0]);
}

pub(crate) fn a_namespace_and_a_kind_that_are_missing_are_found_and_other_cases_run() {
    let sandbox = Sandbox::as_admin();
    let gadget = pod("echo hello").replace("apiVersion: v1", "apiVersion: nowhere.test/v1").replace("kind: Pod", "kind: Gadget");
    let checks = [
        named("elsewhere", &pod("echo hello"), "namespace: nowhere"),
        named("gadget", &gadget, ""),
        named("pod", &pod("echo hello"), ""),
    ];
    sandbox.write("check.yaml", &checks.join("---\n"));
    let ended = sandbox.muster(&["-c", "check.yaml", "-r"]).expect(3);
    let cases = cases(&ended);
    assert!(cases[0].starts_with("elsewhere: error there is no namespace nowhere"), "{cases:?}");
    assert!(cases[1].starts_with("gadget: error ") && cases[1].contains("does not know Gadget (nowhere.test/v1)"), "{cases:?}");
    assert_eq!(cases[2], "pod: pass ");
    let shown = sandbox.muster(&["-c", "check.yaml", "--dry-run=server"]).expect(2).stdout;
    assert_eq!(shown.matches("# NOT LAUNCHED: ").count(), 2, "{shown}");
    assert_eq!(sandbox.left(), [""; 0]);
}

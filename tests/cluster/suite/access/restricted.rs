//! A namespace of Pod Security's level `restricted`, and the shipped check that needs nothing but a pod.

use crate::suite::{
    manifest::{check, job, jobset, pod},
    sandbox::{Sandbox, kubectl},
};

/// What the level asks of a pod, as a site says it once for all checks.
const POD_PATCH: &str = "pod_patch: { spec: { \
    securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: RuntimeDefault } }, \
    containers: [{ name: '*', securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: [ALL] } } }] } }";

fn with_pod_patch(sandbox: &Sandbox) {
    let own = format!("namespace: {}", sandbox.namespace);
    sandbox.write("site.yaml", &sandbox.read("site.yaml").replacen(&own, &format!("{own}, {POD_PATCH}"), 1));
}

fn restricted() -> Sandbox {
    let sandbox = Sandbox::new();
    kubectl(&["label", "namespace", &sandbox.namespace, "pod-security.kubernetes.io/enforce=restricted"]);
    sandbox
}

pub(crate) fn a_sites_patch_of_pods_satisfies_the_restricted_level_of_pod_security() {
    let sandbox = restricted();
    let refused = sandbox.check(&check(&pod("echo hello"), "")).expect(3);
    assert!(refused.cause().contains("Pod Security"), "{}", refused.cause());
    with_pod_patch(&sandbox);
    for manifest in [pod("echo hello"), job("completions: 2", "echo hello"), jobset(1, "echo hello")] {
        sandbox.check(&check(&manifest, "")).expect(0);
    }
    assert_eq!(sandbox.left(), [""; 0]);
}

pub(crate) fn the_shipped_check_of_a_pod_passes_with_another_image() {
    let sandbox = restricted();
    with_pod_patch(&sandbox);
    sandbox.copy_checks("pod");
    let ended = sandbox.muster(&["-c", "checks", "-S", "image=rfm.test/busybox:1", "-r", "--performance-report"]).expect(0);
    assert!(ended.stdout.contains("MiB/s"), "{}", ended.stdout);
    assert_eq!(sandbox.left(), [""; 0]);
}

//! A namespace of Pod Security's level `restricted`, and the shipped check that needs nothing but a pod.

use super::{
    manifest::{check, job, jobset, pod},
    place::{Place, kubectl},
};

/// What the level asks of a pod, as a site says it once for all checks.
const POD_PATCH: &str = "pod_patch: { spec: { \
    securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: RuntimeDefault } }, \
    containers: [{ name: '*', securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: [ALL] } } }] } }";

fn with_pod_patch(place: &Place) {
    let own = format!("namespace: {}", place.namespace);
    place.write("site.yaml", &place.read("site.yaml").replacen(&own, &format!("{own}, {POD_PATCH}"), 1));
}

fn restricted() -> Place {
    let place = Place::new();
    kubectl(&["label", "namespace", &place.namespace, "pod-security.kubernetes.io/enforce=restricted"]);
    place
}

pub(crate) fn a_sites_patch_of_pods_satisfies_the_restricted_level_of_pod_security() {
    let place = restricted();
    let refused = place.check(&check(&pod("echo hello"), "")).expect(3);
    assert!(refused.cause().contains("Pod Security"), "{}", refused.cause());
    with_pod_patch(&place);
    for manifest in [pod("echo hello"), job("completions: 2", "echo hello"), jobset(1, "echo hello")] {
        place.check(&check(&manifest, "")).expect(0);
    }
    assert_eq!(place.left(), [""; 0]);
}

pub(crate) fn the_shipped_check_of_a_pod_passes_with_another_image() {
    let place = restricted();
    with_pod_patch(&place);
    place.copy_checks("pod");
    let ended = place.muster(&["-c", "checks", "-S", "image=rfm.test/busybox:1", "-r", "--performance-report"]).expect(0);
    assert!(ended.stdout.contains("MiB/s"), "{}", ended.stdout);
    assert_eq!(place.left(), [""; 0]);
}

//! Muster within the cluster: what `deploy/` says, carried out.

use super::{
    manifest::{check, pod},
    place::{Place, kubectl, script},
};
use serde_json::Value;
use std::fs;

/// What a cluster has and this one has not: a volume for the claim. It is a folder that we can look into.
fn volume(place: &Place) -> String {
    let folder = place.path("volume");
    fs::create_dir(&folder).expect("a folder");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(&folder, open).expect("a folder for everybody");
    format!(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{ name: {0} }}\nspec:\n  capacity: {{ storage: 10Gi }}\n  \
         accessModes: [ReadWriteOnce]\n  hostPath: {{ path: {1} }}\n  claimRef: {{ namespace: {0}, name: muster-results }}\n",
        place.namespace,
        folder.display()
    )
}

/// Begins a night and waits for its end: the exit code of Muster, and what it said.
fn night(place: &Place, name: &str, end: &str) -> (i64, String) {
    place.kubectl(&["create", "job", "--from=cronjob/muster", name]);
    place.kubectl(&["wait", &format!("--for=condition={end}"), "--timeout=2m", &format!("job/{name}")]);
    let pods = place.kubectl(&["get", "pods", "-l", &format!("job-name={name}"), "-o", "json"]);
    let pods: Value = serde_json::from_str(&pods).expect("JSON");
    let code = &pods["items"][0]["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"];
    (code.as_i64().expect("an exit code"), place.kubectl(&["logs", &format!("job/{name}")]))
}

pub(crate) fn a_night_within_the_cluster_leaves_its_results_and_its_exit_code() {
    let place = Place::new();
    let site = "name: mycluster\npartitions: [{ name: pods, scheduler: k8s, environs: [default], max_jobs: 4 }]\n\
                environments: [{ name: default }]\n";
    place.write("site.yaml", site);
    for (name, line) in [("good", "echo hello"), ("bad", "echo sorry")] {
        fs::create_dir_all(place.path("checks").join(name)).expect("a folder");
        let check = check(&pod(line), "parameters: { n: [1, 2] }").replacen("name: case", &format!("name: {name}"), 1);
        place.write(&format!("checks/{name}/check.yaml"), &check);
    }
    let image = format!("rfm.test/{}:1", place.namespace);
    let checks = place.path("checks");
    script("image", &[&image, env!("CARGO_BIN_EXE_muster"), &checks.to_string_lossy()]);

    let role = ["k8s", "role", "-c", "checks/", "--system", "mycluster", "--service-account", "muster", "--namespace"];
    let role = place.muster(&[role.as_slice(), &[&place.namespace]].concat()).expect(0);
    place.create(&role.stdout);
    place.kubectl(&["create", "configmap", "muster-site", "--from-file", &place.path("site.yaml").to_string_lossy()]);
    place.create(&volume(&place));
    let cronjob = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/cronjob.yaml")).expect("the CronJob");
    let cronjob = cronjob.replace("namespace: muster", &format!("namespace: {}", place.namespace));
    let cronjob = cronjob.replace("registry.example.com/muster:0.1.0", &image);
    let of = |folder: &str| cronjob.replace("/checks,", &format!("/checks/{folder},"));

    place.create(&of("good"));
    let (code, said) = night(&place, "good", "complete");
    assert_eq!(code, 0, "{said}");
    let report = || -> Value { serde_json::from_str(&place.read("volume/reports/out/latest.json")).expect("a report") };
    assert_eq!(report()["totals"]["passed"], 2, "{said}");
    assert!(place.path("volume/results.db").exists());
    assert_eq!(place.left(), [""; 0], "{said}");

    place.write("cronjob.yaml", &of("bad"));
    place.kubectl(&["replace", "cronjob", "-f", &cronjob_alone(&place)]);
    let (code, said) = night(&place, "bad", "failed");
    assert_eq!(code, 1, "{said}");
    assert_eq!(report()["totals"]["failed"], 2, "{said}");
    kubectl(&["delete", "persistentvolume", &place.namespace, "--wait=false"]);
}

/// The last document of the file alone: claims cannot be replaced.
fn cronjob_alone(place: &Place) -> String {
    let text = place.read("cronjob.yaml");
    place.write("cronjob.yaml", text.rsplit("\n---\n").next().unwrap_or_default());
    place.path("cronjob.yaml").to_string_lossy().into_owned()
}

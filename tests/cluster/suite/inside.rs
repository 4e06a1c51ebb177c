//! Muster within the cluster: what `deploy/` says, carried out.

use super::{
    manifest::{check, pod},
    place::{Place, kubectl, script},
};
use crate::common::eventually;
use serde_json::Value;
use std::{fs, time::Duration};

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

/// The image of this program and the checks of this place, the Role, and the `CronJob` as it is shipped, with some checks.
fn cronjob(place: &Place) -> impl Fn(&str) -> String {
    let site = "name: mycluster\npartitions: [{ name: pods, scheduler: k8s, environs: [default], max_jobs: 2 }]\n\
                environments: [{ name: default }]\n";
    place.write("site.yaml", site);
    let image = format!("rfm.test/{}:1", place.namespace);
    let checks = place.path("checks");
    script("image", &[&image, env!("CARGO_BIN_EXE_muster"), &checks.to_string_lossy()]);
    let role = ["k8s", "role", "-c", "checks/", "--system", "mycluster", "--service-account", "muster", "--namespace"];
    let role = place.muster(&[role.as_slice(), &[&place.namespace]].concat()).expect(0);
    place.create(&role.stdout);
    place.kubectl(&["create", "configmap", "muster-site", "--from-file", &place.path("site.yaml").to_string_lossy()]);
    place.create(&volume(place));
    let cronjob = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/cronjob.yaml")).expect("the CronJob");
    let cronjob = cronjob.replace("namespace: muster", &format!("namespace: {}", place.namespace));
    let cronjob = cronjob.replace("registry.example.com/muster:0.1.0", &image);
    move |folder| cronjob.replace("/checks,", &format!("/checks/{folder},"))
}

fn report(place: &Place) -> Value {
    serde_json::from_str(&place.read("volume/reports/out/latest.json")).expect("a report")
}

pub(crate) fn a_night_within_the_cluster_leaves_its_results_and_its_exit_code() {
    let place = Place::as_admin();
    for (name, line) in [("good", "echo hello"), ("bad", "echo sorry")] {
        fs::create_dir_all(place.path("checks").join(name)).expect("a folder");
        let check = check(&pod(line), "parameters: { n: [1, 2] }").replacen("name: case", &format!("name: {name}"), 1);
        place.write(&format!("checks/{name}/check.yaml"), &check);
    }
    let of = cronjob(&place);

    place.create(&of("good"));
    let (code, said) = night(&place, "good", "complete");
    assert_eq!(code, 0, "{said}");
    assert_eq!(report(&place)["totals"]["passed"], 2, "{said}");
    assert!(place.path("volume/results.db").exists());
    assert_eq!(place.left(), [""; 0], "{said}");

    place.write("cronjob.yaml", &of("bad"));
    place.kubectl(&["replace", "cronjob", "-f", &cronjob_alone(&place)]);
    let (code, said) = night(&place, "bad", "failed");
    assert_eq!(code, 1, "{said}");
    assert_eq!(report(&place)["totals"]["failed"], 2, "{said}");
    kubectl(&["delete", "persistentvolume", &place.namespace, "--wait=false"]);
}

/// The last document of the file alone: claims cannot be replaced.
fn cronjob_alone(place: &Place) -> String {
    let text = place.read("cronjob.yaml");
    place.write("cronjob.yaml", text.rsplit("\n---\n").next().unwrap_or_default());
    place.path("cronjob.yaml").to_string_lossy().into_owned()
}

/// The process that a pod's only container runs, as it is known outside of it.
fn process_of(place: &Place, pod: &str) -> Option<String> {
    let uid = place.kubectl(&["get", pod, "-o", "jsonpath={.metadata.uid}"]);
    let marks = [uid.clone(), uid.replace('-', "_")];
    let folders = fs::read_dir("/proc").expect("/proc").flatten();
    folders.filter_map(|folder| folder.file_name().into_string().ok()).find(|pid| {
        let text = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        marks.iter().any(|mark| text("cgroup").contains(mark)) && text("comm").trim() == "muster"
    })
}

/// Nights of four cases, two at a time, each killed once: so many seconds after so many of its cases have begun.
pub(crate) fn a_night_whose_pod_is_killed_is_finished_by_the_next_pod() {
    let nights: u32 = std::env::var("MUSTER_KILLED_NIGHTS").ok().and_then(|nights| nights.parse().ok()).unwrap_or(2);
    let place = Place::as_admin();
    fs::create_dir_all(place.path("checks/four")).expect("a folder");
    let four = check(&pod("echo hello; sleep 5"), "parameters: { n: [1, 2, 3, 4] }");
    place.write("checks/four/check.yaml", &four);
    // No night waits for minutes until its forerunner counts as dead.
    let quick = "{ name: TMPDIR, value: /tmp }\n                - { name: RFM_LIVENESS_LIMIT, value: '6' }";
    place.create(&cronjob(&place)("four").replace("{ name: TMPDIR, value: /tmp }", quick));
    for number in 0..nights {
        let job = format!("night-{number}");
        place.kubectl(&["create", "job", "--from=cronjob/muster", &job]);
        let pods = || place.kubectl(&["get", "pods", "-l", &format!("job-name={job}"), "-o", "name"]);
        eventually("the pod of the night", Duration::from_mins(1), || !pods().is_empty());
        let pod = pods().trim().to_owned();
        let begun = || place.kubectl(&["get", "events", "--field-selector=reason=Started", "-o", "name"]).lines().count();
        let (before, wanted) = (begun(), usize::try_from(number % 4).expect("small") + 2);
        eventually("its process", Duration::from_mins(1), || process_of(&place, &pod).is_some());
        // The pod of the night is one of those that start.
        eventually("its cases", Duration::from_mins(1), || begun() >= before + wanted - 1 || process_of(&place, &pod).is_none());
        std::thread::sleep(Duration::from_millis(u64::from(number) * 137 % 2000));
        let Some(pid) = process_of(&place, &pod) else { panic!("the night was over before it was killed") };
        let killed = std::process::Command::new("kill").args(["-KILL", &pid]).status().expect("kill");
        assert!(killed.success());
        place.kubectl(&["wait", "--for=condition=complete", "--timeout=2m", &format!("job/{job}")]);
        let said = place.kubectl(&["logs", &format!("job/{job}")]);
        assert_eq!(pods().lines().count(), 2, "{said}");
        let report = report(&place);
        assert_eq!((&report["totals"]["passed"], report["cases"].as_array().map(Vec::len)), (&4.into(), Some(4)), "{said}");
        let listed = place.muster(&["results", "list", "--db", &place.path("volume/results.db").to_string_lossy()]).stdout;
        assert!(listed.contains(&format!("{} session(s)", number + 1)), "one a night: {listed}{said}");
        assert_eq!(place.left(), [""; 0], "{said}");
    }
    kubectl(&["delete", "persistentvolume", &place.namespace, "--wait=false"]);
}

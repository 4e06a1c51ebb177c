//! Muster within the cluster: what `deploy/` says, carried out.

use crate::common::eventually;
use crate::suite::{
    manifest::{check, pod},
    sandbox::{Sandbox, kubectl, script},
};
use serde_json::Value;
use std::{fs, time::Duration};

/// What a cluster has and this one has not: a volume for the claim. It is a folder that we can look into.
fn volume(sandbox: &Sandbox) -> String {
    let folder = sandbox.path("volume");
    fs::create_dir(&folder).expect("a folder");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(&folder, open).expect("a folder for everybody");
    format!(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{ name: {0} }}\nspec:\n  capacity: {{ storage: 10Gi }}\n  \
         accessModes: [ReadWriteOnce]\n  hostPath: {{ path: {1} }}\n  claimRef: {{ namespace: {0}, name: muster-results }}\n",
        sandbox.namespace,
        folder.display()
    )
}

/// Starts a night and waits for its end: the exit code of Muster, and its output.
fn night(sandbox: &Sandbox, name: &str, end: &str) -> (i64, String) {
    sandbox.kubectl(&["create", "job", "--from=cronjob/muster", name]);
    sandbox.kubectl(&["wait", &format!("--for=condition={end}"), "--timeout=2m", &format!("job/{name}")]);
    let pods = sandbox.kubectl(&["get", "pods", "-l", &format!("job-name={name}"), "-o", "json"]);
    let pods: Value = serde_json::from_str(&pods).expect("JSON");
    let code = &pods["items"][0]["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"];
    (code.as_i64().expect("an exit code"), sandbox.kubectl(&["logs", &format!("job/{name}")]))
}

/// The image of this program and the checks of this place, the Role, and the `CronJob` as it is shipped, with some checks.
fn cronjob(sandbox: &Sandbox) -> impl Fn(&str) -> String {
    let site = "name: mycluster\npartitions: [{ name: pods, scheduler: k8s, environs: [default], max_jobs: 2 }]\n\
                environments: [{ name: default }]\n";
    sandbox.write("site.yaml", site);
    let image = format!("rfm.test/{}:1", sandbox.namespace);
    let checks = sandbox.path("checks");
    script("image", &[&image, env!("CARGO_BIN_EXE_muster"), &checks.to_string_lossy()]);
    let role = ["k8s", "role", "-c", "checks/", "--system", "mycluster", "--service-account", "muster", "--namespace"];
    let role = sandbox.muster(&[role.as_slice(), &[&sandbox.namespace]].concat()).expect(0);
    sandbox.create(&role.stdout);
    sandbox.kubectl(&["create", "configmap", "muster-site", "--from-file", &sandbox.path("site.yaml").to_string_lossy()]);
    sandbox.create(&volume(sandbox));
    let cronjob = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/cronjob.yaml")).expect("the CronJob");
    let cronjob = cronjob.replace("namespace: muster", &format!("namespace: {}", sandbox.namespace));
    let cronjob = cronjob.replace("registry.example.com/muster:0.1.0", &image);
    move |folder| cronjob.replace("/checks,", &format!("/checks/{folder},"))
}

fn report(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&sandbox.read("volume/reports/out/latest.json")).expect("a report")
}

pub(crate) fn a_night_within_the_cluster_leaves_its_results_and_its_exit_code() {
    let sandbox = Sandbox::as_admin();
    for (name, line) in [("good", "echo hello"), ("bad", "echo sorry")] {
        fs::create_dir_all(sandbox.path("checks").join(name)).expect("a folder");
        let check = check(&pod(line), "parameters: { n: [1, 2] }").replacen("name: case", &format!("name: {name}"), 1);
        sandbox.write(&format!("checks/{name}/check.yaml"), &check);
    }
    let of = cronjob(&sandbox);

    sandbox.create(&of("good"));
    let (code, output) = night(&sandbox, "good", "complete");
    assert_eq!(code, 0, "{output}");
    assert_eq!(report(&sandbox)["totals"]["passed"], 2, "{output}");
    assert!(sandbox.path("volume/results.db").exists());
    assert_eq!(sandbox.left(), [""; 0], "{output}");

    sandbox.write("cronjob.yaml", &of("bad"));
    sandbox.kubectl(&["replace", "cronjob", "-f", &cronjob_alone(&sandbox)]);
    let (code, output) = night(&sandbox, "bad", "failed");
    assert_eq!(code, 1, "{output}");
    assert_eq!(report(&sandbox)["totals"]["failed"], 2, "{output}");
    kubectl(&["delete", "persistentvolume", &sandbox.namespace, "--wait=false"]);
}

/// The `CronJob` of the nights alone: claims cannot be replaced.
fn cronjob_alone(sandbox: &Sandbox) -> String {
    let text = sandbox.read("cronjob.yaml");
    let is_night = |document: &&str| document.contains("kind: CronJob\n") && document.contains("{ name: muster, ");
    sandbox.write("cronjob.yaml", text.split("\n---\n").find(is_night).expect("the CronJob"));
    sandbox.path("cronjob.yaml").to_string_lossy().into_owned()
}

/// The process that a pod's only container runs, as it is known outside of it.
fn process_of(sandbox: &Sandbox, pod: &str) -> Option<String> {
    let uid = sandbox.kubectl(&["get", pod, "-o", "jsonpath={.metadata.uid}"]);
    let marks = [uid.clone(), uid.replace('-', "_")];
    let folders = fs::read_dir("/proc").expect("/proc").flatten();
    folders.filter_map(|folder| folder.file_name().into_string().ok()).find(|pid| {
        let text = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        marks.iter().any(|mark| text("cgroup").contains(mark)) && text("comm").trim() == "muster"
    })
}

/// Nights of four cases, two at a time, each killed once: so many seconds after so many of its cases have started.
pub(crate) fn a_night_whose_pod_is_killed_is_finished_by_the_next_pod() {
    let nights: u32 = std::env::var("MUSTER_KILLED_NIGHTS").ok().and_then(|nights| nights.parse().ok()).unwrap_or(2);
    let sandbox = Sandbox::as_admin();
    fs::create_dir_all(sandbox.path("checks/four")).expect("a folder");
    let four = check(&pod("echo hello; sleep 5"), "parameters: { n: [1, 2, 3, 4] }");
    sandbox.write("checks/four/check.yaml", &four);
    // No night waits for minutes until its previous owner counts as gone.
    let quick = "{ name: TMPDIR, value: /tmp }\n                - { name: RFM_LIVENESS_LIMIT, value: '6' }";
    sandbox.create(&cronjob(&sandbox)("four").replace("{ name: TMPDIR, value: /tmp }", quick));
    for number in 0..nights {
        let job = format!("night-{number}");
        sandbox.kubectl(&["create", "job", "--from=cronjob/muster", &job]);
        let pods = || sandbox.kubectl(&["get", "pods", "-l", &format!("job-name={job}"), "-o", "name"]);
        eventually("the pod of the night", Duration::from_mins(1), || !pods().is_empty());
        let pod = pods().trim().to_owned();
        let started = || sandbox.kubectl(&["get", "events", "--field-selector=reason=Started", "-o", "name"]).lines().count();
        let (before, wanted) = (started(), usize::try_from(number % 4).expect("small") + 2);
        eventually("its process", Duration::from_mins(1), || process_of(&sandbox, &pod).is_some());
        // The pod of the night is one of those that start.
        eventually("its cases", Duration::from_mins(1), || {
            started() >= before + wanted - 1 || process_of(&sandbox, &pod).is_none()
        });
        std::thread::sleep(Duration::from_millis(u64::from(number) * 137 % 2000));
        let Some(pid) = process_of(&sandbox, &pod) else { panic!("the night was over before it was killed") };
        let killed = std::process::Command::new("kill").args(["-KILL", &pid]).status().expect("kill");
        assert!(killed.success());
        sandbox.kubectl(&["wait", "--for=condition=complete", "--timeout=2m", &format!("job/{job}")]);
        let output = sandbox.kubectl(&["logs", &format!("job/{job}")]);
        assert_eq!(pods().lines().count(), 2, "{output}");
        let report = report(&sandbox);
        assert_eq!((&report["totals"]["passed"], report["cases"].as_array().map(Vec::len)), (&4.into(), Some(4)), "{output}");
        let listed = sandbox.muster(&["results", "list", "--db", &sandbox.path("volume/results.db").to_string_lossy()]).stdout;
        assert!(listed.contains(&format!("{} session(s)", number + 1)), "one a night: {listed}{output}");
        assert_eq!(sandbox.left(), [""; 0], "{output}");
    }
    kubectl(&["delete", "persistentvolume", &sandbox.namespace, "--wait=false"]);
}

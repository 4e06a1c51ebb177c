//! The printed Role: enough for a case from its launch to its cleanup, a harness that was killed in between included, and
//! each verb of it necessary. As a table: what runs, and which verbs such a run does not show.

use crate::suite::{
    manifest::{job, jobset, pod},
    sandbox::{Ended, Sandbox},
    workloads::custom_resources::{Custom, Operator},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, path::Path, thread};

/// A Lease tells others that the session lives: without it a session runs, and `muster sweep` elsewhere cannot tell.
const LEASE: [(&str, &str); 5] =
    [("create", "leases"), ("get", "leases"), ("list", "leases"), ("update", "leases"), ("delete", "leases")];

const IDENTIFIER: &str = "abcdefgh";

/// As many rights are tried at once: each run mostly waits.
const AT_ONCE: usize = 4;

/// One verb on one resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    group: String,
    resource: String,
    verb: String,
}

/// What runs.
struct Scene {
    /// Documents before the workload, each with its end.
    helpers: String,
    workload: String,
    custom: Option<&'static Custom>,
    /// Verbs that such a run does not show.
    unseen: Vec<(&'static str, &'static str)>,
}

impl Scene {
    fn of(workload: String) -> Self {
        Self { helpers: String::new(), workload, custom: None, unseen: Vec::new() }
    }
}

pub(crate) fn the_role_of_a_pod_is_enough_and_each_verb_is_needed() {
    proved(&Scene::of(pod("echo hello")));
}

pub(crate) fn the_role_of_a_pod_with_an_account_of_its_own_is_enough() {
    let helpers = "apiVersion: v1\nkind: ServiceAccount\nmetadata: { name: runner }\n---\n".to_owned();
    let workload = pod("echo hello").replace("restartPolicy", "serviceAccountName: runner\n  restartPolicy");
    let (_, ended) = run_without(&Scene { helpers, ..Scene::of(workload) }, None);
    assert_eq!(outcomes(&ended), ["bad: fail", "good: pass"], "{}{}", ended.stdout, ended.stderr);
}

pub(crate) fn the_role_of_a_job_is_enough_and_each_verb_is_needed() {
    proved(&Scene::of(job("completions: 1\n  backoffLimit: 0", "echo hello")));
}

pub(crate) fn the_role_of_a_jobset_is_enough_and_each_verb_is_needed() {
    // Pods are deleted one by one only where an operator does not own them.
    proved(&Scene { unseen: vec![("delete", "pods")], ..Scene::of(jobset(1, "echo hello")) });
}

pub(crate) fn the_role_of_a_custom_resource_with_helpers_is_enough_and_each_verb_is_needed() {
    let helper = |kind: &str, more: &str| format!("apiVersion: v1\nkind: {kind}\nmetadata: {{ name: helper }}\n{more}\n---\n");
    let helpers =
        [helper("ConfigMap", "data: {}"), helper("Secret", "stringData: {}"), helper("Service", "spec: { clusterIP: None }")];
    let gang = "apiVersion: rights.test/v1\nkind: Gang\nmetadata: { name: gang }\nspec: {}\n";
    // Of the owners that may stand between, this operator makes Jobs alone, and its pods have no probes.
    let others = ["pods", "deployments", "replicasets", "statefulsets"].map(|owner| ("get", owner));
    let unseen = [&[("delete", "pods"), ("list", "events")], &others[..]].concat();
    proved(&Scene { helpers: helpers.concat(), custom: Some(&GANG), unseen, ..Scene::of(gang.to_owned()) });
}

/// A kind without templates for its pods: our label does not reach them, and they are found by their owners.
const GANG: Custom = Custom {
    name: "gangs.rights.test",
    definition: "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: gangs.rights.test }
spec:
  group: rights.test
  scope: Namespaced
  names: { kind: Gang, plural: gangs, singular: gang }
  versions:
    - name: v1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
",
    // For every Gang a Job that it owns.
    operator: r#"
cd "$1"
kubectl -n "$NS" get gangs -w -o jsonpath='{.metadata.name} {.metadata.uid}{"\n"}' | while read -r name uid; do
  [ -e "made-$uid" ] && continue
  touch "made-$uid"
  kubectl -n "$NS" create -f - >/dev/null 2>&1 <<END
apiVersion: batch/v1
kind: Job
metadata:
  name: $name
  ownerReferences: [{ apiVersion: rights.test/v1, kind: Gang, name: $name, uid: $uid, controller: true, blockOwnerDeletion: true }]
spec:
  backoffLimit: 0
  template:
    spec: { restartPolicy: Never, containers: [{ name: main, image: 'rfm.test/busybox:1', command: [echo, hello] }] }
END
done
"#,
};

/// Runs with all rights of the printed Role, and without each of them that is not `unseen`, in namespaces of their own.
fn proved(scene: &Scene) {
    let (all, enough) = run_without(scene, None);
    assert_eq!(outcomes(&enough), ["bad: fail", "good: pass"], "{}{}", enough.stdout, enough.stderr);
    assert!(!is_refused(&enough), "{}{}", enough.stdout, enough.stderr);

    let is_unseen = |right: &Right| LEASE.iter().chain(&scene.unseen).any(|unseen| *unseen == (&*right.verb, &*right.resource));
    let tried: Vec<&Right> = all.iter().filter(|right| !is_unseen(right)).collect();
    assert!(tried.len() + LEASE.len() + scene.unseen.len() == all.len(), "what is unseen is not in the Role: {all:?}");
    for some in tried.chunks(AT_ONCE) {
        let run = |right| move || (right, run_without(scene, Some(right)).1);
        let ended = thread::scope(|scope| {
            let running: Vec<_> = some.iter().map(|right| scope.spawn(run(*right))).collect();
            running.into_iter().map(|run| run.join().expect("a run")).collect::<Vec<_>>()
        });
        for (right, ended) in ended {
            let noticed = outcomes(&ended) != ["bad: fail", "good: pass"] || is_refused(&ended);
            assert!(noticed, "{right:?} is not needed: {}{}", ended.stdout, ended.stderr);
        }
    }
}

/// Runs as an account that has the printed Role without one right. Also, what was printed.
fn run_without(scene: &Scene, missing: Option<&Right>) -> (BTreeSet<Right>, Ended) {
    let sandbox = Sandbox::as_admin();
    let _operator = scene.custom.map(|custom| Operator::start(&sandbox, custom));
    sandbox.write("workload.yaml", &format!("{}{}", scene.helpers, scene.workload));
    sandbox.write("taken.yaml", &taken(&scene.workload));
    let check = |name: &str, sanity: &str| {
        format!(
            "name: {name}\nvalid_systems: ['*']\ntime_limit: 1m\nmax_pending_time: 1m\nsanity: [{{ {sanity} }}]\nk8s_config: \
             workload.yaml\n"
        )
    };
    // One is deleted, and one is kept.
    sandbox.write("check.yaml", &[check("good", "found: hello"), check("bad", "not_found: hello")].join("---\n"));
    let printed = ["k8s", "role", "--required-only", "-c", "check.yaml", "--service-account", "muster"];
    let printed = sandbox.muster(&printed).expect(0).stdout;
    sandbox.kubectl(&["create", "serviceaccount", "muster"]);
    sandbox.create(&printed);
    let all = rights(&sandbox);
    if let Some(missing) = missing {
        give(&sandbox, all.iter().filter(|other| *other != missing));
    }
    let ended = killed_and_finished(&sandbox, &sandbox.kubeconfig_of("muster"));
    (all, ended)
}

/// The workload under the name that the first case would give it, as another session's: whose it is has to be read.
fn taken(workload: &str) -> String {
    let (before, rest) = workload.split_once("metadata: { name: ").expect("a name");
    let (name, rest) = rest.split_once(" }").expect("its end");
    let labels = format!("labels: {{ rfm: {IDENTIFIER}, rfm-session: another }}");
    // The account of the manifest is not there yet.
    let rest = rest.replace("serviceAccountName: runner\n  ", "");
    format!("{before}metadata: {{ name: rfm-{name}-{IDENTIFIER}, {labels} }}{rest}")
}

/// The first launch meets a name that is taken. The harness is killed when a launch was answered and before that is stored, so
/// that `attach` has to find what is there.
fn killed_and_finished(sandbox: &Sandbox, kubeconfig: &Path) -> Ended {
    let run = |args: &[&str], crash: bool| {
        let mut command = sandbox.command(args);
        command.env("KUBECONFIG", kubeconfig);
        if crash {
            command.env("RFM_CRASH_AT", "launched").env("RFM_IDENTIFIERS", IDENTIFIER);
        }
        sandbox.ended(&command.output().expect("muster"))
    };
    sandbox.kubectl(&["create", "-f", &sandbox.path("taken.yaml").to_string_lossy()]);
    let killed = run(&["-c", "check.yaml", "-r"], true);
    if killed.code.is_none() { run(&["attach", "latest"], false) } else { killed }
}

fn outcomes(ended: &Ended) -> Vec<String> {
    let cases = ended.report["cases"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut outcomes: Vec<String> =
        cases.iter().map(|case| format!("{}: {}", text(&case["check"]), text(&case["outcome"]["word"]))).collect();
    outcomes.sort();
    outcomes
}

fn is_refused(ended: &Ended) -> bool {
    [&ended.stdout, &ended.stderr].iter().any(|output| output.contains("forbidden") || output.contains("the right to"))
}

/// The rights of the namespace's Role, one by one.
fn rights(sandbox: &Sandbox) -> BTreeSet<Right> {
    let role: Value = serde_json::from_str(&sandbox.kubectl(&["get", "role", "muster", "-o", "json"])).expect("JSON");
    let texts = |rule: &Value, key: &str| -> Vec<String> { serde_json::from_value(rule[key].clone()).expect("a list of texts") };
    let mut rights = BTreeSet::new();
    for rule in role["rules"].as_array().expect("rules") {
        for resource in texts(rule, "resources") {
            for verb in texts(rule, "verbs") {
                let group = texts(rule, "apiGroups").remove(0);
                rights.insert(Right { group, resource: resource.clone(), verb });
            }
        }
    }
    rights
}

fn give<'a>(sandbox: &Sandbox, rights: impl Iterator<Item = &'a Right>) {
    let rule = |right: &Right| json!({ "apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb] });
    let rules: Vec<Value> = rights.map(rule).collect();
    sandbox.kubectl(&["patch", "role", "muster", "--type=merge", "-p", &json!({ "rules": rules }).to_string()]);
}

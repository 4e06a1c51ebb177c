//! Tests of the files that are kept, and of the commands.

use super::*;
use crate::{
    api::Resource,
    job::Object,
    status::testing::{Scene, yaml as value},
};

#[test]
fn nothing_secret_and_nothing_of_the_servers_is_kept() {
    let object = value(
        "
kind: Deployment
metadata:
  name: x
  managedFields: [{manager: muster}]
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}', note: kept}
spec:
  template:
    spec:
      imagePullSecrets: [{name: pull-secret}]
      containers:
        - name: main
          env:
            - {name: DB_PASSWORD, value: hunter2}
            - {name: AwsAccessKeyId, value: AKIA}
            - {name: GITHUB_TOKEN, valueFrom: {secretKeyRef: {name: s, key: k}}}
            - {name: MY_CREDS, value: x}
            - {name: THREADS, value: '8'}
items:
  - {kind: Secret, data: {a: aHVudGVyMg==}, stringData: {b: hunter2}}
  - {kind: ConfigMap, data: {a: shown}}",
    );
    insta::assert_snapshot!(yaml(&redacted(&object)), @"
        kind: Deployment
        metadata:
          name: x
          annotations:
            note: kept
        spec:
          template:
            spec:
              imagePullSecrets:
              - name: pull-secret
              containers:
              - name: main
                env:
                - name: DB_PASSWORD
                  value: '***'
                - name: AwsAccessKeyId
                  value: '***'
                - name: GITHUB_TOKEN
                  valueFrom:
                    secretKeyRef:
                      name: s
                      key: k
                - name: MY_CREDS
                  value: '***'
                - name: THREADS
                  value: '8'
        items:
        - kind: Secret
          data:
            a: '***'
          stringData:
            b: '***'
        - kind: ConfigMap
          data:
            a: shown
        ");
}

fn scene() -> Scene {
    Scene::job("{metadata: {labels: {rfm: aotugiob}}, status: {failed: 1}}")
        .pod("x-b", "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}")
        .pod(
            "x-a",
            "{spec: {nodeName: n2}, status: {phase: Failed, conditions: [{type: Ready, status: 'False', reason: PodFailed}]}}",
        )
        .pod("x-c", "status: {phase: Running}")
        .gone()
        .event("Job x", "FailedCreate", "Error creating: \u{1b}[31mred\nlines")
        .event("Pod x-a", "Pulling", "Pulling image \"i\"")
}

#[test]
fn the_diagnosis_is_owner_pods_nodes_and_events() {
    let mut scene = scene();
    scene.observed.trouble.denied = vec!["get workloads.kueue.x-k8s.io".into()];
    let files = files(&scene.handle, &scene.observed);
    let text: Vec<_> = files.iter().map(|(name, text)| format!("== {name}\n{text}")).collect();
    insta::assert_snapshot!(text.concat(), @r#"
        == owner.yaml
        apiVersion: batch/v1
        kind: Job
        metadata:
          name: x
          uid: u
          labels:
            rfm: aotugiob
        spec: {}
        status:
          failed: 1
        == pods.yaml
        ---
        apiVersion: v1
        kind: Pod
        metadata:
          creationTimestamp: 2026-01-01T10:00:00Z
          name: x-b
          uid: u
        spec:
          containers:
          - name: main
          nodeName: n1
          restartPolicy: Never
        status:
          conditions:
          - status: 'True'
            type: Ready
          phase: Running
          startTime: 2026-01-01T10:00:01Z
        ---
        apiVersion: v1
        kind: Pod
        metadata:
          creationTimestamp: 2026-01-01T10:00:00Z
          name: x-a
          uid: u
        spec:
          containers:
          - name: main
          nodeName: n2
          restartPolicy: Never
        status:
          conditions:
          - reason: PodFailed
            status: 'False'
            type: Ready
          phase: Failed
          startTime: 2026-01-01T10:00:01Z
        --- # vanished; as it was last
        apiVersion: v1
        kind: Pod
        metadata:
          creationTimestamp: 2026-01-01T10:00:00Z
          name: x-c
          uid: u
        spec:
          containers:
          - name: main
          nodeName: n1
          restartPolicy: Never
        status:
          phase: Running
          startTime: 2026-01-01T10:00:01Z
        == nodes.txt
        NODE  POD  PHASE           NOT TRUE
        n1    x-b  Running         -
        n1    x-c  Running (gone)  -
        n2    x-a  Failed          Ready(PodFailed)
        == events.txt
        LAST SEEN             TYPE     REASON        OBJECT   COUNT  MESSAGE
        2026-01-01T10:00:04Z  Warning  FailedCreate  job/x    1      Error creating:  [31mred lines
        2026-01-01T10:00:04Z  Normal   Pulling       pod/x-a  1      Pulling image "i"
        # not seen: the right is missing to get workloads.kueue.x-k8s.io
        "#);
}

#[test]
fn what_is_empty_is_no_file() {
    let scene = Scene::of("Pod");
    assert!(files(&scene.handle, &scene.observed).is_empty());
    let scene = Scene::own_pod("status: {phase: Failed}").object("{}");
    let names: Vec<_> = files(&scene.handle, &scene.observed).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["pods.yaml", "nodes.txt"], "the pod is its own owner");
}

#[test]
fn the_commands_are_exact() {
    let Scene { mut handle, observed, .. } = scene();
    handle.objects[0].resource.plural = Some("jobs".into());
    handle.objects[0].manifest = value("{metadata: {labels: {rfm: aotugiob}}}");
    handle.objects[0].uid = Some("u".into());
    let config = Object {
        resource: Resource { plural: Some("configmaps".into()), ..Resource::of("v1", "ConfigMap") },
        name: "x-data".into(),
        manifest: Value::Null,
        uid: Some("v".into()),
    };
    handle.objects.insert(0, config);
    handle.workload = 1;
    insta::assert_snapshot!(look(&handle, &observed).join("\n"), @"
        kubectl --context eidf -n ns describe jobs.batch x
        kubectl --context eidf -n ns get pods -o wide -l rfm=aotugiob
        kubectl --context eidf -n ns describe pods x-a
        kubectl --context eidf -n ns logs x-a --all-containers --prefix
        kubectl --context eidf -n ns describe pods x-b
        kubectl --context eidf -n ns logs x-b --all-containers --prefix
        ");
    insta::assert_snapshot!(delete(&handle).join("\n"), @"kubectl --context eidf -n ns delete --ignore-not-found jobs.batch/x configmaps/x-data");
    handle.objects[0].uid = None;
    insta::assert_snapshot!(delete(&handle).join("\n"), @"kubectl --context eidf -n ns delete --ignore-not-found jobs.batch/x");
    let pod = Scene::own_pod("status: {phase: Failed}");
    insta::assert_snapshot!(look(&pod.handle, &pod.observed).join("\n"), @"
        kubectl --context eidf -n ns describe pod x
        kubectl --context eidf -n ns logs x --all-containers --prefix
        ");
}

#[test]
fn a_shell_reads_the_words_as_they_are() {
    let place = ClusterPlace { context: Some("it's $HOME".into()), namespace: "n s".into() };
    insta::assert_snapshot!(kubectl(&place, &["get", "", "a/b"]), @r#"kubectl --context 'it'\''s $HOME' -n 'n s' get '' a/b"#);
    let place = ClusterPlace { context: None, namespace: "ns".into() };
    insta::assert_snapshot!(kubectl(&place, &["get", "pods"]), @"kubectl -n ns get pods");
}

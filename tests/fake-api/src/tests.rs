use super::*;
use std::time::{Duration, Instant};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::sleep,
};

/// One request, spoken by hand: the status and the body, or what of it came.
async fn ask(api: &FakeApi, method: &str, target: &str, body: &Value) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", api.port)).await.unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "{method} {target} HTTP/1.0\r\nContent-Type: application/merge-patch+json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, body.to_owned())
}

async fn get(api: &FakeApi, target: &str) -> (u16, String) {
    ask(api, "GET", target, &Value::Null).await
}

fn pod(name: &str, script: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"rfm": "a"}, "annotations": {"fake-api/script": script}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "resources": {"requests": {"cpu": "500m"}}}]}})
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        sleep(Duration::from_millis(5)).await;
    }
}

fn phase(api: &FakeApi, name: &str) -> String {
    let pod = api.get("pods", "default", name).unwrap_or_default();
    pod["status"]["phase"].as_str().unwrap_or("gone").to_owned()
}

#[tokio::test]
async fn a_pod_lives_as_its_script_says() {
    let api = FakeApi::start().await.unwrap();
    api.create("default", pod("p", "run; log one; log two; exit 3 OOMKilled")).unwrap();
    until("p ends", || phase(&api, "p") == "Failed").await;
    let ended = api.get("pods", "default", "p").unwrap();
    let state = &ended["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&state["exitCode"], &state["reason"]), (&json!(3), &json!("OOMKilled")));
    let (_, log) = get(&api, "/api/v1/namespaces/default/pods/p/log").await;
    assert_eq!(log, "one\ntwo\n");
    let (_, stamped) = get(&api, "/api/v1/namespaces/default/pods/p/log?timestamps=true&follow=true").await;
    assert_eq!(stamped.lines().next().map(str::len), Some("2023-11-14T22:13:20.123456789Z one".len()));
}

#[tokio::test]
async fn a_deleted_pod_ends_and_goes_and_a_deadline_only_ends_it() {
    let api = FakeApi::start().await.unwrap();
    for name in ["p", "q"] {
        api.create("default", pod(name, "run; hang")).unwrap();
        until("it runs", || phase(&api, name) == "Running").await;
    }
    assert!(api.delete("pods", "default", "p", false));
    until("p is gone", || phase(&api, "p") == "gone").await;
    let patch = json!({"spec": {"activeDeadlineSeconds": 0}});
    assert_eq!(ask(&api, "PATCH", "/api/v1/namespaces/default/pods/q", &patch).await.0, 200);
    until("q has ended", || phase(&api, "q") == "Failed").await;
    assert_eq!(api.get("pods", "default", "q").unwrap()["status"]["reason"], "DeadlineExceeded");
}

#[tokio::test]
async fn a_job_makes_pods_until_enough_have_succeeded() {
    let api = FakeApi::start().await.unwrap();
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"completions": 3, "parallelism": 2,
        "completionMode": "Indexed", "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]}}}});
    api.create("default", job).unwrap();
    let complete =
        || api.get("jobs.batch", "default", "j").is_some_and(|job| job["status"]["conditions"][1]["type"] == "Complete");
    until("the job is complete", complete).await;
    let mut indexes: Vec<String> = api
        .list("pods", "default")
        .iter()
        .map(|pod| pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"].to_string())
        .collect();
    indexes.sort();
    assert_eq!(indexes, ["\"0\"", "\"1\"", "\"2\""]);
    let (status, _) =
        ask(&api, "DELETE", "/apis/batch/v1/namespaces/default/jobs/j", &json!({"propagationPolicy": "Foreground"})).await;
    assert_eq!(status, 200);
    until("all is gone", || api.list("pods", "default").is_empty() && api.get("jobs.batch", "default", "j").is_none()).await;
}

#[tokio::test]
async fn a_job_that_is_deleted_as_the_raw_api_does_leaves_its_pods() {
    let api = FakeApi::start().await.unwrap();
    let template = json!({"spec": {"containers": [{"name": "main"}]}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}});
    api.create("default", job).unwrap();
    until("a pod is there", || !api.list("pods", "default").is_empty()).await;
    ask(&api, "DELETE", "/apis/batch/v1/namespaces/default/jobs/j", &Value::Null).await;
    assert!(api.get("jobs.batch", "default", "j").is_none());
    assert_eq!(api.list("pods", "default").len(), 1);
}

#[tokio::test]
async fn a_quota_speaks_as_the_server_does() {
    let api = FakeApi::start().await.unwrap();
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "compute"}, "spec": {"hard": {"requests.cpu": "1", "count/pods": "5"}}});
    api.create("default", quota).unwrap();
    api.create("default", pod("a", "run; hang")).unwrap();
    api.create("default", pod("b", "run 50ms; exit 0")).unwrap();
    insta::assert_snapshot!(api.create("default", pod("c", "run")).unwrap_err(),
        @r#"pods "c" is forbidden: exceeded quota: compute, requested: requests.cpu=500m, used: requests.cpu=1, limited: requests.cpu=1"#);
    let (status, dry) = ask(&api, "POST", "/api/v1/namespaces/default/pods?dryRun=All", &pod("c", "run")).await;
    assert!(status == 403 && dry.contains("exceeded quota"), "{dry}");
    let mut silent = pod("d", "run");
    silent["spec"]["containers"][0]["resources"] = json!({});
    insta::assert_snapshot!(api.create("default", silent).unwrap_err(),
        @r#"pods "d" is forbidden: failed quota: compute: must specify requests.cpu for: main"#);
    until("b has ended", || phase(&api, "b") == "Succeeded").await;
    api.create("default", pod("c", "run; hang")).unwrap();
    let used = api.get("resourcequotas", "default", "compute").unwrap()["status"]["used"].clone();
    assert_eq!(used, json!({"count/pods": "3", "requests.cpu": "1"}));
}

#[tokio::test]
async fn a_watch_tells_what_a_selector_sees_and_410_of_what_is_forgotten() {
    let api = FakeApi::start().await.unwrap();
    let (_, list) = get(&api, "/api/v1/namespaces/default/pods?labelSelector=rfm%3Da").await;
    let list: Value = serde_json::from_str(&list).unwrap();
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    api.insert("default", pod("p", "")).unwrap();
    api.insert("default", pod("q", "")).unwrap();
    api.update("pods", "default", "p", |pod| pod["metadata"]["labels"]["rfm"] = json!("b"));
    api.delete("pods", "default", "q", true);
    let watch =
        format!("/api/v1/namespaces/default/pods?watch=true&timeoutSeconds=1&labelSelector=rfm%3Da&resourceVersion={version}");
    let (status, events) = get(&api, &watch).await;
    let reported: Vec<(String, String)> = events
        .lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            (event["type"].as_str().unwrap().to_owned(), event["object"]["metadata"]["name"].as_str().unwrap().to_owned())
        })
        .collect();
    let expected = [("ADDED", "p"), ("ADDED", "q"), ("DELETED", "p"), ("DELETED", "q")];
    assert_eq!((status, reported), (200, expected.map(|(what, name)| (what.to_owned(), name.to_owned())).to_vec()));
    api.compact();
    let (_, events) = get(&api, &watch).await;
    assert!(events.contains("\"ERROR\"") && events.contains("too old resource version"), "{events}");
}

#[tokio::test]
async fn faults_happen_as_often_as_requested() {
    let api = FakeApi::start().await.unwrap();
    let pods = "/api/v1/namespaces/default/pods";
    api.fault(Fault::too_many("GET", "/pods", 1).times(2));
    api.fault(Fault::swallow("POST", "/pods"));
    assert_eq!((get(&api, pods).await.0, get(&api, pods).await.0, get(&api, pods).await.0), (429, 429, 200));
    assert_eq!(ask(&api, "POST", pods, &pod("p", "hang")).await.0, 0);
    assert_eq!(ask(&api, "POST", pods, &pod("p", "hang")).await.0, 409, "it had been done");
    api.deny("get", "pods/log");
    let (status, text) = get(&api, "/api/v1/namespaces/default/pods/p/log").await;
    assert!(
        status == 403 && text.contains(r#"cannot get resource \"pods/log\" in API group \"\" in the namespace \"default\""#),
        "{text}"
    );
    api.rotate_token("second").unwrap();
    assert_eq!(get(&api, pods).await.0, 401);
    assert_eq!(api.requests().iter().filter(|request| request.method == "POST").count(), 2);
}

#[tokio::test]
async fn a_stream_is_cut_and_a_server_comes_back() {
    let api = FakeApi::start().await.unwrap();
    api.create("default", pod("p", "run; lines 100; hang")).unwrap();
    until("it runs", || phase(&api, "p") == "Running").await;
    let log = "/api/v1/namespaces/default/pods/p/log";
    while !get(&api, log).await.1.ends_with("line 100\n") {}
    api.fault(Fault::cut("/log", 10));
    assert_eq!(get(&api, log).await.1, "line 1\nlin");
    let cut = async {
        sleep(Duration::from_millis(50)).await;
        api.cut("/log");
    };
    let follow = format!("{log}?follow=true");
    let (followed, ()) = tokio::join!(get(&api, &follow), cut);
    assert!(followed.1.ends_with("line 100\n"));
    api.rotate_log("default", "p", "main");
    assert_eq!(get(&api, log).await.1, "");
    api.down().await;
    assert!(TcpStream::connect(("127.0.0.1", api.port)).await.is_err());
    api.up().await.unwrap();
    assert_eq!(get(&api, "/version").await.0, 200);
}

#[tokio::test]
async fn ten_thousand_pods_are_listed_in_pages() {
    let api = FakeApi::start().await.unwrap();
    for n in 0..10_000 {
        api.insert("default", pod(&format!("p{n}"), "")).unwrap();
    }
    let (mut next, mut count) = (String::new(), 0);
    loop {
        let (_, page) = get(&api, &format!("/api/v1/namespaces/default/pods?limit=4000&continue={next}")).await;
        let page: Value = serde_json::from_str(&page).unwrap();
        count += page["items"].as_array().unwrap().len();
        let Some(token) = page["metadata"]["continue"].as_str() else { break };
        token.clone_into(&mut next);
    }
    assert_eq!(count, 10_000);
}

//! Following logs, against an API server that breaks streams on demand. Longer than other files: all of it shares one server and its
//! scripts.

mod beginning;
mod rotation;

use super::{Pace, follow::collect};
use crate::{
    api::ClusterPlace,
    client::{Budget, Cluster, Shares},
    job::{Handle, Observed, Seen, SeenPod},
    status::testing::handle,
};
use futures_util::StreamExt;
use muster_core::{
    decisions::backoff::Backoff,
    error::{Class, SchedulerError},
    job::scheduler::{Channel, Chunk, LogMark, LogMarks},
    judge::lines::Lines,
};
use muster_fake_api::{FakeApi, Fault};
use muster_text::{Value, pattern::Haystack, time::Timestamp};
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

const QUICK: Pace = Pace {
    silence: Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(2) },
    pause: Backoff { first: Duration::from_millis(5), longest: Duration::from_millis(50) },
    lag: Duration::from_millis(400),
    poll: Duration::from_millis(20),
    alive: Duration::from_millis(20),
    outage: Duration::from_secs(10),
};

/// One job on a fake cluster: a Pod `x`, unless the handle says otherwise.
struct Scene {
    api: Arc<FakeApi>,
    handle: Handle,
    pace: Pace,
    follows: usize,
    reads: usize,
    marks: LogMarks,
    /// A stop was tried.
    unreachable: bool,
    /// Bytes that were collected.
    taken: AtomicUsize,
}

/// What was collected.
#[derive(Debug, Default)]
struct Collected {
    opened: Vec<String>,
    titles: BTreeMap<String, String>,
    texts: BTreeMap<String, Vec<u8>>,
    lines: BTreeMap<String, (Lines, Vec<u8>)>,
    times: BTreeMap<String, Timestamp>,
    gaps: Vec<String>,
    warnings: Vec<String>,
    ended: Vec<String>,
    alive: usize,
    error: Option<SchedulerError>,
}

impl Collected {
    fn text(&self, section: &str) -> &str {
        std::str::from_utf8(self.texts.get(section).map_or(&[], Vec::as_slice)).unwrap()
    }

    /// As the spool of the session takes it: what is known already is not taken again.
    fn take(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Open(Channel::Log, origin) => {
                let title = origin.title();
                if self.titles.contains_key(&origin.id()) {
                    return;
                }
                let same = self.titles.values().filter(|known| known.split(' ').next() == Some(&title)).count();
                let unique = if same == 0 { title.clone() } else { format!("{title} {}", same + 1) };
                self.titles.insert(origin.id(), unique);
                self.opened.push(title);
            }
            Chunk::Bytes { section, at, data, time } => {
                let section = self.titles[&section].clone();
                self.times.extend(time.map(|time| (section.clone(), time)));
                let (lines, complete) = self.lines.entry(section.clone()).or_default();
                complete.extend(lines.add(at, &data));
                let text = self.texts.entry(section).or_default();
                let known = text.len() - usize::try_from(at).unwrap();
                text.extend(data.into_iter().skip(known));
            }
            Chunk::Gap { section, why } => self.gaps.push(format!("{}: {why}", self.titles[&section])),
            Chunk::Warning { section, why } => self.warnings.push(format!("{}: {why}", self.titles[&section])),
            Chunk::End { section } => self.ended.push(self.titles[&section].clone()),
            Chunk::Alive => self.alive += 1,
            Chunk::Grows { .. } | Chunk::File { .. } => panic!("no pod writes files here"),
        }
    }

    fn marks(&self) -> LogMarks {
        let mark = |(id, title): (&String, &String)| LogMark {
            section: id.clone(),
            offset: self.texts.get(title).map_or(0, Vec::len) as u64,
            time: self.times.get(title).copied(),
        };
        self.titles.iter().map(mark).collect()
    }
}

impl Scene {
    async fn new() -> Self {
        let api = Arc::new(FakeApi::start().await.unwrap());
        Self {
            api,
            handle: handle("Pod"),
            pace: QUICK,
            follows: 200,
            reads: 64,
            marks: Vec::new(),
            unreachable: false,
            taken: AtomicUsize::new(0),
        }
    }

    fn pod(&self, script: &str) {
        self.create("x", script, &json!({"restartPolicy": "Never", "containers": [{"name": "main"}]}));
    }

    fn create(&self, name: &str, script: &str, spec: &Value) {
        let meta = json!({"name": name, "annotations": {"fake-api/script": script}});
        self.api.create("default", json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})).unwrap();
    }

    /// Collects until the stream ends, watching meanwhile.
    async fn collect(&self) -> Collected {
        let mut collected = Collected::default();
        self.collect_into(&mut collected, usize::MAX).await;
        // Who listens has every complete line, once and in order.
        for (section, (mut lines, complete)) in std::mem::take(&mut collected.lines) {
            let text = Haystack::of(&collected.texts[&section]);
            let whole = [complete, lines.end()].concat();
            assert_eq!(whole.trim_ascii_end(), text.between(0, text.bytes.len()).trim_ascii_end(), "{section}");
        }
        collected
    }

    /// Collects, no more than so many chunks.
    async fn collect_into(&self, collected: &mut Collected, chunks: usize) {
        let place = ClusterPlace { context: Some("fake".into()), namespace: "default".into() };
        let client = kube::Client::try_from(kube::Config::new(self.api.url().parse().unwrap())).unwrap();
        let budget = Budget::new(Shares { follows: self.follows, reads: self.reads, ..Shares::of_open_files(1_024) });
        let cluster = Cluster::new(place, Some(client), Arc::new(budget));
        let mut observed = Observed { unreachable: self.unreachable, ..Observed::default() };
        see(&self.api, &mut observed);
        let (sender, receiver) = watch::channel(Arc::new(observed.clone()));
        let api = Arc::clone(&self.api);
        let watching = tokio::spawn(async move {
            loop {
                see(&api, &mut observed);
                sender.send_replace(Arc::new(observed.clone()));
                sleep(Duration::from_millis(5)).await;
            }
        });
        let handle = Arc::new(self.handle.clone());
        let stream = collect(self.pace.clone(), cluster, handle, receiver, self.marks.clone());
        let mut stream = stream.take(chunks);
        let read = async {
            while let Some(chunk) = stream.next().await {
                match chunk {
                    Ok(chunk) => {
                        collected.take(chunk);
                        self.taken.store(collected.texts.values().map(Vec::len).sum(), Ordering::Relaxed);
                    }
                    // The stream does not end by itself then: its caller drops it.
                    Err(error) => {
                        collected.error = Some(error);
                        break;
                    }
                }
            }
        };
        timeout(Duration::from_secs(30), read).await.expect("the log ends");
        watching.abort();
    }

    /// Until so many bytes are.
    async fn collected(&self, bytes: usize) {
        while self.taken.load(Ordering::Relaxed) < bytes {
            sleep(Duration::from_millis(5)).await;
        }
    }

    fn log_requests(&self) -> usize {
        self.api.requests().iter().filter(|request| request.has("/log")).count()
    }
}

/// What a watch would have brought.
fn see(api: &FakeApi, observed: &mut Observed) {
    let there = api.list("pods", "default");
    for seen in &mut observed.pods {
        seen.gone = !there.iter().any(|pod| pod["metadata"]["uid"].as_str() == seen.pod.metadata.uid.as_deref());
    }
    for pod in there {
        let pod: k8s_openapi::api::core::v1::Pod = serde_json::from_value(pod).unwrap();
        let seen = SeenPod::new(Arc::new(pod));
        match observed.pods.iter_mut().find(|known| known.pod.metadata.uid == seen.pod.metadata.uid) {
            Some(known) => *known = seen,
            None => observed.pods.push(seen),
        }
    }
    if let Some(job) = api.get("jobs.batch", "default", "x") {
        observed.workload = Seen::Present(job.into());
    }
}

fn lines(count: usize) -> String {
    (1..=count).fold(String::new(), |text, n| text + &format!("line {n}\n"))
}

#[tokio::test]
async fn a_log_that_is_followed_takes_two_requests() {
    let scene = Scene::new().await;
    scene.pod("run; lines 20 10ms; exit 0");
    let collected = scene.collect().await;
    assert_eq!(collected.text("x"), lines(20));
    assert_eq!((collected.opened, collected.ended, collected.gaps), (vec!["x".into()], vec!["x".into()], vec![]));
    assert_eq!(scene.log_requests(), 2);
}

#[tokio::test]
async fn a_log_that_has_ended_takes_two_requests() {
    let scene = Scene::new().await;
    scene.pod("run; lines 3; exit 1");
    sleep(Duration::from_millis(100)).await;
    assert_eq!(scene.collect().await.text("x"), lines(3));
    assert_eq!(scene.log_requests(), 2);
}

#[tokio::test]
async fn an_answer_that_ends_too_early_as_a_whole_one_does_is_not_the_end_of_the_log() {
    let rows = [("in no line", 0), ("in a line", 333), ("between two lines", 78)];
    for (what, bytes) in rows {
        for more in [&[][..], &[Fault::end("/log", 1_000)]] {
            let scene = Scene::new().await;
            scene.api.fault(Fault::end("/log", bytes));
            for fault in more {
                scene.api.fault(fault.clone());
            }
            scene.pod("run; lines 300; exit 0");
            sleep(Duration::from_millis(100)).await;
            let collected = scene.collect().await;
            assert_eq!((collected.text("x"), collected.gaps.clone()), (lines(300).as_str(), vec![]), "{what}");
        }
    }
}

#[tokio::test]
async fn a_log_whose_stream_is_cut_five_times_is_whole() {
    for (cut, what) in [(Fault::cut as fn(&str, usize) -> Fault, "broken"), (Fault::end, "ended")] {
        let mut scene = Scene::new().await;
        scene.pace.lag = Duration::from_millis(20);
        for bytes in [1, 40, 333, 1_000, 2_000] {
            scene.api.fault(cut("follow=true", bytes));
        }
        scene.pod("run; lines 300 1ms; exit 0");
        let collected = scene.collect().await;
        assert_eq!(collected.text("x"), lines(300), "{what}");
        assert_eq!(collected.gaps, Vec::<String>::new(), "{what}");
        assert!(scene.log_requests() >= 7, "{what}");
    }
}

#[tokio::test]
async fn a_stream_that_stalls_is_opened_again() {
    let mut scene = Scene::new().await;
    scene.pace.silence = Backoff { first: Duration::from_millis(60), longest: Duration::from_millis(120) };
    scene.pod("run; log one; wait 500ms; log two; exit 0");
    let collected = scene.collect().await;
    assert_eq!(collected.text("x"), "one\ntwo\n");
    assert!((4..=8).contains(&scene.log_requests()), "{}", scene.log_requests());
}

#[tokio::test]
async fn a_server_that_goes_away_loses_no_line() {
    let scene = Scene::new().await;
    scene.pod("run; lines 100 5ms; exit 0");
    let away = async {
        for _ in 0..3 {
            sleep(Duration::from_millis(60)).await;
            scene.api.down().await;
            sleep(Duration::from_millis(60)).await;
            scene.api.up().await.unwrap();
        }
    };
    let (collected, ()) = tokio::join!(scene.collect(), away);
    assert_eq!(collected.text("x"), lines(100));
    assert_eq!(collected.gaps, Vec::<String>::new());
}

#[tokio::test]
async fn every_container_has_its_section_and_a_last_line_needs_no_newline() {
    let scene = Scene::new().await;
    let spec = json!({"restartPolicy": "Never", "initContainers": [{"name": "fetch"}, {"name": "proxy", "restartPolicy": "Always"}],
        "containers": [{"name": "main"}, {"name": "side"}]});
    scene.create("x", "run; log one; log@side two; wait 200ms; exit 0", &spec);
    let write = async {
        while !scene.api.write_log("default", "x", "main", b"no newline") {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let (collected, ()) = tokio::join!(scene.collect(), write);
    let mut sections: Vec<&str> = collected.texts.keys().map(String::as_str).collect();
    sections.sort_unstable();
    assert_eq!(sections, ["x/fetch", "x/main", "x/side"]);
    assert_eq!([collected.text("x/fetch"), collected.text("x/side")], ["fetch is done\n", "two\n"]);
    assert!(collected.text("x/main").contains("no newline"));
    assert_eq!(collected.ended.len(), 3);
}

#[tokio::test]
async fn every_instance_of_a_container_is_read_the_one_before_the_last_by_previous() {
    for wait in ["200ms", "0ms"] {
        let scene = Scene::new().await;
        scene.pod(&format!("run; log one; wait {wait}; restart 1; log two; wait 100ms; exit 0"));
        let collected = scene.collect().await;
        assert_eq!([collected.text("x"), collected.text("x 2")], ["one\n", "two\n"], "{wait}");
        assert_eq!(collected.gaps, Vec::<String>::new(), "{wait}");
    }
    let scene = Scene::new().await;
    scene.pod("run; log one; restart 1; log two; restart 1; log three; wait 100ms; exit 0");
    sleep(Duration::from_millis(50)).await;
    let collected = scene.collect().await;
    assert_eq!([collected.text("x"), collected.text("x 2")], ["two\n", "three\n"]);
    insta::assert_snapshot!(collected.gaps.join("\n"), @"x: container main was restarted more than once: the node keeps the logs of its last two starts only");
}

#[tokio::test]
async fn the_log_of_the_next_start_is_not_taken_for_that_of_this_one() {
    let mut scene = Scene::new().await;
    scene.pace.lag = Duration::from_secs(5);
    // The stream is asked for while the first start runs, and served by the second.
    scene.api.fault(Fault::late("GET", "follow=true", Duration::from_secs(2)).times(1));
    scene.pod("run; log one; wait 200ms; restart 1; wait 1500ms; log two; wait 2s; exit 0");
    let collected = scene.collect().await;
    assert_eq!(collected.text("x 2"), "two\n");
    assert!(collected.text("x") == "one\n" || !collected.gaps.is_empty(), "{collected:?}");
}

#[tokio::test]
async fn a_start_whose_log_is_not_there_until_the_next_has_begun_is_read_by_previous() {
    let scene = Scene::new().await;
    let spec = json!({"restartPolicy": "OnFailure", "containers": [{"name": "main"}, {"name": "side"}]});
    scene.api.fault(Fault::text("container=main", "unable to retrieve container logs for containerd://3f2").times(9));
    scene.create("x", "run; log one; wait 20ms; exit@main 1; wait 30ms; restart 1; log two; wait 1s; exit 0", &spec);
    let collected = scene.collect().await;
    assert_eq!([collected.text("x/main"), collected.text("x/main 2")], ["one\n", "two\n"]);
}

#[tokio::test]
async fn each_pod_of_a_name_has_a_section_of_its_own() {
    let scene = Scene { handle: handle("Job"), ..Scene::new().await };
    scene.pod("run; log figure 50; hang");
    let replace = async {
        for script in ["run; log figure 75; hang", "run; log figure 100; exit 0"] {
            sleep(Duration::from_millis(150)).await;
            assert!(scene.api.delete("pods", "default", "x", true));
            scene.pod(script);
        }
        sleep(Duration::from_millis(150)).await;
        complete(&scene);
    };
    let (collected, ()) = tokio::join!(scene.collect(), replace);
    assert_eq!(collected.opened, ["x", "x", "x"]);
    let texts = ["x", "x 2", "x 3"].map(|section| collected.text(section));
    assert_eq!(texts, ["figure 50\n", "figure 75\n", "figure 100\n"]);
}

#[tokio::test]
async fn what_is_put_in_the_place_of_a_pod_after_the_end_is_not_waited_for() {
    let scene = Scene { handle: handle("Job"), ..Scene::new().await };
    scene.pod("run; log one; exit 0");
    let replace = async {
        sleep(Duration::from_millis(150)).await;
        complete(&scene);
        sleep(Duration::from_millis(50)).await;
        assert!(scene.api.delete("pods", "default", "x", true));
        scene.pod("run; log two; hang");
    };
    let (collected, ()) = tokio::join!(scene.collect(), replace);
    assert_eq!((collected.text("x"), collected.ended.contains(&"x".to_owned())), ("one\n", true));
}

/// The Job `x` has ended.
fn complete(scene: &Scene) {
    let status = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    let metadata = json!({"name": "x", "uid": "u"});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {}, "status": status});
    scene.api.insert("default", job).unwrap();
}

#[tokio::test]
async fn a_pod_that_vanishes_leaves_a_gap_unless_its_log_had_ended() {
    let scene = Scene::new().await;
    scene.pod("run; log one; hang");
    let delete = async {
        sleep(Duration::from_millis(150)).await;
        scene.api.delete("pods", "default", "x", true)
    };
    let (collected, deleted) = tokio::join!(scene.collect(), delete);
    assert!(deleted);
    assert_eq!(collected.text("x"), "one\n");
    insta::assert_snapshot!(collected.gaps.join("\n"), @"x: the pod was deleted before its log ended");

    let scene = Scene::new().await;
    scene.api.fault(Fault::status("GET", "timestamps=true&sinceTime", 404, "NotFound", "pods \"x\" not found"));
    scene.pod("run; log one; wait 100ms; log two; exit 0");
    let collected = scene.collect().await;
    assert_eq!((collected.text("x"), collected.gaps.len()), ("one\ntwo\n", 0));
}

#[tokio::test]
async fn what_the_node_says_of_itself_is_no_output() {
    let scene = Scene::new().await;
    scene.api.fault(Fault::text("follow=true", "failed to create fsnotify watcher: too many open files"));
    scene.api.fault(Fault::text("timestamps=true", "unable to retrieve container logs for containerd://3f2"));
    scene.pod("run; lines 5 30ms; exit 0");
    let collected = scene.collect().await;
    assert_eq!((collected.text("x"), collected.gaps.len()), (lines(5).as_str(), 0));

    let scene = Scene::new().await;
    scene.api.fault(Fault::text("/log", "unable to retrieve container logs for containerd://3f2").times(20));
    scene.pod("run; lines 5; exit 0");
    sleep(Duration::from_millis(50)).await;
    let collected = scene.collect().await;
    assert_eq!(collected.text("x"), "");
    insta::assert_snapshot!(collected.gaps.join("\n"), @"x: the end of the log could not be read: unable to retrieve container logs for containerd://3f2");
}

#[tokio::test]
async fn more_containers_than_streams_are_read_in_turns() {
    let mut scene = Scene::new().await;
    scene.follows = 2;
    scene.handle = handle("Job");
    let template = json!({"metadata": {"annotations": {"fake-api/script": "run; lines 20 10ms; exit 0"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]}});
    let spec = json!({"completions": 12, "parallelism": 12, "template": template});
    scene
        .api
        .create("default", json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": spec}))
        .unwrap();
    let collected = scene.collect().await;
    assert_eq!(collected.texts.len(), 12);
    assert!(collected.texts.values().all(|text| text == lines(20).as_bytes()));
    assert_eq!((collected.ended.len(), collected.gaps), (12, vec![]));
    let followed = scene.api.requests().iter().filter(|request| request.has("follow=true")).count();
    assert!(followed < 12 && scene.log_requests() > 12 + followed, "{followed} followed");
}

#[tokio::test]
async fn a_log_that_waits_for_its_turn_says_so() {
    let mut scene = Scene::new().await;
    scene.reads = 1;
    scene.api.fault(Fault::late("GET", "/log", Duration::from_millis(600)));
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "main"}, {"name": "side"}]});
    scene.create("x", "run; log one; log@side two; exit 0", &spec);
    sleep(Duration::from_millis(100)).await;
    let collected = scene.collect().await;
    assert_eq!((collected.text("x/main"), collected.text("x/side")), ("one\n", "two\n"));
    assert!(collected.alive >= 10, "{} signs of instance", collected.alive);
    assert_eq!(collected.gaps, Vec::<String>::new());
}

#[tokio::test]
async fn an_outage_at_the_end_of_a_log_is_waited_for() {
    for (outage, gaps) in [(10_000, 0), (200, 1)] {
        let mut scene = Scene::new().await;
        scene.pace.outage = Duration::from_millis(outage);
        scene.pod("run; lines 5; exit 0");
        sleep(Duration::from_millis(100)).await;
        scene.api.fault(Fault::swallow("GET", "/log").times(15));
        scene
            .api
            .fault(Fault::status("GET", "/log", 500, "InternalError", "dial tcp 10.0.0.3:10250: connection refused").times(15));
        let collected = scene.collect().await;
        assert_eq!(collected.gaps.len(), gaps, "{:?}", collected.gaps);
        assert!(collected.alive > 0);
        if gaps == 0 {
            assert_eq!((collected.text("x"), scene.log_requests()), (lines(5).as_str(), 32));
        }
    }
}

#[tokio::test]
async fn another_process_goes_on_where_one_has_stopped() {
    for chunks in [1, 2, 3, 9, 30] {
        let mut scene = Scene::new().await;
        scene.pod("run; lines 60 5ms; exit 0");
        let mut collected = Collected::default();
        scene.collect_into(&mut collected, chunks).await;
        scene.marks = collected.marks();
        scene.collect_into(&mut collected, usize::MAX).await;
        assert_eq!(collected.text("x"), lines(60), "after {chunks}");
        assert_eq!(collected.gaps, Vec::<String>::new(), "after {chunks}");
    }
}

#[tokio::test]
async fn a_missing_right_is_reported_and_not_tried_again() {
    let scene = Scene::new().await;
    scene.api.deny("get", "pods/log");
    scene.pod("run; lines 3; hang");
    let collected = scene.collect().await;
    let error = collected.error.unwrap();
    assert_eq!(error.class, Class::Config);
    insta::assert_snapshot!(error, @"get pods/log x: the right to do so in namespace default (context fake) is missing; add this rule to a Role there: {apiGroups: [\"\"], resources: [pods/log], verbs: [get]}");
    assert_eq!(scene.log_requests(), 1);
}

#[tokio::test]
async fn a_container_that_outlives_its_job_is_not_waited_for() {
    let scene = Scene::new().await;
    let scene = Scene { handle: handle("Job"), ..scene };
    scene.pod("run; log one; hang");
    complete(&scene);
    let collected = scene.collect().await;
    assert_eq!((collected.text("x"), collected.ended.len(), collected.gaps.len()), ("one\n", 1, 0));
}

#[tokio::test]
async fn a_node_that_does_not_answer_is_not_asked_for_the_end() {
    let scene = Scene::new().await;
    let scene = Scene { handle: handle("Job"), ..scene };
    scene.pod("run; log one; hang");
    let lose = async {
        sleep(Duration::from_millis(100)).await;
        let silent = json!([{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "False"}]);
        scene.api.update("pods", "default", "x", |pod| pod["status"]["conditions"] = silent);
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x", "uid": "u"}, "spec": {},
            "status": {"conditions": [{"type": "Failed", "status": "True"}]}});
        scene.api.insert("default", job).unwrap();
    };
    let (collected, ()) = tokio::join!(scene.collect(), lose);
    assert_eq!((collected.text("x"), scene.log_requests()), ("one\n", 1));
    insta::assert_snapshot!(collected.gaps.join("\n"), @"x: the end of the log could not be read: the node of the pod does not answer");
}

#[tokio::test]
async fn what_was_stopped_in_vain_is_not_waited_for() {
    let scene = Scene { unreachable: true, ..Scene::new().await };
    scene.pod("run; log one; hang");
    let silent = json!([{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "False"}]);
    sleep(Duration::from_millis(100)).await;
    scene.api.update("pods", "default", "x", |pod| pod["status"]["conditions"] = silent);
    let collected = scene.collect().await;
    insta::assert_snapshot!(collected.gaps.join("\n"), @"x: the end of the log could not be read: the node of the pod does not answer");
}

#[tokio::test]
async fn a_pod_that_never_ran_has_no_section() {
    let scene = Scene::new().await;
    scene.pod("waiting ErrImagePull; wait 100ms; fail Evicted too much");
    let collected = scene.collect().await;
    assert_eq!((collected.opened, collected.gaps), (vec![], vec![]));
}

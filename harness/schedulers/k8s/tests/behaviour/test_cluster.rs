//! The cluster of the tests, and what a session does with a scheduler, in short.

use futures_util::StreamExt;
use muster_core::{
    case::{CaseName, Identifier, SessionId},
    job::{
        scheduler::{Channel, Chunk, Disposition, Ending, Job, JobStatus, Launch, Leftovers, LogMarks, Scheduler},
        workload::{Limits, Program, Workload},
    },
};
use muster_fake_api::{FakeApi, Proxy};
use muster_k8s::{Cluster, ClusterPlace, Contexts, Handle, Kubernetes, Resource, Selection, Timeouts};
use muster_text::Value;
use serde_json::json;
use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

/// Set when KUBECONFIG is ours.
pub(crate) const READY: &str = "MUSTER_TEST_READY";
const IMAGE: &str = "rfm.test/busybox:1";
/// No step of a test takes longer.
const LIMIT: Duration = Duration::from_secs(90);

/// The kubeconfig's parts, by context: all tests share the file, as one process has one environment.
static KUBECONFIG: Mutex<BTreeMap<String, Value>> = Mutex::new(BTreeMap::new());
static NUMBER: AtomicU64 = AtomicU64::new(0);

pub(crate) struct TestCluster {
    fake: Option<FakeApi>,
    context: String,
    namespace: String,
    session: SessionId,
    pub(crate) scheduler: Kubernetes,
    stage: TempDir,
}

/// A job's life as the runner sees it.
pub(crate) struct Lived {
    pub(crate) job: Job,
    pub(crate) status: JobStatus,
    pub(crate) logs: Logs,
}

/// What was collected, taken as the spool takes it.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    pub(crate) texts: BTreeMap<String, Vec<u8>>,
    /// Titles in the stdout's order.
    pub(crate) order: Vec<String>,
    pub(crate) gaps: Vec<String>,
}

impl TestCluster {
    pub(crate) async fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (fake, context) = if env::var_os("MUSTER_TEST_KUBECONFIG").is_some() {
            (None, Contexts::load().expect("a kubeconfig").current.expect("a current context"))
        } else {
            let context = format!("fake-{number}");
            let fake = FakeApi::named(&context).await.expect("a port");
            publish(&context, fake.kubeconfig_parts("first"));
            (Some(fake), context)
        };
        let contexts = Contexts::load().expect("a kubeconfig");
        let namespace = env::var("MUSTER_TEST_NAMESPACE").unwrap_or_else(|_| "default".to_owned());
        let session = SessionId(format!("behaviour-{}-{number}", process::id()));
        let stage = tempfile::tempdir().expect("a temporary folder");
        Self { fake, context, namespace, session, scheduler: Kubernetes::new(contexts), stage }
    }

    pub(crate) fn fake(&self) -> &FakeApi {
        self.fake.as_ref().expect("this test is listed for the fake server")
    }

    /// How many requests of this method the fake server has seen that contain this.
    pub(crate) fn asked(&self, method: &str, part: &str) -> usize {
        self.fake().requests().iter().filter(|request| request.method == method && request.has(part)).count()
    }

    /// From now on only this token is good, and the kubeconfig has it.
    pub(crate) fn rotate_token(&self, token: &str) {
        self.fake().rotate_token(token).expect("a file");
        publish(&self.context, self.fake().kubeconfig_parts(token));
    }

    /// As `rotate_token`, with the token in a file that the kubeconfig only names: as a pod has its ServiceAccount's.
    pub(crate) fn rotate_token_file(&self, token: &str) {
        let path = self.stage.path().join("token");
        fs::write(&path, token).expect("a file");
        self.fake().rotate_token(token).expect("a file");
        let mut parts = self.fake().kubeconfig_parts(token);
        parts["users"][0]["user"] = json!({"tokenFile": path});
        publish(&self.context, parts);
    }

    /// From now on a credential plugin says who we are: it prints this token, or fails.
    pub(crate) fn log_in_by_plugin(&self, token: Option<&str>) {
        let path = self.stage.path().join("plugin.sh");
        let answer = match token {
            Some(token) => {
                self.fake().rotate_token(token).expect("a file");
                let version = "client.authentication.k8s.io/v1";
                let credential = json!({"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}});
                format!("echo '{credential}'")
            }
            None => "echo very-secret; echo very-secret >&2; exit 1".to_owned(),
        };
        let text = format!("#!/bin/sh\necho run >> \"$0.runs\"\n{answer}\n");
        // A script that is open for writing cannot be run.
        let unfinished = path.with_extension("part");
        fs::write(&unfinished, text).expect("a file");
        fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o700)).expect("a file of ours");
        fs::rename(&unfinished, &path).expect("a file of ours");
        let mut parts = self.fake().kubeconfig_parts("");
        let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": path, "interactiveMode": "Never"});
        parts["users"][0]["user"] = json!({"exec": exec});
        publish(&self.context, parts);
    }

    /// How often the plugin was run.
    pub(crate) fn plugin_runs(&self) -> usize {
        fs::read_to_string(self.stage.path().join("plugin.sh.runs")).unwrap_or_default().lines().count()
    }

    /// From now on the server is reached through this proxy, and a connection that says nothing for so long is broken.
    pub(crate) fn through(&mut self, proxy: &Proxy, silence: Duration) {
        let mut parts = self.fake().kubeconfig_parts("first");
        parts["clusters"][0]["cluster"]["proxy-url"] = json!(proxy.url());
        publish(&self.context, parts);
        let contexts = Contexts::load().expect("a kubeconfig");
        self.scheduler = Kubernetes::new(contexts).with_timeouts(Timeouts { answer: silence, silence });
    }

    /// A connection beside the scheduler's.
    pub(crate) async fn cluster(&self) -> std::sync::Arc<Cluster> {
        let place = ClusterPlace { context: Some(self.context.clone()), namespace: self.namespace.clone() };
        Cluster::connect(&place).await.expect("a connection")
    }

    pub(crate) fn plan(&self, manifest: Value) -> Job {
        self.plan_with(manifest, &json!({}))
    }

    /// With more `sched_options`.
    pub(crate) fn plan_with(&self, manifest: Value, options: &Value) -> Job {
        let identifier = identifier();
        let stage = self.stage.path().join(identifier.as_str());
        fs::create_dir(&stage).expect("a stage folder");
        let mut workload = self.workload(identifier, stage, manifest);
        for (key, value) in options.as_object().into_iter().flatten() {
            workload.sched_options[key] = value.clone();
        }
        self.scheduler.plan(&workload).expect("a plan")
    }

    fn workload(&self, identifier: Identifier, stage: PathBuf, manifest: Value) -> Workload {
        let own = str::to_owned;
        Workload {
            session: self.session.clone(),
            case: CaseName {
                display: format!("behaviour %n={identifier}"),
                check: own("behaviour"),
                hash: own("01234567"),
                system: own("test"),
                partition: own("k8s"),
                environ: own("default"),
                hidden: String::new(),
            },
            identifier,
            stage,
            staging: None,
            keep_files: Vec::new(),
            program: Program::Own { env_vars: Vec::new() },
            scheduler: muster_k8s::SCHEDULER.own_name().into(),
            own: serde_json::Map::from_iter([("k8s_config".to_owned(), vec![manifest].into())]),
            shared: serde_json::Map::new(),
            num_tasks: 1,
            sched_options: json!({"context": self.context, "namespace": self.namespace}),
            limits: Limits { pending: None, run: None, judge: Duration::from_mins(5) },
            keep_failed: None,
        }
    }

    /// Waits while a quota is full.
    pub(crate) async fn launch(&self, job: &Job) -> Job {
        let launched = async {
            loop {
                match self.scheduler.launch(job).await.expect("a launch") {
                    Launch::Launched(job) => return job,
                    Launch::NotNow { retry_after, .. } => sleep(retry_after).await,
                    Launch::Taken { by } => panic!("taken by {by}"),
                }
            }
        };
        timeout(LIMIT, launched).await.expect("it is launched")
    }

    /// Until a status of which this is true.
    pub(crate) async fn wait_for(&self, job: &Job, is_it: impl Fn(&JobStatus) -> bool) -> JobStatus {
        let waited = async {
            let mut seen = None;
            loop {
                let status = self.scheduler.wait(job, seen.as_ref()).await.expect("a status");
                if is_it(&status) {
                    return status;
                }
                seen = Some(status);
            }
        };
        timeout(LIMIT, waited).await.expect("the status comes")
    }

    /// Its log, to the end.
    pub(crate) async fn logs(&self, job: &Job) -> Logs {
        let collected = async {
            let mut chunks = self.scheduler.collect_logs(job, LogMarks::default());
            let (mut logs, mut origins, mut titles) = (Logs::default(), Vec::new(), BTreeMap::new());
            while let Some(chunk) = chunks.next().await {
                match chunk.expect("a chunk") {
                    Chunk::Open(Channel::Log, origin) => {
                        titles.insert(origin.id(), origin.title());
                        origins.push(origin);
                    }
                    Chunk::Bytes { section, at, data, .. } => {
                        let text = logs.texts.entry(titles[&section].clone()).or_default();
                        assert_eq!(text.len() as u64, at, "nothing is repeated within one stream");
                        text.extend(data);
                    }
                    Chunk::Gap { section, why } => logs.gaps.push(format!("{}: {why}", titles[&section])),
                    Chunk::Warning { .. } | Chunk::End { .. } | Chunk::Alive => {}
                    Chunk::Grows { .. } | Chunk::File { .. } => panic!("no pod writes files here"),
                }
            }
            origins.sort_by(|one, other| one.key().cmp(&other.key()));
            logs.order = origins.iter().map(muster_core::job::stdout::SectionOrigin::title).collect();
            logs
        };
        timeout(LIMIT, collected).await.expect("the log ends")
    }

    /// Launched, waited for, its log read meanwhile.
    pub(crate) async fn live(&self, manifest: Value) -> Lived {
        let job = self.launch(&self.plan(manifest)).await;
        let (status, logs) = tokio::join!(self.wait_for(&job, is_over), self.logs(&job));
        Lived { job, status, logs }
    }

    pub(crate) async fn cleanup(&self, job: &Job, how: Disposition) -> Leftovers {
        timeout(LIMIT, self.scheduler.cleanup(job, how)).await.expect("it returns").expect("a cleanup")
    }

    /// Deletes, and holds the scheduler to its word that nothing is left.
    pub(crate) async fn delete(&self, job: &Job) {
        assert_eq!(self.cleanup(job, Disposition::Delete).await.items, Vec::<String>::new());
        assert_eq!(self.left(job).await, Vec::<String>::new());
    }

    /// What is there of a job now: pods and the workload.
    pub(crate) async fn left(&self, job: &Job) -> Vec<String> {
        let cluster = self.cluster().await;
        let labels = format!("rfm={}", job.identifier);
        let which = Selection { labels: Some(&labels), fields: None };
        let mut kinds = vec![Resource::of("v1", "Pod")];
        kinds.extend(Handle::of(job).expect("a handle").workload().map(|object| object.resource.clone()));
        let mut left = Vec::new();
        for kind in kinds {
            let listed = cluster.list(&kind, which).await.expect("a list");
            left.extend(listed.items.iter().map(|item| format!("{} {}", kind.kind, item["metadata"]["name"])));
        }
        left
    }
}

impl Logs {
    pub(crate) fn text(&self, section: &str) -> &str {
        std::str::from_utf8(&self.texts[section]).expect("text")
    }

    /// The only section's.
    pub(crate) fn only(&self) -> &str {
        assert_eq!(self.order.len(), 1, "{:?}", self.order);
        self.text(&self.order[0])
    }
}

impl Lived {
    pub(crate) fn ending(&self) -> &Ending {
        match &self.status {
            JobStatus::Ended(ending) => ending,
            other => panic!("it has not ended by itself: {other:?}"),
        }
    }
}

pub(crate) fn is_over(status: &JobStatus) -> bool {
    matches!(status, JobStatus::Ended(_) | JobStatus::Gone { .. })
}

pub(crate) fn is_running(status: &JobStatus) -> bool {
    matches!(status, JobStatus::Running { .. })
}

/// A Pod that does this: `shell` where there is a shell, `script` on the fake cluster.
pub(crate) fn pod(shell: &str, script: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "behaviour", "annotations": {"fake-api/script": script}},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container("main", shell)]}})
}

pub(crate) fn container(name: &str, shell: &str) -> Value {
    json!({"name": name, "image": IMAGE, "command": ["sh", "-c", shell]})
}

/// A Job of so many indexed pods that all do this.
pub(crate) fn job(pods: u32, shell: &str, script: &str) -> Value {
    let Value::Object(mut template) = pod(shell, script) else { unreachable!() };
    template.retain(|key, _| key == "metadata" || key == "spec");
    template["metadata"] = json!({"annotations": {"fake-api/script": script}});
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "behaviour"},
        "spec": {"completions": pods, "parallelism": pods, "completionMode": "Indexed", "backoffLimit": 0, "template": template}})
}

pub(crate) fn lines(count: usize) -> String {
    (1..=count).fold(String::new(), |text, n| text + &format!("line {n}\n"))
}

/// Letters that no other run has.
fn identifier() -> Identifier {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos();
    let mut number = now / 1_000 * 1_000 + u128::from(NUMBER.fetch_add(1, Ordering::Relaxed)) + u128::from(process::id());
    let letter = |_| {
        let letter = u8::try_from(number % 26).expect("a letter");
        number /= 26;
        char::from(b'a' + letter)
    };
    Identifier::parse(&(0..8).map(letter).collect::<String>()).expect("eight letters")
}

/// Adds a server to the kubeconfig.
fn publish(context: &str, parts: Value) {
    let mut all = KUBECONFIG.lock().expect("no test panics here");
    all.insert(context.to_owned(), parts);
    let of = |field: &str| -> Vec<Value> {
        all.values().flat_map(|parts| parts[field].as_array().cloned().unwrap_or_default()).collect()
    };
    let whole = json!({"apiVersion": "v1", "kind": "Config", "current-context": context,
        "clusters": of("clusters"), "users": of("users"), "contexts": of("contexts")});
    let path = PathBuf::from(env::var_os("KUBECONFIG").expect("set by our first life"));
    let unfinished = path.with_extension("part");
    // A reader may have it.
    fs::write(&unfinished, whole.to_string()).and_then(|()| fs::rename(&unfinished, &path)).expect("a file");
}

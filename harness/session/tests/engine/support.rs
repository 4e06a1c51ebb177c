//! A session on the fake scheduler, in a folder of its own.

use muster_check::{cases::test_case::Rendered, site::quarantine::List};
use muster_core::{
    case::{CaseName, SessionId},
    job::{
        inventory::{Inventory, Scope},
        outputs::{Binding, Need, PlannedOutputs},
        scheduler::{CallLimits, Chunks, Disposition, Fut, Job, JobStatus, Launch, Leftovers, LogMarks, Scheduler},
        workload::{Limits, Program, Workload},
    },
    result::{About, CaseResult, Counting, Purpose, Session, SourceDefinition},
    rules::{
        Rules,
        sanity::{Assertion, Claim},
    },
};
use muster_fake::FakeScheduler;
use muster_session::{
    case::{QueuedCase, Work, judging::JudgeIn},
    engine::{Engine, EngineConfig, ExecPolicy, Ownership},
    event::Event,
    folders::Folders,
    log::lines::NewLines,
};
use muster_text::{Value, time::Timestamp};
use serde_json::Map;
use std::{
    collections::BTreeMap,
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};
use tempfile::TempDir;
use tokio::sync::mpsc::{Sender, UnboundedReceiver, unbounded_channel};

pub(crate) struct Bench {
    pub(crate) engine: Engine,
    pub(crate) fake: FakeScheduler,
    pub(crate) events: UnboundedReceiver<Event>,
    pub(crate) folder: TempDir,
    /// Results that nobody has asked for.
    ended: Arc<Mutex<Vec<Arc<CaseResult>>>>,
    /// Another session on the same folders, begun before.
    _first: Option<Folders>,
}

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) policy: ExecPolicy,
    pub(crate) maxfail: Option<u32>,
    pub(crate) ownership: Option<Ownership>,
    /// Instead of the fake itself.
    pub(crate) scheduler: Option<Arc<dyn Scheduler>>,
    pub(crate) fake: FakeScheduler,
    pub(crate) quarantine: List,
    pub(crate) counting: Counting,
    pub(crate) source: Option<SourceDefinition>,
    /// The folder of a session that is gone, in place of a new one.
    pub(crate) folder: Option<TempDir>,
    /// Another session is at work on the same folders.
    pub(crate) beside_another: bool,
    /// Who listens to logs.
    pub(crate) lines: Option<Sender<NewLines>>,
}

pub(crate) fn session() -> Session {
    Session {
        id: SessionId("s1".to_owned()),
        started: Timestamp(0),
        ended: None,
        command: vec!["muster".into()],
        system: "test".into(),
        user: "somebody".into(),
        host: "here".into(),
        workdir: "/".into(),
        version: "0".into(),
        num_cases: 0,
        interrupted: false,
        counting: Counting::Last,
        extras: Vec::new(),
        ..Session::default()
    }
}

pub(crate) fn places(folder: &Path) -> Folders {
    Folders::open(&folder.join("stage"), &folder.join("output")).expect("folders")
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with(Options::default()).await
    }

    /// Partitions `p` and `q`, both the fake's.
    pub(crate) async fn with(options: Options) -> Self {
        let Options { policy, maxfail, ownership, scheduler, fake, quarantine, counting, source, folder, beside_another, lines } =
            options;
        let folder = folder.unwrap_or_else(|| TempDir::new().expect("a folder"));
        let first = beside_another.then(|| places(folder.path()));
        let (sender, events) = unbounded_channel();
        let session = Session { counting, source, ..session() };
        let scheduler = scheduler.unwrap_or_else(|| Arc::new(fake.clone()));
        let engine = Engine::begin(EngineConfig {
            folders: places(folder.path()),
            session,
            ownership,
            schedulers: ["p", "q"].map(|name| (name.to_owned(), Arc::clone(&scheduler))).into(),
            events: sender,
            lines,
            policy,
            maxfail,
            quarantine,
            judge: JudgeIn::ThisProcess,
            sweep: "muster sweep".to_owned(),
            secrets: muster_core::secret::Secrets::default(),
        });
        Self { engine: engine.await.expect("a session"), fake, events, folder, ended: Arc::default(), _first: first }
    }

    /// Runs one scenario to its end.
    pub(crate) async fn scenario(&self, scenario: Value) -> Arc<CaseResult> {
        self.submit(case("case", scenario).queued()).await.expect("a result")
    }

    /// The names of all events so far: `begun a`, `phase a run: image pull`.
    pub(crate) fn drain(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.events.try_recv().ok()).map(|event| line(&event)).collect()
    }

    pub(crate) fn submit(&self, case: QueuedCase) -> Submitted {
        self.submit_all([case]).remove(0)
    }

    pub(crate) fn submit_all(&self, cases: impl IntoIterator<Item = QueuedCase>) -> Vec<Submitted> {
        let cases: Vec<_> = cases.into_iter().collect();
        let submitted = |case: &QueuedCase| {
            let (engine, ended) = (self.engine.clone(), Arc::clone(&self.ended));
            Submitted { engine, ended, name: Arc::clone(&case.name), attempt: case.attempt }
        };
        let all = cases.iter().map(submitted).collect();
        self.engine.submit_all(cases);
        all
    }

    /// What is left on the fake's server.
    pub(crate) fn left(&self) -> usize {
        self.fake.jobs().len()
    }

    /// A path with the folder of this test cut off.
    pub(crate) fn relative(&self, text: &str) -> String {
        text.replace(&self.folder.path().display().to_string(), "")
    }
}

/// A case that the engine has. Awaited, it gives its result; `None`: there will be none.
pub(crate) struct Submitted {
    engine: Engine,
    ended: Arc<Mutex<Vec<Arc<CaseResult>>>>,
    name: Arc<CaseName>,
    attempt: u32,
}

impl IntoFuture for Submitted {
    type Output = Option<Arc<CaseResult>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut is_idle = false;
            loop {
                let is_its = |result: &mut Arc<CaseResult>| result.name == *self.name && result.attempt == self.attempt;
                let found = self.ended.lock().expect("no panic").extract_if(.., is_its).next();
                if found.is_some() || is_idle {
                    return found;
                }
                let news = self.engine.ended().await;
                is_idle = news.is_idle;
                self.ended.lock().expect("no panic").extend(news.results);
            }
        })
    }
}

fn line(event: &Event) -> String {
    match event {
        Event::Started(case) => format!("begun {}", case.display),
        Event::Phase { case, phase, note, .. } => {
            let note = note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
            format!("phase {} {}{note}", case.display, phase.as_str())
        }
        Event::Finished(result) => format!("finished {} {}", result.name.display, result.outcome),
        Event::Round { cases, why } => format!("round of {cases}: {why}"),
        Event::Warning(text) => format!("warning {text}"),
        Event::Cancelling(why) => format!("cancelling: {why}"),
    }
}

/// A case to be, with what a test may want to be different.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) partition: &'static str,
    pub(crate) max_jobs: usize,
    pub(crate) program: Program,
    /// Its scenario, under the key of its scheduler.
    pub(crate) own: Map<String, Value>,
    pub(crate) rules: Rules,
    pub(crate) limits: Limits,
    pub(crate) skip: Option<String>,
    pub(crate) mistake: Option<&'static str>,
    /// Names of cases in the same partition, each bound as a fixture of that name.
    pub(crate) needs: Vec<Need>,
    /// What it says for others.
    pub(crate) outputs: BTreeMap<String, String>,
    pub(crate) teardown: Option<Value>,
    /// Where it notes what it was given.
    pub(crate) notes: Arc<Mutex<Vec<String>>>,
}

fn own(scenario: Value) -> Map<String, Value> {
    Map::from_iter([("fake".to_owned(), scenario)])
}

pub(crate) fn case(name: &str, scenario: Value) -> Case {
    Case {
        name: name.to_owned(),
        partition: "p",
        max_jobs: 1,
        program: Program::Own { env_vars: Vec::new() },
        own: own(scenario),
        rules: Rules::default(),
        limits: Limits {
            pending: Some(Duration::from_hours(1)),
            run: Some(Duration::from_mins(10)),
            judge: Duration::from_secs(5),
        },
        skip: None,
        mistake: None,
        needs: Vec::new(),
        outputs: BTreeMap::new(),
        teardown: None,
        notes: Arc::default(),
    }
}

fn named(name: &str, partition: &str) -> Arc<CaseName> {
    Arc::new(CaseName {
        display: name.to_owned(),
        check: name.to_owned(),
        hash: "01234567".into(),
        system: "test".into(),
        partition: partition.into(),
        environ: "default".into(),
        hidden: String::new(),
    })
}

pub(crate) fn found(pattern: &str) -> Rules {
    let claim = Claim::Found { pattern: pattern.to_owned(), count: None };
    Rules { sanity: vec![Assertion { claim, file: None, msg: None }], ..Rules::default() }
}

impl Case {
    /// The same, after others of its partition.
    pub(crate) fn after(mut self, names: &[&str]) -> Self {
        let need = |name: &&str| Need {
            case: named(name, self.partition),
            binding: Binding::Fixture((*name).into()),
            is_one_of_many: false,
        };
        self.needs = names.iter().map(need).collect();
        self
    }

    pub(crate) fn queued(self) -> QueuedCase {
        let name = named(&self.name, self.partition);
        let about = About {
            descr: String::new(),
            tags: Vec::new(),
            maintainers: Vec::new(),
            file: "check.yaml".into(),
            other_files: Vec::new(),
            parameters: Vec::new(),
            scheduler: "fake".into(),
            num_tasks: 1,
            ..About::default()
        };
        QueuedCase {
            name: Arc::clone(&name),
            folder: format!("{}_0123456789abcdef", self.name),
            scheduler: "fake".into(),
            max_jobs: self.max_jobs,
            attempt: 1,
            purpose: Purpose::Run,
            answer: None,
            needs: self.needs.into(),
            about: {
                let about = about.clone();
                Arc::new(move || about.clone())
            },
            work: Work::New(Arc::new(move |facts| {
                if let Some(mistake) = self.mistake {
                    return Err(vec![muster_text::diagnostic::Diagnostic::general(mistake)]);
                }
                let inputs = &facts.inputs;
                if !inputs.fixtures.is_empty() {
                    let shown = Value::Object(inputs.fixtures.clone()).to_string();
                    let note = format!("{}: {}", name.display, shown.replace(&facts.stage.display().to_string(), "HERE"));
                    self.notes.lock().expect("no panic").push(note);
                }
                let workload = |program, own| Workload {
                    identifier: facts.identifier.clone(),
                    session: facts.session.clone(),
                    case: (*name).clone(),
                    stage: facts.stage.clone(),
                    staging: None,
                    keep_files: Vec::new(),
                    program,
                    scheduler: "fake".into(),
                    own,
                    shared: Map::new(),
                    num_tasks: 1,
                    sched_options: Value::Null,
                    limits: self.limits,
                    keep_failed: None,
                };
                let planned_outputs = (inputs.is_needed || self.teardown.is_some()).then(|| {
                    let teardown = self
                        .teardown
                        .clone()
                        .map(|scenario| Box::new(workload(Program::Own { env_vars: Vec::new() }, own(scenario))));
                    Box::new(PlannedOutputs { values: BTreeMap::new(), outputs: self.outputs.clone(), teardown })
                });
                let rules = Rules { planned_outputs, ..self.rules.clone() };
                Ok(Rendered {
                    workload: workload(self.program.clone(), self.own.clone()),
                    rules,
                    about: about.clone(),
                    skip: self.skip.clone(),
                })
            })),
        }
    }
}

/// Submits everything, and waits for it.
pub(crate) async fn all(bench: &Bench, cases: impl IntoIterator<Item = Case>) -> Vec<Arc<CaseResult>> {
    let mut results = Vec::new();
    for submitted in bench.submit_all(cases.into_iter().map(Case::queued)) {
        results.push(submitted.await.expect("a result"));
    }
    results
}

/// Which call of a scheduler panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PanicIn {
    Plan,
    Launch,
    Wait,
    Logs,
    Cleanup,
}

/// The fake, but for one call.
pub(crate) struct Panicking {
    pub(crate) fake: FakeScheduler,
    pub(crate) when: PanicIn,
}

impl Panicking {
    fn check(&self, here: PanicIn) {
        assert!(self.when != here, "the scheduler has a bug");
    }
}

impl Scheduler for Panicking {
    fn plan(&self, workload: &Workload) -> Result<Job, Vec<muster_text::diagnostic::Diagnostic>> {
        self.check(PanicIn::Plan);
        self.fake.plan(workload)
    }
    fn launch<'a>(&'a self, job: &'a Job) -> Fut<'a, Launch> {
        Box::pin(async move {
            let launched = self.fake.launch(job).await;
            self.check(PanicIn::Launch);
            launched
        })
    }
    fn wait<'a>(&'a self, job: &'a Job, seen: Option<&'a JobStatus>) -> Fut<'a, JobStatus> {
        self.check(PanicIn::Wait);
        self.fake.wait(job, seen)
    }
    fn collect_logs<'a>(&'a self, job: &'a Job, from: LogMarks) -> Chunks<'a> {
        self.check(PanicIn::Logs);
        self.fake.collect_logs(job, from)
    }
    fn cleanup<'a>(&'a self, job: &'a Job, how: Disposition) -> Fut<'a, Leftovers> {
        self.check(PanicIn::Cleanup);
        self.fake.cleanup(job, how)
    }
    fn inventory<'a>(&'a self, scope: &'a Scope) -> Fut<'a, Inventory> {
        self.fake.inventory(scope)
    }
}

/// The fake, but for cleanups: they have no answer.
pub(crate) struct Silent(pub(crate) FakeScheduler);

impl Silent {
    pub(crate) const CLEANUP: Duration = Duration::from_mins(10);
}

impl Scheduler for Silent {
    fn limits(&self) -> CallLimits {
        CallLimits { cleanup: Self::CLEANUP, ..CallLimits::default() }
    }
    fn plan(&self, workload: &Workload) -> Result<Job, Vec<muster_text::diagnostic::Diagnostic>> {
        self.0.plan(workload)
    }
    fn launch<'a>(&'a self, job: &'a Job) -> Fut<'a, Launch> {
        self.0.launch(job)
    }
    fn wait<'a>(&'a self, job: &'a Job, seen: Option<&'a JobStatus>) -> Fut<'a, JobStatus> {
        self.0.wait(job, seen)
    }
    fn collect_logs<'a>(&'a self, job: &'a Job, from: LogMarks) -> Chunks<'a> {
        self.0.collect_logs(job, from)
    }
    fn cleanup<'a>(&'a self, _job: &'a Job, _how: Disposition) -> Fut<'a, Leftovers> {
        Box::pin(std::future::pending())
    }
    fn inventory<'a>(&'a self, scope: &'a Scope) -> Fut<'a, Inventory> {
        self.0.inventory(scope)
    }
}

/// How often each outcome occurs.
pub(crate) fn tally<'a>(results: impl IntoIterator<Item = &'a Arc<CaseResult>>) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for result in results {
        *tally.entry(result.outcome.to_string()).or_default() += 1;
    }
    tally
}

//! A source as a search will be: it waits for times and for news, brings cases, and stops what takes too long.

use crate::support::{Bench, Options};
use futures_util::future::BoxFuture;
use muster_check::{
    cases::{check::Check, test_case::TestCase},
    files::load::Loader,
    selection::adjust::Adjustments,
    site::{
        facts::{KnownSystems, SystemFacts},
        file as site_file,
    },
};
use muster_core::{
    decisions::{attempts::Attempts, pipeline::Stop},
    job::descriptor::{Descriptor, Schedulers},
    result::{Counting, Purpose, SourceDefinition},
};
use muster_host::clock;
use muster_session::{
    case::QueuedCase,
    engine::Ownership,
    session_loop::{
        self,
        source::{Batch, Next, SoFar, Source},
        taken_over::{Continued, TakenOver},
    },
};
use muster_store::{Owner, Reader, SessionRow, Store};
use muster_text::{
    decode::{Context, Placeholders},
    diagnostic::FileId,
    time::Timestamp,
    yaml,
};
use serde_json::json;
use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::{runtime::Runtime, sync::watch, time::sleep};

/// Runs its points one after the other, as far as they are proposed, and stops one that takes longer than its patience.
struct Study {
    points: Vec<TestCase>,
    patience: Duration,
    proposed: watch::Receiver<usize>,
    /// The point that runs, and since when.
    given: usize,
    since: Timestamp,
}

impl Study {
    fn of(source: &SourceDefinition, points: &[TestCase], proposed: &watch::Sender<usize>) -> Self {
        assert_eq!(source.kind, "study");
        let patience = Duration::from_millis(source.definition["patience_ms"].as_u64().expect("a number"));
        Self { points: points.to_vec(), patience, proposed: proposed.subscribe(), given: 0, since: clock::now() }
    }
}

impl Source for Study {
    fn next(&mut self, now: Timestamp, so_far: &SoFar<'_>) -> Next {
        if so_far.attempts.kept().len() < self.given {
            let due = self.since.plus(self.patience);
            let point = Arc::clone(&self.points[self.given - 1].name);
            if now < due {
                return Next::Until(due);
            }
            let why = Stop::Rule { name: "slow".into(), why: "no end in time".into() };
            return Next::Stop { attempts: vec![(point, 1)], why };
        }
        if so_far.is_closed || self.given == self.points.len() {
            return Next::Done(None);
        }
        if self.given >= *self.proposed.borrow() {
            return Next::Wait;
        }
        let point = self.points[self.given].clone();
        (self.given, self.since) = (self.given + 1, now);
        let item = QueuedCase { purpose: Purpose::Tune, ..QueuedCase::of(&point, &Arc::default(), 1) };
        Next::More(Batch { cases: [point].into(), items: vec![item], number: 1, title: None })
    }

    fn news(&mut self) -> Option<BoxFuture<'_, ()>> {
        Some(Box::pin(async { self.proposed.changed().await.expect("the test goes on") }))
    }
}

const POINTS: &str = r"
name: first
fake: { statuses: [{ state: running }, { after_ms: 20, state: ended }], logs: [{ section: pod-0, text: 'rate 1' }] }
---
name: slow
fake: { statuses: [{ state: running }], logs: [{ section: pod-0, text: 'rate 2' }] }
---
name: last
fake: { statuses: [{ state: running }, { after_ms: 20, state: ended }], logs: [{ section: pod-0, text: 'rate 3' }] }
";

fn schedulers() -> Schedulers {
    static ALL: &[&Descriptor] = &[&muster_fake::SCHEDULER];
    Schedulers::new(ALL)
}

fn points() -> (SystemFacts, Vec<TestCase>) {
    let site =
        "{ name: test, partitions: [{ name: p, scheduler: fake, environs: [default] }], environments: [{ name: default }] }";
    let parsed = yaml::parse(FileId::default(), site);
    let system = site_file::read(&parsed.documents[0], &schedulers(), &mut Context::new(Placeholders::Refuse)).expect("a site");
    let known = KnownSystems::of([&system]);
    let facts = SystemFacts::new(Arc::new(system), known);
    let mut loader = Loader::new(schedulers());
    let rest = "valid_systems: [test]\nsanity: []\nperf_variables: { rate: { pattern: 'rate (\\S+)', unit: x } }\n";
    loader.add(
        "check.yaml",
        &POINTS.replace("---\n", &format!("{rest}---\n")).replace("rate 3' }] }\n", &format!("rate 3' }}] }}\n{rest}")),
    );
    let read = loader.finish();
    let mut mistakes = read.diagnostics;
    let mut cases = Vec::new();
    for document in &read.checks {
        let check = Check::new(document, None, read.manifests.clone(), &facts.known, &mut mistakes).expect("a check");
        cases.extend(Arc::new(check).cases(&facts, &mut mistakes));
    }
    assert_eq!(mistakes, []);
    (facts, cases)
}

/// A session of the study, on a database that another process may have begun.
async fn bench(database: &Path, folder: Option<TempDir>) -> (Bench, Store, SourceDefinition) {
    let source = SourceDefinition { kind: "study".into(), definition: json!({ "patience_ms": 300 }) };
    let owner = Owner { host: "here".into(), pid: 1, start_time: 2, boot_id: "boot".into(), pid_namespace: "pid:[1]".into() };
    let store = Store::open(database).await.expect("a database");
    let ownership = Some(Ownership { store: store.clone(), owner, is_new: folder.is_none() });
    let bench = Bench::with(Options { ownership, source: Some(source.clone()), folder, ..Options::default() }).await;
    (bench, store, source)
}

/// The name, outcome, purpose and figures of each attempt.
async fn stored(reader: &Reader) -> Vec<String> {
    let id = reader.sessions(1, &|_| None).await.expect("sessions").remove(0).session.id;
    let line = |result: &muster_core::result::CaseResult| {
        let figures: Vec<_> =
            result.measurements.iter().map(|figure| format!("{}={:?}", figure.variable, figure.value)).collect();
        format!("{} {} {} {}", result.name.display, result.outcome, result.purpose, figures.join(" "))
    };
    reader.results(&id).await.expect("results").iter().map(line).collect()
}

const WHOLE: [&str; 3] = ["first pass tune rate=1.0", "slow stopped{slow} tune rate=2.0", "last pass tune rate=3.0"];

#[test]
fn a_source_waits_has_news_stops_attempts_and_brings_cases() {
    let folder = TempDir::new().expect("a folder");
    let database = folder.path().join("results.db");
    let (_, points) = points();
    Runtime::new().expect("a runtime").block_on(async {
        let (bench, store, source) = bench(&database, None).await;
        let (propose, mut attempts) = (watch::Sender::new(1), Attempts::new(Counting::Last));
        let mut study = Study::of(&source, &points, &propose);
        let adjustments = Arc::<Adjustments>::default();
        let ran = session_loop::run(&bench.engine, &mut study, &adjustments, &mut attempts);
        let others = async {
            for proposed in 2..=3 {
                // Nothing runs meanwhile.
                sleep(Duration::from_millis(200)).await;
                propose.send_replace(proposed);
            }
        };
        assert_eq!(tokio::join!(ran, others).0, None);
        bench.engine.end().await.expect("stored");
        store.close().await.expect("closed");
        assert_eq!(bench.left(), 0);
        assert_eq!(stored(&Reader::open(&database).await.expect("a database")).await, WHOLE);
    });
}

#[test]
fn a_source_is_made_again_from_what_the_session_stores_after_its_process_was_killed() {
    let folder = TempDir::new().expect("a folder");
    let database = folder.path().join("results.db");
    let (facts, points) = points();
    let adjustments = Arc::<Adjustments>::default();
    let killed = Runtime::new().expect("a runtime");
    let stages = killed.block_on(async {
        let (bench, _, source) = bench(&database, None).await;
        let (propose, mut attempts) = (watch::Sender::new(3), Attempts::new(Counting::Last));
        let mut study = Study::of(&source, &points, &propose);
        let ran = session_loop::run(&bench.engine, &mut study, &adjustments, &mut attempts);
        let launched = async {
            while bench.fake.created() < 2 {
                sleep(Duration::from_millis(5)).await;
            }
            sleep(Duration::from_millis(50)).await;
        };
        tokio::select! { _ = ran => panic!("it has ended"), () = launched => {} }
        bench.folder
    });
    // Nothing of it goes on.
    killed.shutdown_timeout(Duration::from_secs(5));
    Runtime::new().expect("a runtime").block_on(async {
        let reader = Reader::open(&database).await.expect("a database");
        let SessionRow { session, held, .. } = reader.sessions(1, &|_| None).await.expect("sessions").remove(0);
        let rows = reader.unfinished(&session.id).await.expect("jobs");
        assert_eq!(rows.iter().map(|row| (&*row.name.display, row.purpose)).collect::<Vec<_>>(), [("slow", Purpose::Tune)]);
        let results = reader.results(&session.id).await.expect("results");
        let mut attempts = Attempts::of(Counting::Last, results);

        let (bench, store, _) = bench(&database, Some(stages)).await;
        store.take_over(&session.id, &held, &held.owner).await.expect("nobody holds it");
        let (system, schedulers) = (&facts.system, &schedulers());
        let continued = Continued { cases: &points, system, adjustments: &adjustments, has_secret: false, schedulers };
        let started = rows.into_iter().map(|row| continued.queued(row)).collect();
        let propose = watch::Sender::new(3);
        let rest = Study::of(&session.source.expect("it is stored"), &points, &propose);
        let mut source = TakenOver { started, made_again: Vec::new(), continued: BTreeSet::new(), rest };
        session_loop::run(&bench.engine, &mut source, &adjustments, &mut attempts).await;
        bench.engine.end().await.expect("stored");
        store.close().await.expect("closed");
        assert_eq!((stored(&reader).await, bench.left()), (WHOLE.map(str::to_owned).to_vec(), 0));
    });
}

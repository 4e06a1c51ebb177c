//! How much memory cases cost that wait: `cargo run --release -p muster-session --example waiting [CASES [MAX_JOBS]]`.
//!
//! By default 10,000 fake cases run at once, each with a log line, and all are over after about two seconds. With
//! `MAX_JOBS` they wait in the queue instead. Prints the peak and the time; exits with 1 if a case did not pass.

use muster_check::{cases::test_case::Rendered, site::quarantine::List};
use muster_core::{
    case::{CaseName, SessionId},
    job::workload::{Limits, Program, Workload},
    result::{About, Counting, Outcome, Purpose, Session},
    rules::{
        Rules,
        sanity::{Assertion, Claim},
    },
};
use muster_fake::FakeScheduler;
use muster_session::{
    case::{QueuedCase, Work, judging::JudgeIn},
    engine::{Engine, EngineConfig, ExecPolicy},
    folders::Folders,
    runtime,
};
use muster_text::time::Timestamp;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, error::Error, process::ExitCode, sync::Arc, time::Duration};
use tokio::{sync::mpsc::unbounded_channel, time::Instant};

fn session() -> Session {
    Session {
        id: SessionId("waiting".into()),
        started: Timestamp(0),
        ended: None,
        command: Vec::new(),
        system: "example".into(),
        user: String::new(),
        host: String::new(),
        workdir: "/".into(),
        version: String::new(),
        num_cases: 0,
        interrupted: false,
        counting: Counting::Last,
        extras: Vec::new(),
        ..Session::default()
    }
}

fn about(number: usize) -> About {
    About {
        descr: String::new(),
        tags: Vec::new(),
        maintainers: Vec::new(),
        file: String::new(),
        other_files: Vec::new(),
        parameters: vec![("number".into(), number.to_string())],
        scheduler: "fake".into(),
        num_tasks: 1,
        ..About::default()
    }
}

fn turn(number: usize, max_jobs: usize, millis: u64) -> QueuedCase {
    let name = Arc::new(CaseName {
        display: format!("waits %number={number}"),
        check: "waits".into(),
        hash: format!("{number:08x}"),
        system: "example".into(),
        partition: "fake".into(),
        environ: "default".into(),
        hidden: String::new(),
    });
    let case = Arc::clone(&name);
    QueuedCase {
        name,
        folder: format!("waits_{number:016x}"),
        scheduler: "fake".into(),
        max_jobs,
        attempt: 1,
        purpose: Purpose::Run,
        answer: None,
        needs: Box::default(),
        about: Arc::new(move || about(number)),
        work: Work::New(Arc::new(move |facts| {
            let scenario = json!({
                "statuses": [{ "state": "running", "nodes": ["node-1"] }, { "after_ms": millis, "state": "ended" }],
                "logs": [{ "text": "hello from a case that waits\n" }],
            });
            let claim = Claim::Found { pattern: "hello".into(), count: Some(1) };
            Ok(Rendered {
                workload: Workload {
                    identifier: facts.identifier.clone(),
                    session: facts.session.clone(),
                    case: (*case).clone(),
                    stage: facts.stage.clone(),
                    staging: None,
                    keep_files: Vec::new(),
                    program: Program::Own { env_vars: Vec::new() },
                    scheduler: "fake".into(),
                    own: Map::from_iter([("fake".to_owned(), scenario)]),
                    shared: Map::new(),
                    num_tasks: 1,
                    sched_options: Value::Null,
                    limits: Limits { pending: None, run: Some(Duration::from_mins(5)), judge: Duration::from_mins(5) },
                    keep_failed: None,
                },
                rules: Rules { sanity: vec![Assertion { claim, file: None, msg: None }], ..Rules::default() },
                about: about(number),
                skip: None,
            })
        })),
    }
}

fn status(key: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .map_or_else(String::new, |rest| rest.trim_matches([':', ' ', '\t']).to_owned())
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    runtime::build()?.block_on(measure())
}

async fn measure() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let cases = arguments.next().transpose()?.unwrap_or(10_000);
    let max_jobs = arguments.next().transpose()?.unwrap_or(cases);
    let millis = if max_jobs < cases { 1 } else { 6_000 };
    let folder = std::env::temp_dir().join(format!("muster-waiting-{}", std::process::id()));
    let (events, mut lines) = unbounded_channel();
    tokio::spawn(async move { while lines.recv().await.is_some() {} });
    let schedulers: BTreeMap<String, Arc<dyn muster_core::job::scheduler::Scheduler>> =
        BTreeMap::from([("fake".to_owned(), Arc::new(FakeScheduler::default()) as _)]);
    let session = session();
    let folders = Folders::open(&folder.join("stage"), &folder.join("output"))?;
    let config = EngineConfig {
        session,
        folders,
        ownership: None,
        schedulers,
        events,
        lines: None,
        policy: ExecPolicy::Async,
        maxfail: None,
        quarantine: List::default(),
        judge: JudgeIn::ThisProcess,
        sweep: "muster sweep".to_owned(),
        secrets: muster_core::secret::Secrets::default(),
    };
    let engine = Engine::begin(config).await?;

    println!("before       {} resident", status("VmRSS"));
    let begun = Instant::now();
    engine.submit_all((0..cases).map(|number| turn(number, max_jobs, millis)));
    println!("submitted    {} resident, {} threads", status("VmRSS"), status("Threads"));
    tokio::time::sleep(Duration::from_millis(millis - millis / 4)).await;
    println!("running      {} resident, {} in the air", status("VmRSS"), engine.in_flight().len());
    let results = engine.finish().await;
    let passed = results.iter().filter(|result| result.outcome == Outcome::Pass).count();
    println!("{passed} of {cases} passed, {max_jobs} at once, in {:.1} s", begun.elapsed().as_secs_f64());
    for result in results.iter().filter(|result| result.outcome != Outcome::Pass).take(5) {
        println!("{}: {} {}", result.name, result.outcome, result.cause.as_deref().unwrap_or_default());
    }
    println!("peak         {} resident, {} threads at the end", status("VmHWM"), status("Threads"));
    std::fs::remove_dir_all(&folder)?;
    Ok(if passed == cases { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

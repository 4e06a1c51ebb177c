//! Sessions, jobs and results to store.

use muster_core::{
    case::{CaseName, Identifier, SessionId},
    job::{
        scheduler::{Exit, Job, SectionExit},
        workload::Limits,
    },
    night::NightRules,
    result::{About, CaseResult, Counting, Outcome, Phase, Purpose, Session, Times},
    rules::{
        Rules,
        perf::{Bounds, Direction, Measurement, Verdict},
        sanity::{Assertion, Claim},
    },
};
use muster_store::{Held, Intent, Location, Owner, Store, StoreError};
use muster_text::{Value, time::Timestamp};
use sqlx::{Connection, SqliteConnection};
use std::{env, time::Duration};
use tempfile::TempDir;

pub(crate) fn session(id: &str, started: i64) -> Session {
    Session {
        id: SessionId(id.into()),
        started: Timestamp(started),
        ended: None,
        command: vec!["muster".into(), "-r".into(), "-n".into(), "a \"b\"".into()],
        system: "eidf".into(),
        user: "ada".into(),
        host: "login1".into(),
        workdir: "/home/ada/checks".into(),
        version: "0.1.0".into(),
        num_cases: 3,
        interrupted: false,
        counting: Counting::Last,
        extras: vec![],
        selection: "0123abcd".into(),
        ..Session::default()
    }
}

/// Begins a session in a night, as the program does.
pub(crate) async fn begin_in_night(store: &Store, session: Session, owner: &Owner) -> Session {
    let night = NightRules::default().night_of(session.started);
    let session = Session { night: Some(night.date), ..session };
    store.begin(&session, owner).await.unwrap();
    store.plan(&session.id, &night, vec![name(0), name(1)]).await.unwrap();
    session
}

pub(crate) fn owner(pid: u32) -> Owner {
    Owner { host: "login1".into(), pid, start_time: 123_456, boot_id: "b1f0".into(), pid_namespace: "pid:[1]".into() }
}

/// A session in the hands of `owner(pid)`, who has said so many times that it lives.
pub(crate) fn held(pid: u32, heartbeat: i64) -> Held {
    Held { owner: owner(pid), heartbeat }
}

/// Eight letters for a number.
pub(crate) fn identifier(number: u32) -> Identifier {
    let mut letters = [0; 8];
    let mut rest = number;
    for letter in letters.iter_mut().rev() {
        *letter = u8::try_from(rest % 26).unwrap();
        rest /= 26;
    }
    Identifier::from_letters(letters)
}

pub(crate) fn name(number: u32) -> CaseName {
    CaseName {
        display: format!("nbody %num_bodies={number}"),
        check: "nbody".into(),
        hash: format!("{number:08x}"),
        system: "eidf".into(),
        partition: "gpu-service".into(),
        environ: "default".into(),
        hidden: String::new(),
    }
}

pub(crate) fn about() -> About {
    About {
        descr: "CUDA n-body, double precision, three pods".into(),
        tags: vec!["gpu".into(), "performance".into()],
        maintainers: vec!["hpc-support".into()],
        file: "checks/nbody/check.yaml".into(),
        other_files: Vec::new(),
        parameters: vec![("num_bodies".into(), "512000".into())],
        scheduler: "k8s".into(),
        num_tasks: 3,
        ..About::default()
    }
}

pub(crate) fn job(session: &SessionId, number: u32) -> Job {
    Job {
        identifier: identifier(number),
        session: session.clone(),
        case: name(number).to_string(),
        scheduler: "local".into(),
        stage: format!("stage/eidf/gpu-service/default/nbody_{number:016x}").into(),
        handle: Value::Null.into(),
    }
}

/// The job with what its launch added.
pub(crate) fn launched(job: &Job) -> Job {
    let handle = Value::Object([("pid".to_owned(), Value::from(4711))].into_iter().collect());
    Job { handle: handle.into(), ..job.clone() }
}

pub(crate) fn rules() -> Rules {
    let claim = Claim::Found { pattern: "double-precision GFLOP/s".into(), count: Some(3) };
    Rules { sanity: vec![Assertion { claim, file: None, msg: None }], ..Rules::default() }
}

pub(crate) fn limits() -> Limits {
    Limits { pending: Some(Duration::from_mins(2)), run: None, judge: Duration::from_mins(5) }
}

pub(crate) fn measurement(variable: &str, value: f64) -> Measurement {
    Measurement {
        variable: variable.into(),
        key: None,
        section: None,
        node: None,
        value,
        unit: "GFLOP/s".into(),
        bounds: Some(Bounds { reference: 7440.0, lower: Some(6696.0), upper: None }),
        verdict: Verdict::Pass,
        direction: Some(Direction::Higher),
    }
}

pub(crate) fn result(number: u32, attempt: u32, outcome: Outcome) -> CaseResult {
    CaseResult {
        name: name(number),
        about: about(),
        identifier: Some(identifier(number)),
        attempt,
        outcome,
        phase: Phase::Performance,
        cause: None,
        warnings: vec![],
        nodes: vec!["gpu-07".into()],
        exits: vec![SectionExit {
            section: "nbody-0".into(),
            node: Some("gpu-07".into()),
            exit: Exit::Code(0),
            ..SectionExit::default()
        }],
        measurements: vec![measurement("flops", 7439.5), measurement("bandwidth", 1.0e-9)],
        times: Times {
            begun: Timestamp(1_000_000),
            launched: Some(Timestamp(1_200_000)),
            started: Some(Timestamp(1_300_000)),
            ended: Some(Timestamp(2_300_000)),
            finished: Timestamp(2_400_000 + i64::from(number)),
        },
        folder: Some("output/eidf/nbody".into()),
        log_tail: None,
        look: vec![],
        delete: vec![],
        leftovers: vec![],
        flaky: false,
        quarantine: None,
        restored_from: None,
        outputs: None,
        ..CaseResult::default()
    }
}

/// Writes down that case `number` of `session` is about to be launched.
pub(crate) async fn intend(store: &Store, session: &SessionId, number: u32, attempt: u32) -> Result<Job, StoreError> {
    let job = job(session, number);
    intend_as(store, number, attempt, &job, None).await?;
    Ok(job)
}

/// The same of a job, perhaps in the place of an earlier plan.
pub(crate) async fn intend_as(
    store: &Store,
    number: u32,
    attempt: u32,
    job: &Job,
    replaces: Option<&Identifier>,
) -> Result<(), StoreError> {
    let (session, name, about, rules, limits) = (&job.session, &name(number), &about(), &rules(), &limits());
    let begun = Timestamp(1_000_000);
    store.intent(&Intent { session, name, about, attempt, purpose: Purpose::Run, job, rules, limits, begun, replaces }).await
}

/// Where the folder of the socket of a server is, if the tests run on PostgreSQL.
pub(crate) const SERVER: &str = "MUSTER_STORE_TEST_SERVER";

/// The database of a test: a file in its folder, or a schema of its own on the server.
pub(crate) fn database(folder: &TempDir) -> Location {
    let Ok(server) = env::var(SERVER) else { return folder.path().join("results.db").into() };
    let name = folder.path().file_name().unwrap().to_string_lossy().replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
    muster_test_database::server::make_schema(&server, &name.to_lowercase());
    format!("{}&spool={}", muster_test_database::server::url(&server, &name.to_lowercase()), folder.path().display()).into()
}

/// Panics if pages are damaged or a row refers to nothing. PostgreSQL has no foreign key that does not hold.
pub(crate) async fn check_integrity(database: &Location) {
    let Some(path) = database.as_file() else { return };
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    let report: Vec<String> = sqlx::query_scalar("PRAGMA integrity_check").fetch_all(&mut connection).await.unwrap();
    assert_eq!(report, ["ok"]);
    let orphans = sqlx::query("PRAGMA foreign_key_check").fetch_all(&mut connection).await.unwrap();
    assert!(orphans.is_empty(), "{} rows refer to nothing", orphans.len());
}

/// The rows of a query with one column of texts, on either database.
pub(crate) async fn rows(database: &Location, query: &'static str) -> Vec<String> {
    let Some(path) = database.as_file() else {
        return muster_test_database::server::rows(&env::var(SERVER).unwrap(), &schema_of(database), query);
    };
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    sqlx::query_scalar(query).fetch_all(&mut connection).await.unwrap()
}

/// Executes statements, on either database.
pub(crate) async fn execute(database: &Location, statements: &'static str) {
    let Some(path) = database.as_file() else {
        return muster_test_database::server::execute(&env::var(SERVER).unwrap(), &schema_of(database), statements);
    };
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    sqlx::raw_sql(statements).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// The schema of a test on the server.
fn schema_of(database: &Location) -> String {
    let url = database.display().to_string();
    let schema = url.split("search_path%3D").nth(1).unwrap();
    schema.split('&').next().unwrap().to_owned()
}

//! On a real PostgreSQL: the other tests of this binary, which is called again with a server, and what only a server does.

mod upkeep;

use crate::support::{SERVER, intend, launched, name, owner, result, session};
use muster_core::{
    error::chain,
    live::{CaseProgress, CaseState},
    result::Outcome,
};
use muster_store::{Location, Reader, Store, StoreError, Upkeep};
use muster_test_database::server::{self, Server};
use muster_text::time::Timestamp;
use std::{
    env, fs,
    path::PathBuf,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

/// What is about files.
const OF_FILES: [&str; 6] = [
    "postgres::",
    "reader::",
    "a_file_that_is_no_database_or_not_there_is_said_so",
    "a_kill_while_the_tables_are_made_leaves_none_or_all",
    "sessions_of_earlier_versions_get_their_nights_and_figures_by_a_rebuild",
    "a_copy_takes_the_place_of_a_database_alone",
];

/// A server of this test, and a database on it whose spool is in a folder.
struct Place {
    server: Server,
    folder: tempfile::TempDir,
}

impl Place {
    /// `None`: there is none here, and the reason is printed.
    fn new(settings: &[&str]) -> Option<Self> {
        let place = Self { server: Server::start(settings)?, folder: tempfile::tempdir().unwrap() };
        place.server.make_schema("muster");
        Some(place)
    }

    fn database(&self) -> Location {
        self.with("")
    }

    fn with(&self, parameters: &str) -> Location {
        format!("{}&spool={}{parameters}", self.server.url("muster"), self.folder.path().display()).into()
    }

    fn spools(&self) -> usize {
        fs::read_dir(self.folder.path()).unwrap().count()
    }
}

#[test]
fn every_test_that_is_not_about_files_passes_on_a_server() {
    let Some(server) = Server::start(&[]) else { return };
    let mut command = Command::new(env::current_exe().unwrap());
    command.env(SERVER, server.folder()).arg("--test-threads=4");
    for name in OF_FILES {
        command.args(["--skip", name]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let passed = text.lines().filter(|line| line.starts_with("test ") && line.ends_with("... ok")).count();
    assert!(passed > 20, "only {passed} tests ran on the server");
}

/// So many cases of a session, so many at once.
async fn run_cases(store: &Store, id: &str, cases: u32) {
    let session = session(id, 1);
    store.begin(&session, &owner(1)).await.unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|producer| {
            let (store, session) = (store.clone(), session.id.clone());
            tokio::spawn(async move {
                for number in (producer..cases).step_by(8) {
                    let job = intend(&store, &session, number, 1).await.unwrap();
                    store.launched(&launched(&job), Timestamp(7));
                    let running = CaseProgress { attempt: 1, state: CaseState::Running, ..CaseProgress::default() };
                    store.progress(&session, &Arc::new(name(number)), running, None);
                    store.finished(&session, &result(number, 1, Outcome::Pass)).await.unwrap();
                    store.cleaned(&job);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    store.end(&session.id, &owner(1), Timestamp(2), false).await.unwrap();
}

async fn count(database: &Location, id: &str) -> usize {
    let reader = Reader::open(database).await.unwrap();
    let row = reader.session(id, &|_| Some(false)).await.unwrap();
    assert_eq!(row.session.ended, Some(Timestamp(2)), "{id}");
    let results = reader.results(&row.session.id).await.unwrap();
    assert!(results.iter().all(|result| result.measurements.len() == 2), "a result without its measurements");
    let mut names: Vec<_> = results.iter().map(|result| result.name.display.clone()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), results.len(), "a result is there twice");
    results.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_sessions_of_a_thousand_cases_that_write_at_once_lose_nothing() {
    let Some(place) = Place::new(&[]) else { return };
    let database = place.database();
    let (before, started) = (place.server.cpu(), Instant::now());
    let client = client_cpu();
    let sessions: Vec<_> = (0..10)
        .map(|number| {
            let database = database.clone();
            tokio::spawn(async move {
                let store = Store::open(&database).await.unwrap();
                run_cases(&store, &format!("session{number}"), 1_000).await;
                store.close().await.unwrap();
            })
        })
        .collect();
    for session in sessions {
        session.await.unwrap();
    }
    let (server, client) = ((place.server.cpu() - before) / 1e4, (client_cpu() - client) / 1e4);
    println!("{server:.3} CPU ms a case of the server, {client:.3} of the client, {:?} in all", started.elapsed());
    for number in 0..10 {
        assert_eq!(count(&database, &format!("session{number}")).await, 1_000);
    }
    assert_eq!(Reader::open(&database).await.unwrap().open_jobs().await.unwrap(), []);
}

/// Processor time of this process so far, in milliseconds.
fn client_cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<f64> = stat[stat.rfind(')').unwrap() + 2..].split(' ').map(|x| x.parse().unwrap_or(0.0)).collect();
    (fields[11] + fields[12]) * 10.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_started_again_in_the_middle_loses_nothing() {
    let Some(mut place) = Place::new(&["fsync=on"]) else { return };
    let database = place.database();
    let store = Store::open(&database).await.unwrap();
    let running = {
        let store = store.clone();
        tokio::spawn(async move { run_cases(&store, "killed", 2_000).await })
    };
    for kill in 1..=3 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        // While the server is away the spool takes cases faster than the server does.
        if kill > 1 && running.is_finished() {
            break;
        }
        assert!(!running.is_finished(), "it is killed in the middle");
        place.server.kill();
        tokio::time::sleep(Duration::from_millis(500)).await;
        place.server.run().unwrap();
    }
    running.await.unwrap();
    store.close().await.unwrap();
    assert_eq!(count(&database, "killed").await, 2_000);
    assert_eq!(Reader::open(&database).await.unwrap().open_jobs().await.unwrap(), []);
    assert_eq!(place.spools(), 0, "all of it is in the database");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_server_is_away_cases_go_on_until_the_spool_is_full_and_no_session_begins() {
    let Some(mut place) = Place::new(&[]) else { return };
    let database = place.with("&spool_limit=1");
    let store = Store::open(&database).await.unwrap();
    let mine = session("0199away", 5);
    store.begin(&mine, &owner(1)).await.unwrap();
    place.server.kill();
    let error = store.begin(&session("0199other", 5), &owner(1)).await.unwrap_err();
    assert!(matches!(&error, StoreError::Write { .. }), "{error:?}");
    let mut launched = 0;
    // Half of the spool is for results.
    while let Ok(job) = tokio::time::timeout(Duration::from_secs(2), intend(&store, &mine.id, launched, 1)).await {
        job.unwrap();
        launched += 1;
    }
    assert!(launched > 100, "{launched} cases were launched");
    for number in 0..launched / 4 {
        store.finished(&mine.id, &result(number, 1, Outcome::Pass)).await.unwrap();
    }
    place.server.run().unwrap();
    // The one that waited is written, too.
    store.finished(&mine.id, &result(launched, 1, Outcome::Pass)).await.unwrap();
    store.close().await.unwrap();
    let reader = Reader::open(&database).await.unwrap();
    assert_eq!(reader.results(&mine.id).await.unwrap().len(), launched as usize / 4 + 1);
    assert_eq!(place.spools(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_must_end_does_not_wait_for_room_in_the_spool() {
    let Some(mut place) = Place::new(&[]) else { return };
    let store = Store::open(place.with("&spool_limit=1")).await.unwrap();
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let all = Arc::clone(&told);
    store.tell(move |text| all.lock().unwrap().push(text));
    let mine = session("0199full", 5);
    store.begin(&mine, &owner(1)).await.unwrap();
    place.server.kill();
    let waiting = {
        let (store, session) = (store.clone(), mine.id.clone());
        tokio::spawn(async move {
            let mut number = 0;
            loop {
                number += 1;
                if let Err(error) = intend(&store, &session, number, 1).await {
                    return error;
                }
            }
        })
    };
    while !told.lock().unwrap().iter().any(|text| text.ends_with(" is full: nothing more is launched until the database answers"))
    {
        assert!(!waiting.is_finished());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    store.hurry();
    let error = tokio::time::timeout(Duration::from_secs(5), waiting).await.unwrap().unwrap();
    assert!(matches!(&error, StoreError::Spool { .. }), "{error:?}");
    // There is room for results.
    store.finished(&mine.id, &result(1, 1, Outcome::Pass)).await.unwrap();
    let told = told.lock().unwrap().clone();
    assert!(told[0].contains(" does not answer ("), "{told:?}");
    place.server.run().unwrap();
    store.close().await.unwrap();
    assert_eq!(place.spools(), 0);
}

/// A process begins a session, loses the server, keeps results, and is killed.
fn leave_a_spool(place: &mut Place) -> PathBuf {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "postgres::child"])
        .env(server::VARIABLE, "off")
        .env("MUSTER_STORE_TEST", place.database().as_argument())
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    let mut told = child.stdin.take().unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "begun");
    place.server.kill();
    std::io::Write::write_all(&mut told, b"go on\n").unwrap();
    while lines.next().unwrap().unwrap() != "spooled" {}
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.spools(), 1);
    fs::read_dir(place.folder.path()).unwrap().next().unwrap().unwrap().path()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_process_has_left_in_its_spool_is_written_by_the_next() {
    let Some(mut place) = Place::new(&[]) else { return };
    let mine = session("0199left", 5);
    let database = place.database();
    let spool = leave_a_spool(&mut place);
    let file_name = spool.file_name().unwrap().to_string_lossy().into_owned();
    let unreadable = place.folder.path().join(format!("{}.0.0.spool", file_name.split('.').next().unwrap()));
    fs::write(&unreadable, [3, 0, 0, 0, 0xc1, 0xc1, 0xc1]).unwrap();
    place.server.run().unwrap();
    Store::open(&database).await.unwrap().close().await.unwrap();
    assert!(!spool.exists() && unreadable.exists(), "what cannot be read keeps nobody from working, and stays");
    let reader = Reader::open(&database).await.unwrap();
    assert_eq!(reader.results(&mine.id).await.unwrap().len(), 1);
    let unfinished: Vec<_> = reader.unfinished(&mine.id).await.unwrap().into_iter().map(|row| row.name).collect();
    assert_eq!(unfinished, [name(2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spool_whose_session_is_not_in_the_database_stays_and_is_named() {
    let Some(mut place) = Place::new(&[]) else { return };
    let spool = leave_a_spool(&mut place);
    place.server.run().unwrap();
    // Another schema of the same database.
    place.server.make_schema("other");
    let other: Location = format!("{}&spool={}", place.server.url("other"), place.folder.path().display()).into();
    let store = Store::open(&other).await.unwrap();
    assert_eq!(store.notes(), [""; 0]);
    store.close().await.unwrap();
    // An older copy of the database, or another server of the same name.
    place.server.execute("UPDATE muster.session SET id = 'aside'");
    let store = Store::open(place.database()).await.unwrap();
    let [note] = store.notes() else { panic!("{:?}", store.notes()) };
    assert!(note.starts_with(&format!("the spool {} stays: its session 0199left is not in ", spool.display())), "{note}");
    store.close().await.unwrap();
    assert!(spool.exists());
    place.server.execute("UPDATE muster.session SET id = '0199left'");
    let store = Store::open(place.database()).await.unwrap();
    let written = format!("3 messages of a process that is gone are written, from {}", spool.display());
    assert_eq!(store.notes(), [written]);
    store.close().await.unwrap();
    assert!(!spool.exists());
    let reader = Reader::open(place.database()).await.unwrap();
    assert_eq!(reader.results(&session("0199left", 5).id).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_upkeep_of_a_database_begins_with_what_is_in_a_spool() {
    let Some(mut place) = Place::new(&[]) else { return };
    let spool = leave_a_spool(&mut place);
    place.server.run().unwrap();
    Upkeep::open(place.database()).await.unwrap().close().await.unwrap();
    assert!(!spool.exists());
}

/// Not with `eprintln!`, which the test harness keeps for itself.
fn say(line: &str) {
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the other side of a test of this file"]
async fn child() {
    let Ok(database) = env::var("MUSTER_STORE_TEST") else { return };
    let store = Store::open(database).await.unwrap();
    let mine = session("0199left", 5);
    store.begin(&mine, &owner(1)).await.unwrap();
    say("begun\n");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    for number in [1, 2] {
        intend(&store, &mine.id, number, 1).await.unwrap();
    }
    store.finished(&mine.id, &result(1, 1, Outcome::Pass)).await.unwrap();
    say("spooled\n");
    std::thread::sleep(Duration::from_mins(5));
}

#[tokio::test]
async fn a_heartbeat_has_its_age_by_the_clock_of_the_server_and_no_owner_is_silent_for_longer_than_that_runs() {
    let Some(place) = Place::new(&[]) else { return };
    let database = place.database();
    let started = Instant::now();
    let store = Store::open(&database).await.unwrap();
    let mine = session("0199beat", 5);
    store.begin(&mine, &owner(1)).await.unwrap();
    let reader = Reader::open(&database).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let silence = reader.silence(&mine.id).await.unwrap().unwrap();
    assert!(silence >= Duration::from_millis(1_500) && silence < started.elapsed(), "{silence:?}");
    store.beat(&mine.id, &owner(1)).await.unwrap();
    let silence = reader.silence(&mine.id).await.unwrap().unwrap();
    assert!(silence < Duration::from_millis(1_500), "{silence:?}");
    // As if the server had been away for an hour.
    place.server.execute("UPDATE muster.session SET heartbeat_at = heartbeat_at - 3600000000");
    let silence = reader.silence(&mine.id).await.unwrap().unwrap();
    assert!(silence < Duration::from_mins(5), "{silence:?}");
    store.close().await.unwrap();
    let file = place.folder.path().join("results.db");
    Store::open(&file).await.unwrap().begin(&mine, &owner(1)).await.unwrap();
    assert_eq!(Reader::open(&file).await.unwrap().silence(&mine.id).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_answers_a_question_while_another_one_waits_for_a_lock() {
    let Some(place) = Place::new(&[]) else { return };
    Store::open(&place.database()).await.unwrap().close().await.unwrap();
    let reader = Reader::open(&place.database()).await.unwrap().answering(2);
    let lock = "BEGIN; LOCK TABLE muster.session IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(4); COMMIT";
    let server = &place.server;
    std::thread::scope(|scope| {
        scope.spawn(|| server.execute(lock));
        std::thread::sleep(Duration::from_secs(2));
        let (locked, free) = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                let locked = async {
                    reader.sessions(1, &|_| None).await.unwrap();
                    Instant::now()
                };
                let free = async {
                    reader.remarks().await.unwrap();
                    Instant::now()
                };
                tokio::join!(locked, free)
            })
        });
        assert!(free < locked);
    });
}

#[tokio::test]
async fn what_a_user_may_do_is_known_without_doing_it() {
    let Some(place) = Place::new(&[]) else { return };
    let of = async |user: &str| match Location::from(place.server.url_of(user, "muster")) {
        Location::Server(server) => muster_store::rights(&server).await.unwrap(),
        Location::File(path) => panic!("{}", path.display()),
    };
    place.server.execute("CREATE ROLE maker LOGIN; CREATE ROLE reader LOGIN; CREATE ROLE stranger LOGIN");
    place.server.execute("GRANT USAGE, CREATE ON SCHEMA muster TO maker; GRANT USAGE ON SCHEMA muster TO reader");
    let maker = of("maker").await;
    assert_eq!((maker.schema.as_deref(), maker.creates, maker.is_copy), (Some("muster"), true, false));
    assert_eq!(of("stranger").await.schema, None);
    Store::open(&place.database()).await.unwrap().close().await.unwrap();
    place.server.execute("GRANT SELECT ON ALL TABLES IN SCHEMA muster TO reader");
    let reader = of("reader").await;
    assert!(!reader.creates && reader.closed_tables.iter().any(|table| table == "session"), "{reader:?}");
    place.server.execute("GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA muster TO reader");
    assert_eq!(of("reader").await.closed_tables, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_needs_no_right_but_to_select_and_nobody_else_reads() {
    let Some(place) = Place::new(&[]) else { return };
    let database = place.database();
    let store = Store::open(&database).await.unwrap();
    run_cases(&store, "0199read", 5).await;
    place.server.execute(
        "CREATE ROLE reader LOGIN; CREATE ROLE nobody LOGIN; GRANT USAGE ON SCHEMA muster TO reader, nobody;
         GRANT SELECT ON ALL TABLES IN SCHEMA muster TO reader",
    );
    let of = |user: &str| Location::from(place.server.url_of(user, "muster"));
    assert_eq!(count(&of("reader"), "0199read").await, 5);
    let error = chain(&Reader::open(of("nobody")).await.unwrap_err());
    assert!(error.ends_with("permission denied for table schema_version (code 42501)"), "{error}");
    let error = chain(&Store::open(of("reader")).await.unwrap().begin(&session("0199no", 5), &owner(1)).await.unwrap_err());
    assert!(error.ends_with("permission denied for table session (code 42501)"), "{error}");
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_and_certificates_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("!!! SKIPPED: TLS of PostgreSQL was not tested: openssl is not installed");
        return;
    }
    let Some(mut place) = Place::new(&[]) else { return };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    server::certificate(folder.path());
    for name in ["server.crt", "server.key"] {
        let file = place.server.data().join(name);
        fs::copy(folder.path().join(name), &file).unwrap();
        place.server.give(&file).unwrap();
    }
    place.server.execute("CREATE ROLE ada LOGIN PASSWORD 'a:s3cret'; GRANT ALL ON SCHEMA muster TO ada");
    fs::write(place.server.data().join("pg_hba.conf"), "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n")
        .unwrap();
    place.server.kill();
    place.server.listen_with_tls(port);
    place.server.run().unwrap();

    let passwords = folder.path().join("passwords");
    fs::write(&passwords, format!("localhost:{port}:muster:ada:a\\:s3cret\n")).unwrap();
    fs::set_permissions(&passwords, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let schema = "options=-csearch_path%3Dmuster";
    let url = |user: &str, host: &str, parameters: &str| format!("postgres://{user}@{host}:{port}/muster?{schema}&{parameters}");
    let certificate = format!("sslrootcert={}", folder.path().join("server.crt").display());
    let passfile = format!("passfile={}", passwords.display());
    let whole = url("ada", "localhost", &format!("sslmode=verify-full&{certificate}&{passfile}"));
    Store::open(&*whole).await.unwrap().close().await.unwrap();
    let with_password = url("ada:a%3As3cret", "127.0.0.1", &format!("sslmode=verify-ca&{certificate}"));
    Store::open(&*with_password).await.unwrap().close().await.unwrap();
    for (wrong, expected) in [
        (url("ada:wr0ng", "127.0.0.1", "sslmode=require"), "password authentication failed for user \"ada\" (code 28P01)"),
        (url("ada:a%3As3cret", "localhost", "sslmode=verify-full"), "invalid peer certificate"),
        (url("ada:a%3As3cret", "127.0.0.1", &format!("sslmode=verify-full&{certificate}")), "invalid peer certificate"),
        (url("ada:a%3As3cret", "127.0.0.1", "sslmode=disable"), "no encryption"),
    ] {
        let error = chain(&Store::open(&*wrong).await.unwrap_err());
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("s3cret") && !error.contains("wr0ng"), "{error}");
    }
}

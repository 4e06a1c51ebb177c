//! Reading as another user, who can write neither the file nor its folder. Writers and readers are processes of their own: this test
//! binary, called again for `writer` or `reader`.

use crate::support::{held, owner, result, session};
use muster_core::result::Outcome;
use muster_store::{Reader, Store, StoreError};
use muster_text::time::Timestamp;
use sqlx::{Connection, SqliteConnection};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Who may read only.
const NOBODY: u32 = 65534;

/// A folder that only its owner can write, with this test binary in it: the build folder may be private.
struct Place {
    folder: TempDir,
}

impl Place {
    /// `None`: only root can be another user.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("!!! SKIPPED: reading as another user needs root");
            return None;
        }
        let folder = TempDir::with_prefix("muster-store-").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (binary, copy) = (std::env::current_exe().unwrap(), folder.path().join("binary"));
        fs::hard_link(&binary, &copy).or_else(|_| fs::copy(&binary, &copy).map(drop)).unwrap();
        Some(Self { folder })
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("results.db")
    }

    fn child(&self, name: &str, orders: &str) -> Command {
        let mut command = Command::new(self.folder.path().join("binary"));
        command.args(["--ignored", "--exact", "--nocapture", &format!("reader::{name}")]);
        command.env("MUSTER_STORE_TEST", orders).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// A process that has written a session of so many cases, and waits, or closes the database if it is told to.
    fn writer(&self, cases: u32) -> Child {
        let mut child = self.child("writer", &format!("{cases} {}", self.database().display())).spawn().unwrap();
        assert_eq!(BufReader::new(child.stderr.as_mut().unwrap()).lines().next().unwrap().unwrap(), "written");
        // Readable, as with `--file-mode 0644`.
        for entry in fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if !path.ends_with("binary") {
                fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
            }
        }
        child
    }

    /// What another user reads: the number of results and of states, or the error.
    fn read(&self) -> String {
        let before = self.files();
        let output = self.child("reader", &self.database().to_string_lossy()).uid(NOBODY).gid(NOBODY).output().unwrap();
        assert_eq!(self.files(), before, "a reader leaves nothing");
        String::from_utf8_lossy(&output.stderr).trim().to_owned()
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    fn has(&self, suffix: &str) -> bool {
        self.files().contains(&self.folder.path().join(format!("results.db{suffix}")))
    }
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn close(mut child: Child) {
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[tokio::test]
#[ignore = "the other side of the tests of this file"]
async fn writer() {
    let Ok(orders) = std::env::var("MUSTER_STORE_TEST") else { return };
    let (cases, path) = orders.split_once(' ').unwrap();
    let store = Store::open(path).await.unwrap();
    let session = session(&format!("0199read{}", std::process::id()), 5);
    store.begin(&session, &owner(1)).await.unwrap();
    for number in 0..cases.parse().unwrap() {
        store.finished(&session.id, &result(number, 1, Outcome::Pass)).await.unwrap();
    }
    std::io::stderr().write_all(b"written\n").unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
    store.end(&session.id, &owner(1), Timestamp(9), false).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
#[ignore = "the other side of the tests of this file"]
async fn reader() {
    let Ok(path) = std::env::var("MUSTER_STORE_TEST") else { return };
    let text = match counted(Path::new(&path)).await {
        Ok((results, states)) => format!("{results} results, {states} states\n"),
        Err(error) => muster_core::error::chain(&error) + "\n",
    };
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

async fn counted(path: &Path) -> Result<(usize, usize), StoreError> {
    let reader = Reader::open(path).await?;
    let (mut results, mut states) = (0, 0);
    for row in reader.sessions(100, &|_| None).await? {
        results += reader.results(&row.session.id).await?.len();
        states += reader.changes(&row.session.id, 0).await?.cases.len();
    }
    Ok((results, states))
}

#[test]
fn another_user_reads_beside_a_writer_after_its_end_and_after_it_was_killed() {
    let Some(place) = Place::new() else { return };
    let writer = place.writer(3);
    assert_eq!(place.read(), "3 results, 3 states", "beside a writer");
    kill(writer);
    assert!(place.has("-wal") && place.has("-shm"), "{:?}", place.files());
    assert_eq!(place.read(), "3 results, 3 states", "after it was killed");
    let writer = place.writer(4);
    assert_eq!(place.read(), "7 results, 7 states", "beside the next");
    kill(writer);
    fs::remove_file(place.folder.path().join("results.db-shm")).unwrap();
    assert_eq!(place.read(), "7 results, 7 states", "with a log and no index");
    close(place.writer(1));
    assert!(!place.has("-wal") && !place.has("-shm"), "{:?}", place.files());
    assert_eq!(place.read(), "8 results, 8 states", "after its end");
}

#[test]
fn another_user_reads_what_a_writer_with_a_rollback_journal_has_left() {
    let Some(place) = Place::new() else { return };
    close(place.writer(2));
    let script = "PRAGMA journal_mode = delete; BEGIN; DELETE FROM live; DELETE FROM measurement; DELETE FROM attempt; \
         PRAGMA cache_spill = 1; PRAGMA cache_size = 1;";
    // A transaction that is not finished leaves its journal, and pages of it may be in the file already.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let kept = runtime.block_on(async {
        let mut connection = SqliteConnection::connect(&format!("sqlite://{}", place.database().display())).await.unwrap();
        sqlx::raw_sql(script).execute(&mut connection).await.unwrap();
        let filler =
            "CREATE TABLE filler (x); INSERT INTO filler SELECT randomblob(4000) FROM attempt, pragma_function_list LIMIT 900";
        sqlx::raw_sql(filler).execute(&mut connection).await.unwrap();
        connection
    });
    let journal = place.folder.path().join("results.db-journal");
    let copies: Vec<_> = [place.database(), journal].into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    runtime.block_on(kept.close()).unwrap();
    for (path, bytes) in copies {
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    assert_eq!(place.read(), "2 results, 2 states");
}

#[tokio::test]
async fn what_is_read_without_a_lock_is_read_again_when_a_writer_came() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.db");
    let session = session("0199read", 5);
    let store = Store::open(&path).await.unwrap();
    store.begin(&session, &owner(1)).await.unwrap();
    store.finished(&session.id, &result(0, 1, Outcome::Pass)).await.unwrap();
    store.close().await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    assert_eq!(reader.results(&session.id).await.unwrap().len(), 1);
    let store = Store::open(&path).await.unwrap();
    store.take_over(&session.id, &held(1, 0), &owner(2)).await.unwrap();
    store.finished(&session.id, &result(1, 1, Outcome::Pass)).await.unwrap();
    assert_eq!(reader.results(&session.id).await.unwrap().len(), 2, "beside a writer");
    store.close().await.unwrap();
    assert_eq!(reader.results(&session.id).await.unwrap().len(), 2, "after its end");
}

#[tokio::test]
async fn a_writer_waits_for_no_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.db");
    let store = Store::open(&path).await.unwrap();
    let session = session("0199read", 5);
    store.begin(&session, &owner(1)).await.unwrap();
    let url = format!("sqlite://{}?mode=ro", path.display());
    let mut reader = SqliteConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT * FROM session").execute(&mut reader).await.unwrap();
    let started = Instant::now();
    for number in 0..600 {
        store.finished(&session.id, &result(number, 1, Outcome::Pass)).await.unwrap();
    }
    store.end(&session.id, &owner(1), Timestamp(9), false).await.unwrap();
    store.close().await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(9), "{:?}", started.elapsed());
    reader.close().await.unwrap();
    assert_eq!(counted(&path).await.unwrap(), (600, 600));
}

#[tokio::test]
async fn a_reader_refuses_a_database_of_an_older_version_and_names_the_command_that_migrates_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.db");
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}?mode=rwc", path.display())).await.unwrap();
    let old = ["0001_spine", "0002_resume", "0003_rounds", "0004_owners"].map(|step| {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/schema/migrations/{step}.sql"))).unwrap()
    });
    let version = "CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied TEXT NOT NULL) STRICT;
        INSERT INTO schema_version VALUES (1, ''), (2, ''), (3, ''), (4, '');";
    sqlx::raw_sql(sqlx::AssertSqlSafe(old.concat() + version)).execute(&mut connection).await.unwrap();
    sqlx::raw_sql(OLD_ROWS).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();

    let error = Reader::open(&path).await.unwrap_err();
    assert!(matches!(error, StoreError::OlderSchema { found: 4, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(&format!("`muster results migrate --db {}`", path.display())), "{text}");

    muster_store::migrate(&(&path).into()).await.unwrap();
    let reader = Reader::open(&path).await.unwrap();
    let id = reader.sessions(1, &|_| None).await.unwrap().remove(0).session.id;
    let changes = reader.changes(&id, 0).await.unwrap();
    let states: Vec<_> = changes
        .cases
        .iter()
        .map(|case| {
            (case.name.display.as_str(), case.progress.state.as_str(), case.progress.attempt, case.progress.since, &case.outcome)
        })
        .collect();
    assert_eq!(
        states,
        [
            ("ended", "ended", 2, Timestamp(9), &Some(Outcome::Pass)),
            ("retried", "pending", 2, Timestamp(8), &None),
            ("started", "pending", 1, Timestamp(7), &None)
        ]
    );
}

/// A session of three cases: one has ended, one has started, one was started again.
const OLD_ROWS: &str = "
    INSERT INTO session (number, id, started, command, system, user_name, host, workdir, version, num_cases,
        interrupted, owner_host, owner_pid, owner_start_time, owner_boot_id) VALUES (1, 'a', 1, '[]', '', '', '', '', '', 3, 0, '', 0, 0, '');
    INSERT INTO \"case\" (id, session, display, check_name, hash, system, partition, environ, about)
        VALUES (1, 1, 'ended', '', '', '', '', '', '{}'), (2, 1, 'retried', '', '', '', '', '', '{}'), (3, 1, 'started', '', '', '', '', '', '{}');
    INSERT INTO attempt (id, \"case\", number, outcome, reason, phase, begun, finished, detail)
        VALUES (1, 1, 1, 'fail', 'sanity', 'run', 1, 5, '{}'), (2, 1, 2, 'pass', NULL, 'run', 6, 9, '{}'), (3, 2, 1, 'fail', 'sanity', 'run', 1, 5, '{}');
    INSERT INTO job (session, identifier, \"case\", attempt, state, stage, plan, rules, begun, launched_at)
        VALUES (1, 'a', 1, 2, 'cleaned', '', '{}', '{}', 6, 6), (1, 'b', 2, 1, 'ended', '', '{}', '{}', 1, 2),
        (1, 'c', 2, 2, 'launched', '', '{}', '{}', 6, 8), (1, 'd', 3, 1, 'intent', '', '{}', '{}', 7, NULL);";

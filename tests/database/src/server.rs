//! A PostgreSQL server for tests: from Debian's packages, in memory where that is possible, on a Unix socket, as a user of its own.
//!
//! It ends with this process: what started it waits for the end of a pipe.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tempfile::TempDir;

/// `required` where tests must not be left out, `off` to leave them out.
pub const VARIABLE: &str = "MUSTER_POSTGRES_TESTS";

const PORT: u16 = 5432;

/// Its administrator.
const USER: &str = "admin";

/// Starts the server, waits for the end of its input, stops the server and removes its folder.
const GUARD: &str = r#"folder=$1; shift
"$@" >>"$folder/log" 2>&1 &
server=$!
read -r keep
kill -QUIT $server 2>/dev/null
wait $server
[ "$keep" = keep ] || rm -rf "$folder""#;

const PATIENCE: Duration = Duration::from_mins(1);

/// The line of `postmaster.pid` with the key and the number of its shared memory.
const SHARED_MEMORY: usize = 6;

/// A server with one database, `muster`.
pub struct Server {
    folder: PathBuf,
    programs: PathBuf,
    user: Option<(u32, u32)>,
    settings: Vec<String>,
    port: u16,
    guard: Option<Child>,
}

impl Server {
    /// Starts a server. `None`: there can be none here, or the tests are left out; the reason is printed.
    ///
    /// # Panics
    /// If [`VARIABLE`] requires one.
    #[must_use]
    pub fn start(settings: &[&str]) -> Option<Self> {
        let wanted = env::var(VARIABLE).unwrap_or_default();
        let started = if wanted == "off" { Err(format!("{VARIABLE}=off")) } else { Self::started(settings) };
        match started {
            Ok(server) => Some(server),
            Err(reason) if wanted == "required" => panic!("no PostgreSQL server could be started: {reason}"),
            Err(reason) => {
                eprintln!("\n!!! SKIPPED: nothing was tested on PostgreSQL: {reason}\n");
                None
            }
        }
    }

    fn started(settings: &[&str]) -> Result<Self, String> {
        let programs = programs().ok_or("its programs are not installed (Debian: postgresql)")?;
        let user = own_user()?;
        let folder = folder(user).map_err(|error| format!("make its folder: {error}"))?;
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut server = Self { folder, programs, user, settings, port: PORT, guard: None };
        let made = server
            .program("initdb")
            .args(["--no-sync", "--no-instructions", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "-U", USER, "-D"])
            .arg(server.data())
            .output()
            .map_err(|error| format!("initdb: {error}"))?;
        if !made.status.success() {
            return Err(format!("initdb: {}", String::from_utf8_lossy(&made.stderr)));
        }
        server.run()?;
        server.execute_in("postgres", "CREATE DATABASE muster")?;
        Ok(server)
    }

    /// Its folder, which belongs to its user.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Gives a file to the user of the server.
    ///
    /// # Errors
    /// A file that is not there.
    pub fn give(&self, path: &Path) -> io::Result<()> {
        self.user.map_or(Ok(()), |(user, group)| chown(path, Some(user), Some(group)))
    }

    /// The URL of its administrator, in which tables are made and looked for in one schema.
    #[must_use]
    pub fn url(&self, schema: &str) -> String {
        url(&self.folder.to_string_lossy(), schema)
    }

    /// Makes it listen on this port, too, with TLS, from its next start on.
    pub fn listen_with_tls(&mut self, port: u16) {
        self.settings.extend(["ssl=on".to_owned(), "listen_addresses=127.0.0.1".to_owned(), format!("port={port}")]);
        self.port = port;
    }

    #[must_use]
    pub fn url_of(&self, user: &str, schema: &str) -> String {
        format!("postgres://{user}@/muster?host={}&options=-csearch_path%3D{schema}", self.folder.display())
    }

    /// Makes an empty schema.
    ///
    /// # Panics
    /// If that fails.
    pub fn make_schema(&self, schema: &str) {
        make_schema(&self.folder.to_string_lossy(), schema);
    }

    /// Executes statements as the administrator.
    ///
    /// # Panics
    /// If that fails.
    pub fn execute(&self, statements: &str) {
        self.execute_in("muster", statements).unwrap_or_else(|error| panic!("{statements}: {error}"));
    }

    fn execute_in(&self, database: &str, statements: &str) -> Result<(), String> {
        let (options, statements) = (self.options(database), statements.to_owned());
        thread::spawn(move || executed(&options, &statements)).join().map_err(|_| "a panic".to_owned())?
    }

    fn options(&self, database: &str) -> PgConnectOptions {
        let options =
            PgConnectOptions::new_without_pgpass().socket(&self.folder).port(self.port).username(USER).database(database);
        options.disable_statement_logging()
    }

    /// Starts the server, and waits until it answers.
    ///
    /// # Errors
    /// What it says of itself.
    pub fn run(&mut self) -> Result<(), String> {
        let mut command = self.command("/bin/sh");
        let postgres = self.programs.join("postgres");
        command.args(["-c", GUARD, "sh"]).arg(&self.folder).arg(postgres).arg("-D").arg(self.data()).arg("-k").arg(&self.folder);
        for setting in [
            "listen_addresses=",
            "fsync=off",
            "full_page_writes=off",
            "max_connections=50",
            "shared_buffers=32MB",
            "dynamic_shared_memory_type=mmap",
        ] {
            command.args(["-c", setting]);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        let guard = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn();
        self.guard = Some(guard.map_err(|error| format!("start it: {error}"))?);
        let started = Instant::now();
        loop {
            let ready =
                self.program("pg_isready").arg("-q").arg("-h").arg(&self.folder).args(["-p", &self.port.to_string()]).status();
            if ready.is_ok_and(|status| status.success()) {
                return Ok(());
            }
            if started.elapsed() > PATIENCE {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                return Err(format!("it does not answer after {PATIENCE:?}:\n{log}"));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills all its processes, without a warning.
    ///
    /// # Panics
    /// If it does not run.
    pub fn kill(&mut self) {
        let text = fs::read_to_string(self.data().join("postmaster.pid")).expect("the server runs");
        let pid = text.lines().next().expect("a process id").to_owned();
        let children = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
            let status = fs::read_to_string(entry.path().join("status")).ok()?;
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().to_owned();
            (parent == pid).then(|| entry.file_name().to_string_lossy().into_owned())
        });
        let children: Vec<String> = children.collect();
        let script = format!("kill -KILL {pid} && {{ kill -KILL {} 2>/dev/null; true; }}", children.join(" "));
        let killed = Command::new("/bin/sh").args(["-c", &script]).status();
        assert!(killed.is_ok_and(|status| status.success()), "kill {pid}");
        if let Some(mut guard) = self.guard.take() {
            let mut told = guard.stdin.take().expect("a pipe");
            io::Write::write_all(&mut told, b"keep\n").expect("the guard listens");
            drop(told);
            guard.wait().expect("the guard ends");
        }
        // The next server does not start while a process has this memory: one that was forked since the list was read, too.
        let shared = text.lines().nth(SHARED_MEMORY).and_then(|line| line.split_whitespace().nth(1)).expect("its shared memory");
        let killed = Instant::now();
        while is_attached(shared) && killed.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// User and system time of all its processes so far, in milliseconds.
    #[must_use]
    pub fn cpu(&self) -> f64 {
        let owner = self.user.map(|(user, _)| user);
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let of_process = |path: PathBuf| {
            let name = fs::read_to_string(path.join("comm")).ok()?;
            let is_ours = name.trim() == "postgres"
                && owner.is_none_or(|owner| fs::metadata(&path).is_ok_and(|found| found.uid() == owner));
            let stat = fs::read_to_string(path.join("stat")).ok().filter(|_| is_ours)?;
            let fields: Vec<f64> = stat[stat.rfind(')')? + 2..].split(' ').map(|field| field.parse().unwrap_or(0.0)).collect();
            // Children that have ended are counted by the first process.
            Some((fields.get(11)? + fields.get(12)? + fields.get(13)? + fields.get(14)?) * 10.0)
        };
        entries.filter_map(|entry| of_process(entry.path())).sum()
    }

    fn program(&self, name: &str) -> Command {
        self.command(self.programs.join(name))
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the address of a schema on the server with this folder.
#[must_use]
pub fn url(folder: &str, schema: &str) -> String {
    format!("postgres://{USER}@/muster?host={folder}&options=-csearch_path%3D{schema}")
}

/// Makes a schema on the server with this folder, unless it has it.
///
/// # Panics
/// If that fails.
pub fn make_schema(folder: &str, schema: &str) {
    let options = PgConnectOptions::new_without_pgpass().socket(folder).port(PORT).username(USER).database("muster");
    let statement = format!("CREATE SCHEMA IF NOT EXISTS {schema}");
    // Within a runtime no other can be waited for.
    let made = thread::spawn(move || executed(&options.disable_statement_logging(), &statement)).join();
    made.expect("no panic").unwrap_or_else(|error| panic!("make the schema {schema}: {error}"));
}

/// Executes statements in a schema on the server with this folder.
///
/// # Panics
/// If that fails.
pub fn execute(folder: &str, schema: &str, statements: &str) {
    let (options, text) = (of_schema(folder, schema), statements.to_owned());
    let done = thread::spawn(move || executed(&options, &text)).join();
    done.expect("no panic").unwrap_or_else(|error| panic!("{statements}: {error}"));
}

/// The rows of a query with one column of texts, in a schema on the server with this folder.
///
/// # Panics
/// If that fails.
#[must_use]
pub fn rows(folder: &str, schema: &str, query: &str) -> Vec<String> {
    let (options, text) = (of_schema(folder, schema), query.to_owned());
    let found = thread::spawn(move || {
        crate::finish(async {
            let mut connection = options.connect().await?;
            let rows = sqlx::query_scalar(AssertSqlSafe(text)).fetch_all(&mut connection).await?;
            connection.close().await?;
            Ok(rows)
        })
    });
    found.join().expect("no panic").unwrap_or_else(|error: sqlx::Error| panic!("{query}: {error}"))
}

fn of_schema(folder: &str, schema: &str) -> PgConnectOptions {
    let options = PgConnectOptions::new_without_pgpass().socket(folder).port(PORT).username(USER).database("muster");
    options.options([("search_path", schema)]).disable_statement_logging()
}

fn executed(options: &PgConnectOptions, statements: &str) -> Result<(), String> {
    let done = crate::finish(async {
        let mut connection = options.connect().await?;
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut connection).await?;
        connection.close().await
    });
    done.map_err(|error| error.to_string())
}

/// The newest version that Debian's packages have installed, or what is in the path.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).filter(|path| path.join("bin/initdb").exists()).max_by_key(number);
    let on_path = || env::split_paths(&env::var_os("PATH")?).find(|folder| folder.join("initdb").exists());
    newest.map(|path| path.join("bin")).or_else(on_path)
}

/// Whether a process has shared memory of this number.
fn is_attached(number: &str) -> bool {
    let list = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let field = |line: &str, place: usize| line.split_whitespace().nth(place).map(str::to_owned);
    list.lines().any(|line| field(line, 1).as_deref() == Some(number) && field(line, 6).is_some_and(|count| count != "0"))
}

/// PostgreSQL refuses to run as root.
fn own_user() -> Result<Option<(u32, u32)>, String> {
    if fs::metadata("/proc/self").map(|found| found.uid()).map_err(|error| error.to_string())? != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").map_err(|error| error.to_string())?;
    let ids = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let is_it = fields.first() == Some(&"postgres");
        is_it.then(|| Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?)))?
    });
    ids.map(Some).ok_or_else(|| "there is no user `postgres`, and it does not run as root".to_owned())
}

fn folder(user: Option<(u32, u32)>) -> io::Result<PathBuf> {
    let memory = Path::new("/dev/shm");
    let folder = TempDir::with_prefix_in("muster-pg-", memory).or_else(|_| TempDir::with_prefix("muster-pg-"))?;
    if let Some((user, group)) = user {
        chown(folder.path(), Some(user), Some(group))?;
    }
    Ok(folder.keep())
}

/// A self-signed certificate for `localhost`, and its key: `server.crt` and `server.key` in a folder.
///
/// # Panics
/// If openssl cannot make it.
pub fn certificate(folder: &Path) {
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    command.args([
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ]);
    command.args(["-keyout", "server.key", "-out", "server.crt"]).current_dir(folder);
    let output = command.output().expect("openssl is installed");
    let mut why = String::new();
    let _ = write!(why, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{why}");
}

//! A folder of Alice's with a site and a check, and the real program in it.

use crate::{
    common::eventually,
    suite::cluster::{Cluster, User, run_folder},
};
use serde_json::Value;
use std::{
    ffi::OsStr,
    fs::{self, File},
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

/// How long a job may take to get into a state.
const SOON: Duration = Duration::from_secs(40);

/// The longest session of a test.
const LONGEST: Duration = Duration::from_secs(150);

/// A folder of Alice's with a site and a check.
pub(crate) struct Place<'c> {
    pub(crate) cluster: &'c Cluster,
    folder: PathBuf,
    name: String,
}

/// How one invocation of muster ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// Standard output and standard error.
    pub(crate) text: String,
    /// The run report; null if there is none.
    pub(crate) report: Value,
}

/// An invocation of muster that goes on.
pub(crate) struct Running<'p> {
    place: &'p Place<'p>,
    child: Child,
    log: PathBuf,
}

/// The program in a folder that everybody can read: the build folder may be private.
pub(crate) fn for_everybody() -> &'static Path {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| {
        let copy = run_folder().join("muster");
        fs::copy(env!("CARGO_BIN_EXE_muster"), &copy).expect("a copy of the program");
        copy
    })
}

impl<'c> Place<'c> {
    /// `options`: more keys of the partition. `check`: the keys of the check but its name, which is `name`; each test has its own.
    pub(crate) fn new(cluster: &'c Cluster, name: &str, options: &str, check: &str) -> Self {
        let place = Self { cluster, folder: run_folder().join(format!("place-{name}")), name: name.to_owned() };
        fs::create_dir(&place.folder).expect("a folder");
        let partition = "name: main, scheduler: slurm, environs: [default], max_jobs: 100";
        let limit = if options.contains("max_pending_time") { "" } else { ", max_pending_time: 2m" };
        place.write(
            "site.yaml",
            &format!("name: trial\npartitions: [{{ {partition}{limit}, {options} }}]\nenvironments: [{{ name: default }}]\n"),
        );
        place.write("c.check.yaml", &format!("name: {name}\nvalid_systems: ['*']\n{check}\n"));
        chown(&place.folder, Some(User::Alice.id()), Some(User::Alice.id())).expect("root may do this");
        place
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, text).expect("a file");
        path
    }

    /// A program that stands before all others on the PATH of Muster and of its jobs, if they get the PATH that is returned.
    pub(crate) fn stub(&self, name: &str, script: &str) -> String {
        let folder = self.file("bin");
        fs::create_dir_all(&folder).expect("a folder");
        let program = self.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("a program");
        format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Muster as Alice, with this site.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.prefixed(&[], arguments)
    }

    /// The same, started by another program.
    pub(crate) fn prefixed(&self, prefix: &[&str], arguments: &[&str]) -> Command {
        let words: Vec<&OsStr> = prefix.iter().map(OsStr::new).chain([for_everybody().as_os_str()]).collect();
        let mut command = self.cluster.command(User::Alice, words[0]);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MUSTER_")) {
            command.env_remove(name);
        }
        command.args(&words[1..]).current_dir(&self.folder).env("MUSTER_DB", self.file("results.db"));
        command.args(["-C", "site.yaml", "--system", "trial", "--nocolor"]).args(arguments);
        command
    }

    /// Muster with these arguments, to its end.
    pub(crate) fn muster(&self, arguments: &[&str]) -> Ended {
        self.to_end(&mut self.command(arguments))
    }

    /// Runs all cases.
    pub(crate) fn run(&self, more: &[&str]) -> Ended {
        self.muster(&[&["-c", "c.check.yaml", "-r"], more].concat())
    }

    pub(crate) fn to_end(&self, command: &mut Command) -> Ended {
        self.start(command).ended()
    }

    /// Runs all cases, and goes on beside the test.
    pub(crate) fn started(&self, more: &[&str]) -> Running<'_> {
        self.start(&mut self.command(&[&["-c", "c.check.yaml", "-r"], more].concat()))
    }

    pub(crate) fn start(&self, command: &mut Command) -> Running<'_> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let log = self.file(&format!("log{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        let file = File::create(&log).expect("a log");
        let child = command.stdout(file.try_clone().expect("a file")).stderr(file).spawn().expect("muster");
        Running { place: self, child, log }
    }

    fn ended(&self, status: ExitStatus, log: &Path) -> Ended {
        let text = String::from_utf8_lossy(&fs::read(log).expect("a log")).into_owned();
        let report = text.lines().rev().find_map(|line| line.strip_prefix("Run report: "));
        let report = report.and_then(|path| fs::read_to_string(self.file(path.trim())).ok()).unwrap_or_default();
        Ended { code: status.code(), text, report: serde_json::from_str(&report).unwrap_or_default() }
    }

    /// The jobs of this place's check in the queue: number, state.
    pub(crate) fn jobs(&self) -> Vec<(String, String)> {
        let listed = self.cluster.run(User::Root, &["squeue", "-h", "-t", "PD,CF,R,CG,S,ST", "-o", "%A %T %j"]);
        let prefix = format!("rfm-{}-", self.name);
        let job = |line: &str| {
            let (id, rest) = line.split_once(' ')?;
            let (state, name) = rest.split_once(' ')?;
            name.starts_with(&prefix).then(|| (id.to_owned(), state.to_owned()))
        };
        listed.lines().filter_map(job).collect()
    }

    /// The number of a job of this place that is in a state; waits for it.
    pub(crate) fn job(&self, state: &str) -> String {
        let mut found = None;
        eventually(&format!("a job of {} that is {state}", self.name), SOON, || {
            found = self.jobs().into_iter().find(|(_, is)| is == state).map(|(id, _)| id);
            found.is_some()
        });
        found.unwrap_or_default()
    }

    /// Waits until nothing of this place is in the queue.
    pub(crate) fn await_empty_queue(&self) {
        eventually(&format!("an empty queue of {}", self.name), SOON, || self.jobs().is_empty());
    }

    /// How often a line of the script ran: `echo mark >> $SLURM_SUBMIT_DIR/marks`.
    pub(crate) fn marks(&self) -> usize {
        fs::read_to_string(self.file("marks")).unwrap_or_default().lines().count()
    }

    /// The only file of a name below the stage folder; waits for it.
    pub(crate) fn staged(&self, name: &str) -> PathBuf {
        let mut found = None;
        eventually(name, SOON, || {
            found = find(&self.file("stage"), name);
            found.is_some()
        });
        found.unwrap_or_default()
    }
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut entries = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let found = |path: PathBuf| if path.is_dir() { find(&path, name) } else { path.ends_with(name).then_some(path) };
    entries.find_map(found)
}

impl Running<'_> {
    /// Waits for its end.
    pub(crate) fn ended(mut self) -> Ended {
        let started = Instant::now();
        let status = loop {
            match self.child.try_wait().expect("its state") {
                Some(status) => break status,
                None if started.elapsed() < LONGEST => sleep(Duration::from_millis(20)),
                None => {
                    self.signal("KILL");
                    panic!("muster has not ended within {LONGEST:?}: {}", self.text());
                }
            }
        };
        self.place.ended(status, &self.log)
    }

    /// What it has printed so far.
    pub(crate) fn text(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).stdin(Stdio::null()).status();
        assert!(status.is_ok_and(|status| status.success()), "kill -{name}");
    }
}

impl Ended {
    /// Fails the test, with all output, unless the exit code is this one.
    pub(crate) fn expect(self, code: i32) -> Self {
        assert!(self.code == Some(code), "exit code {:?}, not {code}\n{}", self.code, self.text);
        self
    }

    /// Fails the test unless the only case ended so, for a reason that has all these parts.
    pub(crate) fn expect_case(self, code: i32, outcome: &str, parts: &[&str]) -> Self {
        let ended = self.expect(code);
        let (is, cause) = (ended.outcome(), ended.cause());
        assert!(is == outcome && parts.iter().all(|part| cause.contains(part)), "{is}: {cause}\n{}", ended.text);
        ended
    }

    pub(crate) fn cases(&self) -> &[Value] {
        self.report["cases"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// The only case of the run report.
    pub(crate) fn case(&self) -> &Value {
        assert_eq!(self.cases().len(), 1, "{}", self.text);
        &self.cases()[0]
    }

    /// The outcome of the only case: `fail{workload}`.
    pub(crate) fn outcome(&self) -> String {
        outcome(self.case())
    }

    /// The cause of the only case.
    pub(crate) fn cause(&self) -> &str {
        self.case()["cause"].as_str().unwrap_or_default()
    }

    /// The warnings of the only case, a line each.
    pub(crate) fn warnings(&self) -> String {
        texts(&self.case()["warnings"]).join("\n")
    }

    /// The nodes of all cases, sorted.
    pub(crate) fn nodes(&self) -> Vec<&str> {
        let mut nodes: Vec<&str> = self.cases().iter().flat_map(|case| texts(&case["nodes"])).collect();
        nodes.sort_unstable();
        nodes
    }

    /// The text of a file that is kept of the only case.
    pub(crate) fn kept(&self, name: &str) -> Vec<u8> {
        let folder = self.case()["folder"].as_str().unwrap_or_else(|| panic!("no folder\n{}", self.text));
        fs::read(Path::new(folder).join(name)).unwrap_or_else(|error| panic!("{folder}/{name}: {error}"))
    }

    /// What the job of the only case has printed, without what Muster puts before it.
    pub(crate) fn stdout(&self) -> Vec<u8> {
        let whole = self.kept("rfm_job.out");
        let framing = format!("{}\n\n-------job-------\n", self.case()["identifier"].as_str().unwrap_or_default());
        let printed = whole.strip_prefix(framing.as_bytes());
        printed.unwrap_or_else(|| panic!("no framing: {}", String::from_utf8_lossy(&whole))).to_vec()
    }

    /// The same as text.
    pub(crate) fn printed(&self) -> String {
        String::from_utf8_lossy(&self.stdout()).into_owned()
    }
}

/// The outcome of a case: `fail{workload}`.
pub(crate) fn outcome(case: &Value) -> String {
    let outcome = &case["outcome"];
    let word = outcome["word"].as_str().unwrap_or_default();
    outcome["detail"].as_str().map_or_else(|| word.to_owned(), |detail| format!("{word}{{{detail}}}"))
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

//! A folder with a site on a cloud and a check, and the real program in it.

use super::cloud::Cloud;
use serde_json::Value;
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The longest session of a test.
const LONGEST: Duration = Duration::from_mins(2);

/// A folder with a site file, whose one partition is on a cloud, and a check.
pub(crate) struct Place<'c> {
    pub(crate) cloud: &'c Cloud,
    folder: TempDir,
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

impl<'c> Place<'c> {
    /// `options`: more keys of `sched_options`. `check`: its keys but `ec2_config`. `config`: more keys of that.
    pub(crate) fn new(cloud: &'c Cloud, options: &str, check: &str, config: &str) -> Self {
        let place = Self { cloud, folder: TempDir::new().expect("a folder") };
        let (region, bucket, endpoint) = (&cloud.region, &cloud.bucket, &cloud.endpoint);
        let subnets = cloud.subnets.join(", ");
        let options =
            format!("region: {region}, bucket: s3://{bucket}/ci, subnets: [{subnets}], endpoint_url: '{endpoint}', {options}");
        let partition = format!("name: ec2, scheduler: ec2, environs: [default], max_jobs: 100, sched_options: {{ {options} }}");
        place.write("site.yaml", &format!("name: aws\npartitions: [{{ {partition} }}]\nenvironments: [{{ name: default }}]\n"));
        let of = if config.contains("instance_type:") { "" } else { "instance_type: c7i.large, " };
        let config = format!("ec2_config: {{ ami: {}, {of}{config} }}", cloud.image);
        place.write("c.check.yaml", &format!("name: c\nvalid_systems: ['*']\n{check}\n{config}\n"));
        place
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, text).expect("a file");
        path
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Muster with this site.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MUSTER_")) {
            command.env_remove(name);
        }
        Cloud::environment(&mut command);
        command.current_dir(self.folder.path()).env("MUSTER_DB", self.file("results.db")).stdin(Stdio::null());
        command.args(["-C", "site.yaml", "--system", "aws", "--nocolor"]).args(arguments);
        command
    }

    /// Runs all cases to the end of the session.
    pub(crate) fn run(&self, more: &[&str]) -> Ended {
        self.started(more).ended()
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
    /// Fails the test, with all output, unless the only case ended so, for a reason that has all these parts.
    pub(crate) fn expect_case(self, code: i32, outcome: &str, parts: &[&str]) -> Self {
        assert!(self.code == Some(code), "exit code {:?}, not {code}\n{}", self.code, self.text);
        let (is, cause) = (self.outcome(), self.case()["cause"].as_str().unwrap_or_default());
        assert!(is == outcome && parts.iter().all(|part| cause.contains(part)), "{is}: {cause}\n{}", self.text);
        self
    }

    /// The only case of the run report.
    pub(crate) fn case(&self) -> &Value {
        let cases = self.report["cases"].as_array().map(Vec::as_slice).unwrap_or_default();
        assert_eq!(cases.len(), 1, "{}", self.text);
        &cases[0]
    }

    /// The outcome of the only case: `fail{workload}`.
    pub(crate) fn outcome(&self) -> String {
        let outcome = &self.case()["outcome"];
        let word = outcome["word"].as_str().unwrap_or_default();
        outcome["detail"].as_str().map_or_else(|| word.to_owned(), |detail| format!("{word}{{{detail}}}"))
    }

    /// The text of a file that is kept of the only case.
    pub(crate) fn kept(&self, name: &str) -> Vec<u8> {
        let folder = self.case()["folder"].as_str().unwrap_or_else(|| panic!("no folder\n{}", self.text));
        fs::read(Path::new(folder).join(name)).unwrap_or_else(|error| panic!("{folder}/{name}: {error}"))
    }
}

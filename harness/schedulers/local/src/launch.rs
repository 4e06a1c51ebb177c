//! Writing the stage folder of a job and starting its shell. Blocking; runs on a thread for such work.
//!
//! The log is opened for appending and handed to the child itself, with no pipe between: a harness that dies takes
//! nothing away from its jobs. It begins with the framing of the stdout contract, so that the file is the assembled
//! stdout and its first bytes are the canary that shows a truncation.

use crate::{
    LocalScheduler,
    plan::{self, LocalHandle},
    processes::{
        mark::{RFM_ID, RFM_SESSION},
        own_job::{OwnJob, Spawned, State},
    },
};
use muster_core::{
    error::{Class, SchedulerError},
    job::{
        scheduler::{Job, Launch},
        stage_folder::{EXIT_FILE, LOG_FILE, SCRIPT_FILE},
        stdout::{first_line, header},
    },
};
use muster_host::{clock, file_limit, files, process::Process};
use muster_stage::blocking;
use muster_text::time::Timestamp;
use rustix::io::Errno;
use std::{
    collections::HashMap,
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

/// After `NotNow`: a process or a descriptor is free again when some job ends.
const ROOM_RETRY: Duration = Duration::from_secs(1);

/// Names the harness itself for its jobs: its kernels measure a machine that has nothing else installed.
pub(super) const HARNESS: &str = "MUSTER";

/// What every local job takes over from the environment of the harness.
const ALWAYS_PASSED: [&str; 6] = ["PATH", "HOME", "USER", "LANG", "TMPDIR", HARNESS];

/// The environment of the harness, read once.
pub(super) type Environment = HashMap<OsString, OsString>;

/// Why none runs. Nothing is left that would disturb a second attempt.
pub(super) enum Refusal {
    /// No process or file descriptor is free now.
    NoRoom(String),
    /// It cannot be done.
    Failed(SchedulerError),
}

impl LocalScheduler {
    /// The entry of this identifier, and whether this call made it.
    fn enter(&self, job: &Job, host: &str) -> (Arc<OwnJob>, bool) {
        let mut jobs = self.jobs.lock();
        let mut is_new = false;
        let own = jobs.entry(job.identifier.clone()).or_insert_with(|| {
            is_new = true;
            Arc::new(OwnJob::new(host.into()))
        });
        (own.clone(), is_new)
    }

    pub(crate) async fn launch_once(&self, job: &Job) -> Result<Launch, SchedulerError> {
        let handle = LocalHandle::of(job)?;
        if handle.leader.is_some() {
            return Ok(Launch::Launched(job.clone()));
        }
        let (own, is_new) = self.enter(job, &handle.machine.host);
        if is_new {
            let (job, planned) = (job.clone(), Arc::clone(&handle));
            let (environment, jobs, own) = (self.environment.clone(), self.jobs.clone(), own.clone());
            // On a thread of its own it comes to its end even if this future is dropped.
            let spawning = blocking(move || match spawn(&job, &planned, &environment) {
                Ok(spawned) => {
                    own.begin(spawned);
                    None
                }
                Err(refusal) => {
                    jobs.lock().remove(&job.identifier);
                    own.fail();
                    Some(refusal)
                }
            });
            match spawning.await {
                None => {}
                Some(Refusal::NoRoom(why)) => return Ok(Launch::NotNow { why, retry_after: ROOM_RETRY, created: None }),
                Some(Refusal::Failed(error)) => return Err(error),
            }
        }
        match launch_answer(&own).await {
            Some((leader, since)) => Ok(Launch::Launched(plan::launched(job, &handle, leader, since))),
            None => Err(SchedulerError::plain(Class::Infra, format!("launch {} at the second call", job.identifier))),
        }
    }
}

/// Waits until the launch is answered: its leader and start, or `None` if it came to nothing.
pub(crate) async fn launch_answer(own: &OwnJob) -> Option<(Process, Timestamp)> {
    let mut states = own.subscribe();
    let state = states.wait_for(|state| *state != State::Launching).await.ok()?;
    match &*state {
        State::Running { leader, since } => Some((*leader, *since)),
        State::Ended { leader, ending } => Some((*leader, ending.started)),
        State::Launching | State::Failed => None,
    }
}

/// The bytes that a whole log begins with.
pub(super) fn framing(job: &Job, host: &str) -> String {
    first_line(&job.identifier) + &header(host)
}

/// Writes script and log into the stage folder, and an empty exit file, which has its mode before the job writes it; starts the shell.
pub(super) fn spawn(job: &Job, handle: &LocalHandle, environment: &Environment) -> Result<Spawned, Refusal> {
    let [script, log, exit] = [SCRIPT_FILE, LOG_FILE, EXIT_FILE].map(|name| job.stage.join(name));
    files::write_script(&script, &handle.script).map_err(|error| refusal("write", &script, error))?;
    files::create(&exit).map_err(|error| refusal("create", &exit, error))?;
    let out = open_log(&log, &framing(job, &handle.machine.host)).map_err(|error| refusal("create", &log, error))?;
    start(job, handle, environment, out).map_err(|error| {
        let _ = fs::remove_file(&log);
        refusal("start /bin/sh for", &script, error)
    })
}

/// A log that is already there belongs to a job that was launched before, perhaps by a harness that was killed then.
fn open_log(path: &Path, framing: &str) -> io::Result<File> {
    let mut file = files::create_new(path)?;
    file.write_all(framing.as_bytes())?;
    Ok(file)
}

/// Nothing here asks for code between fork and exec, so that the standard library uses `posix_spawn`, which is several
/// times cheaper. It resets an ignored SIGPIPE; the signal mask is inherited, and nothing in Muster blocks a signal.
fn start(job: &Job, handle: &LocalHandle, environment: &Environment, out: File) -> io::Result<Spawned> {
    let mut shell = Command::new("/bin/sh");
    match file_limit::started_with() {
        // The raised limit of the harness is not the job's.
        Some(limit) => shell.args(["-c", r#"ulimit -S -n "$0"; exec /bin/sh "$1""#, &limit.to_string(), SCRIPT_FILE]),
        None => shell.arg(SCRIPT_FILE),
    };
    let passed = ALWAYS_PASSED.into_iter().chain(handle.pass_env.iter().map(String::as_str));
    let child = shell
        .current_dir(&job.stage)
        .env_clear()
        .envs(passed.filter_map(|name| Some((name, environment.get(name.as_ref() as &std::ffi::OsStr)?))))
        .env(RFM_ID, job.identifier.as_str())
        .env(RFM_SESSION, &job.session.0)
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(out)
        .process_group(0)
        .spawn()?;
    let started = clock::now();
    let leader = Process::of(i32::try_from(child.id()).unwrap_or_default());
    Ok(Spawned { child, leader, started })
}

fn refusal(operation: &str, path: &Path, error: io::Error) -> Refusal {
    match Errno::from_io_error(&error) {
        Some(Errno::AGAIN | Errno::NOMEM) => Refusal::NoRoom(format!("no process can be started now: {error}")),
        Some(Errno::MFILE | Errno::NFILE) => Refusal::NoRoom(format!("no file can be opened now: {error}")),
        _ => Refusal::Failed(SchedulerError::new(Class::Infra, format!("{operation} {}", path.display()), error)),
    }
}

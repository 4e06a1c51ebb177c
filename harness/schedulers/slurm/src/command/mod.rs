//! Starting Slurm's commands: the only file that starts processes.
//!
//! Each has a time limit and a process group of its own, which is killed with it; its environment says nothing that changes what it
//! prints or asks for. At most two that ask run at once, whatever the number of jobs, and one sbatch: `queue` says whose.

mod queue;

pub(crate) use queue::{Delay, LONG_PATIENCE, LimitKey, PATIENCE, Queue, Turn};

use crate::plan::Place;
use muster_core::error::{Class, SchedulerError};
use muster_text::shell;
use rustix::{
    fs::{Access, access},
    process::{Pid, Signal, kill_process_group},
};
use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::{io::AsyncWriteExt, process::Command, sync::Semaphore, time::timeout};

/// How long a command may take that only asks.
pub(crate) const ASK_LIMIT: Duration = Duration::from_secs(20);
/// Two questions at once, and a login node is not busy with us.
const AT_ONCE: usize = 2;
/// What every job takes over from the environment of the harness.
const ALWAYS_PASSED: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "SLURM_CONF", HARNESS];
/// Variables that change what the commands do: those of a user, and those of a job in which Muster itself runs.
const PREFIXES: [&str; 8] = ["SBATCH_", "SRUN_", "SALLOC_", "SQUEUE_", "SACCT_", "SINFO_", "SCANCEL_", "SLURM_"];
/// Those that only say which cluster it is, and who asks.
const KEPT: [&str; 2] = ["SLURM_CONF", "SLURM_JWT"];
/// What sbatch needs to reach the cluster, and its job does not: Slurm's own libraries, and who asks.
const SUBMISSION: [&str; 2] = ["SLURM_JWT", "LD_LIBRARY_PATH"];
/// Names the harness for its jobs: the shipped checks have their programs there.
const HARNESS: &str = "MUSTER";

/// What a command said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// `None`: a signal ended it.
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Answer {
    pub(crate) fn is_ok(&self) -> bool {
        self.status == Some(0)
    }

    /// What it complains about, in one line.
    pub(crate) fn complaint(&self) -> String {
        let lines: Vec<&str> = self.stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        match (&lines[..], self.status) {
            ([], Some(status)) => format!("exit status {status}"),
            ([], None) => "a signal ended it".to_owned(),
            (lines, _) => lines.join("; "),
        }
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// It is not on the PATH.
    Missing(&'static str),
    /// It was killed at its limit.
    Silent(&'static str, Duration),
    Failed(&'static str, io::Error),
}

impl From<NoAnswer> for SchedulerError {
    fn from(why: NoAnswer) -> Self {
        match why {
            NoAnswer::Missing(program) => {
                let what = format!("{program} is not on the PATH: module load slurm?");
                SchedulerError::plain(Class::Config, what).with_nothing_created()
            }
            NoAnswer::Silent(program, limit) => {
                SchedulerError::plain(Class::Outage, format!("{program}: no answer within {} s", limit.as_secs()))
            }
            NoAnswer::Failed(program, error) => SchedulerError::new(Class::Infra, format!("start {program}"), error),
        }
    }
}

/// The commands of one cluster.
#[derive(Debug)]
pub(crate) struct Commands {
    place: Place,
    environment: HashMap<OsString, OsString>,
    turns: Semaphore,
    pub(crate) queue: Queue,
}

impl Commands {
    /// `harness`: where its program is.
    pub(crate) fn new(place: Place, harness: Option<&PathBuf>) -> Self {
        let mut environment: HashMap<OsString, OsString> = std::env::vars_os().collect();
        environment.extend(harness.map(|path| (HARNESS.into(), path.clone().into())));
        Self { place, environment, turns: Semaphore::new(AT_ONCE), queue: Queue::default() }
    }

    /// The environment, for tests.
    #[cfg(test)]
    pub(crate) fn set(&mut self, environment: &[(&str, &str)]) {
        self.environment = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    }

    /// Asks something.
    pub(crate) async fn ask<I>(&self, program: &'static str, arguments: I) -> Result<Answer, NoAnswer>
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let is_ours = |name: &OsStr| {
            let name = name.to_string_lossy();
            KEPT.contains(&&*name) || !PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        };
        let kept = self.environment.iter().filter(|(name, _)| is_ours(name)).map(|(name, value)| (name.clone(), value.clone()));
        let own = [("LC_ALL", "C"), ("SLURM_TIME_FORMAT", "%s")].map(|(name, value)| (name.into(), value.into()));
        let words: Vec<String> = arguments.into_iter().map(Into::into).collect();
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await;
        self.run(program, &words, None, ASK_LIMIT, kept.chain(own).collect()).await
    }

    /// Submits a script, in the environment that its job will have, but for [`hidden`](Self::hidden).
    pub(crate) async fn submit(
        &self,
        _turn: &Turn<'_>,
        words: &[String],
        pass_env: &[String],
        limit: Duration,
    ) -> Result<Answer, NoAnswer> {
        self.run("sbatch", words, None, limit, self.environment_of_sbatch(pass_env)).await
    }

    /// Has a script validated, and submits nothing.
    pub(crate) async fn test(&self, script: String, pass_env: &[String], limit: Duration) -> Result<Answer, NoAnswer> {
        let words: Vec<String> = ["--test-only".to_owned()].into_iter().chain(self.cluster()).collect();
        let _turn = self.turns.acquire().await;
        self.run("sbatch", &words, Some(script), limit, self.environment_of_sbatch(pass_env)).await
    }

    fn environment_of_sbatch(&self, pass_env: &[String]) -> HashMap<OsString, OsString> {
        let names = ALWAYS_PASSED.into_iter().chain(SUBMISSION).chain(pass_env.iter().map(String::as_str));
        names.filter_map(|name| Some((OsString::from(name), self.environment.get(OsStr::new(name))?.clone()))).collect()
    }

    /// What sbatch has of the user's environment and a job must not have. Slurm passes all of it on: its options that restrict
    /// this make the node start a login shell, or leave the job's steps without an environment.
    pub(crate) fn hidden(&self, pass_env: &[String]) -> Vec<&'static str> {
        let is_set = |name: &&str| self.place.via.is_empty() && self.environment.contains_key(OsStr::new(name));
        SUBMISSION.into_iter().filter(is_set).filter(|name| !pass_env.iter().any(|passed| passed == name)).collect()
    }

    async fn run(
        &self,
        program: &'static str,
        words: &[String],
        input: Option<String>,
        limit: Duration,
        environment: HashMap<OsString, OsString>,
    ) -> Result<Answer, NoAnswer> {
        let mut command = self.command(program, words, &environment);
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
        let started = Instant::now();
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => NoAnswer::Missing(program),
            _ => NoAnswer::Failed(program, error),
        })?;
        let mut group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        let stdin = child.stdin.take();
        let fed = async move {
            if let (Some(mut stdin), Some(input)) = (stdin, input) {
                // Who does not read it says why.
                let _ = stdin.write_all(input.as_bytes()).await;
            }
        };
        let ended = async { tokio::join!(fed, child.wait_with_output()).1 };
        match timeout(limit, ended).await {
            Err(_) => Err(NoAnswer::Silent(program, limit)),
            Ok(Err(error)) => Err(NoAnswer::Failed(program, error)),
            Ok(Ok(output)) => {
                // Reaped: its number may be another's by now.
                group.0 = None;
                let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
                Ok(Answer {
                    status: output.status.code(),
                    stdout: text(output.stdout),
                    stderr: text(output.stderr),
                    took: started.elapsed(),
                })
            }
        }
    }

    fn command(&self, program: &'static str, words: &[String], environment: &HashMap<OsString, OsString>) -> Command {
        let Some((first, rest)) = self.place.via.split_first() else {
            let mut command = Command::new(located(program, environment.get(OsStr::new("PATH"))));
            command.args(words).env_clear().envs(environment);
            return command;
        };
        // Elsewhere the environment is what its login gives, but for what changes the output.
        let mut command = Command::new(first);
        command.args(rest).args(["env", "SLURM_TIME_FORMAT=%s", program]);
        command.args(words.iter().map(|word| shell::quote(word)));
        command
    }

    /// The arguments that name the cluster.
    pub(crate) fn cluster(&self) -> Vec<String> {
        self.place.cluster.iter().flat_map(|cluster| ["-M".to_owned(), cluster.clone()]).collect()
    }
}

/// The file of a program. The standard library forks if it has to search another PATH than its own, and that copies the page tables of
/// a harness with a thousand jobs for each command; a file it starts at once.
fn located(program: &'static str, path: Option<&OsString>) -> PathBuf {
    let folders = path.map(std::env::split_paths).into_iter().flatten();
    let is_program = |file: &PathBuf| access(file, Access::EXEC_OK).is_ok() && file.is_file();
    folders.map(|folder| folder.join(program)).find(is_program).unwrap_or_else(|| program.into())
}

/// Whether this machine has Slurm's commands.
pub(crate) fn is_installed() -> bool {
    located("sbatch", std::env::var_os("PATH").as_ref()).is_absolute()
}

/// A process group that is killed unless its leader was reaped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> Commands {
        Commands::new(Place::default(), None)
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_killed_with_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("late");
        let script = format!("(sleep 2; touch {}) & sleep 60", file.display());
        let started = Instant::now();
        let words = ["-c".to_owned(), script];
        let answer = commands().run("sh", &words, None, Duration::from_millis(200), std::env::vars_os().collect()).await;
        assert!(matches!(answer, Err(NoAnswer::Silent("sh", _))), "{answer:?}");
        tokio::time::sleep(Duration::from_millis(2500)).await;
        assert!(!file.exists() && started.elapsed() < Duration::from_secs(30));
    }

    #[tokio::test]
    async fn an_answer_has_its_status_and_both_texts() {
        let answer = commands().ask("sh", ["-c", "echo out; echo err >&2; exit 3"]).await.unwrap();
        assert_eq!((answer.status, &*answer.stdout, &*answer.complaint()), (Some(3), "out\n", "err"));
        let missing = commands().ask("no-such-command-of-slurm", ["x"]).await;
        assert!(matches!(missing, Err(NoAnswer::Missing(_))), "{missing:?}");
    }

    #[tokio::test]
    async fn the_environment_of_commands_says_nothing_of_other_jobs() {
        let mut commands = commands();
        for (name, value) in [("SLURM_JOB_ID", "1"), ("SBATCH_TIMELIMIT", "bad"), ("SLURM_CONF", "/c"), ("MINE", "m")] {
            commands.environment.insert(name.into(), value.into());
        }
        let print = "echo $SLURM_JOB_ID $SBATCH_TIMELIMIT $SLURM_CONF $MINE $SLURM_TIME_FORMAT";
        assert_eq!(commands.ask("sh", ["-c", print]).await.unwrap().stdout, "/c m %s\n");
    }

    #[test]
    fn sbatch_has_what_squeue_needs_to_reach_the_cluster_and_its_job_does_not() {
        let mut commands = commands();
        let set = ["PATH", "SLURM_CONF", "SLURM_JWT", "LD_LIBRARY_PATH", "SLURM_JOB_ID", "SBATCH_TIMELIMIT", "MINE", "SECRET"];
        commands.set(&set.map(|name| (name, "value")));
        let names = |passed: &[String]| {
            let environment = commands.environment_of_sbatch(passed);
            let mut names: Vec<String> = environment.into_keys().map(|name| name.to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        let mine = ["MINE".to_owned(), "LD_LIBRARY_PATH".to_owned()];
        assert_eq!(names(&[]), ["LD_LIBRARY_PATH", "PATH", "SLURM_CONF", "SLURM_JWT"]);
        assert_eq!(names(&mine), ["LD_LIBRARY_PATH", "MINE", "PATH", "SLURM_CONF", "SLURM_JWT"]);
        assert_eq!(commands.hidden(&[]), ["SLURM_JWT", "LD_LIBRARY_PATH"]);
        assert_eq!(commands.hidden(&mine), ["SLURM_JWT"], "a job has what its site passes on");
        commands.environment.remove(OsStr::new("SLURM_JWT"));
        assert_eq!(commands.hidden(&[]), ["LD_LIBRARY_PATH"]);
    }
}

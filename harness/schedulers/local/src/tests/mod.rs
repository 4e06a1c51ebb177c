//! The scheduler with real processes. Nothing is left, whatever a test does: see [`Field`].

mod found_again;
mod modules;
mod running;
mod scripts;
mod stopping;

use crate::{LocalScheduler, SCHEDULER, processes::mark};
use futures_util::StreamExt;
use muster_check::render::script::Script;
use muster_core::{
    case::{CaseName, Identifier, SessionId},
    job::{
        scheduler::{Chunk, Disposition, Ending, Exit, Job, JobStatus, Launch, LogMarks, Scheduler},
        stage_folder::LOG_FILE,
        workload::{Limits, Program, Workload},
    },
};
use muster_host::process::Process;
use muster_text::Value;
use rustix::process::Signal;
use serde_json::Map;
use std::{
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};
use tempfile::TempDir;

/// A folder for stages and a session of its own. When it goes out of scope, also in a panic, every process with the
/// session's mark is killed.
struct Field {
    folder: TempDir,
    session: SessionId,
    scheduler: LocalScheduler,
}

impl Drop for Field {
    fn drop(&mut self) {
        for _ in 0..100 {
            let ours = self.living();
            if ours.is_empty() {
                return;
            }
            for process in ours {
                process.signal(Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Field {
    fn new() -> Self {
        let session = SessionId(format!("test-{}", new_identifier()));
        Self { folder: tempfile::tempdir().unwrap(), session, scheduler: LocalScheduler::default() }
    }

    /// The processes that carry the session's mark.
    fn living(&self) -> Vec<Process> {
        let of_session = |one: &mark::Living| one.mark.as_ref().is_some_and(|mark| mark.session == self.session);
        mark::scan().into_iter().filter(of_session).map(|one| one.process).collect()
    }

    fn workload(&self, body: &str, pass_env: &[&str]) -> Workload {
        let identifier = new_identifier();
        let stage = self.folder.path().join(identifier.as_str());
        fs::create_dir(&stage).unwrap();
        let text = Script { executable: Some(body), ..Script::default() }.render().unwrap();
        Workload {
            identifier,
            session: self.session.clone(),
            case: CaseName {
                display: "probe".into(),
                check: "probe".into(),
                hash: "00000000".into(),
                system: "generic".into(),
                partition: "default".into(),
                environ: "builtin".into(),
                hidden: String::new(),
            },
            stage,
            staging: None,
            keep_files: Vec::new(),
            program: Program::Script { text, pass_env: pass_env.iter().map(|&name| name.to_owned()).collect() },
            scheduler: SCHEDULER.own_name().into(),
            own: Map::new(),
            shared: Map::new(),
            num_tasks: 1,
            sched_options: Value::Null,
            limits: Limits { pending: None, run: None, judge: Duration::from_secs(1) },
            keep_failed: None,
        }
    }

    fn plan(&self, body: &str) -> Job {
        self.scheduler.plan(&self.workload(body, &[])).unwrap()
    }

    async fn launch(&self, body: &str) -> Job {
        launch(&self.scheduler, &self.plan(body)).await
    }

    /// The whole life of a job that ends by itself.
    async fn run(&self, body: &str) -> Ran {
        let job = self.launch(body).await;
        let ending = ending(&self.scheduler, &job).await;
        let chunks = chunks(&self.scheduler, &job).await;
        let leftovers = self.scheduler.cleanup(&job, Disposition::Delete).await.unwrap();
        assert!(leftovers.items.is_empty(), "{leftovers:?}");
        let log = fs::read_to_string(job.stage.join(LOG_FILE)).unwrap_or_default();
        Ran { job, ending, chunks, log }
    }
}

struct Ran {
    job: Job,
    ending: Ending,
    chunks: Vec<Chunk>,
    log: String,
}

impl Ran {
    fn exit(&self) -> Exit {
        self.ending.exits[0].exit
    }

    /// The section's text.
    fn text(&self) -> &str {
        let place = self.chunks.iter().find_map(|chunk| match chunk {
            Chunk::File { start, len, .. } => Some((usize::try_from(*start).unwrap(), usize::try_from(*len).unwrap())),
            _ => None,
        });
        let (start, len) = place.unwrap();
        &self.log[start..start + len]
    }

    fn gap(&self) -> Option<&str> {
        self.chunks.iter().find_map(|chunk| if let Chunk::Gap { why, .. } = chunk { Some(why.as_str()) } else { None })
    }
}

fn new_identifier() -> Identifier {
    Identifier::from_letters(RandomState::new().build_hasher().finish().to_le_bytes())
}

async fn launch(scheduler: &LocalScheduler, job: &Job) -> Job {
    match scheduler.launch(job).await.unwrap() {
        Launch::Launched(job) => job,
        answer => panic!("{answer:?}"),
    }
}

/// Waits as the engine does: for every change, until it is over.
async fn ending(scheduler: &LocalScheduler, job: &Job) -> Ending {
    let mut seen = None;
    loop {
        let waiting = tokio::time::timeout(Duration::from_secs(20), scheduler.wait(job, seen.as_ref()));
        match waiting.await.expect("no change in 20 s").unwrap() {
            JobStatus::Ended(ending) => return ending,
            status @ JobStatus::Running { .. } => seen = Some(status),
            status => panic!("{status:?}"),
        }
    }
}

async fn chunks(scheduler: &LocalScheduler, job: &Job) -> Vec<Chunk> {
    scheduler.collect_logs(job, LogMarks::default()).map(Result::unwrap).collect().await
}

/// Polls until something is so, at most five seconds.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not in 5 s: {what}");
}

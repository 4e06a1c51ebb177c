//! What the scheduler `local` costs of its own: jobs that run `true`, 32 at once, through plan, launch, wait, logs and
//! cleanup; beside them the same scripts, started bare by a loop. Both in turn, five rounds, for a machine is seldom
//! quiet. Linux only, for it reads `/proc`.
//!
//! `cargo run --release -p muster-local --example local_cost -- 500`

use futures_util::StreamExt;
use muster_check::render::script::Script;
use muster_core::{
    case::{CaseName, Identifier, SessionId},
    job::{
        scheduler::{Chunk, Disposition, JobStatus, Launch, LogMarks, Scheduler},
        stage_folder::SCRIPT_FILE,
        workload::{Limits, Program, Workload},
    },
};
use muster_local::LocalScheduler;
use muster_text::Value;
use std::{
    error::Error,
    fs::{self, File},
    hash::{BuildHasher, Hasher, RandomState},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::Semaphore, task::JoinSet};

const AT_ONCE: usize = 32;
const ROUNDS: usize = 5;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let count: u32 = std::env::args().nth(1).map_or(Ok(500), |number| number.parse())?;
    let root = std::env::temp_dir().join(format!("local_cost.{}", std::process::id()));
    let script = Script { executable: Some("true"), ..Script::default() }.render()?;
    let measured = measure(&root, &script, count);
    fs::remove_dir_all(&root)?;
    measured
}

fn measure(root: &Path, script: &str, count: u32) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!(
        "{count} jobs, {AT_ONCE} at once; milliseconds a job: wall and own CPU, bare and scheduled, and the difference in CPU"
    );
    let mut beyond = Vec::new();
    for round in 0..ROUNDS {
        let bare = cost(count, || bare(&root.join(format!("bare{round}")), script, count))?;
        let stages = root.join(format!("local{round}"));
        let local = cost(count, || runtime.block_on(scheduled(stages, script.into(), count)))?;
        println!("{:8.3} {:.3} {:8.3} {:.3} {:8.3}", bare.wall, bare.own, local.wall, local.own, local.own - bare.own);
        beyond.push(local.own - bare.own);
    }
    beyond.sort_by(f64::total_cmp);
    println!("beyond the bare loop, median: {:.3} ms", beyond[ROUNDS / 2]);
    Ok(())
}

/// Milliseconds a job.
struct Cost {
    wall: f64,
    own: f64,
}

fn cost(count: u32, work: impl FnOnce() -> Result<()>) -> Result<Cost> {
    let (started, own) = (Instant::now(), cpu_time()?);
    work()?;
    let each = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(count);
    Ok(Cost { wall: each(started.elapsed()), own: each(cpu_time()?.saturating_sub(own)) })
}

/// The time that the living threads of this process spent on a CPU. None ends between two measurements: the runtime
/// keeps idle threads for ten seconds.
fn cpu_time() -> Result<Duration> {
    let mut nanos = 0;
    for thread in fs::read_dir("/proc/self/task")? {
        let line = fs::read_to_string(thread?.path().join("schedstat"))?;
        nanos += line.split(' ').next().ok_or("schedstat")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// No more than a script needs: folder, file, log, spawn, wait for the oldest.
fn bare(root: &Path, script: &str, count: u32) -> Result<()> {
    let mut running = std::collections::VecDeque::new();
    for number in 0..count {
        if running.len() == AT_ONCE
            && let Some(mut child) = running.pop_front()
        {
            std::process::Child::wait(&mut child)?;
        }
        let stage = stage(root, number)?;
        fs::write(stage.join(SCRIPT_FILE), script)?;
        let log = File::create(stage.join("log"))?;
        let mut command = Command::new("/bin/sh");
        command.arg(SCRIPT_FILE).current_dir(&stage).process_group(0);
        running.push_back(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?);
    }
    for mut child in running {
        child.wait()?;
    }
    Ok(())
}

async fn scheduled(root: PathBuf, script: Arc<str>, count: u32) -> Result<()> {
    let scheduler = Arc::new(LocalScheduler::default());
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut cases = JoinSet::new();
    for number in 0..count {
        let turn = Arc::clone(&slots).acquire_owned().await?;
        let (scheduler, root, script) = (Arc::clone(&scheduler), root.clone(), Arc::clone(&script));
        cases.spawn(async move {
            let _turn = turn;
            one(&scheduler, &root, &script, number).await.map_err(|error| error.to_string())
        });
    }
    while let Some(result) = cases.join_next().await {
        result??;
    }
    Ok(())
}

async fn one(scheduler: &LocalScheduler, root: &Path, script: &str, number: u32) -> Result<()> {
    let plan = scheduler.plan(&workload(stage(root, number)?, script)).map_err(|mistakes| format!("{mistakes:?}"))?;
    let Launch::Launched(job) = scheduler.launch(&plan).await? else { return Err("no room".into()) };
    let mut status = scheduler.wait(&job, None).await?;
    while let JobStatus::Running { .. } = status {
        status = scheduler.wait(&job, Some(&status)).await?;
    }
    let chunks: Vec<_> = scheduler.collect_logs(&job, LogMarks::default()).collect().await;
    let is_whole = matches!(&chunks[..], [Ok(Chunk::Open(..)), Ok(Chunk::File { .. }), Ok(Chunk::End { .. })]);
    let leftovers = scheduler.cleanup(&job, Disposition::Delete).await?;
    if is_whole && leftovers.items.is_empty() { Ok(()) } else { Err(format!("{chunks:?} {leftovers:?}").into()) }
}

fn stage(root: &Path, number: u32) -> Result<PathBuf> {
    let stage = root.join(number.to_string());
    fs::create_dir_all(&stage)?;
    Ok(stage)
}

fn workload(stage: PathBuf, script: &str) -> Workload {
    Workload {
        identifier: Identifier::from_letters(RandomState::new().build_hasher().finish().to_le_bytes()),
        session: SessionId("local_cost".into()),
        case: CaseName {
            display: "true".into(),
            check: "true".into(),
            hash: String::new(),
            system: "local".into(),
            partition: "default".into(),
            environ: "default".into(),
            hidden: String::new(),
        },
        stage,
        staging: None,
        keep_files: Vec::new(),
        program: Program::Script { text: script.to_owned(), pass_env: Vec::new() },
        scheduler: "local".into(),
        own: serde_json::Map::new(),
        shared: serde_json::Map::new(),
        num_tasks: 1,
        sched_options: Value::Null,
        limits: Limits { pending: None, run: None, judge: Duration::ZERO },
        keep_failed: None,
    }
}

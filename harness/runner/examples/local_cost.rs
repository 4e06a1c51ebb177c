//! What the scheduler `local` costs of its own: N jobs that run `true`, 32 at once, through plan, launch, wait, logs and
//! cleanup; beside them the same scripts, started bare by a loop. Linux only, for it reads `/proc`.
//!
//! `cargo run --release -p muster-runner --example local_cost -- 500`

use futures_util::StreamExt;
use muster_core::{
    Value,
    case::{CaseName, Identifier, SessionId},
    scheduler::{Chunk, Disposition, JobStatus, Launch, LogMarks, Scheduler},
    script::{SCRIPT_FILE, Script},
    workload::{Limits, Program, Workload},
};
use muster_runner::local::LocalScheduler;
use std::{
    error::Error,
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const AT_ONCE: usize = 32;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let count: u32 = std::env::args().nth(1).map_or(Ok(500), |number| number.parse())?;
    let root = std::env::temp_dir().join(format!("local_cost.{}", std::process::id()));
    let script = Script { executable: Some("true"), ..Script::default() }.render()?;
    let measured = measure(&root, &script, count);
    fs::remove_dir_all(&root)?;
    measured
}

fn measure(root: &Path, script: &str, count: u32) -> Result<()> {
    let bare = cost(count, || bare(&root.join("bare"), script, count))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let local = cost(count, || runtime.block_on(scheduled(&root.join("local"), script, count)))?;
    println!("{count} jobs, {AT_ONCE} at once; milliseconds a job: wall, own CPU, CPU of the jobs");
    println!("bare loop  {bare}");
    println!("scheduler  {local}");
    println!("beyond the bare loop, own CPU: {:.3} ms", local.own - bare.own);
    Ok(())
}

/// Milliseconds a job.
struct Cost {
    wall: f64,
    own: f64,
    children: f64,
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3}  {:.3}  {:.3}", self.wall, self.own, self.children)
    }
}

fn cost(count: u32, work: impl FnOnce() -> Result<()>) -> Result<Cost> {
    let (begun, (own, children)) = (Instant::now(), cpu_seconds()?);
    work()?;
    let (own_then, children_then) = cpu_seconds()?;
    let each = |seconds: f64| seconds * 1e3 / f64::from(count);
    Ok(Cost { wall: each(begun.elapsed().as_secs_f64()), own: each(own_then - own), children: each(children_then - children) })
}

/// User and system time of this process and of its reaped children, in steps of 10 ms.
fn cpu_seconds() -> Result<(f64, f64)> {
    let line = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = line[line.rfind(')').ok_or("stat")? + 2..].split(' ').collect();
    let ticks = |at: usize| -> Result<f64> { Ok(f64::from(fields[at].parse::<u32>()? + fields[at + 1].parse::<u32>()?)) };
    Ok((ticks(11)? / 100.0, ticks(13)? / 100.0))
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

async fn scheduled(root: &Path, script: &str, count: u32) -> Result<()> {
    let scheduler = LocalScheduler::new();
    let cases = (0..count).map(|number| one(&scheduler, root, script, number));
    let mut done = futures_util::stream::iter(cases).buffer_unordered(AT_ONCE);
    while let Some(result) = done.next().await {
        result?;
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
    let chunks: Vec<_> = scheduler.collect_logs(&job, LogMarks::new()).collect().await;
    let is_whole = matches!(&chunks[..], [Ok(Chunk::Open(_)), Ok(Chunk::File { .. }), Ok(Chunk::End { .. })]);
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
        identifier: Identifier::from_letters(rand::random()),
        session: SessionId("local_cost".into()),
        case: CaseName {
            display: "true".into(),
            check: "true".into(),
            hash: String::new(),
            system: "local".into(),
            partition: "default".into(),
            environ: "default".into(),
        },
        stage,
        program: Program::Script { text: script.to_owned(), pass_env: Vec::new() },
        num_tasks: 1,
        sched_options: Value::Null,
        limits: Limits { pending: None, run: None, judge: Duration::ZERO },
    }
}

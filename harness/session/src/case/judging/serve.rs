//! The judge's side: a process that judges one task after the other, and ends when its session does.
//!
//! It reads its requests on one thread and judges on another, so that neither an endless expression nor a long search keeps
//! it from saying where it is, or from ending with the pipe that it is fed through. It does nothing before it is asked:
//! starting it costs little.

use super::task::{Reply, Request, Task, frame, perform, read};
use crate::panics::panic_message;
use muster_core::judge::{Monitor, Position};
use muster_text::expr::Effort;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::{
    fs,
    io::{self, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    process::{self, ExitCode},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
};

/// What a judge may hold in memory of its own, in bytes. The log is mapped and does not count.
const MEMORY: u64 = 2 << 30;

/// The memory limit. In a debug build, tests set it with `RFM_JUDGE_MEMORY`.
pub(super) fn memory() -> u64 {
    let given = std::env::var("RFM_JUDGE_MEMORY").ok().filter(|_| cfg!(debug_assertions));
    given.and_then(|bytes| bytes.parse().ok()).unwrap_or(MEMORY)
}

/// What is judged, and where the judge is.
#[derive(Default)]
struct Current {
    task: Option<Arc<Task>>,
    at: Position,
}

/// Judges until standard input ends. The whole of the program that a session starts as its judge.
pub fn serve() -> ExitCode {
    // It is started as `/proc/self/exe`, and would be called `exe`. Where there is no such file, it is called otherwise.
    let _ = fs::write("/proc/self/comm", "muster-judge");
    // Where the system has no such limit, there is none.
    let _ = setrlimit(Resource::Data, Rlimit { current: Some(memory()), maximum: Some(memory()) });
    let work: Arc<Mutex<Current>> = Arc::default();
    let (tasks, queue) = mpsc::channel::<Arc<Task>>();
    let shared = Arc::clone(&work);
    thread::spawn(move || {
        for task in queue {
            let reply = judge(&task, &shared);
            answer(&reply);
        }
    });
    let mut requests = io::stdin().lock();
    // The session's end, and whatever cannot be understood, ends a judge at once, whatever it is doing.
    while let Ok(Some(request)) = read(&mut requests) {
        match request {
            Request::Judge(task) => {
                let task = Arc::new(*task);
                *lock(&work) = Current { task: Some(Arc::clone(&task)), at: Position::Rules };
                if tasks.send(task).is_err() {
                    break;
                }
            }
            Request::Where => {
                let work = lock(&work);
                if let Some(task) = &work.task {
                    answer(&Reply::At(Box::new(work.at.too_long(&task.rules, &task.sections))));
                }
                break;
            }
        }
    }
    process::exit(0)
}

fn judge(task: &Task, work: &Mutex<Current>) -> Reply {
    let judged = catch_unwind(AssertUnwindSafe(|| {
        let stdout = task.stdout()?;
        let at = |at| {
            lock(work).at = at;
            if !matches!(at, Position::Sanity(_, Some(_)) | Position::Variable(_, Some(_))) {
                answer(&Reply::Begins(at));
            }
        };
        let monitor = Monitor { report: &at, effort: Arc::new(Effort::boundless()) };
        Ok(perform(&task.rules, &stdout, &task.ending, &monitor))
    }));
    match judged {
        Ok(Ok(judged)) => Reply::Done(Box::new(judged)),
        Ok(Err(error)) => Reply::Failed(unreadable(&error)),
        Err(panic) => Reply::Failed(format!("judging panicked: {}", panic_message(&*panic))),
    }
}

fn unreadable(error: &io::Error) -> String {
    format!("the log could not be read: {error}")
}

/// A session that does not read any more has ended.
fn answer(reply: &Reply) {
    let mut stdout = io::stdout().lock();
    let written = frame(reply).and_then(|frame| stdout.write_all(&frame)).and_then(|()| stdout.flush());
    if written.is_err() {
        process::exit(1);
    }
}

fn lock(work: &Mutex<Current>) -> MutexGuard<'_, Current> {
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

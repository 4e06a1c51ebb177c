//! The session's side: its judges, processes that are started when there is something to judge, and used again.
//!
//! A thread cannot be stopped, and neither can CEL nor a search. A process can: at the limit it is asked what it is doing, and
//! killed. It has a process group of its own, so that a Ctrl-C in the terminal is the session's to decide about.

use super::{
    serve::memory,
    task::{Judged, Reply, Request, Task, frame, length, message},
};
use crate::case::record::End;
use muster_core::{
    judge::{Judgement, Position, TOO_LONG},
    result::Phase,
};
use muster_text::size::Size;
use std::{
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::available_parallelism,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::Semaphore,
    time::timeout,
};

/// How long a judge may take to report what it is doing.
const FINAL_MESSAGE_LIMIT: Duration = Duration::from_millis(500);

/// The command that starts a judge.
#[derive(Debug, Clone)]
pub struct JudgeProgram {
    pub path: PathBuf,
    /// The arguments that make it a judge: it then calls [`crate::case::judging::serve()`].
    pub arguments: Vec<OsString>,
}

/// The place where a session judges.
#[derive(Debug, Clone)]
pub enum JudgeIn {
    /// The judges are processes that run this program: each is stopped at `judge_limit`.
    Processes(JudgeProgram),
    /// The judge is a thread of this process, which nothing stops: for tests and measurements whose patterns are known.
    ThisProcess,
}

/// The judges of a session.
#[derive(Debug)]
pub(crate) struct Judges {
    pub(super) place: JudgeIn,
    /// As many texts are judged at once as there are processors.
    pub(super) slots: Semaphore,
    idle: Mutex<Vec<Judge>>,
}

#[derive(Debug)]
struct Judge {
    child: Child,
    requests: ChildStdin,
    replies: ChildStdout,
    /// What it evaluates, as last reported.
    at: Position,
}

impl Judges {
    pub(crate) fn new(place: JudgeIn) -> Self {
        let slots = Semaphore::new(available_parallelism().map_or(1, Into::into));
        Self { place, slots, idle: Mutex::default() }
    }

    /// Judges a task; the judge that takes longer than the limit is no more. Dropped before it is done, it ends the judge too.
    pub(super) async fn judge(&self, program: &JudgeProgram, task: Task, limit: Duration) -> Result<Judged, End> {
        let (rules, sections) = (Arc::clone(&task.rules), task.sections.clone());
        let request = frame(&Request::Judge(Box::new(task))).map_err(|error| no_process(&error))?;
        let started = Instant::now();
        let used = self.idle().pop();
        let mut judge = used.map_or_else(|| Judge::start(program), Ok).map_err(|error| no_process(&error))?;
        let mut reply = timeout(limit, judge.ask(&request)).await;
        if let Ok(Err(_)) = reply
            && !judge.wants_memory().await
        {
            // It was killed from outside: by a signal to all processes of a service, or by the system when memory ran out.
            judge = Judge::start(program).map_err(|error| no_process(&error))?;
            reply = timeout(limit.saturating_sub(started.elapsed()), judge.ask(&request)).await;
        }
        match reply {
            Ok(Ok(Reply::Done(judged))) => {
                self.idle().push(judge);
                Ok(*judged)
            }
            Ok(Ok(Reply::Failed(why))) => {
                self.idle().push(judge);
                Err(End::infra(Phase::Sanity, why))
            }
            Err(_) | Ok(Ok(Reply::Begins(_) | Reply::At(_))) => Err(judge.stop().await),
            Ok(Err(error)) => {
                let (phase, doing) = judge.at.doing(&rules, &sections);
                let End { outcome, cause, .. } = judge.ended(&error).await;
                Err(End { outcome, phase, cause: cause.map(|cause| cause + &doing) })
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Judge>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Judge {
    fn start(program: &JudgeProgram) -> io::Result<Self> {
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).arg0("muster").current_dir("/").process_group(0).kill_on_drop(true);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(requests), Some(replies)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self { child, requests, replies, at: Position::Rules })
    }

    async fn ask(&mut self, request: &[u8]) -> io::Result<Reply> {
        self.at = Position::Rules;
        self.requests.write_all(request).await?;
        loop {
            let mut bytes = [0; 4];
            self.replies.read_exact(&mut bytes).await?;
            let mut text = vec![0; length(bytes)?];
            self.replies.read_exact(&mut text).await?;
            match message(&text)? {
                Reply::Begins(at) => self.at = at,
                reply => return Ok(reply),
            }
        }
    }

    /// Ends it, and says what it was doing.
    async fn stop(mut self) -> End {
        let final_message = async {
            let request = frame(&Request::Where)?;
            // What it was about to say comes first.
            loop {
                match self.ask(&request).await? {
                    Reply::At(judgement) => return io::Result::Ok(judgement),
                    Reply::Begins(_) | Reply::Done(_) | Reply::Failed(_) => {}
                }
            }
        };
        let final_message = timeout(FINAL_MESSAGE_LIMIT, final_message).await;
        let _ = self.child.kill().await;
        match final_message {
            Ok(Ok(judgement)) => {
                let Judgement { outcome, phase, cause, .. } = *judgement;
                End { outcome, phase, cause }
            }
            _ => End::config(Phase::Sanity, TOO_LONG),
        }
    }

    /// Whether it has ended as a Rust program does that is given no memory.
    async fn wants_memory(&mut self) -> bool {
        let _ = self.child.start_kill();
        let status = self.child.wait().await;
        status.is_ok_and(|status| status.signal() == Some(rustix::process::Signal::ABORT.as_raw()))
    }

    /// Why it has ended by itself.
    async fn ended(mut self, error: &io::Error) -> End {
        if self.wants_memory().await {
            return End::config(Phase::Sanity, format!("judging needs more than {} of memory", Size(memory())));
        }
        match self.child.wait().await {
            Ok(status) if !status.success() => End::infra(Phase::Sanity, format!("the process that judged ended: {status}")),
            _ => no_process(error),
        }
    }
}

fn no_process(error: &io::Error) -> End {
    End::infra(Phase::Sanity, format!("no process to judge in: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::{job::scheduler::Ending, rules::Rules};

    #[tokio::test]
    async fn a_judge_that_is_lost_leaves_the_next_one_the_rest_of_the_limit() {
        // It reads nothing, ends before the limit, and both of it together after that.
        let arguments = ["-c", "sleep 0.7"].map(OsString::from).into();
        let program = JudgeProgram { path: "/bin/sh".into(), arguments };
        let judges = Judges::new(JudgeIn::Processes(program.clone()));
        let (rules, ending) = (Arc::new(Rules::default()), Ending::default());
        let task = Task { rules, ending, log: "/dev/null".into(), sections: Vec::new(), files: None };
        let end = judges.judge(&program, task, Duration::from_secs(1)).await.expect_err("it takes too long");
        assert_eq!(end.cause.as_deref(), Some(TOO_LONG));
    }
}

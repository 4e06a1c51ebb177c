//! What a session leaves: named in its results when it ends in order, on stderr when the process ends early.

use crate::{
    args::Cli,
    exit, settings,
    terminal::{NoEcho, Terminal, view},
};
use muster_core::{
    case::SessionId,
    decisions::pipeline::{EXIT_INTERRUPTED, EXIT_LOST},
};
use muster_host::owner;
use muster_session::{
    engine::{Engine, InFlight},
    folders, heartbeat,
};
use muster_store::Store;
use std::{convert::Infallible, thread, time::Duration};
use tokio::{sync::oneshot, task::JoinHandle, time::timeout};

/// A write to stderr that takes longer may never end.
const PRINT_LIMIT: Duration = Duration::from_secs(2);
/// A file system that has not answered by then may never do so.
const LOOK_LIMIT: Duration = Duration::from_secs(1);

/// Shows that this process owns a session, until it is dropped. Ends the process when another one has taken the session over: two
/// processes that run the same cases would disturb each other.
pub struct SignOfLife(JoinHandle<Infallible>);

impl SignOfLife {
    /// Begins. Must be called within a tokio runtime.
    pub fn start(store: &Store, session: &SessionId, terminal: Terminal) -> Self {
        let (store, session) = (store.clone(), session.clone());
        Self(tokio::spawn(async move {
            heartbeat::until_taken(store, session.clone(), owner::this_owner(), heartbeat::timing()).await;
            taken(&session, terminal).await
        }))
    }
}

impl Drop for SignOfLife {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reports that another process has taken the session over, and ends this one. Everything that runs belongs to that process.
pub async fn taken(session: &SessionId, terminal: Terminal) -> ! {
    print(terminal, format!("error: session {session} was taken over by another process, which continues it: this process ends"))
        .await;
    NoEcho::end();
    exit::at_once(EXIT_LOST)
}

/// Prints to stderr: it may be a pipe that nobody reads.
pub async fn print(terminal: Terminal, text: String) {
    let print = move || {
        view::take_down();
        terminal.note(&text);
    };
    let _ = within(PRINT_LIMIT, print).await;
}

/// Does on a thread of its own what may never end, and waits at most so long for it.
async fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, done) = oneshot::channel();
    thread::spawn(move || sender.send(work()));
    timeout(limit, done).await.ok()?.ok()
}

/// The commands with which a user continues after a session that ended early.
#[derive(Clone)]
pub struct Commands {
    /// Ends the jobs that still run.
    pub sweep: String,
    /// Continues the session.
    pub attach: String,
}

impl Commands {
    pub fn of(cli: &Cli, session: &SessionId) -> Self {
        let command = |command: &str| settings::on_this_database(cli, command);
        Self { sweep: command("sweep"), attach: command(&format!("attach {session}")) }
    }
}

/// The second signal: ends the teardowns that run, reports what may be left, and ends the process. Cases keep running, and a process
/// that continues the session follows them. A teardown that keeps running would remove what the cases of that process need.
pub async fn at_once(engine: &Engine, commands: &Commands, terminal: Terminal) -> ! {
    print(terminal, "second signal: ending within seconds".to_owned()).await;
    engine.leave().await;
    let mut lines = Vec::new();
    let (in_flight, standing) = (engine.in_flight(), engine.not_torn_down());
    for InFlight { case, job, tears_down } in &in_flight {
        let what = if *tears_down { "its teardown may still run" } else { "may be left" };
        lines.push(format!("{what}: {case} ({}), in {}", job.identifier, job.stage.display()));
    }
    let standing: Vec<_> = standing.iter().filter_map(|case| Some((&case.name, case.outputs.as_deref()?))).collect();
    let stages: Vec<_> = standing.iter().map(|(_, outputs)| outputs.stage.clone()).collect();
    let are_available =
        within(LOOK_LIMIT, move || stages.iter().map(|stage| folders::is_available(stage)).collect::<Vec<_>>()).await;
    for (at, (case, outputs)) in standing.iter().enumerate() {
        let what = match (&outputs.teardown, are_available.as_ref().map(|are| are[at])) {
            (None, _) => "kept",
            (Some(_), Some(true)) => "not torn down",
            (Some(_), Some(false)) => "torn down in part",
            (Some(_), None) => "not torn down, or in part",
        };
        lines.push(format!("{what}: {}, in {}", case, outputs.stage.display()));
    }
    if !in_flight.is_empty() {
        lines.push(format!("end what is left with: {}", commands.sweep));
    }
    if !standing.is_empty() {
        lines.push(format!("continue, and tear down at the end, with: {}", commands.attach));
    }
    print(terminal, lines.join("\n")).await;
    NoEcho::end();
    exit::at_once(EXIT_INTERRUPTED)
}

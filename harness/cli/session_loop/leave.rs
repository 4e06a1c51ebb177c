//! What a session leaves behind: named in its results when it ends in order, on stderr when it does not.

use crate::{
    args::Cli,
    settings,
    terminal::{NoEcho, Terminal, view},
};
use muster_core::{
    case::SessionId,
    decisions::pipeline::{EXIT_INTERRUPTED, EXIT_LOST},
    result::CaseResult,
};
use muster_session::{
    engine::{Engine, InFlight, Ownership},
    folders, heartbeat,
};
use std::sync::Arc;

/// Puts the results that say what is kept in the place of those that did not know it yet.
pub fn name_what_is_kept(results: &mut [Arc<CaseResult>], kept: Vec<CaseResult>) {
    for kept in kept {
        let is_it = |result: &&mut Arc<CaseResult>| result.name == kept.name && result.attempt == kept.attempt;
        if let Some(result) = results.iter_mut().find(is_it) {
            *result = Arc::new(kept);
        }
    }
}

/// Ends the process if another one takes its session over: two that run the same cases would measure each other.
pub async fn when_taken(lease: Ownership, session: SessionId, terminal: Terminal) {
    heartbeat::until_taken(lease.store, session.clone(), lease.owner, heartbeat::pulse()).await;
    taken(&session, terminal);
}

/// Another process has taken the session over: what runs is that one's.
pub fn taken(session: &SessionId, terminal: Terminal) -> ! {
    view::take_down();
    terminal.note(&format!("error: session {session} was taken over by another process, which goes on with it: this one leaves"));
    NoEcho::end();
    std::process::exit(EXIT_LOST.into());
}

/// What somebody can go on with who has left a session at once: to be pasted.
#[derive(Clone)]
pub struct Commands {
    /// Ends what runs.
    pub sweep: String,
    /// Goes on.
    pub attach: String,
}

impl Commands {
    /// Of a session.
    pub fn of(cli: &Cli, session: &SessionId) -> Self {
        let command = |command: &str| settings::on_this_database(cli, command);
        Self { sweep: command("sweep"), attach: command(&format!("attach {session}")) }
    }
}

/// The second signal: ends the teardowns that run, says what may be left and ends the process. Cases run on: whoever goes on with the
/// session follows them. A teardown that runs on would remove what that one's cases are given.
pub async fn at_once(engine: &Engine, commands: &Commands, terminal: Terminal) {
    view::take_down();
    terminal.note("second signal: leaving at once");
    engine.leave().await;
    let (in_flight, standing) = (engine.in_flight(), engine.not_torn_down());
    for InFlight { case, job, tears_down } in &in_flight {
        let what = if *tears_down { "its teardown may still run" } else { "may be left" };
        terminal.note(&format!("{what}: {case} ({}), in {}", job.identifier, job.stage.display()));
    }
    for (case, provides) in standing.iter().filter_map(|case| Some((case, case.provides.as_ref()?))) {
        let what = match (&provides.teardown, folders::is_available(&provides.stage)) {
            (None, _) => "kept",
            (Some(_), true) => "not torn down",
            (Some(_), false) => "torn down in part",
        };
        terminal.note(&format!("{what}: {}, in {}", case.name, provides.stage.display()));
    }
    if !in_flight.is_empty() {
        terminal.note(&format!("end what is left with: {}", commands.sweep));
    }
    if !standing.is_empty() {
        terminal.note(&format!("go on, and tear down in the end, with: {}", commands.attach));
    }
    NoEcho::end();
    std::process::exit(EXIT_INTERRUPTED.into());
}

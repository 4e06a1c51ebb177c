//! What a session leaves behind: named in its results when it ends in order, on stderr when it does not.

use crate::{
    terminal::{NoEcho, Terminal},
    view,
};
use muster_core::{
    case::SessionId,
    pipeline::{EXIT_INTERRUPTED, EXIT_LOST},
    result::CaseResult,
};
use muster_runner::{
    engine::{Engine, Lease},
    heartbeat,
};
use std::sync::Arc;

/// Puts the results that say what is kept in the place of those that did not know it yet.
pub(super) fn name_what_is_kept(results: &mut [Arc<CaseResult>], kept: Vec<CaseResult>) {
    for kept in kept {
        let is_it = |result: &&mut Arc<CaseResult>| result.name == kept.name && result.attempt == kept.attempt;
        if let Some(result) = results.iter_mut().find(is_it) {
            *result = Arc::new(kept);
        }
    }
}

/// Ends the process if another one takes its session over: two that run the same cases would measure each other.
pub(super) async fn when_taken(lease: Lease, session: SessionId, terminal: Terminal) {
    heartbeat::until_taken(lease.store, session.clone(), lease.owner, heartbeat::pulse()).await;
    taken(&session, terminal);
}

/// Another process has taken the session over: what runs is that one's.
pub(super) fn taken(session: &SessionId, terminal: Terminal) -> ! {
    view::take_down();
    terminal.note(&format!("error: session {session} was taken over by another process, which goes on with it: this one leaves"));
    NoEcho::end();
    std::process::exit(EXIT_LOST.into());
}

/// The second signal: says what may be left and ends the process.
pub(super) fn at_once(engine: &Engine, terminal: Terminal) {
    let (in_flight, standing) = (engine.in_flight(), engine.standing());
    view::take_down();
    terminal.note("second signal: leaving at once");
    for flight in &in_flight {
        terminal.note(&format!("may be left: {} ({}), in {}", flight.case, flight.job.identifier, flight.job.stage.display()));
    }
    for (case, provides) in standing.iter().filter_map(|case| Some((case, case.provides.as_ref()?))) {
        let what = if provides.teardown.is_some() { "not torn down" } else { "kept" };
        terminal.note(&format!("{what}: {}, in {}", case.name, provides.stage.display()));
    }
    if !in_flight.is_empty() {
        terminal.note("end what is left with: muster sweep");
    }
    if !standing.is_empty() {
        terminal.note("go on, and tear down in the end, with: muster attach");
    }
    NoEcho::end();
    std::process::exit(EXIT_INTERRUPTED.into());
}

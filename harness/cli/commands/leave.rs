//! What a session leaves behind: named in its results when it ends in order, on stderr when it does not.

use crate::{
    terminal::{NoEcho, Terminal},
    view,
};
use muster_core::{pipeline::EXIT_INTERRUPTED, result::CaseResult};
use muster_runner::engine::Engine;
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

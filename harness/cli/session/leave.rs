//! Reports on stderr what a session leaves whose process ends early.

use crate::{
    args::Cli,
    exit, settings,
    terminal::{NoEcho, Terminal, view},
};
use muster_core::{
    case::SessionId,
    decisions::pipeline::{EXIT_INTERRUPTED, EXIT_LOST},
};
use muster_session::{
    engine::{Engine, InFlight},
    ownership::leave::{Left, leave, within},
};
use std::time::Duration;

/// A write to stderr that takes longer may never end.
const PRINT_LIMIT: Duration = Duration::from_secs(2);

/// Reports that another process has taken the session over, and ends this one. Everything that runs belongs to that process.
pub async fn taken(session: SessionId, terminal: Terminal) -> ! {
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

/// The second signal: leaves the session, reports what may be left, and ends the process.
pub async fn at_once(engine: &Engine, cli: &Cli, terminal: Terminal) -> ! {
    print(terminal, "second signal: ending within seconds".to_owned()).await;
    let Left { in_flight, standing, are_whole } = leave(engine).await;
    let mut lines = Vec::new();
    for InFlight { case, job, tears_down } in &in_flight {
        let what = if *tears_down { "its teardown may still run" } else { "may be left" };
        lines.push(format!("{what}: {case} ({}), in {}", job.identifier, job.stage.display()));
    }
    for (at, case) in standing.iter().enumerate() {
        let Some(outputs) = &case.outputs else { continue };
        let what = match (&outputs.teardown, are_whole.as_ref().map(|are| are[at])) {
            (None, _) => "kept",
            (Some(_), Some(true)) => "not torn down",
            (Some(_), Some(false)) => "torn down in part",
            (Some(_), None) => "not torn down, or in part",
        };
        lines.push(format!("{what}: {}, in {}", case.name, outputs.stage.display()));
    }
    if !in_flight.is_empty() {
        lines.push(format!("end what is left with: {}", settings::on_this_database(cli, "sweep")));
    }
    if !standing.is_empty() {
        let attach = settings::attach(cli, engine.session());
        lines.push(format!("continue, and tear down at the end, with: {attach}"));
    }
    print(terminal, lines.join("\n")).await;
    NoEcho::end();
    exit::at_once(EXIT_INTERRUPTED)
}

//! At the end of a session: what its local jobs left running outside their process groups.
//!
//! A daemon that started a session of its own outlives its job. It still carries the mark of the job in its environment,
//! so one look at the processes of this machine finds it: a check must not slow down the next one, or the users.

use crate::{args::Cli, settings, terminal::Terminal};
use muster_core::{case::SessionId, decisions::attempts::Attempts};
use muster_local::inventory::{self, Found};

/// Ends them, and says whose they were.
pub async fn end(cli: &Cli, session: &SessionId, attempts: &Attempts, terminal: Terminal) {
    let own = session.clone();
    let Ok(found) = tokio::task::spawn_blocking(move || inventory::find([], |other| *other != own)).await else { return };
    if found.is_empty() {
        return;
    }
    for swept in inventory::end(found).await {
        let what = described(&swept.found, attempts);
        let again = || format!("could not end it; try `{}`", settings::on_this_database(cli, "sweep"));
        let end = if swept.left.is_empty() { "ended it".to_owned() } else { again() };
        terminal.note(&format!("warning: {what}: {end}"));
    }
}

fn described(found: &Found, attempts: &Attempts) -> String {
    let case = attempts.kept().into_iter().find(|case| case.identifier.as_ref() == Some(&found.identifier));
    let case = case.map_or_else(|| format!("job {}", found.identifier), |case| case.name.to_string());
    let pids: Vec<String> = found.processes.iter().map(|process| process.pid.to_string()).collect();
    format!("{case} left a process running: {} ({})", pids.join(", "), found.commands.join("; "))
}

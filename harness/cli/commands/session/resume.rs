//! `--resume`: a session of the same cases that was cut short is finished; if there is none, a new one begins.

use crate::{
    args::{Cli, SweepArgs},
    commands::{
        session::attach::{Unfinished, gone_owner},
        sweep,
    },
    session::early::Early,
    settings::Places,
    terminal::Terminal,
    wiring::database,
};
use muster_core::{case::SessionId, result::Session};
use muster_host::{clock, owner};
use muster_session::{
    front::signals::Signals,
    ownership::{
        Wait,
        claims::{self, Claims},
        takeover::TakeoverError,
    },
    session_loop,
};
use muster_store::StoreError;
use std::{collections::BTreeSet, env, future};
use tokio::runtime::Runtime;

/// So many sessions are looked through.
const NEWEST: u32 = 100;

/// The state of the session that a new one would be another run of.
pub enum Resumed {
    Nothing,
    /// It is finished; the exit code is that of the whole.
    Finished(u8),
    /// Another process was faster, and is about to go on with it: its folders are not ours.
    TakenByOther,
}

/// Finishes the session that `session` would be another run of.
pub fn resume(cli: &Cli, session: &Session, runtime: &Runtime, early: &Early, terminal: Terminal) -> anyhow::Result<Resumed> {
    let database = Places::of(cli).database;
    if !muster_store::exists(&database)? {
        return Ok(Resumed::Nothing);
    }
    let reader = runtime.block_on(database::reader_of_writer(&database))?;
    let rows = runtime.block_on(reader.sessions(NEWEST, &owner::is_alive))?;
    let Some(row) = session_loop::resume::to_finish(rows, session) else { return Ok(Resumed::Nothing) };
    let id = row.session.id.clone();
    let Some(previous) = runtime.block_on(gone_owner(cli, &reader, &row, terminal))? else {
        terminal.note(&format!("note: session {id} with the same cases is still running: a new one starts"));
        return Ok(Resumed::Nothing);
    };
    let here = env::current_dir();
    let read = Unfinished::of(cli, row).and_then(|left| Ok((left.ignored(cli), left.load(runtime, terminal)?)));
    let resumed = match read {
        Ok((ignored, left)) => {
            if !ignored.is_empty() {
                terminal.note(&format!(
                    "note: session {id} continues with the flags of its own command line; these differ here: {}",
                    ignored.join(", ")
                ));
            }
            match left.finish(previous, runtime, early) {
                Err(error) if matches!(error.downcast_ref(), Some(TakeoverError::Store(StoreError::Taken { .. }))) => {
                    terminal.note(&format!("note: another process has continued session {id} first: a new one starts"));
                    Ok(Resumed::TakenByOther)
                }
                finished => finished.map(Resumed::Finished),
            }
        }
        // Its folder or its files are gone. What the cases are is known without them.
        Err(error) => {
            terminal.note(&format!("warning: session {id} cannot be continued: {error:#}: a new one starts"));
            Ok(Resumed::Nothing)
        }
    };
    if let Ok(here) = here {
        env::set_current_dir(here)?;
    }
    resumed
}

/// Removes what abandoned sessions left. The session has its exit code already: a signal only ends the sweep.
pub fn sweep_after(cli: &Cli, runtime: &Runtime, terminal: Terminal) {
    let args = SweepArgs { dry_run: false, kept: false, id: Vec::new() };
    let swept = runtime.block_on(async {
        let sweep = async |claims: &mut Claims| {
            let spared = left_for_others(cli).await?;
            // Who waits for this session does not wait for the owners of others.
            sweep::swept(cli, &args, &spared, Wait::No, claims, terminal).await
        };
        let mut signals = Signals::listen().ok();
        let signal = async {
            match &mut signals {
                Some(signals) => drop(signals.next().await),
                None => future::pending().await,
            }
        };
        claims::held_until(&mut Claims::default(), signal, sweep).await.transpose()
    });
    match swept {
        Ok(None) => terminal.note("the sweep was interrupted: leftovers of earlier sessions stay"),
        Ok(Some(swept)) => terminal.note(&format!("sweep: {}", swept.text.trim_end())),
        Err(error) => terminal.note(&format!("warning: the leftovers of earlier sessions were not removed: {error:#}")),
    }
}

/// Sessions of other cases that were cut short, and may be resumed as well.
async fn left_for_others(cli: &Cli) -> anyhow::Result<BTreeSet<SessionId>> {
    let reader = database::reader_of_writer(&Places::of(cli).database).await?;
    let rows = reader.sessions(NEWEST, &owner::is_alive).await?;
    Ok(session_loop::resume::left_for_others(rows, clock::now()))
}

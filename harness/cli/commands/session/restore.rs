//! `--restore-session`: the results of an earlier session, among which a new one runs the rest.
//!
//! What a killed session left running is ended first: two runs of one case at the same time would measure each other.

use crate::{
    args::Cli,
    commands::session::plan::Purpose,
    session::claims::{Claims, unclaimed},
    settings::{self, Places},
    terminal::Terminal,
    wiring::{
        self, database,
        owners::{self, Owners},
        scope, secrets,
    },
};
use muster_check::cases::test_case::TestCase;
use muster_core::result::{CaseResult, Session};
use muster_session::session_loop;
use muster_store::{Reader, SessionRow, SessionState, Store, StoreError};
use tokio::runtime::Runtime;

/// Divides the selected cases into those that run and those whose results are taken over.
pub fn restore(
    cli: &Cli,
    named: &str,
    cases: &mut Vec<TestCase>,
    purpose: Purpose<'_>,
    runtime: &Runtime,
    terminal: Terminal,
) -> anyhow::Result<Vec<CaseResult>> {
    let past = named.split(',').map(|named| runtime.block_on(past(cli, named, purpose, terminal)));
    let restored = session_loop::restore::divide(cases, &past.collect::<Result<Vec<_>, _>>()?, cli.rounds.failed);
    terminal.note(&format!("{} case(s) are restored, {} run", restored.len(), cases.len()));
    Ok(restored)
}

/// A session of the past. Before a run it is made certain that nothing of it runs any more.
async fn past(cli: &Cli, named: &str, purpose: Purpose<'_>, terminal: Terminal) -> anyhow::Result<(Session, Vec<CaseResult>)> {
    let database = Places::of(cli).database;
    let reader = match purpose {
        Purpose::Show => Reader::open(database).await?,
        Purpose::Run(_) => database::reader_of_writer(&database).await?,
    };
    let reader = reader.knowing(secrets::of(cli));
    let row = database::session_named(&reader, named).await?;
    let id = &row.session.id;
    if row.state == SessionState::Running {
        return Err(owners::still_runs(&row));
    }
    if let (Purpose::Run(early), SessionState::Interrupted | SessionState::Unknown) = (purpose, row.state) {
        let left = reader.unfinished(id).await?;
        let schedulers = scope::in_scope(cli, left.iter().map(|row| &row.job)).schedulers;
        let owners = Owners { reader: Some(&reader), schedulers: &schedulers, terminal };
        owners.leases_if_owner_is_gone(&row).await.ok_or_else(|| owners::still_runs(&row))?;
        early.holding(async |claims| end_what_runs(cli, &reader, &row, claims, terminal).await).await?;
    }
    let results = reader.results(id).await?;
    Ok((row.session, results))
}

/// Ends the jobs of a session whose process is gone, its teardowns included. It is held meanwhile.
async fn end_what_runs(
    cli: &Cli,
    reader: &Reader,
    row: &SessionRow,
    claims: &mut Claims,
    terminal: Terminal,
) -> anyhow::Result<()> {
    let session = &row.session.id;
    let schedulers = &cli.files.schedulers;
    let mut left = reader.unfinished(session).await?;
    left.extend(reader.teardowns(session).await?);
    if left.iter().all(|row| schedulers.dies_with_the_harness(&row.job.scheduler)) {
        return Ok(());
    }
    let wired = wiring::schedulers(wiring::partitions(left.iter(), schedulers))?;
    let store = Store::open(reader.database()).await?;
    // Who has taken it over since follows its jobs.
    claims.add(&store, session, &row.held).await.map_err(|error| match error {
        StoreError::Taken { .. } => owners::still_runs(row),
        error => anyhow::Error::new(error).context(unclaimed(session)),
    })?;
    for (job, why) in wired.end(&left, &store).await {
        let sweep = settings::on_this_database(cli, "sweep");
        terminal.note(&format!("warning: {} of session {session} may still run: {why}; try `{sweep}`", job.name));
    }
    claims.give_back().await;
    store.close().await?;
    wired.close(None, None, terminal).await;
    Ok(())
}

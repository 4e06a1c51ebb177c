//! `--restore-session`: the results of an earlier session, among which a new one runs the rest.
//!
//! What a killed session left running is ended first: two runs of one case at the same time would measure each other.

use crate::{
    args::Cli,
    commands::session::{attach::gone_owner, plan::Purpose},
    inputs::selection::Selection,
    settings::{self, Places},
    terminal::Terminal,
    wiring::{
        self,
        database::{self, LATEST},
        owners, secrets,
    },
};
use anyhow::anyhow;
use muster_core::{
    case::{CaseName, SessionId},
    query::spec::{Filters, Range},
    result::{CaseResult, Session},
};
use muster_host::{clock, owner};
use muster_session::{ownership::claims::Claims, session_loop::restore};
use muster_store::{Reader, Selected, SessionRow, SessionState, Store, StoreError};
use std::collections::BTreeSet;
use tokio::runtime::Runtime;

/// So many sessions are looked through at once.
const CHUNK: usize = 100;

/// A session of the past.
struct Past {
    session: Session,
    results: Vec<CaseResult>,
    /// Its cases, those without a result included.
    cases: Vec<CaseName>,
}

/// Divides the selected cases into those that run and those whose results are taken over.
pub fn restore(
    cli: &Cli,
    named: &str,
    selection: &mut Selection,
    purpose: Purpose<'_>,
    runtime: &Runtime,
    terminal: Terminal,
) -> anyhow::Result<Vec<CaseResult>> {
    let wanted = Wanted { system: &selection.system.name, cases: restore::wanted(&selection.cases) };
    let past = named.split(',').map(|named| runtime.block_on(past(cli, (named, &wanted), purpose, terminal)));
    let past: Vec<Past> = past.collect::<Result<_, _>>()?;
    let stored = past.iter().flat_map(|past| &past.cases);
    let cases = &mut selection.cases;
    *cases = restore::as_copied(cases, stored);
    let from: Vec<String> = past.iter().map(|past| database::described(&past.session)).collect();
    let past: Vec<_> = past.into_iter().map(|past| (past.session, past.results)).collect();
    let restored = restore::divide(cases, &past, cli.rounds.failed);
    terminal.note(&format!("{}: {} case(s) are restored, {} run", from.join(", "), restored.len(), cases.len()));
    Ok(restored)
}

/// What an earlier session has to have one of.
struct Wanted<'a> {
    system: &'a str,
    /// Without what distinguishes copies.
    cases: BTreeSet<CaseName>,
}

impl Wanted<'_> {
    /// The newest of these sessions that has one of the cases.
    async fn newest(&self, reader: &Reader, sessions: &[Selected]) -> Result<Option<SessionId>, StoreError> {
        let of_system: Vec<Selected> = sessions.iter().filter(|one| one.session.system == self.system).cloned().collect();
        for part in of_system.chunks(CHUNK) {
            let cases = reader.cases(part, &Filters::default()).await?.into_iter();
            let having = cases.filter(|case| self.cases.contains(&restore::plain(&case.name)));
            if let Some(one) = having.map(|case| case.session).min().and_then(|at| part.get(at)) {
                return Ok(Some(one.session.id.clone()));
            }
        }
        Ok(None)
    }

    /// The session that is meant: the one that is named, else the newest one.
    async fn row(&self, cli: &Cli, reader: &Reader, named: &str, terminal: Terminal) -> anyhow::Result<SessionRow> {
        let all = Range::default();
        let newest = async || {
            let sessions = reader.select(&all, clock::now(), u32::MAX).await?.sessions;
            Ok::<_, StoreError>(match self.newest(reader, &sessions).await? {
                Some(id) => reader.session_of(&id, &owner::is_alive).await?,
                None => None,
            })
        };
        let none =
            || anyhow!("no session of system {} in {} has one of the selected cases", self.system, reader.database().display());
        if named == LATEST {
            return newest().await?.ok_or_else(none);
        }
        let row = database::session_named(cli, reader, named, terminal).await?;
        let one = Range { ids: vec![row.session.id.0.clone()], ..all.clone() };
        if self.newest(reader, &reader.select(&one, clock::now(), 1).await?.sessions).await?.is_some() {
            return Ok(row);
        }
        let this = database::described(&row.session);
        Err(match newest().await? {
            Some(newest) => {
                anyhow!("{this} has none of the selected cases; the newest that has is {}", database::described(&newest.session))
            }
            None => none().context(format!("{this} has none of the selected cases")),
        })
    }
}

/// A session of the past. Before a run it is made certain that nothing of it runs any more.
async fn past(cli: &Cli, (named, wanted): (&str, &Wanted<'_>), purpose: Purpose<'_>, terminal: Terminal) -> anyhow::Result<Past> {
    let database = Places::of(cli).database;
    let reader = match purpose {
        Purpose::Show => Reader::open(database).await?,
        Purpose::Run(_) => database::reader_of_writer(&database).await?,
    };
    let reader = reader.knowing(secrets::of(cli));
    let row = wanted.row(cli, &reader, named, terminal).await?;
    let id = &row.session.id;
    if row.state == SessionState::Running {
        return Err(owners::still_runs(&row));
    }
    if let (Purpose::Run(early), SessionState::Interrupted | SessionState::Unknown) = (purpose, row.state) {
        gone_owner(cli, &reader, &row, terminal).await?.ok_or_else(|| owners::still_runs(&row))?;
        early.holding(async |claims| end_what_runs(cli, &reader, &row, claims, terminal).await).await?;
    }
    let results = reader.results(id).await?;
    let this = reader.select(&Range { ids: vec![id.0.clone()], ..Range::default() }, clock::now(), 1).await?.sessions;
    let cases = reader.cases(&this, &Filters::default()).await?.into_iter().map(|case| case.name).collect();
    Ok(Past { session: row.session, results, cases })
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
        error => anyhow::Error::new(error).context(owners::unclaimed(session)),
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

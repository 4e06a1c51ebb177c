//! `muster results import`: sessions from run reports of Muster and of ReFrame, and from ReFrame's database.

use crate::{
    args::{Cli, ImportArgs},
    inputs::{documents::Documents, files},
    settings::Places,
    terminal::Terminal,
    wiring::database,
};
use anyhow::{Context, bail, ensure};
use muster_convert::stored;
use muster_core::{
    night::{NightRules, NightSpan},
    result::{CaseResult, Session},
};
use muster_host::{files as host_files, owner};
use muster_report::run_report;
use muster_session::runtime;
use muster_store::{Reader, ReframeDatabase, SessionRow, Store, StoreError, masked};
use muster_text::Value;
use std::{
    io::{Read, Seek},
    path::Path,
};

/// How a file of SQLite begins.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// What was imported.
#[derive(Debug, Default)]
struct Imported {
    sessions: usize,
    results: usize,
    figures: usize,
    known: usize,
}

pub fn import(cli: &Cli, args: &ImportArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let runtime = runtime::build()?;
    // Every file is read before anything is stored.
    for path in &args.files {
        runtime
            .block_on(each(path, async |_, _| Ok(())))
            .with_context(|| format!("{} cannot be read", masked(&path.to_string_lossy())))?;
    }
    let sites = files::sound_sites(&cli.files, terminal.color)?;
    let default = NightRules::default();
    let store = database::open(cli, &Places::of(cli), &runtime, terminal)?;
    let mut imported = Imported::default();
    for path in &args.files {
        runtime.block_on(each(path, async |session, results| {
            let night = sites.nights_of(&session.system).unwrap_or(&default).night_of(session.started);
            stored_once(&store, (session, night), results, &mut imported).await
        }))?;
    }
    runtime.block_on(store.close())?;
    let Imported { sessions, results, figures, known } = imported;
    let known = if known == 0 { String::new() } else { format!("; {known} were stored already") };
    terminal.print(&format!("imported {sessions} session(s) with {results} result(s) and {figures} figure(s){known}\n"));
    Ok(0)
}

/// Stores a session, unless there is one of this id. Of one whose import was killed it stores the rest.
async fn stored_once(
    store: &Store,
    (session, night): (Session, NightSpan),
    results: Vec<CaseResult>,
    imported: &mut Imported,
) -> anyhow::Result<()> {
    let reader = Reader::of_writer(store.database().clone()).await?;
    let owner = owner::this_owner();
    match reader.session_of(&session.id, &|_| None).await? {
        None => match store.write_whole(&session, &night, &owner, &results).await {
            // Another process imports it at this moment.
            Err(StoreError::AlreadyStored { .. }) => {
                imported.known += 1;
                return Ok(());
            }
            written => written?,
        },
        Some(row) if is_half(&reader, &row).await? => {
            let stored = reader.results(&session.id).await?;
            store.write_rest(&session, &night, (&row.held, &owner), &results, &stored).await?;
        }
        Some(_) => {
            imported.known += 1;
            return Ok(());
        }
    }
    imported.sessions += 1;
    imported.results += results.len();
    imported.figures += results.iter().map(|result| result.measurements.len()).sum::<usize>();
    Ok(())
}

/// Whether the import of a session was killed: it has no end, nobody holds it, and unlike a session that ran it has no jobs.
async fn is_half(reader: &Reader, row: &SessionRow) -> Result<bool, StoreError> {
    let is_over = row.session.ended.is_some() || owner::is_alive(&row.held.owner) == Some(true);
    Ok(!is_over && reader.unfinished(&row.session.id).await?.is_empty() && reader.teardowns(&row.session.id).await?.is_empty())
}

/// Hands out every session of a file, one at a time: all of them may not fit into memory.
async fn each(path: &Path, mut found: impl AsyncFnMut(Session, Vec<CaseResult>) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut file = host_files::open_regular(path)?;
    let mut head = [0; SQLITE.len()];
    if file.read_exact(&mut head).is_ok() && head == *SQLITE {
        let mut database = ReframeDatabase::open(path).await?;
        for session in database.sessions().await? {
            let text = database.report(&session).await?;
            let document: Value = serde_json::from_str(&text).with_context(|| format!("session {session}"))?;
            drop(text);
            let read = stored::read(&document).with_context(|| format!("session {session}"))?;
            drop(document);
            found(read.0, read.1).await?;
        }
        return Ok(());
    }
    file.rewind()?;
    let mut reports = Documents::of(file)?;
    let mut is_empty = true;
    while let Some(document) = reports.read_next()? {
        is_empty = false;
        let (session, results) = if run_report::is_one(&document) {
            run_report::read(document)?
        } else if stored::is_one(&document) {
            let read = stored::read(&document)?;
            drop(document);
            read
        } else {
            bail!("it is not a run report: neither of Muster (`report_version`) nor of ReFrame (`session_info`)");
        };
        found(session, results).await?;
    }
    ensure!(!is_empty, "it has no session");
    Ok(())
}

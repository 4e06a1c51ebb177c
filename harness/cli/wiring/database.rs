//! The results database of an invocation.

use crate::{
    args::{Cli, Files},
    inputs::selection,
    settings::{self, Places},
    terminal::Terminal,
    wiring::secrets,
};
use anyhow::Context;
use jiff::tz::TimeZone;
pub use muster_answers::LATEST;
use muster_answers::{Asked, nothing_stored};
use muster_core::{error::chain, result::Session};
use muster_host::{clock, owner};
use muster_store::{Location, Reader, SessionRow, Store, StoreError};
use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};
use tokio::runtime::Runtime;

/// Opens the database for writing, and prints what the user should know of it.
pub fn open(cli: &Cli, places: &Places, runtime: &Runtime, terminal: Terminal) -> anyhow::Result<Store> {
    let store = runtime.block_on(Store::open(&places.database)).context("no place for results: choose another with --db")?;
    for note in settings::note_on_database(cli).iter().chain(store.notes()) {
        terminal.note(&format!("note: {note}"));
    }
    Ok(store.hiding(secrets::of(cli), cli.files.schedulers.clone()))
}

/// Opens the database for a process that will write to it, after what others have left for it on this machine is written.
pub async fn reader_of_writer(database: &Location) -> Result<Reader, StoreError> {
    muster_store::recover(database).await?.iter().for_each(|note| tracing::warn!("{note}"));
    Reader::of_writer(database).await
}

/// Opens the database for a question, after what others have left for it on this machine is written. Where that cannot be done, the
/// user is told what the answer misses.
pub async fn reader_for_question(cli: &Cli, terminal: Terminal) -> Result<Reader, StoreError> {
    let database = Places::of(cli).database;
    let left = if muster_store::exists(&database)? { muster_store::left_behind(&database) } else { Vec::new() };
    if !left.is_empty() {
        // An older database is not brought up to date by a question.
        drop(Reader::open(database.clone()).await?);
        match muster_store::recover(&database).await {
            Ok(notes) => notes.iter().for_each(|note| terminal.note(&format!("note: {note}"))),
            // A command may ask twice.
            Err(_) if HAS_TOLD.swap(true, Ordering::Relaxed) => {}
            Err(error) => terminal.note(&missed(&left, &settings::on_this_database(cli, "results migrate"), &error)),
        }
    }
    Reader::open(database).await
}

/// A question to the results database, asked here and now.
pub struct Question<'a> {
    pub reader: Reader,
    zone: TimeZone,
    latest: Box<dyn Fn(&Session) + Sync + 'a>,
}

impl<'a> Question<'a> {
    pub async fn open(cli: &'a Cli, terminal: Terminal) -> Result<Self, StoreError> {
        let reader = reader_for_question(cli, terminal).await?;
        let latest = Box::new(move |session: &Session| tell_of_latest(&cli.files, session, terminal));
        Ok(Self { reader, zone: TimeZone::system(), latest })
    }

    pub fn asked(&self) -> Asked<'_> {
        Asked { reader: &self.reader, now: clock::now(), zone: &self.zone, latest: &*self.latest }
    }
}

/// Whether the user was told what answers miss.
static HAS_TOLD: AtomicBool = AtomicBool::new(false);

/// What an answer misses.
fn missed(left: &[(PathBuf, usize)], migrate: &str, error: &StoreError) -> String {
    let count: usize = left.iter().map(|(_, count)| count).sum();
    let files: Vec<String> = left.iter().map(|(path, _)| path.display().to_string()).collect();
    format!(
        "warning: {count} message(s) of a process that is gone are not written yet, and the answer misses them: they wait in {}, and \
         `{migrate}` writes them ({})",
        files.join(", "),
        chain(error)
    )
}

/// The session that a command names: `latest`, or the beginning of an id.
pub async fn session_named(cli: &Cli, reader: &Reader, session: &str, terminal: Terminal) -> anyhow::Result<SessionRow> {
    if session != LATEST {
        return Ok(reader.session(session, &owner::is_alive).await?);
    }
    let newest = reader.sessions(1, &owner::is_alive).await?.pop();
    let newest = newest.ok_or_else(|| nothing_stored(reader))?;
    tell_of_latest(&cli.files, &newest.session, terminal);
    Ok(newest)
}

/// Says which session `latest` is, where it is of another system or folder than the caller's.
pub fn tell_of_latest(files: &Files, session: &Session, terminal: Terminal) {
    // Without a site file nobody has chosen a system.
    let site = selection::site(files, false).ok().filter(|site| site.document().is_some());
    let folder = std::env::current_dir().unwrap_or_default();
    if let Some(note) = elsewhere(session, site.as_ref().map(|site| site.system.name.as_str()), &folder) {
        terminal.note(&note);
    }
}

fn elsewhere(session: &Session, system: Option<&str>, folder: &Path) -> Option<String> {
    let is_here = system.is_none_or(|system| system == session.system) && folder == session.workdir;
    (!is_here).then(|| format!("note: `latest` is {}", described(session)))
}

/// `session 20260105-080312-abcdefgh of system `eidf` in /home/me/checks`
pub fn described(session: &Session) -> String {
    format!("session {} of system `{}` in {}", session.id, session.system, session.workdir.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::case::SessionId;

    #[test]
    fn the_newest_session_is_named_where_it_is_of_another_system_or_folder() {
        let session = Session { id: SessionId("s1".to_owned()), system: "a".into(), workdir: "/w".into(), ..Session::default() };
        let note = Some("note: `latest` is session s1 of system `a` in /w".to_owned());
        let rows = [(Some("a"), "/w", None), (None, "/w", None), (Some("b"), "/w", note.clone()), (Some("a"), "/v", note)];
        for (system, folder, expected) in rows {
            assert_eq!(elsewhere(&session, system, Path::new(folder)), expected, "{system:?} {folder}");
        }
    }

    #[test]
    fn what_an_answer_misses_is_said() {
        let left = [(PathBuf::from("a.spool"), 3), (PathBuf::from("b.spool"), 1)];
        let error = StoreError::NoAnnotation { number: 1 };
        let text = missed(&left, "muster results migrate", &error);
        let start = "warning: 4 message(s) of a process that is gone are not written yet, and the answer misses them: they wait in \
                     a.spool, b.spool, and `muster results migrate` writes them (";
        assert!(text.starts_with(start), "{text}");
    }
}

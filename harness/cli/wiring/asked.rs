//! The results database of a question, and against what its selections are read.

use crate::{
    args::{Cli, Files},
    terminal::Terminal,
    wiring::database::{self, LATEST, nothing_stored},
};
use anyhow::bail;
use jiff::tz::TimeZone;
use muster_core::{
    query::spec::{CaseCounts, Filters, Selection},
    result::Outcome,
};
use muster_host::clock;
use muster_report::time;
use muster_store::{Reader, Selected};

/// The results database, and against what questions to it are read.
pub struct Asked {
    pub reader: Reader,
    zone: TimeZone,
    files: Files,
    terminal: Terminal,
}

/// No question is about more sessions.
const MOST_SESSIONS: u32 = 1_000_000;

impl Asked {
    pub async fn open(cli: &Cli, terminal: Terminal) -> anyhow::Result<Self> {
        let reader = database::reader_for_question(cli, terminal).await?;
        Ok(Self { reader, zone: TimeZone::system(), files: cli.files.clone(), terminal })
    }

    /// The sessions of a selection, the newest first.
    ///
    /// # Errors
    /// None at all: in one sentence, with what is stored.
    pub async fn sessions(&self, selection: &Selection) -> anyhow::Result<Vec<Selected>> {
        let found = self.sessions_or_none(selection, MOST_SESSIONS).await?;
        // An answer without it would look whole.
        if let Some((session, why)) = self.reader.unread().first() {
            bail!("session {session} cannot be read: {why}");
        }
        if !found.is_empty() {
            return Ok(found);
        }
        let Some((first, last)) = self.reader.extent().await? else {
            return Err(nothing_stored(&self.reader));
        };
        let day = |at| time::local(at, &self.zone).get(..16).unwrap_or_default().to_owned();
        bail!("no session is in `{selection}`: those that are stored started from {} to {}", day(first), day(last))
    }

    /// Why filters have left nothing, if it is a name that nothing stored has.
    ///
    /// # Errors
    /// In one sentence, with the nearest names.
    pub async fn are_known(&self, filters: &Filters) -> anyhow::Result<()> {
        if !filters.is_empty() {
            filters.are_known(&self.reader.known_cases().await?)?;
        }
        Ok(())
    }

    /// The same, and none if there is none; at most so many.
    pub async fn sessions_or_none(&self, selection: &Selection, limit: u32) -> anyhow::Result<Vec<Selected>> {
        let now = clock::now();
        let range = selection.range(|period| period.at(now, &self.zone))?;
        let found = self.reader.select(&range, now, limit).await?;
        if let ([id], [one]) = (&range.ids[..], &found[..])
            && id == LATEST
        {
            database::tell_of_latest(&self.files, &one.session, self.terminal);
        }
        if selection.condition.is_none() {
            return Ok(found);
        }
        let mut counts = vec![CaseCounts::default(); found.len()];
        if selection.needs_cases() {
            for case in self.reader.cases(&found, &Filters::default()).await? {
                if let Some(counts) = counts.get_mut(case.session) {
                    count(counts, case.outcome.as_ref());
                    counts.tags.extend(case.tags);
                }
            }
        }
        let asked = found.iter().zip(counts).map(|(one, counts)| (&one.session, one.night.map(night), counts));
        let admitted = selection.admitted(asked)?;
        Ok(found.into_iter().zip(admitted).filter(|(_, is_admitted)| *is_admitted).map(|(one, _)| one).collect())
    }
}

/// `2026-11-24`
fn night(number: i64) -> String {
    muster_text::time::Date::of_days(number).to_string()
}

fn count(counts: &mut CaseCounts, outcome: Option<&Outcome>) {
    match outcome {
        None => {}
        Some(Outcome::Abort) => counts.aborted += 1,
        Some(Outcome::Skip) => counts.skipped += 1,
        Some(outcome) => counts.failures += u32::from(!outcome.is_fine()),
    }
}

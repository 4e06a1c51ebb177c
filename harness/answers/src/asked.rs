//! The sessions that a selection names.

use crate::{Unanswered, nothing_stored};
use jiff::tz::TimeZone;
use muster_core::{
    query::spec::{CaseCounts, Filters, Selection},
    result::{Outcome, Session},
};
use muster_store::{Found, Reader, Selected};
use muster_text::time::Timestamp;

/// A results database, and the moment and the time zone in which the periods of a question are read.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub reader: &'a Reader,
    pub now: Timestamp,
    pub zone: &'a TimeZone,
    /// Hears which session `latest` is, where a selection names nothing else.
    pub latest: &'a (dyn Fn(&Session) + Sync),
}

/// The most sessions that a question is about: the newest.
const MOST_SESSIONS: u32 = 1_000_000;

/// The name of the newest session.
pub const LATEST: &str = "latest";

impl Asked<'_> {
    /// Returns the sessions of a selection, the newest first.
    ///
    /// # Errors
    /// [`Unanswered::Unknown`] if there is none, with what is stored.
    pub async fn sessions(&self, selection: &Selection) -> Result<Vec<Selected>, Unanswered> {
        let Found { sessions, unread } = self.select(selection, MOST_SESSIONS).await?;
        // An answer without it would look whole.
        if let Some((session, why)) = unread.first() {
            return Unanswered::unknown(format!("session {session} cannot be read: {why}"));
        }
        if !sessions.is_empty() {
            return Ok(sessions);
        }
        let Some((first, last)) = self.reader.extent().await? else {
            return Err(nothing_stored(self.reader));
        };
        let minute = |at: Timestamp| {
            let at = jiff::Timestamp::from_microsecond(at.0).map(|at| at.to_zoned(self.zone.clone()));
            at.map_or_else(|_| String::new(), |at| at.strftime("%F %H:%M").to_string())
        };
        Unanswered::unknown(format!(
            "no session is in `{selection}`: those that are stored started from {} to {}",
            minute(first),
            minute(last)
        ))
    }

    /// Returns at most `limit` sessions of a selection, the newest first.
    pub async fn select(&self, selection: &Selection, limit: u32) -> Result<Found, Unanswered> {
        let range = selection.range(|period| period.at(self.now, self.zone))?;
        let Found { sessions: found, unread } = self.reader.select(&range, self.now, limit).await?;
        if let ([id], [one]) = (&range.ids[..], &found[..])
            && id == LATEST
        {
            (self.latest)(&one.session);
        }
        if selection.condition.is_none() {
            return Ok(Found { sessions: found, unread });
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
        let night = |one: &Selected| one.night.map(|night| night.to_string());
        let asked = found.iter().zip(counts).map(|(one, counts)| (&one.session, night(one), counts));
        let admitted = selection.admitted(asked)?;
        let sessions = found.into_iter().zip(admitted).filter(|(_, is_admitted)| *is_admitted).map(|(one, _)| one).collect();
        Ok(Found { sessions, unread })
    }

    /// Checks that no filter is a name that nothing stored has, after filters have left nothing.
    ///
    /// # Errors
    /// [`Unanswered::Unknown`] with the nearest names.
    pub async fn are_known(&self, filters: &Filters) -> Result<(), Unanswered> {
        if !filters.is_empty() {
            filters.are_known(&self.reader.known_cases().await?)?;
        }
        Ok(())
    }

    /// Checks that some of these sessions have a night: the figures of others cannot be found by night.
    pub(crate) fn are_placed(&self, sessions: &[Selected]) -> Result<(), Unanswered> {
        let unplaced = sessions.iter().filter(|session| session.night.is_none()).count();
        if unplaced < sessions.len() || sessions.is_empty() {
            return Ok(());
        }
        let rebuild = self.reader.database().command("results rebuild");
        Unanswered::unknown(format!(
            "an older muster has stored these sessions, and their figures have no night yet: `{rebuild}` places them"
        ))
    }
}

fn count(counts: &mut CaseCounts, outcome: Option<&Outcome>) {
    match outcome {
        None => {}
        Some(Outcome::Abort) => counts.aborted += 1,
        Some(Outcome::Skip) => counts.skipped += 1,
        Some(outcome) => counts.failures += u32::from(!outcome.is_fine()),
    }
}

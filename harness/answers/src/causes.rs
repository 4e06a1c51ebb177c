//! The causes for which the cases of a night failed, and the night since which they do.

use crate::{Asked, Unanswered, nights::in_the_future};
use muster_core::{
    night::Night,
    query::{
        causes::{self, Cause, Level, NightOfCauses, Since},
        spec::Selection,
    },
    result::{Failure, Outcome},
};
use muster_store::{Occurrence, Reader};
use std::collections::BTreeMap;

/// The last good night is looked for in this many nights first, then in all.
const NIGHTS: i32 = 120;
/// This many cases of a group are looked at.
const CASES: usize = 12;

/// Returns why the cases of the nights of a selection failed, and since when.
///
/// # Errors
/// [`Unanswered::Unknown`] if nothing that is selected has a result.
pub async fn causes(asked: &Asked<'_>, selection: &Selection) -> Result<NightOfCauses, Unanswered> {
    let sessions = asked.sessions(selection).await?;
    asked.are_placed(&sessions)?;
    let nights = || sessions.iter().filter_map(|session| session.night);
    let (first, night) = (nights().min().unwrap_or_default(), nights().max().unwrap_or_default());
    let failures = asked.reader.failures(&sessions, &selection.filters).await?;
    if failures.cases == 0 {
        asked.are_known(&selection.filters).await?;
        if !selection.filters.is_empty() {
            return Unanswered::unknown(format!("no case in `{selection}` has a result"));
        }
    }
    let mut groups = Vec::new();
    for cause in causes::group(failures.failures) {
        let since = since(asked.reader, &cause, night).await?;
        groups.push((cause, since));
    }
    Ok(NightOfCauses {
        first,
        night,
        systems: failures.systems.into_iter().collect(),
        sessions: failures.sessions,
        cases: failures.cases,
        causes: groups,
    })
}

/// Returns what to say of a session that is dated in the future: no question about the last night looks at it.
pub async fn future(asked: &Asked<'_>) -> Result<Option<String>, Unanswered> {
    let nights = asked.reader.nights(asked.now).await?;
    Ok(nights.into_iter().filter_map(|nights| nights.future).max().map(in_the_future))
}

/// The results of the cases of a group by night; of each, which case it is.
type Nights = BTreeMap<Night, Vec<(usize, Occurrence)>>;

/// Returns since when a group fails, and what changed then.
async fn since(reader: &Reader, cause: &Cause, night: Night) -> Result<Since<Night>, Unanswered> {
    let mut nights = nights(reader, cause, (night.before(NIGHTS), night)).await?;
    let mut since = since_of(&nights, night);
    if since.last_good.is_none() {
        nights = self::nights(reader, cause, (Night::MIN, night)).await?;
        since = since_of(&nights, night);
    }
    since.level = level(reader, cause, night).await?.filter(|level| since.first_bad.is_none_or(|bad| level.since <= bad));
    if let Some((good, bad)) = compared(&nights, &since) {
        let (before, after) = (reader.facts(&good, &bad).await?, reader.facts(&bad, &bad).await?);
        since.changed = causes::changed(&before, &after);
    }
    Ok(since)
}

async fn nights(reader: &Reader, cause: &Cause, range: (Night, Night)) -> Result<Nights, Unanswered> {
    let mut nights = Nights::new();
    for (case, failure) in cause.failures.iter().take(CASES).enumerate() {
        for occurrence in reader.occurrences(&failure.name, range).await? {
            nights.entry(occurrence.night).or_default().push((case, occurrence));
        }
    }
    Ok(nights)
}

fn since_of(nights: &Nights, night: Night) -> Since<Night> {
    // Of several nights that are asked about, the group may have been well in the last.
    let failed =
        nights.iter().rev().find(|(_, all)| all.iter().any(|(_, one)| !one.is_fine)).map_or(night, |(failed, _)| *failed);
    let is_good = |of_night: &[(usize, Occurrence)]| of_night.iter().any(|(_, one)| one.is_fine);
    let earlier = nights.iter().rev().filter(|(number, _)| **number < failed).map(|(number, all)| (*number, is_good(all)));
    causes::since(failed, earlier)
}

/// Returns since when a figure of the cases that are too slow is at a worse level, as `muster night` has found it: that may be long before
/// one misses its reference.
async fn level(reader: &Reader, cause: &Cause, night: Night) -> Result<Option<Level<Night>>, Unanswered> {
    let slow = cause.failures.iter().filter(|failure| failure.outcome == Outcome::Fail(Failure::Performance));
    for failure in slow.take(CASES) {
        if let Some(change) = reader.worse_levels(&failure.name, night).await?.first() {
            return Ok(Some(Level { change: change.id.to_string(), since: change.since, interval: change.since_interval }));
        }
    }
    Ok(None)
}

/// Returns the good runs of a case in a night and the bad ones in a later night, or those before and after the change of its level: what differs
/// between two cases says nothing.
fn compared<'a>(nights: &'a Nights, since: &Since<Night>) -> Option<(Vec<&'a Occurrence>, Vec<&'a Occurrence>)> {
    let (good, bad, has_level) = match (&since.level, since.last_good, since.first_bad) {
        // `high` and later; before `low`.
        (Some(Level { interval: (low, high), .. }), ..) => (low.before(1), *high..=Night::MAX, true),
        (None, Some(good), Some(bad)) => (good, bad..=bad, false),
        (None, ..) => return None,
    };
    let runs = |all: &'a [(usize, Occurrence)], case: usize, is_fine: bool| -> Vec<&'a Occurrence> {
        let is_meant = |(of, one): &&(usize, Occurrence)| *of == case && (has_level || one.is_fine == is_fine);
        all.iter().filter(is_meant).map(|(_, one)| one).collect()
    };
    nights.range(bad).flat_map(|(_, all)| all.iter().map(move |(case, _)| (all, *case))).find_map(|(all, case)| {
        let after = runs(all, case, false);
        let before = nights.range(..=good).rev().map(|(_, all)| runs(all, case, true)).find(|runs| !runs.is_empty())?;
        (!after.is_empty()).then_some((before, after))
    })
}

//! The night that is judged, per system.

use crate::Unanswered;
use muster_judge::night::Night;
use muster_store::{Reader, StoredNights};
use muster_text::{diagnostic::nearest, time::Timestamp};

/// At most this many names are listed.
const LISTED: usize = 8;

/// A system, and the night that is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub system: String,
    pub night: Night,
    /// The last night in which the system had a session, if that is an earlier one.
    pub absent_since: Option<Night>,
    /// A night that has not begun, and has a session all the same.
    pub future: Option<Night>,
}

/// Returns the systems that are asked for, each with the night that is judged. Without a night, that is the last night of any system:
/// a system that had no session in it is judged for it, too.
///
/// # Errors
/// [`Unanswered::Unknown`] if no such system or night is stored.
pub async fn systems(
    reader: &Reader,
    now: Timestamp,
    system: Option<&str>,
    night: Option<Night>,
) -> Result<Vec<Chosen>, Unanswered> {
    let stored = reader.nights(now).await?;
    if stored.is_empty() {
        return Unanswered::unknown(format!(
            "no night is stored in {}: run checks with `muster -r`; `muster results rebuild{}` places what an older muster has stored",
            reader.database().display(),
            reader.database().clone().absolute().flag()
        ));
    }
    let wanted = of_system(&stored, system)?;
    let tonight = stored.iter().map(|nights| nights.last).max().unwrap_or_default();
    let at = night.unwrap_or(tonight);
    let mut found = Vec::new();
    for StoredNights { system, first, last, future } in wanted.iter().copied().cloned() {
        let latest = last.max(future.unwrap_or(last)).max(tonight);
        if night.is_some() && !(first..=latest).contains(&at) {
            continue;
        }
        // Later sessions say nothing of a night: a system that had none in it was absent, also when it is back.
        let until_then = reader.nights_between(&system, first, at).await?.last().copied();
        let absent_since = until_then.filter(|last| *last < at);
        let future = future.filter(|future| *future != at);
        found.push(Chosen { system, night: at, absent_since, future });
    }
    if let (true, Some(night)) = (found.is_empty(), night) {
        let first = wanted.iter().map(|nights| nights.first).min().unwrap_or(night);
        let last = wanted.iter().map(|nights| nights.last).max().unwrap_or(night);
        return Unanswered::unknown(format!("the night of {night} is not stored: there are nights from {first} to {last}"));
    }
    Ok(found)
}

/// Returns the nights of a system, or of all.
fn of_system<'a>(stored: &'a [StoredNights], system: Option<&str>) -> Result<Vec<&'a StoredNights>, Unanswered> {
    let Some(system) = system else { return Ok(stored.iter().collect()) };
    let found: Vec<_> = stored.iter().filter(|nights| nights.system == system).collect();
    if found.is_empty() {
        let names = || stored.iter().map(|nights| nights.system.as_str());
        let near = nearest(system, names()).map_or_else(
            || format!("there are {}", names().take(LISTED).collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        return Unanswered::unknown(format!("no night of the system `{system}` is stored; {near}"));
    }
    Ok(found)
}

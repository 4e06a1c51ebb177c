//! Lists of sessions, also by the cases that they have.

use crate::{Asked, Unanswered};
use muster_core::{
    query::spec::{Filters, Selection},
    result::Outcome,
};
use muster_store::{Found, Selected};
use std::collections::BTreeSet;

/// The cases of this many sessions are looked through at once.
const CHUNK: usize = 100;

/// A choice among the sessions of a selection.
#[derive(Debug, Clone, Copy)]
pub struct Listed<'a> {
    pub limit: u32,
    /// The outcomes of which a session has a case: words, words with their details, or `failed`. None: any.
    pub outcomes: &'a [String],
}

/// Returns the sessions of a selection, the newest first.
pub async fn list(asked: &Asked<'_>, selection: &Selection, listed: Listed<'_>) -> Result<Found, Unanswered> {
    let Listed { limit, outcomes } = listed;
    let is_by_case = !outcomes.is_empty() || !selection.filters.is_empty();
    let most = if is_by_case || selection.condition.is_some() { u32::MAX } else { limit };
    let limit = limit as usize;
    let mut found = asked.select(selection, most).await?;
    if !is_by_case {
        found.sessions.truncate(limit);
        return Ok(found);
    }
    let mut chosen = Vec::new();
    for part in found.sessions.chunks(CHUNK) {
        let cases = asked.reader.cases(part, &selection.filters).await?;
        let meant: BTreeSet<usize> =
            cases.iter().filter(|case| has_outcome(case.outcome.as_ref(), outcomes)).map(|case| case.session).collect();
        chosen.extend(meant.into_iter().filter_map(|place| part.get(place).cloned()));
        if chosen.len() >= limit {
            break;
        }
    }
    chosen.truncate(limit);
    Ok(Found { sessions: chosen, ..found })
}

/// Returns the newest session with a case that these filters admit.
pub async fn newest_with(asked: &Asked<'_>, filters: &Filters) -> Result<Option<Selected>, Unanswered> {
    let selection = Selection::default().and(filters);
    Ok(list(asked, &selection, Listed { limit: 1, outcomes: &[] }).await?.sessions.pop())
}

fn has_outcome(outcome: Option<&Outcome>, wanted: &[String]) -> bool {
    let is = |outcome: &Outcome, wanted: &String| {
        wanted == outcome.row().word || *wanted == outcome.to_string() || (wanted == "failed" && !outcome.is_fine())
    };
    wanted.is_empty() || outcome.is_some_and(|outcome| wanted.iter().any(|wanted| is(outcome, wanted)))
}

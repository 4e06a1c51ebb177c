//! Decides whether a job fits into its capacity block.

use crate::{cloud::Reservation, plan::Lifetime};
use muster_text::time::{Timestamp, format_duration};
use std::time::Duration;

/// EC2 begins so long before the end of a block to end what runs in it.
const RECLAIMED: Duration = Duration::from_mins(30);

/// What a capacity block says about a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Block {
    Open,
    /// It begins later, and the job fits into it.
    NotYet(Timestamp),
    /// Why it can never run there.
    Never(String),
}

/// `now`: when the instances would be asked for.
pub(crate) fn block(reservation: &Reservation, lifetime: Lifetime, now: Timestamp) -> Block {
    let Reservation { id, state, starts, ends, .. } = reservation;
    if matches!(state.as_str(), "expired" | "cancelled" | "failed" | "payment-failed" | "unsupported") {
        return Block::Never(format!("the capacity block {id} is {state}"));
    }
    let begins = starts.filter(|starts| *starts > now);
    let limit = Duration::from_secs(lifetime.limit);
    if let Some(ends) = ends {
        let reclaimed = Timestamp(ends.0 - i64::try_from(RECLAIMED.as_micros()).unwrap_or(i64::MAX));
        if begins.unwrap_or(now).plus(limit) > reclaimed {
            let (limit, before, at) = (format_duration(limit), format_duration(RECLAIMED), shown(reclaimed));
            return Block::Never(format!(
                "`time_limit` {limit} ends after the capacity block {id} is reclaimed ({at}, {before} before its end)"
            ));
        }
    }
    begins.map_or(Block::Open, Block::NotYet)
}

/// To the minute.
pub(crate) fn shown(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.0).map_or_else(|_| "?".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

//! `--resume`: which stored session is finished in place of a new one.

use muster_core::{
    case::{SessionId, cases_of},
    decisions::rounds,
    result::Session,
};
use muster_store::{SessionRow, SessionState};
use muster_text::time::Timestamp;
use std::collections::BTreeSet;

/// The session that `session` would be another run of, if it was cut short. `rows` are the stored sessions, the newest first.
pub fn to_finish(rows: Vec<SessionRow>, session: &Session) -> Option<SessionRow> {
    // Only the newest: what came after one that was cut short has done its work.
    let newest = rows.into_iter().find(|row| rounds::is_same_run(&row.session, session))?;
    (may_be_left(&newest) && newest.session.selection == session.selection).then_some(newest)
}

/// Sessions of other cases that were cut short, and may be resumed as well.
pub fn left_for_others(rows: Vec<SessionRow>, now: Timestamp) -> BTreeSet<SessionId> {
    let mut newest = BTreeSet::new();
    let mut is_left = |row: &SessionRow| {
        let is_newest = newest.insert((row.session.system.clone(), cases_of(&row.session.selection).to_owned()));
        is_newest && may_be_left(row) && rounds::may_be_resumed(&row.session, now)
    };
    rows.into_iter().filter(|row| is_left(row)).map(|row| row.session.id).collect()
}

fn may_be_left(row: &SessionRow) -> bool {
    match row.state {
        SessionState::Ended => row.session.interrupted,
        SessionState::Interrupted | SessionState::Unknown => true,
        SessionState::Running => false,
    }
}

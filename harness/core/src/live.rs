//! The state of the cases of a session that runs: levels, not events. A view of it needs nothing else.

use crate::{
    case::CaseName,
    result::{Outcome, Quarantine},
};
use muster_text::{time::Timestamp, words};

words! {
    /// The state of the last attempt at a case.
    #[derive(Default)]
    pub enum CaseState {
        /// It has no slot yet, or is planned.
        #[default]
        Waiting = "waiting",
        /// It is being launched, or waits for its scheduler.
        Pending = "pending",
        /// It runs, or is judged or cleaned up after that.
        Running = "running",
        /// Its result is stored.
        Ended = "ended",
    }
}

/// The state of the last attempt at a case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseProgress {
    /// 1, 2, ... within the session.
    pub attempt: u32,
    pub state: CaseState,
    /// The time when this state began.
    pub since: Timestamp,
    /// The thing that it waits for, or what it does beside running; one fragment.
    pub note: Option<String>,
    /// The nodes where it runs, or ran, as far as they are known.
    pub nodes: Vec<String>,
}

/// A case of a session, as it is now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveCase {
    pub name: CaseName,
    pub progress: CaseProgress,
    /// The outcome, if it has ended.
    pub outcome: Option<Outcome>,
    /// The reason for the outcome; one sentence.
    pub cause: Option<String>,
    /// Set if that outcome does not count.
    pub quarantine: Option<Quarantine>,
}

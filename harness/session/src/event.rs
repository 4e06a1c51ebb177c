//! The events of a session, as they happen: for progress lines and live views. Results are in `CaseResult`.

use muster_core::{
    case::CaseName,
    job::workload::Clock,
    result::{CaseResult, Phase},
};
use std::{sync::Arc, time::Duration};

/// The clock that runs, and its limit; `None`: no limit.
pub type Limit = (Clock, Option<Duration>);

/// One thing that happened. Cheap to clone and to send.
#[derive(Debug, Clone)]
pub enum Event {
    /// A case got its slot: `[ RUN      ]`.
    Started(Arc<CaseName>),
    /// A case entered a phase, or waits for something else than before.
    Phase {
        case: Arc<CaseName>,
        phase: Phase,
        /// The thing that it waits for, or where it runs; one fragment.
        note: Option<String>,
        /// The clock that runs, and the limit at which it will end the case; `None`: as before.
        limit: Option<Limit>,
    },
    /// Cases run again, so many of them.
    Round { cases: u32, why: String },
    /// It is over.
    Finished(Arc<CaseResult>),
    /// Nothing that a case suffers from, but worth a line on stderr.
    Warning(String),
    /// The session is being cancelled, and why.
    Cancelling(String),
}

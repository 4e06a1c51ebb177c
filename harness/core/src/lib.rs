//! The words and the decisions of a session: cases, jobs, judging, outcomes. Pure: no files, no clock, no network, no runtime.
//!
//! ```text
//! case        names, hashes and identifiers of cases
//! job         Workload -plan-> Job -> JobStatus, Stdout; the trait Scheduler
//! launcher    what starts the tasks of a job
//! rules       how a case is judged: sanity, performance variables, references
//! result      how cases and sessions ended
//! live        how far the cases of a session are that runs
//! night       to which night a session belongs
//! probe       what `muster doctor` asks and finds
//! judge       Stdout, Rules -> Judgement
//! stats       where values lie, and how far apart
//! query       questions to stored results, and what answers are made of
//! usage       what jobs use of instances that are paid by time, and what it costs
//! decisions   limits, retries, pauses, dependencies, takeover, budget, exit code
//! ```

pub mod case;
pub mod decisions;
pub mod error;
pub mod fact;
pub mod job;
pub mod judge;
pub mod launcher;
pub mod live;
pub mod night;
pub mod probe;
pub mod query;
pub mod result;
pub mod rules;
pub mod secret;
pub mod stats;
pub mod usage;

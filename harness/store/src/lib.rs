//! The results database: what ran, what is running, how it ended. Several processes may use it at once.
//!
//! ```text
//! begin -> { intent -> launched -> finished -> cleaned } for each attempt -> end        Store, one writer
//!      waiting -> pending -> running -> ended, of each case the last state    `progress`, with the next commit
//!                                         sessions, results, changes, unfinished, open_jobs          Reader, any number
//! ```
//! The plan of a job is committed before its launch and a result before it is announced, so a killed harness leaves
//! rows, never an unknown pod. Nothing here looks at processes or clocks: the caller says who lives and what time it is.
//! A database is a file (SQLite) or on a server (PostgreSQL). Statements are written once, in `sql/`; while a server is away or a
//! file stays locked, what is written goes to a spool on this machine (`write/outage/`).

mod alias;
mod connect;
pub mod demo;
mod error;
mod file;
mod location;
mod looked;
mod read;
mod reframe;
mod schema;
mod series;
mod server;
mod sql;
mod upkeep;
mod write;

pub use alias::Names;
pub use connect::{exists, migrate};
pub use error::{SqlError, StoreError};
pub use location::{Location, Server, masked, state_folder};
pub use looked::Looked;
pub use muster_core::result::SessionState;
pub use muster_host::owner::Owner;
pub use read::changes::Judged;
pub use read::nights::{NightProgress, StoredNights};
pub use read::{Alive, Changes, Held, JobRow, JobState, Reader, SessionRow};
pub use read::{
    failures::{Failures, Occurrence},
    figures::{KnownMetric, Parameters, Which},
    selected::{Found, Selected, SelectedCase},
};
pub use reframe::ReframeDatabase;
pub use server::{Rights, rights};
pub use upkeep::{Alias, Annotation, Going, Keep, Rebuilt, Space, Upkeep, WhyKept};
pub use write::{Describe, Intent, Seen, Store, left_behind, recover};

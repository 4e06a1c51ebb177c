//! The results database: what ran, what is running, how it ended. One file that several processes may use at once.
//!
//! ```text
//! begin -> { intent -> launched -> finished -> cleaned } for each attempt -> end        Store, one writer
//!      waiting -> pending -> running -> ended, of each case the last state    `progress`, with the next commit
//!                                         sessions, results, changes, unfinished, open_jobs          Reader, any number
//! ```
//! The plan of a job is committed before its launch and a result before it is announced, so a killed harness leaves
//! rows, never an unknown pod. Nothing here looks at processes or clocks: the caller says who lives and what time it is.
//! SQLite only; the SQL of reads and writes is kept to what PostgreSQL would take as well.

mod connect;
mod error;
mod file;
mod location;
mod read;
mod schema;
mod server;
mod sql;
mod write;

pub use connect::migrate;
pub use error::{SqlError, StoreError};
pub use location::{Location, Server, masked, state_folder};
pub use muster_core::result::SessionState;
pub use muster_host::owner::Owner;
pub use read::nights::{NightProgress, StoredNights};
pub use read::{Alive, Changes, Held, JobRow, JobState, Reader, SessionRow};
pub use write::{Describe, Intent, Store};

//! One look at a region for all of its jobs, as often as the site says.
//!
//! ```text
//! wait, launch -> track -> Tracked: a status, what was seen, and who waits for it
//! look: DescribeInstances once, ListObjects once a session -> what agents say, where it is new -> decide::status -> its status
//! ```
//! `tracked` is what is remembered of a job, `look` one look, `region` what all jobs at a place share, `capacity` what was refused, `used`
//! how long instances were there, `written` what a preflight has left.

mod capacity;
mod look;
mod region;
mod tracked;
mod used;
mod written;

pub(crate) use capacity::{Asked, Attempts, TURN, Wanted};
pub(crate) use look::{console, of_job, state};
pub(crate) use region::{Clock, Region};
pub(crate) use tracked::{Sight, Tracked};
pub(crate) use written::Written;

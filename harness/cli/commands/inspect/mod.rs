//! The actions that only look: listings, settings, plans and stored sessions.

pub mod config;
pub mod dry_run;
pub mod list;
pub mod results;
pub mod top;

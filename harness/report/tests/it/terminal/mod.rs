//! What a person reads on a terminal.

mod failure;
mod listing;
mod live;
mod performance;
mod progress;
mod results;
mod retries;
mod summary;
mod top;

//! The texts for a person at a terminal.

pub mod doctor;
pub mod failure;
pub mod listing;
pub mod live;
pub mod performance;
pub mod progress;
pub mod results;
pub mod retries;
pub mod statistics;
pub mod summary;

//! Every text that a person or a program reads, made from one invented session.

mod failure;
mod json;
mod listing;
mod performance;
mod progress;
mod results;
mod sample;
mod sanitize;
mod summary;

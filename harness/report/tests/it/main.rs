//! Every text that a person or a program reads, made from one invented session.

// The helpers of a test may stop at the first surprise as well as the test.
#![allow(clippy::unwrap_used)]

mod annotations;
mod failure;
mod gitlab;
mod json;
mod junit;
mod listing;
mod live;
mod page;
mod perflog;
mod performance;
mod progress;
mod results;
mod retries;
mod sample;
mod sanitize;
mod summary;
mod tools;

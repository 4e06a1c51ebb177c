//! Every text that a person or a program reads, made from one invented session.

// The helpers of a test may stop at the first surprise as well as the test.
#![allow(clippy::unwrap_used)]

mod answers;
mod files;
mod night;
mod page;
mod sample;
mod sanitize;
mod terminal;
mod tools;
mod usage;

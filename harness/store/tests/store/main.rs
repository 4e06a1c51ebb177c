//! The store from outside, on real files and with real processes. `postgres` runs the same tests again on a server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cost;
mod demo;
mod failures;
mod killed;
mod live;
mod nights;
mod postgres;
mod reader;
mod round_trip;
mod session;
mod support;

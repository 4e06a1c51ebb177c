//! How a session is shown and stopped from outside.

pub mod libtest;
pub mod signals;

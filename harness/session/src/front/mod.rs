//! The front ends that show a session and stop it from outside.

pub mod libtest;
pub mod signals;

//! One case on this machine: what it is given, how it runs and how it is judged.

mod containers;
mod fixtures;
mod judging;
mod kept;
mod log_limit;
mod modules;
mod running;
mod staging;

//! Decisions as tables of what was seen and what follows.

mod log;
mod offer;
mod status;

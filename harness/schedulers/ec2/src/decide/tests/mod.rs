//! Decisions as tables of what was seen and what follows.

mod block;
mod log;
mod offer;
mod status;

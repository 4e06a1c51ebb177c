//! Decisions as tables of what was seen and what follows.

mod block;
mod clock;
mod log;
mod offer;
mod status;
mod stay;

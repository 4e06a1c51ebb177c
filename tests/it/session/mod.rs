//! Sessions: rounds, interruption, and going on after it.

mod attach;
mod copies;
mod owners;
mod redraw;
mod resume;
mod rounds;
mod signals;
mod sweep;
mod watched;

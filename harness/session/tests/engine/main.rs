//! The engine as a whole, driven through the fake scheduler.

mod cancel;
mod depends;
mod lanes;
mod local;
mod logs;
mod order;
mod outcomes;
mod places;
mod redraw;
mod rounds;
mod stored;
mod support;
mod teardown;
mod trials;

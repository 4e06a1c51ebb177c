//! Many cases: order, slots, dependencies, rounds, teardowns, cancelling.

mod cancel;
mod depends;
mod lanes;
mod order;
mod rounds;
mod sources;
mod study;
mod teardown;

//! The engine as a whole, driven through the fake scheduler.

mod cases;
mod libtest;
mod session;
mod support;

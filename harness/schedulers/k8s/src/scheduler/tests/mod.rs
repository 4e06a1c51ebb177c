//! Whole schedulers against a server that is a function.

mod idle;
mod skewed;

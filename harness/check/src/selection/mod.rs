//! Selects the cases that run, their order and their nodes, and what the command line changes of them.

pub mod adjust;
pub mod distribute;
pub mod order;
pub mod select;

//! Which cases run, in which order, on which nodes, and what the command line changes of them.

pub mod adjust;
pub mod distribute;
pub mod order;
pub mod select;

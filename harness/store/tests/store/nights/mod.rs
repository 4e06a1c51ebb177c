//! The history of figures over nights, and its upkeep.

pub(crate) mod history;
mod left;
mod upkeep;
mod verdict;

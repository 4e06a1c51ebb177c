//! The database file: opening it and bringing its tables up to date.

pub(crate) mod connect;
mod migrate;
pub(crate) mod reading;

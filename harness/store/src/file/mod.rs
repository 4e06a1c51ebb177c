//! A database in a file: opening it.

pub(crate) mod connect;
pub(crate) mod reading;

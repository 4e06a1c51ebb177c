//! A database on a PostgreSQL server: its URL, its password, the connection.

pub(crate) mod connect;
mod options;
mod password;
mod rights;

pub(crate) use options::Options;
pub use rights::{Rights, rights};

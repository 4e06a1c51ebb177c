//! Words, numbers and tables in plain text: what every report is composed of.

pub mod command;
pub(crate) mod csv_cells;
pub mod number;
pub mod secret;
pub mod style;
pub(crate) mod table;
pub mod time;
pub(crate) mod words;

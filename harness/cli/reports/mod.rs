//! The reports of a session: on the terminal and in files.

pub mod files;
mod out_file;
mod perflogs;
pub mod session;
pub mod stored;

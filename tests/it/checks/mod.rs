//! From files to cases: what is read, listed, formatted and refused.

mod author;
mod bad_input;
mod facts;
mod files;
mod init;
mod listing;
mod mistakes;
mod reference_files;
mod settings_files;

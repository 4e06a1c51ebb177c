//! A database in a file: opening it.

pub(crate) mod connect;
pub(crate) mod reading;

use std::{fs, io, path::Path};

/// Who opens a pipe waits for its other end, perhaps for ever. Opening and closing the file to look at it would end the locks that
/// this process has on it.
///
/// # Errors
/// What is there is no file. What is not there is fine.
fn refuse_no_file(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        Ok(_) | Err(_) => Ok(()),
    }
}

//! A database in a file: opening it.

pub(crate) mod connect;
pub(crate) mod reading;

use crate::StoreError;
use std::{fs, os::unix::fs::FileTypeExt, path::Path};

/// Refuses what is there and is no file. SQLite would wait for the writer of a pipe, and write over what is on a disk.
pub(crate) fn is_file_if_any(path: &Path) -> Result<(), StoreError> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let kind = found.file_type();
    let kind = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "directory",
        () if kind.is_fifo() => "pipe",
        () if kind.is_socket() => "socket",
        () => "device",
    };
    Err(StoreError::NoFile { path: path.to_owned(), kind })
}

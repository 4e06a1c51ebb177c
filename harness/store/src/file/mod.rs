//! A database in a file: opening it.

pub(crate) mod connect;
pub(crate) mod reading;

use crate::StoreError;
use std::{fs, os::unix::fs::FileTypeExt, path::Path};

/// Refuses what is there and is no file: the database, or what SQLite has beside it. SQLite would wait for the writer of a pipe, and
/// write over what is on a disk.
pub(crate) fn is_file_if_any(path: &Path) -> Result<(), StoreError> {
    ["", "-wal", "-shm", "-journal"].iter().try_for_each(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        is_one_if_any(Path::new(&name))
    })
}

fn is_one_if_any(path: &Path) -> Result<(), StoreError> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let found = found.file_type();
    if found.is_file() {
        return Ok(());
    }
    let kind = if found.is_dir() {
        "directory"
    } else if found.is_fifo() {
        "pipe"
    } else if found.is_socket() {
        "socket"
    } else {
        "device"
    };
    Err(StoreError::NoFile { path: path.to_owned(), kind })
}

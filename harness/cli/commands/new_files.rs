//! Files that a command makes for people to go on with: never over what is there, and all of them or none.

use crate::terminal::unwritten::Written;
use anyhow::{Context, anyhow};
use std::{
    fs,
    io::{self, Write},
    path::Path,
};

/// Writes files that are not there yet, with their folders.
///
/// # Errors
/// One is there already, or cannot be written. The others are not there either then; folders that were made stay.
pub fn write(files: &[(&Path, &str)]) -> anyhow::Result<()> {
    // Before a folder is made.
    if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        return Err(is_there(path));
    }
    let mut made = Vec::new();
    let written = files.iter().try_for_each(|(path, text)| {
        let mut file = create(path)?;
        made.push(path);
        file.write_all(text.as_bytes()).or_unwritten("the file", path)
    });
    if written.is_err() {
        for path in made {
            let _ = fs::remove_file(path);
        }
    }
    written
}

fn create(path: &Path) -> anyhow::Result<fs::File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    }
    fs::OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => is_there(path),
        _ => anyhow::Error::new(error).context(format!("{} cannot be written", path.display())),
    })
}

fn is_there(path: &Path) -> anyhow::Error {
    anyhow!("{} is there already: nothing was written", path.display())
}

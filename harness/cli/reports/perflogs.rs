//! Perflogs on disk. Two sessions may end at once: each file is locked, looked at and appended to in one write.

use crate::terminal::unwritten::Written;
use anyhow::Context;
use muster_core::result::Session;
use muster_host::files;
use muster_report::{
    Results,
    perflog::{self, Addition, Continued},
};
use muster_session::runtime;
use muster_store::{Location, Reader};
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// So many attempts are read at once from the database.
const AT_ONCE: u32 = 1000;

/// A longer first line is not a header that Muster wrote.
const HEADER_LIMIT: u64 = 16 * 1024;

/// Makes sure that there is a folder that can be written to.
pub fn prepare(folder: &Path) -> anyhow::Result<()> {
    let probe = folder.join(format!(".muster-{}", std::process::id()));
    files::create_dir_all(folder).and_then(|()| files::write(&probe, "")).and_then(|()| fs::remove_file(&probe)).with_context(
        || format!("the perflogs in {} cannot be written: choose another folder with --perflogdir", folder.display()),
    )
}

/// Appends a session's figures. One file that cannot be written leaves the others as they should be.
pub fn append(folder: &Path, results: &Results<'_>) -> Vec<anyhow::Error> {
    let additions = perflog::additions(results);
    additions.iter().filter_map(|addition| one(folder, addition).err()).collect()
}

/// Appends the figures of all attempts of a session that remembers only some of them: they are in the database.
pub fn append_stored(folder: &Path, session: &Session, database: &Location) -> Vec<anyhow::Error> {
    let appended = runtime::build().context("start the runtime").and_then(|runtime| {
        runtime.block_on(async {
            let reader = Reader::open(database).await?;
            let mut after = 0;
            loop {
                let (cases, last) = reader.results_after(&session.id, after, AT_ONCE).await?;
                let errors = append(folder, &Results::new(session, &cases));
                if cases.is_empty() || !errors.is_empty() {
                    return Ok(errors);
                }
                after = last;
            }
        })
    });
    appended.unwrap_or_else(|error: anyhow::Error| vec![error.context("the perflogs could not be written")])
}

fn one(folder: &Path, addition: &Addition) -> anyhow::Result<()> {
    let path: PathBuf = addition.file.iter().fold(folder.to_owned(), |path, part| path.join(part));
    let open = || -> io::Result<(File, String)> {
        if let Some(parent) = path.parent() {
            files::create_dir_all(parent)?;
        }
        let file = files::append(&path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        let mut first = Vec::new();
        BufReader::new((&file).take(HEADER_LIMIT)).read_until(b'\n', &mut first)?;
        Ok((file, String::from_utf8_lossy(&first).into_owned()))
    };
    let what = "the perflog";
    let (mut file, first) = open().or_unwritten(what, &path)?;
    let Some(text) = perflog::appended(addition, perflog::continued(&first))? else {
        anyhow::bail!(
            "the perflog {} has other columns: move it away, or choose another folder with --perflogdir",
            path.display()
        );
    };
    // A line that was cut off by a full disk stays a line of its own.
    let is_cut = perflog::continued(&first) != Continued::New && last_byte(&mut file).or_unwritten(what, &path)? != Some(b'\n');
    let text = if is_cut { format!("\r\n{text}") } else { text };
    file.write_all(text.as_bytes()).or_unwritten(what, &path)
}

fn last_byte(file: &mut File) -> io::Result<Option<u8>> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(None);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut byte = [0];
    file.read_exact(&mut byte)?;
    Ok(Some(byte[0]))
}

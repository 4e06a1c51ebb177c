//! A copy of a database while others write to it. Only a regular file is ever replaced; a link stays, and its target is replaced.

use super::Upkeep;
use crate::{Location, SqlError, StoreError, file::connect, sql::query};
use muster_host::{files, replace};
use std::{
    fs,
    hash::{BuildHasher, RandomState},
    path::{Path, PathBuf},
    time::Duration,
};

/// How the name of a copy ends until it is whole.
const PART: &str = ".part";
/// A copy that nothing was written to for so long is nobody's.
const ABANDONED: Duration = Duration::from_hours(1);

impl Upkeep {
    /// Copies a file as it is at this moment, while others write to it, and checks the copy. It takes the place of an earlier copy
    /// only when it is whole. Returns its size.
    ///
    /// # Errors
    /// [`StoreError::Backup`], and the file that is there stays as it is.
    pub async fn backup(&mut self, target: &Path) -> Result<u64, StoreError> {
        let failed = |why: String| StoreError::Backup { target: target.into(), why };
        if Location::from(target).as_file().is_none() {
            return Err(failed("it is a server: name a file".to_owned()));
        }
        let Location::File(source) = &self.database else {
            return Err(failed("a database on a server is copied with `pg_dump`".to_owned()));
        };
        let replaced = replace::regular(target).map_err(|error| failed(error.to_string()))?;
        if fs::canonicalize(source).is_ok_and(|source| source == replaced) {
            return Err(failed("it is the database itself".to_owned()));
        }
        if fs::metadata(&replaced).is_ok_and(|file| file.len() > 0) && !connect::is_database(&replaced).await {
            return Err(failed("a file is there that is no results database".to_owned()));
        }
        no_log_beside(&replaced).map_err(failed)?;
        remove_old_parts(&replaced);
        // Two copies to one target do not meet.
        let part = beside(&replaced, &format!(".{:016x}{PART}", RandomState::new().hash_one(0)));
        let copied = match self.copy(&part).await {
            Ok(size) => no_log_beside(&replaced).map(|()| size),
            Err(why) => Err(why),
        };
        let done = copied.and_then(|size| fs::rename(&part, &replaced).map(|()| size).map_err(|error| error.to_string()));
        let done = done.map_err(failed);
        if done.is_err() {
            // SQLite leaves its journal when the disk is full.
            for left in [beside(&part, "-journal"), part] {
                let _ = fs::remove_file(left);
            }
        }
        done
    }

    /// Writes and checks the copy. Returns its size, or why there is none.
    async fn copy(&mut self, part: &Path) -> Result<u64, String> {
        let text = part.to_str().ok_or("its path is not UTF-8")?.to_owned();
        // With our mode, not with that of SQLite.
        files::create_new(part).map_err(|error| error.to_string())?;
        let sql = |cause: sqlx::Error| SqlError::from(cause).to_string();
        query("VACUUM INTO $1").bind(text).execute(&mut self.connection).await.map_err(sql)?;
        let report = connect::integrity(part).await.map_err(sql)?;
        if report != "ok" {
            return Err(format!("the copy is damaged: {report}"));
        }
        let file = fs::File::open(part).and_then(|file| file.sync_all().and_then(|()| file.metadata()));
        file.map(|file| file.len()).map_err(|error| error.to_string())
    }
}

/// SQLite would write what is in a log into the new copy.
fn no_log_beside(target: &Path) -> Result<(), String> {
    let mut logs = ["-wal", "-journal"].into_iter().map(|suffix| beside(target, suffix));
    let log = logs.find(|log| fs::metadata(log).is_ok_and(|log| log.len() > 0));
    log.map_or(Ok(()), |log| {
        let log = log.display();
        Err(format!("{log} is there: something writes to the earlier copy, or was killed while it did; end it, and remove {log}"))
    })
}

/// What copies to this target that were killed have left.
fn remove_old_parts(target: &Path) {
    let (Some(folder), Some(name)) = (target.parent(), target.file_name()) else { return };
    let begin = format!("{}.", name.to_string_lossy());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_part = name.starts_with(&begin) && (name.ends_with(PART) || name.ends_with(&format!("{PART}-journal")));
        let modified = entry.metadata().and_then(|file| file.modified()).ok();
        if is_part && modified.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

//! A copy of a database while others write to it. Only a regular file is ever replaced; a link stays, and its target is replaced.

use super::Upkeep;
use crate::{Location, SqlError, StoreError, file::connect, sql::query};
use muster_host::{files, replace};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

impl Upkeep {
    /// Copies a file as it is at this moment, while others write to it, and checks the copy. It takes the place of an earlier copy
    /// only when it is whole. Returns its size.
    ///
    /// # Errors
    /// [`StoreError::Backup`], and the file that is there stays as it is.
    pub async fn backup(&mut self, target: &Path) -> Result<u64, StoreError> {
        let failed = |why: String| StoreError::Backup { target: target.to_owned(), why };
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
        let part = beside(&replaced, ".part");
        let copied = self.copy(&part).await;
        let done = match copied {
            Ok(size) => fs::rename(&part, &replaced).map(|()| size).map_err(|error| failed(error.to_string())),
            Err(why) => Err(failed(why)),
        };
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
        match fs::remove_file(part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.to_string()),
            _ => {}
        }
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

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

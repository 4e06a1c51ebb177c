//! The spools of a database on this machine.

use super::spool::Spool;
use crate::{Location, location, server::Options};
use muster_host::process::Machine;
#[cfg(test)]
use std::path::Path;
use std::{
    fs,
    path::{self, PathBuf},
};

/// How large the spool of a file may be, in bytes.
const LIMIT: u64 = 256 << 20;

/// Where the spools of a database are, and how they are called.
#[derive(Debug, Clone)]
pub(super) struct Spools {
    folder: PathBuf,
    host: String,
    /// Names the database: what is in a spool belongs to it.
    name: String,
    limit: u64,
}

impl Spools {
    /// `None`: no connection can be made either.
    pub(super) fn of(database: &Location) -> Option<Self> {
        let host = Machine::here().host;
        match database {
            Location::Server(server) => {
                let Options { spool, name, spool_limit, .. } = Options::of(server.url()).ok()?;
                Some(Self { folder: spool, host, name, limit: spool_limit })
            }
            Location::File(path) => {
                let path = fs::canonicalize(path).or_else(|_| path::absolute(path)).unwrap_or_else(|_| path.clone());
                let folder = location::state_folder().join("spool");
                Some(Self { folder, host, name: path.to_string_lossy().into_owned(), limit: LIMIT })
            }
        }
    }

    #[cfg(test)]
    pub(super) fn within(self, folder: &Path) -> Self {
        Self { folder: folder.to_owned(), ..self }
    }

    pub(super) fn new_one(&self) -> Spool {
        Spool::new(&self.folder, &self.host, &self.name, self.limit)
    }

    /// Those that processes of this machine have left which are gone.
    pub(super) fn abandoned(&self) -> Vec<Spool> {
        Spool::abandoned(&self.folder, &self.host, &self.name, self.limit)
    }
}

/// Returns what processes of this machine that are gone have left for a database: the files, each with its number of messages.
pub fn left_behind(database: &Location) -> Vec<(PathBuf, usize)> {
    let spools = Spools::of(database).map(|spools| spools.abandoned()).unwrap_or_default();
    let count = |spool: &Spool| spool.read().map_or(0, |contents| contents.messages.len());
    spools.iter().map(|spool| (spool.path().to_owned(), count(spool))).collect()
}

/// Whether processes of this machine that are gone may have left something for a database. Of a server only a connection tells where.
pub(in crate::write) fn may_have_left(database: &Location) -> bool {
    let is_server = database.as_file().is_none();
    is_server || Spools::of(database).is_some_and(|spools| !spools.abandoned().is_empty())
}

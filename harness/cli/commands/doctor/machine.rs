//! The questions about this machine: limits of the process, folders that are written to, the database. Levels are pure functions.

use super::rights::granted;
use crate::settings::Places;
use muster_core::{
    error::chain,
    probe::{Level, Probe, Probed},
};
use muster_host::{file_limit, replace};
use muster_store::{Location, Reader, StoreError};
use muster_text::size::Size;
use rustix::{
    fs::{Access, AtFlags, CWD, accessat, statvfs},
    process::{Resource, getrlimit},
};
use std::{
    io,
    path::{self, Path, PathBuf},
};

/// A session with fewer open files runs few cases at once.
const FEW_FILES: u64 = 1024;
/// A job script and what it starts take several.
const FEW_PROCESSES: u64 = 256;
const GIB: u64 = 1 << 30;
/// Less is used up by the logs of one night.
const LITTLE: u64 = GIB;
/// Not even the database has room to grow.
const NONE: u64 = 32 << 20;

pub fn questions(places: &Places) -> Vec<Probe<'static>> {
    let folders = [
        ("stage", places.stage.clone(), "--stage"),
        ("output", places.output.clone(), "--output"),
        ("reports", places.reports.clone(), "--prefix"),
    ];
    let of_folder = |(topic, path, flag): (&'static str, PathBuf, &'static str)| {
        let of = path.display().to_string();
        Probe::new(topic, async move { vec![folder(topic, &look(&path), flag)] }).of(of)
    };
    let limits = Probe::new("limits", async { limits(file_limit::raise(), soft(Resource::Nproc), soft(Resource::Fsize)) });
    let database = places.database.clone().absolute();
    let shown = database.display().to_string();
    let database = Probe::new("database", async move { of_database(database).await }).of(shown);
    [limits, database].into_iter().chain(folders.into_iter().map(of_folder)).collect()
}

/// `None`: no limit.
fn soft(resource: Resource) -> Option<u64> {
    getrlimit(resource).current
}

fn limits(files: u64, processes: Option<u64>, file_size: Option<u64>) -> Vec<Probed> {
    let hint = |what: &str| Some(format!("raise it in the shell or in limits.conf: `{what}`"));
    let shown = |limit: Option<u64>| limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
    let of_files = match files {
        ..FEW_FILES => Probed::warning("open files", format!("{files}: few cases run at once"), hint("ulimit -n")),
        files => Probed::fine("open files", files.to_string()),
    };
    let of_processes = match processes {
        Some(few @ ..FEW_PROCESSES) => {
            Probed::warning("processes", format!("{few}: local jobs may not start"), hint("ulimit -u"))
        }
        limit => Probed::fine("processes", shown(limit)),
    };
    let of_size = match file_size {
        Some(small @ ..GIB) => {
            Probed::warning("file size", format!("{}: larger logs and databases are cut", Size(small)), hint("ulimit -f"))
        }
        limit => Probed::fine("file size", limit.map_or_else(|| "no limit".to_owned(), |limit| Size(limit).to_string())),
    };
    vec![of_files, of_processes, of_size]
}

/// What there is of a folder.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Whether it, or what it would be made in, can be written to.
    pub(super) writable: io::Result<()>,
    /// Bytes, and files if the file system counts them.
    pub(super) free: io::Result<(u64, Option<u64>)>,
}

/// Blocks.
pub(super) fn look(path: &Path) -> Folder {
    let path = path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // It is made when it is needed.
    let there = path.ancestors().find(|folder| folder.symlink_metadata().is_ok()).unwrap_or(&path);
    let writable = match there.metadata() {
        Ok(about) if !about.is_dir() => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        Ok(_) => accessat(CWD, there, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).map_err(io::Error::from),
        Err(error) => Err(error),
    };
    let free = statvfs(there).map_err(io::Error::from);
    let free = free.map(|about| (about.f_bavail.saturating_mul(about.f_frsize), (about.f_files > 0).then_some(about.f_favail)));
    Folder { path, writable, free }
}

pub(super) fn folder(topic: &'static str, Folder { path, writable, free }: &Folder, flag: &str) -> Probed {
    let path = path.display();
    let elsewhere = || Some(format!("choose another with {flag}"));
    let room = || Some(format!("remove what is not needed there, or choose another with {flag}"));
    if let Err(error) = writable {
        return Probed::error(topic, format!("{path} cannot be written: {error}"), elsewhere());
    }
    match free {
        Err(error) => Probed::warning(topic, format!("{path}: its free space is not known: {error}"), None),
        Ok((_, Some(0))) => Probed::error(topic, format!("{path}: its file system has room for no more files"), room()),
        Ok((bytes @ ..NONE, _)) => Probed::error(topic, format!("{path}: {} free", free_text(*bytes)), room()),
        Ok((bytes @ ..LITTLE, _)) => Probed::warning(topic, format!("{path}: {} free", free_text(*bytes)), room()),
        Ok((bytes, _)) => Probed::fine(topic, format!("{path}: {} free", free_text(*bytes))),
    }
}

/// In whole units.
fn free_text(bytes: u64) -> String {
    let units = [(GIB, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(size, _)| bytes >= *size);
    unit.map_or_else(|| format!("{bytes} B"), |(size, name)| format!("{} {name}", bytes / size))
}

async fn of_database(database: Location) -> Vec<Probed> {
    let opened = Reader::open(database.clone()).await.map(drop);
    let path = match &database {
        Location::File(path) => path.clone(),
        Location::Server(server) => {
            let is_newest = opened.is_ok();
            let found = judged(Probed::fine("database", format!("{} answers", database.display())), opened, Ok(()));
            let is_wrong = found.level == Level::Error;
            return vec![if is_wrong { found } else { granted(found, is_newest, muster_store::rights(server).await) }];
        }
    };
    let real = replace::regular(&path).unwrap_or_else(|_| path.clone());
    if let Some(why) = leads_nowhere(&path, &real) {
        return vec![Probed::error("database", why, Some("choose another with --db".to_owned()))];
    }
    let of_folder = look(real.parent().unwrap_or(Path::new("/")));
    let folder = folder("database", &Folder { path: path.clone(), ..of_folder }, "--db");
    let writable = accessat(CWD, &path, Access::WRITE_OK, AtFlags::EACCESS).map_err(io::Error::from);
    vec![judged(folder, opened, writable)]
}

/// What is wrong with a link to `real`: the folder of what a link leads to is not made.
fn leads_nowhere(path: &Path, real: &Path) -> Option<String> {
    let folder = real.parent().filter(|folder| path.is_symlink() && !folder.is_dir())?;
    Some(format!("{} is a link to {}: there is no folder {}", path.display(), real.display(), folder.display()))
}

/// `place`: what is so of where it is. An error there is worse than anything about the database.
fn judged(place: Probed, opened: Result<(), StoreError>, writable: io::Result<()>) -> Probed {
    if place.level == Level::Error {
        return place;
    }
    let elsewhere = || Some("choose another with --db".to_owned());
    match (opened, writable) {
        (Err(StoreError::Missing { .. }), _) => Probed { what: format!("{}, not made yet", place.what), ..place },
        // A run brings it up to date.
        (Err(error @ StoreError::OlderSchema { .. }), Ok(())) => Probed::warning("database", chain(&error), None),
        (Ok(()) | Err(StoreError::OlderSchema { .. }), Err(error)) => {
            Probed::error("database", format!("{}, but it cannot be written: {error}", place.what), elsewhere())
        }
        (Err(error), _) => Probed::error("database", chain(&error), elsewhere()),
        (Ok(()), Ok(())) => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(probed: &Probed) -> String {
        let hint = probed.hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
        format!("{} {}: {}{hint}", probed.level, probed.topic, probed.what)
    }

    #[test]
    fn limits_are_judged_by_what_a_session_needs() {
        let said = |files, processes, size| limits(files, processes, size).iter().map(line).collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!(said(65_536, None, None), @"
        ok open files: 65536
        ok processes: no limit
        ok file size: no limit
        ");
        insta::assert_snapshot!(said(256, Some(100), Some(5 << 20)), @"
        warning open files: 256: few cases run at once (raise it in the shell or in limits.conf: `ulimit -n`)
        warning processes: 100: local jobs may not start (raise it in the shell or in limits.conf: `ulimit -u`)
        warning file size: 5 MiB: larger logs and databases are cut (raise it in the shell or in limits.conf: `ulimit -f`)
        ");
    }

    fn with(free: io::Result<(u64, Option<u64>)>) -> Folder {
        Folder { path: "/scratch/stage".into(), writable: Ok(()), free }
    }

    #[test]
    fn a_folder_is_judged_by_its_right_and_its_room() {
        let hint = "(remove what is not needed there, or choose another with --stage)";
        let rows = [
            (with(Ok((31 * GIB, Some(9)))), "ok stage: /scratch/stage: 31 GiB free".to_owned()),
            (with(Ok((31 * GIB, None))), "ok stage: /scratch/stage: 31 GiB free".to_owned()),
            (with(Ok((120 << 20, Some(9)))), format!("warning stage: /scratch/stage: 120 MiB free {hint}")),
            (with(Ok((0, Some(9)))), format!("error stage: /scratch/stage: 0 B free {hint}")),
            (
                with(Ok((31 * GIB, Some(0)))),
                format!("error stage: /scratch/stage: its file system has room for no more files {hint}"),
            ),
            (
                Folder { writable: Err(io::ErrorKind::ReadOnlyFilesystem.into()), ..with(Ok((0, None))) },
                "error stage: /scratch/stage cannot be written: read-only filesystem or storage medium (choose another with --stage)"
                    .to_owned(),
            ),
            (
                with(Err(io::ErrorKind::StaleNetworkFileHandle.into())),
                "warning stage: /scratch/stage: its free space is not known: stale network file handle".to_owned(),
            ),
        ];
        for (about, expected) in rows {
            assert_eq!(line(&folder("stage", &about, "--stage")), expected);
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_judged_by_the_one_that_it_is_made_in() {
        let there = tempfile::tempdir().expect("a folder");
        let about = look(&there.path().join("a/b"));
        assert!(about.writable.is_ok() && about.free.is_ok_and(|(bytes, _)| bytes > 0));
        std::fs::write(there.path().join("file"), "").expect("a file");
        assert!(look(&there.path().join("file/b")).writable.is_err());
    }

    #[tokio::test]
    async fn a_link_is_judged_by_the_folder_of_its_target() {
        let there = tempfile::tempdir().expect("a folder");
        let at = |name: &str| there.path().join(name);
        std::os::unix::fs::symlink("none/r.db", at("dangling")).expect("a link");
        std::os::unix::fs::symlink("r.db", at("link")).expect("a link");
        let said = async |name: &str| line(&of_database(Location::File(at(name))).await[0]);
        let dangling = said("dangling").await;
        assert!(dangling.starts_with("error database: ") && dangling.contains("there is no folder "), "{dangling}");
        assert!(!said("link").await.starts_with("error"), "its target can be made");
    }

    #[test]
    fn a_database_is_judged_by_its_folder_its_schema_and_its_right() {
        let location = || Location::File("/state/results.db".into());
        let missing = || Err(StoreError::Missing { database: location() });
        let place = |free| folder("database", &Folder { path: "/state/results.db".into(), ..with(Ok((free, None))) }, "--db");
        let said = |opened, writable| line(&judged(place(9 * GIB), opened, writable));
        let older = StoreError::OlderSchema { database: location(), found: 1, known: 5 };
        let newer = StoreError::NewerSchema { database: location(), found: 9, known: 5 };
        let rows = [said(missing(), Ok(())), said(Ok(()), Ok(())), said(Err(older), Ok(())), said(Err(newer), Ok(()))];
        insta::assert_snapshot!(rows.join("\n"));
        let closed = said(Ok(()), Err(io::ErrorKind::PermissionDenied.into()));
        insta::assert_snapshot!(closed, @"error database: /state/results.db: 9 GiB free, but it cannot be written: permission denied (choose another with --db)");
        let full = judged(place(0), missing(), Ok(()));
        assert!(line(&full).starts_with("error database: "), "{full:?}");
    }
}

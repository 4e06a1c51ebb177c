//! Finds the files of settings: the project's, in the working folder, and the user's.

use crate::{
    args::{self, FileSetting},
    inputs::{files, unanswered},
};
use anyhow::{Context, bail};
use muster_core::{job::descriptor::Schedulers, probe::EACH};
use muster_host::user_folders::Kept;
use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{self, Path, PathBuf},
};

/// Of a project, in the working folder.
const OF_PROJECT: &str = "muster.yaml";

/// The settings of all files, the stronger ones first.
pub fn read(schedulers: &Schedulers) -> anyhow::Result<Vec<FileSetting>> {
    let mut all: Vec<FileSetting> = Vec::new();
    for path in paths() {
        let file = path.clone();
        let text = match unanswered::within(EACH, move || files::read_regular(&file)) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => continue,
            // `sudo -u` and the like keep the HOME of who calls: the settings there are not those of this user. `config show` says so.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && folder_of_others(&path).is_some() => continue,
            Err(error) => return Err(error).with_context(|| format!("the settings in {} cannot be read", path.display())),
        };
        match args::file_settings(&args::definition(schedulers), &path.display().to_string(), &text, false) {
            Ok(settings) => {
                let weaker = settings.into_iter().filter(|setting| !all.iter().any(|known| known.long == setting.long));
                let weaker: Vec<FileSetting> = weaker.collect();
                all.extend(weaker);
            }
            Err(mistakes) => bail!("{mistakes}"),
        }
    }
    Ok(all)
}

/// The files that are read, and those that may not be looked for, each as `config show` prints it.
pub fn shown() -> Vec<String> {
    let line = |path: PathBuf| {
        if path.is_file() {
            return Some(path.display().to_string());
        }
        let folder = folder_of_others(&path)?;
        Some(format!("not {}: {} is closed to this user", path.display(), folder.display()))
    };
    paths().into_iter().filter_map(line).collect()
}

/// The folder of another user that keeps this one from finding a file. `None`: the file is found, or known not to be there, or the
/// closed folder is the user's own.
fn folder_of_others(path: &Path) -> Option<PathBuf> {
    let is_closed = |path: &Path| fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
    let path = path::absolute(path).ok().filter(|path| is_closed(path))?;
    let folder = path.ancestors().skip(1).find(|folder| !is_closed(folder))?;
    let owner = fs::metadata(folder).ok()?.uid();
    (owner != rustix::process::geteuid().as_raw()).then(|| folder.to_owned())
}

/// Where they are looked for.
fn paths() -> Vec<PathBuf> {
    std::iter::once(PathBuf::from(OF_PROJECT)).chain(of_user()).collect()
}

/// `$XDG_CONFIG_HOME/muster/config.yaml`, which is in `~/.config` if nobody says otherwise.
fn of_user() -> Option<PathBuf> {
    Some(Kept::Settings.folder()?.join("muster/config.yaml"))
}

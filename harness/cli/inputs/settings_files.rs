//! Which files of settings there are: the project's, in the working folder, and the user's.

use crate::{
    args::{self, FileSetting},
    inputs::files,
};
use anyhow::{Context, bail};
use muster_core::job::descriptor::Schedulers;
use std::{
    io,
    path::{Path, PathBuf},
};

/// Of a project, in the working folder.
const OF_PROJECT: &str = "muster.yaml";

/// The settings of all files, the stronger ones first.
pub fn read(schedulers: &Schedulers) -> anyhow::Result<Vec<FileSetting>> {
    let mut all: Vec<FileSetting> = Vec::new();
    for path in paths() {
        let text = match files::read(&path) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => continue,
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

/// Where they are looked for.
pub fn paths() -> Vec<PathBuf> {
    std::iter::once(PathBuf::from(OF_PROJECT)).chain(of_user()).collect()
}

/// `$XDG_CONFIG_HOME/muster/config.yaml`, which is in `~/.config` if nobody says otherwise.
fn of_user() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute()).or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("muster").join(Path::new("config.yaml")))
}

//! The questions about the files that a session would write and read beside its folders: those that flags or settings name.

use super::machine::{Folder, folder, look};
use crate::{
    args::{Cli, is_dash},
    inputs::quarantine,
    reports::files::templates,
};
use muster_core::probe::{Probe, Probed};
use std::{
    io,
    path::{self, Path, PathBuf},
};

pub fn questions(cli: &Cli) -> Vec<Probe<'static>> {
    let reports = &cli.reports;
    let written = [("report file", "--report-file", &cli.output.report_file)].into_iter().chain(reports.files());
    let written = written.filter_map(|(what, flag, path)| Some((what.trim_start_matches("the "), flag, path.clone()?)));
    let written = written.filter(|(_, _, path)| !is_dash(path));
    let written = written.map(|(topic, flag, path)| question(topic, path, move |path| written_file(topic, path, flag)));
    let perflogs = reports.perflogdir.clone();
    let perflogs = perflogs.map(|path| question("perflogs", path, |path| folder("perflogs", &look(path), "--perflogdir")));
    let own = reports.report_templates.clone().map(|path| question("report templates", path, usable_templates));
    let read = cli.rounds.quarantine.iter().filter(|path| !is_dash(path)).cloned();
    let read = read.map(|path| question("quarantine", path, quarantined));
    written.chain(perflogs).chain(own).chain(read).collect()
}

fn question(topic: &'static str, path: PathBuf, answer: impl FnOnce(&Path) -> Probed + Send + 'static) -> Probe<'static> {
    let of = path.display().to_string();
    Probe::new(topic, async move { vec![answer(&path)] }).of(of)
}

/// A file is replaced by another that is made beside it: its folder must take files.
fn written_file(topic: &'static str, path: &Path, flag: &'static str) -> Probed {
    let path = path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let about = look(path.parent().unwrap_or(Path::new("/")));
    let writable = if path.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { about.writable };
    folder(topic, &Folder { path, writable, ..about }, flag)
}

/// Templates are read as a session reads them.
fn usable_templates(folder: &Path) -> Probed {
    match templates(Some(folder)) {
        Ok(_) => Probed::fine("report templates", folder.display().to_string()),
        Err(error) => {
            let hint = "correct the templates, or leave out --report-templates".to_owned();
            Probed::error("report templates", format!("{error:#}"), Some(hint))
        }
    }
}

/// A list of cases is read as a session reads it.
fn quarantined(path: &Path) -> Probed {
    let shown = path.display().to_string();
    match quarantine::entries_of(path) {
        Ok(entries) => Probed::fine("quarantine", format!("{shown}: {} entries", entries.len())),
        Err(error) => {
            let text = format!("{error:#}");
            let mut lines = text.lines().map(|line| line.trim().trim_start_matches("error: "));
            let first = lines.next().unwrap_or_default();
            let place = lines.find_map(|line| line.strip_prefix("--> ")).map_or_else(String::new, |place| format!("{place}: "));
            Probed::error("quarantine", format!("{place}{first}"), Some("correct the file, or leave out --quarantine".to_owned()))
        }
    }
}

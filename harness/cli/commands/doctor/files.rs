//! The questions about the files that a session would write and read beside its folders: those that flags or settings name.

use super::machine::{Folder, folder, looked_at};
use crate::{
    args::{Cli, is_dash},
    inputs::quarantine,
};
use muster_core::probe::{Probe, Probed};
use std::{
    io,
    path::{self, Path, PathBuf},
};
use tokio::task::spawn_blocking;

pub fn questions(cli: &Cli) -> Vec<Probe<'static>> {
    let reports = &cli.reports;
    let written = [
        ("report file", &cli.output.report_file, "--report-file"),
        ("JUnit report", &reports.report_junit, "--report-junit"),
        ("HTML report", &reports.report_html, "--report-html"),
        ("summary", &reports.report_markdown, "--report-markdown"),
    ];
    let written = written.into_iter().filter_map(|(topic, path, flag)| Some((topic, path.clone()?, flag)));
    let written = written.filter(|(_, path, _)| !is_dash(path));
    let written =
        written.map(|(topic, path, flag)| Probe::new(topic, async move { vec![written_file(topic, &path, flag).await] }));
    let perflogs = reports
        .perflogdir
        .clone()
        .map(|path| Probe::new("perflogs", async move { vec![folder("perflogs", &looked_at(path).await, "--perflogdir")] }));
    let read = cli.rounds.quarantine.iter().filter(|path| !is_dash(path)).cloned();
    let read = read.map(|path| Probe::new("quarantine", async move { vec![quarantined(path).await] }));
    written.chain(perflogs).chain(read).collect()
}

/// A file is replaced by another that is made beside it: its folder must take files.
async fn written_file(topic: &'static str, path: &Path, flag: &'static str) -> Probed {
    let path = path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let about = looked_at(path.parent().unwrap_or(Path::new("/")).to_owned()).await;
    let there = path.clone();
    let is_folder = spawn_blocking(move || there.is_dir()).await.unwrap_or(false);
    let writable = if is_folder { Err(io::ErrorKind::IsADirectory.into()) } else { about.writable };
    folder(topic, &Folder { path, writable, ..about }, flag)
}

/// A list of cases is read as a session reads it.
async fn quarantined(path: PathBuf) -> Probed {
    let shown = path.display().to_string();
    let entries = spawn_blocking(move || quarantine::entries_of(&path).map(|entries| entries.len()));
    match entries.await.map_err(anyhow::Error::new).flatten() {
        Ok(count) => Probed::fine("quarantine", format!("{shown}: {count} entries")),
        Err(error) => {
            let text = format!("{error:#}");
            let mut lines = text.lines().map(|line| line.trim().trim_start_matches("error: "));
            let first = lines.next().unwrap_or_default();
            let place = lines.find_map(|line| line.strip_prefix("--> ")).map_or_else(String::new, |place| format!("{place}: "));
            Probed::error("quarantine", format!("{place}{first}"), Some("correct the file, or leave out --quarantine".to_owned()))
        }
    }
}

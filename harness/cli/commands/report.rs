//! What a session leaves to read: failures, figures and a summary on stdout, the run report in a file.

use crate::{
    args::{self, Cli},
    settings::Places,
    terminal::Terminal,
};
use anyhow::Context;
use muster_core::{
    pipeline,
    result::{CaseResult, Session},
};
use muster_report::{Results, failure, json, performance, progress, summary};
use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Where the run report will be.
#[derive(Debug)]
pub struct RunReport {
    path: PathBuf,
    aside: PathBuf,
    /// In the folder of reports, where the newest one has a fixed name.
    has_link: bool,
}

impl RunReport {
    /// Makes sure that it can be written: after a night of running is too late to hear that it cannot.
    pub fn prepare(cli: &Cli, places: &Places, session: &Session) -> anyhow::Result<Self> {
        let path = PathBuf::from(places.report_file(cli).to_string_lossy().replace("{sessionid}", &session.id.0));
        let aside = path.with_extension(format!("{}.part", session.id));
        let report = Self { path, aside, has_link: cli.output.report_file.is_none() };
        let flag = if report.has_link { "--prefix" } else { "--report-file" };
        report.try_out().with_context(|| {
            format!("the run report {} cannot be written: choose another place with {flag}", report.path.display())
        })?;
        Ok(report)
    }

    fn try_out(&self) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        if self.path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        fs::write(&self.aside, "")?;
        fs::remove_file(&self.aside)
    }

    /// Writes it aside and renames it: a reader never sees half of one.
    fn write(&self, text: &str) -> anyhow::Result<&Path> {
        let written = fs::write(&self.aside, text).and_then(|()| fs::rename(&self.aside, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&self.aside);
        }
        written.with_context(|| format!("the run report {} could not be written", self.path.display()))?;
        if self.has_link {
            self.link();
        }
        Ok(&self.path)
    }

    /// `latest.json`. A convenience: where there can be no link, there is none.
    fn link(&self) {
        let (Some(folder), Some(name)) = (self.path.parent(), self.path.file_name()) else { return };
        let aside = self.aside.with_extension("link");
        if symlink(name, &aside).and_then(|()| fs::rename(&aside, folder.join("latest.json"))).is_err() {
            let _ = fs::remove_file(&aside);
        }
    }
}

/// Prints and writes everything about a session that is over. The exit code is that of design 5.
pub fn report(
    cli: &Cli,
    file: &RunReport,
    session: &Session,
    cases: &[Arc<CaseResult>],
    terminal: Terminal,
) -> anyhow::Result<u8> {
    let results = Results::new(session, cases.iter().map(Arc::as_ref));
    let code = pipeline::exit_code(cases.iter().map(|case| &case.outcome), session.interrupted);
    let written = file.write(&json::report(&results, None)?);
    // With libtest's lines on stdout nothing else belongs there.
    if cli.output.format.is_none() {
        terminal.print(&text(cli, session, &results, terminal)?);
    }
    match written {
        Ok(path) if terminal.level > -1 && cli.output.format.is_none() => {
            terminal.print(&format!("Run report: {}\n", path.display()));
        }
        Ok(_) => {}
        Err(error) => terminal.error(&error),
    }
    Ok(code)
}

fn text(cli: &Cli, session: &Session, results: &Results<'_>, terminal: Terminal) -> anyhow::Result<String> {
    let screen = terminal.screen();
    let mut text = String::new();
    if terminal.level > -1 {
        text += &progress::ended(results, session.ended.unwrap_or_default(), &screen);
    }
    let failures = failure::report(results, &rerun_options(cli), &screen);
    if !failures.is_empty() {
        text += "\n";
        text += &failures;
    }
    if let Some(format) = cli.output.performance_report {
        text += "\n";
        text += &performance::report(results, table_format(format), &screen)?;
    }
    text += &summary::leftovers(results, &screen);
    if terminal.level > -2 {
        text += "\n";
        text += &summary::summary(results, session.ended.unwrap_or_default());
    }
    Ok(text)
}

/// The options that find the same sites and checks again.
fn rerun_options(cli: &Cli) -> Vec<String> {
    let pair = |flag: &str, value: &str| [flag.to_owned(), value.to_owned()];
    let config = cli.files.config_file.iter().flat_map(|path| pair("-C", &path.to_string_lossy()));
    let set = cli.files.setvar.iter().flat_map(|set| pair("-S", set));
    let parameters = cli.files.parameterize.iter().flat_map(|set| pair("-P", set));
    config.chain(set).chain(parameters).collect()
}

fn table_format(format: args::TableFormat) -> performance::Format {
    match format {
        args::TableFormat::Pretty => performance::Format::Pretty,
        args::TableFormat::Plain => performance::Format::Plain,
        args::TableFormat::Csv => performance::Format::Csv,
    }
}

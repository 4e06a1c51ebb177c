//! Every report that is a file: prepared before anything runs, so that a mistake is found at once, and written when a
//! session is over, in whatever way.

use crate::{
    args::{Cli, is_dash},
    inputs::files::sites_of_folder,
    reports::{out_file::OutFile, perflogs},
    settings::Places,
};
use anyhow::Context;
use muster_core::{
    error::chain,
    result::{CaseResult, Session},
};
use muster_report::{
    Results,
    annotations::{self, Position},
    json, junit,
    page::{HTML, MARKDOWN, Reader, Templates},
    secret::masked_words,
};
use muster_store::Location;
use std::{
    env, fs,
    io::Write,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// GitHub takes a summary of 1 MiB a step, and nothing at all of a longer one.
const STEP_SUMMARY_LIMIT: usize = 1024 * 1024;

/// The files that will be written.
#[derive(Debug)]
pub struct ReportFiles {
    json: Option<OutFile>,
    /// `latest.json` is wanted beside it.
    has_link: bool,
    junit: Option<OutFile>,
    html: Option<OutFile>,
    markdown: Option<OutFile>,
    perflogs: Option<PathBuf>,
    /// Where all attempts are stored; `None`: nowhere.
    database: Option<Location>,
    templates: Templates,
    reader: Reader,
}

impl ReportFiles {
    /// The files of a session that is about to run: the JSON run report always, the others as asked for.
    pub fn prepare(cli: &Cli, places: &Places, session: &Session) -> anyhow::Result<Self> {
        let has_link = cli.output.report_file.is_none();
        let flag = if has_link { "--prefix" } else { "--report-file" };
        let json = OutFile::prepare("the run report", &places.report_file(cli), flag, &session.id)?;
        Ok(Self { json: Some(json), has_link, ..Self::asked_for(cli, cli, session)? })
    }

    /// The files that are asked for, of a session of the past which was `called` in this way.
    pub fn asked_for(cli: &Cli, called: &Cli, session: &Session) -> anyhow::Result<Self> {
        let wanted = &cli.reports;
        let file = |(what, flag, path): (_, _, &Option<PathBuf>)| {
            path.as_deref().map(|path| OutFile::prepare(what, path, flag, &session.id)).transpose()
        };
        let [html, junit, markdown] = wanted.files().map(file);
        if let Some(folder) = &wanted.perflogdir {
            perflogs::prepare(folder)?;
        }
        Ok(Self {
            json: None,
            has_link: false,
            junit: junit?,
            html: html?,
            markdown: markdown?,
            perflogs: wanted.perflogdir.clone(),
            database: cli.rounds.rehearse.is_none().then(|| Places::of(cli).database),
            templates: templates(wanted.report_templates.as_deref())?,
            reader: Reader {
                rerun_options: masked_words(&rerun_options_anywhere(called, &session.workdir)),
                zone: jiff::tz::TimeZone::system(),
            },
        })
    }

    /// Writes all of them. A report that cannot be written does not prevent the others.
    pub fn write(&self, results: &Results<'_>) -> Vec<anyhow::Error> {
        let mut errors = Vec::new();
        let mut keep = |written: anyhow::Result<()>| errors.extend(written.err());
        if let Some(file) = &self.json {
            keep(json::report(results, None).map_err(Into::into).and_then(|text| file.write(&text)));
            if let (true, Some(path)) = (self.has_link, file.path()) {
                link(path);
            }
        }
        if let Some(file) = &self.junit {
            keep(junit::report(results, &self.reader.rerun_options).map_err(Into::into).and_then(|text| file.write(&text)));
        }
        if let Some(file) = &self.html {
            keep(self.templates.html(results, &self.reader).map_err(Into::into).and_then(|text| file.write(&text)));
        }
        if let Some(file) = &self.markdown {
            keep(self.markdown(results).and_then(|text| file.write(&text)));
        }
        if let Some(folder) = &self.perflogs {
            errors.extend(match &self.database {
                Some(database) if results.dropped().attempts > 0 => perflogs::append_stored(folder, results.session, database),
                _ => perflogs::append(folder, results),
            });
        }
        errors
    }

    /// Returns the places of the reports, a line each, without the last line's end.
    pub fn places(&self) -> String {
        let files =
            [("Run report", &self.json), ("JUnit report", &self.junit), ("HTML report", &self.html), ("Summary", &self.markdown)];
        let files = files.into_iter().filter_map(|(what, file)| file.as_ref().map(|file| (what, file.place())));
        let perflogs = self.perflogs.as_deref().map(|folder| ("Perflogs", folder.display().to_string()));
        files.chain(perflogs).map(|(what, place)| format!("{what}: {place}")).collect::<Vec<_>>().join("\n")
    }

    /// The options that find the same sites and checks again.
    pub fn rerun_options(&self) -> &[String] {
        &self.reader.rerun_options
    }

    /// The summary for the page of the job that this process is a step of.
    pub fn append_to_step_summary(&self, results: &Results<'_>) -> anyhow::Result<()> {
        let Some(path) = env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else { return Ok(()) };
        let text = self.markdown(results)?;
        if text.len() > STEP_SUMMARY_LIMIT {
            anyhow::bail!("the summary of {} KiB is too long for GitHub's page of the job", text.len() / 1024);
        }
        let append = || fs::OpenOptions::new().append(true).create(true).open(&path)?.write_all(text.as_bytes());
        append()
            .with_context(|| format!("the summary could not be appended to GITHUB_STEP_SUMMARY ({})", Path::new(&path).display()))
    }

    fn markdown(&self, results: &Results<'_>) -> anyhow::Result<String> {
        Ok(self.templates.markdown(results, &self.reader)?)
    }
}

/// GitHub's workflow commands for a session; empty elsewhere.
pub fn annotations(results: &Results<'_>) -> String {
    if env::var_os("GITHUB_ACTIONS").is_none_or(|value| value != "true") {
        return String::new();
    }
    let root = env::var_os("GITHUB_WORKSPACE").map(PathBuf::from);
    annotations::github(results, |case| position(case, &results.session.workdir, root.as_deref()))
}

/// A path from the root of the repository, in which the session ran somewhere.
fn position(case: &CaseResult, workdir: &Path, root: Option<&Path>) -> Position {
    let file = workdir.join(&case.about.file);
    let file: PathBuf = file.components().collect();
    let within = root.and_then(|root| file.strip_prefix(root).ok()).map(Path::to_owned);
    Position {
        file: within.unwrap_or_else(|| case.about.file.clone().into()).to_string_lossy().into_owned(),
        line: line_of(case),
    }
}

/// The place of the check's name, if its file is still there.
fn line_of(case: &CaseResult) -> Option<u32> {
    let text = fs::read_to_string(&case.about.file).ok()?;
    let names_it =
        |line: &str| line.strip_prefix("name:").is_some_and(|name| name.trim().trim_matches(['\'', '"']) == case.name.check);
    (1..).zip(text.lines()).find(|(_, line)| names_it(line)).map(|(number, _)| number)
}

/// `latest.json`. A convenience: where there can be no link, there is none.
fn link(report: &Path) {
    let (Some(folder), Some(name)) = (report.parent(), report.file_name()) else { return };
    let aside = report.with_extension("link");
    if symlink(name, &aside).and_then(|()| fs::rename(&aside, folder.join("latest.json"))).is_err() {
        let _ = fs::remove_file(&aside);
    }
}

/// The built-in templates, and a site's over them.
pub fn templates(folder: Option<&Path>) -> anyhow::Result<Templates> {
    let Some(folder) = folder else { return Ok(Templates::new([])?) };
    let place = || format!("the templates in {} cannot be used", folder.display());
    let files = own_templates(folder).with_context(place)?;
    if !files.iter().any(|(name, _)| name == HTML || name == MARKDOWN) {
        anyhow::bail!("{}: there is neither {HTML} nor {MARKDOWN}", place());
    }
    Templates::new(files.iter().map(|(name, text)| (name.as_str(), text.as_str()))).map_err(|error| {
        // Tera shows the line; its report begins with a message of its own.
        anyhow::anyhow!("{}:\n{}", place(), chain(&error))
    })
}

fn own_templates(folder: &Path) -> std::io::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_template = path.extension().is_some_and(|extension| extension == "html" || extension == "md");
        if let (true, Some(name)) = (is_template, path.file_name()) {
            files.push((name.to_string_lossy().into_owned(), fs::read_to_string(&path)?));
        }
    }
    files.sort();
    Ok(files)
}

/// The same for a command that is pasted in any folder. `workdir` is where these paths hold.
fn rerun_options_anywhere(cli: &Cli, workdir: &Path) -> Vec<String> {
    let mut cli = cli.clone();
    if cli.files.config_file.is_empty() {
        cli.files.config_file.extend(sites_of_folder(workdir, &cli.files.checkpath));
    }
    let files = cli.files.config_file.iter_mut().chain(&mut cli.rounds.rehearse);
    for path in files.filter(|path| !is_dash(path)) {
        *path = workdir.join(&*path);
    }
    let mut options = rerun_options(&cli);
    // Perhaps the nodes see no other folder.
    let run = &cli.run;
    let is_given = |prefix: &&PathBuf| **prefix != Path::new(".");
    for (flag, folder) in [("--prefix", Some(&run.prefix).filter(is_given)), ("--stage", run.stage.as_ref())] {
        options.extend(folder.into_iter().flat_map(|path| [flag.to_owned(), workdir.join(path).to_string_lossy().into_owned()]));
    }
    options
}

/// The options with which the same sites and checks are found, and run and judged in the same way.
pub fn rerun_options(cli: &Cli) -> Vec<String> {
    let pair = |flag: &str, value: &str| [flag.to_owned(), value.to_owned()];
    let config = cli.files.config_file.iter().flat_map(|path| pair("-C", &path.to_string_lossy()));
    let set = cli.files.setvar.iter().flat_map(|set| pair("-S", set));
    let parameters = cli.files.parameterize.iter().flat_map(|set| pair("-P", set));
    let rounds = &cli.rounds;
    let options = rounds.job_option.iter().flat_map(|option| pair("-J", &option.to_string()));
    let rehearsed = rounds.rehearse.iter().flat_map(|path| pair("--rehearse", &path.to_string_lossy()));
    config.chain(set).chain(parameters).chain(options).chain(rehearsed).chain(rounds.skipping()).collect()
}

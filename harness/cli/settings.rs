//! The settings of an invocation that are places: each with its value and where that comes from.

use crate::{
    args::{Cli, Parsed, PerformanceReport},
    inputs::selection::Site,
};
use muster_check::site::System;
use muster_core::case::SessionId;
use muster_host::{files, user_folders::Kept};
use muster_report::secret::masked_setting;
use muster_store::Location;
use muster_text::{file_mode::FileMode, time::format_duration};
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct Places {
    pub stage: PathBuf,
    pub output: PathBuf,
    pub reports: PathBuf,
    pub database: Location,
}

impl Places {
    pub fn of(cli: &Cli) -> Self {
        let run = &cli.run;
        Self {
            stage: run.stage.clone().unwrap_or_else(|| run.prefix.join("stage")),
            output: run.output.clone().unwrap_or_else(|| run.prefix.join("output")),
            reports: run.prefix.join("reports").join("out"),
            database: run.db.clone().unwrap_or_else(Location::of_user),
        }
    }

    /// The places of a rehearsal, beside what really ran.
    #[must_use]
    pub fn of_a_rehearsal(self) -> Self {
        let aside = |path: PathBuf| path.join("rehearsal");
        Self { stage: aside(self.stage), output: aside(self.output), reports: aside(self.reports), ..self }
    }

    /// The run report; `{sessionid}` stands for the session in it.
    pub fn report_file(&self, cli: &Cli) -> PathBuf {
        cli.output.report_file.clone().unwrap_or_else(|| self.reports.join("run-{sessionid}.json"))
    }
}

/// The mode of all files that are created from now on: what the invocation says, else what the site says, else the owner alone.
pub fn use_file_mode(cli: &Cli, system: Option<&System>) {
    let mode = cli.run.file_mode.or_else(|| system?.file_mode).unwrap_or_default();
    files::set_mode(mode.bits());
}

/// Returns a command of Muster on the database of this invocation, to be pasted in whatever folder.
pub fn on_this_database(cli: &Cli, command: &str) -> String {
    Places::of(cli).database.command(command)
}

/// The command that continues a session, as a person can paste it.
pub fn attach(cli: &Cli, session: &SessionId) -> String {
    on_this_database(cli, &format!("attach {session}"))
}

/// Returns a note on a database that is where nobody would look for it.
pub fn note_on_database(cli: &Cli) -> Option<String> {
    let is_lost = cli.run.db.is_none() && Kept::State.folder().is_none();
    is_lost.then(|| {
        let path = Location::of_user();
        format!("neither HOME nor an absolute XDG_STATE_HOME is set: results go to {}; choose a place with --db", path.display())
    })
}

/// One line of `muster config show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    pub value: String,
    pub source: String,
}

/// The settings with which the same cases run something else, or are judged in another way. A secret counts by its name.
pub fn that_change_what_runs(cli: &Cli) -> Vec<String> {
    let rounds = &cli.rounds;
    let set = cli.files.setvar.iter().map(|set| format!("-S {}", masked_setting(set)));
    let parameters = cli.files.parameterize.iter().map(|set| format!("-P {}", masked_setting(set)));
    let options = rounds.job_option.iter().map(|option| format!("-J {}", masked_setting(&option.to_string())));
    set.chain(parameters).chain(options).chain(rounds.skipping()).collect()
}

/// The flags in which two command lines differ, but for those that hold for a session that is taken up as well.
pub fn differing(one: &Cli, other: &Cli) -> Vec<String> {
    let values = |cli| values(cli, FileMode::default());
    let follows_prefix = |name: &str| one.run.prefix != other.run.prefix && ["stage", "output", "report-file"].contains(&name);
    let pairs = values(one).into_iter().zip(values(other));
    let is_moot = |name: &str| ["db", "recursive"].contains(&name);
    let differ = pairs.filter(|((name, one), (_, other))| one != other && !is_moot(name) && !follows_prefix(name));
    differ.map(|((name, _), _)| format!("--{name}")).collect()
}

/// Every setting that a flag or a variable can change.
pub fn of_the_command_line(parsed: &Parsed, site: &Site) -> Vec<Setting> {
    let cli = &parsed.cli;
    let (mode, mode_source) = match (cli.run.file_mode, site.file_mode()) {
        (Some(mode), _) => (mode, None),
        (None, Some((mode, place))) => (mode, Some(place)),
        (None, None) => (FileMode::default(), None),
    };
    let source = |name| mode_source.clone().filter(|_| name == "file-mode").unwrap_or_else(|| source(parsed, name));
    let settings = values(cli, mode).into_iter();
    settings.map(|(name, value)| Setting { name: name.to_owned(), value, source: source(name) }).collect()
}

fn values(cli: &Cli, mode: FileMode) -> Vec<(&'static str, String)> {
    let places = Places::of(cli);
    let list = |items: &[String]| if items.is_empty() { "-".to_owned() } else { items.join(", ") };
    let settings = |items: &[String]| list(&items.iter().map(|set| masked_setting(set).into_owned()).collect::<Vec<_>>());
    let paths = |items: &[PathBuf]| list(&items.iter().map(|path| path.display().to_string()).collect::<Vec<_>>());
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let path = |value: &Option<PathBuf>| or_dash(value.as_ref().map(|path| path.display().to_string()));
    let word = |value: &dyn std::fmt::Debug| format!("{value:?}").to_lowercase();
    vec![
        ("checkpath", paths(&cli.files.checkpath)),
        ("recursive", cli.files.recursive.to_string()),
        ("config-file", paths(&cli.files.config_file)),
        ("system", or_dash(cli.files.system.clone())),
        ("setvar", settings(&cli.files.setvar)),
        ("parameterize", settings(&cli.files.parameterize)),
        ("name", list(&cli.filter.name)),
        ("exclude", list(&cli.filter.exclude)),
        ("tag", list(&cli.filter.tag)),
        ("exclude-tag", list(&cli.filter.exclude_tag)),
        ("filter-expr", list(&cli.filter.filter_expr)),
        ("prgenv", list(&cli.filter.prgenv)),
        ("exec-policy", word(&cli.run.exec_policy)),
        ("maxfail", or_dash(cli.run.maxfail.map(|count| count.to_string()))),
        ("max-retries", cli.rounds.max_retries.to_string()),
        ("retries-threshold", cli.rounds.retries_threshold.to_string()),
        ("reruns", cli.rounds.reruns.to_string()),
        ("duration", or_dash(cli.rounds.duration.map(format_duration))),
        ("max-cost", or_dash(cli.rounds.max_cost.map(|amount| amount.to_string()))),
        ("max-cost-unknown", cli.rounds.max_cost_unknown.clone()),
        ("repeat", or_dash(cli.rounds.repeat.map(|count| count.to_string()))),
        ("distribute", or_dash(cli.rounds.distribute.clone())),
        ("exec-order", or_dash(cli.rounds.exec_order.map(|order| word(&order)))),
        ("shard", or_dash(cli.rounds.shard.map(|shard| shard.to_string()))),
        ("mode", or_dash(cli.rounds.mode.clone())),
        ("restore-session", or_dash(cli.rounds.restore_session.clone())),
        ("resume", cli.rounds.resume.to_string()),
        ("failed", cli.rounds.failed.to_string()),
        ("quarantine", paths(&cli.rounds.quarantine)),
        ("rehearse", or_dash(cli.rounds.rehearse.as_ref().map(|path| path.display().to_string()))),
        ("fail-on-skip", cli.rounds.fail_on_skip.to_string()),
        ("skip-sanity-check", cli.rounds.skip_sanity_check.to_string()),
        ("skip-performance-check", cli.rounds.skip_performance_check.to_string()),
        ("keep-stage-files", cli.rounds.keep_stage_files.to_string()),
        (
            "job-option",
            list(
                &cli.rounds.job_option.iter().map(|option| masked_setting(&option.to_string()).into_owned()).collect::<Vec<_>>(),
            ),
        ),
        (
            "session-extras",
            list(
                &cli.rounds
                    .session_extras
                    .iter()
                    .map(|(key, value)| masked_setting(&format!("{key}={value}")).into_owned())
                    .collect::<Vec<_>>(),
            ),
        ),
        ("prefix", cli.run.prefix.display().to_string()),
        ("stage", places.stage.display().to_string()),
        ("output", places.output.display().to_string()),
        ("db", places.database.display().to_string()),
        ("file-mode", mode.to_string()),
        ("report-file", places.report_file(cli).display().to_string()),
        ("report-html", path(&cli.reports.report_html)),
        ("report-junit", path(&cli.reports.report_junit)),
        ("report-markdown", path(&cli.reports.report_markdown)),
        ("report-templates", path(&cli.reports.report_templates)),
        ("perflogdir", path(&cli.reports.perflogdir)),
        ("failure-stats", cli.reports.failure_stats.to_string()),
        (
            "performance-report",
            or_dash(cli.output.performance_report.as_ref().map(|report| match report {
                PerformanceReport::Table(format) => word(format),
                PerformanceReport::Compared(with) => with.rhs.to_string(),
            })),
        ),
        ("table-format", or_dash(cli.output.table_format.map(|format| word(&format)))),
        ("term-lhs", cli.output.term_lhs.clone()),
        ("term-rhs", cli.output.term_rhs.clone()),
        ("format", or_dash(cli.output.format.map(|format| word(&format)))),
        ("verbose", cli.output.verbose.to_string()),
        ("quiet", cli.output.quiet.to_string()),
        ("nocolor", cli.output.nocolor.to_string()),
    ]
}

fn source(parsed: &Parsed, name: &str) -> String {
    match parsed.origins.get(name) {
        Some(origin) => origin.to_string(),
        None => match name {
            // These follow another setting.
            "stage" | "output" | "report-file" if parsed.origins.contains_key("prefix") => {
                format!("{} (prefix)", source(parsed, "prefix"))
            }
            "db" if Kept::State.named().is_some() => "environment XDG_STATE_HOME".to_owned(),
            _ => "default".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{self, Beneath};
    use muster_core::job::descriptor::Schedulers;
    use std::collections::BTreeSet;

    /// Values of which each flag takes one.
    const SAMPLES: [&str; 9] = ["true", "1", "x", "1h", "a=1", "{ a: b }", "'0640'", "1/2", "plain"];

    fn names(cli: &Cli) -> BTreeSet<&'static str> {
        values(cli, FileMode::default()).into_iter().map(|(name, _)| name).collect()
    }

    /// A setting in a file, as it is parsed.
    fn of_file(text: &str) -> Result<Parsed, String> {
        let schedulers = Schedulers::default();
        let files = args::file_settings(&args::definition(&schedulers), "muster.yaml", text, false)?;
        let argv = ["muster".into(), "-r".into()];
        args::parse(&argv, &schedulers, Beneath { env: &|_| None, files: &files }).map_err(|error| error.to_string())
    }

    #[test]
    fn every_long_flag_that_is_no_action_is_a_key_of_files_and_a_row_with_its_source() {
        let command = args::definition(&Schedulers::default());
        let is_action = |long: &str| of_file(&format!("{long}: x")).is_err_and(|why| why.contains("is an action"));
        let longs: BTreeSet<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
        let keys: BTreeSet<&str> =
            longs.into_iter().filter(|long| !["help", "version"].contains(long) && !is_action(long)).collect();
        for key in &keys {
            let arg = command.get_arguments().find(|arg| arg.get_long() == Some(key)).expect("an argument");
            let possible = arg.get_possible_values().first().map(|value| value.get_name().to_owned());
            let samples = possible.into_iter().chain(SAMPLES.map(str::to_owned));
            let failed = format!("no sample is a value of `{key}`");
            let parsed = samples.map(|sample| of_file(&format!("{key}: {sample}"))).find_map(Result::ok).expect(&failed);
            assert_eq!(source(&parsed, key), "muster.yaml:1:1", "{key}");
            assert_eq!(names(&parsed.cli), keys, "the rows of `config show`");
        }
    }
}

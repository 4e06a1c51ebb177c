//! The command line: ReFrame's letters and meanings, kubectl's habits for the rest.
//!
//! Every long flag is also an environment variable: `--exec-policy` is `MUSTER_EXEC_POLICY`; lists are split at commas.

use clap::{Arg, ArgAction, ArgGroup, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, parser::ValueSource};
use std::{collections::BTreeMap, ffi::OsString, path::PathBuf};

/// Proves that a cluster is healthy and as fast as it should be.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "muster",
    version,
    arg_required_else_help = true,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = false,
    after_help = "Exit codes: 0 all is well; 1 a check judged badly; 2 bad usage, bad files or nothing selected; \
                  3 a case was not let run; 130 interrupted.\nEvery long flag is also an environment variable, MUSTER_ and its name in capitals."
)]
pub struct Cli {
    /// What to do; without a command, one of the actions below.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The action.
    #[command(flatten)]
    pub action: Action,
    /// Where checks and sites are.
    #[command(flatten)]
    pub files: Files,
    /// Which cases.
    #[command(flatten)]
    pub filter: Filter,
    /// How to run them.
    #[command(flatten)]
    pub run: Run,
    /// What to print.
    #[command(flatten)]
    pub output: Output,
}

/// Commands beside the actions.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Show the settings in force and where each comes from
    Config {
        /// What of them.
        #[command(subcommand)]
        what: ConfigCommand,
    },
    /// Look at stored sessions
    Results {
        /// What of them.
        #[command(subcommand)]
        what: ResultsCommand,
    },
    /// End and remove what dead sessions left behind
    Sweep {
        /// Only say what would be removed
        #[arg(long)]
        dry_run: bool,
    },
    /// Measure this machine with a built-in kernel, as the shipped checks do
    Kernel {
        /// Which.
        #[command(subcommand)]
        kernel: muster_kernels::Kernel,
    },
}

/// `muster config ...`
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum ConfigCommand {
    /// Print every setting with its value and its source
    Show,
}

/// `muster results ...`
#[derive(Debug, Clone, Subcommand)]
pub enum ResultsCommand {
    /// List the stored sessions, the newest first
    List {
        /// How many
        #[arg(short = 'N', long, value_name = "COUNT", default_value_t = 20)]
        limit: u32,
    },
    /// Show one session: its cases, figures and failures
    Show {
        /// The session, or an unambiguous beginning of it; `latest` for the newest
        #[arg(default_value = "latest")]
        session: String,
        /// Print the JSON run report instead
        #[arg(long)]
        json: bool,
    },
}

/// The actions: exactly one.
#[derive(Debug, Clone, Args)]
#[allow(clippy::struct_excessive_bools, reason = "flags of a command line are booleans")]
#[command(group = ArgGroup::new("action").args(["run", "list", "list_detailed", "describe", "list_tags", "dry_run"]).multiple(false))]
pub struct Action {
    /// Run the selected cases
    #[arg(short, long, help_heading = "Actions")]
    pub run: bool,
    /// List the selected tests (T) or cases (C)
    #[arg(short, long, value_enum, value_name = "T|C", num_args = 0..=1, require_equals = true, default_missing_value = "T", help_heading = "Actions")]
    pub list: Option<Listing>,
    /// The same, with descriptions, tags, places and parameters
    #[arg(short = 'L', long, value_enum, value_name = "T|C", num_args = 0..=1, require_equals = true, default_missing_value = "T", help_heading = "Actions")]
    pub list_detailed: Option<Listing>,
    /// Describe the selected cases as JSON
    #[arg(long, help_heading = "Actions")]
    pub describe: bool,
    /// List the tags of the selected cases
    #[arg(long, help_heading = "Actions")]
    pub list_tags: bool,
    /// Print what would be launched, and launch nothing
    #[arg(long, help_heading = "Actions")]
    pub dry_run: bool,
}

impl Action {
    /// Whether it only looks.
    pub fn any_listing(&self) -> bool {
        self.list.is_some() || self.list_detailed.is_some() || self.describe || self.list_tags
    }
}

/// Tests or cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "verbatim")]
pub enum Listing {
    /// One line a test (a check with its parameters).
    T,
    /// One line a case (a test on a partition and environment).
    C,
}

/// Files.
#[derive(Debug, Clone, Args)]
pub struct Files {
    /// A check file, or a folder that is searched for check.yaml and *.check.yaml [repeatable]
    #[arg(short = 'c', long, value_name = "PATH", help_heading = "Files")]
    pub checkpath: Vec<PathBuf>,
    /// Search folders recursively (they always are; accepted for ReFrame's sake)
    #[arg(short = 'R', long, help_heading = "Files")]
    pub recursive: bool,
    /// A site file, or a folder of them [repeatable; default: site-config/ beside the checks, then the built-in `local`]
    #[arg(short = 'C', long, value_name = "PATH", help_heading = "Files", global = true)]
    pub config_file: Vec<PathBuf>,
    /// Use this system, and only this partition of it if named
    #[arg(long, value_name = "SYS[:PART]", help_heading = "Files", global = true)]
    pub system: Option<String>,
    /// Set a variable or a key of a check, in all checks or in one [repeatable]
    #[arg(short = 'S', long, value_name = "[CHECK.]VAR=VALUE", help_heading = "Files")]
    pub setvar: Vec<String>,
    /// Turn a variable into a parameter with these values [repeatable]
    #[arg(short = 'P', long, value_name = "[CHECK.]VAR=V0,V1", help_heading = "Files")]
    pub parameterize: Vec<String>,
}

/// Filters.
#[derive(Debug, Clone, Args)]
pub struct Filter {
    /// Only cases whose name matches this regex, or with this /HASH; `!` before it negates [repeatable, any]
    #[arg(short, long, value_name = "REGEX", help_heading = "Filters")]
    pub name: Vec<String>,
    /// Not the cases whose name matches this regex [repeatable]
    #[arg(short = 'x', long, value_name = "REGEX", help_heading = "Filters")]
    pub exclude: Vec<String>,
    /// Only cases with a tag that matches this regex; `!` before it negates [repeatable, all]
    #[arg(short, long, value_name = "REGEX", help_heading = "Filters")]
    pub tag: Vec<String>,
    /// Not the cases with a tag that matches this regex [repeatable]
    #[arg(short = 'T', long, value_name = "REGEX", help_heading = "Filters")]
    pub exclude_tag: Vec<String>,
    /// Only cases for which this CEL expression is true, over name, check, hash, tags, maintainers, system, partition, environ, scheduler and the parameters [repeatable, all]
    #[arg(short = 'E', long, value_name = "CEL", help_heading = "Filters")]
    pub filter_expr: Vec<String>,
    /// Only environments whose name matches this regex; `!` before it negates [repeatable, any]
    #[arg(short, long, value_name = "REGEX", help_heading = "Filters")]
    pub prgenv: Vec<String>,
}

/// Running.
#[derive(Debug, Clone, Args)]
pub struct Run {
    /// Stop launching after this many failures
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Running")]
    pub maxfail: Option<u32>,
    /// One case at a time, or as many as the partitions allow
    #[arg(long, value_enum, default_value_t = ExecPolicy::Async, help_heading = "Running")]
    pub exec_policy: ExecPolicy,
    /// The folder of stage/, output/ and reports/out/
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = "Running", global = true)]
    pub prefix: PathBuf,
    /// The folder for running cases [default: PREFIX/stage]
    #[arg(short = 's', long, value_name = "DIR", help_heading = "Running", global = true)]
    pub stage: Option<PathBuf>,
    /// The folder for what passing cases leave [default: PREFIX/output]
    #[arg(short, long, value_name = "DIR", help_heading = "Running", global = true)]
    pub output: Option<PathBuf>,
    /// The results database [default: `$XDG_STATE_HOME/muster/results.db`]
    #[arg(long, value_name = "FILE", help_heading = "Running", global = true)]
    pub db: Option<PathBuf>,
}

/// How many cases at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExecPolicy {
    /// One at a time.
    Serial,
    /// As many as the partitions' `max_jobs` allow.
    Async,
}

/// Output.
#[derive(Debug, Clone, Args)]
pub struct Output {
    /// Print a table of all figures at the end
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "pretty", help_heading = "Output")]
    pub performance_report: Option<TableFormat>,
    /// Write the JSON run report here; `{sessionid}` stands for the session [default: PREFIX/reports/out/run-{sessionid}.json]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report_file: Option<PathBuf>,
    /// Say more: waiting and launching, then log lines [repeatable]
    #[arg(short, long, action = ArgAction::Count, help_heading = "Output", global = true)]
    pub verbose: u8,
    /// Say less: no progress lines, then no summary [repeatable]
    #[arg(short, long, action = ArgAction::Count, help_heading = "Output", global = true)]
    pub quiet: u8,
    /// No colours and no live lines
    #[arg(long, help_heading = "Output", global = true)]
    pub nocolor: bool,
    /// Progress in libtest's format, for tools that read it
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    pub format: Option<TestFormat>,
}

/// The layout of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// With lines.
    Pretty,
    /// With blanks.
    Plain,
    /// RFC 4180.
    Csv,
}

/// libtest's formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    /// One line a test.
    Pretty,
    /// One character a test.
    Terse,
    /// JSON lines.
    Json,
}

/// Where a setting's value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Typed.
    Flag(String),
    /// From the environment.
    Environment(String),
    /// Nobody said anything.
    Default,
}

/// The settings as parsed, and where each comes from, by long flag.
pub struct Parsed {
    /// The settings.
    pub cli: Cli,
    /// Sources by long flag.
    pub origins: BTreeMap<String, Origin>,
}

/// Parses the command line, with the environment beneath it.
///
/// # Errors
/// Clap's own, with its exit code and text.
pub fn parse(argv: Vec<OsString>, env: &dyn Fn(&str) -> Option<String>) -> Result<Parsed, clap::Error> {
    let command = Cli::command();
    let typed = command.clone().ignore_errors(true).try_get_matches_from(&argv).ok();
    let typed_sources = |arg: &Arg| {
        // A global flag may stand before or after the subcommand.
        let mut levels = std::iter::successors(typed.as_ref(), |matches| matches.subcommand().map(|(_, inner)| inner));
        levels.any(|matches| {
            matches!(matches.try_contains_id(arg.get_id().as_str()), Ok(true))
                && matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
        })
    };
    let groups: Vec<_> = command
        .get_groups()
        .filter(|group| group.get_id() == "action")
        .flat_map(|group| group.get_args().cloned().collect::<Vec<_>>())
        .collect();
    let action_typed = command.get_arguments().any(|arg| groups.contains(arg.get_id()) && typed_sources(arg))
        || typed.as_ref().is_some_and(|matches| matches.subcommand_name().is_some());
    let (mut extra, mut origins) = (Vec::new(), BTreeMap::new());
    for arg in command.get_arguments() {
        let Some(long) = arg.get_long().filter(|long| !matches!(*long, "help" | "version")) else { continue };
        if typed_sources(arg) {
            origins.insert(long.to_owned(), Origin::Flag(format!("--{long}")));
            continue;
        }
        let name = variable(long);
        let Some(value) = env(&name) else { continue };
        if groups.contains(arg.get_id()) && action_typed {
            continue;
        }
        let words = from_environment(arg, long, &name, &value)
            .map_err(|message| command.clone().error(clap::error::ErrorKind::InvalidValue, message))?;
        if !words.is_empty() {
            origins.insert(long.to_owned(), Origin::Environment(name));
            extra.extend(words);
        }
    }
    let mut argv = argv;
    let program = argv.drain(..1.min(argv.len())).next().unwrap_or_else(|| "muster".into());
    let all = std::iter::once(program).chain(extra).chain(argv);
    let cli = Cli::from_arg_matches(&command.try_get_matches_from(all)?)?;
    Ok(Parsed { cli, origins })
}

/// `exec-policy` is `MUSTER_EXEC_POLICY`.
pub fn variable(long: &str) -> String {
    format!("MUSTER_{}", long.to_uppercase().replace('-', "_"))
}

/// What one variable would be on the command line.
fn from_environment(arg: &Arg, long: &str, name: &str, value: &str) -> Result<Vec<OsString>, String> {
    let flag = || OsString::from(format!("--{long}"));
    match arg.get_action() {
        ArgAction::SetTrue => match value {
            "" | "0" | "false" | "no" => Ok(vec![]),
            "1" | "true" | "yes" => Ok(vec![flag()]),
            _ => Err(format!("{name}={value} is neither 1 nor 0")),
        },
        ArgAction::Count => {
            let count: usize = value.parse().map_err(|_| format!("{name}={value} is not a number"))?;
            Ok(vec![flag(); count.min(5)])
        }
        ArgAction::Append => {
            Ok(value.split(',').filter(|item| !item.is_empty()).map(|item| format!("--{long}={item}").into()).collect())
        }
        _ if value.is_empty() => Ok(vec![]),
        _ => Ok(vec![format!("--{long}={value}").into()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(argv: &[&str], env: &[(&str, &str)]) -> Result<Parsed, String> {
        let argv = std::iter::once("muster").chain(argv.iter().copied()).map(OsString::from).collect();
        let env: BTreeMap<_, _> = env.iter().copied().collect();
        parse(argv, &|name| env.get(name).map(|value| (*value).to_owned())).map_err(|error| error.to_string())
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_flag_outranks_the_environment() {
        let run =
            parsed(&["-r", "--maxfail", "2"], &[("MUSTER_MAXFAIL", "5"), ("MUSTER_EXEC_POLICY", "serial")]).expect("parses");
        assert_eq!((run.cli.run.maxfail, run.cli.run.exec_policy), (Some(2), ExecPolicy::Serial));
        assert_eq!(run.origins["maxfail"], Origin::Flag("--maxfail".into()));
        assert_eq!(run.origins["exec-policy"], Origin::Environment("MUSTER_EXEC_POLICY".into()));
    }

    #[test]
    fn lists_in_the_environment_are_split_at_commas() {
        let list =
            parsed(&["-l"], &[("MUSTER_TAG", "gpu,slow"), ("MUSTER_VERBOSE", "2"), ("MUSTER_NOCOLOR", "1")]).expect("parses");
        assert_eq!(
            (list.cli.filter.tag, list.cli.output.verbose, list.cli.output.nocolor),
            (vec!["gpu".into(), "slow".into()], 2, true)
        );
    }

    #[test]
    fn an_action_on_the_command_line_replaces_one_from_the_environment() {
        let list = parsed(&["-l"], &[("MUSTER_RUN", "1")]).expect("parses");
        assert_eq!((list.cli.action.run, list.cli.action.list), (false, Some(Listing::T)));
        assert!(parsed(&[], &[("MUSTER_RUN", "1")]).expect("parses").cli.action.run);
    }

    #[test]
    fn two_actions_are_refused() {
        assert!(parsed(&["-r", "-l"], &[]).is_err());
    }

    #[test]
    fn reframes_letters_mean_what_they_mean_there() {
        let run = parsed(
            &[
                "-C", "site", "-c", "checks", "-R", "-n", "a", "-n", "!b", "-x", "c", "-t", "d", "-T", "e", "-E", "true", "-p",
                "f", "-S", "x=1", "-P", "y=1,2", "-s", "st", "-o", "out", "-vv", "-q", "-r",
            ],
            &[],
        )
        .expect("parses");
        assert_eq!(run.cli.filter.name, ["a", "!b"]);
        assert_eq!((run.cli.run.stage, run.cli.run.output), (Some("st".into()), Some("out".into())));
    }

    #[test]
    fn global_flags_stand_on_either_side_of_a_command() {
        for argv in [["--db", "x.db", "sweep"], ["sweep", "--db", "x.db"]] {
            assert_eq!(parsed(&argv, &[("MUSTER_DB", "env.db")]).expect("parses").cli.run.db, Some("x.db".into()), "{argv:?}");
        }
    }
}

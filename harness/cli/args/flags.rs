//! The flags of a run: what to do, with which files and cases, how, and what to print.

use super::{PerformanceReport, Stored};
use clap::{
    ArgAction, ArgGroup, Args, ValueEnum,
    builder::{OsStringValueParser, TypedValueParser},
};
use muster_core::job::descriptor::Schedulers;
use muster_store::Location;
use muster_text::file_mode::FileMode;
use std::path::PathBuf;

/// The actions that `--dry-run` does not go together with.
const NOT_DRY: [&str; 10] = [
    "run",
    "list",
    "list_detailed",
    "describe",
    "list_tags",
    "ci_generate",
    "performance_compare",
    "list_stored_sessions",
    "list_stored_testcases",
    "describe_stored_sessions",
];

/// The actions: exactly one.
#[derive(Debug, Clone, Args)]
#[allow(clippy::struct_excessive_bools, reason = "flags of a command line are booleans")]
#[command(group = ArgGroup::new("action").args([
    "run", "list", "list_detailed", "describe", "list_tags", "ci_generate", "performance_compare", "list_stored_sessions",
    "list_stored_testcases", "describe_stored_sessions", "delete_stored_sessions",
]).multiple(false))]
pub struct Action {
    /// Run the selected cases
    #[arg(short, long, help_heading = "Actions")]
    pub run: bool,
    /// List the selected tests (T) or cases (C)
    #[arg(short, long, value_enum, value_name = "T|C", num_args = 0..=1, default_missing_value = "T", hide_possible_values = true, help_heading = "Actions")]
    pub list: Option<Listing>,
    /// The same, with descriptions, tags and places
    ///
    /// Parameters, the scheduler and the file are shown, too.
    #[arg(short = 'L', long, value_enum, value_name = "T|C", num_args = 0..=1, default_missing_value = "T", hide_possible_values = true, help_heading = "Actions")]
    pub list_detailed: Option<Listing>,
    /// Describe the selected cases as JSON
    #[arg(long, help_heading = "Actions")]
    pub describe: bool,
    /// List the tags of the selected cases
    #[arg(long, help_heading = "Actions")]
    pub list_tags: bool,
    /// Print what would be launched
    ///
    /// Nothing is launched. With `server` the server validates it. With --delete-stored-sessions: what would be deleted.
    #[arg(
        long,
        value_enum,
        value_name = "client|server",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "client",
        hide_possible_values = true,
        conflicts_with_all = NOT_DRY,
        help_heading = "Actions"
    )]
    pub dry_run: Option<DryRun>,
    /// Write a child pipeline for GitLab with a job for each case, and launch nothing; `-` is standard output
    #[arg(long, value_name = "FILE", help_heading = "Actions")]
    pub ci_generate: Option<PathBuf>,
    /// With --ci-generate: N jobs, each with its share of the cases
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=500), requires = "ci_generate", help_heading = "Actions")]
    pub ci_shards: Option<u32>,
    #[command(flatten)]
    pub stored: Stored,
}

/// Who checks what would be launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// Only Muster itself
    #[value(alias("1"), alias("true"), alias("yes"))]
    Client,
    /// The server of each scheduler that has one, which creates nothing
    Server,
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

#[derive(Debug, Clone, Args)]
pub struct Files {
    /// What partitions may name; not an argument.
    #[arg(skip)]
    pub schedulers: Schedulers,
    /// A check file, or a folder with checks [repeatable]
    ///
    /// A folder is searched for check.yaml and *.check.yaml.
    #[arg(short = 'c', long, value_name = "PATH", help_heading = "Files", global = true)]
    pub checkpath: Vec<PathBuf>,
    /// Search folders recursively (they always are; accepted for ReFrame's sake)
    #[arg(short = 'R', long, help_heading = "Files")]
    pub recursive: bool,
    /// A site file, or a folder [repeatable]
    ///
    /// By default those of the folder site-config/ beside the checks, then the built-in system `local`.
    #[arg(short = 'C', long, value_name = "PATH", help_heading = "Files", global = true)]
    pub config_file: Vec<PathBuf>,
    /// Use this system, and only this partition
    #[arg(long, value_name = "SYS[:PART]", help_heading = "Files", global = true)]
    pub system: Option<String>,
    /// Whether --system was typed. Only then it selects in stored results; a variable, a mode or a file does not.
    #[arg(skip)]
    pub is_system_typed: bool,
    /// Set a variable or a key [repeatable]
    ///
    /// In all checks that have it, or with CHECK.VAR=VALUE in one. Of a parameter it chooses a value.
    #[arg(short = 'S', long, value_name = "VAR=VALUE", help_heading = "Files")]
    pub setvar: Vec<String>,
    /// Turn a variable into a parameter with these values [repeatable]
    ///
    /// In all checks that have it, or with CHECK.VAR=V0,V1 in one.
    #[arg(short = 'P', long, value_name = "VAR=V0,V1", help_heading = "Files")]
    pub parameterize: Vec<String>,
}

impl Files {
    /// The system that --system chooses in stored results.
    pub fn typed_system(&self) -> Option<&str> {
        self.system.as_deref().filter(|_| self.is_system_typed)
    }

    /// Without any flag.
    pub fn of(schedulers: &Schedulers) -> Self {
        Self {
            schedulers: schedulers.clone(),
            checkpath: Vec::new(),
            recursive: false,
            config_file: Vec::new(),
            system: None,
            is_system_typed: false,
            setvar: Vec::new(),
            parameterize: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Args)]
#[allow(clippy::struct_field_names, reason = "`filter_expr` is the name of the flag")]
pub struct Filter {
    /// Only cases with this name, or /HASH [repeatable]
    ///
    /// A regex that matches a part of the name; `!` before it negates. Of several, one must match.
    #[arg(short, long, value_name = "REGEX", help_heading = "Filters")]
    pub name: Vec<String>,
    /// Not the cases with this name [repeatable]
    #[arg(short = 'x', long, value_name = "REGEX", help_heading = "Filters")]
    pub exclude: Vec<String>,
    /// Only cases with this tag [repeatable]
    ///
    /// A regex that matches a part of a tag; `!` before it negates. Of several, all must match.
    #[arg(short, long, value_name = "REGEX", help_heading = "Filters")]
    pub tag: Vec<String>,
    /// Not the cases with a tag that matches this regex [repeatable]
    #[arg(short = 'T', long, value_name = "REGEX", help_heading = "Filters")]
    pub exclude_tag: Vec<String>,
    /// Only cases for which this is true [repeatable]
    ///
    /// A CEL expression over name, check, hash, tags, maintainers, system, partition, environ, scheduler and the parameters. Of several,
    /// all must hold.
    #[arg(short = 'E', long, value_name = "CEL", help_heading = "Filters")]
    pub filter_expr: Vec<String>,
    /// Only environments whose name matches this regex; `!` before it negates [repeatable: one must match]
    #[arg(short, long, value_name = "REGEX", help_heading = "Filters")]
    pub prgenv: Vec<String>,
}

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
    /// The results database: a file, or `postgres://USER@HOST/NAME` [default: `$XDG_STATE_HOME/muster/results.db`]
    ///
    /// A password does not belong on a command line, which other users can read: put it into `~/.pgpass`, or the URL into `MUSTER_DB`.
    #[arg(
        long,
        value_name = "FILE|URL",
        value_parser = OsStringValueParser::new().map(Location::from),
        help_heading = "Running",
        global = true
    )]
    pub db: Option<Location>,
    /// The mode of the files that Muster creates, 0640 for a group; folders get x where files get r [default: the site's, or 0600]
    #[arg(long, value_name = "MODE", help_heading = "Running", global = true)]
    pub file_mode: Option<FileMode>,
}

/// How many cases at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExecPolicy {
    /// One at a time.
    Serial,
    /// As many as the partitions' `max_jobs` allow.
    Async,
}

#[derive(Debug, Clone, Args)]
pub struct Output {
    /// Print all figures at the end
    ///
    /// As a table with lines (pretty, the default), with blanks (plain), or as csv. SELECTION/AGGREGATION/COLUMNS compares with stored
    /// sessions, as in now-1d:now/last:+job_nodelist/+result.
    #[arg(
        long,
        value_name = "FORMAT|SPEC",
        num_args = 0..=1,
        default_missing_value = "pretty",
        value_parser = PerformanceReport::parse,
        help_heading = "Output"
    )]
    pub performance_report: Option<PerformanceReport>,
    /// The layout of tables of stored figures
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    pub table_format: Option<TableFormat>,
    /// What the new side of a comparison is called
    #[arg(long, value_name = "NAME", default_value = "lhs", help_heading = "Output")]
    pub term_lhs: String,
    /// What the old side of a comparison is called
    #[arg(long, value_name = "NAME", default_value = "rhs", help_heading = "Output")]
    pub term_rhs: String,
    /// Write the JSON run report here; `{sessionid}` stands for the session, `-` is standard output [default: PREFIX/reports/out/run-{sessionid}.json]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report_file: Option<PathBuf>,
    /// Print more [repeatable]
    ///
    /// Waiting and launching, then log lines.
    #[arg(short, long, action = ArgAction::Count, help_heading = "Output", global = true)]
    pub verbose: u8,
    /// Print less: no progress lines, then no summary [repeatable]
    #[arg(short, long, action = ArgAction::Count, help_heading = "Output", global = true)]
    pub quiet: u8,
    /// No colours and no live lines
    #[arg(long, help_heading = "Output", global = true)]
    pub nocolor: bool,
    /// The arguments of a tool that treats this program as a test binary of cargo. Not a flag: see `commands::session::libtest`.
    #[arg(skip)]
    pub libtest: Option<libtest_mimic::Arguments>,
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

//! The command line: ReFrame's letters and meanings, kubectl's habits for the rest.
//!
//! Every long flag is also an environment variable: `--exec-policy` is `MUSTER_EXEC_POLICY`; lists are split at commas.

mod author;
mod dash;
mod file;
mod foreign;
mod night;
mod parse;
mod reports;
mod results;
mod rounds;

pub use author::{CheckCommand, ConvertArgs, FmtArgs, InitArgs, LintArgs, LintFormat, NewArgs};
pub use dash::{is_dash, takes_stdout};
pub use file::{FileSetting, settings as file_settings};
pub use night::{FailOn, NightArgs, NightCommand, NightFormat};
pub use parse::{
    Beneath, Mode, Origin, Parsed, definition, doubtful_settings, listed, parse, parse_in_mode, unknown_variables, variable,
    variable_that_is_no_text,
};
pub use reports::Reports;
pub use results::{
    AnnotateArgs, AnnotationKind, CausesArgs, CompareArgs, CompareFailOn, DemoArgs, ExportArgs, ExportFormat, FilterArgs,
    HistoryArgs, ImportArgs, ListArgs, OutputFormat, PerformanceReport, PruneArgs, ResultsCommand, Sample, Stored, SuggestArgs,
};
pub use rounds::Rounds;

use clap::{
    ArgAction, ArgGroup, Args, Parser, Subcommand, ValueEnum,
    builder::{OsStringValueParser, TypedValueParser},
};
use muster_core::job::descriptor::Schedulers;
use muster_store::Location;
use muster_text::file_mode::FileMode;
use std::path::PathBuf;

/// Proves that a cluster is healthy and as fast as it should be.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "muster",
    version,
    arg_required_else_help = true,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = false,
    disable_help_flag = true,
    disable_version_flag = true,
    max_term_width = 80,
    after_help = "All flags, examples and exit codes: `muster --help`",
    after_long_help = EXAMPLES
)]
pub struct Cli {
    /// What to do; without a command, one of the actions below.
    #[command(subcommand)]
    pub command: Option<Command>,
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
    /// How often, in which order, and what of an earlier session counts.
    #[command(flatten)]
    pub rounds: Rounds,
    /// What to print.
    #[command(flatten)]
    pub output: Output,
    /// Which reports to write.
    #[command(flatten)]
    pub reports: Reports,
    /// Print this page, or all (--help)
    #[arg(short, long, action = ArgAction::Help, help_heading = "Output", global = true)]
    help: Option<bool>,
    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version, help_heading = "Output")]
    version: Option<bool>,
}

/// What users come to do, one command each. A test runs those that need no cluster.
const EXAMPLES: &str = "\
Examples:
  A site file and a first check for this machine:
    muster init
  What would keep the checks from running:
    muster -c checks/ doctor
  What would run, and where:
    muster -c checks/ -lC
  What would be launched, without launching it:
    muster -c checks/ --system cluster:gpu -n triad --dry-run
  Run, with a table of all figures:
    muster -c checks/ -r --performance-report
  Every night: finish what was interrupted, and write reports:
    muster -c checks/ -r --resume --report-junit junit.xml --report-html night.html
  On each node that is available:
    muster -c checks/ --system cluster:gpu -t node --distribute -r
  Again, only what has failed in the newest session:
    muster -c checks/ -r --restore-session --failed
  Try a check against a log, without a cluster:
    muster -c checks/ -n triad --rehearse triad.log -r
  What ran, and one session with its failures:
    muster results list
    muster results show latest
  What changed last night, with one error rate for all figures:
    muster night
  Watch a session that runs elsewhere:
    muster top
  The rights that the checks need on a Kubernetes cluster:
    muster -c checks/ --system cluster k8s role | kubectl apply -f -
  Remove what killed sessions have left:
    muster sweep --dry-run

Exit codes:
  0    every case is fine
  1    at least one check failed
  2    wrong usage, mistakes in files, or nothing selected
  3    a case could not run, or an output could not be written
  130  interrupted

Every long flag is also an environment variable: MUSTER_ and its name in capitals.";

impl Cli {
    /// What is set by its name, as `NAME=VALUE`, by the long flag.
    pub fn settings(&self) -> [(&'static str, Vec<String>); 3] {
        let options = self.rounds.job_option.iter().map(ToString::to_string).collect();
        [("setvar", self.files.setvar.clone()), ("parameterize", self.files.parameterize.clone()), ("job-option", options)]
    }
}

/// Commands beside the actions.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Write a site file and a first check for this machine
    Init(InitArgs),
    /// Look for what would keep the selected checks from running
    ///
    /// Of each partition: versions, rights, quotas, queues, room and clocks; of this machine: limits, folders and the database.
    #[command(after_help = "Filters stand before the command: `muster -c checks/ -t nightly doctor`.\n\
                            Exit codes: 0 nothing is wrong, or there are warnings at most; 1 something is wrong; 2 bad usage, or \
                            mistakes in files.")]
    Doctor(DoctorArgs),
    /// Show the settings in force, and where each comes from
    Config {
        #[command(subcommand)]
        what: ConfigCommand,
    },
    /// Show, compare and explain stored sessions
    Results {
        #[command(subcommand)]
        what: ResultsCommand,
    },
    /// What changed in a night, with one stated error rate
    ///
    /// For each system: which figures are worse or better than they were, since when and by how much, and what was not measured.
    Night(NightArgs),
    /// Watch a session that runs elsewhere
    ///
    /// What runs and where, why cases wait, what has failed.
    Top(TopArgs),
    /// Continue a session whose process is gone
    ///
    /// Takes over what runs, runs the rest, and reports everything.
    Attach {
        /// The session, or an unambiguous beginning of it; `latest` for the newest that was interrupted
        #[arg(default_value = "latest")]
        session: String,
    },
    /// Stop and remove what abandoned sessions left
    Sweep(SweepArgs),
    /// Prepare a Kubernetes cluster for the selected checks
    K8s {
        #[command(subcommand)]
        what: K8sCommand,
    },
    /// Prepare an account of AWS for the selected checks
    Ec2 {
        #[command(subcommand)]
        what: Ec2Command,
    },
    /// Write, format and lint check files
    Check {
        #[command(subcommand)]
        what: CheckCommand,
    },
    /// Print the completions of a shell
    ///
    /// To use them now: `source <(muster completions bash)`
    #[command(override_usage = "muster completions <SHELL>")]
    Completions {
        /// The shell
        #[arg(required_unless_present_any = ["names", "list_values"])]
        shell: Option<clap_complete::Shell>,
        /// What a script of an earlier version asks for.
        #[arg(long, hide = true)]
        names: bool,
        /// What a script asks for.
        #[arg(id = "list_values", long = "list", hide = true, value_enum)]
        list: Option<Completed>,
    },
    /// Print the manual page
    ///
    /// To read it: `muster man | man -l -`
    Man,
    /// Convert checks of ReFrame and Anubis, and site files, to YAML
    ///
    /// Lists what could not be converted.
    Convert(ConvertArgs),
    /// Measure this machine with a built-in kernel
    ///
    /// The shipped checks run these kernels.
    Kernel {
        #[command(subcommand)]
        kernel: muster_kernels::Kernel,
    },
}

/// Values that shells complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Completed {
    Names,
    Tags,
    Systems,
    Modes,
    Sessions,
}

/// `muster doctor`
#[derive(Debug, Clone, Copy, Args)]
pub struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `muster top`
#[derive(Debug, Clone, Args)]
pub struct TopArgs {
    /// The session, or an unambiguous beginning of it [default: the newest that has not ended, else the newest]
    pub session: Option<String>,
    /// Print one JSON object and end
    #[arg(long)]
    pub json: bool,
}

/// `muster config ...`
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum ConfigCommand {
    /// Print every setting with its value and its source
    Show,
}

/// `muster k8s ...`
#[derive(Debug, Clone, Subcommand)]
pub enum K8sCommand {
    /// Print the least permissions that the selected checks need, as a Role and its binding
    #[command(after_help = "Filters stand before the command: `muster -c checks/ -t nightly k8s role`.")]
    Role(RoleArgs),
}

/// `muster ec2 ...`
#[derive(Debug, Clone, Subcommand)]
pub enum Ec2Command {
    /// Print the least rights that the selected checks need, as a policy of IAM
    #[command(after_help = "Filters stand before the command: `muster -c checks/ -t nightly ec2 policy`.")]
    Policy {
        /// The number of the account, in place of any
        #[arg(long, value_name = "NUMBER", default_value = "*", value_parser = account)]
        account: String,
    },
    /// Print the commands of the AWS CLI that make the bucket and a way to it
    Setup {
        /// Print them: Muster runs none of them itself
        #[arg(long, required = true)]
        print: bool,
    },
}

/// An account of AWS, or any.
fn account(text: &str) -> Result<String, String> {
    let is_number = text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number || text == "*" { Ok(text.to_owned()) } else { Err("an account has 12 digits".to_owned()) }
}

/// `muster sweep ...`
#[derive(Debug, Clone, Args)]
pub struct SweepArgs {
    /// Only print what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Also remove what is kept of failures, whatever its age
    #[arg(long)]
    pub kept: bool,
}

/// `muster k8s role ...`
#[derive(Debug, Clone, Args)]
pub struct RoleArgs {
    /// The service account that gets the role
    #[arg(long, value_name = "NAME", default_value = "muster")]
    pub service_account: String,
    /// The namespace, in place of the one that the cases would run in
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Leave out permissions that cases run without: those that explain why a case waits, check beforehand whether its pods would be
    /// admitted, or list leftovers for `muster sweep`
    #[arg(long)]
    pub required_only: bool,
}

/// The actions: exactly one.
#[derive(Debug, Clone, Args)]
#[allow(clippy::struct_excessive_bools, reason = "flags of a command line are booleans")]
#[command(group = ArgGroup::new("action").args([
    "run", "list", "list_detailed", "describe", "list_tags", "dry_run", "ci_generate", "performance_compare", "list_stored_sessions",
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
    /// Nothing is launched. With `server` the server validates it.
    #[arg(
        long,
        value_enum,
        value_name = "client|server",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "client",
        hide_possible_values = true,
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

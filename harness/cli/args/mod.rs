//! The command line: ReFrame's letters and meanings, kubectl's habits for the rest.
//!
//! Every long flag is also an environment variable: `--exec-policy` is `MUSTER_EXEC_POLICY`; lists are split at commas, and settings (`-S`, `-P`, `-J`) are one a line.

mod author;
mod commands;
mod dash;
mod file;
mod flags;
mod foreign;
mod night;
mod parse;
mod reports;
mod results;
mod rounds;

pub use author::{CheckCommand, ConvertArgs, FmtArgs, InitArgs, LintArgs, LintFormat, NewArgs};
pub use commands::{Command, Completed, ConfigCommand, DoctorArgs, Ec2Command, K8sCommand, RoleArgs, SweepArgs, TopArgs};
pub use dash::{is_dash, takes_stdout};
pub use file::{FileSetting, settings as file_settings};
pub use flags::{Action, DryRun, ExecPolicy, Files, Filter, Listing, Output, Run, TableFormat, TestFormat};
pub use night::{FailOn, NightArgs, NightCommand, NightFormat};
pub use parse::{
    Beneath, Mode, Origin, Parsed, definition, doubtful_settings, listed, parse, parse_in_mode, unknown_variables, variable,
    variable_that_is_no_text,
};
pub use reports::Reports;
pub use results::{
    AliasArgs, AnnotateArgs, AnnotationKind, CausesArgs, CompareArgs, CompareFailOn, DemoArgs, ExportArgs, ExportFormat,
    FilterArgs, HistoryArgs, ImportArgs, ListArgs, OutputFormat, PerformanceReport, PruneArgs, ResultsCommand, Sample, Stored,
    SuggestArgs,
};
pub use rounds::Rounds;

use clap::{ArgAction, Parser};

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
  Again, only what has failed in the newest session of these cases:
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
  3    a case could not run, every case was skipped, or an output could not be written
  130  interrupted

Every long flag is also an environment variable: MUSTER_ and its name in capitals.";

impl Cli {
    /// What is set by its name, as `NAME=VALUE`, by the long flag.
    pub fn settings(&self) -> [(&'static str, Vec<String>); 3] {
        let options = self.rounds.job_option.iter().map(ToString::to_string).collect();
        [("setvar", self.files.setvar.clone()), ("parameterize", self.files.parameterize.clone()), ("job-option", options)]
    }
}

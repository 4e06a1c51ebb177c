//! The commands of `muster results`.

use crate::args::TableFormat;
use clap::{Args, Subcommand, ValueEnum};
use muster_core::query::spec::{Comparison, Selection, SpecError};
use std::path::PathBuf;

/// `muster results ...`
#[derive(Debug, Clone, Subcommand)]
pub enum ResultsCommand {
    /// List the stored sessions, the newest first
    ///
    /// A selection names them: `2026-11-24` is a night, `now-1w:now` a period, `tag=nightly,system=eidf` filters.
    List(ListArgs),
    /// Show one session: its cases, figures and failures
    ///
    /// What begins no session is a case: it is shown alone, as it was in its newest session.
    Show {
        /// The session, or an unambiguous beginning of it; `latest` for the newest; or a case, by a regex or its /HASH
        #[arg(default_value = "latest", value_name = "SESSION|CASE")]
        session: String,
        /// Print the JSON run report instead
        #[arg(long)]
        json: bool,
    },
    /// Group the failures of a night by cause
    ///
    /// With the first bad night, the last good one, and what changed between them.
    Causes(CausesArgs),
    /// Compare two sets of sessions, variable by variable
    ///
    /// The worst first; new and vanished variables are always shown.
    Compare(CompareArgs),
    /// Show variables over time, as a chart
    History(HistoryArgs),
    /// Print stored sessions as CSV (a row for each figure) or JSON (a list of run reports)
    Export(ExportArgs),
    /// Store sessions from run reports of Muster or ReFrame, or from ReFrame's results database
    Import(ImportArgs),
    /// Suggest references from stored figures
    SuggestReferences(SuggestArgs),
    /// Bring the results database of an earlier version up to date
    Migrate,
}

/// Which cases of the sessions.
#[derive(Debug, Clone, Default, Args)]
pub struct FilterArgs {
    /// Only cases whose name matches this regex; `!` before it negates [repeatable: one must match]
    #[arg(short = 'n', long = "name", value_name = "REGEX")]
    pub check: Vec<String>,
    /// Only cases with this tag, or with one that matches ~REGEX [repeatable]
    #[arg(short, long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Only this partition (`gpu`, or `eidf:gpu`), or those that match ~REGEX [repeatable]
    #[arg(long, value_name = "PARTITION")]
    pub partition: Vec<String>,
    /// Only cases of this system, or of those that match ~REGEX [repeatable]
    #[arg(long = "on", value_name = "SYSTEM")]
    pub of_system: Vec<String>,
}

/// `muster results list`
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// Which sessions: a night (2026-11-24), nights (2026-11-01..2026-11-14), a period (now-1w:now), tag=, system=, `?` and a condition
    pub selection: Option<String>,
    /// How many
    #[arg(short = 'N', long, value_name = "COUNT", default_value_t = 20)]
    pub limit: u32,
    /// Only sessions with a case of this outcome: `fail`, `fail{sanity}`, `failed` for all that are not fine [repeatable]
    #[arg(long, value_name = "OUTCOME")]
    pub outcome: Vec<String>,
    #[command(flatten)]
    pub filters: FilterArgs,
}

/// `muster results causes`
#[derive(Debug, Clone, Args)]
pub struct CausesArgs {
    /// The night, by the date of its evening, or another selection of sessions [default: the last night]
    pub night: Option<String>,
    #[command(flatten)]
    pub filters: FilterArgs,
    /// Name every case
    #[arg(long)]
    pub all: bool,
    /// Print JSON instead
    #[arg(long)]
    pub json: bool,
}

/// `muster results compare`
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// The old side: a session, a night, nights (2026-11-01..2026-11-14), a period (now-2w:now-1w), tag=, system=
    pub old: String,
    /// The new side
    pub new: String,
    #[command(flatten)]
    pub filters: FilterArgs,
    /// What one value of a sample is [default: nights if both sides have five, else runs]
    #[arg(long, value_enum, value_name = "run|night", hide_possible_values = true)]
    pub per: Option<Sample>,
    /// Exit with 1 if there is a regression
    #[arg(long, value_enum, value_name = "regression", hide_possible_values = true)]
    pub fail_on: Option<CompareFailOn>,
    /// Show every variable without a difference, too
    #[arg(long)]
    pub all: bool,
    /// A table, JSON or CSV
    #[arg(long, value_enum, default_value_t = OutputFormat::Table, value_name = "FORMAT")]
    pub format: OutputFormat,
}

/// `muster results history`
#[derive(Debug, Clone, Args)]
pub struct HistoryArgs {
    /// The cases: a regex that matches a part of the name
    #[arg(value_name = "CHECK")]
    pub case: String,
    /// Only this variable; `latency[8]` is a row of a table
    #[arg(long, value_name = "VAR")]
    pub var: Option<String>,
    /// Which sessions [default: those of the last year]
    #[arg(long, value_name = "SELECTION")]
    pub period: Option<String>,
    #[command(flatten)]
    pub filters: FilterArgs,
    /// Print JSON instead
    #[arg(long)]
    pub json: bool,
}

/// `muster results export`
#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// csv or json
    #[arg(value_enum, value_name = "csv|json", hide_possible_values = true)]
    pub format: ExportFormat,
    /// Which sessions [default: all]
    pub selection: Option<String>,
    #[command(flatten)]
    pub filters: FilterArgs,
}

/// `muster results import`
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// The files: JSON reports, or a database of ReFrame
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// How sessions are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    Csv,
    Json,
}

/// `muster results suggest-references`
#[derive(Debug, Clone, Args)]
pub struct SuggestArgs {
    /// The cases: regexes that match a part of the name [default: all]
    #[arg(value_name = "CHECK")]
    pub cases: Vec<String>,
    /// Which sessions
    #[arg(long, value_name = "SELECTION", default_value = "now-30d:now")]
    pub period: String,
    #[command(flatten)]
    pub filters: FilterArgs,
    /// The percentile that becomes the lower bound
    #[arg(long, value_name = "PERCENT", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=99))]
    pub lower: u8,
    /// The percentile that becomes the upper bound
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = clap::value_parser!(u8).range(1..=99))]
    pub upper: u8,
    /// At least so many runs; a percentile of 5 needs 20 in any case
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub min_runs: usize,
    /// Write a file of references, in place of one that this command wrote before
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
}

/// What one value of a sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sample {
    Run,
    Night,
}

/// What ends a command with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareFailOn {
    Regression,
}

/// How an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    Table,
    Json,
    /// RFC 4180.
    Csv,
}

/// ReFrame's actions on stored results.
#[derive(Debug, Clone, Args)]
pub struct Stored {
    /// Compare stored figures
    ///
    /// NEW/OLD/AGGREGATION/COLUMNS, as in now-1d:now/now-8d:now-1d/median:/+result
    #[arg(long, value_name = "CMPSPEC", value_parser = Comparison::parse, help_heading = "Stored results")]
    pub performance_compare: Option<Comparison>,
    /// List stored sessions: all, or those of a selection
    #[arg(long, value_name = "SELECTION", num_args = 0..=1, default_missing_value = "", value_parser = Selection::parse, help_heading = "Stored results")]
    pub list_stored_sessions: Option<Selection>,
    /// List stored figures
    ///
    /// SELECTION/AGGREGATION/COLUMNS, as in now-1w:now/median:/+job_nodelist
    #[arg(long, value_name = "SPEC", value_parser = Comparison::parse_with_one_set, help_heading = "Stored results")]
    pub list_stored_testcases: Option<Comparison>,
    /// Print the run reports of stored sessions
    #[arg(long, value_name = "SELECTION", value_parser = Selection::parse, help_heading = "Stored results")]
    pub describe_stored_sessions: Option<Selection>,
}

/// How figures are shown at the end of a session.
#[derive(Debug, Clone, PartialEq)]
pub enum PerformanceReport {
    /// Those of the session.
    Table(TableFormat),
    /// Beside stored ones.
    Compared(Box<Comparison>),
}

impl PerformanceReport {
    /// Reads `pretty`, `plain`, `csv`, or a comparison with one set.
    pub(super) fn parse(text: &str) -> Result<Self, SpecError> {
        match <TableFormat as ValueEnum>::from_str(text, true) {
            Ok(format) => Ok(Self::Table(format)),
            Err(_) if text.contains('/') => Ok(Self::Compared(Box::new(Comparison::parse_with_one_set(text)?))),
            Err(_) => Err(SpecError(format!(
                "`{text}` is neither pretty, plain or csv nor SELECTION/AGGREGATION/COLUMNS, as in now-1d:now/last:/+result"
            ))),
        }
    }
}

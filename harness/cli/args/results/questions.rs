//! The questions of `muster results`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

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
    /// How many, or `all`
    #[arg(short = 'N', long, value_name = "COUNT", value_parser = count, default_value = "20")]
    pub limit: u32,
    /// Only sessions with a case of this outcome: `fail`, `fail{sanity}`, `failed` for all that are not fine [repeatable]
    #[arg(long, value_name = "OUTCOME")]
    pub outcome: Vec<String>,
    #[command(flatten)]
    pub filters: FilterArgs,
    /// A table, JSON or CSV
    #[arg(long, value_enum, default_value_t = OutputFormat::Table, value_name = "FORMAT")]
    pub format: OutputFormat,
}

/// A number from 1, or `all`.
fn count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("a list has 1 session at least".to_owned()),
        Ok(count) => Ok(count),
        Err(_) if text == "all" => Ok(u32::MAX),
        Err(_) => Err(format!("`{text}` is not a number of sessions: write a number, or `all`")),
    }
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
    /// Only this variable; `latency[8]` is a row of a table [repeatable]
    #[arg(long, value_name = "VAR")]
    pub var: Vec<String>,
    /// The percentile that becomes the lower bound [default: a bound 5.5 standard deviations from the median, at least 2 %]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=49))]
    pub lower: Option<u8>,
    /// The percentile that becomes the upper bound [default: as for --lower]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(51..=99))]
    pub upper: Option<u8>,
    /// At least so many runs; 5 in any case, and 20 for a percentile of 5
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    pub min_runs: usize,
    /// Write a file of references, in place of one that this command wrote before; - is standard output
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

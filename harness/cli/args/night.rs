//! `muster night`: what changed, and how that is known.

use clap::{Args, Subcommand, ValueEnum};

/// `muster night`
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct NightArgs {
    #[command(subcommand)]
    pub what: Option<NightCommand>,
    /// The night, by the date of its evening [default: the last one of any system]
    #[arg(long, value_name = "DATE")]
    pub night: Option<String>,
    /// Exit with 1 on a regression that was found tonight, one that is open, a planned figure that is missing; with 3 if too few of the
    /// planned figures were measured [repeatable]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    pub fail_on: Vec<FailOn>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = NightFormat::Table, value_name = "FORMAT")]
    pub format: NightFormat,
}

/// `muster night why|explain`
#[derive(Debug, Clone, Subcommand)]
pub enum NightCommand {
    /// Show a change: its size, since when, what moved with it, and what else is another since then
    Why {
        /// The change, as `muster night` names it: 17@2026-11-17
        change: String,
    },
    /// Show the arithmetic of the verdict of one metric
    Explain {
        /// The number of the metric, or words that its case, place and variable contain
        #[arg(required = true, value_name = "METRIC")]
        metric: Vec<String>,
        /// The night, by the date of its evening [default: the last one of any system]
        #[arg(long, value_name = "DATE")]
        night: Option<String>,
    },
}

/// What `muster night` fails on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    Regression,
    Open,
    Missing,
    Coverage,
}

/// How `muster night` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NightFormat {
    Table,
    Json,
    Junit,
    Markdown,
}

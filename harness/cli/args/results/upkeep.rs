//! What `muster results` changes: annotations, and what is kept.

use clap::{Args, ValueEnum};
use muster_text::time::{Date, parse_duration};
use std::{path::PathBuf, time::Duration};

/// `muster results annotate`
#[derive(Debug, Clone, Args)]
pub struct AnnotateArgs {
    /// The check, or the case as it is displayed [default: all]
    pub name: Option<String>,
    /// What it means
    #[arg(long, value_enum, default_value_t = AnnotationKind::Note)]
    pub kind: AnnotationKind,
    /// The first night, by the date of its evening
    #[arg(long, value_name = "DATE", value_parser = Date::parse)]
    pub from: Date,
    /// The last night [default: the first]
    #[arg(long, value_name = "DATE", value_parser = Date::parse)]
    pub until: Option<Date>,
    /// Why, in one sentence
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Where to read more: a ticket
    #[arg(long, value_name = "URL")]
    pub link: Option<String>,
    /// The partition [default: all]
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// The environment [default: all]
    #[arg(long, value_name = "NAME")]
    pub environ: Option<String>,
    /// The performance variable [default: all]
    #[arg(long, value_name = "NAME")]
    pub variable: Option<String>,
    /// The node [default: all; only of a note]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// The session, or an unambiguous beginning of it [default: all; only of a note]
    #[arg(long, value_name = "SESSION")]
    pub session: Option<String>,
}

/// What an annotation means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AnnotationKind {
    /// It is shown, and nothing else
    Note,
    /// The nights count for no figure
    Maintenance,
    /// The level since a change is the new one
    Accept,
    /// A change was none
    Dismiss,
    /// It is shown and does not count
    Known,
}

/// `muster results prune`
#[derive(Debug, Clone, Copy, Args)]
pub struct PruneArgs {
    /// Sessions that are younger stay
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "400d")]
    pub keep: Duration,
    /// So many sessions of each system stay, however old they are
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    pub keep_last: usize,
    /// Logs that are older go [default: with their sessions]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub logs_older_than: Option<Duration>,
}

/// `muster results demo`
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// The new database
    pub file: PathBuf,
    /// Another seed makes another year
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// How many systems
    #[arg(long, value_name = "COUNT", default_value_t = 40, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1_000))]
    pub systems: usize,
    /// How many nights
    #[arg(long, value_name = "COUNT", default_value_t = 365, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=3_650))]
    pub nights: usize,
}

//! The commands of `muster results`.

use clap::{Args, Subcommand, ValueEnum};
use muster_text::time::{Date, parse_duration};
use std::{path::PathBuf, time::Duration};

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
    /// Write a year of an invented site to a file, to try every question
    ///
    /// Beside it FILE.truth.csv says what really happened: steps, drifts, outages, slow nodes.
    Demo(DemoArgs),
    /// Bring the results database of an earlier version up to date
    Migrate,
    /// Write the figures of all nights again, from the stored attempts
    ///
    /// Sessions of earlier versions get their nights, as the site files say (-C).
    Rebuild,
    /// Let a renamed check, parameter or case keep its history
    ///
    /// `stream triad` renames a check, `'stream %size' 'stream %bytes'` a parameter and `'stream %size=2G' 'stream %size=4G'` a case.
    Alias {
        /// The name until now
        old: String,
        /// The name from now on
        new: String,
    },
    /// Say what people know of some nights: maintenance, a change that is accepted or none
    Annotate(AnnotateArgs),
    /// Delete sessions
    Delete {
        /// The sessions, or unambiguous beginnings of them
        #[arg(required = true)]
        sessions: Vec<String>,
    },
    /// Delete old sessions and logs, and give their space back
    Prune(PruneArgs),
    /// Copy the results database, also while a session writes to it
    Backup {
        /// The copy, which takes the place of an earlier one
        file: PathBuf,
    },
}

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
    /// The node [default: all]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// The session, or an unambiguous beginning of it [default: all]
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

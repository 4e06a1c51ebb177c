//! The commands of `muster results`.

mod foreign;
mod questions;
mod upkeep;

pub use foreign::{PerformanceReport, Stored};
pub use questions::{
    CausesArgs, CompareArgs, CompareFailOn, ExportArgs, ExportFormat, FilterArgs, HistoryArgs, ImportArgs, ListArgs,
    OutputFormat, Sample, SuggestArgs,
};
pub use upkeep::{AliasArgs, AnnotateArgs, AnnotationKind, DemoArgs, PruneArgs};

use clap::Subcommand;
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
    Alias(AliasArgs),
    /// Say what people know of some nights: maintenance, a change that is accepted or none
    Annotate(AnnotateArgs),
    /// Delete sessions
    Delete {
        /// The sessions, or unambiguous beginnings of them
        #[arg(required = true)]
        sessions: Vec<String>,
        /// Only print what would be deleted
        #[arg(long)]
        dry_run: bool,
    },
    /// Delete old sessions and logs, and give their space back
    Prune(PruneArgs),
    /// Copy the results database, also while a session writes to it
    Backup {
        /// The copy, which takes the place of an earlier one
        file: PathBuf,
    },
}

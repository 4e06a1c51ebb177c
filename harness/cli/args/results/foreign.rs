//! ReFrame's flags for stored results.

use crate::args::TableFormat;
use clap::{Args, ValueEnum};
use muster_core::query::spec::{Comparison, Selection, SpecError};

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
    /// Delete stored sessions
    #[arg(long, value_name = "SELECTION", value_parser = some, help_heading = "Stored results")]
    pub delete_stored_sessions: Option<Selection>,
}

/// A selection that says something: the empty one is all sessions, and nobody deletes these by an empty variable of a shell.
fn some(text: &str) -> Result<Selection, SpecError> {
    match text.trim() {
        "" => Err(SpecError("it is empty: say which sessions, as in 2026-11-24 or now-1y:now-90d".to_owned())),
        text => Selection::parse(text),
    }
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
    pub(in crate::args) fn parse(text: &str) -> Result<Self, SpecError> {
        match <TableFormat as ValueEnum>::from_str(text, true) {
            Ok(format) => Ok(Self::Table(format)),
            Err(_) if text.contains('/') => Ok(Self::Compared(Box::new(Comparison::parse_with_one_set(text)?))),
            Err(_) => Err(SpecError(format!(
                "`{text}` is neither pretty, plain or csv nor SELECTION/AGGREGATION/COLUMNS, as in now-1d:now/last:/+result"
            ))),
        }
    }
}

//! Results in, text out: what a person, a spreadsheet and a program read about a session.
//!
//! Pure: no I/O, no clock, no environment. The caller says how wide the terminal is, whether it shows colours and in
//! which time zone its reader lives ([`style::Screen`]), and prints what comes back. Every text ends with a newline.
//!
//! ```text
//! Results (session + cases) --> progress     lines while it runs, and the last line
//!                           |-> performance  the table of all figures: pretty, plain, csv
//!                           |-> failure      a block for each case that is not fine
//!                           |-> summary      outcomes, durations, leftovers
//!                           |-> results      `muster results list|show`
//!                           '-> json         the run report, docs/run-report.md
//! NightVerdicts -------------> night        `muster night`
//! answers of core::query ----> compared, history, causes, suggested
//! findings -------------------> doctor       `muster doctor`
//! ListedCase -----------------> listing      -l, -L, --list-tags, --describe
//! ```
//!
//! Texts come from jobs, manifests and file names that are not trusted: all that reaches a terminal went through
//! [`style::sanitize`].

mod answers;
mod counts;
mod files;
pub mod night;
pub mod page;
mod terminal;
mod text;

pub use answers::{causes, compared, grouped, history, said, suggested};
pub use counts::{Counts, Results};
pub use files::{annotations, gitlab, json, junit, perflog, run_report};
pub use terminal::{doctor, failure, listing, live, performance, progress, results, retries, statistics, summary};
pub use text::{
    command, number, secret,
    style::{self, Paint, Screen},
    time,
};

/// A text that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The data has no such form, or a template cannot be read or asks for what does not exist.
    #[error("{operation}")]
    Failed {
        operation: &'static str,
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A table was asked for a column that no figure has.
    #[error("no figure has a column `{name}`{near} There are {known}")]
    Column { name: String, near: String, known: String },
    /// A command of a pipeline would show a secret.
    #[error(
        "the command of the job '{job}' holds what looks like a secret: set it as a variable of the CI system instead (MUSTER_SETVAR)"
    )]
    Secret { job: String },
}

impl RenderError {
    fn of<E: Into<Box<dyn std::error::Error + Send + Sync>>>(operation: &'static str) -> impl Fn(E) -> Self {
        move |cause| Self::Failed { operation, cause: cause.into() }
    }
}

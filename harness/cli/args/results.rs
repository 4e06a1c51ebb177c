//! The commands of `muster results`.

use clap::Subcommand;

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
    /// Bring the results database of an earlier version up to date
    Migrate,
}

//! The arguments of `muster convert`.

use clap::Args;
use std::path::PathBuf;

/// `muster convert ...`
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Exit codes: 0 everything was converted; 1 something was not, and is listed (the files are still written); 2 wrong usage."
)]
pub struct ConvertArgs {
    /// A file of checks or a site configuration, or a folder that is searched for *.py [repeatable]
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Write the files into this folder; `-` prints them [default: beside their sources]
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Print the files instead of writing them
    #[arg(long, conflicts_with = "output")]
    pub stdout: bool,
    /// Write nothing, only list what could not be converted
    #[arg(long, conflicts_with_all = ["output", "stdout", "force"])]
    pub check: bool,
    /// Overwrite files that are there
    #[arg(long)]
    pub force: bool,
}

//! `muster init`, `muster check ...`, `muster convert`: what an author of checks needs.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `muster check ...`
#[derive(Debug, Clone, Subcommand)]
pub enum CheckCommand {
    /// Write a commented example check
    New(NewArgs),
    /// Format check and site files: blanks, indentation, empty lines; values and comments stay
    #[command(after_help = "Exit codes: 0 all files are formatted; 1 with --check or --diff, some file is not; \
                            2 bad usage, or a file that cannot be read.")]
    Fmt(FmtArgs),
    /// Report what is probably not intended
    #[command(after_help = "A comment silences a lint: `# muster: allow NAME` at the end of a line or above it, \
                            `# muster: allow-file NAME` for a file.\n\
                            Exit codes: 0 nothing was found; 1 something was; 2 bad usage, or files with mistakes.")]
    Lint(LintArgs),
}

/// `muster check new ...`
#[derive(Debug, Clone, Args)]
pub struct NewArgs {
    /// For which scheduler
    #[arg(long)]
    pub scheduler: String,
    /// The file, NAME.check.yaml; or a folder, which gets one of its own name
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
}

/// `muster check fmt ...`
#[derive(Debug, Clone, Args)]
pub struct FmtArgs {
    /// Change nothing, list the files that are not formatted
    #[arg(long)]
    pub check: bool,
    /// Change nothing, print what would change
    #[arg(long)]
    pub diff: bool,
    /// Files, folders that are searched for check.yaml and *.check.yaml, or `-` for standard input [default: the paths of -c, else .]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

/// `muster check lint ...`
#[derive(Debug, Clone, Args)]
pub struct LintArgs {
    /// Silence this lint everywhere [repeatable]
    #[arg(long, value_name = "NAME")]
    pub allow: Vec<String>,
    /// For people, or for tools
    #[arg(long = "format", id = "lint_format", value_enum, value_name = "FORMAT", default_value_t = LintFormat::Text)]
    pub format: LintFormat,
    /// List all lints
    #[arg(long)]
    pub explain: bool,
    /// Check files, or folders that are searched for them; `-`: standard input [default: the paths of -c, else .]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LintFormat {
    /// With the line and a hint.
    Text,
    /// A JSON list.
    Json,
}

/// `muster init ...`
#[derive(Debug, Clone, Args)]
#[command(after_help = "Exit codes: 0 both files were written; 2 bad usage, or one of them is there already.")]
pub struct InitArgs {
    /// The folder that gets site-config/NAME.yaml and checks/hello/hello.check.yaml
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// For which scheduler [default: those that this machine has]
    #[arg(long)]
    pub scheduler: Option<String>,
    /// What the system is called [default: the name of this host]
    #[arg(long = "site-name", value_name = "NAME")]
    pub site_name: Option<String>,
    /// The context of the kubeconfig [default: none is written, and the current one is used]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The namespace [default: that of the context]
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// An option of the partition, as in partition=gpu or account=proj [repeatable]
    #[arg(long, value_name = "KEY=VALUE")]
    pub option: Vec<String>,
}

impl InitArgs {
    /// The options that are given, by name.
    ///
    /// # Errors
    /// One without a `=`.
    pub fn options(&self) -> anyhow::Result<Vec<(&str, &str)>> {
        let named = [("context", &self.context), ("namespace", &self.namespace)];
        let mut all: Vec<(&str, &str)> = named.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
        for option in &self.option {
            let pair = option.split_once('=');
            all.push(pair.ok_or_else(|| anyhow::anyhow!("--option {option} has no `=`: write KEY=VALUE"))?);
        }
        Ok(all)
    }
}

/// `muster convert ...`
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Exit codes: 0 everything was converted; 1 something was not, and is listed (the files are still written); 2 wrong usage."
)]
pub struct ConvertArgs {
    /// A file of checks or a site configuration, a descriptor of Anubis (*.toml), or a folder that is searched for *.py [repeatable]
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

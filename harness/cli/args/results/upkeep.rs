//! What `muster results` changes: annotations, and what is kept.

use clap::{Args, ValueEnum};
use muster_text::time::{Date, parse_duration};
use std::{path::PathBuf, time::Duration};

/// `muster results annotate`
#[derive(Debug, Clone, Args)]
pub struct AnnotateArgs {
    /// The check, or the case as it is displayed, perhaps with its @SYSTEM:PARTITION+ENVIRONMENT [default: all]
    pub name: Option<String>,
    /// What it means
    #[arg(long, value_enum, default_value_t = AnnotationKind::Note)]
    pub kind: AnnotationKind,
    /// The first night, by the date of its evening
    #[arg(long, value_name = "DATE", value_parser = Date::parse, required_unless_present_any = ["list", "remove"])]
    pub from: Option<Date>,
    /// The last night [default: the first]
    #[arg(long, value_name = "DATE", value_parser = Date::parse)]
    pub until: Option<Date>,
    /// Why, in one sentence
    #[arg(long, value_name = "TEXT", required_unless_present_any = ["list", "remove"])]
    pub reason: Option<String>,
    /// Where to read more: a ticket
    #[arg(long, value_name = "URL")]
    pub link: Option<String>,
    /// The partition [default: all]
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// The environment [default: all]
    #[arg(long, value_name = "NAME")]
    pub environ: Option<String>,
    /// The performance variable, or one row of its table: latency[8] [default: all]
    #[arg(long, value_name = "NAME")]
    pub variable: Option<String>,
    /// The node [default: all; only of a note]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// The session, or an unambiguous beginning of it [default: all; only of a note]
    #[arg(long, value_name = "SESSION")]
    pub session: Option<String>,
    /// List what was said, each with its number
    #[arg(long, conflicts_with_all = SAYING, conflicts_with = "remove")]
    pub list: bool,
    /// Take back what was said under this number
    #[arg(long, value_name = "NUMBER", conflicts_with_all = SAYING)]
    pub remove: Option<i64>,
}

/// What is part of an annotation.
const SAYING: [&str; 11] =
    ["name", "kind", "from", "until", "reason", "link", "partition", "environ", "variable", "node", "session"];

/// `muster results alias`
#[derive(Debug, Clone, Args)]
pub struct AliasArgs {
    /// The name until now
    #[arg(required_unless_present_any = ["list", "remove"])]
    pub old: Option<String>,
    /// The name from now on
    #[arg(required_unless_present_any = ["list", "remove"])]
    pub new: Option<String>,
    /// List the aliases
    #[arg(long, conflicts_with_all = ["old", "new", "remove"])]
    pub list: bool,
    /// Take back the alias of this old name
    #[arg(long, value_name = "OLD", conflicts_with_all = ["old", "new"])]
    pub remove: Option<String>,
}

/// What an annotation means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AnnotationKind {
    /// It is shown, and nothing else
    Note,
    /// The nights count for no figure
    Maintenance,
    /// The level since a change that may have begun in these nights is the new one
    Accept,
    /// A change that may have begun in these nights was none
    Dismiss,
    /// What changed is shown in these nights and does not count
    Known,
}

/// `muster results prune`
#[derive(Debug, Clone, Copy, Args)]
pub struct PruneArgs {
    /// Sessions that are younger stay: 400d, 36h
    #[arg(long, value_name = "AGE", value_parser = age, default_value = "400d")]
    pub keep: Duration,
    /// So many sessions of each system stay, however old they are
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    pub keep_last: usize,
    /// Logs that are older go: 60d [default: with their sessions]
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub logs_older_than: Option<Duration>,
    /// Only print what would be removed
    #[arg(long)]
    pub dry_run: bool,
}

/// A duration with its unit: a number alone is seconds elsewhere, and nobody keeps sessions for seconds.
fn age(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "`{text}` has no unit: write {text}d for days, {text}h for hours, {text}m for minutes or {text}s for seconds"
        ));
    }
    parse_duration(text).map_err(|_| format!("`{text}` is not an age: write a number and its unit, as in 400d, 36h or 1d12h"))
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
    #[arg(long, value_name = "COUNT", default_value_t = 12, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1_000))]
    pub systems: usize,
    /// How many nights
    #[arg(long, value_name = "COUNT", default_value_t = 365, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=3_650))]
    pub nights: usize,
}

//! The flags about which cases run how often, in which order, and what of an earlier session counts.

use crate::args::Origin;
use anyhow::bail;
use clap::{Args, ValueEnum};
use muster_check::selection::{
    adjust::SchedOption,
    order::{Order, Shard},
};
use muster_core::decisions::{
    budget::{Budget, UnknownPrice},
    rounds::{Policy, Threshold},
};
use muster_text::time::parse_duration;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// Rounds.
#[derive(Debug, Clone, Args)]
#[allow(clippy::struct_excessive_bools, reason = "flags of a command line are booleans")]
pub struct Rounds {
    /// Run failed cases again, up to N times
    ///
    /// When all cases have ended. A case that passes then is flaky.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Rounds")]
    pub max_retries: u32,
    /// Retry nothing if more than N cases fail, or more than N% of them
    #[arg(long, value_name = "N[%]", default_value = "1000%", value_parser = Threshold::parse, help_heading = "Rounds")]
    pub retries_threshold: Threshold,
    /// Run everything again N times, whatever the outcome; every failure counts
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Rounds")]
    pub reruns: u32,
    /// Run everything again until this time has passed, as in 1h30m; every failure counts
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Rounds")]
    pub duration: Option<Duration>,
    /// Launch nothing if the run may cost more than this, at the prices of the site file and with every attempt that may follow
    #[arg(long, value_name = "AMOUNT", value_parser = amount, help_heading = "Rounds")]
    pub max_cost: Option<f64>,
    /// What becomes of a run with --max-cost when a price is unknown
    #[arg(long, value_name = "WHAT", default_value = "refuse", value_parser = ["refuse", "allow"], help_heading = "Rounds")]
    pub max_cost_unknown: String,
    /// Make N copies of every case, which run side by side and have one history
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Rounds")]
    pub repeat: Option<u32>,
    /// The order of the cases: by name, or by hash (uid); rname and ruid are the reverse [default: that of the files]
    #[arg(long, value_enum, value_name = "ORDER", help_heading = "Rounds")]
    pub exec_order: Option<ExecOrder>,
    /// Only this share of the selected cases, as in 2/5: shares are disjoint and stay the same when checks come and go
    #[arg(long, value_name = "I/N", value_parser = Shard::parse, help_heading = "Rounds")]
    pub shard: Option<Shard>,
    /// Run every case on each of these nodes
    ///
    /// Names, or one of their states, such as all or avail, which is the default. Each copy of a case runs on its node and nowhere else.
    #[arg(long, value_name = "NODES", num_args = 0..=1, default_missing_value = "avail", help_heading = "Rounds")]
    pub distribute: Option<String>,
    /// Options that the site file keeps under this name; what is typed comes after them
    #[arg(long, value_name = "NAME", help_heading = "Rounds", global = true)]
    pub mode: Option<String>,
    /// Continue an earlier session, and report on all cases [default: the newest of this system that has a selected case]
    #[arg(long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "latest", help_heading = "Rounds")]
    pub restore_session: Option<String>,
    /// Finish the newest session of the same cases if it was interrupted in the last 12 hours, else start one; then sweep
    #[arg(long, help_heading = "Rounds")]
    pub resume: bool,
    /// With --restore-session: run only the cases that did not succeed there, or that it does not have
    #[arg(long, help_heading = "Rounds")]
    pub failed: bool,
    /// A file of cases whose failure does not fail the session, `-` for standard input: a list of name, reason and until [repeatable]
    #[arg(long, value_name = "FILE", help_heading = "Rounds")]
    pub quarantine: Vec<PathBuf>,
    /// Run this in place of every workload, on the `fake` scheduler: a log (`-`: standard input), or a scenario in YAML; nothing is launched or stored
    #[arg(long, value_name = "FILE", help_heading = "Rounds")]
    pub rehearse: Option<PathBuf>,
    /// Fail the session if a case is skipped, with exit code 3
    #[arg(long, help_heading = "Rounds")]
    pub fail_on_skip: bool,
    /// Do not judge the output; the exit status still counts
    #[arg(long, help_heading = "Rounds")]
    pub skip_sanity_check: bool,
    /// Read no figures from the output
    #[arg(long, help_heading = "Rounds")]
    pub skip_performance_check: bool,
    /// Keep the stage folders of cases that pass
    #[arg(long, help_heading = "Rounds")]
    pub keep_stage_files: bool,
    /// An option of the scheduler; it overrides the check's, as in namespace=x or labels.team=hpc [repeatable]
    #[arg(short = 'J', long, value_name = "KEY=VALUE", value_parser = SchedOption::parse, help_heading = "Rounds")]
    pub job_option: Vec<SchedOption>,
    /// Facts to keep with the session, as in commit=1a2b3c,night=yes [repeatable]
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = pair, help_heading = "Rounds")]
    pub session_extras: Vec<(String, String)>,
    /// Where those of [`EXCLUSIVE`] come from that are not typed, by long flag.
    #[arg(skip)]
    sources: BTreeMap<&'static str, String>,
}

/// Flags that exclude each other. Not `max-cost` and `duration`: a limit of costs is not dropped without a word.
const EXCLUSIVE: [(&str, &str); 10] = [
    ("max-retries", "reruns"),
    ("max-retries", "duration"),
    ("reruns", "duration"),
    ("resume", "restore-session"),
    ("resume", "failed"),
    ("resume", "reruns"),
    ("resume", "duration"),
    ("resume", "rehearse"),
    ("restore-session", "rehearse"),
    ("failed", "rehearse"),
];

/// The order of the cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExecOrder {
    /// By name.
    Name,
    /// By name, backwards.
    Rname,
    /// By hash.
    Uid,
    /// By hash, backwards.
    Ruid,
    /// Any.
    Random,
}

impl From<ExecOrder> for Order {
    fn from(order: ExecOrder) -> Self {
        match order {
            ExecOrder::Name => Self::Name,
            ExecOrder::Rname => Self::NameBackwards,
            ExecOrder::Uid => Self::Hash,
            ExecOrder::Ruid => Self::HashBackwards,
            ExecOrder::Random => Self::Random,
        }
    }
}

impl Rounds {
    /// The flags that are set of those that skip a part of judging.
    pub fn skipping(&self) -> impl Iterator<Item = String> + use<> {
        let flags = [("--skip-sanity-check", self.skip_sanity_check), ("--skip-performance-check", self.skip_performance_check)];
        flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag.to_owned())
    }

    /// `--max-cost`
    pub fn budget(&self) -> Option<Budget> {
        let unknown = if self.max_cost_unknown == "allow" { UnknownPrice::Allow } else { UnknownPrice::Refuse };
        self.max_cost.map(|most| Budget { most, unknown })
    }

    /// What is typed wins: it drops what it excludes and what is not typed, with its origin.
    pub fn settle(&mut self, origins: &mut BTreeMap<String, Origin>) {
        let is_typed = |long: &str| matches!(origins.get(long), Some(Origin::Flag(_)));
        let either_way = EXCLUSIVE.into_iter().flat_map(|(one, other)| [(one, other), (other, one)]);
        let dropped = either_way.filter(|(typed, other)| is_typed(typed) && self.is_given(typed) && !is_typed(other));
        for (_, long) in dropped.collect::<Vec<_>>() {
            self.leave_out(long);
            origins.remove(long);
        }
        let longs = EXCLUSIVE.into_iter().flat_map(|(one, other)| [one, other]);
        let untyped = longs.filter_map(|long| origins.get(long).map(|origin| (long, origin)));
        let untyped = untyped.filter(|(_, origin)| !matches!(origin, Origin::Flag(_)));
        self.sources = untyped.map(|(long, origin)| (long, origin.to_string())).collect();
    }

    fn is_given(&self, long: &str) -> bool {
        match long {
            "max-retries" => self.max_retries > 0,
            "reruns" => self.reruns > 0,
            "duration" => self.duration.is_some(),
            "resume" => self.resume,
            "restore-session" => self.restore_session.is_some(),
            "failed" => self.failed,
            "rehearse" => self.rehearse.is_some(),
            _ => false,
        }
    }

    fn leave_out(&mut self, long: &str) {
        match long {
            "max-retries" => self.max_retries = 0,
            "reruns" => self.reruns = 0,
            "duration" => self.duration = None,
            "resume" => self.resume = false,
            "restore-session" => self.restore_session = None,
            "failed" => self.failed = false,
            "rehearse" => self.rehearse = None,
            _ => {}
        }
    }

    /// A flag, and where it comes from unless it is typed.
    fn shown(&self, long: &str) -> String {
        self.sources.get(long).map_or_else(|| format!("--{long}"), |source| format!("--{long} ({source})"))
    }

    /// What makes cases run again.
    ///
    /// # Errors
    /// Flags that do not go together.
    pub fn policy(&self) -> anyhow::Result<Policy> {
        let mut given = ["max-retries", "reruns", "duration"].into_iter().filter(|long| self.is_given(long));
        if let (Some(one), Some(other)) = (given.next(), given.next()) {
            let (one, other) = (self.shown(one), self.shown(other));
            bail!("{one} and {other} both say what runs again: give one of them");
        }
        let others = ["restore-session", "failed", "reruns", "duration", "rehearse"];
        if let Some(other) = others.into_iter().find(|other| self.resume && self.is_given(other)) {
            let (resume, other) = (self.shown("resume"), self.shown(other));
            bail!("{resume} finishes an interrupted session of the same cases, or starts one: leave {other} out");
        }
        if self.max_cost.is_some() && self.duration.is_some() {
            bail!("--max-cost cannot say what {} costs: give --reruns, which has an end", self.shown("duration"));
        }
        if self.failed && self.restore_session.is_none() {
            bail!("--failed needs an earlier session: say which with --restore-session");
        }
        if self.restore_session.is_some() && self.rehearse.is_some() {
            let (restored, rehearsed) = (self.shown("restore-session"), self.shown("rehearse"));
            bail!("{restored} continues an earlier session: leave {rehearsed} out");
        }
        Ok(match (self.duration, self.reruns) {
            (Some(duration), _) => Policy::Until(duration),
            (None, 0) => Policy::Retry { max: self.max_retries, threshold: self.retries_threshold },
            (None, times) => Policy::Rerun { times },
        })
    }
}

fn amount(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| format!("`{text}` is not an amount: write a number, as in 12.50"))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("`{text}` has no `=`: write KEY=VALUE"))?;
    Ok((key.to_owned(), value.to_owned()))
}

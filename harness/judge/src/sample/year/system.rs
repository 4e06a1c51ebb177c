//! The systems of the example: which checks they run, and what happens to them in the year.

use crate::sample::{
    random::Random,
    year::catalogue::{CATALOGUE, Entry},
};
use muster_core::rules::perf::Direction;

/// A system.
#[derive(Debug, Clone)]
pub struct ExampleSystem {
    pub name: String,
    pub environ: &'static str,
    /// The nodes of its cluster.
    pub nodes: Vec<String>,
    /// Newer machines are faster.
    pub(super) speed: f64,
    pub(super) checks: Vec<&'static Entry>,
    pub truth: Vec<Truth>,
}

/// Something that really happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// The check, by its first name, and its variable, of a table all rows; empty where it is about all of them.
    pub check: String,
    pub variable: String,
    /// The first night, and the first one after it.
    pub from: usize,
    pub until: usize,
    pub happened: Happened,
}

/// An event on a system.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
    /// The values are another by this share of them, as in all of these.
    Step { by: f64 },
    /// It is so at the end, and was not at the beginning.
    Drift { by: f64 },
    /// Saturdays and Sundays are another by this share.
    Weekend { by: f64 },
    /// The values of one node are another.
    SlowNode { node: String, by: f64 },
    /// Nothing ran.
    Outage,
    /// The check did not exist before.
    NewCheck,
    /// It has another name from then on.
    Renamed { to: String },
    /// The check measures in another way, and finds more.
    Rewritten { by: f64 },
}

impl Happened {
    fn is_of_all_variables(&self) -> bool {
        match self {
            Self::Outage | Self::NewCheck | Self::Renamed { .. } | Self::Rewritten { .. } => true,
            Self::Step { .. } | Self::Drift { .. } | Self::Weekend { .. } | Self::SlowNode { .. } => false,
        }
    }

    pub fn word(&self) -> &'static str {
        match self {
            Self::Step { .. } => "step",
            Self::Drift { .. } => "drift",
            Self::Weekend { .. } => "weekend",
            Self::SlowNode { .. } => "slow node",
            Self::Outage => "outage",
            Self::NewCheck => "new check",
            Self::Renamed { .. } => "renamed",
            Self::Rewritten { .. } => "rewritten",
        }
    }
}

/// A rewritten check finds this much more.
const REWRITTEN: f64 = 0.08;

const SITES: [&str; 8] = ["alder", "birch", "cedar", "elm", "hazel", "larch", "maple", "rowan"];
const ENVIRONS: [&str; 3] = ["gnu", "intel", "container"];

impl ExampleSystem {
    pub(super) fn new(number: usize, nights: usize, random: &mut Random) -> Self {
        let name = format!("{}{}", SITES[number % SITES.len()], number / SITES.len() + 1);
        let count = 4 + random.below(13);
        let nodes = (1..=count).map(|node| format!("{name}-n{node:02}")).collect();
        // Between three and seven of the checks, in the order of the catalogue.
        let wanted = 3 + random.below(5);
        let mut checks: Vec<&'static Entry> = CATALOGUE.iter().collect();
        while checks.len() > wanted {
            checks.remove(random.below(checks.len()));
        }
        let (environ, speed) = (ENVIRONS[random.below(ENVIRONS.len())], random.between(0.6, 1.6));
        let mut system = Self { name, environ, nodes, speed, checks, truth: Vec::new() };
        system.truth = truth(&system, nights, random);
        system
    }
}

/// What is seen of what happens to a check: before its first night there are no values that others could differ from.
fn seen(of_check: Vec<Truth>) -> impl Iterator<Item = Truth> {
    let first = of_check.iter().find(|truth| truth.happened == Happened::NewCheck).map_or(0, |truth| truth.from);
    let is_seen = move |truth: &Truth| match truth.happened {
        Happened::NewCheck | Happened::Weekend { .. } | Happened::SlowNode { .. } | Happened::Outage => first < truth.until,
        Happened::Step { .. } | Happened::Drift { .. } | Happened::Renamed { .. } | Happened::Rewritten { .. } => {
            first < truth.from
        }
    };
    of_check.into_iter().filter(is_seen).map(move |truth| Truth { from: truth.from.max(first), ..truth })
}

/// What happens to a system, in the order of nights.
fn truth(system: &ExampleSystem, nights: usize, random: &mut Random) -> Vec<Truth> {
    let mut all = Vec::new();
    for entry in &system.checks {
        let (variable, direction) = (entry.figures[0].variable, entry.figures[0].direction);
        // What is worse by a share sinks, or grows by more.
        let worse = |by: f64| if direction == Some(Direction::Lower) { 1.0 / (1.0 - by) - 1.0 } else { -by };
        let mut of_check: Vec<Truth> = Vec::new();
        let mut happens = |from: usize, until: usize, happened: Happened| {
            let until = until.min(nights);
            let variable = if happened.is_of_all_variables() { "" } else { variable }.to_owned();
            if from < until {
                of_check.push(Truth { check: entry.check.to_owned(), variable, from, until, happened });
            }
        };
        if random.chance(0.3) {
            let by = if random.chance(0.7) { worse(random.between(0.03, 0.12)) } else { worse(-random.between(0.02, 0.08)) };
            let from = random.below(nights);
            // Half of them are mended.
            let until = if random.chance(0.5) { from + 10 + random.below(60) } else { nights };
            happens(from, until, Happened::Step { by });
        }
        if random.chance(0.06) {
            let from = random.below(nights);
            happens(from, from + 40 + random.below(60), Happened::Drift { by: worse(random.between(0.05, 0.12)) });
        }
        if random.chance(0.12) {
            happens(0, nights, Happened::Weekend { by: worse(random.between(0.01, 0.03)) });
        }
        if entry.is_per_node && random.chance(0.6) {
            let node = system.nodes[random.below(system.nodes.len())].clone();
            let from = random.below(nights);
            happens(from, from + 5 + random.below(40), Happened::SlowNode { node, by: -random.between(0.08, 0.2) });
        }
        if random.chance(0.06) {
            happens(nights / 4 + random.below(nights / 2 + 1), nights, Happened::NewCheck);
        }
        if random.chance(0.05) {
            let to = format!("{}_v2", entry.check);
            happens(nights / 4 + random.below(nights / 2 + 1), nights, Happened::Renamed { to });
        }
        if random.chance(0.05) {
            happens(random.below(nights), nights, Happened::Rewritten { by: REWRITTEN });
        }
        all.extend(seen(of_check));
    }
    for _ in 0..random.below(3) {
        let from = random.below(nights);
        let until = (from + 1 + random.below(6)).min(nights);
        all.push(Truth { check: String::new(), variable: String::new(), from, until, happened: Happened::Outage });
    }
    all.sort_by_key(|truth| truth.from);
    all
}

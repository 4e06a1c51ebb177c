//! The measurements of one session of the example.

use crate::sample::{
    random::Random,
    year::{
        catalogue::{Entry, FigureEntry},
        system::{ExampleSystem, Happened, Truth},
    },
};
use muster_core::{
    rules::perf::Direction,
    stats::{as_float, median},
};

/// A session.
#[derive(Debug, Clone, PartialEq)]
pub struct ExampleSession {
    /// The place of its night in the year.
    pub night: usize,
    /// Microseconds since the epoch.
    pub started: i64,
    pub cases: Vec<ExampleCase>,
}

/// A case, with its attempts in order.
#[derive(Debug, Clone, PartialEq)]
pub struct ExampleCase {
    pub check: String,
    pub description: &'static str,
    pub parameter: Option<(&'static str, &'static str)>,
    pub partition: &'static str,
    /// Another text for a check that measures in another way.
    pub version: u32,
    pub attempts: Vec<ExampleAttempt>,
}

/// An attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct ExampleAttempt {
    pub ended: Ended,
    pub nodes: Vec<String>,
    /// The time of the start, in seconds since that of the session; `seconds` is the length.
    pub begun: f64,
    pub seconds: f64,
    pub figures: Vec<ExampleFigure>,
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    Pass,
    /// A figure missed its reference.
    Slow,
    /// Its output was not what it has to be.
    Insane,
    /// Its node went away.
    Lost {
        node: String,
    },
}

/// A figure.
#[derive(Debug, Clone, PartialEq)]
pub struct ExampleFigure {
    pub variable: &'static str,
    pub key: Option<&'static str>,
    pub unit: &'static str,
    pub direction: Option<Direction>,
    /// Set if there is one for each node.
    pub node: Option<String>,
    pub value: f64,
    pub reference: f64,
}

impl ExampleSession {
    /// The values of a variable, or of one row of its table, in the first attempts that measured it, of all cases of a check.
    pub fn first_values(&self, check: &str, variable: &str, key: Option<&str>) -> Vec<f64> {
        let first = |case: &ExampleCase| {
            let measured = case.attempts.iter().find(|attempt| !attempt.figures.is_empty())?;
            let of_variable = measured.figures.iter().filter(|figure| figure.variable == variable && figure.key == key);
            // Cases differ in their level: relative to it.
            let values: Vec<f64> = of_variable.map(|figure| figure.value / figure.reference).collect();
            median(&values)
        };
        self.cases.iter().filter(|case| case.check == check).filter_map(first).collect()
    }
}

/// A figure may be this much worse than its reference.
const TOLERANCE: f64 = 0.1;
const DAY: i64 = 86_400_000_000;
const DIP: f64 = -0.15;

/// The sessions of a night.
pub(super) fn sessions(system: &ExampleSystem, night: usize, evening: i32, random: &Random) -> Vec<ExampleSession> {
    let is_out = |truth: &&Truth| truth.happened == Happened::Outage && holds(truth, night);
    let mut draw = random.clone();
    if system.truth.iter().any(|truth| is_out(&truth)) || draw.chance(0.01) {
        return Vec::new();
    }
    let count: u64 = if draw.chance(0.03) { 2 } else { 1 };
    // A night in which a node goes away, and takes what runs on it along.
    let lost = draw.chance(0.004).then(|| system.nodes[draw.below(system.nodes.len())].clone());
    let begins = i64::from(evening) * DAY + 22 * 3_600_000_000;
    let of = |number: u64| {
        let mut random = random.part(number);
        let hours = i64::try_from(number).unwrap_or(0) * 3;
        let started = begins + hours * 3_600_000_000 + i64::from(u32::try_from(random.below(1_800)).unwrap_or(0)) * 1_000_000;
        let mut clock = 2.0;
        let context = Context { system, night, is_weekend: (i64::from(evening) + 3).rem_euclid(7) >= 5, lost: lost.as_deref() };
        let cases =
            system.checks.iter().flat_map(|entry| context.cases(entry)).map(|case| context.run(case, &mut clock, &mut random));
        ExampleSession { night, started, cases: cases.collect() }
    };
    (0..count).map(of).collect()
}

fn holds(truth: &Truth, night: usize) -> bool {
    (truth.from..truth.until).contains(&night)
}

struct Context<'a> {
    system: &'a ExampleSystem,
    night: usize,
    is_weekend: bool,
    lost: Option<&'a str>,
}

/// A case before it runs: its check, and the place of its parameter's value.
type Planned = (&'static Entry, Option<usize>);

impl Context<'_> {
    /// The cases of a check, if it exists.
    fn cases(&self, entry: &'static Entry) -> Vec<Planned> {
        let is_new = |truth: &&Truth| truth.happened == Happened::NewCheck && truth.check == entry.check;
        if self.system.truth.iter().find(is_new).is_some_and(|truth| self.night < truth.from) {
            return Vec::new();
        }
        match entry.parameter {
            None => vec![(entry, None)],
            Some((_, values)) => (0..values.len()).map(|place| (entry, Some(place))).collect(),
        }
    }

    /// What holds of a check tonight.
    fn of_check<'b>(&'b self, entry: &'b Entry) -> impl Iterator<Item = &'b Truth> {
        self.system.truth.iter().filter(|truth| truth.check == entry.check && holds(truth, self.night))
    }

    fn run(&self, (entry, place): Planned, clock: &mut f64, random: &mut Random) -> ExampleCase {
        let renamed = self.of_check(entry).find_map(|truth| match &truth.happened {
            Happened::Renamed { to } => Some(to.clone()),
            Happened::Step { .. }
            | Happened::Drift { .. }
            | Happened::Weekend { .. }
            | Happened::SlowNode { .. }
            | Happened::Outage
            | Happened::NewCheck
            | Happened::Rewritten { .. } => None,
        });
        let is_rewritten = self.of_check(entry).any(|truth| matches!(truth.happened, Happened::Rewritten { .. }));
        let mut attempts = Vec::new();
        while attempts.len() < 2 && attempts.last().is_none_or(|last: &ExampleAttempt| last.ended != Ended::Pass) {
            let attempt = self.attempt(entry, place, *clock, random);
            *clock += attempt.seconds + 3.0;
            attempts.push(attempt);
        }
        ExampleCase {
            check: renamed.unwrap_or_else(|| entry.check.to_owned()),
            description: entry.description,
            parameter: entry.parameter.zip(place).map(|((name, values), place)| (name, values[place])),
            partition: entry.partition,
            version: u32::from(is_rewritten) + 1,
            attempts,
        }
    }

    fn attempt(&self, entry: &Entry, place: Option<usize>, begun: f64, random: &mut Random) -> ExampleAttempt {
        let nodes = if entry.is_per_node { self.system.nodes.clone() } else { self.some_nodes(random) };
        let seconds = entry.seconds * random.between(0.95, 1.1);
        let lost = nodes.iter().find(|node| Some(node.as_str()) == self.lost).filter(|_| random.chance(0.7)).cloned();
        let failed =
            if let Some(node) = lost { Some(Ended::Lost { node }) } else { random.chance(0.003).then_some(Ended::Insane) };
        if let Some(ended) = failed {
            return ExampleAttempt { ended, nodes, begun, seconds: seconds / 2.0, figures: Vec::new() };
        }
        let figures: Vec<ExampleFigure> =
            entry.figures.iter().flat_map(|figure| self.figure(entry, figure, place, &nodes, random)).collect();
        let ended = if figures.iter().any(ExampleFigure::misses) { Ended::Slow } else { Ended::Pass };
        ExampleAttempt { ended, nodes, begun, seconds, figures }
    }

    /// Two neighbours.
    fn some_nodes(&self, random: &mut Random) -> Vec<String> {
        let first = random.below(self.system.nodes.len().saturating_sub(1).max(1));
        self.system.nodes.iter().skip(first).take(2).cloned().collect()
    }

    fn figure(
        &self,
        entry: &Entry,
        figure: &FigureEntry,
        place: Option<usize>,
        nodes: &[String],
        random: &mut Random,
    ) -> Vec<ExampleFigure> {
        // Larger sizes are a little faster.
        let size = 1.0 + 0.04 * as_float(place.unwrap_or(0));
        let reference = figure.level * self.system.speed * size;
        let usual = reference * self.change(entry, figure);
        let dip = if random.chance(0.01) { DIP } else { 0.0 };
        let value = |slow: f64, random: &mut Random| {
            let noise = match figure.direction {
                Some(Direction::Lower) => -figure.noise.draw(random),
                Some(Direction::Higher) | None => figure.noise.draw(random),
            };
            // Worse is slower: a rate sinks, a time grows.
            let worse = (1.0 + dip) * (1.0 + slow);
            let level = if figure.direction == Some(Direction::Lower) { usual / worse } else { usual * worse };
            round(level * (1.0 + figure.spread * noise))
        };
        let of = |node: Option<String>, slow: f64, random: &mut Random| ExampleFigure {
            variable: figure.variable,
            key: figure.key,
            unit: figure.unit,
            direction: figure.direction,
            node,
            value: value(slow, random),
            reference: round(reference),
        };
        if !entry.is_per_node {
            return vec![of(None, 0.0, random)];
        }
        nodes.iter().map(|node| of(Some(node.clone()), self.slowness(entry, node), random)).collect()
    }

    /// What all that happened to a figure makes of its level tonight. What happened to a table happened to all of its rows.
    fn change(&self, entry: &Entry, figure: &FigureEntry) -> f64 {
        let is_meant = |truth: &&Truth| truth.variable.is_empty() || truth.variable == figure.variable;
        let of = |truth: &Truth| match &truth.happened {
            Happened::Step { by } | Happened::Rewritten { by } => *by,
            Happened::Drift { by } => by * as_float(self.night + 1 - truth.from) / as_float(truth.until - truth.from),
            Happened::Weekend { by } if self.is_weekend => *by,
            Happened::Weekend { .. }
            | Happened::SlowNode { .. }
            | Happened::Outage
            | Happened::NewCheck
            | Happened::Renamed { .. } => 0.0,
        };
        self.of_check(entry).filter(is_meant).map(|truth| 1.0 + of(truth)).product()
    }

    fn slowness(&self, entry: &Entry, wanted: &str) -> f64 {
        let mut slowness = 0.0;
        for truth in self.of_check(entry) {
            if let Happened::SlowNode { node, by } = &truth.happened
                && node == wanted
            {
                slowness += by;
            }
        }
        slowness
    }
}

impl ExampleFigure {
    /// Returns the bound of good values: they are at least this much, or at most.
    pub fn bound(&self) -> f64 {
        match self.direction {
            Some(Direction::Lower) => round(self.reference * (1.0 + TOLERANCE)),
            Some(Direction::Higher) | None => round(self.reference * (1.0 - TOLERANCE)),
        }
    }

    pub fn misses(&self) -> bool {
        match self.direction {
            Some(Direction::Lower) => self.value > self.bound(),
            Some(Direction::Higher) => self.value < self.bound(),
            None => false,
        }
    }
}

/// Four significant digits, as benchmarks print them.
fn round(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

//! A reader of Python that runs nothing: it follows straight lines and branches, and knows of every value whether it is
//! a constant or how Muster will compute it.
//!
//! ```text
//! class body, hooks -stmt-> attributes of the test          a branch joins what its two sides leave (value::join)
//! expression -expr, call, methods, sanity, facts-> Value    or a Stop: the line, why, what to write instead
//! ```
//! A [`Stop`] ends one statement. What the statement would have assigned is [`Value::Unknown`] from then on, so that
//! nothing is derived from a guess and nothing is reported twice.

#![allow(
    clippy::unused_self,
    clippy::self_only_used_in_recursion,
    reason = "what the reader does is a method of it, whether it needs the state today or not"
)]

pub(crate) mod call;
pub(crate) mod expr;
mod stmt;
pub(crate) mod test;

pub(crate) use test::{Parameter, Test};

use crate::{
    report::{Level, Refusal},
    value::{ClassId, Value, cond::Cond},
    world::World,
};
use std::collections::BTreeMap;

/// Steps after which a file is no check any more.
const MOST_STEPS: u32 = 50_000;
/// Calls within each other.
const MOST_CALLS: usize = 24;
/// Parts that a value may have: branches multiply.
const MOST_PARTS: usize = 4_000;

/// Why an expression has no value here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stop {
    /// The line.
    pub line: u32,
    pub level: Level,
    /// The reason; empty if it was reported already.
    pub why: String,
    /// A suggestion of what to write instead.
    pub instead: Option<String>,
}

/// What each place, a file and line, sets, by name.
pub(crate) type Sets = BTreeMap<String, BTreeMap<(usize, u32), Value>>;

/// A value, or why there is none.
pub(crate) type Made<T = Value> = Result<T, Stop>;

impl Stop {
    /// Not carried over.
    pub(crate) fn new(line: u32, why: impl Into<String>) -> Self {
        Self { line, level: Level::Refused, why: why.into(), instead: None }
    }

    /// It was reported already.
    pub(crate) fn silent(line: u32) -> Self {
        Self::new(line, "")
    }

    /// What to write instead.
    pub(crate) fn instead(mut self, instead: impl Into<String>) -> Self {
        self.instead = Some(instead.into());
        self
    }

    /// With another weight.
    pub(crate) fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

/// What a branch may change.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct State {
    /// The test's attributes.
    pub attrs: Vec<(String, Value)>,
    /// The names of the function.
    pub locals: Vec<(String, Value)>,
}

/// Where a function runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    file: usize,
    class: Option<ClassId>,
}

/// A reader.
#[derive(Debug)]
pub(crate) struct Interp<'w> {
    /// All files.
    pub world: &'w World,
    /// The test, if there is one.
    pub test: Test,
    /// The values that are known now.
    pub state: State,
    /// The parts of the source that could not be carried over.
    pub refusals: Vec<Refusal>,
    /// Conditions under which the test is skipped, each with its reason and line.
    pub skips: Vec<(Cond, Value, u32)>,
    /// The places where attributes were last set: the file and line.
    pub lines: BTreeMap<String, (usize, u32)>,
    /// Every place that sets an attribute, or an entry of one, with what it sets there.
    pub sets: Sets,
    /// An unknown part of a list or mapping is left out of it, instead of all of it.
    pub is_lenient: bool,
    /// Partition and environment are not chosen yet.
    pub is_early: bool,
    /// Manifests by path.
    pub manifests: &'w dyn Manifests,
    pub(crate) frame: Frame,
    path: Vec<Cond>,
    calls: usize,
    steps: u32,
}

/// Files and folders that checks name; this crate reads none.
pub trait Manifests: std::fmt::Debug {
    /// The text of a file that a check in `beside` names by `path`.
    fn read(&self, beside: &str, path: &str) -> Option<String>;

    /// Returns whether there is a folder to be staged, by its path in the command line; or what is wrong with it.
    fn folder(&self, path: &str) -> Result<bool, String>;
}

impl<'w> Interp<'w> {
    /// A reader at the top of a file.
    pub(crate) fn new(world: &'w World, file: usize, manifests: &'w dyn Manifests) -> Self {
        Self {
            world,
            test: Test::default(),
            state: State::default(),
            refusals: vec![],
            skips: vec![],
            lines: BTreeMap::new(),
            sets: Sets::new(),
            is_lenient: false,
            is_early: false,
            manifests,
            frame: Frame { file, class: None },
            path: vec![],
            calls: 0,
            steps: 0,
        }
    }

    /// Tells of something at a line of the current file.
    pub(crate) fn tell(&mut self, stop: Stop) {
        if stop.why.is_empty() {
            return;
        }
        let file = &self.world.files[self.frame.file];
        let what = shortened(file.line(stop.line));
        let Stop { line, level, why, instead } = stop;
        self.refusals.push(Refusal { file: file.path.clone(), line, level, what, why, instead });
    }

    /// Notes where an attribute, or an entry of one, is set.
    pub(crate) fn mark(&mut self, name: &str, value: &Value, line: u32) {
        let place = (self.frame.file, line);
        self.sets.entry(name.to_owned()).or_default().insert(place, value.clone());
        if self.path.is_empty() {
            self.lines.insert(name.to_owned(), place);
        } else {
            self.lines.entry(name.to_owned()).or_insert(place);
        }
    }

    /// Goes to another file or class until the returned frame is put back.
    pub(crate) fn enter(&mut self, file: usize, class: Option<ClassId>) -> Frame {
        std::mem::replace(&mut self.frame, Frame { file, class })
    }

    fn step(&mut self, line: u32) -> Made<()> {
        self.steps += 1;
        if self.steps > MOST_STEPS { Err(Stop::new(line, "this takes too many steps to follow")) } else { Ok(()) }
    }

    /// The condition under which the current line runs.
    fn here(&self) -> Cond {
        Cond::all(self.path.iter().cloned())
    }
}

/// A line of source, cut where nobody reads on.
pub(crate) fn shortened(line: &str) -> String {
    const WIDTH: usize = 100;
    if line.chars().count() <= WIDTH { line.to_owned() } else { line.chars().take(WIDTH - 3).chain("...".chars()).collect() }
}

/// How many parts a value has; stops counting where there are too many.
fn parts(value: &Value) -> usize {
    let sum = |values: &mut dyn Iterator<Item = &Value>| {
        let mut total = 1;
        for value in values {
            total += parts(value);
            if total > MOST_PARTS {
                break;
            }
        }
        total
    };
    match value {
        Value::List(items) | Value::Tuple(items) => sum(&mut items.iter()),
        Value::Dict(entries) => sum(&mut entries.iter().map(|(_, value)| value)),
        Value::Choice(choice) | Value::Items(choice) => sum(&mut choice.values()),
        Value::Str(text) => 1 + text.len() / 64,
        Value::Text(pieces) => pieces.len(),
        Value::Cel(cel) => 1 + cel.text.len() / 64,
        Value::Thing(crate::value::Thing::Manifest(manifest)) => parts(&manifest.patch),
        _ => 1,
    }
}

/// Sets or replaces a name.
pub(crate) fn set(names: &mut Vec<(String, Value)>, name: &str, value: Value) {
    match names.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => *known = value,
        None => names.push((name.to_owned(), value)),
    }
}

/// What a name stands for.
pub(crate) fn get<'a>(names: &'a [(String, Value)], name: &str) -> Option<&'a Value> {
    names.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

//! Limits of one evaluation. CEL always ends, but `range(100000).all(i, range(100000).all(j, ...))` not within a day.
//!
//! ```text
//! Scope (Effort) -begin-> Meter -`@meter`-> @step, @held in the tree, and the functions that read the text
//! ```
//! The tree carries the stops (see `tree`): every iteration of a loop, and everything that is put into a list or a map, asks the
//! meter. CEL takes an error of one operand of `||` for undecided, so a meter that has refused once keeps refusing: every loop
//! ends at its next iteration, and the evaluation as a whole fails.
//!
//! Nothing here reads a clock: the caller passes one in.

use super::{
    functions::fail,
    value::{impl_val, text_of},
};
use cel::{
    ExecutionError,
    common::{
        types::{CelList, CelMap, Type},
        value::Val,
    },
};
use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// The name of the hidden argument. No user can write it.
pub(crate) const METER: &str = "@meter";

/// The bytes of text that count as one element.
const BYTES_A_CELL: u64 = 32;
/// What an evaluation may still do when another one with the same effort was stopped: mistakes come in thousands of cases.
const STEPS_AFTER_A_STOP: u64 = 1000;

/// A clock that never goes back: the time since some moment.
pub type Clock = fn() -> Duration;

/// The limits of one evaluation.
#[derive(Debug)]
pub struct Effort {
    /// Iterations of loops.
    pub steps: u64,
    /// Elements that are put into lists and maps, with all that is in them.
    pub cells: u64,
    /// The longest time, by this clock.
    pub time: Option<(Clock, Duration)>,
    /// No caller stops long or large operations from outside.
    pub is_alone: bool,
    /// An evaluation was stopped: later ones get a small limit.
    spent: AtomicBool,
}

impl Effort {
    /// The limits without a clock.
    pub const fn counted(steps: u64) -> Self {
        Self { steps, cells: 10_000_000, time: None, is_alone: true, spent: AtomicBool::new(false) }
    }

    /// The limits for what is read from files: ten million elements, and this time.
    pub const fn timed(clock: Clock, limit: Duration) -> Self {
        Self { steps: u64::MAX, cells: 10_000_000, time: Some((clock, limit)), is_alone: true, spent: AtomicBool::new(false) }
    }

    /// No limit: the caller stops the process.
    pub const fn boundless() -> Self {
        Self { steps: u64::MAX, cells: u64::MAX, time: None, is_alone: false, spent: AtomicBool::new(false) }
    }

    /// A copy that counts from zero.
    #[must_use]
    pub fn renewed(&self) -> Self {
        let Self { steps, cells, time, is_alone, .. } = *self;
        Self { steps, cells, time, is_alone, spent: AtomicBool::new(false) }
    }
}

/// At most half a minute.
impl Default for Effort {
    fn default() -> Self {
        Self::counted(20_000_000)
    }
}

/// Counts the work of one evaluation.
#[derive(Clone)]
pub(crate) struct Meter(Arc<Count>);

struct Count {
    effort: Arc<Effort>,
    started: Option<Duration>,
    steps: AtomicU64,
    cells: AtomicU64,
    stopped: OnceLock<String>,
}

impl Meter {
    pub(crate) fn begin(effort: Arc<Effort>) -> Self {
        let started = effort.time.map(|(clock, _)| clock());
        Self(Arc::new(Count { effort, started, steps: AtomicU64::new(0), cells: AtomicU64::new(0), stopped: OnceLock::new() }))
    }

    /// To be called at every iteration of a loop, and among many matches.
    pub(crate) fn step(&self) -> Result<(), ExecutionError> {
        let Count { effort, started, steps, stopped, .. } = &*self.0;
        let steps = steps.fetch_add(1, Relaxed) + 1;
        let late = || effort.time.zip(*started).filter(|((clock, limit), started)| clock().saturating_sub(*started) >= *limit);
        let why = if stopped.get().is_some() {
            return Err(over());
        } else if steps > effort.steps {
            format!("this takes more than {} steps", effort.steps)
        } else if effort.spent.load(Relaxed) && steps > STEPS_AFTER_A_STOP {
            "not evaluated: another expression exceeded its limit; fix that one first".to_owned()
        } else if let Some(((_, limit), _)) = late() {
            format!("this did not end within {} s", limit.as_secs_f64())
        } else {
            return Ok(());
        };
        self.stop(why)
    }

    /// To be called with everything that is put into a list or a map.
    pub(crate) fn hold(&self, value: &dyn Val) -> Result<(), ExecutionError> {
        self.step()?;
        let most = self.0.effort.cells;
        if !self.is_alone() {
            return Ok(());
        }
        let cells = self.0.cells.fetch_add(weight(value), Relaxed);
        if cells <= most { Ok(()) } else { self.stop(format!("this makes lists of more than {most} elements together")) }
    }

    fn stop(&self, why: String) -> Result<(), ExecutionError> {
        self.0.effort.spent.store(true, Relaxed);
        let _ = self.0.stopped.set(why);
        Err(over())
    }

    /// Why the evaluation was stopped, if it was.
    pub(crate) fn stopped(&self) -> Option<&str> {
        self.0.stopped.get().map(String::as_str)
    }

    /// Whether no caller stops long operations from outside.
    pub(crate) fn is_alone(&self) -> bool {
        self.0.effort.is_alone
    }
}

fn over() -> ExecutionError {
    fail("", "it was stopped")
}

/// How many elements a value holds, itself included.
fn weight(value: &dyn Val) -> u64 {
    if let Some(list) = value.downcast_ref::<CelList>() {
        return 1 + list.inner().iter().map(|item| weight(item.as_ref())).sum::<u64>();
    }
    if let Some(map) = value.downcast_ref::<CelMap>() {
        return 1 + map.inner().values().map(|item| 1 + weight(item.as_ref())).sum::<u64>();
    }
    1 + text_of(value).map_or(0, |text| text.len() as u64 / BYTES_A_CELL)
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Meter").field(&self.stopped()).finish()
    }
}

static METER_TYPE: Type = Type::new_unspecified_type("meter");

impl_val!(Meter, METER_TYPE);

//! The order in which the launches of a session reach sbatch, for one cluster.
//!
//! ```text
//! waits ---> its turn: one sbatch ---> let in, a mistake: leaves
//!   ^  '                          '--> no room, no answer: keeps its place
//!   |  '--> no turn within PATIENCE: its launch returns, and keeps its place -.
//!   '-------------------------------------------------------------------------'
//! ```
//! First come, first served, among the launches that wait now. So no launch uses up its own limit by waiting for others, and one
//! that was never given to sbatch is known to have created nothing.
//!
//! Where a site takes no more jobs, or nobody answers, one launch asks for all. Limits on jobs count those of a partition, an
//! account and a QOS: others are let through. An own job that ends makes room: as many jobs as there were at the last refusal are
//! let through at once.
//!
//! A thousand launches may wait, and each sbatch is news for two of them at most: who is next, and who looks for room from now on.

use muster_core::{case::Identifier, decisions::backoff::Backoff};
use parking_lot::Mutex;
use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

/// How long a launch waits before it returns: a session that is cancelled waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// The same after an answer that was lost: a launch that returns says that nothing was created.
pub(crate) const LONG_PATIENCE: Duration = Duration::from_mins(2);
/// A site that is full is asked so often, and more often while own jobs run.
const NO_ROOM: Duration = Duration::from_secs(30);
const OWN_JOBS: Duration = Duration::from_secs(5);
/// And never sooner than this after a refusal, whatever ends.
const SOONEST: Duration = Duration::from_secs(1);
/// When a cluster that does not answer is asked again.
const AWAY: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(5) };
/// How often the first launch that waits looks whether own jobs have ended.
const LOOK: Duration = Duration::from_millis(250);
/// A launch that has not come back for so long has been given up.
const GIVEN_UP: Duration = Duration::from_mins(2);

/// What a site counts jobs by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LimitKey(String);

impl LimitKey {
    /// By the options that a script begins with.
    pub(crate) fn of(script: &str) -> Self {
        const OPTIONS: [&str; 4] = ["--partition=", "--account=", "--qos=", "--reservation="];
        let lines = script.lines().take_while(|line| line.starts_with('#')).filter_map(|line| line.strip_prefix("#SBATCH "));
        Self(lines.filter(|option| OPTIONS.iter().any(|known| option.starts_with(known))).collect::<Vec<_>>().join(" "))
    }
}

/// Why a launch has no turn yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delay {
    /// Others come first.
    Busy,
    /// The site takes no more jobs now: its words.
    Full(String),
    /// The cluster does not answer.
    Away(String),
}

/// See the head of the file.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    /// Somebody has the turn.
    busy: bool,
    full: HashMap<LimitKey, Full>,
    away: Option<Away>,
    own: Vec<Own>,
    /// Those that sbatch has not seen.
    unsubmitted: HashSet<Identifier>,
}

#[derive(Debug)]
struct Waiting {
    who: Identifier,
    limits: LimitKey,
    /// Its launch waits; else it has returned, and may come back.
    is_present: bool,
    since: Instant,
    /// It may be its turn, or it looks for room from now on.
    news: Arc<Notify>,
}

#[derive(Debug)]
struct Full {
    why: String,
    /// Own jobs under the same limits when it refused.
    own: usize,
    asked: Instant,
}

#[derive(Debug)]
struct Away {
    why: String,
    failures: u32,
    asked: Instant,
}

/// A job of this session that was let in.
struct Own {
    limits: LimitKey,
    is_over: Box<dyn Fn() -> bool + Send>,
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl State {
    /// Gives it the turn if it is the next.
    fn ask(&mut self, who: &Identifier, now: Instant, own_jobs: bool) -> bool {
        // Only where a site is full it matters which own jobs have ended.
        if !self.full.is_empty() {
            self.forget_ended();
        }
        let is_next = self.next(now, own_jobs).is_some_and(|next| next.who == *who);
        self.busy |= is_next;
        is_next
    }

    /// Who may submit now.
    fn next(&self, now: Instant, own_jobs: bool) -> Option<&Waiting> {
        let is_free = !self.busy && self.away.as_ref().is_none_or(|away| away.is_due(now));
        let mut present = self.waiting.iter().filter(|waiting| waiting.is_present && is_free);
        present.find(|waiting| self.lets_in(&waiting.limits, now, own_jobs))
    }

    fn forget_ended(&mut self) {
        self.own.retain(|own| !(own.is_over)());
    }

    /// Why it has no turn.
    fn delay(&self, who: &Identifier) -> Delay {
        let full = self.waiting.iter().find(|waiting| waiting.who == *who).and_then(|waiting| self.full.get(&waiting.limits));
        match (&self.away, full) {
            (Some(away), _) => Delay::Away(away.why.clone()),
            (None, Some(full)) => Delay::Full(full.why.clone()),
            (None, None) => Delay::Busy,
        }
    }

    /// Whether a job under these limits may be tried now.
    fn lets_in(&self, limits: &LimitKey, now: Instant, own_jobs: bool) -> bool {
        let Some(full) = self.full.get(limits) else { return true };
        let pause = if self.own(limits) < full.own {
            SOONEST
        } else {
            // Those of other limits ask too.
            let asking = u32::try_from(self.full.len()).unwrap_or(u32::MAX);
            if own_jobs || !self.own.is_empty() { OWN_JOBS * asking } else { NO_ROOM * asking }
        };
        now >= full.asked + pause
    }

    fn own(&self, limits: &LimitKey) -> usize {
        self.own.iter().filter(|own| own.limits == *limits).count()
    }

    /// The first of its limits looks for own jobs that have ended; the others wait for news.
    fn looks(&self, limits: &LimitKey) -> Option<&Waiting> {
        self.waiting.iter().find(|waiting| waiting.is_present && waiting.limits == *limits)
    }

    /// Returns where its news come.
    fn enter(&mut self, who: &Identifier, limits: &LimitKey, is_first: bool, now: Instant) -> Arc<Notify> {
        self.waiting.retain(|waiting| waiting.is_present || now < waiting.since + GIVEN_UP);
        if let Some(known) = self.waiting.iter_mut().find(|waiting| waiting.who == *who) {
            known.is_present = true;
            return Arc::clone(&known.news);
        }
        let news = Arc::new(Notify::new());
        let new = Waiting { who: who.clone(), limits: limits.clone(), is_present: true, since: now, news: Arc::clone(&news) };
        let at = if is_first { 0 } else { self.waiting.len() };
        self.waiting.insert(at, new);
        news
    }

    fn leave(&mut self, who: &Identifier) {
        self.waiting.retain(|waiting| waiting.who != *who);
    }

    /// Its launch returns.
    fn pauses(&mut self, who: &Identifier, now: Instant) {
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.who == *who) {
            (waiting.is_present, waiting.since) = (false, now);
        }
    }

    fn let_in(&mut self, limits: &LimitKey, is_over: Box<dyn Fn() -> bool + Send>) {
        self.away = None;
        self.forget_ended();
        // There is more room than at the last refusal.
        if self.full.get(limits).is_some_and(|full| self.own(limits) >= full.own) {
            self.full.remove(limits);
        }
        self.own.push(Own { limits: limits.clone(), is_over });
    }

    fn refused(&mut self, limits: &LimitKey, why: String, now: Instant) {
        self.away = None;
        self.forget_ended();
        let own = self.own(limits);
        self.full.insert(limits.clone(), Full { why, own, asked: now });
    }

    fn no_answer(&mut self, why: String, now: Instant) {
        let failures = self.away.as_ref().map_or(0, |away| away.failures) + 1;
        self.away = Some(Away { why, failures, asked: now });
    }
}

impl Away {
    fn is_due(&self, now: Instant) -> bool {
        now >= self.asked + AWAY.after(self.failures)
    }
}

impl Queue {
    /// Waits for the turn to submit. `is_first`: before all others. `own_jobs`: whether jobs of this session run that hold what
    /// others wait for. Returns the turn, or why there is none within `patience`.
    pub(crate) async fn turn(
        &self,
        who: &Identifier,
        limits: &LimitKey,
        is_first: bool,
        patience: Duration,
        own_jobs: impl Fn() -> bool,
    ) -> Result<Turn<'_>, Delay> {
        let until = Instant::now() + patience;
        let news = self.state.lock().enter(who, limits, is_first, Instant::now());
        let mut turn = Turn { queue: self, who: who.clone(), limits: limits.clone(), is_held: false, was_unsubmitted: false };
        loop {
            let (now, own_jobs) = (Instant::now(), own_jobs());
            let looks = {
                let mut state = self.state.lock();
                if state.ask(who, now, own_jobs) {
                    turn.is_held = true;
                    return Ok(turn);
                }
                if now >= until {
                    return Err(state.delay(who));
                }
                state.looks(limits).is_some_and(|first| first.who == *who)
            };
            _ = timeout_at(if looks { until.min(now + LOOK) } else { until }, news.notified()).await;
        }
    }

    /// Nothing of it exists: its files are new, or it was looked for.
    pub(crate) fn is_unsubmitted(&self, who: &Identifier) -> bool {
        self.state.lock().unsubmitted.contains(who)
    }

    pub(crate) fn set_unsubmitted(&self, who: &Identifier) {
        self.state.lock().unsubmitted.insert(who.clone());
    }

    /// It runs, though its sbatch gave no answer: it counts as an own job.
    pub(crate) fn found(&self, who: &Identifier, limits: &LimitKey, is_over: impl Fn() -> bool + Send + 'static) {
        let mut state = self.state.lock();
        state.leave(who);
        state.own.push(Own { limits: limits.clone(), is_over: Box::new(is_over) });
    }
}

/// The right to run sbatch, or a place in the queue for it. Dropped, another has it.
#[derive(Debug)]
pub(crate) struct Turn<'q> {
    queue: &'q Queue,
    who: Identifier,
    limits: LimitKey,
    is_held: bool,
    /// Nothing of it existed before.
    was_unsubmitted: bool,
}

impl Turn<'_> {
    /// From now on it may exist.
    pub(crate) fn submits(&mut self) {
        self.was_unsubmitted = self.queue.state.lock().unsubmitted.remove(&self.who);
    }

    /// It was submitted.
    pub(crate) fn let_in(self, is_over: impl Fn() -> bool + Send + 'static) {
        let mut state = self.queue.state.lock();
        state.leave(&self.who);
        state.let_in(&self.limits, Box::new(is_over));
    }

    /// The site takes no more jobs now.
    pub(crate) fn refused(self, why: &str) {
        let mut state = self.queue.state.lock();
        self.created_nothing(&mut state);
        state.refused(&self.limits, why.to_owned(), Instant::now());
    }

    /// The cluster does not answer. `nothing_created`: it was not reached.
    pub(crate) fn no_answer(self, why: &str, nothing_created: bool) {
        let mut state = self.queue.state.lock();
        if nothing_created {
            self.created_nothing(&mut state);
        } else {
            state.leave(&self.who);
        }
        state.no_answer(why.to_owned(), Instant::now());
    }

    /// It cannot be submitted, and the others may.
    pub(crate) fn mistaken(self) {
        let mut state = self.queue.state.lock();
        state.leave(&self.who);
        self.created_nothing(&mut state);
        state.away = None;
    }

    fn created_nothing(&self, state: &mut State) {
        if self.was_unsubmitted {
            state.unsubmitted.insert(self.who.clone());
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        let now = Instant::now();
        state.pauses(&self.who, now);
        if self.is_held {
            state.busy = false;
        }
        // Whether own jobs run is not known here: who looks asks again in time.
        for waiting in [state.next(now, false), state.looks(&self.limits)].into_iter().flatten() {
            waiting.news.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;

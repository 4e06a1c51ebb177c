//! The queues of the engine: what waits for a slot, what a slot runs, and what becomes of its result.

use crate::{
    case::{
        QueuedCase, contained,
        record::{End, Record},
    },
    crash_points,
    engine::{
        ExecPolicy, Shared,
        dependencies::{Action, Blocked, Release, Waiting},
        releases,
    },
    event::Event,
};
use muster_check::site::{
    Partition,
    quarantine::{self, Standing},
};
use muster_core::{
    decisions::{graph::CaseId, rounds},
    error::chain,
    result::{CaseResult, Outcome, Phase},
};
use muster_host::clock;
use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, atomic::Ordering},
};

/// How many cases that never begin are written to the store at once: it commits what has queued.
const UNSTARTED_AT_ONCE: usize = 64;

/// Cases that share slots, first come, first served.
#[derive(Default)]
pub(super) struct Lane {
    /// Jobs that another process has launched. Each of them takes a slot at once, whether there is one or not.
    launched: VecDeque<Waiting>,
    waiting: VecDeque<Waiting>,
    running: usize,
    pub(super) slots: usize,
}

impl Shared {
    /// Does what the order says, but for what is to be torn down.
    pub(super) fn follow(self: &Arc<Self>, actions: Vec<Action>) -> Vec<Release> {
        let (mut lanes, mut skipped, mut releases) = (BTreeSet::new(), Vec::new(), Vec::new());
        {
            let mut state = self.state();
            for action in actions {
                match action {
                    Action::Begin(waiting) => {
                        let lane = self.lane_of(&waiting.queued.name.partition);
                        let entry = state.lanes.entry(lane.clone()).or_default();
                        // A case whose check is not there any more does not know the limit of its partition.
                        entry.slots = entry.slots.max(self.slots(waiting.queued.max_jobs));
                        let queue = if waiting.queued.is_launched() { &mut entry.launched } else { &mut entry.waiting };
                        queue.push_back(waiting);
                        lanes.insert(lane);
                    }
                    Action::Skip(waiting, blocked) => skipped.push((waiting, blocked)),
                    Action::Release(release) => releases.push(release),
                }
            }
        }
        for lane in lanes {
            self.pump(&lane);
        }
        let skip = |(waiting, Blocked { cause, root }): (Waiting, Blocked)| {
            (waiting, End::new(Outcome::Skip, Phase::Plan, cause), Some(root))
        };
        self.close_unstarted(skipped.into_iter().map(skip).collect());
        releases
    }

    fn slots(&self, max_jobs: usize) -> usize {
        if self.policy == ExecPolicy::Serial { 1 } else { max_jobs.max(1) }
    }

    /// Gives partitions their slots before any of their cases has begun: teardowns after a takeover use them, too.
    pub(super) fn open_lanes<'a>(&self, partitions: impl Iterator<Item = &'a Partition>) {
        let mut state = self.state();
        for partition in partitions {
            let lane = state.lanes.entry(self.lane_of(&partition.name)).or_default();
            lane.slots = lane.slots.max(self.slots(partition.max_jobs));
        }
    }

    /// Begins what a lane has slots for.
    pub(super) fn pump(self: &Arc<Self>, lane: &str) {
        loop {
            let next = {
                let mut state = self.state();
                let is_closed = state.closed.is_some();
                state.lanes.get_mut(lane).and_then(|lane| lane.next(is_closed))
            };
            let Some(waiting) = next else { break };
            self.runtime.spawn(Arc::clone(self).run(waiting, lane.to_owned()));
        }
        self.abort_waiting();
    }

    /// Begins nothing more, for this reason unless there is one already.
    pub(super) fn close(self: &Arc<Self>, why: String) {
        self.state().closed.get_or_insert(why);
        self.news.notify_waiters();
        self.abort_waiting();
    }

    /// Gives everything that waits its result: not started.
    fn abort_waiting(self: &Arc<Self>) {
        let (waiting, actions, why) = {
            let mut state = self.state();
            let Some(why) = state.closed.clone() else { return };
            let mut waiting: Vec<_> = state.lanes.values_mut().flat_map(|lane| std::mem::take(&mut lane.waiting)).collect();
            let (held, actions) = state.dependencies.abort();
            state.releasing += releases(&actions);
            waiting.extend(held);
            (waiting, actions, why)
        };
        // Nothing starts and nothing is skipped any more: only releases are left.
        let releases = self.follow(actions);
        self.release_soon(releases);
        let abort = |waiting| (waiting, End::new(Outcome::Abort, Phase::Plan, why.clone()), None);
        self.close_unstarted(waiting.into_iter().map(abort).collect());
    }

    /// Gives cases that never begin their results: how they end, and which case they wanted.
    fn close_unstarted(self: &Arc<Self>, cases: Vec<(Waiting, End, Option<String>)>) {
        if cases.is_empty() {
            return;
        }
        let shared = Arc::clone(self);
        self.runtime.spawn(async move {
            use futures_util::StreamExt;
            let close = |(waiting, end, blocked_by): (Waiting, End, Option<String>)| {
                let shared = &shared;
                async move {
                    let record = Record::new(&waiting.queued, clock::now());
                    let result = CaseResult { blocked_by, ..record.close(end, clock::now()) };
                    shared.over(waiting.id, result).await;
                }
            };
            futures_util::stream::iter(cases).for_each_concurrent(UNSTARTED_AT_ONCE, close).await;
        });
    }

    /// One case, from its slot to the next one's.
    async fn run(self: Arc<Self>, waiting: Waiting, lane: String) {
        let Waiting { id, mut queued } = waiting;
        if let Some(why) = self.closed_before_the_answer(&mut queued).await {
            self.close_unstarted(vec![(Waiting { id, queued }, End::new(Outcome::Abort, Phase::Plan, why), None)]);
            return self.free_slot(&lane);
        }
        let result = if let Some(scheduler) = self.schedulers.get(&queued.name.partition) {
            contained(&self.context, scheduler, queued).await
        } else {
            let cause = format!("partition {} has no scheduler in this session", queued.name.partition);
            Record::new(&queued, clock::now()).close(End::config(Phase::Plan, cause), clock::now())
        };
        Box::pin(self.over(id, result)).await;
        self.free_slot(&lane);
    }

    fn free_slot(self: &Arc<Self>, lane: &str) {
        if let Some(lane) = self.state().lanes.get_mut(lane) {
            lane.running -= 1;
        }
        self.pump(lane);
    }

    /// Waits until the scheduler of a case has said whether it can run. `Some`: meanwhile it was decided why nothing more begins.
    async fn closed_before_the_answer(&self, queued: &mut QueuedCase) -> Option<String> {
        queued.answer.as_ref()?;
        tokio::select! {
            () = queued.answered() => self.state().closed.clone(),
            // Its plan sees that.
            () = self.context.cancel.cancelled() => None,
        }
    }

    /// What the session makes of a result.
    fn mark(&self, id: CaseId, result: &mut CaseResult) {
        result.flaky = rounds::is_flaky(self.context.session.counting, result) && self.state().dependencies.had_failed(id);
        match self.quarantine.of(&result.name) {
            Standing::Free => {}
            Standing::Quarantined(quarantine) => result.quarantine = Some(quarantine.clone()),
            Standing::Expired(quarantine) => result.warnings.push(format!("it {}", quarantine::expired_note(quarantine))),
        }
    }

    /// A case has its result: on disk first, then for everybody to see.
    async fn over(self: &Arc<Self>, id: CaseId, mut result: CaseResult) {
        self.mark(id, &mut result);
        result.hide(&self.context.secrets);
        // For the store alone: a session remembers thousands of results.
        let log = result.log.take();
        let result = Arc::new(result);
        if let Some(store) = &self.context.store
            && let Err(error) = store.finished_with(&self.context.session.id, &result, log).await
        {
            self.context.not_stored.fetch_add(1, Ordering::Relaxed);
            self.context.emit(Event::Warning(format!("{}: the result is not stored: {}", result.name, chain(&error))));
        }
        crash_points::reached(crash_points::Point::ResultStored);
        self.context.emit(Event::Finished(Arc::clone(&result)));
        let failed = rounds::is_failure(&result);
        let (enough, actions) = {
            let mut state = self.state();
            state.results.push(Arc::clone(&result));
            state.outstanding -= 1;
            state.failures += u32::from(failed);
            let actions = state.dependencies.over(id, &result);
            state.releasing += releases(&actions);
            (failed && self.maxfail.is_some_and(|limit| state.failures >= limit), actions)
        };
        crash_points::reached(crash_points::Point::Reported);
        if enough {
            let failures = self.maxfail.unwrap_or_default();
            let s = if failures == 1 { "" } else { "s" };
            self.close(format!("after {failures} failure{s} (--maxfail)"));
        }
        let releases = self.follow(actions);
        self.news.notify_waiters();
        self.release(releases).await;
    }
}

impl Lane {
    /// What begins now. What runs already is followed even if nothing more is started.
    fn next(&mut self, is_closed: bool) -> Option<Waiting> {
        let is_free = self.running < self.slots && !is_closed;
        let next = match self.launched.pop_front() {
            Some(launched) => launched,
            None if is_free => self.waiting.pop_front()?,
            None => return None,
        };
        self.running += 1;
        Some(next)
    }
}

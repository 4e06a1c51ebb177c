//! The engine: order, `max_jobs` and cancelling of all cases of a session. Longer than other files: all of it shares one lock.
//!
//! A case that waits is an entry in a queue, not a task: a task is made when a slot of its partition is free, and
//! the slot is given back when the case's result is stored. A case that its site has no room for keeps its slot and
//! holds up only its own partition.
//!
//! ```text
//! submit --> order --> lane (one a partition, or one for all: `serial`) --slot free--> run_case --> store --> Finished
//!              |          \ cancelled, or --maxfail reached: Abort -------------------------------> store --> Finished
//!              '-- what it depends on did not pass: Skip -----------------------------------------> store --> Finished
//! ```
//! The last user of what a case has left tears it down before it gives its slot back.

mod dependencies;
mod releases;
mod teardown;

use crate::{
    case::{
        QueuedCase, contained,
        context::Context,
        judging::JudgeIn,
        record::{End, Record},
    },
    crash_points,
    engine::dependencies::{Action, Blocked, Dependencies, Recalled, Release, Waiting},
    event::Event,
    folders::Folders,
};
use muster_check::site::quarantine::{self, List, Standing};
use muster_core::{
    case::SessionId,
    decisions::{graph::CaseId, rounds},
    error::chain,
    job::scheduler::Scheduler,
    live::CaseProgress,
    result::{CaseResult, Outcome, Phase, Session},
    secret::Secrets,
};
use muster_host::clock;
use muster_store::{Owner, Store, StoreError};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, mpsc::UnboundedSender, oneshot},
    task::spawn_blocking,
    time::{sleep, timeout},
};

pub use crate::case::context::InFlight;

/// How many cases that never begin are written to the store at once: it commits what has queued.
const UNSTARTED_AT_ONCE: usize = 64;
/// How long a session that is left at once waits for the end of teardowns: TERM, its grace, KILL, and some margin.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);
const LEAVE_POLL: Duration = Duration::from_millis(20);

/// What a session is made of.
pub struct EngineConfig {
    /// Who began it, where, and how it is called.
    pub session: Session,
    pub folders: Folders,
    /// Where plans and results are kept; `None`: they are not.
    pub ownership: Option<Ownership>,
    /// Who launches in which partition, by the partition's name.
    pub schedulers: BTreeMap<String, Arc<dyn Scheduler>>,
    /// Where events go.
    pub events: UnboundedSender<Event>,
    /// How many cases at once.
    pub policy: ExecPolicy,
    /// After so many failures of a round no further case is started; those that run are let end.
    pub maxfail: Option<u32>,
    /// Cases whose outcome does not count.
    pub quarantine: List,
    /// Where logs are judged.
    pub judge: JudgeIn,
    /// The command that ends what is left, as a person can paste it.
    pub sweep: String,
    /// What no result and no event says.
    pub secrets: Secrets,
}

/// The store, and who holds the session in it.
#[derive(Debug, Clone)]
pub struct Ownership {
    /// Open for writing.
    pub store: Store,
    /// This process.
    pub owner: Owner,
    /// The session begins now: it was not taken over.
    pub is_new: bool,
}

/// `--exec-policy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExecPolicy {
    /// As many cases of a partition at once as its `max_jobs` says.
    #[default]
    Async,
    /// One case at a time, over all partitions, in the order of submission.
    Serial,
}

/// A handle on a running session. Cloning is cheap.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    context: Arc<Context>,
    /// Where cases run. A thread that supervises the session is not part of it.
    runtime: Handle,
    /// This process, if the session is stored.
    owner: Option<Owner>,
    schedulers: BTreeMap<String, Arc<dyn Scheduler>>,
    policy: ExecPolicy,
    maxfail: Option<u32>,
    quarantine: List,
    /// No file system is asked while this is locked: one that does not answer would keep signals from the session.
    state: Mutex<State>,
    /// Notified when a case is over, and when nothing is left to do.
    news: Notify,
}

/// What has ended since the engine was last asked.
#[derive(Debug)]
pub struct Ended {
    /// In the order of their endings.
    pub results: Vec<Arc<CaseResult>>,
    /// Every case submitted so far is over, and what they have left is torn down.
    pub is_idle: bool,
}

#[derive(Default)]
struct State {
    dependencies: Dependencies,
    lanes: BTreeMap<String, Lane>,
    /// Submitted and not over.
    outstanding: usize,
    /// What is being torn down.
    releasing: usize,
    failures: u32,
    /// Why nothing more is started.
    closed: Option<String>,
    /// What nobody has asked for yet, in the order of their endings.
    results: Vec<Arc<CaseResult>>,
}

/// Cases that share slots, first come, first served.
#[derive(Default)]
struct Lane {
    /// Jobs that another process has launched. Each of them takes a slot at once, whether there is one or not.
    launched: VecDeque<Waiting>,
    waiting: VecDeque<Waiting>,
    running: usize,
    slots: usize,
}

impl Engine {
    /// Begins a session without cases, or goes on with one that was taken over. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the session cannot be stored.
    pub async fn begin(config: EngineConfig) -> Result<Self, StoreError> {
        let EngineConfig { session, folders, ownership, schedulers, events, policy, maxfail, quarantine, judge, sweep, secrets } =
            config;
        if let Some(Ownership { store, owner, is_new: true }) = &ownership {
            store.begin(&session, owner).await?;
        }
        let (store, owner) = ownership.map(|Ownership { store, owner, .. }| (store, owner)).unzip();
        let context = Arc::new(Context::new(session, folders, store, events, judge, sweep, secrets));
        let (state, news) = (Mutex::default(), Notify::new());
        let runtime = Handle::current();
        let shared = Shared { context, runtime, owner, schedulers, policy, maxfail, quarantine, state, news };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Puts cases at the end of the queues of their partitions, in any order: a case waits for what it needs, and what others of
    /// them need stays until they are over. What a case needs is among them, or was submitted or recalled before. Their
    /// results arrive in the receivers, in the order of the cases, and as events.
    pub fn submit_all(&self, cases: impl IntoIterator<Item = QueuedCase>) -> Vec<oneshot::Receiver<Arc<CaseResult>>> {
        let (batch, results) = cases
            .into_iter()
            .map(|queued| {
                let (answer, result) = oneshot::channel();
                ((queued, answer), result)
            })
            .unzip();
        self.take(batch);
        results
    }

    /// The scheduler of a partition.
    pub fn scheduler(&self, partition: &str) -> Option<&Arc<dyn Scheduler>> {
        self.shared.schedulers.get(partition)
    }

    /// Says something that no case suffers from, but that is worth a line.
    pub(crate) fn warn(&self, text: String) {
        self.shared.context.emit(Event::Warning(text));
    }

    /// What is known of a case that ended before: those that need it count on it, and it is torn down when they are over.
    /// It is not reported again. Blocks: looks at its stage folder.
    pub fn recall(&self, result: Arc<CaseResult>) {
        let recalled = Recalled::look(result, self.shared.context.folders.keeps_stages());
        self.shared.state().dependencies.recall(recalled);
    }

    fn take(&self, batch: Vec<(QueuedCase, oneshot::Sender<Arc<CaseResult>>)>) {
        // What another process has launched does not wait: the store knows more of it.
        for (queued, _) in batch.iter().filter(|(queued, _)| !queued.is_launched()) {
            let progress = CaseProgress { attempt: queued.attempt, since: clock::now(), ..CaseProgress::default() };
            self.shared.context.progress(&queued.name, progress, Some(&queued.about));
        }
        let actions = {
            let mut state = self.shared.state();
            state.outstanding += batch.len();
            let actions = state.dependencies.submit(batch);
            state.releasing += releases(&actions);
            actions
        };
        let releases = self.shared.follow(actions);
        self.shared.release_soon(releases);
    }

    /// Begins another round, of these cases, and says why: first what their last attempts still hold for users that failed is torn down
    /// and removed. To be called when `finish` has returned.
    pub async fn begin_round(&self, cases: &[QueuedCase], why: String) {
        let replaced = self.shared.state().dependencies.replaced_by(cases);
        self.shared.release_all(replaced).await;
        self.shared.state().failures = 0;
        let cases = u32::try_from(cases.len()).unwrap_or(u32::MAX);
        self.shared.context.emit(Event::Round { cases, why });
    }

    /// Whether nothing more is started: the session was cancelled, or had too many failures.
    pub fn is_closed(&self) -> bool {
        self.shared.state().closed.is_some()
    }

    /// Ends the session in order: nothing is started, what runs is stopped, collected and cleaned up.
    pub fn cancel(&self, why: impl Into<String>) {
        let why = why.into();
        if self.shared.context.cancel(why.clone()) {
            self.shared.context.emit(Event::Cancelling(why));
        }
        self.shared.close(self.shared.context.why_cancelled());
    }

    pub fn session(&self) -> &SessionId {
        &self.shared.context.session.id
    }

    /// Resolves when the session is cancelled.
    pub async fn cancelled(&self) {
        self.shared.context.cancel.cancelled().await;
    }

    /// Whether the session was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.shared.context.cancel.is_cancelled()
    }

    /// Prepares for the end of the process: ends the teardowns that run and lets none go on, so that a process that takes the session over
    /// finds nothing that still removes what it needs. Waits some seconds for that; [`Engine::in_flight`] then says which may
    /// still run. The session never ends after this.
    pub async fn leave(&self) {
        let context = &self.shared.context;
        context.leave.cancel();
        let ended = async {
            while context.in_flight().iter().any(|attempt| attempt.tears_down) {
                sleep(LEAVE_POLL).await;
            }
        };
        let _ = timeout(LEAVE_LIMIT, ended).await;
    }

    /// What exists, or may exist, at this moment, and would be left if the process ended now.
    pub fn in_flight(&self) -> Vec<InFlight> {
        self.shared.context.in_flight()
    }

    /// The cases that have left something for others whose teardown has not ended, and would not if the process ended now.
    pub fn not_torn_down(&self) -> Vec<Arc<CaseResult>> {
        self.shared.state().dependencies.not_torn_down()
    }

    /// The results of cases of which something is left that they do not say yet, with the commands that remove it: the stage folders of passed
    /// cases that others were given, and what teardowns could not remove. To be called when `end` has returned.
    pub async fn with_leftovers(&self) -> Vec<CaseResult> {
        let keeps_stages = self.shared.context.folders.keeps_stages();
        let providers = self.shared.state().dependencies.released_providers();
        let found = move || {
            providers.iter().filter_map(|(result, report)| teardown::with_leftovers(result, report, keeps_stages)).collect()
        };
        let found = spawn_blocking(found);
        found.await.unwrap_or_default()
    }

    /// Waits until a case has ended or nothing is left to do. Returns at once if that is so already.
    pub async fn ended(&self) -> Ended {
        loop {
            let news = self.shared.news.notified();
            {
                let mut state = self.shared.state();
                let is_idle = state.is_idle();
                if is_idle || !state.results.is_empty() {
                    return Ended { results: std::mem::take(&mut state.results), is_idle };
                }
            }
            news.await;
        }
    }

    /// Waits until every case submitted so far is over. The results that nobody has asked for yet, in the order of their endings.
    pub async fn finish(&self) -> Vec<Arc<CaseResult>> {
        let mut results = Vec::new();
        loop {
            let ended = self.ended().await;
            results.extend(ended.results);
            if ended.is_idle {
                return results;
            }
        }
    }

    /// Tears down what is left. To be called when `finish` has returned.
    pub async fn tear_down(&self) {
        let rest = self.shared.state().dependencies.rest();
        self.shared.release_all(rest).await;
    }

    /// Writes down that the session is over, and says how it went. To be called when `tear_down` has returned.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if another process owns it, or it cannot be stored.
    pub async fn end(&self) -> Result<Session, StoreError> {
        let ended = clock::now();
        let context = &self.shared.context;
        let session = Session { ended: Some(ended), interrupted: self.is_cancelled(), ..context.session.clone() };
        if let (Some(store), Some(owner)) = (&context.store, &self.shared.owner) {
            store.end(&session.id, owner, ended, session.interrupted).await?;
        }
        Ok(session)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lane_of(&self, partition: &str) -> String {
        match self.policy {
            ExecPolicy::Async => partition.to_owned(),
            ExecPolicy::Serial => String::new(),
        }
    }

    /// Does what the order says, but for what is to be torn down.
    fn follow(self: &Arc<Self>, actions: Vec<Action>) -> Vec<Release> {
        let (mut lanes, mut skipped, mut releases) = (BTreeSet::new(), Vec::new(), Vec::new());
        {
            let mut state = self.state();
            for action in actions {
                match action {
                    Action::Begin(waiting) => {
                        let lane = self.lane_of(&waiting.queued.name.partition);
                        let slots = if self.policy == ExecPolicy::Serial { 1 } else { waiting.queued.max_jobs.max(1) };
                        let entry = state.lanes.entry(lane.clone()).or_default();
                        // A case whose check is not there any more does not know the limit of its partition.
                        entry.slots = entry.slots.max(slots);
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

    /// Begins what a lane has slots for.
    fn pump(self: &Arc<Self>, lane: &str) {
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
    fn close(self: &Arc<Self>, why: String) {
        self.state().closed.get_or_insert(why);
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
                    shared.over(waiting.id, result, waiting.answer).await;
                }
            };
            futures_util::stream::iter(cases).for_each_concurrent(UNSTARTED_AT_ONCE, close).await;
        });
    }

    /// One case, from its slot to the next one's.
    async fn run(self: Arc<Self>, waiting: Waiting, lane: String) {
        let Waiting { id, queued, answer } = waiting;
        let result = if let Some(scheduler) = self.schedulers.get(&queued.name.partition) {
            contained(&self.context, scheduler, queued).await
        } else {
            let cause = format!("partition {} has no scheduler in this session", queued.name.partition);
            Record::new(&queued, clock::now()).close(End::config(Phase::Plan, cause), clock::now())
        };
        Box::pin(self.over(id, result, answer)).await;
        if let Some(lane) = self.state().lanes.get_mut(&lane) {
            lane.running -= 1;
        }
        self.pump(&lane);
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

    /// A case has its result: on disk first, then to everybody who waits for it.
    async fn over(self: &Arc<Self>, id: CaseId, mut result: CaseResult, answer: oneshot::Sender<Arc<CaseResult>>) {
        self.mark(id, &mut result);
        result.hide(&self.context.secrets);
        let result = Arc::new(result);
        if let Some(store) = &self.context.store
            && let Err(error) = store.finished(&self.context.session.id, &result).await
        {
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
        let _ = answer.send(result);
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

impl State {
    fn is_idle(&self) -> bool {
        self.outstanding == 0 && self.releasing == 0
    }
}

fn releases(actions: &[Action]) -> usize {
    actions.iter().filter(|action| matches!(action, Action::Release(_))).count()
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

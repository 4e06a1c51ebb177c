//! The engine: order, `max_jobs` and cancelling of all cases of a session.
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
mod lanes;
mod releases;
mod teardown;
#[cfg(test)]
mod tests;

use crate::{
    case::{QueuedCase, context::Context, judging::JudgeIn},
    engine::{
        dependencies::{Action, Dependencies, Recalled},
        lanes::Lane,
    },
    event::Event,
    folders::Folders,
    log::lines::NewLines,
};
use muster_check::site::{Partition, quarantine::List};
use muster_core::{
    case::{CaseName, SessionId},
    decisions::pipeline::Stop,
    job::scheduler::Scheduler,
    live::CaseProgress,
    result::{CaseResult, Session},
    secret::Secrets,
};
use muster_host::clock;
use muster_store::{Owner, Store, StoreError};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, mpsc},
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};

pub use crate::case::context::InFlight;

/// How long a session that is left at once waits for the end of teardowns: TERM, its grace, KILL, and some margin.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);
/// How long the end of a cancelled session may take beyond one cleanup: a launch that is under way, a log, some margin.
const END_LIMIT: Duration = Duration::from_secs(90);
/// An end of so long has a line.
const LONG_END: Duration = Duration::from_secs(10);
const LEAVE_POLL: Duration = Duration::from_millis(20);

/// The settings and parts of an engine.
pub struct EngineConfig {
    /// The session: who began it, where, and its name.
    pub session: Session,
    pub folders: Folders,
    /// The ownership of stored plans and results; `None`: nothing is stored.
    pub ownership: Option<Ownership>,
    /// The scheduler of each partition, by the partition's name.
    pub schedulers: BTreeMap<String, Arc<dyn Scheduler>>,
    /// The receiver of events.
    pub events: mpsc::UnboundedSender<Event>,
    /// The receiver of the lines that jobs add to their logs; `None`: nobody listens.
    pub lines: Option<mpsc::Sender<NewLines>>,
    /// The number of cases that run at once.
    pub policy: ExecPolicy,
    /// The number of failures of a round after which no further case is started; those that run are let end.
    pub maxfail: Option<u32>,
    /// Cases whose outcome does not count.
    pub quarantine: List,
    /// The place where logs are judged.
    pub judge: JudgeIn,
    /// The command that ends what is left, as a person can paste it.
    pub sweep: String,
    /// The secrets that no result and no event contains.
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
    /// Runs as many cases of a partition at once as its `max_jobs` says.
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

impl Shared {
    /// How long the end of a cancelled session may take in all.
    fn end_limit(&self) -> Duration {
        let cleanup = self.schedulers.values().map(|scheduler| scheduler.limits().cleanup).max();
        cleanup.unwrap_or_default() + END_LIMIT
    }

    /// Says what the end of the session waits for, less and less often, and waits for no server when it has taken too long.
    fn limit_the_end(self: &Arc<Self>) {
        // Who holds the engine keeps the view of a session open that has ended.
        let (shared, limit) = (Arc::downgrade(self), self.end_limit());
        self.runtime.spawn(async move {
            let (mut since, mut pause) = (Duration::ZERO, LONG_END);
            while since + pause < limit {
                sleep(pause).await;
                since += pause;
                pause = since;
                let Some(shared) = shared.upgrade() else { return };
                shared.context.still_ends(since, limit.saturating_sub(since));
            }
            sleep(limit.saturating_sub(since)).await;
            if let Some(shared) = shared.upgrade() {
                shared.context.give_up(limit);
            }
        });
    }
}

/// The cases that have ended since the engine was last asked.
#[derive(Debug)]
pub struct Ended {
    /// The results in the order of their endings.
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

impl Engine {
    /// Begins a session without cases, or goes on with one that was taken over. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the session cannot be stored.
    pub async fn begin(config: EngineConfig) -> Result<Self, StoreError> {
        let EngineConfig { session, folders, ownership, schedulers, policy, maxfail, quarantine, judge, sweep, secrets, .. } =
            config;
        if let Some(Ownership { store, owner, is_new: true }) = &ownership {
            store.begin(&session, owner).await?;
        }
        let (store, owner) = ownership.map(|Ownership { store, owner, .. }| (store, owner)).unzip();
        let context = Arc::new(Context::new(session, folders, store, (config.events, config.lines), judge, sweep, secrets));
        let (state, news) = (Mutex::default(), Notify::new());
        let runtime = Handle::current();
        let shared = Shared { context, runtime, owner, schedulers, policy, maxfail, quarantine, state, news };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Asks an attempt to stop, for this reason. One that waits for its slot ends when it gets it. What has ended stays as it ended. Returns
    /// whether it was not asked before.
    pub fn stop(&self, case: &CaseName, attempt: u32, why: Stop) -> bool {
        self.shared.context.ask_to_stop(case, attempt, why)
    }

    /// The scheduler of a partition.
    pub fn scheduler(&self, partition: &str) -> Option<&Arc<dyn Scheduler>> {
        self.shared.schedulers.get(partition)
    }

    /// Says something that no case suffers from, but that is worth a line.
    pub(crate) fn warn(&self, text: String) {
        self.shared.context.emit(Event::Warning(text));
    }

    /// Takes a case that ended before: those that need it count on it, and it is torn down when they are over.
    /// It is not reported again. Blocks: looks at its stage folder.
    pub fn recall(&self, result: Arc<CaseResult>) {
        let recalled = Recalled::look(result, self.shared.context.folders.keeps_stages());
        self.shared.state().dependencies.recall(recalled);
    }

    /// Puts cases at the end of the queues of their partitions, in any order: a case waits for what it needs, and what others of
    /// them need stays until they are over. What a case needs is among them, or was submitted or recalled before. Their
    /// results are in [`Engine::ended`], and are events.
    pub fn submit_all(&self, cases: impl IntoIterator<Item = QueuedCase>) {
        let batch: Vec<_> = cases.into_iter().collect();
        // What another process has launched does not wait: the store knows more of it.
        for queued in batch.iter().filter(|queued| !queued.is_launched()) {
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

    /// The partitions of all cases, those that have ended too.
    pub fn open_lanes<'a>(&self, partitions: impl Iterator<Item = &'a Partition>) {
        self.shared.open_lanes(partitions);
    }

    /// Begins another round, of these cases, and says why: first what their last attempts still hold for users that failed is torn down
    /// and removed. A session that was cancelled meanwhile begins none. To be called when `finish` has returned.
    pub async fn begin_round(&self, cases: &[QueuedCase], why: String) {
        let replaced = self.shared.state().dependencies.replaced_by(cases);
        self.shared.release_all(replaced).await;
        if self.is_closed() {
            return;
        }
        self.shared.state().failures = 0;
        let cases = u32::try_from(cases.len()).unwrap_or(u32::MAX);
        self.shared.context.emit(Event::Round { cases, why });
    }

    /// Returns whether nothing more is started: the session was cancelled, or had too many failures.
    pub fn is_closed(&self) -> bool {
        self.shared.state().closed.is_some()
    }

    /// Resolves when nothing more is started.
    pub async fn closed(&self) {
        loop {
            let news = self.shared.news.notified();
            if self.is_closed() {
                return;
            }
            news.await;
        }
    }

    /// Ends the session in order: nothing is started, what runs is stopped, collected and cleaned up.
    pub fn cancel(&self, why: impl Into<String>) {
        let why = why.into();
        if self.shared.context.cancel(why.clone()) {
            self.shared.context.emit(Event::Cancelling(why));
            self.shared.limit_the_end();
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

    /// Returns the number of results that could not be stored.
    pub fn num_not_stored(&self) -> u32 {
        self.shared.context.not_stored.load(Ordering::Relaxed)
    }

    /// Returns whether the session was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.shared.context.cancel.is_cancelled()
    }

    /// Returns when the end of a cancelled session should be over. `None`: it was not cancelled.
    pub fn end_is_due(&self) -> Option<Instant> {
        self.shared.context.cancelled_at().map(|at| at + self.shared.end_limit())
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

    /// Returns what exists, or may exist, at this moment, and would be left if the process ended now.
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
}

impl State {
    fn is_idle(&self) -> bool {
        self.outstanding == 0 && self.releasing == 0
    }
}

fn releases(actions: &[Action]) -> usize {
    actions.iter().filter(|action| matches!(action, Action::Release(_))).count()
}

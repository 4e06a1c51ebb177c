//! The context that all cases of a session share: its folders, its store, its events, its end.

use crate::{
    case::{
        judging::{JudgeIn, Judges},
        outages::Outages,
        record::End,
    },
    event::{Event, Limit},
    folders::Folders,
    identifier::Identifiers,
    log::lines::{Listened, NewLines},
};
use muster_core::{
    case::{CaseName, Identifier},
    decisions::pipeline::{SUPERSEDED, Stop},
    job::scheduler::Job,
    live::CaseProgress,
    result::{Outcome, Phase, Session},
    secret::Secrets,
};
use muster_store::{Describe, Store};
use muster_text::time::format_duration;
use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, atomic::AtomicU32},
    time::Duration,
};
use tokio::{
    sync::{
        mpsc::{Sender, UnboundedSender},
        watch,
    },
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// So many cases are named of which something may be left.
const NAMED: usize = 5;

/// Something that was created, or may have been, and is not cleaned up yet.
#[derive(Debug, Clone)]
pub struct InFlight {
    pub case: Arc<CaseName>,
    /// The job itself, enough to find and delete it.
    pub job: Arc<Job>,
    /// It is not the case itself, but tears down what that has left.
    pub tears_down: bool,
}

/// The attempts that are asked to stop, and why.
type Stops = BTreeMap<CaseName, BTreeMap<u32, Stop>>;

fn asked<'a>(stops: &'a Stops, case: &CaseName, attempt: u32) -> Option<&'a Stop> {
    stops.get(case)?.get(&attempt)
}

/// Shared by the engine and all its cases.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) session: Session,
    pub(crate) folders: Folders,
    /// `None`: nothing is stored.
    pub(crate) store: Option<Store>,
    pub(crate) identifiers: Identifiers,
    /// Fires when the session is to end.
    pub(crate) cancel: CancellationToken,
    /// Fires when the end of the session has taken too long: no server is waited for any more.
    pub(crate) give_up: CancellationToken,
    /// Fires when the process is about to end: no teardown goes on.
    pub(crate) leave: CancellationToken,
    events: UnboundedSender<Event>,
    lines: Option<Sender<NewLines>>,
    /// Why and when it was cancelled.
    why: OnceLock<(String, Instant)>,
    /// The command that ends what is left.
    sweep: String,
    in_flight: Mutex<BTreeMap<Identifier, InFlight>>,
    /// As many texts are judged at once as there are processors.
    pub(crate) judges: Judges,
    pub(crate) secrets: Secrets,
    outages: Outages,
    /// The attempts that are to stop before they end by themselves.
    stops: watch::Sender<Stops>,
    /// Results that could not be stored.
    pub(crate) not_stored: AtomicU32,
}

impl Context {
    pub(crate) fn new(
        session: Session,
        folders: Folders,
        store: Option<Store>,
        (events, lines): (UnboundedSender<Event>, Option<Sender<NewLines>>),
        judge: JudgeIn,
        sweep: String,
        secrets: Secrets,
    ) -> Self {
        if let Some(store) = &store {
            // A database outlives the view of a session, which ends when nobody can send events any more.
            let events = events.downgrade();
            store.tell(move |text| {
                if let Some(events) = events.upgrade() {
                    let _ = events.send(Event::Warning(text));
                }
            });
        }
        Self {
            session,
            folders,
            store,
            identifiers: Identifiers::default(),
            cancel: CancellationToken::new(),
            give_up: CancellationToken::new(),
            leave: CancellationToken::new(),
            events,
            lines,
            why: OnceLock::new(),
            sweep,
            in_flight: Mutex::default(),
            judges: Judges::new(judge),
            secrets,
            outages: Outages::default(),
            stops: watch::Sender::default(),
            not_stored: AtomicU32::new(0),
        }
    }

    /// A request was not answered, since the server of a partition was not reached.
    pub(crate) fn not_reached(&self, partition: &str, asked: Phase, why: &str) {
        if let Some(text) = self.outages.failed(partition, asked, why) {
            self.emit(Event::Warning(text));
        }
    }

    /// One was answered.
    pub(crate) fn reached(&self, partition: &str, asked: Phase) {
        if let Some(text) = self.outages.answered(partition, asked) {
            self.emit(Event::Warning(text));
        }
    }

    /// Reports what happened. The receiver may be gone.
    pub(crate) fn emit(&self, mut event: Event) {
        if let Event::Phase { note: Some(text), .. } | Event::Warning(text) = &mut event {
            self.secrets.hide(text);
        }
        let _ = self.events.send(event);
    }

    /// Gives the lines of a case's log to who listens.
    pub(crate) fn listened(&self, case: &Arc<CaseName>) -> Option<Listened> {
        self.lines.clone().map(|to| Listened::new(Arc::clone(case), to))
    }

    /// Says in which phase a case is, and what it waits for.
    pub(crate) fn phase(&self, case: &Arc<CaseName>, phase: Phase, note: Option<String>, limit: Option<Limit>) {
        self.emit(Event::Phase { case: Arc::clone(case), phase, note, limit });
    }

    /// Says in the store how far a case is. `describe`: it may have no row yet.
    pub(crate) fn progress(&self, case: &Arc<CaseName>, progress: CaseProgress, describe: Option<&Describe>) {
        if let Some(store) = &self.store {
            store.progress(&self.session.id, case, progress, describe);
        }
    }

    /// Asks an attempt to stop. What has ended by then stays as it ended. Says whether it is news.
    pub(crate) fn ask_to_stop(&self, case: &CaseName, attempt: u32, stop: Stop) -> bool {
        self.stops.send_if_modified(|stops| {
            let entry = stops.entry(case.clone()).or_default().entry(attempt);
            let is_news = matches!(entry, Entry::Vacant(_));
            entry.or_insert(stop);
            is_news
        })
    }

    /// Why an attempt is to stop at this moment; `None`: it is not.
    pub(crate) fn stop_now(&self, case: &CaseName, attempt: u32) -> Option<Stop> {
        if self.cancel.is_cancelled() { Some(Stop::Cancelled) } else { asked(&self.stops.borrow(), case, attempt).cloned() }
    }

    /// Resolves when an attempt is to stop.
    pub(crate) async fn stop_of(&self, case: &CaseName, attempt: u32) {
        let mut stops = self.stops.subscribe();
        tokio::select! {
            () = self.cancel.cancelled() => {}
            _ = stops.wait_for(|stops| asked(stops, case, attempt).is_some()) => {}
        }
    }

    /// How an attempt ends that has stopped for this reason.
    pub(crate) fn stopped(&self, stop: Stop, phase: Phase) -> End {
        match stop {
            Stop::Rule { name, why } => End::new(Outcome::Stopped(name), phase, why),
            Stop::Superseded(by) => End::new(Outcome::Stopped(SUPERSEDED.to_owned()), phase, by),
            Stop::Limit(clock) => End::new(Outcome::Timeout(clock), phase, format!("stopped at its {}", clock.key())),
            Stop::Cancelled => End::new(Outcome::Abort, phase, self.why_cancelled()),
        }
    }

    /// Ends the session, for this reason unless it has one already. Says whether it is news.
    pub(crate) fn cancel(&self, why: String) -> bool {
        let news = self.why.set((why, Instant::now())).is_ok();
        self.cancel.cancel();
        news
    }

    /// Waits for no server any more, and says what may be left. `limit`: what the end may have taken.
    pub(crate) fn give_up(&self, limit: Duration) {
        let left = self.named_in_flight().map(|named| format!("; what may be left of {named}: `{}` removes it", self.sweep));
        let left = left.unwrap_or_default();
        let limit = format_duration(limit);
        self.emit(Event::Warning(format!("the session has been ending for {limit}: no server is waited for any more{left}")));
        self.give_up.cancel();
        if let Some(store) = &self.store {
            store.hurry();
        }
    }

    /// Says what the end of the session waits for. `left`: how long it may still take.
    pub(crate) fn still_ends(&self, since: Duration, left: Duration) {
        if let Some(named) = self.named_in_flight() {
            let (since, left, sweep) = (format_duration(since), format_duration(left), &self.sweep);
            self.emit(Event::Warning(format!(
                "the session has been ending for {since}: it waits for the end of {named}, {left} more at most; \
                 interrupted again it leaves that to `{sweep}`"
            )));
        }
    }

    /// Of which cases something may exist: a few of them by name.
    fn named_in_flight(&self) -> Option<String> {
        let named: Vec<String> = self.in_flight().iter().map(|left| format!("{} ({})", left.case, left.job.identifier)).collect();
        let more = named.len().saturating_sub(NAMED);
        let and_more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!named.is_empty()).then(|| named[..named.len() - more].join(", ") + &and_more)
    }

    /// Why the session ends.
    pub(crate) fn why_cancelled(&self) -> String {
        self.why.get().map_or_else(|| "the session was cancelled".to_owned(), |(why, _)| why.clone())
    }

    /// When it was cancelled, if it was.
    pub(crate) fn cancelled_at(&self) -> Option<Instant> {
        self.why.get().map(|(_, at)| *at)
    }

    /// Names what may be left when a cleanup gives no answer.
    pub(crate) fn whatever_is_marked(&self, job: &Job) -> String {
        let Job { identifier, session, scheduler, .. } = job;
        format!("whatever is marked rfm={identifier} on {scheduler} (session {session}): `{}` removes it", self.sweep)
    }

    /// The command that removes what is kept of a case, and nothing else.
    pub(crate) fn sweep_of_kept(&self, job: &Job) -> String {
        format!("{} --kept --id {}", self.sweep, job.identifier)
    }

    /// From here on something of a case, or of its teardown, may exist.
    pub(crate) fn may_exist(&self, case: &Arc<CaseName>, job: &Arc<Job>, tears_down: bool) {
        let (case, job) = (Arc::clone(case), Arc::clone(job));
        self.running().insert(job.identifier.clone(), InFlight { case, job, tears_down });
    }

    /// From here on nothing exists that the result does not name.
    pub(crate) fn ended(&self, identifier: &Identifier) -> Option<InFlight> {
        self.running().remove(identifier)
    }

    /// The partition of a job, for people.
    pub(crate) fn partition_of(&self, job: &Job) -> String {
        let running = self.running();
        running.get(&job.identifier).map_or_else(|| job.scheduler.to_string(), |left| left.case.partition.clone())
    }

    /// What may exist of a case that panicked.
    pub(crate) fn in_flight_of(&self, case: &Arc<CaseName>) -> Option<InFlight> {
        self.running().values().find(|attempt| Arc::ptr_eq(&attempt.case, case)).cloned()
    }

    pub(crate) fn in_flight(&self) -> Vec<InFlight> {
        self.running().values().cloned().collect()
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<Identifier, InFlight>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

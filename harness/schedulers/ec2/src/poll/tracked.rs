//! The state that is kept of each job, and what others are told of it.

use crate::{
    cloud::{Instance, Object},
    decide::{
        log::Tail,
        seen::{Console, Member, Outputs, Said},
        status::OVERDUE,
    },
    plan::Handle,
};
use muster_core::{
    error::{Class, SchedulerError},
    job::scheduler::{Job, JobStatus},
};
use muster_text::time::Timestamp;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// A job waits for the next look at most this part of its age: a thirtieth.
const PART_OF_AGE: u32 = 30;
/// And at least so many fifths of `poll_interval`.
const LEAST_FIFTHS: u32 = 2;

/// What is told of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Known {
    pub status: Option<JobStatus>,
    /// The reason why it cannot be followed to an end of its own.
    pub failure: Option<(Class, String)>,
    /// The reason why the last look has not seen all of it.
    pub outage: Option<Arc<str>>,
}

impl Known {
    /// Nothing more is to be learned of it.
    pub(crate) fn is_over(&self) -> bool {
        self.failure.is_some() || matches!(self.status, Some(JobStatus::Ended(_) | JobStatus::Gone { .. }))
    }
}

/// What the last look showed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sight {
    /// The number of the look; 0: there was none.
    pub number: u64,
    /// The members, in the order of ranks.
    pub members: Vec<Member>,
    /// All that EC2 lists, also those of a request whose answer was lost.
    pub instances: Vec<Instance>,
    /// The objects, by their names below the prefix of the job.
    pub objects: BTreeMap<String, Object>,
}

/// A job that is followed.
pub(crate) struct Tracked {
    pub(crate) job: Job,
    handle: Mutex<Arc<Handle>>,
    known: watch::Sender<Known>,
    sight: watch::Sender<Arc<Sight>>,
    pub(super) memory: Mutex<Memory>,
    /// How many need looks whatever is known.
    watchers: AtomicUsize,
    /// Its log was read to the end.
    log_is_read: AtomicBool,
    /// Its objects go when its log was read.
    objects_go: AtomicBool,
    /// Its cleanup has ended its instances.
    was_ended: AtomicBool,
}

/// What earlier looks have shown, by rank.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The last status of each agent, with the version of its object.
    pub said: BTreeMap<u32, (String, Said)>,
    /// Seconds by which the clock of each is behind.
    pub behind: BTreeMap<u32, i64>,
    pub seen: BTreeMap<u32, (Instance, Instant)>,
    pub consoles: BTreeMap<u32, ReadConsole>,
}

/// What was read of a console.
#[derive(Debug)]
pub(super) struct ReadConsole {
    /// The time when it was first asked for; `first` is that of the first answer.
    pub asked: Instant,
    pub first: Option<Instant>,
    pub console: Console,
    pub tail: Option<Tail>,
}

/// Somebody needs looks at a job for as long as this lives.
pub(crate) struct Watching(Arc<Tracked>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Tracked {
    /// How long it waits for the next look: `poll_interval`, and less while it is young, so that the end of a short job is seen soon.
    pub(super) fn pause(&self, now: Timestamp) -> Duration {
        let handle = self.handle();
        // What may never have been launched has no age.
        let Some(launched) = handle.launched else { return handle.poll_interval };
        handle.poll_interval.min((now.since(launched) / PART_OF_AGE).max(handle.poll_interval * LEAST_FIFTHS / 5))
    }

    /// Its own timer has ended its instances by now.
    pub(super) fn is_overdue(&self, now: Timestamp) -> bool {
        let handle = self.handle();
        let lives = Duration::from_secs(handle.lifetime.expires_after()) + OVERDUE;
        handle.launched.is_some_and(|at| now.since(at) > lives)
    }

    pub(super) fn new(job: &Job) -> Result<Self, SchedulerError> {
        Ok(Self {
            handle: Mutex::new(Handle::of(job)?),
            job: job.clone(),
            known: watch::Sender::default(),
            sight: watch::Sender::default(),
            memory: Mutex::default(),
            watchers: AtomicUsize::new(0),
            log_is_read: AtomicBool::new(false),
            objects_go: AtomicBool::new(false),
            was_ended: AtomicBool::new(false),
        })
    }

    /// A launch has found out more.
    pub(super) fn learn(&self, job: &Job) -> Result<(), SchedulerError> {
        let handle = Handle::of(job)?;
        let mut known = self.handle.lock();
        if known.launched.is_none() && handle.launched.is_some() {
            *known = handle;
        }
        Ok(())
    }

    pub(crate) fn handle(&self) -> Arc<Handle> {
        Arc::clone(&self.handle.lock())
    }

    pub(crate) fn known(&self) -> watch::Receiver<Known> {
        self.known.subscribe()
    }

    pub(crate) fn sight(&self) -> watch::Receiver<Arc<Sight>> {
        self.sight.subscribe()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.known.borrow().is_over()
    }

    /// What has become of the files that its script has left.
    pub(crate) fn outputs(&self) -> Outputs {
        self.memory.lock().said.get(&0).map(|(_, said)| said.outputs).unwrap_or_default()
    }

    /// The end of a log that its console has.
    pub(crate) fn tail(&self, rank: u32) -> Option<Tail> {
        self.memory.lock().consoles.get(&rank)?.tail.clone()
    }

    pub(super) fn watch(self: &Arc<Self>) -> Watching {
        self.watchers.fetch_add(1, Ordering::Relaxed);
        Watching(Arc::clone(self))
    }

    /// Whether looks are for its sake.
    pub(super) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > 0 || !self.is_over()
    }

    pub(super) fn saw(&self, sight: Sight) {
        self.sight.send_replace(Arc::new(sight));
    }

    pub(super) fn tell(&self, known: Known) {
        self.known.send_if_modified(|before| {
            let changed = *before != known;
            *before = known;
            changed
        });
    }

    /// Its cleanup ends its instances: how they end says nothing.
    pub(crate) fn end(&self) {
        self.was_ended.store(true, Ordering::SeqCst);
    }

    pub(crate) fn was_ended(&self) -> bool {
        self.was_ended.load(Ordering::SeqCst)
    }

    /// Its log was read. `true`: its objects are to be removed now.
    pub(crate) fn read_log(&self) -> bool {
        self.log_is_read.store(true, Ordering::SeqCst);
        self.objects_go.load(Ordering::SeqCst)
    }

    /// Its objects are needed for nothing but its log. `true`: nor for that.
    pub(crate) fn let_objects_go(&self) -> bool {
        self.objects_go.store(true, Ordering::SeqCst);
        self.log_is_read.load(Ordering::SeqCst)
    }
}

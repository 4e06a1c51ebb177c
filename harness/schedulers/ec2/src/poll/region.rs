//! The parts that all jobs at a place share: the connection, one task that looks, and what was learned.

use super::{
    capacity::{Attempts, Capacity, Wanted},
    tracked::{Tracked, Watching},
    used::Used,
    written::Written,
};
use crate::{
    cloud::{Cloud, CloudError, Filter, Instance, Object, Subnet},
    data::Copies,
    decide::offer::Refused,
    failure,
    plan::POLL,
    resolve::Resolver,
};
use muster_core::{
    case::SessionId,
    error::{Class, SchedulerError},
    job::{
        inventory::JobId,
        scheduler::{Job, JobStatus},
    },
};
use muster_text::time::Timestamp;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{Instant, sleep_until},
};

/// What time it is.
pub(crate) type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Two looks are at least this part of the usual pause apart, whatever has happened.
const SOON: u32 = 5;

/// The listing of a session, and the number of its question.
type Listing = Option<(u64, SessionId, Arc<Vec<Instance>>)>;

/// A bucket, and the prefix of a session in it.
pub(super) type SessionPlace = (String, String);

pub(crate) struct Region {
    pub(crate) cloud: Arc<dyn Cloud>,
    pub(crate) resolver: Resolver,
    pub(crate) copies: Copies,
    pub(crate) used: Used,
    pub(crate) written: Written,
    clock: Clock,
    jobs: Mutex<HashMap<JobId, Arc<Tracked>>>,
    schedule: Mutex<Schedule>,
    wake: Notify,
    pub(super) looks: AtomicU64,
    /// What was listed last, where a bucket does not answer.
    pub(super) objects: Mutex<BTreeMap<SessionPlace, Arc<Vec<Object>>>>,
    listing: tokio::sync::Mutex<Listing>,
    questions: AtomicU64,
    subnets: tokio::sync::Mutex<BTreeMap<String, Subnet>>,
    capacity: Capacity,
    was_tidied: AtomicBool,
    /// The digests of bundles that were packed.
    bundles: Mutex<HashMap<JobId, String>>,
}

/// When the next look is.
struct Schedule {
    task: Option<JoinHandle<()>>,
    pause: Duration,
    last: Instant,
    due: Instant,
}

impl Region {
    pub(crate) fn new(cloud: Arc<dyn Cloud>, clock: Clock) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            resolver: Resolver::new(Arc::clone(&cloud)),
            cloud,
            copies: Copies::default(),
            used: Used::default(),
            written: Written::default(),
            clock,
            jobs: Mutex::default(),
            schedule: Mutex::new(Schedule { task: None, pause: POLL, last: now, due: now }),
            wake: Notify::new(),
            looks: AtomicU64::new(0),
            objects: Mutex::default(),
            listing: tokio::sync::Mutex::default(),
            questions: AtomicU64::new(0),
            subnets: tokio::sync::Mutex::default(),
            capacity: Capacity::default(),
            was_tidied: AtomicBool::new(false),
            bundles: Mutex::default(),
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// `true` once: what other sessions have left is removed by the first who launches something.
    pub(crate) fn is_to_be_tidied(&self) -> bool {
        !self.was_tidied.swap(true, Ordering::Relaxed)
    }

    /// A job that is followed from now on.
    ///
    /// # Errors
    /// Its handle cannot be read.
    pub(crate) fn track(self: &Arc<Self>, job: &Job) -> Result<Arc<Tracked>, SchedulerError> {
        let mut jobs = self.jobs.lock();
        if let Some(known) = jobs.get(&job.id()) {
            known.learn(job)?;
            return Ok(Arc::clone(known));
        }
        let tracked = Arc::new(Tracked::new(job)?);
        jobs.insert(job.id(), Arc::clone(&tracked));
        drop(jobs);
        self.keep_looking();
        Ok(tracked)
    }

    /// The same for who needs looks whatever is known of the job.
    ///
    /// # Errors
    /// Those of `track`.
    pub(crate) fn watch(self: &Arc<Self>, job: &Job) -> Result<(Arc<Tracked>, Watching), SchedulerError> {
        let tracked = self.track(job)?;
        let watching = tracked.watch();
        self.keep_looking();
        self.look_soon();
        Ok((tracked, watching))
    }

    pub(crate) fn forget(&self, job: &Job) {
        self.jobs.lock().remove(&job.id());
    }

    /// The digest of a bundle that this process has packed.
    pub(crate) fn bundle(&self, job: &Job) -> Option<String> {
        self.bundles.lock().get(&job.id()).cloned()
    }

    pub(crate) fn packed_bundle(&self, job: &Job, digest: &str) {
        self.bundles.lock().insert(job.id(), digest.to_owned());
    }

    /// What was packed is not needed any more.
    pub(crate) fn forget_bundle(&self, job: &Job) {
        self.bundles.lock().remove(&job.id());
    }

    pub(super) fn watched(&self) -> Vec<Arc<Tracked>> {
        self.jobs.lock().values().filter(|job| job.is_watched()).cloned().collect()
    }

    /// Something is known to have happened, or to be about to.
    pub(crate) fn look_soon(&self) {
        let mut schedule = self.schedule.lock();
        let soon = (schedule.last + schedule.pause / SOON).max(Instant::now());
        schedule.due = schedule.due.min(soon);
        drop(schedule);
        self.wake.notify_one();
    }

    fn keep_looking(self: &Arc<Self>) {
        let mut schedule = self.schedule.lock();
        if schedule.task.as_ref().is_none_or(JoinHandle::is_finished) {
            schedule.pause = self.pause();
            schedule.due = (schedule.last + schedule.pause / SOON).max(Instant::now());
            schedule.task = Some(tokio::spawn(Arc::clone(self).follow()));
        }
    }

    /// The shortest that a job asks for.
    fn pause(&self) -> Duration {
        let now = self.now();
        self.watched().iter().map(|job| job.pause(now)).min().unwrap_or(POLL)
    }

    /// Looks as long as somebody waits for something.
    async fn follow(self: Arc<Self>) {
        loop {
            self.await_turn().await;
            if self.watched().is_empty() {
                // A job that is tracked from now on starts another task.
                let mut schedule = self.schedule.lock();
                if self.watched().is_empty() {
                    schedule.task = None;
                    return;
                }
            }
            super::look::look(&self).await;
            let pause = self.pause();
            let mut schedule = self.schedule.lock();
            schedule.last = Instant::now();
            schedule.pause = pause;
            schedule.due = schedule.last + pause;
        }
    }

    async fn await_turn(&self) {
        loop {
            let due = self.schedule.lock().due;
            if Instant::now() >= due {
                return;
            }
            tokio::select! {
                () = sleep_until(due) => {}
                () = self.wake.notified() => {}
            }
        }
    }

    /// Returns as soon as the status of a job differs from `seen`. While a part of it is hidden, only an end is news.
    ///
    /// # Errors
    /// It cannot be followed to its end, or the region does not answer.
    pub(crate) async fn next_status(self: &Arc<Self>, job: &Job, seen: Option<&JobStatus>) -> Result<JobStatus, SchedulerError> {
        let tracked = self.track(job)?;
        let mut statuses = tracked.known();
        loop {
            let known = statuses.borrow_and_update().clone();
            if let Some((class, why)) = known.failure {
                return Err(SchedulerError::plain(class, why));
            }
            if let Some(why) = known.outage.as_ref().filter(|_| !known.is_over()) {
                // What is silent for good ends a case, too.
                let class = if tracked.is_overdue(self.now()) { Class::Infra } else { Class::Outage };
                return Err(SchedulerError::plain(class, &**why));
            }
            if let Some(status) = known.status.filter(|status| Some(status) != seen) {
                return Ok(status);
            }
            // The sender does not go away: this has it.
            let _ = statuses.changed().await;
        }
    }

    /// The instances of a session, as they were after this call began. Who calls at the same time shares the answer.
    ///
    /// # Errors
    /// EC2 does not answer.
    pub(crate) async fn listed(&self, session: &SessionId) -> Result<Arc<Vec<Instance>>, CloudError> {
        let asked = self.questions.fetch_add(1, Ordering::SeqCst);
        let mut listing = self.listing.lock().await;
        if let Some((began, of, instances)) = &*listing
            && *began > asked
            && of == session
        {
            return Ok(Arc::clone(instances));
        }
        let began = self.questions.fetch_add(1, Ordering::SeqCst);
        let filter = Filter { name: "tag:rfm-session".to_owned(), values: vec![session.to_string()] };
        let instances = Arc::new(self.cloud.instances(&[filter]).await?);
        *listing = Some((began, session.clone(), Arc::clone(&instances)));
        Ok(instances)
    }

    /// A subnet; asked for once. `among`: all that may be asked for, so that one question is enough.
    ///
    /// # Errors
    /// EC2 does not answer, or has no such subnet.
    pub(crate) async fn subnet(&self, id: &str, among: &[String]) -> Result<Subnet, SchedulerError> {
        let mut known = self.subnets.lock().await;
        if !known.contains_key(id) {
            let found = self.cloud.subnets(among).await.map_err(|error| failure::of_launch(error, "look at the subnets"))?;
            known.extend(found.into_iter().map(|subnet| (subnet.id.clone(), subnet)));
        }
        let region = &self.cloud.place().region;
        known.get(id).cloned().ok_or_else(|| SchedulerError::plain(Class::Config, format!("{region} has no subnet {id}")))
    }

    pub(crate) fn refuse(&self, wanted: Wanted, instances: u32, refused: &Refused, job: &Job) {
        self.capacity.refuse(wanted, instances, refused, &job.id());
    }

    pub(crate) fn refusal(&self, wanted: &Wanted, instances: u32, offer: usize, job: &Job) -> Option<Refused> {
        self.capacity.refusal(wanted, instances, offer, &job.id())
    }

    pub(crate) fn found_room(&self, wanted: &Wanted, job: &Job) {
        self.capacity.launched(wanted, &job.id());
    }

    pub(crate) fn freed(&self) {
        self.capacity.freed();
    }

    pub(crate) fn attempts(&self, job: &Job) -> Attempts {
        self.capacity.attempts(&job.id())
    }

    pub(crate) fn set_attempts(&self, job: &Job, attempts: Attempts) {
        self.capacity.set_attempts(job.id(), attempts);
    }
}

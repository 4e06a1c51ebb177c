//! One look at the queue for all jobs of a cluster, as often as needed.
//!
//! ```text
//! wait, launch -> track -> Tracked: a status and who waits for it
//! tick: squeue once -> each job's row, exit file -> status::judge -> its status; sacct once for those that somebody has to explain
//! between ticks: a look for new exit files, which pulls the next tick forward
//! ```
//! `tracked` is what is remembered of a job, `tick` one look, `pace` when the next one is, `reading` what jobs have left,
//! `users` who has cancelled them, `clusters` all that a session has.

mod clusters;
mod pace;
mod reading;
mod tick;
mod tracked;
mod users;

pub(crate) use clusters::Clusters;
#[cfg(test)]
pub(crate) use tracked::Known;
pub(crate) use tracked::Tracked;

use crate::{
    answers::{
        nodes::{self, COLUMNS, Node},
        settings::{Config, Partition, config, partitions},
    },
    command::{Answer, Commands},
    plan::{Place, Policy},
    poll::{
        pace::{Bounds, Pace},
        reading::read_each,
        users::Users,
    },
};
use muster_core::{
    case::Identifier,
    error::{Class, SchedulerError},
    job::{
        scheduler::{Job, JobStatus},
        stage_folder::EXIT_FILE,
    },
};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Notify, OnceCell, watch},
    task::JoinHandle,
    time::{Instant, sleep_until, timeout_at},
};

/// How often new exit files are looked for while the queue changes, and while it does not.
const HINTS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));
/// No more of them at once: of more jobs, only those that run.
const MOST_HINTS: usize = 100;
/// Nodes change slowly, and sinfo shows all of them.
const NODES: Duration = Duration::from_mins(1);

/// The nodes of each partition, with the time of the look.
type SeenNodes = BTreeMap<String, (Instant, Arc<Vec<Node>>)>;

/// One cluster, asked from one place.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) place: Place,
    pub(crate) commands: Commands,
    jobs: Mutex<HashMap<Identifier, Arc<Tracked>>>,
    schedule: Mutex<Schedule>,
    wake: Notify,
    config: OnceCell<Config>,
    partitions: OnceCell<Vec<Partition>>,
    nodes: tokio::sync::Mutex<SeenNodes>,
    /// Why it does not answer.
    outage: watch::Sender<Option<Arc<str>>>,
    ending: Mutex<Vec<String>>,
    users: Users,
}

/// When the queue is looked at.
#[derive(Debug)]
struct Schedule {
    task: Option<JoinHandle<()>>,
    pace: Pace,
    bounds: Bounds,
    last: Instant,
    due: Instant,
}

/// The error of a command that gave an answer, and not the one that was wanted.
pub(crate) fn failed(program: &str, answer: &Answer) -> SchedulerError {
    let complaint = answer.complaint();
    let class = if is_outage(&complaint) { Class::Outage } else { Class::Infra };
    SchedulerError::plain(class, format!("{program}: {complaint}"))
}

/// Whether the controller, or the accounting, is away.
pub(crate) fn is_outage(complaint: &str) -> bool {
    const SIGNS: [&str; 9] = [
        "Unable to contact",
        "Socket timed out",
        "connect failure",
        "Connection refused",
        "Connection timed out",
        "Connection reset",
        "Transport endpoint",
        "Zero Bytes were transmitted",
        "slurm_persist_conn",
    ];
    SIGNS.iter().any(|sign| complaint.contains(sign))
}

impl Cluster {
    pub(crate) fn new(place: Place, harness: Option<&PathBuf>) -> Arc<Self> {
        let bounds = Bounds::of(&Policy::default());
        let now = Instant::now();
        Arc::new(Self {
            commands: Commands::new(place.clone(), harness),
            place,
            jobs: Mutex::default(),
            schedule: Mutex::new(Schedule { task: None, pace: Pace::new(bounds), bounds, last: now, due: now }),
            wake: Notify::new(),
            config: OnceCell::new(),
            partitions: OnceCell::new(),
            nodes: tokio::sync::Mutex::default(),
            outage: watch::Sender::new(None),
            ending: Mutex::default(),
            users: Users::default(),
        })
    }

    /// A command that has to succeed.
    pub(crate) async fn answer(&self, program: &'static str, words: &[&str]) -> Result<String, SchedulerError> {
        let words = self.commands.cluster().into_iter().chain(words.iter().map(|word| (*word).to_owned()));
        let answer = self.commands.ask(program, words).await?;
        if answer.is_ok() { Ok(without_clusters(&answer.stdout)) } else { Err(failed(program, &answer)) }
    }

    /// How it is set up; asked once. One that does not say is set up as usual.
    pub(crate) async fn config(&self) -> Config {
        let asked = self
            .config
            .get_or_try_init(|| async { self.answer("scontrol", &["show", "config"]).await.map(|text| config(&text)) });
        asked.await.cloned().unwrap_or_default()
    }

    /// What is known of it without a question.
    pub(crate) fn known_config(&self) -> Config {
        self.config.get().cloned().unwrap_or_default()
    }

    /// Its partitions; asked once.
    ///
    /// # Errors
    /// It does not answer.
    pub(crate) async fn partitions(&self) -> Result<&[Partition], SchedulerError> {
        let asked = self.partitions.get_or_try_init(|| async {
            self.answer("scontrol", &["-a", "-o", "show", "partition"]).await.map(|text| partitions(&text))
        });
        asked.await.map(Vec::as_slice)
    }

    /// One of them, if it is known without a question.
    pub(crate) fn known_partition(&self, name: Option<&str>) -> Option<&Partition> {
        let all = self.partitions.get()?;
        all.iter().find(|one| name.map_or(one.is_default, |name| one.name == name))
    }

    /// The nodes of a partition, as they were within the last minute; without a name of the default one.
    ///
    /// # Errors
    /// It does not answer.
    pub(crate) async fn nodes(&self, partition: Option<&str>) -> Result<Arc<Vec<Node>>, SchedulerError> {
        let usual = match partition {
            None => self.partitions().await?.iter().find(|one| one.is_default).map(|one| one.name.as_str()),
            Some(_) => None,
        };
        let partition = partition.or(usual);
        let mut known = self.nodes.lock().await;
        let key = partition.unwrap_or_default();
        if let Some((at, nodes)) = known.get(key)
            && at.elapsed() < NODES
        {
            return Ok(Arc::clone(nodes));
        }
        let mut words = vec!["-h", "-N", "-O", COLUMNS];
        words.extend(partition.iter().flat_map(|name| ["-p", name]));
        let nodes = Arc::new(nodes::parse(&self.answer("sinfo", &words).await?));
        known.insert(key.to_owned(), (Instant::now(), Arc::clone(&nodes)));
        Ok(nodes)
    }

    /// A job that is followed from now on.
    ///
    /// # Errors
    /// Its handle cannot be read.
    pub(crate) fn track(self: &Arc<Self>, job: &Job) -> Result<Arc<Tracked>, SchedulerError> {
        let mut jobs = self.jobs.lock();
        if let Some(known) = jobs.get(&job.identifier) {
            known.learn(job)?;
            return Ok(Arc::clone(known));
        }
        let tracked = Arc::new(Tracked::new(job)?);
        jobs.insert(job.identifier.clone(), Arc::clone(&tracked));
        drop(jobs);
        self.look_within(&tracked);
        Ok(tracked)
    }

    pub(crate) fn tracked(&self, job: &Job) -> Option<Arc<Tracked>> {
        self.jobs.lock().get(&job.identifier).cloned()
    }

    pub(crate) fn forget(&self, job: &Job) {
        self.jobs.lock().remove(&job.identifier);
    }

    /// The queue is looked at soon, for this job's sake.
    fn look_within(self: &Arc<Self>, tracked: &Tracked) {
        let policy = &tracked.handle().policy;
        let mut schedule = self.schedule.lock();
        schedule.bounds = schedule.bounds.least(Bounds::of(policy));
        let soon = Instant::now() + schedule.pace.after_launch(schedule.bounds);
        schedule.due = schedule.due.min(soon).max(schedule.last);
        if schedule.task.as_ref().is_none_or(JoinHandle::is_finished) {
            schedule.due = soon;
            schedule.task = Some(tokio::spawn(Arc::clone(self).follow()));
        }
        drop(schedule);
        self.wake.notify_one();
    }

    /// The queue is looked at as soon as it may be: something is known to have happened.
    pub(crate) fn look_soon(&self) {
        let mut schedule = self.schedule.lock();
        let soon = (schedule.last + schedule.pace.after_hint(schedule.bounds)).max(Instant::now());
        schedule.due = schedule.due.min(soon);
        drop(schedule);
        self.wake.notify_one();
    }

    fn active(&self) -> Vec<Arc<Tracked>> {
        self.jobs.lock().values().filter(|job| !job.is_over()).cloned().collect()
    }

    /// Whether jobs of this session hold what others wait for.
    pub(crate) fn has_launched_jobs(&self) -> bool {
        self.jobs.lock().values().any(|job| !job.is_over() && job.was_launched())
    }

    /// Looks as long as there is a job that is not over.
    async fn follow(self: Arc<Self>) {
        loop {
            // One that was away is asked again.
            self.config().await;
            let jobs = self.active();
            if jobs.is_empty() {
                // A job that is tracked from now on starts another task.
                let mut schedule = self.schedule.lock();
                if self.active().is_empty() {
                    schedule.task = None;
                    return;
                }
                continue;
            }
            self.await_turn().await;
            let started = Instant::now();
            let looked = self.tick().await;
            let random = f64::from(started.elapsed().subsec_nanos() % 1000) / 1000.0;
            let mut schedule = self.schedule.lock();
            schedule.last = Instant::now();
            let of_active = jobs.iter().filter(|job| !job.is_over()).map(|job| Bounds::of(&job.handle().policy));
            schedule.bounds = of_active.reduce(Bounds::least).unwrap_or(schedule.bounds);
            let bounds = self.bounded(schedule.bounds);
            schedule.pace = match &looked {
                Ok(looked) => schedule.pace.looked(bounds, looked.took, looked.changed, looked.all_wait),
                Err(()) => schedule.pace.failed(),
            };
            schedule.due = schedule.last + schedule.pace.pause(random);
            if let Ok(Some(next)) = looked.map(|looked| looked.next_question) {
                schedule.due = schedule.due.min(schedule.last + next);
            }
        }
    }

    /// A controller that forgets soon, beside no accounting, is asked more often: else nobody knows who took a job away.
    fn bounded(&self, bounds: Bounds) -> Bounds {
        let config = self.known_config();
        let max = if config.accounting { bounds.max } else { bounds.max.min(config.min_job_age / 2) };
        Bounds { max: max.max(bounds.min), ..bounds }
    }

    /// Until the queue may be looked at. Meanwhile it looks for new exit files.
    async fn await_turn(&self) {
        let mut unseen = self.unseen();
        loop {
            let (due, pause) = {
                let schedule = self.schedule.lock();
                (schedule.due, schedule.pace.pause(0.5))
            };
            let now = Instant::now();
            if now >= due {
                return;
            }
            let hint = (now + (pause / 8).clamp(HINTS.0, HINTS.1)).min(due);
            tokio::select! {
                () = sleep_until(hint) => {}
                () = self.wake.notified() => {
                    // Another job may have come: it has a file of its own.
                    if Instant::now() >= self.schedule.lock().due { return; }
                    let _ = timeout_at(hint, std::future::pending::<()>()).await;
                    unseen = self.unseen();
                }
            }
            let is_there = |stage: &Path| std::fs::metadata(stage.join(EXIT_FILE)).is_ok_and(|file| file.len() > 0);
            let looked = read_each(&unseen, is_there).await;
            let mut new = looked.iter().filter(|(_, is_there)| *is_there).peekable();
            if new.peek().is_some() {
                new.for_each(|(job, _)| job.hint());
                unseen.retain(|job| !job.has_exit_hint());
                self.look_soon();
            }
        }
    }

    /// The jobs whose exit files are looked for.
    fn unseen(&self) -> Vec<Arc<Tracked>> {
        let mut jobs = self.active();
        jobs.retain(|job| !job.has_exit_hint());
        if jobs.len() > MOST_HINTS {
            jobs.retain(|job| !job.is_waiting());
            jobs.truncate(MOST_HINTS);
        }
        jobs
    }

    /// Returns as soon as the status of a job differs from `seen`.
    ///
    /// # Errors
    /// It can never run; the cluster does not answer.
    pub(crate) async fn next_status(self: &Arc<Self>, job: &Job, seen: Option<&JobStatus>) -> Result<JobStatus, SchedulerError> {
        let tracked = self.track(job)?;
        let (mut statuses, mut outages) = (tracked.subscribe(), self.outage.subscribe());
        loop {
            let known = statuses.borrow_and_update().clone();
            if let Some((class, why)) = known.failure {
                return Err(SchedulerError::plain(class, why));
            }
            match known.status {
                Some(status) if Some(&status) != seen => return Ok(status),
                None if seen.is_none() && !tracked.was_launched() => return Ok(JobStatus::NotSeen),
                _ => {}
            }
            let outage = outages.borrow_and_update().clone();
            if let Some(why) = outage.filter(|_| !tracked.is_over()) {
                return Err(SchedulerError::plain(Class::Outage, &*why));
            }
            // Neither sender goes away: this has both.
            tokio::select! {
                _ = statuses.changed() => {}
                _ = outages.changed() => {}
            }
        }
    }

    /// Ends jobs: those of 50 ms with one command.
    ///
    /// # Errors
    /// It does not answer.
    pub(crate) async fn cancel(&self, id: &str) -> Result<(), SchedulerError> {
        const WINDOW: Duration = Duration::from_millis(50);
        const MOST: usize = 100;
        self.ending.lock().push(id.to_owned());
        tokio::time::sleep(WINDOW).await;
        let ids: Vec<String> = {
            let mut ending = self.ending.lock();
            let count = ending.len().min(MOST);
            // Another call has taken this one along; whether that worked shows in the queue.
            ending.drain(..count).collect()
        };
        if ids.is_empty() {
            return Ok(());
        }
        // Its exit status proves nothing: the queue is looked at.
        let words = self.commands.cluster().into_iter().chain(ids);
        let answer = self.commands.ask("scancel", words).await?;
        self.look_soon();
        let complaint = answer.complaint();
        if !answer.is_ok() && is_outage(&complaint) { Err(failed("scancel", &answer)) } else { Ok(()) }
    }

    /// Stops looking.
    pub(crate) fn close(&self) {
        if let Some(task) = self.schedule.lock().task.take() {
            task.abort();
        }
    }

    fn set_outage(&self, why: Option<String>) {
        let why = why.map(Arc::from);
        self.outage.send_if_modified(|known| {
            let changed = *known != why;
            *known = why;
            changed
        });
    }
}

/// Without the lines `CLUSTER: NAME` that `-M` adds.
fn without_clusters(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("CLUSTER:")).fold(String::new(), |text, line| text + line + "\n")
}

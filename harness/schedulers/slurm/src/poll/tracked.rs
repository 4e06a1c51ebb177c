//! The state that is kept of each job.

use crate::{
    answers::jobs::{Record, Row},
    files::ExitFile,
    log_tail::LogTail,
    plan::Handle,
};
use muster_core::{
    error::{Class, SchedulerError},
    job::scheduler::{Job, JobStatus},
};
use muster_text::time::Timestamp;
use parking_lot::Mutex;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// What is told of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Known {
    pub status: Option<JobStatus>,
    /// The reason why it can never run, or why its end cannot be known.
    pub failure: Option<(Class, String)>,
    /// Nothing of it runs any more.
    pub over: bool,
}

/// A job that is followed.
#[derive(Debug)]
pub(crate) struct Tracked {
    stage: PathBuf,
    handle: Mutex<Arc<Handle>>,
    known: watch::Sender<Known>,
    pub(super) memory: Mutex<Memory>,
    exit_hint: AtomicBool,
    /// Its cleanup has begun.
    ending: AtomicBool,
    /// Its stage folder is being read.
    being_read: AtomicBool,
}

/// What earlier looks have shown.
#[derive(Debug)]
pub(super) struct Memory {
    pub since: Instant,
    /// Its last row in the queue.
    pub last: Option<Row>,
    /// The time since when it is not listed, or in its last state.
    pub over_since: Option<Instant>,
    /// The time since when it is listed as COMPLETING.
    pub completing_since: Option<Instant>,
    pub record: Option<Record>,
    pub exit: Option<ExitFile>,
    pub log_tail: LogTail,
    /// The time since when the log has its present length.
    pub log_since: Instant,
    pub runner: Option<Timestamp>,
    /// The number of times that somebody was asked how it ended; `ask_at` is the next time.
    pub asked: u32,
    pub ask_at: Option<Instant>,
    /// The reasons why it waited, each with the time of the first look that showed it.
    pub reasons: Vec<(String, Instant)>,
    /// The number of looks that have shown the last reason.
    pub looks: u32,
    pub suspended_since: Option<Instant>,
    pub suspended: Duration,
    /// Other jobs of its name.
    pub others: Vec<String>,
}

impl Tracked {
    pub(super) fn new(job: &Job) -> Result<Self, SchedulerError> {
        let memory = Memory {
            since: Instant::now(),
            last: None,
            over_since: None,
            completing_since: None,
            record: None,
            exit: None,
            log_tail: LogTail::default(),
            log_since: Instant::now(),
            runner: None,
            asked: 0,
            ask_at: None,
            reasons: Vec::new(),
            looks: 0,
            suspended_since: None,
            suspended: Duration::ZERO,
            others: Vec::new(),
        };
        Ok(Self {
            stage: job.stage.clone(),
            handle: Mutex::new(Handle::of(job)?),
            known: watch::Sender::new(Known::default()),
            memory: Mutex::new(memory),
            exit_hint: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            being_read: AtomicBool::new(false),
        })
    }

    /// A launch may have found out more.
    pub(super) fn learn(&self, job: &Job) -> Result<(), SchedulerError> {
        let handle = Handle::of(job)?;
        let mut known = self.handle.lock();
        if known.id.is_none() && handle.id.is_some() {
            *known = handle;
            self.memory.lock().since = Instant::now();
        }
        Ok(())
    }

    /// The number under which it runs.
    pub(super) fn set_id(&self, id: &str) {
        let mut known = self.handle.lock();
        if known.id.as_deref() != Some(id) {
            *known = Arc::new(Handle { id: Some(id.to_owned()), ..(**known).clone() });
        }
    }

    pub(crate) fn handle(&self) -> Arc<Handle> {
        Arc::clone(&self.handle.lock())
    }

    pub(crate) fn stage(&self) -> &Path {
        &self.stage
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Known> {
        self.known.subscribe()
    }

    pub(crate) fn known(&self) -> Known {
        self.known.borrow().clone()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.known.borrow().over
    }

    pub(crate) fn was_launched(&self) -> bool {
        self.handle.lock().launched.is_some()
    }

    /// Other jobs of its name that were listed.
    pub(crate) fn others(&self) -> Vec<String> {
        self.memory.lock().others.clone()
    }

    /// Its log has at least so many bytes, as its script counted.
    pub(crate) fn log_bytes(&self) -> Option<u64> {
        self.memory.lock().exit.as_ref()?.bytes
    }

    /// It was launched by nobody.
    pub(crate) fn give_up(&self) {
        self.known.send_modify(|known| known.over = true);
    }

    /// It was seen in the queue, and does not run yet.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.known.borrow().status, Some(JobStatus::Pending { .. }))
    }

    /// Its cleanup begins: a script that starts from now on does nothing, and leaves nothing.
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    pub(super) fn is_being_read(&self) -> bool {
        self.being_read.load(Ordering::Relaxed)
    }

    /// Reads in its stage folder, which may take for ever.
    pub(super) fn reading<T>(&self, read: impl FnOnce() -> T) -> T {
        self.being_read.store(true, Ordering::Relaxed);
        let found = read();
        self.being_read.store(false, Ordering::Relaxed);
        found
    }

    pub(super) fn has_exit_hint(&self) -> bool {
        self.exit_hint.load(Ordering::Relaxed)
    }

    pub(super) fn hint(&self) {
        self.exit_hint.store(true, Ordering::Relaxed);
    }

    /// It is not at work any more, and how it ended is not known yet: no limit of its run counts, and people are told. `true`: that is
    /// new.
    pub(super) fn stop_clock(&self) -> bool {
        self.known.send_if_modified(|known| known.status.as_mut().is_some_and(is_asked_about))
    }

    /// `true`: it is another than before.
    pub(crate) fn tell(&self, known: Known) -> bool {
        self.known.send_if_modified(|before| {
            let changed = *before != known;
            *before = known;
            changed
        })
    }
}

/// Says in a status that Slurm has to say what became of the job. `true`: that is new.
fn is_asked_about(status: &mut JobStatus) -> bool {
    match status {
        JobStatus::Running { has_ended, partly_ended, .. } => {
            *partly_ended = Some("it has ended, and Slurm does not say yet how".to_owned());
            !std::mem::replace(has_ended, true)
        }
        JobStatus::Pending { why } => {
            let told = "it has left the queue, and Slurm does not say yet what became of it";
            std::mem::replace(why, told.to_owned()) != told
        }
        JobStatus::NotSeen | JobStatus::Ended(_) | JobStatus::Gone { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slurm_is_asked_about_is_told_once() {
        let running = JobStatus::Running { since: Timestamp(0), nodes: Vec::new(), partly_ended: None, has_ended: false };
        for mut status in [running, JobStatus::Pending { why: "Priority".to_owned() }] {
            assert_eq!([is_asked_about(&mut status), is_asked_about(&mut status)], [true, false], "{status:?}");
            let told = match &status {
                JobStatus::Running { partly_ended, .. } => partly_ended.as_deref(),
                JobStatus::Pending { why } => Some(&**why),
                _ => None,
            };
            assert!(told.is_some_and(|told| told.contains("Slurm does not say yet")), "{status:?}");
        }
        assert!(!is_asked_about(&mut JobStatus::NotSeen));
    }
}

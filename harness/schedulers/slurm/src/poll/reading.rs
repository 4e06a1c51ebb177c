//! Reading what jobs have left in their stage folders: a folder that does not answer holds up its own job alone.

use super::Tracked;
use parking_lot::Mutex;
use std::{path::Path, sync::Arc, time::Duration};
use tokio::{sync::Notify, task::spawn_blocking, time::timeout};

/// A folder that has not answered after this time is passed over until it does.
const PATIENCE: Duration = if cfg!(test) { Duration::from_millis(500) } else { Duration::from_secs(2) };
/// How often it is looked whether folders answer.
const LOOK: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 250 });
/// So many folders that do not answer are found out in one go.
const MOST_NEW: usize = 3;
/// With so many of them, the file server is away: no more threads wait for it.
const MOST_SILENT: usize = 32;

/// What a function reads of each job, in order. Jobs whose folders do not answer are not among them.
pub(super) async fn read_each<T: Send + 'static>(jobs: &[Arc<Tracked>], read: fn(&Path) -> T) -> Vec<(Arc<Tracked>, T)> {
    let mut found = Vec::with_capacity(jobs.len());
    let silent = jobs.iter().filter(|job| job.is_being_read()).count();
    let mut rest: Vec<Arc<Tracked>> = jobs.iter().filter(|job| !job.is_being_read()).cloned().collect();
    for _ in 0..MOST_NEW.min(MOST_SILENT.saturating_sub(silent)) {
        if rest.is_empty() {
            break;
        }
        let batch = Arc::new(Batch { read: Mutex::default(), done: Notify::new() });
        let (jobs, shared) = (rest.clone(), Arc::downgrade(&batch));
        spawn_blocking(move || {
            for job in jobs {
                let value = job.reading(|| read(job.stage()));
                // Nobody listens any more: this one took too long.
                let Some(batch) = shared.upgrade() else { return };
                batch.read.lock().push(value);
            }
            shared.upgrade().inspect(|batch| batch.done.notify_one());
        });
        batch.until_silent().await;
        let read: Vec<T> = std::mem::take(&mut batch.read.lock());
        drop(batch);
        // The next one does not answer, or there is none.
        let mut passed = rest.drain(..(read.len() + 1).min(rest.len()));
        found.extend(read.into_iter().zip(&mut passed).map(|(value, job)| (job, value)));
    }
    found
}

/// What a thread has read so far. One that is woken for each job costs more than the reading.
struct Batch<T> {
    read: Mutex<Vec<T>>,
    done: Notify,
}

impl<T> Batch<T> {
    /// Until all is read, or for some time nothing more is.
    async fn until_silent(&self) {
        let (mut before, mut silent) = (0, Duration::ZERO);
        while silent < PATIENCE && timeout(LOOK, self.done.notified()).await.is_err() {
            let count = self.read.lock().len();
            silent = if count == before { silent + LOOK } else { Duration::ZERO };
            before = count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Handle;
    use muster_core::{
        case::{Identifier, SessionId},
        job::{handle::JobHandle, scheduler::Job},
    };

    fn slow(stage: &Path) -> String {
        let name = stage.to_string_lossy().into_owned();
        if name.starts_with("silent") {
            std::thread::sleep(PATIENCE * 8);
        }
        name
    }

    #[tokio::test]
    async fn a_folder_that_does_not_answer_holds_up_no_other() {
        let job = |name: &str| {
            let job = Job {
                identifier: Identifier::parse("aotugiob").unwrap(),
                session: SessionId("s1".into()),
                case: String::new(),
                scheduler: crate::plan::NAME.into(),
                stage: name.into(),
                handle: JobHandle::of(Handle::default()),
            };
            Arc::new(Tracked::new(&job).unwrap())
        };
        let jobs = ["a", "silent1", "b", "silent2", "silent3", "silent4", "c"].map(job);
        let names = |found: Vec<(Arc<Tracked>, String)>| found.into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(names(read_each(&jobs, slow).await), ["a", "b"]);
        assert_eq!(names(read_each(&jobs, slow).await), ["a", "b", "c"], "those that are being read are passed over");
        tokio::time::sleep(PATIENCE * 8).await;
        assert!(jobs.iter().all(|job| !job.is_being_read()), "they have answered");
    }
}

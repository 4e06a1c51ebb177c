//! All logs of a job: a section for every container from its start, until the job is over and all logs have ended.
//!
//! ```text
//! Observed -(a container has started)-> Section --chunks--> one stream of chunks
//!     '----(the job is over, and everything has ended)--> its end
//! ```
//! Everything runs within the stream that is returned: dropping it ends every request.

use super::{
    Pace,
    container::{self, Identity, Instance},
    reader::Reader,
    section::{Beginning, Section, Shared},
};
use crate::{
    client::Cluster,
    job::{
        Assessment, ContainerLog, Handle, JobState, Observed, SeenPod, replaced_pods,
        sections::{containers, origin},
    },
    status::assess,
};
use futures_util::{StreamExt, stream, stream::FuturesUnordered};
use muster_core::job::scheduler::{Chunks, JobStatus, LogMarks};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant as Clock, sleep_until},
};

/// Chunks that wait to be taken, before no more is read.
const WAITING: usize = 16;

/// The log of every container, from `from` on. Ends when the job is over and every log has ended.
pub(crate) fn collect(
    pace: Pace,
    cluster: Arc<Cluster>,
    handle: Arc<Handle>,
    observed: watch::Receiver<Arc<Observed>>,
    from: LogMarks,
) -> Chunks<'static> {
    let (out, chunks) = mpsc::channel(WAITING);
    let (is_over, over) = watch::channel(false);
    let shared = Shared { cluster, observed: observed.clone(), over, out, pace };
    let drive = Follower {
        shared: Arc::new(shared),
        handle,
        from: Arc::new(from),
        observed,
        is_over,
        started: BTreeSet::new(),
        all_started: BTreeSet::new(),
        over_since: None,
        has_ended: false,
    };
    let driver = Some(Box::pin(drive.run()));
    Box::pin(stream::unfold((driver, chunks), |(mut driver, mut chunks)| async move {
        loop {
            let Some(running) = &mut driver else {
                let chunk = chunks.recv().await?;
                return Some((chunk, (driver, chunks)));
            };
            tokio::select! {
                biased;
                chunk = chunks.recv() => return Some((chunk?, (driver, chunks))),
                () = running => driver = None,
            }
        }
    }))
}

/// What begins sections and knows when the last one has ended.
struct Follower {
    shared: Arc<Shared>,
    handle: Arc<Handle>,
    from: Arc<LogMarks>,
    observed: watch::Receiver<Arc<Observed>>,
    is_over: watch::Sender<bool>,
    started: BTreeSet<Identity>,
    /// Pods of which every container has.
    all_started: BTreeSet<String>,
    over_since: Option<Clock>,
    /// The job has ended: what an operator puts in the place of its pods from now on does not bring it back.
    has_ended: bool,
}

impl Follower {
    async fn run(mut self) {
        let mut sections = FuturesUnordered::new();
        let mut is_watched = true;
        loop {
            let seen = Arc::clone(&self.observed.borrow_and_update());
            for section in self.new_sections(&seen) {
                sections.push(section.run());
            }
            let (over, recheck_in) = self.is_over(&seen, is_watched);
            // A watch that has just started shows the owner before its pods.
            let complete = replaced_pods::names(&seen.pods) >= self.handle.expected_pods.map_or(1, |pods| pods as usize);
            if over && sections.is_empty() && (*self.is_over.borrow() || complete && seen.pods.iter().all(SeenPod::is_over)) {
                return;
            }
            // A pod's end may be seen after its owner's, and what never ends is not waited for.
            let lag = self.shared.pace.lag;
            let late = over.then(|| *self.over_since.get_or_insert_with(Clock::now) + lag);
            if late.is_some_and(|late| late <= Clock::now()) {
                self.is_over.send_replace(true);
            }
            let next = late.filter(|_| !*self.is_over.borrow()).into_iter().chain(recheck_in.map(|by| Clock::now() + by)).min();
            tokio::select! {
                changed = self.observed.changed(), if is_watched => is_watched = changed.is_ok(),
                Some(()) = sections.next() => {}
                () = sleep_until(next.unwrap_or_else(Clock::now)), if next.is_some() => {}
                else => return,
            }
        }
    }

    /// Containers that have started since they were last looked at; the first of all first.
    fn new_sections(&mut self, seen: &Observed) -> Vec<Section> {
        let mut new = Vec::new();
        for (place, pod) in seen.pods.iter().enumerate() {
            let Some(uid) = pod.pod.metadata.uid.as_ref().filter(|uid| !self.all_started.contains(*uid)) else { continue };
            let mut all = true;
            for container in containers(&pod.pod, &self.handle).into_iter().filter(ContainerLog::logged) {
                let identity = Identity { uid: uid.clone(), container: container.name };
                if container::of(pod, &identity.container).instance == Instance::NotYet {
                    all = false;
                } else if self.started.insert(identity.clone()) {
                    new.push(self.section(pod, place, identity, container.primary));
                }
            }
            if all {
                self.all_started.insert(uid.clone());
            }
        }
        if !new.is_empty() {
            let origins = seen.pods.iter().map(|pod| origin(&pod.pod, "", &self.handle));
            let first = origins.min_by(|one, other| one.key().cmp(&other.key())).map(|first| first.name);
            for section in &mut new {
                section.first &= first.as_ref() == Some(&section.origin.name);
            }
            new.sort_by(|one, other| (!one.first, one.origin.key()).cmp(&(!other.first, other.origin.key())));
        }
        new
    }

    fn section(&self, pod: &SeenPod, place: usize, identity: Identity, primary: bool) -> Section {
        let origin = origin(&pod.pod, &identity.container, &self.handle);
        let (id, title) = (origin.id(), origin.title());
        Section {
            shared: Arc::clone(&self.shared),
            marks: Arc::clone(&self.from),
            first: primary,
            origin,
            id,
            title,
            identity,
            place,
            reader: Reader::default(),
            instance: 0,
            beginning: Beginning::default(),
            warned: false,
            log_rotation: self.handle.log_rotation,
            log_file: self.handle.log_file,
            spoke: Clock::now(),
        }
    }

    /// Is the job over, and if not, when to look again.
    fn is_over(&mut self, seen: &Observed, is_watched: bool) -> (bool, Option<Duration>) {
        if self.has_ended {
            return (true, None);
        }
        let now = self.shared.cluster.clock().now();
        let Assessment { state, recheck_in, .. } = assess(&self.handle, seen, now);
        let over = match state {
            JobState::Status(JobStatus::Ended(_) | JobStatus::Gone { .. }) => {
                self.has_ended = true;
                true
            }
            // The job is about to be stopped; what still runs still writes.
            JobState::Hopeless(_) | JobState::Broken(_) => !seen.pods.iter().any(|seen| !seen.is_over() && self.runs(seen)),
            JobState::Status(_) => false,
        };
        (over || seen.unreachable || !is_watched, recheck_in)
    }

    fn runs(&self, seen: &SeenPod) -> bool {
        let all = containers(&seen.pod, &self.handle);
        all.iter().any(|container| matches!(container::of(seen, &container.name).instance, Instance::Running(_)))
    }
}

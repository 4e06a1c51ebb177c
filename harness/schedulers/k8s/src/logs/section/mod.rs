//! One container's logs, to the proven end. Each start of the container is an instance, and each instance has a section of its own.
//!
//! ```text
//!            running                      ended                       the pod is over, or the job is
//! begin ---> follow, or poll in turns ---> last (one read to the end) --------------------------> End
//!   |          ^  | EOF, cut, silence        | another instance
//!   |          '--'                          v
//!   '--- previous instance first <----------- previous, and the new one
//! ```
//! An EOF alone proves nothing: a load balancer and a restarted kubelet end streams in the same way as a container. The end
//! is an EOF of a container that was seen to have ended, and one more read to catch what came between the two.

mod beginning;
mod last;
mod say;
mod stream;

pub(super) use beginning::Beginning;

use super::{
    Pace,
    container::{ContainerView, Identity, Instance, Life, view},
    reader::Reader,
};
use crate::{
    client::{ApiError, Cluster, LogQuery, Why, jittered},
    job::{LogRotation, Observed},
};
use futures_util::StreamExt;
use muster_core::{
    error::SchedulerError,
    job::{
        scheduler::{Channel, Chunk, LogMarks},
        stdout::SectionOrigin,
    },
};
use muster_text::time::Timestamp;
use std::{future::Future, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant as Clock, timeout},
};

/// What all sections of a job share.
pub(super) struct Shared {
    pub cluster: Arc<Cluster>,
    pub observed: watch::Receiver<Arc<Observed>>,
    /// The job is over: containers that still run are not waited for.
    pub over: watch::Receiver<bool>,
    pub out: mpsc::Sender<Result<Chunk, SchedulerError>>,
    pub pace: Pace,
}

/// The section of one instance of one container, then that of the next.
pub(super) struct Section {
    pub shared: Arc<Shared>,
    pub origin: SectionOrigin,
    /// The section's name in chunks.
    pub id: String,
    pub title: String,
    pub identity: Identity,
    /// The index of its pod in the observation.
    pub place: usize,
    /// It is the first of its job, which is shown while it runs.
    pub first: bool,
    /// The marks of all sections of the job.
    pub marks: Arc<LogMarks>,
    pub reader: Reader,
    /// The number of the instance that is read.
    pub instance: i32,
    pub beginning: Beginning,
    pub warned: bool,
    pub log_rotation: LogRotation,
    /// The node begins a new file at so many bytes; `None`: at the default of a kubelet.
    pub log_file: Option<u64>,
    /// The time when something of it was last passed on.
    pub spoke: Clock,
}

/// A log whose beginning is not judged yet is left alone for no longer.
const UNPROVEN: Duration = Duration::from_secs(1);

/// The receiver is gone, or has received an error.
pub(super) struct Closed;

/// What can be read of an instance now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Now {
    Running,
    /// This instance is over, or will not be waited for.
    Ended,
    /// The next instance has started.
    Previous,
    /// More than one instance has started since. The node keeps the log of only one.
    Lost,
}

/// Where a stream ended as that of a container does that has ended.
struct Eof {
    reader: Reader,
    at: Clock,
}

/// How a reading ended.
enum StreamEnd {
    /// As the log of a container does that has ended.
    Eof,
    Silent,
    /// Come back when it has passed, not before this time.
    Broke(Option<Duration>),
    Polled,
}

impl Section {
    /// Reads everything. Ends early when the receiver is gone.
    pub(super) async fn run(mut self) {
        if self.whole().await.is_err() {
            tracing::debug!(section = self.title, "the log is not read on");
        }
    }

    async fn whole(&mut self) -> Result<(), Closed> {
        let mut instance = self.view().instance.number().unwrap_or(0);
        self.instance_before(instance).await?;
        loop {
            self.open(instance).await?;
            self.read(instance).await?;
            self.say(Chunk::End { section: self.id.clone() }).await?;
            let Some(next) = self.next_instance(instance).await else { return Ok(()) };
            if next > instance + 1 {
                self.instance_before(next).await?;
            }
            instance = next;
        }
    }

    /// The instance before this one, which was not read while it ran. The node keeps no older ones.
    async fn instance_before(&mut self, instance: i32) -> Result<(), Closed> {
        if instance == 0 {
            return Ok(());
        }
        self.open(instance - 1).await?;
        if instance > 1 && !self.beginning.judged {
            self.lost_instances().await?;
        }
        self.previous(instance).await?;
        self.say(Chunk::End { section: self.id.clone() }).await
    }

    /// Begins the section of this instance, from where an earlier process stopped.
    async fn open(&mut self, instance: i32) -> Result<(), Closed> {
        self.instance = instance;
        self.origin.start = u32::try_from(instance).unwrap_or_default();
        self.id = self.origin.id();
        let mark = self.marks.iter().find(|mark| mark.section == self.id && mark.offset > 0);
        let (bytes, last) = mark.map_or((0, None), |mark| (mark.offset, mark.time));
        self.reader = Reader::resume(bytes, last);
        // What is kept was judged before it was passed on.
        self.beginning = Beginning::default();
        self.beginning.judged = bytes > 0;
        self.say(Chunk::Open(Channel::Log, self.origin.clone())).await
    }

    async fn lost_instances(&mut self) -> Result<(), Closed> {
        let why = format!(
            "container {} was restarted more than once: the node keeps the logs of its last two starts only",
            self.identity.container
        );
        self.gap(why).await
    }

    /// The instance before this one, from the position of the reader.
    async fn previous(&mut self, instance: i32) -> Result<(), Closed> {
        let view = self.view();
        if view.instance.number() == Some(instance) && !view.waits {
            self.last(Now::Previous, None).await
        } else {
            self.lost_instances().await
        }
    }

    /// One instance to its end.
    async fn read(&mut self, instance: i32) -> Result<(), Closed> {
        let pace = self.shared.pace.clone();
        let (mut pause, mut silence) = (pace.pause.first, pace.silence.first);
        let mut at_eof = None;
        loop {
            match self.now(instance) {
                Now::Running => {}
                now => return self.last(now, at_eof).await,
            }
            at_eof = None;
            let (before, opened) = (self.reader.bytes(), Clock::now());
            let shared = Arc::clone(&self.shared);
            let how = match shared.cluster.budget().follow(self.first) {
                Some(_stream) => self.follow(instance, silence).await?,
                None => self.poll(instance).await?,
            };
            self.beginning.left(self.reader.unfinished());
            // One that stood for a while has worked, also if there was nothing to read: a proxy that ends silent connections ends it.
            if self.reader.bytes() > before || opened.elapsed() > pace.pause.longest {
                (pause, silence) = (pace.pause.first, pace.silence.first);
            }
            match how {
                StreamEnd::Eof => {
                    at_eof = Some(Eof { reader: self.reader.clone(), at: Clock::now() });
                    // Of a silent container that runs, a later stream does not prove the beginning any more.
                    self.not_running(instance, if self.beginning.judged { pace.lag } else { pace.lag.min(UNPROVEN) }).await;
                }
                StreamEnd::Broke(at_least) => {
                    self.not_running(instance, jittered(pause).max(at_least.unwrap_or_default())).await;
                    pause = pace.pause.next(pause);
                }
                StreamEnd::Silent => silence = pace.silence.next(silence),
                StreamEnd::Polled => {}
            }
        }
    }

    /// What is there now, when it is our turn; the end does not wait for its turn.
    async fn poll(&mut self, instance: i32) -> Result<StreamEnd, Closed> {
        let shared = Arc::clone(&self.shared);
        let polled = shared.cluster.budget().polled();
        let turn = tokio::select! {
            biased;
            () = self.ended(instance) => return Ok(StreamEnd::Polled),
            turn = shared.cluster.budget().read() => turn,
        };
        let query = self.query(false, false);
        let whole = match self.shared.cluster.log(&self.origin.name, &query).await {
            Ok((date, stream)) => {
                self.answered(date);
                let whole = self.read_to_the_end(stream).await?;
                if whole && self.reader.read_to() == 0 && self.reader.clone().notes_at_the_end().is_empty() {
                    self.beginning.was_empty(date);
                }
                whole
            }
            Err(error) => return self.refused(error).await,
        };
        drop(turn);
        self.not_running(instance, polled.pause(shared.pace.poll)).await;
        Ok(if whole { StreamEnd::Polled } else { StreamEnd::Broke(None) })
    }

    /// `false`: it broke off.
    async fn read_to_the_end<S>(&mut self, mut stream: S) -> Result<bool, Closed>
    where
        S: futures_core::Stream<Item = std::io::Result<bytes::Bytes>> + Unpin,
    {
        loop {
            match timeout(self.shared.pace.silence.first, stream.next()).await {
                Ok(Some(Ok(bytes))) => self.feed(&bytes, None).await?,
                Ok(None) => return Ok(true),
                Ok(Some(Err(_))) | Err(_) => return Ok(false),
            }
        }
    }

    fn query(&mut self, follow: bool, previous: bool) -> LogQuery {
        self.reader.disconnect();
        // Texts of earlier replies do not speak of this one.
        self.reader.take_notes();
        let since = self.reader.resume_since().map(|second| Timestamp(second.saturating_mul(1_000_000)));
        LogQuery { container: self.identity.container.clone(), follow, since, previous, limit_bytes: None }
    }

    async fn refused(&mut self, error: ApiError) -> Result<StreamEnd, Closed> {
        if never(&error) {
            return self.give_up(error).await.map(|()| StreamEnd::Polled);
        }
        tracing::debug!(section = self.title, %error, "no log yet");
        // The pod is gone: the watch will say so.
        let lag = error.is_gone().then_some(self.shared.pace.lag);
        Ok(StreamEnd::Broke(error.retry_after().or(lag)))
    }

    /// The log cannot be read, now or later. The receiver decides what follows.
    async fn give_up(&mut self, error: ApiError) -> Result<(), Closed> {
        let _ = self.shared.out.send(Err(error.classify())).await;
        Err(Closed)
    }

    /// A request is answered, at this time of the server.
    fn answered(&mut self, date: Timestamp) {
        self.look_at_life();
        if let Some(after) = self.beginning.answered(date) {
            tracing::debug!(section = self.title, after_s = after.as_secs(), "the first answer after the container's start");
        }
    }

    fn look_at_life(&mut self) {
        let view = self.view();
        let seen = match view.instance.number() {
            Some(number) if number == self.instance => view.life,
            Some(number) if number == self.instance + 1 => view.last,
            _ => return,
        };
        let known = self.beginning.life;
        self.beginning.life = Life { started: seen.started.or(known.started), ended: seen.ended.or(known.ended) };
        self.beginning.scheduled = view.scheduled;
    }

    fn view(&self) -> ContainerView {
        view(&self.shared.observed.borrow(), self.place, &self.identity)
    }

    fn now(&self, instance: i32) -> Now {
        now(self.view(), instance, *self.shared.over.borrow())
    }

    /// Until this instance does not run any more, but no longer than this.
    async fn not_running(&self, instance: i32, limit: Duration) {
        // Either is a reason to look again.
        let _ = timeout(limit, self.ended(instance)).await;
    }

    /// Until this instance does not run any more, or is not waited for.
    fn ended(&self, instance: i32) -> impl Future<Output = ()> + Send + use<> {
        let (mut observed, mut over) = (self.shared.observed.clone(), self.shared.over.clone());
        let (identity, place) = (self.identity.clone(), self.place);
        async move {
            tokio::select! {
                _ = observed.wait_for(|observed| now(view(observed, place, &identity), instance, false) != Now::Running) => {}
                _ = over.wait_for(|over| *over) => {}
            }
        }
    }

    /// The instance after this one; `None`: there will be none.
    async fn next_instance(&self, instance: i32) -> Option<i32> {
        let (mut observed, mut over) = (self.shared.observed.clone(), self.shared.over.clone());
        let next =
            |observed: &Observed| view(observed, self.place, &self.identity).instance.number().filter(|next| *next > instance);
        let decided = |observed: &Arc<Observed>| view(observed, self.place, &self.identity).pod_over || next(observed).is_some();
        tokio::select! {
            biased;
            seen = observed.wait_for(decided) => seen.ok().and_then(|seen| next(&seen)),
            _ = over.wait_for(|over| *over) => None,
        }
    }
}

fn now(view: ContainerView, instance: i32, over: bool) -> Now {
    match view.instance {
        Instance::Ended(number) if number == instance + 1 && view.waits => Now::Lost,
        Instance::Running(number) | Instance::Ended(number) if number == instance + 1 => Now::Previous,
        Instance::Running(number) | Instance::Ended(number) if number > instance => Now::Lost,
        Instance::Running(_) if !over => Now::Running,
        _ => Now::Ended,
    }
}

/// A refusal that no waiting helps.
fn never(error: &ApiError) -> bool {
    matches!(error.why(), Why::NotAllowed | Why::NoNamespace)
}

#[cfg(test)]
mod tests {
    use super::{super::container::Node, *};

    #[test]
    fn of_a_container_that_waits_to_be_started_again_the_node_has_the_last_log_only() {
        // the instance that there is, whether it waits, the one that is read, what can be read of it
        let rows = [
            (Instance::Ended(1), false, 0, Now::Previous),
            (Instance::Ended(1), true, 0, Now::Lost),
            (Instance::Ended(1), true, 1, Now::Ended),
            (Instance::Running(1), false, 0, Now::Previous),
            (Instance::Running(2), false, 0, Now::Lost),
        ];
        for (instance, waits, read, expected) in rows {
            let life = Life::default();
            let node = Node::Answers;
            let view =
                ContainerView { instance, waits, life, last: life, scheduled: None, terminated: false, pod_over: false, node };
            assert_eq!(now(view, read, false), expected, "{instance:?} {waits} {read}");
        }
    }
}

//! The log of a job: a section for each instance, from its segments in S3 while they grow, and at the end from its console what S3 has
//! not got.

use crate::{
    agent::{Pace, parcel::SEGMENTS},
    cloud::{CloudError, PIECE, Piece},
    decide::{
        log::{Part, Tail, assemble},
        seen::Member,
    },
    failure, objects,
    plan::Handle,
    poll::{Region, Sight, Tracked, console},
};
use futures_util::{StreamExt, stream};
use muster_core::{
    error::SchedulerError,
    job::{
        scheduler::{Channel, Chunk, Chunks, Job, LogMarks},
        stdout::SectionOrigin,
    },
};
use std::{collections::BTreeMap, sync::Arc};
use tokio::{sync::mpsc, time::sleep};

/// A console lags: it is read so often.
const CONSOLE_LOOKS: u32 = 12;

type Sender = mpsc::Sender<Result<Chunk, SchedulerError>>;

/// The chunks of a job's log.
pub(crate) fn log(region: Result<Arc<Region>, SchedulerError>, job: &Job, from: LogMarks) -> Chunks<'static> {
    let (sender, receiver) = mpsc::channel(4);
    let job = job.clone();
    let sending = async move {
        if let Err(error) = send(region, &job, &from, &sender).await {
            // Nobody listens any more, or it is told.
            let _ = sender.send(Err(error)).await;
        }
    };
    let pieces = stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) });
    // Both are polled together, and dropped together.
    let sending = stream::once(sending).filter_map(|()| async { None });
    Box::pin(stream::select(sending, pieces))
}

/// The bytes of a full segment.
fn full() -> u64 {
    let Pace { block, blocks, .. } = Pace::default();
    block * blocks
}

/// The log of one instance.
struct Section {
    rank: u32,
    name: String,
    /// How much of it was sent.
    at: u64,
    is_open: bool,
}

struct Reader<'a> {
    region: &'a Arc<Region>,
    tracked: Arc<Tracked>,
    handle: Arc<Handle>,
    sender: &'a Sender,
}

async fn send(
    region: Result<Arc<Region>, SchedulerError>,
    job: &Job,
    from: &LogMarks,
    sender: &Sender,
) -> Result<(), SchedulerError> {
    let region = region?;
    let tracked = region.track(job)?;
    let (mut sights, mut known) = (tracked.sight(), tracked.known());
    let reader = Reader { region: &region, handle: tracked.handle(), tracked, sender };
    let section = |rank: u32| {
        let name = format!("{}-{rank}", reader.handle.name);
        let at = from.iter().find(|mark| mark.section == name).map_or(0, |mark| mark.offset);
        Section { rank, name, at, is_open: false }
    };
    let mut sections: Vec<Section> = (0..reader.handle.instances).map(section).collect();
    loop {
        let is_over = known.borrow_and_update().is_over();
        let sight = Arc::clone(&sights.borrow_and_update());
        if is_over {
            for section in &mut sections {
                reader.finish(section, &sight).await?;
            }
            if reader.tracked.read_log() {
                objects::remove(&region, job, &reader.handle)
                    .await
                    .map_err(|error| failure::of_running(error, "remove objects"))?;
            }
            return Ok(());
        }
        for section in &mut sections {
            reader.follow(section, &sight).await;
        }
        tokio::select! {
            _ = sights.changed() => {}
            _ = known.changed() => {}
        }
    }
}

impl Reader<'_> {
    /// A listener that went away ends the sending with its stream.
    async fn say(&self, chunk: Chunk) {
        let _ = self.sender.send(Ok(chunk)).await;
    }

    /// Sends what has come. What cannot be read now is read later.
    async fn follow(&self, section: &mut Section, sight: &Sight) {
        let listed: u64 = segments(section.rank, sight).values().sum();
        if listed > section.at {
            self.open(section, sight).await;
            if let Err(error) = self.read(section, listed).await {
                tracing::debug!(%error, section = section.name, "a log is read later");
            }
        }
    }

    /// Sends what is left.
    async fn finish(&self, section: &mut Section, sight: &Sight) -> Result<(), SchedulerError> {
        let member = sight.members.iter().find(|member| member.rank == section.rank);
        let segments = segments(section.rank, sight);
        if member.is_none() && segments.is_empty() {
            return Ok(());
        }
        self.open(section, sight).await;
        let listed = segments.values().sum();
        match self.read(section, listed).await {
            // The bucket has gone, and the console is what is left.
            Ok(()) => {}
            Err(error @ CloudError::Refused { .. }) if !failure::may_pass(&error) => {}
            Err(error) => return Err(failure::of_running(error, "read the log")),
        }
        let total = member.and_then(|member| Some(member.said.as_ref()?.log_bytes));
        let known = self.tracked.tail(section.rank);
        if total.max(known.as_ref().map(|tail| tail.total)).max(Some(listed)) > Some(section.at) {
            let tail = match (known, member) {
                // What Muster has ended itself had no time to write to its console.
                (None, Some(member)) if !self.tracked.was_ended() => self.tail(member).await,
                (known, _) => known,
            };
            self.complete(section, total, tail.as_ref()).await?;
        }
        self.say(Chunk::End { section: section.name.clone() }).await;
        Ok(())
    }

    async fn open(&self, section: &mut Section, sight: &Sight) {
        if std::mem::replace(&mut section.is_open, true) {
            return;
        }
        let member = sight.members.iter().find(|member| member.rank == section.rank);
        let origin = SectionOrigin {
            index: section.rank,
            created: self.handle.launched.unwrap_or_default(),
            node: member.map(Member::node),
            ..SectionOrigin::new(section.name.clone())
        };
        self.say(Chunk::Open(Channel::Log, origin)).await;
    }

    /// Sends all that S3 has from where the section is: at least `listed` bytes, although an answer may have less than was asked for.
    async fn read(&self, section: &mut Section, listed: u64) -> Result<(), CloudError> {
        loop {
            let (number, from) = (section.at / full(), section.at % full());
            let key = self.key(section.rank, number);
            let piece = self.region.cloud.get(&self.handle.bucket.name, &key, from).await?;
            let Some(Piece { bytes: data, .. }) = piece else { return Ok(()) };
            if data.is_empty() {
                return Ok(());
            }
            let at = section.at;
            let is_last = (data.len() as u64) < PIECE;
            section.at += data.len() as u64;
            self.say(Chunk::Bytes { section: section.name.clone(), at, data, time: None }).await;
            if is_last && section.at >= listed && !section.at.is_multiple_of(full()) {
                return Ok(());
            }
        }
    }

    fn key(&self, rank: u32, number: u64) -> String {
        format!("{}{rank}/log.{number:03}", self.handle.prefix)
    }

    /// The end of the log as the console has it, which may lag.
    async fn tail(&self, member: &Member) -> Option<Tail> {
        for _ in 0..CONSOLE_LOOKS {
            let tail = console(self.region, &self.tracked, member.rank, &member.id).await.and_then(|(_, tail)| tail);
            if tail.is_some() {
                return tail;
            }
            self.say(Chunk::Alive).await;
            sleep(self.handle.poll_interval).await;
        }
        None
    }

    /// Sends what is not in order in S3: parts of segments, what the console has, and how many bytes nobody has.
    async fn complete(&self, section: &mut Section, total: Option<u64>, tail: Option<&Tail>) -> Result<(), SchedulerError> {
        let prefix = format!("{}{}/log.", self.handle.prefix, section.rank);
        let listed = match self.region.cloud.objects(&self.handle.bucket.name, &prefix).await {
            Ok(listed) => listed,
            Err(error @ CloudError::Refused { .. }) if !failure::may_pass(&error) => Vec::new(),
            Err(error) => return Err(failure::of_running(error, "list the log")),
        };
        let sizes = listed.iter().filter_map(|object| Some((object.key.strip_prefix(&prefix)?.parse().ok()?, object.size)));
        let mut pieces: BTreeMap<u32, u64> = sizes.collect();
        // What was sent need not be there any more.
        for number in 0..u32::try_from(section.at.div_ceil(full())).unwrap_or(SEGMENTS) {
            let sent = (section.at - u64::from(number) * full()).min(full());
            let length = pieces.entry(number).or_default();
            *length = sent.max(*length);
        }
        let mut place = 0;
        for part in assemble(full(), &pieces, total, tail) {
            place = self.part(section, part, place, &pieces).await?;
        }
        Ok(())
    }

    /// Sends what is new of a part that begins at `place`, and returns where the next one does.
    async fn part(
        &self,
        section: &mut Section,
        part: Part,
        place: u64,
        pieces: &BTreeMap<u32, u64>,
    ) -> Result<u64, SchedulerError> {
        match part {
            Part::Segment { number, from } => {
                let start = u64::from(number) * full();
                let end = start + pieces.get(&number).copied().unwrap_or_default();
                if end > section.at {
                    section.at = section.at.max(start + from);
                    self.read(section, end).await.map_err(|error| failure::of_running(error, "read the log"))?;
                }
                if end > section.at {
                    let why = format!("{} bytes were lost: S3 lists them, and does not give them", end - section.at);
                    self.say(Chunk::Gap { section: section.name.clone(), why }).await;
                }
                Ok(end)
            }
            Part::Console(bytes) => {
                let end = place + bytes.len() as u64;
                let known = usize::try_from(section.at.saturating_sub(place)).unwrap_or(usize::MAX).min(bytes.len());
                let data = bytes[known..].to_vec();
                if !data.is_empty() {
                    let at = place + known as u64;
                    section.at = end;
                    self.say(Chunk::Bytes { section: section.name.clone(), at, data, time: None }).await;
                }
                Ok(end)
            }
            Part::Lost(count) => {
                let end = place + count;
                if end > section.at {
                    let why = format!("{} bytes were lost: neither S3 nor the console has them", end - section.at.max(place));
                    self.say(Chunk::Gap { section: section.name.clone(), why }).await;
                }
                Ok(end)
            }
        }
    }
}

/// How long each segment of an instance was when it was listed.
fn segments(rank: u32, sight: &Sight) -> BTreeMap<String, u64> {
    let prefix = format!("{rank}/log.");
    let of_rank = sight.objects.iter().filter(|(name, _)| name.starts_with(&prefix));
    of_rank.map(|(name, object)| (name.clone(), object.size)).collect()
}

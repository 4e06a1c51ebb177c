//! The last read: what an instance has left when it is over, and the proof that nothing is missing.
//!
//! A followed stream goes on from one file of the node to the newest, and silently skips the files between them.
//! Lines that follow one another faster than a node rotates prove that there was none; a request that goes on from an earlier one has to
//! begin with lines that are known (`known`). A log without that proof that is long enough is asked for its first line once more:
//! another one than at first proves a rotation. Not noticed: a rotation before the first request, one of a pod that is gone by its end,
//! and lines that the runtime still writes into a file while it opens the next.

use super::{Closed, Now, ROTATION_IS_POSSIBLE, Section, never};
use crate::{
    client::{ApiError, LogQuery, jittered},
    logs::{container::Node, reader::Reader},
};
use futures_util::StreamExt;
use muster_text::time::Timestamp;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant as Clock, sleep, timeout};

/// So often the last read is answered and does not end.
const LAST_READS: u32 = 10;
/// So often it is repeated because it did not say what it should have.
const INCOMPLETE_READS: u32 = 3;
/// Enough for the time of a line.
const BEGINNING: usize = 64;
/// No node looks after its files more often.
const FILE_LIVES: Duration = Duration::from_secs(3);
/// Who reads so soon after a line was written has seen it come. The clocks of node and server may differ a little.
const READ_WITH_IT: Duration = Duration::from_secs(1);
/// A log that may have had so many bytes before its first line may have been rotated: a tenth of what nodes keep, for logs are not even.
const MISSING: u64 = 1 << 20;
const ROTATED: &str = "the log was rotated on the node while it was read: lines may be missing; raise containerLogMaxSize of the kubelet, \
                       or print less";
const FIRST_READ_LATE: &str = "the log was long when it was first read, and its first line is younger than its container: the node may have \
                          rotated away what was before; raise containerLogMaxSize of the kubelet, or print less";
const SILENT: &str = "the end of the log could not be read: the node of the pod does not answer";
const DELETED: &str = "the pod was deleted before its log ended";

/// The reads so far that did not end.
#[derive(Debug, Default)]
struct Tries {
    answered: u32,
    /// Since when there is no answer: a server or kubelet that restarts says nothing about the log.
    silent_since: Option<Clock>,
}

impl Tries {
    /// Counts one; whether there is to be another.
    fn again(&mut self, was_answered: bool, now: Clock, outage: Duration) -> bool {
        if was_answered {
            self.silent_since = None;
            self.answered += 1;
            self.answered < LAST_READS
        } else {
            now - *self.silent_since.get_or_insert(now) < outage
        }
    }
}

impl Section {
    /// One read to the end of a log that does not grow any more. `at_eof`: where a follow of it ended.
    pub(super) async fn last(&mut self, now: Now, at_eof: Option<Reader>) -> Result<(), Closed> {
        let shared = Arc::clone(&self.shared);
        shared.until_done(self.read_the_last(now, at_eof)).await
    }

    async fn read_the_last(&mut self, now: Now, at_eof: Option<Reader>) -> Result<(), Closed> {
        let pace = self.shared.pace.clone();
        let mut pause = pace.pause;
        let mut tries = Tries::default();
        if now == Now::Lost {
            return self.lost_instances().await;
        }
        let why = loop {
            let (mut at_least, received) = (Duration::ZERO, self.reader.received);
            let view = self.view();
            match view.node {
                Node::Answers => {}
                Node::Silent => return self.gap(SILENT.to_owned()).await,
                Node::Gone => return self.vanished(at_eof.filter(|_| view.terminated)).await,
            }
            // Texts of earlier replies do not speak of this one.
            self.reader.take_notes();
            let shared = Arc::clone(&self.shared);
            let read_permit = shared.cluster.budget().read().await;
            let query = self.query(false, now == Now::Previous);
            let (why, was_answered) = match self.shared.cluster.log(&self.origin.name, &query).await {
                Ok(stream) => {
                    let whole = self.read_to_the_end(stream).await?;
                    let complete = whole && self.reader.caught_up();
                    // A last line without a newline may be such a text as well.
                    let notes = self.reader.clone().notes_at_the_end();
                    let is_enough = tries.answered + 1 >= INCOMPLETE_READS && (notes.is_empty() || at_eof.is_some());
                    if complete && notes.is_empty() || whole && is_enough {
                        let rotated = self.was_rotated(now == Now::Previous).await;
                        self.finish().await?;
                        if self.may_miss_its_beginning() {
                            self.rotated(FIRST_READ_LATE.to_owned()).await?;
                        }
                        return if rotated { self.rotated(ROTATED.to_owned()).await } else { Ok(()) };
                    }
                    let why = notes.into_iter().next().unwrap_or_else(|| "the reply broke off".to_owned());
                    (why, whole || self.reader.received > received)
                }
                Err(error) if error.is_gone() => return self.vanished(at_eof.filter(|_| view.terminated)).await,
                Err(error) if never(&error) => return self.give_up(error).await,
                Err(error) => {
                    at_least = error.retry_after().unwrap_or_default();
                    (error.message(), !error.why().passes())
                }
            };
            drop(read_permit);
            if !tries.again(was_answered, Clock::now(), pace.outage) {
                break why;
            }
            sleep(jittered(pause).max(at_least)).await;
            pause = (pause * 2).min(pace.longest_pause);
        };
        self.gap(format!("the end of the log could not be read: {why}")).await
    }

    /// Is it proven that the node's file is not the one that was read at first, and not that nothing was missed between the two?
    async fn was_rotated(&self, previous: bool) -> bool {
        if self.reader.received < ROTATION_IS_POSSIBLE || !self.reader.may_have_skipped {
            return false;
        }
        let mut pause = self.shared.pace.pause;
        for _ in 0..INCOMPLETE_READS {
            match self.beginning(previous).await {
                Ok(Some(beginning)) => return self.reader.was_rotated(&beginning),
                Ok(None) => {}
                Err(error) if error.is_gone() || never(&error) => break,
                Err(error) => pause = pause.max(error.retry_after().unwrap_or_default()),
            }
            sleep(jittered(pause)).await;
            pause = (pause * 2).min(self.shared.pace.longest_pause);
        }
        tracing::warn!(section = self.title, "it cannot be known whether the node has rotated the log");
        false
    }

    fn may_miss_its_beginning(&self) -> bool {
        let beginning = || Some((self.view().started?, self.seen_empty, self.reader.first()?, self.opened?));
        beginning().is_some_and(|(started, empty, first, opened)| {
            let since = empty.filter(|empty| *empty <= first).map_or(started, |empty| empty.max(started));
            missing(since, first, opened, self.reader.early) >= MISSING
        })
    }

    /// The first bytes of the node's file; `None`: the reply broke off.
    async fn beginning(&self, previous: bool) -> Result<Option<Vec<u8>>, ApiError> {
        let limit_bytes = Some(BEGINNING as u64);
        let query = LogQuery { container: self.identity.container.clone(), previous, limit_bytes, ..LogQuery::default() };
        let mut stream = self.shared.cluster.log(&self.origin.name, &query).await?;
        let mut beginning = Vec::new();
        while beginning.len() < BEGINNING {
            match timeout(self.shared.pace.silence, stream.next()).await {
                Ok(Some(Ok(bytes))) => beginning.extend_from_slice(&bytes),
                Ok(None) => break,
                Ok(Some(Err(_))) | Err(_) => return Ok(None),
            }
        }
        Ok(Some(beginning))
    }

    /// The pod is gone. Its log is whole if it had ended and the container too.
    async fn vanished(&mut self, at_eof: Option<Reader>) -> Result<(), Closed> {
        match at_eof {
            Some(reader) => {
                self.reader = reader;
                self.finish().await
            }
            None => self.gap(DELETED.to_owned()).await,
        }
    }

    async fn finish(&mut self) -> Result<(), Closed> {
        let fed = self.reader.finish();
        self.pass(fed).await
    }
}

/// How many bytes there may have been before the first line that came, if the log went on as it did then. `since`: the container's start,
/// or when the log was last seen empty. `early`: what was written between the first line and the moment at which it was read.
/// No bytes are missing if the first line came with the container, or was read as it was written.
fn missing(since: Timestamp, first: Timestamp, opened: Timestamp, early: u64) -> u64 {
    let (before, unseen) = (first.since(since), opened.since(first));
    if before < FILE_LIVES || unseen < READ_WITH_IT {
        return 0;
    }
    let bytes = u128::from(early) * before.as_millis() / unseen.as_millis();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_missing_before_the_first_line_follows_from_how_fast_the_log_grew_then() {
        // The container's start, or an empty log; the first line, its read; in seconds. What was written in between, what may be missing.
        let rows = [
            (10, 10, 12, 500, 0),
            (10, 12, 60, 500, 0),
            (10, 13, 13, 500, 0),
            (10, 60, 30, 500, 0),
            (10, 13, 14, 500, 1500),
            (10, 40, 45, 5000, 30_000),
            (35, 40, 45, 5000, 5000),
        ];
        for (since, first, opened, early, expected) in rows {
            let at = |seconds: i64| Timestamp(seconds * 1_000_000);
            assert_eq!(missing(at(since), at(first), at(opened), early), expected, "{since} {first} {opened}");
        }
    }

    #[test]
    fn ten_answers_or_an_outage_end_the_last_read() {
        // (answered, at second) of each try; whether there is another
        type Row<'a> = (&'a [(bool, u64)], bool);
        let (begin, outage) = (Clock::now(), Duration::from_mins(5));
        let rows: [Row<'_>; 6] = [
            (&[(true, 0); 9], true),
            (&[(true, 0); 10], false),
            (&[(false, 0); 99], true),
            (&[(false, 0), (false, 299)], true),
            (&[(false, 0), (false, 300)], false),
            (&[(false, 0), (true, 200), (false, 400), (false, 600)], true),
        ];
        for (all, expected) in rows {
            let mut tries = Tries::default();
            let again = all.iter().map(|(answered, at)| tries.again(*answered, begin + Duration::from_secs(*at), outage)).last();
            assert_eq!(again, Some(expected), "{all:?}");
        }
    }
}

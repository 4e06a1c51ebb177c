//! The last read: what an instance has left when it is over, and the proof that nothing is missing.
//!
//! A followed stream goes on from one file of the node to the newest, and silently skips the files between them.
//! Lines that follow one another faster than a node rotates prove that there was none; a request that goes on from an earlier one has to
//! begin with lines that are known (`known`), unless a stream had ended when the container had. A log without that proof is asked for its
//! first line once more: the one that came first proves that there was no rotation. Not noticed: lines that are written
//! to a file while the kubelet turns to the next.
//!
//! An answer that the API server breaks off looks whole: it ends the reply as usual when the kubelet's breaks. So the end is where two
//! answers end one after the other, a stream's among them.

use super::{Closed, Eof, Now, Section, Shared, never};
use crate::{
    client::{ApiError, LogQuery, jittered},
    logs::{
        container::{Instance, Node},
        reader::time_of,
    },
};
use futures_util::StreamExt;
use muster_text::time::Timestamp;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant as Clock, sleep, timeout};

/// So often the last read is answered and does not end.
const LAST_READS: u32 = 10;
/// So often it is repeated because it did not say what it should have.
pub(super) const INCOMPLETE_READS: u32 = 3;
/// So many characters of a text that came in place of a log are shown.
const SAID: usize = 200;
/// The clocks of node and server may differ by so many seconds, and the date of an answer is cut to a whole one.
const SKEW: i64 = 2;
/// Enough for the time of a line.
const BEGINNING: usize = 64;
const ROTATED: &str = "the log was rotated on the node while it was read: lines may be missing; raise containerLogMaxSize of the kubelet, \
                       or print less";
const NO_LINE: &str = "; the node answered with no line of it";
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
    pub(super) async fn last(&mut self, now: Now, at_eof: Option<Eof>) -> Result<(), Closed> {
        let shared = Arc::clone(&self.shared);
        shared.until_done(self.read_the_last(now, at_eof)).await
    }

    async fn read_the_last(&mut self, now: Now, mut at_eof: Option<Eof>) -> Result<(), Closed> {
        let pace = self.shared.pace.clone();
        let mut pause = pace.pause.first;
        let mut tries = Tries::default();
        let mut ended_at = at_eof.as_ref().map(|eof| eof.reader.read_to());
        if now == Now::Lost {
            return self.lost_instances().await;
        }
        let why = loop {
            let (mut at_least, mut at_once, received) = (Duration::ZERO, false, self.reader.received);
            let view = self.view();
            // It may have been started again meanwhile: then this is another start's log, or nobody has it any more.
            let previous = match self.now(self.instance) {
                Now::Lost => return self.lost_instances().await,
                seen => seen == Now::Previous || now == Now::Previous,
            };
            match view.node {
                Node::Answers => {}
                Node::Silent => return self.gap(SILENT.to_owned()).await,
                Node::Gone => return self.vanished(at_eof).await,
            }
            let shared = Arc::clone(&self.shared);
            let read_permit = shared.cluster.budget().read().await;
            let query = self.query(false, previous);
            let (why, was_answered) = match self.shared.cluster.log(&self.origin.name, &query).await {
                Ok((date, stream)) => {
                    self.answered(date);
                    let whole = self.read_to_the_end(stream).await?;
                    // A last line without a newline may be a text as well.
                    let notes = self.reader.clone().notes_at_the_end();
                    let is_enough = whole && tries.answered + 1 >= INCOMPLETE_READS;
                    let end = at_eof.take_if(|eof| is_enough && self.is_end(eof, date, previous));
                    let grows = !previous && matches!(view.instance, Instance::Running(_));
                    let is_settled = grows || whole && ended_at == Some(self.reader.read_to());
                    ended_at = whole.then(|| self.reader.read_to()).or(ended_at);
                    let is_read = whole && is_settled && notes.is_empty();
                    // To see the first end once more needs no pause.
                    at_once = whole && !is_settled && self.reader.has_lines && tries.answered == 0;
                    if end.is_some() || is_read && (is_enough || self.reader.caught_up()) {
                        if let Some(eof) = end {
                            self.reader = eof.reader;
                        }
                        return self.complete(previous).await;
                    }
                    (said(&notes), whole || self.reader.received > received)
                }
                Err(error) if error.is_gone() => return self.vanished(at_eof).await,
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
            if !at_once {
                sleep(jittered(pause).max(at_least)).await;
                pause = pace.pause.next(pause);
            }
        };
        self.gap(format!("the end of the log could not be read: {why}")).await
    }

    async fn complete(&mut self, previous: bool) -> Result<(), Closed> {
        let rotated = self.was_rotated(previous).await;
        self.finish().await?;
        if rotated { self.rotated(ROTATED.to_owned()).await } else { Ok(()) }
    }

    /// Did the stream end because the container had, and had brought lines until then? An answer of this date has just come. What the node
    /// has begun since is then no loss.
    fn is_end(&self, eof: &Eof, date: Timestamp, previous: bool) -> bool {
        // A stream that was opened late is that of the container's next start: its lines are younger than the end of this one.
        let newest = eof.reader.newest().map(Timestamp::seconds);
        if previous && newest > self.beginning.life.ended.map(Timestamp::seconds) {
            return false;
        }
        let has_all = eof.reader.bytes() > 0 && eof.reader.bytes() == self.reader.bytes() && eof.reader.is_between_lines();
        self.had_ended(eof, date) && has_all
    }

    /// Whether the container had ended when the stream did. A stream ends as if it had where the kubelet is restarted. `now`: by the
    /// server's clock.
    fn had_ended(&self, eof: &Eof, now: Timestamp) -> bool {
        let ended = now.seconds() - i64::try_from(eof.at.elapsed().as_secs()).unwrap_or(i64::MAX);
        let had_ended = self.beginning.life.ended.is_some_and(|end| end.seconds() <= ended + SKEW);
        self.view().terminated && had_ended
    }

    /// May a file be missing between the one that was read at first and the node's? Not if the two are one.
    async fn was_rotated(&self, previous: bool) -> bool {
        if !self.reader.may_have_skipped {
            return false;
        }
        let found = self.shared.first_line(&self.origin.name, &self.identity.container, previous, ()).await;
        let written = found.and_then(|line| line.written);
        written.is_none_or(|written| self.reader.first().is_some_and(|first| written > first))
    }

    /// The pod is gone. Its log is whole if its stream had ended after the container.
    async fn vanished(&mut self, at_eof: Option<Eof>) -> Result<(), Closed> {
        self.look_at_life();
        let now = self.shared.cluster.clock().now();
        match at_eof.filter(|eof| self.had_ended(eof, now)) {
            Some(eof) => {
                self.reader = eof.reader;
                self.finish().await?;
                if self.reader.may_have_skipped { self.rotated(ROTATED.to_owned()).await } else { Ok(()) }
            }
            None => self.gap(DELETED.to_owned()).await,
        }
    }

    async fn finish(&mut self) -> Result<(), Closed> {
        let mut fed = self.reader.finish();
        if !self.reader.has_lines {
            fed.gaps.iter_mut().for_each(|why| why.push_str(NO_LINE));
        }
        self.pass(fed).await?;
        self.judge_beginning().await
    }
}

/// What a plain read finds at the beginning of the node's file.
pub(super) struct FirstLine {
    /// The time of the server's answer.
    pub date: Timestamp,
    /// The time when the line was written; `None`: the file is empty.
    pub written: Option<Timestamp>,
}

impl Shared {
    /// `None`: the server does not say. `turn`: of the caller, given back before the first pause.
    pub(super) async fn first_line<T>(&self, pod: &str, container: &str, previous: bool, turn: T) -> Option<FirstLine> {
        let mut pause = self.pace.pause.first;
        let mut turn = Some(turn);
        for _ in 0..INCOMPLETE_READS {
            let beginning = self.beginning(pod, container, previous).await;
            turn.take();
            match beginning {
                Ok(Some((date, file))) if file.is_empty() => return Some(FirstLine { date, written: None }),
                Ok(Some((date, file))) if time_of(&file).is_some() => return Some(FirstLine { date, written: time_of(&file) }),
                Ok(_) => {}
                Err(error) if error.is_gone() || never(&error) => return None,
                Err(error) => pause = pause.max(error.retry_after().unwrap_or_default()),
            }
            sleep(jittered(pause)).await;
            pause = self.pace.pause.next(pause);
        }
        None
    }

    /// The first bytes of the node's file, and when the server answered; `None`: the reply broke off.
    async fn beginning(&self, pod: &str, container: &str, previous: bool) -> Result<Option<(Timestamp, Vec<u8>)>, ApiError> {
        let limit_bytes = Some(BEGINNING as u64);
        let query = LogQuery { container: container.to_owned(), previous, limit_bytes, ..LogQuery::default() };
        let (date, mut stream) = self.cluster.log(pod, &query).await?;
        let mut beginning = Vec::new();
        while beginning.len() < BEGINNING {
            match timeout(self.pace.silence.first, stream.next()).await {
                Ok(Some(Ok(bytes))) => beginning.extend_from_slice(&bytes),
                Ok(None) => break,
                Ok(Some(Err(_))) | Err(_) => return Ok(None),
            }
        }
        Ok(Some((date, beginning)))
    }
}

/// In one line, and not all of a page.
fn said(notes: &[String]) -> String {
    let text = notes.join(" ");
    match text.char_indices().nth(SAID) {
        _ if text.is_empty() => "the reply broke off".to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

//! One stream of a log that is followed, and the plain read that joins it while it gives nothing.
//!
//! The API server answers a follow of an empty log with the log's first byte. So a stream without a byte is that of a silent container,
//! or one that nobody serves: a plain read tells which.

use super::{Closed, Section, StreamEnd, last::FirstLine};
use crate::{client::ApiError, logs::container::Instance};
use bytes::Bytes;
use futures_util::{
    Stream, StreamExt,
    future::{OptionFuture, ready},
    stream,
};
use muster_text::time::Timestamp;
use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};
use tokio::time::{Instant as Clock, sleep, timeout};

/// A log of fewer bytes is not followed anew when it is silent.
const ROTATION_IS_POSSIBLE: u64 = 256 << 10;
/// A stream without an answer is opened anew before load balancers drop it without a word.
const UNANSWERED: Duration = Duration::from_secs(290);
/// A container that has written nothing for so long is silent.
const SILENT: Duration = Duration::from_secs(1);
/// A stream has so long to bring what is there, where it is not late already.
const FIRST_BYTES: Duration = Duration::from_millis(200);
/// A container of this age is seen late: soon an answer proves nothing.
const LATE: Duration = Duration::from_millis(1_500);

/// What comes of a request for a log.
enum Piece {
    Refused(ApiError),
    /// At this time of the server.
    Answered(Timestamp),
    Bytes(io::Result<Bytes>),
}

fn pieces<S>(answer: impl Future<Output = Result<(Timestamp, S), ApiError>>) -> impl Stream<Item = Piece>
where
    S: Stream<Item = io::Result<Bytes>>,
{
    stream::once(answer).flat_map(|answer| match answer {
        Ok((date, bytes)) => stream::once(ready(Piece::Answered(date))).chain(bytes.map(Piece::Bytes)).left_stream(),
        Err(error) => stream::once(ready(Piece::Refused(error))).right_stream(),
    })
}

impl Section {
    /// Until the stream ends, or says nothing for so long.
    pub(super) async fn follow(&mut self, instance: i32, silence: Duration) -> Result<StreamEnd, Closed> {
        let query = self.query(true, false);
        let (shared, name) = (Arc::clone(&self.shared), self.origin.name.clone());
        let lag = shared.pace.lag;
        let mut pieces = pin!(pieces(shared.cluster.log(&name, &query)));
        let mut ended = pin!(self.ended(instance));
        // On the heap, and only for its time: a stream is there for hours.
        let mut look = Some(Box::pin(self.look()));
        let (mut is_over, mut leave_at) = (false, None);
        let (mut answered, mut since) = (None, Clock::now());
        while leave_at.is_none_or(|at| Clock::now() < at) {
            look = look.filter(|_| !self.beginning.judged);
            let quiet = if is_over { lag } else { self.quiet(answered.is_some(), silence) };
            let piece = tokio::select! {
                biased;
                piece = timeout(quiet, pieces.next()) => piece,
                () = &mut ended, if !is_over => {
                    is_over = true;
                    // What still runs is not waited for, however much it goes on to say.
                    leave_at = matches!(self.view().instance, Instance::Running(_)).then(|| Clock::now() + lag);
                    continue;
                }
                looked = OptionFuture::from(look.as_mut()), if look.is_some() => {
                    look = None;
                    if let Some(FirstLine { date, written }) = looked.flatten() {
                        self.answered(date);
                        self.beginning.joined(date, written);
                    }
                    continue;
                }
            };
            match piece {
                Ok(Some(Piece::Answered(date))) => (answered, since) = (Some((date, Clock::now())), Clock::now()),
                Ok(Some(Piece::Refused(error))) => return self.refused(error).await,
                Ok(Some(Piece::Bytes(Ok(bytes)))) => {
                    // A first line may come in parts, the last of them much later.
                    if let Some((date, at)) = answered.filter(|_| !self.beginning.judged && self.reader.read_to() == 0) {
                        self.answered(date.plus(at.elapsed()));
                    }
                    self.feed(&bytes, Some(since.elapsed())).await?;
                    since = Clock::now();
                }
                Ok(Some(Piece::Bytes(Err(error)))) => {
                    tracing::debug!(section = self.title, %error, "the log broke off");
                    return Ok(StreamEnd::Broke(None));
                }
                Ok(None) => return Ok(self.eof()),
                Err(_) => return Ok(StreamEnd::Silent),
            }
        }
        Ok(StreamEnd::Silent)
    }

    /// How long a stream may be silent.
    fn quiet(&self, is_answered: bool, silence: Duration) -> Duration {
        match is_answered {
            false => UNANSWERED,
            true if self.reader.received < ROTATION_IS_POSSIBLE => self.shared.pace.silence.longest,
            true => silence,
        }
    }

    /// An end after a text of the node, or of something before it, is not the end of the log.
    fn eof(&self) -> StreamEnd {
        if self.reader.clone().notes_at_the_end().is_empty() { StreamEnd::Eof } else { StreamEnd::Broke(None) }
    }

    /// Once the container is silent: what a plain read of its log finds.
    fn look(&self) -> impl Future<Output = Option<FirstLine>> + Send + use<> {
        let (shared, name, container) = (Arc::clone(&self.shared), self.origin.name.clone(), self.identity.container.clone());
        let age = self.view().life.started.map_or(Duration::ZERO, |started| shared.cluster.clock().now().since(started));
        let wait = if age < LATE { SILENT.saturating_sub(age).max(FIRST_BYTES) } else { Duration::ZERO };
        async move {
            sleep(wait).await;
            let turn = shared.cluster.budget().read().await;
            shared.first_line(&name, &container, false, turn).await
        }
    }
}

//! Sends the chunks of a section: new bytes, gaps, and signs that the log is still being read.

use super::{Beginning, Closed, Section, Shared};
use crate::{job::LogRotation, logs::reader::Fed};
use muster_core::job::scheduler::Chunk;
use std::{future::Future, pin::pin, time::Duration};
use tokio::time::{Instant as Clock, timeout};

impl Shared {
    /// Runs work that has limits of its own, and reports in between that the log is still being read.
    pub(super) async fn until_done<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            match timeout(self.pace.alive, &mut work).await {
                Ok(done) => return done,
                // A full channel has unread chunks, which show the same.
                Err(_) => drop(self.out.try_send(Ok(Chunk::Alive))),
            }
        }
    }
}

/// `containerLogMaxSize` of a kubelet by default.
const FILE: u64 = 10 << 20;

/// So many bytes of a file may be all that a node puts into it.
fn nearly(file: Option<u64>) -> u64 {
    file.unwrap_or(FILE) / 10 * 9
}

impl Section {
    /// `waited`: for how long nothing came before this, in a stream.
    pub(super) async fn feed(&mut self, bytes: &[u8], waited: Option<Duration>) -> Result<(), Closed> {
        self.reader.arrives(waited);
        let fed = self.reader.feed(bytes);
        if !self.warned && self.reader.received > nearly(self.log_file) {
            self.warned = true;
            let received = self.reader.received;
            tracing::warn!(
                section = self.title,
                received,
                "the log nearly fills a file: lines may be lost where the node rotates it"
            );
        }
        self.pass(fed).await
    }

    pub(super) async fn pass(&mut self, fed: Fed) -> Result<(), Closed> {
        let Fed { mut bytes, first, last, gaps } = fed;
        for why in gaps {
            self.rotated(why).await?;
        }
        if bytes.is_empty() {
            return self.repeats().await;
        }
        self.judge_beginning().await?;
        if self.beginning.may_have_filled_a_file(self.reader.received, nearly(self.log_file), last) {
            self.rotated(Beginning::was_too_fast(self.reader.received)).await?;
        }
        self.spoke = Clock::now();
        let mut at = self.reader.bytes() - bytes.len() as u64;
        // The first line gets a chunk of its own for its time: a chunk carries only the time of its last line.
        let end = memchr::memchr(b'\n', &bytes).map(|newline| newline + 1);
        if at == 0
            && let Some(end) = end.filter(|end| *end < bytes.len())
        {
            let rest = bytes.split_off(end);
            self.say(Chunk::Bytes { section: self.id.clone(), at, data: bytes, time: first }).await?;
            at = end as u64;
            bytes = rest;
        }
        self.say(Chunk::Bytes { section: self.id.clone(), at, data: bytes, time: last }).await
    }

    /// Before anything of it is passed on: who goes on from there knows that it was judged.
    pub(super) async fn judge_beginning(&mut self) -> Result<(), Closed> {
        if self.beginning.judged {
            return Ok(());
        }
        self.look_at_life();
        self.beginning.judged = true;
        self.beginning.first = self.reader.first();
        if self.beginning.is_proven() {
            self.beginning.holds();
            Ok(())
        } else {
            self.rotated(self.beginning.was_too_late()).await
        }
    }

    /// What comes is known, or no whole line yet.
    pub(super) async fn repeats(&mut self) -> Result<(), Closed> {
        if self.spoke.elapsed() < self.shared.pace.alive {
            return Ok(());
        }
        self.spoke = Clock::now();
        self.say(Chunk::Alive).await
    }

    pub(super) async fn gap(&mut self, why: String) -> Result<(), Closed> {
        self.say(Chunk::Gap { section: self.id.clone(), why }).await
    }

    /// Lines may be missing because the node rotated the log: the partition or the check says what that means.
    pub(super) async fn rotated(&mut self, why: String) -> Result<(), Closed> {
        match self.log_rotation {
            LogRotation::Invalid => self.gap(why).await,
            LogRotation::Warn => self.say(Chunk::Warning { section: self.id.clone(), why }).await,
        }
    }

    pub(super) async fn say(&self, chunk: Chunk) -> Result<(), Closed> {
        self.shared.out.send(Ok(chunk)).await.map_err(|_| Closed)
    }
}

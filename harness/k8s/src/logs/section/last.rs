//! The last read: what a life has left when it is over, and the proof that nothing is missing.

use super::{Closed, Now, Section, never};
use crate::{client::jittered, logs::reader::Reader};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// So often the last read is tried.
const LAST_READS: u32 = 10;
/// So often it is repeated because it did not say what it should have.
const INCOMPLETE_READS: u32 = 3;
const DELETED: &str = "the pod was deleted before its log ended";

impl Section {
    /// One read to the end of a log that does not grow any more. `at_eof`: where a follow of it ended.
    pub(super) async fn last(&mut self, now: Now, at_eof: Option<Reader>) -> Result<(), Closed> {
        let pace = self.shared.pace.clone();
        let mut pause = pace.pause;
        let mut why = String::new();
        if now == Now::Lost {
            return self.lost_lives().await;
        }
        for read in 1..=LAST_READS {
            let mut at_least = Duration::ZERO;
            let look = self.look();
            if look.gone {
                return self.vanished(at_eof.filter(|_| look.terminated)).await;
            }
            // Texts of earlier replies do not speak of this one.
            self.reader.take_notes();
            let shared = Arc::clone(&self.shared);
            // The semaphore is never closed: without a permit it would only be less polite.
            let read_permit = shared.reads.acquire().await.ok();
            let query = self.query(false, now == Now::Previous);
            match self.shared.cluster.log(&self.pod, &query).await {
                Ok(stream) => {
                    let whole = self.read_to_the_end(stream).await?;
                    let complete = whole && self.reader.caught_up();
                    // A last line without a newline may be such a text as well.
                    let notes = self.reader.clone().notes_at_the_end();
                    if complete && notes.is_empty() || read >= INCOMPLETE_READS && whole && (notes.is_empty() || at_eof.is_some())
                    {
                        return self.finish().await;
                    }
                    why = notes.into_iter().next().unwrap_or_else(|| "the reply broke off".to_owned());
                }
                Err(error) if error.is_gone() => return self.vanished(at_eof.filter(|_| look.terminated)).await,
                Err(error) if never(&error) => return self.give_up(error).await,
                Err(error) => {
                    at_least = error.retry_after().unwrap_or_default();
                    why = error.message();
                }
            }
            drop(read_permit);
            if read < LAST_READS {
                sleep(jittered(pause).max(at_least)).await;
                pause = (pause * 2).min(pace.longest_pause);
            }
        }
        self.gap(format!("the end of the log could not be read: {why}")).await
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

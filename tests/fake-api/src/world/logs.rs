//! The logs of containers, as a node keeps them, and how they are served.

use bytes::Bytes;
use futures_util::{Stream, stream};
use jiff::Timestamp;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::watch;

/// No more than this in one piece of a reply.
const PIECE: usize = 64 << 10;

/// The logs of one container: of each of its lives one.
#[derive(Debug, Default)]
pub(crate) struct Logs(HashMap<(String, String), Vec<Arc<Log>>>);

/// One life of a container.
#[derive(Debug)]
pub(crate) struct Log {
    text: Mutex<Text>,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Text {
    lines: Vec<(Timestamp, Vec<u8>)>,
    /// The first line of each file but the first. Only the newest is served to who asks.
    files: Vec<usize>,
    /// The container has ended: nothing more comes.
    ended: bool,
}

impl Logs {
    /// The current life's log; `None`: it never began.
    pub(crate) fn get(&self, uid: &str, container: &str, previous: bool) -> Option<Arc<Log>> {
        let lives = self.0.get(&(uid.to_owned(), container.to_owned()))?;
        if previous { lives.len().checked_sub(2).map(|at| Arc::clone(&lives[at])) } else { lives.last().cloned() }
    }

    /// A container begins to live, perhaps again.
    pub(crate) fn begin(&mut self, uid: &str, container: &str) {
        let log = Arc::new(Log { text: Mutex::default(), changed: watch::Sender::new(0) });
        self.0.entry((uid.to_owned(), container.to_owned())).or_default().push(log);
    }

    /// A pod is gone, and all its logs with it.
    pub(crate) fn remove(&mut self, uid: &str, containers: &[String]) {
        for container in containers {
            for log in self.0.remove(&(uid.to_owned(), container.clone())).into_iter().flatten() {
                log.end();
            }
        }
    }
}

impl Log {
    /// Appends lines; what does not end with a newline is a last line without one.
    pub(crate) fn write(&self, bytes: &[u8]) {
        self.change(|text| {
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                text.lines.push((Timestamp::now(), line.to_vec()));
            }
        });
    }

    pub(crate) fn end(&self) {
        self.change(|text| text.ended = true);
    }

    /// All lines so far are in a file that is not served.
    pub(crate) fn rotate(&self) {
        self.change(|text| text.files.push(text.lines.len()));
    }

    /// Where the newest file begins.
    fn newest(&self) -> Place {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        Place { file: text.files.len(), line: text.files.last().copied().unwrap_or(0) }
    }

    fn change(&self, change: impl FnOnce(&mut Text)) {
        change(&mut self.text.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.send_modify(|version| *version += 1);
    }

    /// From a place on: bytes, the next place, whether that was the end. As a kubelet does, a reader reads its file to the end, whether
    /// or not there is a newer one, and goes on with the newest then.
    fn read(&self, from: Place, ask: &Ask) -> (Vec<u8>, Place, bool) {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut bytes, mut at) = (Vec::new(), from);
        while bytes.len() < PIECE {
            let end = text.files.get(at.file).copied().unwrap_or(text.lines.len());
            if at.line >= end && at.file < text.files.len() && ask.follow {
                at = Place { file: text.files.len(), line: text.files[text.files.len() - 1] };
                continue;
            }
            let Some((time, line)) = text.lines.get(at.line).filter(|_| at.line < end) else { break };
            at.line += 1;
            if ask.since.is_some_and(|since| *time < since) {
                continue;
            }
            if ask.timestamps {
                bytes.extend(format!("{time:.9} ").into_bytes());
            }
            bytes.extend_from_slice(line);
        }
        let all = at.line >= text.lines.len() || !ask.follow && text.files.get(at.file).is_some_and(|end| at.line >= *end);
        (bytes, at, all && (text.ended || !ask.follow))
    }
}

/// The next line, and in which file it is looked for.
#[derive(Debug, Clone, Copy)]
struct Place {
    file: usize,
    line: usize,
}

/// How a log is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ask {
    pub follow: bool,
    pub timestamps: bool,
    /// A whole second.
    pub since: Option<Timestamp>,
}

/// The reply.
pub(crate) fn stream(log: Arc<Log>, ask: Ask) -> impl Stream<Item = Bytes> + Send {
    let (changed, begin) = (log.changed.subscribe(), log.newest());
    stream::unfold(Some((log, changed, begin)), move |state| async move {
        let (log, mut changed, mut at) = state?;
        loop {
            changed.borrow_and_update();
            let (bytes, next, ended) = log.read(at, &ask);
            at = next;
            if !bytes.is_empty() {
                return Some((Bytes::from(bytes), (!ended).then_some((log, changed, at))));
            }
            if ended || changed.changed().await.is_err() {
                return None;
            }
        }
    })
}

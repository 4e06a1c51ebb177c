//! Files and folders that do not answer: a pipe that nobody writes to, a file system whose server is away. No timer ends such a call.
//!
//! A command that may take as long as its files take only notes which one it looks at. `muster doctor` watches that note from another
//! thread, and ends with its name.

use muster_core::probe::seconds;
use parking_lot::Mutex;
use std::{
    io,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// What is looked at, and since when.
static NOW: Mutex<Option<(PathBuf, Instant)>> = Mutex::new(None);

/// Held while a file or a folder is looked at.
pub struct Looking(());

impl Looking {
    pub fn at(path: &Path) -> Self {
        *NOW.lock() = Some((path.to_owned(), Instant::now()));
        Self(())
    }

    /// Returns the path that has been looked at for as long as that.
    pub fn for_longer_than(limit: Duration) -> Option<PathBuf> {
        NOW.lock().as_ref().filter(|(_, since)| since.elapsed() >= limit).map(|(path, _)| path.clone())
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        *NOW.lock() = None;
    }
}

/// Does `work` on a thread of its own, which is left behind when it takes longer.
pub fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let (done, result) = mpsc::sync_channel(1);
    thread::Builder::new().name("file".into()).spawn(move || drop(done.send(work())))?;
    result.recv_timeout(limit).unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, no_answer(limit))))
}

/// `no answer within 10 s`
pub fn no_answer(limit: Duration) -> String {
    format!("no answer within {}", seconds(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_does_not_end_is_left_behind() {
        let hangs = || {
            thread::sleep(Duration::from_mins(1));
            Ok(())
        };
        let error = within(Duration::from_secs(1), hangs).unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::TimedOut, "no answer within 1 s".to_owned()));
        assert_eq!(within(Duration::from_mins(1), || Ok(7)).unwrap(), 7);
    }
}

//! The spool of messages while the server is away: a file on the disk of the harness, in which a message is as safe as in a
//! database. When the server is there again, it is written there in the same order, and the file is removed.
//!
//! ```text
//! file     record ...                           a process that is killed leaves its file; the next that opens the database writes it
//! record   length (4 bytes), MessagePack        one that was not finished is not there: nobody was told that it is
//! Message | Tried { transaction, first, count } these messages were written in that transaction, if it was committed
//!         | Written(count)                      so many messages, from the first on, are in the database
//! ```

use crate::write::message::Message;
use muster_host::files;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File, OpenOptions},
    hash::{BuildHasher, RandomState},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Whoever has a spool touches it so often, because another host may not see its lock.
pub(super) const TOUCHED_EVERY: Duration = Duration::from_mins(1);
/// A spool of another host that was not touched for so long is of a process that is gone.
const FORGOTTEN: Duration = Duration::from_mins(15);

#[derive(Debug)]
pub(crate) struct Spool {
    path: PathBuf,
    /// Locked as long as its process lives. `None`: it is not needed yet.
    file: Option<File>,
    limit: u64,
    size: u64,
    messages: u64,
}

#[derive(Serialize, Deserialize)]
enum Record {
    Message(Message),
    Tried(Tried),
    Written(u64),
}

/// Messages, by their numbers in the file, that were in one transaction whose end is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tried {
    pub(crate) transaction: i64,
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl Tried {
    /// The first, and the one after the last.
    pub(crate) fn range(self) -> [u64; 2] {
        [self.first, self.first + self.count]
    }
}

/// What is in a spool.
pub(crate) struct Contents {
    pub(crate) messages: Vec<Message>,
    pub(crate) tried: Vec<Tried>,
    /// So many of the messages are in the database.
    pub(crate) written: u64,
}

impl Spool {
    /// A spool of a process of this host for a database. The file is made when something is written. Its name is a random one: in
    /// containers many processes have the number 1.
    pub(crate) fn new(folder: &Path, host: &str, database: &str, limit: u64) -> Self {
        let name = format!("{}.{}.{:016x}.spool", prefix(database), letters(host), RandomState::new().hash_one(0));
        Self { path: folder.join(name), file: None, limit, size: 0, messages: 0 }
    }

    /// The spools for a database that processes have left which are gone. A folder may be shared with hosts whose locks are not seen
    /// here.
    pub(crate) fn abandoned(folder: &Path, host: &str, database: &str, limit: u64) -> Vec<Self> {
        let (prefix, host) = (prefix(database) + ".", letters(host));
        let is_one = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let rest = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".spool"));
            // Earlier versions have named no host.
            rest.is_some_and(|rest| rest.split_once('.').is_none_or(|(of, _)| of == host) || is_forgotten(path))
        };
        let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).filter(is_one);
        let abandoned = files.filter_map(|path| {
            let file = OpenOptions::new().read(true).append(true).open(&path).ok()?;
            flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
            // Whoever had the lock before may have removed it meanwhile: then it is not read. What a process had half written when it
            // was killed would hide what follows.
            let size = whole_records(&fs::read(&path).ok()?);
            file.set_len(size).ok()?;
            Some(Self { path, file: Some(file), limit, size, messages: 0 })
        });
        abandoned.collect()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How many messages wait in it.
    pub(crate) fn len(&self) -> u64 {
        self.messages
    }

    /// Half of it is for the results of what runs: with less room, nothing more is launched.
    pub(crate) fn has_room_for_launches(&self) -> bool {
        self.size < self.limit / 2
    }

    pub(crate) fn is_full(&self) -> bool {
        self.size >= self.limit
    }

    /// Writes messages. When this returns they are on the disk.
    pub(crate) fn append(&mut self, messages: impl IntoIterator<Item = Message>) -> io::Result<()> {
        let records: Vec<Record> = messages.into_iter().map(Record::Message).collect();
        let count = records.len() as u64;
        self.write(&records)?;
        self.messages += count;
        Ok(())
    }

    /// Writes that messages are tried in a transaction, before it is committed.
    pub(crate) fn tried(&mut self, tried: Tried) -> io::Result<()> {
        self.write(&[Record::Tried(tried)])
    }

    /// Writes that so many messages, from the first on, are in the database.
    pub(crate) fn written(&mut self, count: u64) -> io::Result<()> {
        self.write(&[Record::Written(count)])
    }

    fn write(&mut self, records: &[Record]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for record in records {
            let record = rmp_serde::to_vec_named(record).map_err(io::Error::other)?;
            let length = u32::try_from(record.len()).map_err(io::Error::other)?;
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&record);
        }
        let size = self.size;
        let file = self.file()?;
        if let Err(error) = file.write_all(&bytes).and_then(|()| file.sync_data()) {
            // What is half written would hide what follows.
            file.set_len(size)?;
            return Err(error);
        }
        self.size += bytes.len() as u64;
        Ok(())
    }

    fn file(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            let folder = self.path.parent().unwrap_or(Path::new("."));
            files::create_dir_all(folder)?;
            drop(files::create_new(&self.path)?);
            let file = OpenOptions::new().read(true).append(true).open(&self.path)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            // The name, too, survives.
            File::open(folder)?.sync_all()?;
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// All that is in it.
    pub(crate) fn read(&self) -> io::Result<Contents> {
        let mut contents = Contents { messages: Vec::new(), tried: Vec::new(), written: 0 };
        if self.file.is_none() {
            return Ok(contents);
        }
        let bytes = fs::read(&self.path)?;
        let mut rest = &bytes[..];
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*length) as usize;
            let Some((record, after)) = after.split_at_checked(length) else { break };
            match rmp_serde::from_slice(record).map_err(io::Error::other)? {
                Record::Message(message) => contents.messages.push(message),
                Record::Tried(tried) => contents.tried.push(tried),
                Record::Written(count) => contents.written = count,
            }
            rest = after;
        }
        Ok(contents)
    }

    /// Removes what is in it: it is in the database.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            fs::remove_file(&self.path)?;
        }
        (self.file, self.size, self.messages) = (None, 0, 0);
        Ok(())
    }
}

/// How many bytes the whole records have.
fn whole_records(bytes: &[u8]) -> u64 {
    let mut rest = bytes;
    while let Some((length, after)) = rest.split_first_chunk::<4>()
        && let Some(after) = after.get(u32::from_le_bytes(*length) as usize..)
    {
        rest = after;
    }
    (bytes.len() - rest.len()) as u64
}

/// The beginning of a file's name: which database, in letters that every file system takes.
fn prefix(database: &str) -> String {
    // FNV-1a: the same in every version of this program.
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = database.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{}-{:016x}", letters(database), hash)
}

/// The first of a name, in letters that every file system takes.
fn letters(name: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    name.chars().map(letter).take(60).collect()
}

/// Says that whoever has a spool lives.
pub(super) fn touch(path: &Path) {
    let touched = OpenOptions::new().append(true).open(path).and_then(|file| file.set_modified(SystemTime::now()));
    if let Err(error) = touched
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::debug!(%error, path = %path.display(), "a spool is not touched");
    }
}

/// Whether nobody has touched a file for long: its process is gone.
fn is_forgotten(path: &Path) -> bool {
    let written = fs::metadata(path).and_then(|file| file.modified());
    written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > FORGOTTEN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::message::JobKey;

    fn cleaned(identifier: &str) -> Message {
        Message::Cleaned(JobKey { session: "s".into(), identifier: identifier.into() })
    }

    fn names(contents: &Contents) -> Vec<String> {
        let name = |message: &Message| match message {
            Message::Cleaned(key) => key.identifier.to_string(),
            _ => "another".to_owned(),
        };
        contents.messages.iter().map(name).collect()
    }

    #[test]
    fn what_was_acknowledged_is_read_again_and_what_is_half_written_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path(), "login", "ada@db:5432/muster", 1 << 20);
        assert_eq!(names(&spool.read().unwrap()), [""; 0], "nothing is made before it is needed");
        spool.append([cleaned("a"), cleaned("b")]).unwrap();
        let tried = Tried { transaction: 7, first: 0, count: 2 };
        spool.tried(tried).unwrap();
        spool.append([cleaned("c")]).unwrap();
        let path = spool.path().to_owned();
        drop(spool);
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend_from_slice(&[200, 0, 0, 0, 1, 2]);
        fs::write(&path, bytes).unwrap();
        let [left] = &mut Spool::abandoned(folder.path(), "login", "ada@db:5432/muster", 1 << 20)[..] else { panic!("one file") };
        // Nothing half written hides what is written now.
        left.written(2).unwrap();
        let contents = left.read().unwrap();
        assert_eq!((names(&contents), &contents.tried[..]), (vec!["a".into(), "b".into(), "c".into()], &[tried][..]));
        assert_eq!(contents.written, 2);
        left.clear().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_spool_is_taken_by_one_process_and_for_its_own_database() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path(), "login", "ada@db:5432/muster", 1 << 20);
        spool.append([cleaned("a")]).unwrap();
        assert!(Spool::abandoned(folder.path(), "login", "ada@db:5432/muster", 1).is_empty(), "its process lives");
        drop(spool);
        assert!(Spool::abandoned(folder.path(), "login", "ada@db:5432/other", 1).is_empty());
        assert_eq!(Spool::abandoned(folder.path(), "login", "ada@db:5432/muster", 1).len(), 1);
    }

    #[test]
    fn its_name_does_not_depend_on_the_number_of_its_process() {
        let spool = Spool::new(Path::new("spools"), "login", "db", 1);
        let name = spool.path().file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.split('.').all(|part| part != std::process::id().to_string()), "{name}");
        assert_ne!(spool.path(), Spool::new(Path::new("spools"), "login", "db", 1).path());
    }

    #[test]
    fn what_another_host_has_is_its_own_while_it_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let left = |host: &str| {
            let mut spool = Spool::new(folder.path(), host, "db", 1 << 20);
            spool.append([cleaned("a")]).unwrap();
            spool.path().to_owned()
        };
        let found = |host: &str| {
            let spools = Spool::abandoned(folder.path(), host, "db", 1 << 20);
            spools.iter().map(|spool| spool.path().to_owned()).collect::<Vec<_>>()
        };
        let path = left("login-1.site.org");
        assert_eq!((found("login-1.site.org"), found("login-2.site.org")), (vec![path.clone()], vec![]));
        let file = File::options().write(true).open(&path).unwrap();
        let old = SystemTime::now() - FORGOTTEN - Duration::from_mins(1);
        file.set_modified(old).unwrap();
        touch(&path);
        assert_eq!(found("login-2.site.org"), [""; 0].map(PathBuf::from));
        file.set_modified(old).unwrap();
        assert_eq!(found("login-2.site.org"), std::slice::from_ref(&path));
        // Earlier versions have named no host.
        let name = path.file_name().unwrap().to_string_lossy().replace(".login-1-site-org", "");
        let old = folder.path().join(&name);
        fs::rename(&path, &old).unwrap();
        fs::File::options().write(true).open(&old).unwrap().set_modified(SystemTime::now()).unwrap();
        assert_eq!(found("login-2.site.org"), [old], "{name}");
    }

    #[test]
    fn half_of_it_is_for_results() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path(), "login", "db", 400);
        let mut launches = 0;
        while spool.has_room_for_launches() {
            spool.append([cleaned("a")]).unwrap();
            launches += 1;
        }
        assert!(launches > 1 && !spool.is_full());
    }
}

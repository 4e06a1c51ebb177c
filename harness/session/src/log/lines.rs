//! Complete lines of the logs of a session, to who listens, while the jobs run: of a section that is spooled, what the spool has
//! appended; of one that is a file, what it has more than at the last look. Where that was truncated, it begins anew.
//!
//! A log never waits for a listener. Of what a listener is too slow for, the last batch of each section is kept and offered again; the
//! others are left out, and so is what a file grows by faster than it is looked at: the next batch of the section says how many bytes
//! that are. While jobs run, the session reads one file at a time and a limited part of it, so that neither a flood of output nor a file
//! system that does not answer keeps it from its work.

use muster_core::{
    case::{CaseName, Identifier},
    job::stdout::{SectionOrigin, first_line, header},
    judge::lines::Lines,
};
use muster_host::files::open_framed;
use std::{collections::HashMap, io, mem, os::unix::fs::FileExt, path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::{
    Semaphore,
    mpsc::{Sender, error::TrySendError},
};

/// How often a file that grows is looked at.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
/// The most that is read of it at one look: the end of what is new.
const MOST: u64 = 256 << 10;
/// The permit to look at a file.
pub(crate) static LOOKS: Semaphore = Semaphore::const_new(1);
/// The most that one batch is made of.
const PIECE: usize = 64 << 10;

/// Complete lines that were added to one section of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct NewLines {
    pub case: Arc<CaseName>,
    pub origin: SectionOrigin,
    /// The lines, each with a newline behind it. Bytes that are not UTF-8 are as the job wrote them.
    pub text: Vec<u8>,
    /// The number of bytes of this section since the last batch that are in none.
    pub missed: u64,
}

/// The lines of one job's log, on their way to who listens.
#[derive(Debug)]
pub(crate) struct Listened {
    case: Arc<CaseName>,
    to: Sender<NewLines>,
    /// By what chunks call them.
    sections: HashMap<String, Section>,
}

#[derive(Debug)]
struct Section {
    case: Arc<CaseName>,
    to: Sender<NewLines>,
    origin: SectionOrigin,
    lines: Lines,
    /// The last batch, which the listener had no room for.
    unheard: Option<NewLines>,
    /// Where it grows, and where it began there at the last look.
    file: Option<(PathBuf, u64)>,
}

impl Listened {
    pub(crate) fn new(case: Arc<CaseName>, to: Sender<NewLines>) -> Self {
        Self { case, to, sections: HashMap::new() }
    }

    /// Whether there are files to look at, or lines to offer again, for somebody.
    pub(super) fn looks(&self) -> bool {
        !self.to.is_closed() && self.sections.values().any(|section| section.file.is_some() || section.unheard.is_some())
    }

    /// A section has these bytes now.
    pub(super) fn add(&mut self, origin: &SectionOrigin, at: u64, data: &[u8]) {
        if !self.to.is_closed() {
            self.section(origin).add(at, data);
        }
    }

    /// A section grows in a file. A stream that broke says it again.
    pub(super) fn grows(&mut self, origin: &SectionOrigin, path: PathBuf) {
        self.section(origin).file.get_or_insert((path, 0));
    }

    fn section(&mut self, origin: &SectionOrigin) -> &mut Section {
        let Self { case, to, sections } = self;
        let new = || Section {
            case: Arc::clone(case),
            to: to.clone(),
            origin: origin.clone(),
            lines: Lines::default(),
            unheard: None,
            file: None,
        };
        sections.entry(origin.id()).or_insert_with(new)
    }

    /// Reads what the files have more, up to a limit of the log, and offers again what nobody had room for.
    pub(super) fn look(&mut self, identifier: &Identifier, limit: Option<u64>) {
        for section in self.sections.values_mut().filter(|_| !self.to.is_closed()) {
            section.offer_again();
            // Nothing to read: the end of the job names what is wrong with its log.
            let _ = section.look(identifier, limit);
        }
    }

    /// A section is complete, or what follows is left out.
    pub(super) fn end(&mut self, id: &str, is_complete: bool) {
        let Some(mut section) = self.sections.remove(id) else { return };
        let last = if is_complete { section.lines.end() } else { Vec::new() };
        section.offer_again();
        if !last.is_empty() || section.lines.missed > 0 {
            section.tell(last);
        }
    }
}

impl Section {
    fn add(&mut self, mut at: u64, data: &[u8]) {
        for piece in data.chunks(PIECE) {
            let text = self.lines.add(at, piece);
            if !text.is_empty() {
                self.tell(text);
            }
            at += piece.len() as u64;
        }
    }

    fn tell(&mut self, text: Vec<u8>) {
        self.offer_again();
        let left_out = self.unheard.take().map_or(0, |batch| batch.missed + batch.text.len() as u64);
        let missed = mem::take(&mut self.lines.missed) + left_out;
        self.unheard = Some(NewLines { case: Arc::clone(&self.case), origin: self.origin.clone(), text, missed });
        self.offer_again();
    }

    fn offer_again(&mut self) {
        if let Some(batch) = self.unheard.take()
            && let Err(TrySendError::Full(batch)) = self.to.try_send(batch)
        {
            self.unheard = Some(batch);
        }
    }

    fn look(&mut self, identifier: &Identifier, limit: Option<u64>) -> io::Result<()> {
        let Some((path, began)) = &mut self.file else { return Ok(()) };
        let (file, start, len) = open_framed(path, &(first_line(identifier) + &header(&self.origin.title())))?;
        let before = mem::replace(began, start);
        if self.lines.mark() > 0 && (len < self.lines.mark() || start != before) {
            let missed = self.lines.missed;
            self.lines = Lines::default();
            self.lines.missed = missed;
        }
        let len = limit.map_or(len, |limit| len.min(limit));
        let mut at = self.lines.mark().max(len.saturating_sub(MOST));
        let mut piece = vec![0; PIECE];
        while at < len {
            let wanted = usize::try_from(len - at).unwrap_or(PIECE).min(PIECE);
            let read = file.read_at(&mut piece[..wanted], start + at)?;
            if read == 0 {
                break;
            }
            self.add(at, &piece[..read]);
            at += read as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::spool::Spool;
    use muster_core::{
        job::scheduler::{Channel, Chunk},
        rules::{LogAction, LogLimit},
    };
    use std::{fs, path::Path};
    use tempfile::TempDir;
    use tokio::sync::mpsc::{Receiver, channel};

    const FRAMING: &str = "aaaaaaaa\n\n-------host-------\n";

    struct Scene {
        folder: TempDir,
        spool: Spool,
        heard: Receiver<NewLines>,
    }

    impl Scene {
        fn new(room: usize, limit: Option<u64>) -> Self {
            let (to, heard) = channel(room);
            let folder = TempDir::new().unwrap();
            let limit = limit.map(|bytes| LogLimit { bytes, action: LogAction::Warn });
            let spool = Spool::new(folder.path().to_owned(), Identifier::from_letters([0; 8])).limited(limit);
            Self { spool: spool.listened(Some(Listened::new(Arc::default(), to))), folder, heard }
        }

        fn take(&mut self, chunks: impl IntoIterator<Item = Chunk>) -> &mut Self {
            self.spool.take_all(chunks);
            self
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("log")
        }

        /// The file has this, and is looked at.
        fn shows(&mut self, text: &str) -> &mut Self {
            fs::write(self.path(), text).unwrap();
            self.take([grows(&self.path())]);
            assert!(self.spool.looks());
            self.spool.look();
            self
        }

        /// The lines so far, and the bytes that are in none.
        fn heard(&mut self) -> (String, u64) {
            let (mut text, mut missed) = (Vec::new(), 0);
            while let Ok(batch) = self.heard.try_recv() {
                assert_eq!(batch.origin.name, "host");
                assert!(batch.text.len() <= PIECE && (batch.text.is_empty() || batch.text.ends_with(b"\n")));
                text.extend(batch.text);
                missed += batch.missed;
            }
            (String::from_utf8(text).unwrap(), missed)
        }
    }

    fn origin() -> SectionOrigin {
        SectionOrigin::new("host")
    }

    fn grows(path: &Path) -> Chunk {
        Chunk::Grows { origin: origin(), path: path.to_owned() }
    }

    fn bytes(at: u64, text: &str) -> Chunk {
        Chunk::Bytes { section: "host".into(), at, data: text.into(), time: None }
    }

    /// The last chunks of a section in a file.
    fn file(path: &Path, start: u64, len: u64) -> [Chunk; 3] {
        let (section, path) = ("host".to_owned(), path.to_owned());
        let end = Chunk::End { section: section.clone() };
        [Chunk::Open(Channel::Log, origin()), Chunk::File { section, path, start, len }, end]
    }

    fn end() -> Chunk {
        Chunk::End { section: "host".into() }
    }

    #[test]
    fn a_section_that_is_spooled_and_one_in_a_file_have_the_same_lines_and_each_once() {
        let (text, so_far) = ("one\ntwo\r\n\u{fffd}\nthr", "one\ntw");
        let mut spooled = Scene::new(64, None);
        spooled.take([Chunk::Open(Channel::Log, origin()), bytes(0, so_far)]);
        assert_eq!(spooled.heard().0, "one\n");
        // The stream broke, and the source repeats what it has sent.
        spooled.take([Chunk::Open(Channel::Log, origin()), bytes(0, text), end()]);
        assert_eq!(spooled.heard(), ("two\n\u{fffd}\nthr\n".to_owned(), 0));

        let mut file_grows = Scene::new(64, None);
        file_grows.shows(&format!("{FRAMING}{so_far}"));
        assert_eq!(file_grows.heard().0, "one\n");
        let path = file_grows.path();
        file_grows.shows(&format!("{FRAMING}{text}")).take(file(&path, FRAMING.len() as u64, text.len() as u64));
        assert_eq!(file_grows.heard(), ("two\n\u{fffd}\nthr\n".to_owned(), 0));
        assert!(!file_grows.spool.looks());
    }

    #[test]
    fn a_file_that_was_truncated_begins_anew() {
        for second in ["b\n", "longer than before\n"] {
            let mut scene = Scene::new(64, None);
            scene.shows(&format!("{FRAMING}first\nhalf"));
            scene.shows(second);
            assert_eq!(scene.heard(), (format!("first\n{second}"), 0));
        }
    }

    #[test]
    fn a_short_job_and_one_whose_log_is_no_file_any_more_are_heard_at_their_end() {
        let mut scene = Scene::new(64, None);
        let path = scene.path();
        fs::write(&path, format!("{FRAMING}all of it")).unwrap();
        scene.take([grows(&path)]).take(file(&path, FRAMING.len() as u64, 9));
        assert_eq!(scene.heard(), ("all of it\n".to_owned(), 0));

        let mut scene = Scene::new(64, None);
        rustix::fs::mkfifoat(rustix::fs::CWD, scene.path(), rustix::fs::Mode::RWXU).unwrap();
        scene.take([grows(&scene.path())]).spool.look();
        scene.take([end()]);
        assert_eq!(scene.heard(), (String::new(), 0));
    }

    #[test]
    fn a_slow_listener_is_told_what_it_has_missed_and_the_log_is_whole() {
        let mut scene = Scene::new(1, None);
        scene.take([bytes(0, "one\n"), bytes(4, "two\n"), bytes(8, "three\n")]);
        assert_eq!(scene.heard(), ("one\n".to_owned(), 0));
        assert!(scene.spool.looks(), "the last batch is offered again");
        scene.spool.look();
        assert_eq!(scene.heard(), ("three\n".to_owned(), 4));
        assert!(!scene.spool.looks());
        scene.take([bytes(14, "four\n"), bytes(19, "five\n"), bytes(24, "six\n")]);
        assert_eq!(scene.heard(), ("four\n".to_owned(), 0));
        scene.take([end()]);
        assert_eq!(scene.heard(), ("six\n".to_owned(), 5));
        let stdout = scene.spool.assemble(&[]).unwrap();
        assert_eq!(stdout.section(&stdout.sections()[0]), b"one\ntwo\nthree\nfour\nfive\nsix\n");
    }

    #[test]
    fn a_file_that_grows_faster_than_it_is_looked_at_is_heard_from_later_on() {
        let mut scene = Scene::new(1024, None);
        let line = "0123456789abcde\n";
        let content = line.repeat(usize::try_from(MOST).unwrap() / line.len() + 2);
        scene.shows(&format!("{FRAMING}{content}"));
        let (text, missed) = scene.heard();
        assert_eq!((text.len() as u64, missed), (MOST - line.len() as u64, 3 * line.len() as u64));
    }

    #[test]
    fn nothing_beyond_the_limit_of_a_log_is_heard_and_no_part_of_a_line() {
        let mut spooled = Scene::new(64, Some(6));
        spooled.take([bytes(0, "one\ntwo\n"), end()]);
        assert_eq!(spooled.heard().0, "one\n");
        let mut grown = Scene::new(64, Some(6));
        let path = grown.path();
        grown.shows(&format!("{FRAMING}one\ntwo\n")).take(file(&path, FRAMING.len() as u64, 8));
        assert_eq!(grown.heard().0, "one\n");
    }

    #[test]
    fn nothing_is_read_when_nobody_listens_any_more() {
        let mut scene = Scene::new(64, None);
        scene.heard.close();
        scene.take([grows(&scene.path())]);
        assert!(!scene.spool.looks());
    }
}

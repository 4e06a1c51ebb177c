//! Logs on disk while they arrive, and the stdout they become.
//!
//! ```text
//! Open, Bytes, Gap, End --take--> .rfm_spool.0, 1, ... one a section --assembly--> rfm_job.out, pods.json, Stdout
//! File (it is not written any more) -----------------------------------/  copied, or used in its place if it is
//!                                                                         rfm_job.out with its framing already
//! ```
//! All functions here block. No more than one file is open at a time, and none between two batches of chunks: thousands
//! of cases have their spools at once. What could not be kept is a gap, and a gap makes the case `invalid{logs}`.

mod assemble;
mod limit;
mod moves;

use crate::log::{lines::Listened, text::count_newlines};
use muster_core::{
    case::Identifier,
    job::{
        scheduler::{Channel, Chunk, Ending, LogMark, LogMarks, SectionExit},
        stage_folder::{LOG_FILE, SECTIONS, SPOOL},
        stdout::{Section, SectionOrigin, first_line, header},
    },
    judge::lines::unknown,
    rules::LogLimit,
};
use muster_host::files;
use muster_text::time::Timestamp;
use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

/// The log of one attempt.
#[derive(Debug)]
pub(crate) struct Spool {
    stage: PathBuf,
    identifier: Identifier,
    sections: Vec<Spooled>,
    /// Sorted by id: where each section is found.
    by_id: Vec<usize>,
    /// The file that was written last, and whose it is.
    open: Option<(usize, File)>,
    /// The sections of a log that a process now gone had put together.
    whole: Option<Vec<Section>>,
    /// How much of the log is kept, and how much is.
    limit: Option<LogLimit>,
    kept: u64,
    /// There was more.
    is_over: bool,
    /// Something of it could not be written because the disk is full: that says nothing of the log.
    is_disk_full: bool,
    /// Who listens to it.
    listened: Option<Listened>,
}

/// Whether a disk, or a share of it, has no room left.
pub(crate) fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[derive(Debug, Default)]
struct Spooled {
    /// What chunks call it.
    id: String,
    origin: SectionOrigin,
    source: Source,
    /// How far its source has been read.
    mark: u64,
    newlines: u64,
    ends_with_newline: bool,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    gaps: Vec<String>,
    warnings: Vec<String>,
    extent: Extent,
    /// It is no part of the job.
    left_out: bool,
}

/// How much of its log a section has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Extent {
    /// More may come.
    #[default]
    Open,
    /// Nothing more comes.
    Whole,
    /// What is beyond the limit was left out.
    Cut,
}

#[derive(Debug, Clone)]
enum Source {
    /// Our own file: so much of the log, after its framing.
    Spool { start: u64, len: u64 },
    /// A part of a file that is not ours.
    Part { path: PathBuf, start: u64, len: u64 },
}

impl Default for Source {
    fn default() -> Self {
        Self::Spool { start: 0, len: 0 }
    }
}

impl Spool {
    /// An empty one. Nothing is created before there is something to write.
    pub(crate) fn new(stage: PathBuf, identifier: Identifier) -> Self {
        Self {
            stage,
            identifier,
            sections: Vec::new(),
            by_id: Vec::new(),
            open: None,
            whole: None,
            limit: None,
            kept: 0,
            is_over: false,
            is_disk_full: false,
            listened: None,
        }
    }

    pub(crate) fn limited(mut self, limit: Option<LogLimit>) -> Self {
        self.limit = limit;
        self
    }

    pub(crate) fn listened(mut self, listened: Option<Listened>) -> Self {
        self.listened = listened;
        self
    }

    /// Whether somebody listens to a file that has to be looked at.
    pub(crate) fn looks(&self) -> bool {
        self.listened.as_ref().is_some_and(Listened::looks)
    }

    pub(crate) fn look(&mut self) {
        if let Some(listened) = &mut self.listened {
            listened.look(&self.identifier, self.limit.map(|limit| limit.bytes));
        }
    }

    /// Whether nothing more is kept: there was more than the limit, or the disk is full. A scheduler whose log is not taken to its end
    /// keeps it.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_over || self.is_disk_full
    }

    /// The log that a process now gone had put together, and how its sections ended; `None`: it did not get so far.
    pub(crate) fn reopened(stage: &Path, identifier: &Identifier) -> Option<(Self, Ending)> {
        if let Err(error) = moves::resume(stage) {
            tracing::warn!(%error, stage = %stage.display(), "what was moved of a log cannot be finished: it is collected again");
        }
        let sections: Vec<Section> = serde_json::from_slice(&fs::read(stage.join(SECTIONS)).ok()?).ok()?;
        let stdout = stage.join(LOG_FILE);
        let mut first = vec![0; first_line(identifier).len()];
        File::open(&stdout).ok()?.read_exact(&mut first).ok()?;
        // Kept files are found again where they are, and put after the logs again.
        let sections: Vec<Section> = sections.into_iter().filter(|section| !section.is_file).collect();
        if sections.is_empty() || first != first_line(identifier).as_bytes() {
            return None;
        }
        let exit = |section: &Section| {
            let SectionOrigin { node, uid, .. } = &section.origin;
            let (section_id, node) = (uid.as_ref().map(|_| section.origin.id()), node.clone());
            let section = section.origin.title();
            move |exit| SectionExit { section, section_id, node, exit, ..SectionExit::default() }
        };
        let (superseded, judged): (Vec<_>, Vec<_>) = sections.iter().partition(|section| section.origin.superseded);
        let exits = judged.into_iter().map(|section| section.exit.map(exit(section))).collect::<Option<Vec<_>>>()?;
        let superseded = superseded.into_iter().filter_map(|section| section.exit.map(exit(section))).collect();
        let started = sections.iter().filter_map(|section| section.first).min().unwrap_or_default();
        let ended = sections.iter().filter_map(|section| section.last).max().unwrap_or(started);
        let spool = Self { whole: Some(sections), ..Self::new(stage.to_owned(), identifier.clone()) };
        Some((spool, Ending { started, ended, exits, superseded, ..Ending::default() }))
    }

    /// How far each section is on disk.
    pub(crate) fn marks(&self) -> LogMarks {
        let mark = |s: &Spooled| LogMark { section: s.id.clone(), offset: s.mark, time: s.last };
        self.sections.iter().map(mark).collect()
    }

    /// Takes a batch of chunks. What cannot be written becomes a gap.
    pub(crate) fn take_all(&mut self, chunks: impl IntoIterator<Item = Chunk>) {
        for chunk in chunks {
            self.take(chunk);
        }
        self.open = None;
        if let Some(limit) = self.limit.filter(|_| self.is_over) {
            self.cut_off(limit);
        }
    }

    fn take(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Open(Channel::Log, origin) => {
                let id = origin.id();
                if let Err(place) = self.find(&id) {
                    self.insert(place, id, origin);
                }
            }
            Chunk::Bytes { section, at, data, time } => {
                let index = self.named(section);
                if let Err(error) = self.append(index, at, &data, time) {
                    self.is_disk_full |= is_disk_full(&error);
                    self.sections[index].gap(format!("bytes from {at} on could not be written: {error}"));
                }
            }
            Chunk::Grows { origin, path } => {
                if let Some(listened) = &mut self.listened {
                    listened.grows(&origin, path);
                }
            }
            Chunk::File { section, path, start, len } => {
                self.look();
                let index = self.named(section);
                let len = self.room(index, len);
                self.sections[index].source = Source::Part { path, start, len };
            }
            Chunk::Gap { section, why } => {
                let index = self.named(section);
                self.sections[index].gap(why);
            }
            Chunk::Warning { section, why } => {
                let index = self.named(section);
                self.sections[index].warning(why);
            }
            Chunk::End { section } => {
                let index = self.named(section);
                let is_whole = self.sections[index].extent == Extent::Open;
                if is_whole {
                    self.sections[index].extent = Extent::Whole;
                }
                if let Some(listened) = &mut self.listened {
                    listened.end(&self.sections[index].id, is_whole);
                }
            }
            Chunk::Alive => {}
        }
    }

    /// Every section that has not ended is incomplete, and this is why.
    pub(crate) fn cut_short(&mut self, why: &str) {
        if self.sections.is_empty() {
            self.named(self.identifier.to_string());
        }
        for section in self.sections.iter_mut().filter(|section| section.extent == Extent::Open) {
            section.gap(why.to_owned());
            section.extent = Extent::Whole;
        }
    }

    fn named(&mut self, id: String) -> usize {
        self.find(&id).unwrap_or_else(|place| self.insert(place, id.clone(), SectionOrigin::new(id)))
    }

    /// Where a section is, or where its place among the ids would be.
    fn find(&self, id: &str) -> Result<usize, usize> {
        let found = self.by_id.binary_search_by(|at| self.sections[*at].id.as_str().cmp(id));
        found.map(|place| self.by_id[place])
    }

    fn insert(&mut self, place: usize, id: String, origin: SectionOrigin) -> usize {
        if self.sections.is_empty() {
            // Most jobs have one section, and thousands of jobs wait at once.
            self.sections.reserve_exact(1);
            self.by_id.reserve_exact(1);
        }
        self.by_id.insert(place, self.sections.len());
        self.sections.push(Spooled { id, origin, ..Spooled::default() });
        self.sections.len() - 1
    }

    /// Appends what is new of `data`. After a reconnection a source may repeat data.
    fn append(&mut self, index: usize, at: u64, data: &[u8], time: Option<Timestamp>) -> io::Result<()> {
        let section = &mut self.sections[index];
        let (missing, data) = unknown(section.mark, at, data);
        if missing > 0 {
            section.gap(format!("{missing} bytes after byte {} were lost", section.mark));
            section.mark = at;
        }
        let room = self.room(index, data.len() as u64);
        let data = &data[..usize::try_from(room).unwrap_or(data.len())];
        let Some(last) = data.last() else { return Ok(()) };
        self.write(index, data)?;
        let section = &mut self.sections[index];
        let newlines = count_newlines(data);
        if section.newlines == 0 && newlines <= 1 {
            // `time` is that of the chunk's last line: the first line's only if there is no other.
            section.first = section.first.or(time);
        }
        section.newlines += newlines;
        section.ends_with_newline = *last == b'\n';
        if let Some(listened) = &mut self.listened {
            listened.add(&section.origin, section.mark, data);
        }
        section.mark += data.len() as u64;
        section.last = time.or(section.last);
        Ok(())
    }

    fn write(&mut self, index: usize, data: &[u8]) -> io::Result<()> {
        if !matches!(&self.open, Some((open, _)) if *open == index) {
            self.open = Some((index, files::append(&self.path(index))?));
        }
        let framing = || first_line(&self.identifier) + &header(&self.sections[index].origin.title());
        let has_started = matches!(self.sections[index].source, Source::Spool { start: 1.., .. });
        let framing = if has_started { String::new() } else { framing() };
        let Some((_, file)) = &mut self.open else { return Ok(()) };
        let Source::Spool { start, len } = &mut self.sections[index].source else { return Ok(()) };
        let written = file.write_all(framing.as_bytes()).and_then(|()| file.write_all(data));
        if written.is_err() {
            // What was written of it would stand before what comes later.
            let _ = file.set_len(*start + *len);
            return written;
        }
        *start += framing.len() as u64;
        *len += data.len() as u64;
        Ok(())
    }

    fn path(&self, index: usize) -> PathBuf {
        self.stage.join(format!("{SPOOL}{index}"))
    }
}

impl Spooled {
    fn gap(&mut self, why: String) {
        if !self.gaps.contains(&why) {
            self.gaps.push(why);
        }
    }

    fn warning(&mut self, why: String) {
        if !self.warnings.contains(&why) {
            self.warnings.push(why);
        }
    }

    /// How many of its bytes are kept.
    fn len(&self) -> u64 {
        match self.source {
            Source::Spool { len, .. } | Source::Part { len, .. } => len,
        }
    }

    /// How many of its bytes a file of this size has. What is missing is a gap.
    fn there(&mut self, size: u64) -> u64 {
        let (start, len) = match self.source {
            Source::Spool { start, len } | Source::Part { start, len, .. } => (start, len),
        };
        let there = size.saturating_sub(start).min(len);
        if there < len {
            self.gap(assemble::missing_bytes(len - there));
        }
        there
    }

    fn into_section(self, offset: u64, bytes: u64, lines: Option<u64>) -> Section {
        let Self { origin, first, last, gaps, warnings, .. } = self;
        Section { lines, first, last, gaps, warnings, ..Section::new(origin, offset, bytes) }
    }
}

#[cfg(test)]
mod tests;

//! Logs on disk while they arrive, and the stdout they become.
//!
//! ```text
//! Open, Bytes, Gap, End --take--> .rfm_spool.0, 1, ... one a section --assemble--> rfm_job.out, pods.json, Stdout
//! File (nobody writes it any more) ------------------------------------/  copied, or used in its place if it is
//!                                                                         rfm_job.out with its framing already
//! ```
//! All functions here block. No more than one file is open at a time, and none between two batches of chunks: thousands
//! of cases have their spools at once. What could not be kept is a gap, and a gap makes the case `invalid{logs}`.

use crate::{
    lines::{count_lines, count_newlines, ends_in_newline},
    map::text_of,
    places::{SECTIONS, UNFINISHED_SECTIONS},
};
use muster_core::{
    case::Identifier,
    scheduler::{Chunk, Ending, LogMark, LogMarks, SectionExit},
    script::LOG_FILE,
    stdout::{Piece, Section, SectionOrigin, Stdout, Text, first_line, framing, header, number_lives, order},
    time::Timestamp,
};
use muster_host::files;
use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// The spool of the section with this number.
const SPOOL: &str = ".rfm_spool.";
/// The stdout while it is put together: what has the final name is whole.
const UNFINISHED: &str = "rfm_job.out.part";
/// In a log that is not copied, lines are counted up to this size.
const COUNTED: usize = 64 * 1024;

/// Whether a file is part of a log that was not put together.
pub(crate) fn is_unfinished(name: &OsStr) -> bool {
    name == UNFINISHED || name == UNFINISHED_SECTIONS || name.as_encoded_bytes().starts_with(SPOOL.as_bytes())
}

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
}

#[derive(Debug)]
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
    ended: bool,
    /// It is no part of the job.
    left_out: bool,
}

#[derive(Debug, Clone)]
enum Source {
    /// Our own file, of this length.
    Spool(u64),
    /// A part of somebody's file.
    Part { path: PathBuf, start: u64, len: u64 },
}

impl Spool {
    /// An empty one. Nothing is created before there is something to write.
    pub(crate) fn new(stage: PathBuf, identifier: Identifier) -> Self {
        Self { stage, identifier, sections: Vec::new(), by_id: Vec::new(), open: None }
    }

    /// The log that a process now gone had put together, and how its sections ended; `None`: it did not get so far.
    pub(crate) fn reopened(stage: &Path, identifier: &Identifier) -> Option<(Self, Ending)> {
        let sections: Vec<Section> = serde_json::from_slice(&fs::read(stage.join(SECTIONS)).ok()?).ok()?;
        let stdout = stage.join(LOG_FILE);
        let mut first = vec![0; first_line(identifier).len()];
        File::open(&stdout).ok()?.read_exact(&mut first).ok()?;
        // Kept files are found again where they are, and put behind the logs anew.
        let sections: Vec<Section> = sections.into_iter().filter(|section| !section.is_file).collect();
        if sections.is_empty() || first != first_line(identifier).as_bytes() {
            return None;
        }
        let exit = |section: &Section| {
            let (section, node) = (section.origin.title(), section.origin.node.clone());
            move |exit| SectionExit { section, node, exit }
        };
        let (superseded, judged): (Vec<_>, Vec<_>) = sections.iter().partition(|section| section.origin.is_superseded());
        let exits = judged.into_iter().map(|section| section.exit.map(exit(section))).collect::<Option<Vec<_>>>()?;
        let superseded = superseded.into_iter().filter_map(|section| section.exit.map(exit(section))).collect();
        let started = sections.iter().filter_map(|section| section.first).min().unwrap_or_default();
        let ended = sections.iter().filter_map(|section| section.last).max().unwrap_or(started);
        let mut spool = Self::new(stage.to_owned(), identifier.clone());
        for section in sections {
            let id = section.origin.id();
            let source = Source::Part { path: stdout.clone(), start: section.offset, len: section.bytes };
            let index = match spool.find(&id) {
                Ok(index) => index,
                Err(place) => spool.insert(place, id, section.origin),
            };
            let spooled = &mut spool.sections[index];
            (spooled.source, spooled.gaps, spooled.warnings, spooled.ended) = (source, section.gaps, section.warnings, true);
            (spooled.first, spooled.last) = (section.first, section.last);
        }
        Some((spool, Ending { started, ended, exits, superseded, ..Ending::default() }))
    }

    /// How far each section is on disk.
    pub(crate) fn marks(&self) -> LogMarks {
        let mark = |s: &Spooled| LogMark { section: s.id.clone(), offset: s.mark, time: s.last };
        self.sections.iter().map(mark).collect()
    }

    /// The file of the first section that grows here, for live views.
    pub(crate) fn growing(&self) -> Option<PathBuf> {
        let at = self.sections.iter().position(|s| matches!(s.source, Source::Spool(len) if len > 0))?;
        Some(self.path(at))
    }

    /// Takes a batch of chunks. What cannot be written becomes a gap.
    pub(crate) fn take_all(&mut self, chunks: impl IntoIterator<Item = Chunk>) {
        for chunk in chunks {
            self.take(chunk);
        }
        self.open = None;
    }

    fn take(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Open(origin) => {
                let id = origin.id();
                if let Err(place) = self.find(&id) {
                    self.insert(place, id, origin);
                }
            }
            Chunk::Bytes { section, at, data, time } => {
                let index = self.named(section);
                if let Err(error) = self.append(index, at, &data, time) {
                    self.sections[index].gap(format!("bytes from {at} on could not be written: {error}"));
                }
            }
            Chunk::File { section, path, start, len } => {
                let index = self.named(section);
                self.sections[index].source = Source::Part { path, start, len };
            }
            Chunk::Gap { section, why } => {
                let index = self.named(section);
                self.sections[index].gap(why);
            }
            Chunk::Warning { section, why } => {
                let index = self.named(section);
                let warnings = &mut self.sections[index].warnings;
                if !warnings.contains(&why) {
                    warnings.push(why);
                }
            }
            Chunk::End { section } => {
                let index = self.named(section);
                self.sections[index].ended = true;
            }
        }
    }

    /// Every section that has not ended lacks something, and this is why.
    pub(crate) fn cut_short(&mut self, why: &str) {
        if self.sections.is_empty() {
            self.named(self.identifier.to_string());
        }
        for section in self.sections.iter_mut().filter(|section| !section.ended) {
            section.gap(why.to_owned());
            section.ended = true;
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
        self.sections.push(Spooled {
            id,
            origin,
            source: Source::Spool(0),
            mark: 0,
            newlines: 0,
            ends_with_newline: false,
            first: None,
            last: None,
            gaps: Vec::new(),
            warnings: Vec::new(),
            ended: false,
            left_out: false,
        });
        self.sections.len() - 1
    }

    /// Appends what is new of `data`. After a reconnection a source may repeat what it said.
    fn append(&mut self, index: usize, at: u64, data: &[u8], time: Option<Timestamp>) -> io::Result<()> {
        let section = &mut self.sections[index];
        let known = usize::try_from(section.mark.saturating_sub(at)).unwrap_or(usize::MAX).min(data.len());
        if at > section.mark {
            let lost = at - section.mark;
            section.gap(format!("{lost} bytes after byte {} were lost", section.mark));
            section.mark = at;
        }
        let data = &data[known..];
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
        section.mark += data.len() as u64;
        section.last = time.or(section.last);
        Ok(())
    }

    fn write(&mut self, index: usize, data: &[u8]) -> io::Result<()> {
        if !matches!(&self.open, Some((open, _)) if *open == index) {
            let file = files::append(&self.path(index))?;
            self.open = Some((index, file));
        }
        let Some((_, file)) = &mut self.open else { return Ok(()) };
        file.write_all(data)?;
        if let Source::Spool(len) = &mut self.sections[index].source {
            *len += data.len() as u64;
        }
        Ok(())
    }

    fn path(&self, index: usize) -> PathBuf {
        self.stage.join(format!("{SPOOL}{index}"))
    }

    /// As `assemble`, of a job that has ended like this: what has taken the name of a pod of it since is no part of it.
    pub(crate) fn assemble_ended(mut self, ending: &Ending) -> io::Result<Stdout> {
        let mut judged: BTreeMap<String, (Timestamp, usize)> = BTreeMap::new();
        for (at, SectionOrigin { name, uid, created, .. }) in self.sections.iter().map(|section| &section.origin).enumerate() {
            if uid.as_ref().is_some_and(|uid| ending.judged.contains(uid)) {
                judged.insert(name.clone(), (*created, at));
            }
        }
        for (at, section) in self.sections.iter_mut().enumerate() {
            let SectionOrigin { name, uid, created, .. } = &section.origin;
            let is_judged = uid.as_ref().is_some_and(|uid| ending.judged.contains(uid));
            section.left_out = !is_judged && judged.get(name).is_some_and(|judged| (*created, at) > *judged);
        }
        self.assemble(ending.exits.iter().chain(&ending.superseded))
    }

    /// Puts all sections together in their order. Leaves `rfm_job.out` and `pods.json` in the stage folder.
    pub(crate) fn assemble<'a>(mut self, exits: impl IntoIterator<Item = &'a SectionExit>) -> io::Result<Stdout> {
        self.open = None;
        let path = self.stage.join(LOG_FILE);
        let (text, mut sections) = match self.in_place(&path) {
            Some(only) => Self::adopt(&path, &self.framing(&only.origin), only)?,
            None => self.copy(&path)?,
        };
        let exits: BTreeMap<&str, &SectionExit> = exits.into_iter().map(|exit| (exit.section.as_str(), exit)).collect();
        for section in &mut sections {
            if let Some(exit) = exits.get(section.origin.title().as_str()) {
                section.exit = Some(exit.exit);
                section.origin.node = section.origin.node.take().or_else(|| exit.node.clone());
            }
        }
        files::write(&self.stage.join(SECTIONS), serde_json::to_vec_pretty(&sections)?)?;
        Ok(Stdout::new(text, sections))
    }

    /// The only section, if it is already where it belongs.
    fn in_place(&mut self, stdout: &Path) -> Option<Spooled> {
        let [only] = self.sections.as_slice() else { return None };
        let Source::Part { path, start, .. } = &only.source else { return None };
        let framed = path == stdout && *start == self.framing(&only.origin).len() as u64;
        if framed { self.sections.pop() } else { None }
    }

    fn framing(&self, origin: &SectionOrigin) -> String {
        first_line(&self.identifier) + &header(&origin.title())
    }

    /// Takes a file that has its framing already as it is.
    fn adopt(path: &Path, framing: &str, mut only: Spooled) -> io::Result<(Text, Vec<Section>)> {
        let mut file = OpenOptions::new().read(true).append(true).open(path)?;
        let mut found = vec![0; framing.len()];
        // A script that writes to /dev/stderr truncates its own log: the first lines are the canary.
        if file.read_exact_at(&mut found, 0).is_err() || found != framing.as_bytes() {
            only.gap("the log lost its first line".to_owned());
        }
        let start = framing.len() as u64;
        let size = file.metadata()?.len();
        let bytes = only.there(size);
        if bytes > 0 && start + bytes == size && !ends_in_newline(&file, size)? {
            file.write_all(b"\n")?;
        }
        let text = text_of(file)?;
        let own = usize::try_from(start).ok().zip(usize::try_from(start + bytes).ok());
        let own = own.and_then(|(start, end)| (*text).as_ref().get(start..end)).filter(|own| own.len() <= COUNTED);
        let lines = own.map(|own| count_lines(count_newlines(own), own.last().is_none_or(|last| *last == b'\n')));
        Ok((text, vec![only.into_section(start, bytes, lines)]))
    }

    /// Copies all sections into one file, in their order, and removes the spool.
    fn copy(&mut self, path: &Path) -> io::Result<(Text, Vec<Section>)> {
        let mut sources = BTreeMap::new();
        let mut sections = Vec::with_capacity(self.sections.len());
        for (index, mut spooled) in std::mem::take(&mut self.sections).into_iter().enumerate() {
            if spooled.left_out {
                if matches!(spooled.source, Source::Spool(len) if len > 0) {
                    fs::remove_file(self.path(index))?;
                }
                continue;
            }
            let (bytes, lines) = match &spooled.source {
                Source::Spool(len) => (*len, Some(count_lines(spooled.newlines, *len == 0 || spooled.ends_with_newline))),
                Source::Part { path, start, .. } => {
                    let (file, start) = (File::open(path)?, *start);
                    let bytes = spooled.there(file.metadata()?.len());
                    spooled.ends_with_newline = bytes > 0 && ends_in_newline(&file, start + bytes)?;
                    (bytes, None)
                }
            };
            sources.insert(spooled.id.clone(), (index, spooled.source.clone(), spooled.ends_with_newline));
            sections.push(spooled.into_section(0, bytes, lines));
        }
        number_lives(&mut sections);
        order(&mut sections);
        let source_of = |section: &Section| sources.get(&section.origin.id());
        let pieces = framing(&self.identifier, &mut sections, |section| source_of(section).is_none_or(|(_, _, ends)| *ends));
        let unfinished = self.stage.join(UNFINISHED);
        let mut whole = files::create(&unfinished)?;
        for piece in pieces {
            match piece {
                Piece::Frame(text) => whole.write_all(text.as_bytes())?,
                Piece::Log(at) => {
                    let Some((index, source, _)) = source_of(&sections[at]) else { continue };
                    self.copy_section(*index, source, sections[at].bytes, &mut whole)?;
                }
            }
        }
        fs::rename(&unfinished, path)?;
        for (index, source, _) in sources.values() {
            if matches!(source, Source::Spool(len) if *len > 0) {
                fs::remove_file(self.path(*index))?;
            }
        }
        whole.rewind()?;
        Ok((text_of(whole)?, sections))
    }

    fn copy_section(&self, index: usize, source: &Source, bytes: u64, whole: &mut File) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let (path, start) = match source {
            Source::Spool(_) => (&self.path(index), 0),
            Source::Part { path, start, .. } => (path, *start),
        };
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(start))?;
        let copied = io::copy(&mut file.take(bytes), whole)?;
        if copied == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Spooled {
    fn gap(&mut self, why: String) {
        if !self.gaps.contains(&why) {
            self.gaps.push(why);
        }
    }

    /// How many of its bytes a file of this size has. What it lacks is a gap.
    fn there(&mut self, size: u64) -> u64 {
        let (start, len) = match self.source {
            Source::Spool(len) => (0, len),
            Source::Part { start, len, .. } => (start, len),
        };
        let there = size.saturating_sub(start).min(len);
        if there < len {
            self.gap(format!("the log has {} bytes less than it had", len - there));
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

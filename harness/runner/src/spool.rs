//! Logs on disk while they arrive, and the stdout they become.
//!
//! ```text
//! Open, Bytes, Gap, End --take--> .rfm_spool/0, 1, ... one a section --assemble--> rfm_job.out, pods.json, Stdout
//! File (nobody writes it any more) ------------------------------------/  copied, or used in its place if it is
//!                                                                         rfm_job.out with its framing already
//! ```
//! All functions here block. No more than one file is open at a time, and none between two batches of chunks: thousands
//! of cases have their spools at once. What could not be kept is a gap, and a gap makes the case `invalid{logs}`.

use crate::{
    map::text_of,
    places::{SECTIONS, STDOUT},
};
use muster_core::{
    case::Identifier,
    scheduler::{Chunk, LogMark, LogMarks, SectionExit},
    stdout::{Section, SectionOrigin, Stdout, first_line, header},
    time::Timestamp,
};
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

const FOLDER: &str = ".rfm_spool";
/// The stdout while it is put together: what has the final name is whole.
const UNFINISHED: &str = "rfm_job.out.part";

/// The log of one attempt.
#[derive(Debug)]
pub(crate) struct Spool {
    stage: PathBuf,
    identifier: Identifier,
    sections: Vec<Spooled>,
    by_title: BTreeMap<String, usize>,
    /// The file that was written last, and whose it is.
    open: Option<(usize, File)>,
    has_folder: bool,
}

#[derive(Debug)]
struct Spooled {
    origin: SectionOrigin,
    source: Source,
    /// How far its source has been read.
    mark: u64,
    newlines: u64,
    ends_with_newline: bool,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    gaps: Vec<String>,
    ended: bool,
}

#[derive(Debug)]
enum Source {
    /// Our own file, of this length.
    Spool(u64),
    /// A part of somebody's file.
    Part { path: PathBuf, start: u64, len: u64 },
}

impl Spool {
    /// An empty one. Nothing is created before there is something to write.
    pub(crate) fn new(stage: PathBuf, identifier: Identifier) -> Self {
        Self { stage, identifier, sections: Vec::new(), by_title: BTreeMap::new(), open: None, has_folder: false }
    }

    /// How far each section is on disk.
    pub(crate) fn marks(&self) -> LogMarks {
        let mark = |s: &Spooled| LogMark { section: s.origin.title(), offset: s.mark, time: s.last };
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
                self.section(origin.title(), |_| origin);
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

    fn named(&mut self, title: String) -> usize {
        self.section(title, |title| SectionOrigin {
            name: title.to_owned(),
            container: None,
            role: 0,
            index: 0,
            created: Timestamp::default(),
            node: None,
        })
    }

    fn section(&mut self, title: String, origin: impl FnOnce(&str) -> SectionOrigin) -> usize {
        if let Some(index) = self.by_title.get(&title) {
            return *index;
        }
        self.sections.push(Spooled {
            origin: origin(&title),
            source: Source::Spool(0),
            mark: 0,
            newlines: 0,
            ends_with_newline: false,
            first: None,
            last: None,
            gaps: Vec::new(),
            ended: false,
        });
        self.by_title.insert(title, self.sections.len() - 1);
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
            if !self.has_folder {
                fs::create_dir_all(self.stage.join(FOLDER))?;
                self.has_folder = true;
            }
            let file = OpenOptions::new().create(true).append(true).open(self.path(index))?;
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
        self.stage.join(FOLDER).join(index.to_string())
    }

    /// Puts all sections together in their order. Leaves `rfm_job.out` and `pods.json` in the stage folder.
    pub(crate) fn assemble(mut self, exits: &[SectionExit]) -> io::Result<Stdout> {
        self.open = None;
        let path = self.stage.join(STDOUT);
        let (text, mut sections) = match self.in_place(&path) {
            Some((start, len)) => self.adopt(&path, start, len)?,
            None => self.copy(&path)?,
        };
        let exits: BTreeMap<&str, &SectionExit> = exits.iter().map(|exit| (exit.section.as_str(), exit)).collect();
        for section in &mut sections {
            if let Some(exit) = exits.get(section.origin.title().as_str()) {
                section.exit = Some(exit.exit);
                section.origin.node = section.origin.node.take().or_else(|| exit.node.clone());
            }
        }
        let json = serde_json::to_vec_pretty(&sections).map_err(io::Error::other)?;
        fs::write(self.stage.join(SECTIONS), json)?;
        Ok(Stdout::new(text, sections))
    }

    /// Whether the only section is already where it belongs.
    fn in_place(&self, stdout: &Path) -> Option<(u64, u64)> {
        let [only] = self.sections.as_slice() else { return None };
        match &only.source {
            Source::Part { path, start, len } if path == stdout => {
                (*start == self.framing(&only.origin).len() as u64).then_some((*start, *len))
            }
            _ => None,
        }
    }

    fn framing(&self, origin: &SectionOrigin) -> String {
        first_line(&self.identifier) + &header(&origin.title())
    }

    /// Takes a file that has its framing already as it is.
    fn adopt(&mut self, path: &Path, start: u64, len: u64) -> io::Result<(muster_core::stdout::Text, Vec<Section>)> {
        let Some(mut only) = self.sections.pop() else { return Err(io::ErrorKind::NotFound.into()) };
        let mut file = OpenOptions::new().read(true).append(true).open(path)?;
        let size = file.metadata()?.len();
        let framing = self.framing(&only.origin);
        let mut found = vec![0; framing.len()];
        // A script that writes to /dev/stderr truncates its own log: the first lines are the canary.
        if file.read_exact(&mut found).is_err() || found != framing.as_bytes() {
            only.gap("the log lost its first line".to_owned());
        }
        if size < start + len {
            only.gap(format!("the log has {} bytes less than it had", start + len - size));
        }
        let end = size.min(start + len);
        let mut last = [b'\n'];
        if end > start {
            file.read_exact_at(&mut last, end - 1)?;
        }
        if last != *b"\n" && end == size {
            file.write_all(b"\n")?;
        }
        file.rewind()?;
        let text = text_of(file)?;
        let whole: &[u8] = (*text).as_ref();
        let own = usize::try_from(start).ok().zip(usize::try_from(end).ok()).and_then(|(start, end)| whole.get(start..end));
        let lines = own.filter(|own| own.len() < 64 * 1024).map(|own| count_lines(count_newlines(own), own.last().copied()));
        Ok((text, vec![only.into_section(start, end.saturating_sub(start), lines)]))
    }

    /// Copies all sections into one file, in their order, and removes the spool.
    fn copy(&mut self, path: &Path) -> io::Result<(muster_core::stdout::Text, Vec<Section>)> {
        let unfinished = self.stage.join(UNFINISHED);
        let mut whole = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(&unfinished)?;
        whole.write_all(first_line(&self.identifier).as_bytes())?;
        let mut offset = first_line(&self.identifier).len() as u64;
        let mut order: Vec<(usize, Spooled)> = std::mem::take(&mut self.sections).into_iter().enumerate().collect();
        order.sort_by(|(_, one), (_, other)| one.origin.key().cmp(&other.origin.key()));
        let mut sections = Vec::with_capacity(order.len());
        for (index, mut section) in order {
            let header = header(&section.origin.title());
            whole.write_all(header.as_bytes())?;
            offset += header.len() as u64;
            let expected = section.len();
            let bytes = self.copy_section(index, &section.source, &mut whole)?;
            if bytes < expected {
                section.gap(format!("the log has {} bytes less than it had", expected - bytes));
            }
            let mut last = [b'\n'];
            if bytes > 0 {
                whole.read_exact_at(&mut last, offset + bytes - 1)?;
            }
            if last != *b"\n" {
                whole.write_all(b"\n")?;
            }
            let lines = match section.source {
                Source::Spool(_) => Some(count_lines(section.newlines, (bytes > 0).then_some(last[0]))),
                Source::Part { .. } => None,
            };
            sections.push(section.into_section(offset, bytes, lines));
            offset += bytes + u64::from(last != *b"\n");
        }
        fs::rename(&unfinished, path)?;
        if self.has_folder {
            fs::remove_dir_all(self.stage.join(FOLDER))?;
        }
        whole.rewind()?;
        Ok((text_of(whole)?, sections))
    }

    fn copy_section(&self, index: usize, source: &Source, whole: &mut File) -> io::Result<u64> {
        match source {
            Source::Spool(0) => Ok(0),
            Source::Spool(len) => io::copy(&mut File::open(self.path(index))?.take(*len), whole),
            Source::Part { path, start, len } => {
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(*start))?;
                io::copy(&mut file.take(*len), whole)
            }
        }
    }
}

impl Spooled {
    fn gap(&mut self, why: String) {
        if !self.gaps.contains(&why) {
            self.gaps.push(why);
        }
    }

    fn len(&self) -> u64 {
        match self.source {
            Source::Spool(len) | Source::Part { len, .. } => len,
        }
    }

    fn into_section(self, offset: u64, bytes: u64, lines: Option<u64>) -> Section {
        let Self { origin, first, last, gaps, .. } = self;
        Section { origin, offset, bytes, lines, first, last, exit: None, gaps }
    }
}

fn count_newlines(data: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', data).count() as u64
}

/// A last line without a newline is a line.
fn count_lines(newlines: u64, last: Option<u8>) -> u64 {
    newlines + u64::from(last.is_some_and(|last| last != b'\n'))
}

//! A spool's end: all sections in one file.

use super::{Source, Spool, Spooled};
use crate::{
    crash_points,
    log::{
        spool::moves::{Move, Steps},
        text::{count_lines, count_newlines, ends_in_newline, text_of},
    },
};
use muster_core::{
    job::{
        scheduler::{Ending, SectionExit},
        stage_folder::{LOG_FILE, SECTIONS, SPOOL},
        stdout::{Piece, Section, SectionOrigin, Stdout, Text, first_line, framing, header, order, settle},
    },
    rules::{LogAction, LogLimit},
};
use muster_host::files;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::Path,
};

/// In a log that is not copied, lines are counted up to this size.
const COUNTED: usize = 64 * 1024;
const UNREAD: &str = "nothing of it was read";

impl Spool {
    /// As `assemble`, of a job that has ended like this: only the pods that its end names are judged, and each of them has a section.
    ///
    /// # Errors
    /// It cannot be written, or could not be before.
    pub(crate) fn assemble_ended(mut self, ending: &Ending) -> io::Result<Stdout> {
        if self.is_disk_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if self.whole.is_none() {
            self.settle(ending);
            self.name_missing(ending);
        }
        let exits = ending.exits.iter().chain(&ending.superseded);
        self.assembled(exits, &mut || crash_points::reached(crash_points::Point::Assembling))
    }

    /// Puts all sections together in their order. Leaves `rfm_job.out` and `pods.json` in the stage folder.
    pub(crate) fn assemble<'a>(mut self, exits: impl IntoIterator<Item = &'a SectionExit>) -> io::Result<Stdout> {
        self.settle(&Ending::default());
        self.assembled(exits, &mut || crash_points::reached(crash_points::Point::Assembling))
    }

    fn settle(&mut self, ending: &Ending) {
        let mut origins: Vec<_> = self.sections.iter_mut().map(|section| &mut section.origin).collect();
        let is_part = settle(&mut origins, &ending.pods, ending.exits.iter().chain(&ending.superseded));
        for (section, is_part) in self.sections.iter_mut().zip(is_part) {
            section.left_out = !is_part;
        }
    }

    /// A judged pod without a section has lost its whole log. So has a start whose end is known and which has no section: the start that is
    /// judged in its place has a gap. Where nothing is there that could be judged, that is a gap
    /// even if a cut log may be judged.
    fn name_missing(&mut self, ending: &Ending) {
        let pods = &ending.pods;
        let there: BTreeSet<&str> = self.sections.iter().filter_map(|section| section.origin.uid.as_deref()).collect();
        let missing: Vec<_> = pods.iter().filter(|pod| pod.judged && !there.contains(pod.uid.as_str())).collect();
        let is_judged = |section: &&mut Spooled| !section.left_out && !section.origin.superseded;
        let has_text = self.sections.iter_mut().filter(is_judged).any(|section| section.len() > 0);
        let limit = self.limit.filter(|_| self.is_over);
        let unread: Vec<_> = ending.exits.iter().map(SectionExit::id).filter(|id| self.find(id).is_err()).collect();
        let is_of_another_start = |section: &&mut Spooled| unread.iter().any(|id| section.origin.is_another_start(id));
        let why = limit.map_or_else(|| UNREAD.to_owned(), LogLimit::nothing_kept);
        self.sections.iter_mut().filter(is_judged).filter(is_of_another_start).for_each(|section| section.gap(why.clone()));
        for pod in missing {
            let origin = SectionOrigin { uid: Some(pod.uid.clone()), later: pod.later, ..SectionOrigin::new(&pod.name) };
            let at = self.named(pod.uid.clone());
            self.sections[at].origin = origin;
            match limit {
                Some(limit) if limit.action == LogAction::Warn && has_text => self.sections[at].warning(limit.nothing_kept()),
                Some(limit) => self.sections[at].gap(limit.nothing_kept()),
                None => self.sections[at].gap(UNREAD.to_owned()),
            }
        }
        if let Some(limit) = limit.filter(|_| !has_text) {
            self.sections.iter_mut().filter(is_judged).for_each(|section| section.gap(limit.nothing_kept()));
        }
    }

    pub(super) fn assembled<'a>(
        &mut self,
        exits: impl IntoIterator<Item = &'a SectionExit>,
        moved: &mut dyn FnMut(),
    ) -> io::Result<Stdout> {
        self.open = None;
        let path = self.stage.join(LOG_FILE);
        if let Some(sections) = self.whole.take() {
            return reopen(&path, sections);
        }
        let exits: BTreeMap<&str, &SectionExit> = exits.into_iter().map(|exit| (exit.id(), exit)).collect();
        if let Some(only) = self.in_place(&path) {
            let (text, mut sections) = Self::adopt(&path, &self.framing(&only.origin), only, self.is_over)?;
            add_exits(&mut sections, &exits);
            files::write(&self.stage.join(SECTIONS), serde_json::to_vec_pretty(&sections)?)?;
            return Ok(Stdout::new(text, sections));
        }
        let steps = self.steps(&exits)?;
        steps.run(&self.stage, moved)?;
        Ok(Stdout::new(text_of(File::open(&path)?)?, steps.sections))
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
    fn adopt(path: &Path, framing: &str, mut only: Spooled, is_cut: bool) -> io::Result<(Text, Vec<Section>)> {
        let mut file = OpenOptions::new().read(true).append(true).open(path)?;
        let mut found = vec![0; framing.len()];
        // A script that writes to /dev/stderr truncates its own log: the first lines are the canary.
        if file.read_exact_at(&mut found, 0).is_err() || found != framing.as_bytes() {
            only.gap("the log lost its first line".to_owned());
        }
        let start = framing.len() as u64;
        let mut size = file.metadata()?.len();
        let bytes = only.there(size);
        if is_cut {
            size = start + bytes;
            file.set_len(size)?;
        }
        if bytes > 0 && start + bytes == size && !ends_in_newline(&file, size)? {
            file.write_all(b"\n")?;
        }
        let text = text_of(file)?;
        let own = usize::try_from(start).ok().zip(usize::try_from(start + bytes).ok());
        let own = own.and_then(|(start, end)| (*text).as_ref().get(start..end)).filter(|own| own.len() <= COUNTED);
        let lines = own.map(|own| count_lines(count_newlines(own), own.last().is_none_or(|last| *last == b'\n')));
        Ok((text, vec![only.into_section(start, bytes, lines)]))
    }

    /// What becomes of all sections, in their order. A file that is not ours is copied to a spool first and stays as it is.
    fn steps(&mut self, exits: &BTreeMap<&str, &SectionExit>) -> io::Result<Steps> {
        let mut sources = BTreeMap::new();
        let mut sections = Vec::with_capacity(self.sections.len());
        for (index, mut spooled) in std::mem::take(&mut self.sections).into_iter().enumerate() {
            if spooled.left_out {
                if matches!(spooled.source, Source::Spool { len: 1.., .. }) {
                    fs::remove_file(self.path(index))?;
                }
                continue;
            }
            let (bytes, lines, start) = match &spooled.source {
                Source::Spool { start, len } => {
                    (*len, Some(count_lines(spooled.newlines, *len == 0 || spooled.ends_with_newline)), *start)
                }
                Source::Part { path, start, .. } => {
                    let (file, start) = (File::open(path)?, *start);
                    let bytes = spooled.there(file.metadata()?.len());
                    spooled.ends_with_newline = bytes > 0 && ends_in_newline(&file, start + bytes)?;
                    if bytes > 0 {
                        self.copy_part(&file, start, bytes, index)?;
                    }
                    (bytes, None, 0)
                }
            };
            sources.insert(spooled.id.clone(), (index, start, spooled.ends_with_newline));
            sections.push(spooled.into_section(0, bytes, lines));
        }
        order(&mut sections);
        let source_of = |section: &Section| sources.get(&section.origin.id());
        let pieces = framing(&self.identifier, &mut sections, |section| source_of(section).is_none_or(|(.., ends)| *ends));
        add_exits(&mut sections, exits);
        let mut steps = Steps { base: None, len: 0, moves: Vec::new(), frames: Vec::new(), sections };
        for piece in pieces {
            match piece {
                Piece::Frame(text) => {
                    let at = steps.len;
                    steps.len += text.len() as u64;
                    steps.frames.push((at, text));
                }
                Piece::Log(at) => {
                    let section = &steps.sections[at];
                    steps.len += section.bytes;
                    let Some((index, start, _)) = source_of(section).filter(|_| section.bytes > 0) else { continue };
                    let (file, to) = (format!("{SPOOL}{index}"), section.offset);
                    if at == 0 && *start == to && self.is_framed(*index, &steps.frames) {
                        steps.base = Some(file);
                    } else {
                        steps.moves.push(Move { file, start: *start, len: section.bytes, to });
                    }
                }
            }
        }
        Ok(steps)
    }

    /// Whether a spool begins as the whole will begin.
    fn is_framed(&self, index: usize, frames: &[(u64, String)]) -> bool {
        let Some((0, frame)) = frames.first() else { return false };
        let mut found = vec![0; frame.len()];
        let read = File::open(self.path(index)).and_then(|file| file.read_exact_at(&mut found, 0));
        read.is_ok() && found == frame.as_bytes()
    }

    fn copy_part(&self, file: &File, start: u64, bytes: u64, index: usize) -> io::Result<()> {
        let mut part = file;
        part.seek(SeekFrom::Start(start))?;
        let copied = io::copy(&mut part.take(bytes), &mut files::create(&self.path(index))?)?;
        if copied == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// A log that was put together before. What is missing by now is a gap.
fn reopen(path: &Path, mut sections: Vec<Section>) -> io::Result<Stdout> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    for section in &mut sections {
        let there = size.saturating_sub(section.offset).min(section.bytes);
        if there < section.bytes {
            section.gaps.push(missing_bytes(section.bytes - there));
            section.bytes = there;
        }
    }
    Ok(Stdout::new(text_of(file)?, sections))
}

pub(super) fn missing_bytes(bytes: u64) -> String {
    format!("the log has {bytes} bytes less than it had")
}

fn add_exits(sections: &mut [Section], exits: &BTreeMap<&str, &SectionExit>) {
    for section in sections {
        if let Some(exit) = exits.get(section.origin.id().as_str()) {
            section.exit = Some(exit.exit);
            section.origin.node = section.origin.node.take().or_else(|| exit.node.clone());
        }
    }
}

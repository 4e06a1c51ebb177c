//! The stdout contract: all sections of a job as one text. Longer than other files: the order of sections has its tests beside it.
//!
//! ```text
//! aotugiob                                    line 1: the identifier
//!                                             then for each section a blank line,
//! -------rfm-jobtest-aotugiob-6xdms-------    its name between seven dashes on each side
//! ...                                         and its log, ended by a newline
//! ```
//! Sections are sorted by role, index, creation time and name. Patterns are searched in each section by itself, so
//! a match never spans two and never sees these framing lines.
//!
//! Of pods that had one name after the other mostly the last alone is judged: the end of the job says which (`settle`). The one before it
//! follows all that are judged as `NAME#2`, older ones as `NAME#3` and so on: nothing sees them. Nor does anything see other pods that
//! the end does not count (of an earlier restart, a failed attempt): `NAME#not-judged`. The starts of one container are numbered like
//! pods of one name: a log is that of one start.
//!
//! After the logs come the files that the job left and the check keeps, as sections of the same form, named by their paths.
//! Nothing sees them that does not ask for files.

use crate::{
    case::Identifier,
    job::scheduler::{Exit, JobPod, SectionExit},
};
use muster_text::{expr, glob::Globs, time::Timestamp};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Range,
    sync::Arc,
};

/// The origin of a section and its place in the order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionOrigin {
    /// Pod, instance or host.
    pub name: String,
    /// Set if a pod has several containers.
    pub container: Option<String>,
    /// Launchers before workers: the place of its role in the workload.
    pub role: u32,
    /// Its index in the role (a completion index, a rank).
    pub index: u32,
    pub created: Timestamp,
    pub node: Option<String>,
    /// The uid of a pod: distinguishes pods that have the same name one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The number of earlier starts of its container.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start: u32,
    /// The number of newer pods with its name, plus the number of newer starts of its container: its title says so.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub later: u32,
    /// It is not judged: another had its name after it, or the end of the job does not count it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
}

/// What a title has after the name of a pod that is not judged.
const NOT_JUDGED: &str = "#not-judged";

/// Returns whether the section with this title is not judged. Names of pods have no `#`.
pub fn is_not_judged(title: &str) -> bool {
    let pod = title.split_once('/').map_or(title, |(pod, _)| pod);
    pod.ends_with(NOT_JUDGED) || pod.rsplit_once('#').is_some_and(|(_, number)| number.parse::<u32>().is_ok())
}

impl SectionOrigin {
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// `NAME`, or `NAME/CONTAINER`; `NAME#2` if another had the name after it, `NAME#not-judged` if it is not judged for another reason.
    pub fn title(&self) -> String {
        let mut title = self.name.clone();
        if self.later > 0 {
            title = format!("{title}#{}", u64::from(self.later) + 1);
        } else if self.superseded {
            title.push_str(NOT_JUDGED);
        }
        self.container.as_ref().map_or_else(|| title.clone(), |container| format!("{title}/{container}"))
    }

    /// Returns the identity of the section while its title can still change.
    pub fn id(&self) -> String {
        let Some(uid) = &self.uid else { return self.title() };
        match (&self.container, self.start) {
            (None, 0) => uid.clone(),
            (Some(container), 0) => format!("{uid}/{container}"),
            (container, start) => format!("{uid}/{}/{start}", container.as_deref().unwrap_or_default()),
        }
    }

    /// Returns whether this id is of the same container, started at another time.
    pub fn is_another_start(&self, id: &str) -> bool {
        fn container(id: &str) -> (Option<&str>, &str) {
            let mut parts = id.split('/');
            (parts.next(), parts.next().unwrap_or_default())
        }
        let own = self.id();
        self.uid.is_some() && own != id && container(&own) == container(id)
    }

    /// The sort key of the contract: judged sections come first.
    pub fn key(&self) -> (u32, u32, u32, Timestamp, &str, Option<&str>) {
        let rank = if self.superseded { self.later.max(1) } else { 0 };
        (rank, self.role, self.index, self.created, &self.name, self.container.as_deref())
    }
}

/// Says of each section whether it is judged and how many others had its name after it, as the end of the job says it of its pods.
/// Those that are no part of the job are `false`: another pod took the name of one that was. Where the end counts any pods, one that it
/// does not know is not judged: it was deleted before this process followed the job. Of the starts of a container one is judged: that of
/// which `exits` have the end, else the last.
pub fn settle<'a>(
    origins: &mut [&mut SectionOrigin],
    pods: &[JobPod],
    exits: impl IntoIterator<Item = &'a SectionExit>,
) -> Vec<bool> {
    number_pods(origins);
    let by_uid: BTreeMap<&str, &JobPod> = pods.iter().map(|pod| (pod.uid.as_str(), pod)).collect();
    let names: BTreeSet<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
    let counts_any = pods.iter().any(|pod| pod.judged);
    let settled = origins.iter_mut().map(|origin| {
        if let Some(pod) = origin.uid.as_deref().and_then(|uid| by_uid.get(uid)) {
            (origin.later, origin.superseded) = (pod.later, !pod.judged);
            return true;
        }
        origin.superseded |= counts_any;
        !names.contains(origin.name.as_str())
    });
    let settled = settled.collect();
    number_starts(origins, &exits.into_iter().map(SectionExit::id).collect());
    settled
}

/// Marks every start of a container but one as not judged.
fn number_starts(origins: &mut [&mut SectionOrigin], ended: &BTreeSet<&str>) {
    let mut judged: BTreeMap<(Option<String>, Option<String>), (bool, u32)> = BTreeMap::new();
    let key = |origin: &SectionOrigin| (origin.uid.clone(), origin.container.clone());
    for origin in origins.iter().filter(|origin| origin.uid.is_some()) {
        let start = (ended.contains(origin.id().as_str()), origin.start);
        judged.entry(key(origin)).and_modify(|known| *known = start.max(*known)).or_insert(start);
    }
    for origin in origins {
        let start = judged.get(&key(origin)).map_or(origin.start, |(_, start)| *start);
        origin.later += start.saturating_sub(origin.start);
        origin.superseded |= start != origin.start;
    }
}

/// Counts for each section how many others had its name after it, if the job does not say so: by their creation, which is known to the
/// second, and by their appearance.
fn number_pods(origins: &mut [&mut SectionOrigin]) {
    let mut pods: BTreeMap<String, Vec<(Timestamp, Reverse<u32>, String)>> = BTreeMap::new();
    for SectionOrigin { name, created, uid, later, .. } in origins.iter().map(|origin| &**origin) {
        let pods = pods.entry(name.clone()).or_default();
        if let Some(uid) = uid.as_ref().filter(|uid| pods.iter().all(|(.., known)| known != *uid)) {
            pods.push((*created, Reverse(*later), uid.clone()));
        }
    }
    // Stable: of the same second, what appeared first is first.
    for of_name in pods.values_mut() {
        of_name.sort_by_key(|(created, later, _)| (*created, *later));
    }
    for SectionOrigin { name, uid, later, superseded, .. } in origins.iter_mut().map(|origin| &mut **origin) {
        let place = pods[name.as_str()].iter().rev().position(|(.., known)| Some(known) == uid.as_ref());
        *later = place.map_or(0, |place| u32::try_from(place).unwrap_or(u32::MAX));
        *superseded = *later > 0;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The text between two headers, with what is known of it. Written to `pods.json`, one a section.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    #[serde(flatten)]
    pub origin: SectionOrigin,
    /// Offset in the whole text.
    pub offset: u64,
    pub bytes: u64,
    /// Counted lines.
    pub lines: Option<u64>,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
    pub exit: Option<Exit>,
    /// The reasons why bytes are missing: empty means complete.
    pub gaps: Vec<String>,
    /// The reasons why bytes may be missing that the check does without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// A kept file; these follow the logs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_file: bool,
}

impl Section {
    /// A section of which only the place is known: complete, without times and exit.
    pub fn new(origin: SectionOrigin, offset: u64, bytes: u64) -> Self {
        Self { origin, offset, bytes, ..Self::default() }
    }
}

/// The bytes of a whole stdout: a memory map, a vector, a static text.
pub type Text = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// The assembled text of a finished job.
#[derive(Clone)]
pub struct Stdout {
    text: Text,
    sections: Arc<[Section]>,
    superseded: Arc<[Section]>,
    searched: expr::Text,
    files: Option<Arc<Files>>,
}

/// The files that a job left and its check keeps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Files {
    /// The files that are text, in the order of their paths.
    pub sections: Vec<Section>,
    /// The files that cannot be searched, each with the reason: `core.1 (binary)`.
    pub unread: Vec<String>,
}

impl fmt::Debug for Stdout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Stdout");
        shown.field("bytes", &self.bytes().len()).field("sections", &self.sections).field("files", &self.files);
        shown.finish_non_exhaustive()
    }
}

impl Stdout {
    /// A text and its sections, in order. Sections that reach beyond the text are cut to it.
    pub fn new(text: Text, sections: impl IntoIterator<Item = Section>) -> Self {
        let (superseded, sections): (Vec<_>, Vec<_>) = sections.into_iter().partition(|section| section.origin.superseded);
        let range = |section: &Section| {
            let at = |byte: u64| usize::try_from(byte).unwrap_or(usize::MAX);
            at(section.offset)..at(section.offset.saturating_add(section.bytes))
        };
        let searched = sections.iter().map(|section| (section.origin.title(), range(section)));
        let searched = expr::Text::new(Arc::clone(&text), searched);
        Self { text, sections: sections.into(), superseded: superseded.into(), searched, files: None }
    }

    /// Appends kept files to the logs.
    #[must_use]
    pub fn with_files(self, files: Files) -> Self {
        Self { files: Some(Arc::new(files)), ..self }
    }

    /// The kept files, if any were asked for.
    pub fn files(&self) -> Option<&Files> {
        self.files.as_deref()
    }

    /// The kept files that some globs cover, in the place of the logs.
    #[must_use]
    pub fn of_files(&self, globs: &Globs) -> Self {
        let sections = self.files.iter().flat_map(|files| &files.sections);
        Self::new(Arc::clone(&self.text), sections.filter(|section| globs.cover(&section.origin.name)).cloned())
    }

    /// One section that is the whole of `text`: for tests and rehearsals.
    pub fn of(text: impl Into<Vec<u8>>) -> Self {
        let text: Vec<u8> = text.into();
        let section = Section::new(SectionOrigin::new("stdout"), 0, text.len() as u64);
        Self::new(Arc::new(text), [section])
    }

    /// The contract, carried out in memory: what a spool does on disk, for tests and rehearsals.
    pub fn assemble(identifier: &Identifier, mut logs: Vec<(SectionOrigin, Vec<u8>)>) -> Self {
        logs.sort_by(|(one, _), (other, _)| one.key().cmp(&other.key()));
        let section = |(origin, log): &(SectionOrigin, Vec<u8>)| Section::new(origin.clone(), 0, log.len() as u64);
        let mut sections: Vec<_> = logs.iter().map(section).collect();
        let mut ends = logs.iter().map(|(_, log)| log.ends_with(b"\n"));
        let pieces = framing(identifier, &mut sections, |_| ends.next().unwrap_or(true));
        let mut text = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Frame(frame) => text.extend(frame.into_bytes()),
                Piece::Log(index) => text.extend(&logs[index].1),
            }
        }
        Self::new(Arc::new(text), sections)
    }

    /// The whole text with its framing.
    pub fn bytes(&self) -> &[u8] {
        (*self.text).as_ref()
    }

    /// The sections of the logs that are judged, in order.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The sections of pods that are not judged. They stand after those that are.
    pub fn superseded(&self) -> &[Section] {
        &self.superseded
    }

    pub fn section(&self, section: &Section) -> &[u8] {
        let whole = self.bytes();
        let clamp = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(whole.len());
        let range: Range<usize> = clamp(section.offset)..clamp(section.offset.saturating_add(section.bytes));
        &whole[range]
    }

    /// The sections that are judged, as patterns and expressions see them.
    pub fn searched(&self) -> &expr::Text {
        &self.searched
    }

    /// Every gap of every section that is judged, with its title.
    pub fn gaps(&self) -> impl Iterator<Item = (String, &str)> {
        self.sections.iter().flat_map(|s| s.gaps.iter().map(|why| (s.origin.title(), why.as_str())))
    }

    /// Every warning of every section that is judged, with its title.
    pub fn warnings(&self) -> impl Iterator<Item = (String, &str)> {
        self.sections.iter().flat_map(|s| s.warnings.iter().map(|why| (s.origin.title(), why.as_str())))
    }
}

pub fn first_line(identifier: &Identifier) -> String {
    format!("{identifier}\n")
}

/// The two lines before a section's text.
pub fn header(title: &str) -> String {
    format!("\n-------{title}-------\n")
}

pub fn order(sections: &mut [Section]) {
    sections.sort_by(|a, b| a.origin.key().cmp(&b.origin.key()));
}

/// One piece of an assembled stdout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Frame(String),
    /// The log of the section with this index, byte for byte.
    Log(usize),
}

/// Returns the pieces to write, one after the other, to assemble `sections` (in order, their `bytes` known). Each section's
/// `offset` is set to where its log will stand. A log without a final newline gets one, which is not counted as its own;
/// `ends_in_newline` is asked once for each section, in order.
pub fn framing(
    identifier: &Identifier,
    sections: &mut [Section],
    mut ends_in_newline: impl FnMut(&Section) -> bool,
) -> Vec<Piece> {
    let mut at = 0_u64;
    let mut pieces = Vec::with_capacity(2 * sections.len() + 1);
    let mut frame = first_line(identifier);
    for (index, section) in sections.iter_mut().enumerate() {
        frame.push_str(&header(&section.origin.title()));
        at += frame.len() as u64;
        pieces.push(Piece::Frame(std::mem::take(&mut frame)));
        section.offset = at;
        at += section.bytes;
        pieces.push(Piece::Log(index));
        if !ends_in_newline(section) && section.bytes > 0 {
            frame.push('\n');
        }
    }
    if !frame.is_empty() {
        pieces.push(Piece::Frame(frame));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(name: &str, role: u32, index: u32, created: i64) -> SectionOrigin {
        SectionOrigin { role, index, created: Timestamp(created), ..SectionOrigin::new(name) }
    }

    fn identifier() -> Identifier {
        Identifier::parse("aotugiob").unwrap()
    }

    #[test]
    fn the_sections_stand_in_the_order_of_the_contract() {
        let mut sidecar = origin("rank-0", 1, 0, 5);
        sidecar.container = Some("sidecar".into());
        let logs = vec![
            (origin("rank-1", 1, 1, 3), b"third, without a newline".to_vec()),
            (origin("b-restarted", 1, 2, 4), b"fifth\n".to_vec()),
            (origin("rank-0", 1, 0, 5), b"second\n\n".to_vec()),
            (origin("launcher", 0, 0, 9), b"first\n".to_vec()),
            (origin("c-first", 1, 2, 3), b"".to_vec()),
            (sidecar, b"after second\n".to_vec()),
        ];
        let stdout = Stdout::assemble(&identifier(), logs);
        insta::assert_snapshot!(std::str::from_utf8(stdout.bytes()).unwrap(), @"
        aotugiob

        -------launcher-------
        first

        -------rank-0-------
        second


        -------rank-0/sidecar-------
        after second

        -------rank-1-------
        third, without a newline

        -------c-first-------

        -------b-restarted-------
        fifth
        ");
        let texts: Vec<_> =
            stdout.sections().iter().map(|section| std::str::from_utf8(stdout.section(section)).unwrap()).collect();
        assert_eq!(texts, ["first\n", "second\n\n", "after second\n", "third, without a newline", "", "fifth\n"]);
    }

    fn life(name: &str, uid: &str, index: u32, created: i64) -> Section {
        Section::new(SectionOrigin { uid: Some(uid.into()), ..origin(name, 0, index, created) }, 0, 0)
    }

    #[test]
    fn pods_that_had_the_same_name_are_numbered_from_the_last_back_and_only_the_last_is_judged() {
        let mut sections = vec![
            life("a", "1", 0, 1),
            life("b", "2", 1, 1),
            life("a", "4", 0, 7),
            life("a", "3", 0, 5),
            life("b", "6", 1, 9),
            life("a", "5", 0, 7),
            Section::new(origin("c", 0, 2, 1), 0, 0),
        ];
        assert_eq!(settled(&mut sections, &[]), [true; 7]);
        order(&mut sections);
        let title = |section: &Section| format!("{} {}", section.origin.title(), section.origin.uid.as_deref().unwrap_or("-"));
        let stdout = Stdout::new(Arc::new(Vec::new()), sections.clone());
        assert_eq!(stdout.sections().iter().map(title).collect::<Vec<_>>(), ["a 5", "b 6", "c -"]);
        let superseded = ["a#2 4", "b#2 2", "a#3 3", "a#4 1"];
        assert_eq!(stdout.superseded().iter().map(title).collect::<Vec<_>>(), superseded);
        assert_eq!(sections.iter().skip(3).map(title).collect::<Vec<_>>(), superseded, "after those that are judged");
        let numbered = sections.clone();
        settled(&mut sections, &[]);
        assert_eq!(sections, numbered, "they keep their numbers when they are read again");
    }

    fn settled(sections: &mut [Section], pods: &[JobPod]) -> Vec<bool> {
        settle(&mut sections.iter_mut().map(|section| &mut section.origin).collect::<Vec<_>>(), pods, [])
    }

    #[test]
    fn the_end_of_a_job_alone_says_which_of_its_pods_are_judged() {
        type Row<'a> = (&'a [(&'a str, u32, bool)], &'a [&'a str], &'a [&'a str], &'a [&'a str]);
        // what the end says of pods named `a`; sections that there are; judged; superseded
        let rows: [Row<'_>; 7] = [
            (&[("1", 1, false), ("2", 0, true)], &["1", "2"], &["a 2"], &["a#2 1"]),
            (&[("1", 1, false), ("2", 0, true)], &["1"], &[], &["a#2 1"]),
            (&[("1", 0, true)], &["1", "2", "3"], &["a 1"], &[]),
            (&[("1", 1, false), ("2", 0, true)], &["1", "3"], &[], &["a#2 1"]),
            (&[("1", 1, true), ("2", 0, true)], &["2", "1"], &["a#2 1", "a 2"], &[]),
            (&[("2", 0, true), ("1", 1, false)], &["2", "1"], &["a 2"], &["a#2 1"]),
            (&[("1", 0, false)], &["1"], &[], &["a#not-judged 1"]),
        ];
        for (pods, there, judged, superseded) in rows {
            let pod = |(uid, later, judged): &(&str, u32, bool)| JobPod {
                uid: (*uid).to_owned(),
                name: "a".into(),
                later: *later,
                judged: *judged,
            };
            let pods: Vec<_> = pods.iter().map(pod).collect();
            let mut sections: Vec<_> = there.iter().map(|uid| life("a", uid, 0, uid.parse().unwrap())).collect();
            let mut kept = settled(&mut sections, &pods).into_iter();
            sections.retain(|_| kept.next().unwrap());
            order(&mut sections);
            let stdout = Stdout::new(Arc::new(Vec::new()), sections);
            let title = |section: &Section| format!("{} {}", section.origin.title(), section.origin.uid.as_deref().unwrap());
            assert_eq!(stdout.sections().iter().map(title).collect::<Vec<_>>(), judged, "{pods:?}");
            assert_eq!(stdout.superseded().iter().map(title).collect::<Vec<_>>(), superseded, "{pods:?}");
        }
        // Deleted before the process that sees the end took the job over: kept, and judged only if the end counts no other.
        for judged in [true, false] {
            let mut unknown = [life("b", "9", 0, 1)];
            let pod = JobPod { uid: "1".into(), name: "a".into(), later: 0, judged };
            assert_eq!(settled(&mut unknown, &[pod]), [true]);
            assert_eq!(unknown[0].origin.superseded, judged);
        }
    }

    #[test]
    fn of_the_starts_of_a_container_one_is_judged() {
        // starts that there are; the one that has ended by the end of the job; titles in their order, judged first
        let rows: [(&[u32], Option<u32>, &[&str]); 5] = [
            (&[0], Some(0), &["a/main"]),
            (&[0, 1], Some(1), &["a/main", "a#2/main"]),
            (&[0, 2, 1], None, &["a/main", "a#2/main", "a#3/main"]),
            // A pod without an owner has ended with its first start.
            (&[0, 1], Some(0), &["a/main", "a#not-judged/main"]),
            (&[0, 1], Some(7), &["a/main", "a#2/main"]),
        ];
        for (starts, ended, titles) in rows {
            let origin = |start: u32| SectionOrigin { container: Some("main".to_owned()), start, ..life("a", "1", 0, 1).origin };
            let mut sections: Vec<_> = starts.iter().map(|start| Section::new(origin(*start), 0, 0)).collect();
            let exit = ended.map(|start| SectionExit { section_id: Some(origin(start).id()), ..SectionExit::default() });
            let pod = JobPod { uid: "1".into(), name: "a".into(), later: 0, judged: true };
            let mut origins: Vec<_> = sections.iter_mut().map(|section| &mut section.origin).collect();
            assert_eq!(settle(&mut origins, &[pod], &exit), vec![true; starts.len()]);
            order(&mut sections);
            assert_eq!(sections.iter().map(|section| section.origin.title()).collect::<Vec<_>>(), titles, "{starts:?} {ended:?}");
            let judged = sections.iter().filter(|section| !section.origin.superseded);
            assert_eq!(judged.count(), 1);
        }
    }

    #[test]
    fn a_title_says_that_its_section_is_not_judged() {
        let origin = |later, superseded, container: Option<&str>| SectionOrigin {
            later,
            superseded,
            container: container.map(str::to_owned),
            ..SectionOrigin::new("p-1")
        };
        let rows = [
            (origin(0, false, None), "p-1", false),
            (origin(1, true, Some("main")), "p-1#2/main", true),
            (origin(0, true, None), "p-1#not-judged", true),
            (origin(0, true, Some("main")), "p-1#not-judged/main", true),
        ];
        for (origin, title, expected) in rows {
            assert_eq!((origin.title().as_str(), is_not_judged(title)), (title, expected));
        }
    }

    #[test]
    fn a_section_that_was_stored_before_pods_had_a_uid_here_is_read() {
        let stored = r#"{"name":"p","container":"main","role":1,"index":2,"created":3,"node":null}"#;
        let read: SectionOrigin = serde_json::from_str(stored).unwrap();
        assert_eq!((read.id().as_str(), read.title().as_str(), read.superseded), ("p/main", "p/main", false));
        assert_eq!(serde_json::to_string(&read).unwrap(), stored);
    }

    #[test]
    fn bytes_pass_unchanged() {
        let log = [0, 0xff, b'\r', b'\n', 0x1b, b'x'];
        let stdout = Stdout::assemble(&identifier(), vec![(origin("a", 0, 0, 0), log.to_vec())]);
        assert_eq!(stdout.section(&stdout.sections()[0]), log);
        assert_eq!(stdout.bytes(), [&b"aotugiob\n\n-------a-------\n"[..], &log, b"\n"].concat());
    }

    #[test]
    fn a_section_beyond_the_text_is_cut_to_it() {
        let at = |offset, bytes| {
            let stdout = Stdout::new(Arc::new(b"0123".to_vec()), [Section::new(origin("a", 0, 0, 0), offset, bytes)]);
            stdout.section(&stdout.sections()[0]).to_vec()
        };
        assert_eq!([at(1, 2), at(2, 9), at(9, 1), at(u64::MAX, u64::MAX)], [&b"12"[..], b"23", b"", b""]);
    }
}

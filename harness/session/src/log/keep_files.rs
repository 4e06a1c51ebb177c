//! The files that a job left and its check keeps: which they are, and their sections after the logs.
//!
//! ```text
//! find: stage folder, globs -> KeptFiles -add-> rfm_job.out: logs | files    pods.json: one record a section, files after the logs
//!                                \---------> folders: what a pass keeps
//! ```
//! `pods.json` names the logs alone before anything is put after them, and all sections when all are there: a process
//! that takes over from a harness that was killed in between finds the end of the logs and puts the files after them again.
//!
//! All functions here block.

use crate::log::text::{count_lines, count_newlines, text_of};
use ignore::WalkBuilder;
use muster_core::job::{
    stage_folder::{self, LOG_FILE, SECTIONS, UNFINISHED_SECTIONS},
    stdout::{Files, Section, SectionOrigin, Stdout, header},
};
use muster_host::files;
use muster_text::glob::Globs;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// How many files a check may keep.
const MAX_FILES: usize = 1000;
/// How many bytes they may have together.
const MAX_BYTES: u64 = 1 << 30;
/// A file is text if no zero byte is among its first: what git looks at.
const LOOKED_AT: usize = 8000;
const BUFFER: usize = 64 * 1024;

/// What a check keeps of its stage folder.
#[derive(Debug, Default)]
pub(crate) struct KeptFiles {
    files: Vec<KeptFile>,
    /// What is not kept, though the check says so: sentences.
    pub(crate) warnings: Vec<String>,
    /// The same for the judge: `big.csv (not kept)`.
    left_out: Vec<String>,
}

#[derive(Debug)]
struct KeptFile {
    /// Within the stage folder.
    path: PathBuf,
    bytes: u64,
}

impl KeptFiles {
    /// Looks for the files that some globs cover.
    pub(crate) fn find(stage: &Path, globs: &[String]) -> Self {
        Self::within(stage, globs, (MAX_FILES, MAX_BYTES))
    }

    fn within(stage: &Path, globs: &[String], (max_files, max_bytes): (usize, u64)) -> Self {
        let mut kept = Self::default();
        let globs = match Globs::compile(globs) {
            Ok(globs) => globs,
            Err(error) => {
                kept.warnings.push(format!("`keep_files`: {error}"));
                return kept;
            }
        };
        let mut walk = WalkBuilder::new(stage);
        walk.standard_filters(false).sort_by_file_name(Ord::cmp);
        let (mut bytes, mut beyond) = (0, 0);
        for entry in walk.build().flatten() {
            let Ok(path) = entry.path().strip_prefix(stage) else { continue };
            let is_ours = path.components().count() == 1 && stage_folder::is_ours(entry.file_name());
            if is_ours || entry.file_type().is_none_or(|kind| kind.is_dir()) || !globs.cover(&path.to_string_lossy()) {
                continue;
            }
            let mut leave = |why: String| {
                kept.left_out.push(format!("{} ({why})", path.display()));
                kept.warnings.push(format!("{} is not kept: {why}", path.display()));
            };
            // A link is kept as the file that it leads to.
            match fs::metadata(entry.path()) {
                Ok(file) if !file.is_file() => leave("it is neither a file nor a link to one".to_owned()),
                Err(error) => leave(error.to_string()),
                Ok(file) if kept.files.len() == max_files || bytes + file.len() > max_bytes => {
                    beyond += 1;
                    kept.left_out.push(format!("{} (beyond the limit)", path.display()));
                }
                Ok(file) => {
                    bytes += file.len();
                    kept.files.push(KeptFile { path: path.to_owned(), bytes: file.len() });
                }
            }
        }
        if beyond > 0 {
            let mib = max_bytes >> 20;
            kept.warnings
                .push(format!("{beyond} file(s) are not kept: a check may keep {max_files} files of {mib} MiB together"));
        }
        kept
    }

    /// The paths within the stage folder, sorted.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = self.files.iter().map(|file| file.path.clone()).collect();
        paths.sort();
        paths
    }

    /// Puts the text files after the logs of an assembled stdout.
    pub(crate) fn add(&self, stdout: Stdout, stage: &Path) -> io::Result<Stdout> {
        let logs: Vec<Section> = stdout.sections().iter().chain(stdout.superseded()).cloned().collect();
        // The file is about to change, and nothing may be mapped from it then.
        drop(stdout);
        let mut whole = AssembledLog::after(&logs, &stage.join(LOG_FILE))?;
        let mut files = Files { sections: Vec::new(), unread: self.left_out.clone() };
        for KeptFile { path, bytes } in &self.files {
            match whole.put(stage, path, *bytes)? {
                Put::Text(section) => files.sections.push(*section),
                Put::Unread(why) => files.unread.push(format!("{} ({why})", path.display())),
            }
        }
        let all: Vec<&Section> = logs.iter().chain(&files.sections).collect();
        let unfinished = stage.join(UNFINISHED_SECTIONS);
        files::write(&unfinished, serde_json::to_vec_pretty(&all)?)?;
        fs::rename(&unfinished, stage.join(SECTIONS))?;
        Ok(Stdout::new(text_of(whole.file)?, logs).with_files(files))
    }
}

/// The stdout, open after its logs.
struct AssembledLog {
    file: File,
    end: u64,
}

enum Put {
    Text(Box<Section>),
    /// A fragment.
    Unread(String),
}

impl AssembledLog {
    /// Removes what an earlier attempt has put there.
    fn after(logs: &[Section], path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).append(true).open(path)?;
        let end = logs.last().map_or(0, |last| last.offset + last.bytes);
        let mut last = [b'\n'];
        if logs.last().is_some_and(|last| last.bytes > 0) {
            file.read_exact_at(&mut last, end - 1)?;
        }
        // The newline that was missing was added after it.
        let end = end + u64::from(last != *b"\n");
        file.set_len(end)?;
        Ok(Self { file, end })
    }

    fn put(&mut self, stage: &Path, path: &Path, bytes: u64) -> io::Result<Put> {
        let mut source = match File::open(stage.join(path)) {
            Ok(source) => source.take(bytes),
            Err(error) => return Ok(Put::Unread(error.to_string())),
        };
        let mut piece = Vec::with_capacity(BUFFER);
        source.by_ref().take(BUFFER as u64).read_to_end(&mut piece)?;
        if piece[..piece.len().min(LOOKED_AT)].contains(&0) {
            return Ok(Put::Unread("binary".to_owned()));
        }
        let name = path.to_string_lossy().into_owned();
        let origin = SectionOrigin::new(name);
        self.write(header(&origin.title()).as_bytes())?;
        let (start, mut newlines, mut last) = (self.end, 0, b'\n');
        while let Some(end) = piece.last() {
            newlines += count_newlines(&piece);
            last = *end;
            self.write(&piece)?;
            piece.clear();
            source.by_ref().take(BUFFER as u64).read_to_end(&mut piece)?;
        }
        let lines = count_lines(newlines, last == b'\n');
        let section = Section { lines: Some(lines), is_file: true, ..Section::new(origin, start, self.end - start) };
        if last != b'\n' {
            self.write(b"\n")?;
        }
        Ok(Put::Text(Box::new(section)))
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        self.end += text.len() as u64;
        self.file.write_all(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::spool::Spool;
    use muster_core::{
        case::Identifier,
        job::scheduler::{Channel, Chunk, Exit, SectionExit},
    };
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    const LOG: &str = "aaaaaaaa\n\n-------host-------\nlog";

    /// A stage folder with a finished local log, and files.
    fn stage(files: &[(&str, &[u8])]) -> TempDir {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join(LOG_FILE), LOG).unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn assembled(stage: &Path) -> Stdout {
        let identifier = Identifier::from_letters([0; 8]);
        let mut spool = Spool::new(stage.to_owned(), identifier);
        let origin = SectionOrigin { node: Some("host".into()), ..SectionOrigin::new("host") };
        let start = LOG.len() as u64 - 3;
        spool.take_all([
            Chunk::Open(Channel::Log, origin),
            Chunk::File { section: "host".into(), path: stage.join(LOG_FILE), start, len: 3 },
            Chunk::End { section: "host".into() },
        ]);
        spool.assemble(&exits()).unwrap()
    }

    fn exits() -> [SectionExit; 1] {
        [SectionExit { section: "host".into(), exit: Exit::Code(0), ..SectionExit::default() }]
    }

    fn globs(globs: &[&str]) -> Vec<String> {
        globs.iter().map(|&glob| glob.to_owned()).collect()
    }

    fn texts(stdout: &Stdout) -> Vec<(String, String)> {
        let files = stdout.files().unwrap();
        let text = |section: &Section| String::from_utf8_lossy(stdout.section(section)).into_owned();
        files.sections.iter().map(|section| (section.origin.title(), text(section))).collect()
    }

    #[test]
    fn text_files_become_sections_behind_the_log() {
        let files: [(&str, &[u8]); 4] = [("b.csv", b"1\n2"), ("d/a.csv", b"3\n"), ("core.csv", b"\0\x01"), ("other", b"x")];
        let folder = stage(&files);
        let kept = KeptFiles::find(folder.path(), &globs(&["**/*.csv", "rfm_job.*"]));
        assert_eq!(kept.paths(), ["b.csv", "core.csv", "d/a.csv"].map(PathBuf::from), "and nothing that Muster wrote");
        let stdout = kept.add(assembled(folder.path()), folder.path()).unwrap();
        let whole = "aaaaaaaa\n\n-------host-------\nlog\n\n-------b.csv-------\n1\n2\n\n-------d/a.csv-------\n3\n";
        assert_eq!(String::from_utf8_lossy(stdout.bytes()), whole);
        assert_eq!(fs::read_to_string(folder.path().join(LOG_FILE)).unwrap(), whole);
        assert_eq!(texts(&stdout), [("b.csv".into(), "1\n2".into()), ("d/a.csv".into(), "3\n".into())]);
        assert_eq!(stdout.files().unwrap().unread, ["core.csv (binary)"]);
        assert_eq!(stdout.sections().len(), 1, "who does not ask for files sees the log alone");
        let listed: Vec<serde_json::Value> = serde_json::from_slice(&fs::read(folder.path().join(SECTIONS)).unwrap()).unwrap();
        let listed: Vec<_> =
            listed.iter().map(|one| format!("{} {} {} {}", one["name"], one["bytes"], one["lines"], one["is_file"])).collect();
        assert_eq!(listed, [r#""host" 3 1 null"#, r#""b.csv" 3 2 true"#, r#""d/a.csv" 2 1 true"#]);
    }

    #[test]
    fn whoever_takes_over_puts_the_same_files_behind_the_same_log() {
        let folder = stage(&[("out", b"first")]);
        let kept = globs(&["*"]);
        let first = KeptFiles::find(folder.path(), &kept).add(assembled(folder.path()), folder.path()).unwrap();
        let (whole, list) = (first.bytes().to_vec(), fs::read(folder.path().join(SECTIONS)).unwrap());
        drop(first);
        // Killed when all was there, and in the middle: the list names the log alone, and something follows it.
        for is_whole in [true, false] {
            let (spool, ending) = Spool::reopened(folder.path(), &Identifier::from_letters([0; 8])).unwrap();
            let stdout = spool.assemble(&ending.exits).unwrap();
            if !is_whole {
                let mut log = OpenOptions::new().append(true).open(folder.path().join(LOG_FILE)).unwrap();
                log.write_all(b"\n-------half a hea").unwrap();
            }
            let stdout = KeptFiles::find(folder.path(), &kept).add(stdout, folder.path()).unwrap();
            assert_eq!(stdout.bytes(), whole, "{is_whole}");
            assert_eq!(fs::read(folder.path().join(SECTIONS)).unwrap(), list, "{is_whole}");
        }
    }

    #[test]
    fn what_is_too_much_or_no_file_is_left_out_and_named() {
        let folder = stage(&[("a", b"12345"), ("b", b"123456"), ("c", b"1"), ("d", b"1"), ("e", b"1")]);
        symlink("/", folder.path().join("f")).unwrap();
        symlink("gone", folder.path().join("g")).unwrap();
        symlink("c", folder.path().join("h")).unwrap();
        let kept = KeptFiles::within(folder.path(), &globs(&["*"]), (3, 10));
        assert_eq!(kept.paths(), ["a", "c", "d"].map(PathBuf::from));
        insta::assert_snapshot!(kept.warnings.join("\n"), @"
        f is not kept: it is neither a file nor a link to one
        g is not kept: No such file or directory (os error 2)
        3 file(s) are not kept: a check may keep 3 files of 0 MiB together
        ");
        insta::assert_snapshot!(kept.left_out.join("\n"), @"
        b (beyond the limit)
        e (beyond the limit)
        f (it is neither a file nor a link to one)
        g (No such file or directory (os error 2))
        h (beyond the limit)
        ");
    }

    #[test]
    fn names_of_musters_own_files_are_theirs_in_the_stage_folder_alone() {
        let folder = stage(&[("sub/pods.json", b"{}")]);
        let kept = KeptFiles::find(folder.path(), &globs(&["**"]));
        assert_eq!(kept.paths(), [PathBuf::from("sub/pods.json")]);
    }
}

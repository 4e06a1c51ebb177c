//! Putting the sections of a log together in one file, without room for the log twice.
//!
//! ```text
//! .rfm_spool.0   framing, log                 rfm_job.out.part  (the first section's spool under another name)
//! .rfm_spool.1   framing, log  --its end-->      framing, log, hole ........ <- its place; then the spool is cut off
//! .rfm_spool.steps   what goes where; there until rfm_job.out and pods.json are whole
//! ```
//! Every section has a place, so the log can be moved from its end in small pieces, and a piece is on disk twice only until its spool is cut off.
//! That needs nothing of the file system but files with holes. If a process is killed in between, another one finishes the work:
//! the steps are on disk before the first of them, and how long a spool is says how far it was moved.
//!
//! All functions here block.

use muster_core::job::{
    stage_folder::{LOG_FILE, SECTIONS, UNFINISHED_LOG, UNFINISHED_SECTIONS},
    stdout::Section,
};
use muster_host::files;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::FileExt,
    path::Path,
};

/// What is to be done.
const STEPS: &str = ".rfm_spool.steps";
/// The least and the most that is moved at once.
const PIECE: (u64, u64) = (64 * 1024, 4 * 1024 * 1024);
/// And this part of the whole.
const SHARE: u64 = 20;

/// What becomes one file, and how.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Steps {
    /// The file that has the beginning in its place already; `None`: none has.
    pub(crate) base: Option<String>,
    /// The length of the whole.
    pub(crate) len: u64,
    pub(crate) moves: Vec<Move>,
    /// The text between the logs, and where it is.
    pub(crate) frames: Vec<(u64, String)>,
    /// What will be in `pods.json`.
    pub(crate) sections: Vec<Section>,
}

/// A part of a file in the stage folder, at whose end it is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Move {
    pub(crate) file: String,
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) to: u64,
}

impl Steps {
    /// Writes down what is to be done if it takes long, and does it. `moved` is called for each piece while it is on disk twice.
    pub(crate) fn run(&self, stage: &Path, moved: &mut dyn FnMut()) -> io::Result<()> {
        if self.base.is_none() {
            files::create(&stage.join(UNFINISHED_LOG))?;
        }
        if self.moves.is_empty() {
            return self.finish(stage, moved);
        }
        let aside = stage.join(UNFINISHED_SECTIONS);
        files::write(&aside, serde_json::to_vec(self)?)?;
        fs::rename(aside, stage.join(STEPS))?;
        self.finish(stage, moved)
    }

    /// Does what is not done yet.
    fn finish(&self, stage: &Path, moved: &mut dyn FnMut()) -> io::Result<()> {
        let (unfinished, stdout) = (stage.join(UNFINISHED_LOG), stage.join(LOG_FILE));
        if let Some(whole) = self.started(stage, &unfinished, &stdout)? {
            whole.set_len(self.len)?;
            let piece = (self.len / SHARE).clamp(PIECE.0, PIECE.1);
            for part in &self.moves {
                part.run(stage, &whole, piece, moved)?;
            }
            for (at, text) in &self.frames {
                whole.write_all_at(text.as_bytes(), *at)?;
            }
            fs::rename(&unfinished, &stdout)?;
        }
        let aside = stage.join(UNFINISHED_SECTIONS);
        files::write(&aside, serde_json::to_vec_pretty(&self.sections)?)?;
        fs::rename(aside, stage.join(SECTIONS))?;
        for part in &self.moves {
            remove(&stage.join(&part.file))?;
        }
        if self.moves.is_empty() { Ok(()) } else { remove(&stage.join(STEPS)) }
    }

    /// The file to be filled; `None`: that was done, and it has its final name.
    fn started(&self, stage: &Path, unfinished: &Path, stdout: &Path) -> io::Result<Option<File>> {
        if let Some(base) = &self.base
            && stage.join(base).exists()
        {
            fs::rename(stage.join(base), unfinished)?;
        }
        match OpenOptions::new().read(true).write(true).open(unfinished) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && stdout.exists() => Ok(None),
            opened => opened.map(Some),
        }
    }
}

impl Move {
    fn run(&self, stage: &Path, whole: &File, piece: u64, moved: &mut dyn FnMut()) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(stage.join(&self.file))?;
        let mut left = file.metadata()?.len().saturating_sub(self.start).min(self.len);
        let mut buffer = vec![0; usize::try_from(piece.min(left)).unwrap_or(0)];
        while left > 0 {
            let size = piece.min(left);
            left -= size;
            let buffer = &mut buffer[..usize::try_from(size).unwrap_or(0)];
            file.read_exact_at(buffer, self.start + left)?;
            whole.write_all_at(buffer, self.to + left)?;
            moved();
            file.set_len(self.start + left)?;
        }
        Ok(())
    }
}

/// Finishes an assembly that an earlier process started. `false`: there is none.
pub(crate) fn resume(stage: &Path) -> io::Result<bool> {
    let mut text = Vec::new();
    match File::open(stage.join(STEPS)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        steps => steps?.read_to_end(&mut text)?,
    };
    let steps: Steps = serde_json::from_slice(&text)?;
    steps.finish(stage, &mut || {}).map(|()| true)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

//! The views of the rules: the logs, or the kept files that a rule's `file` fits.

use super::words::list;
use crate::{job::stdout::Stdout, result::Phase, rules::Rules};
use muster_text::glob::Globs;

/// Maximum number of kept files named in a sentence.
const NAMED: usize = 10;

/// The logs, and one view for each glob.
#[derive(Debug)]
pub(super) struct Views {
    logs: Stdout,
    files: Vec<View>,
}

#[derive(Debug)]
struct View {
    glob: String,
    stdout: Stdout,
    /// Why there is nothing to search.
    no_files: Option<String>,
}

impl Views {
    /// The views that some rules need. A glob that a placeholder made may be none.
    pub(super) fn new(rules: &Rules, stdout: &Stdout) -> Result<Self, (Phase, String)> {
        let of_sanity = rules.sanity.iter().filter_map(|item| item.file.as_deref()).map(|glob| (Phase::Sanity, glob));
        let variables = rules.perf_variables.iter().filter_map(|variable| variable.file.as_deref());
        let mut files: Vec<View> = Vec::new();
        for (phase, glob) in of_sanity.chain(variables.map(|glob| (Phase::Performance, glob))) {
            if files.iter().any(|view| view.glob == glob) {
                continue;
            }
            let globs = Globs::compile(&[glob]).map_err(|error| (phase, format!("`file`: {error}")))?;
            let view = stdout.of_files(&globs);
            let no_files = view.sections().is_empty().then(|| no_file_matches(glob, stdout));
            files.push(View { glob: glob.to_owned(), stdout: view, no_files });
        }
        Ok(Self { logs: stdout.clone(), files })
    }

    /// The place of a rule's view among [`Views::texts`].
    pub(super) fn place(&self, file: Option<&str>) -> usize {
        file.and_then(|glob| self.files.iter().position(|view| view.glob == glob)).map_or(0, |at| at + 1)
    }

    /// All texts, the logs first.
    pub(super) fn texts(&self) -> impl Iterator<Item = &Stdout> {
        std::iter::once(&self.logs).chain(self.files.iter().map(|view| &view.stdout))
    }

    /// The text that a rule searches.
    pub(super) fn of(&self, file: Option<&str>) -> &Stdout {
        self.view(file).map_or(&self.logs, |view| &view.stdout)
    }

    /// Why a rule has nothing to search.
    pub(super) fn no_files(&self, file: Option<&str>) -> Option<&str> {
        self.view(file)?.no_files.as_deref()
    }

    fn view(&self, file: Option<&str>) -> Option<&View> {
        self.files.iter().find(|view| Some(view.glob.as_str()) == file)
    }
}

/// No file matches the glob: names the files that exist.
fn no_file_matches(glob: &str, stdout: &Stdout) -> String {
    let files = stdout.files();
    let text = files.iter().flat_map(|files| &files.sections).map(|section| section.origin.title());
    let kept: Vec<String> = text.chain(files.iter().flat_map(|files| files.unread.iter().cloned())).collect();
    if kept.is_empty() {
        return format!("no file fits `{glob}`: none was kept");
    }
    format!("no text file fits `{glob}`: kept were {}", list(&kept, ", ", NAMED))
}

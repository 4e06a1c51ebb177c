//! The files of a job: `sourcesdir`, the folder that is copied into the stage folder before the script runs, `keep_files`, and
//! the `file` that an item searches.
//!
//! ReFrame's rules for `sourcesdir`: relative to the file that mentions it, `src` beside the check if the key is missing and the folder exists, null
//! for none. Whether a folder is there is asked while the files are loaded; what is in it is the runner's.

use crate::files::{
    check_file::{self, CheckFile},
    load::Manifests,
};
use muster_core::job::{
    descriptor::{Files, NamedScheduler},
    workload::Staging,
};
use muster_text::{
    decode::Spanned,
    diagnostic::{Diagnostic, Span},
    glob::{self, Globs},
    yaml::Node,
};
use std::time::Duration;

/// The folder that is staged by default.
pub const DEFAULT_FOLDER: &str = "src";

/// The folders that a check mentions, in its body and under `when`.
pub(crate) fn mentioned(check: &Node) -> impl Iterator<Item = (&str, Span)> {
    check_file::texts(check, "sourcesdir").filter(|(folder, _)| !folder.is_empty() && !is_repository(folder))
}

fn is_repository(text: &str) -> bool {
    text.contains("://") || text.starts_with("git@")
}

/// What is wrong with the keys as such.
pub(crate) fn check(file: &CheckFile, diagnostics: &mut Vec<Diagnostic>) {
    if let Some(folder) = file.sourcesdir.as_ref().filter(|folder| is_repository(folder)) {
        let hint = "clone it in `prerun_cmds`, or in a fixture that its users share";
        diagnostics.push(Diagnostic::error(folder.span, "`sourcesdir` is a folder, not a repository").hint(hint));
    }
    let readonly = file.readonly_files.iter().flat_map(|globs| globs.iter());
    for glob in readonly.chain(kept(file)).chain(searched(file)) {
        if let Err(error) = Globs::compile(&[&glob.value]) {
            diagnostics.push(Diagnostic::error(glob.span, error.to_string()).hint(error.hint()));
        }
    }
}

/// Where a check is staged from.
pub(crate) struct Origin<'a> {
    /// The check's file, as the user would type it.
    pub path: &'a str,
    pub scheduler: NamedScheduler,
    pub known: &'a Manifests,
    /// `stage_limit`
    pub limit: Option<Duration>,
}

/// What is staged for a case. The keys are `file`'s, their places `tree`'s.
pub(crate) fn of(origin: &Origin<'_>, tree: &Node, file: &CheckFile, diagnostics: &mut Vec<Diagnostic>) -> Option<Staging> {
    let globs: Vec<_> = file.readonly_files.iter().flat_map(|globs| globs.iter()).collect();
    let readonly_files = || globs.iter().map(|glob| glob.value.clone()).collect();
    let folder = match (tree.get("sourcesdir"), &file.sourcesdir) {
        (Some(_), Some(folder)) if folder.is_empty() || is_repository(folder) => return None,
        (Some(_), Some(folder)) => Some(origin.known.beside(folder.span.file, folder)),
        (None, _) => origin.known.default_folder(origin.path),
        (Some(_), None) => None,
    };
    let files = match origin.scheduler.files {
        // What lies beside a check by chance, as what its image is built from, is not sent.
        Files::SentWithImage(_) if file.image.is_some() && file.sourcesdir.is_some() => Files::Sent,
        Files::SentWithImage(instead) => Files::Elsewhere(instead),
        files => files,
    };
    match (files, folder) {
        (Files::Shared | Files::Sent, Some(folder)) => {
            Some(Staging { folder: folder.into(), readonly_files: readonly_files(), limit: origin.limit })
        }
        (Files::Shared | Files::Sent, None) => {
            if let Some(glob) = globs.first() {
                let hint = "name the folder under `sourcesdir`, or leave `readonly_files` out";
                let message = "`readonly_files` are files of `sourcesdir`, and there is none";
                diagnostics.push(Diagnostic::error(glob.span, message).hint(hint));
            }
            None
        }
        (Files::Unused, _) => None,
        (Files::Elsewhere(instead) | Files::SentWithImage(instead), _) => {
            if let Some(folder) = &file.sourcesdir {
                let scheduler = origin.scheduler;
                let message =
                    format!("`sourcesdir` cannot be staged on `{scheduler}`, which shares no file system with the harness");
                let hint = format!("{instead}; `sourcesdir: null` under `when` leaves it out there");
                diagnostics.push(Diagnostic::error(folder.span, message).hint(hint));
            }
            None
        }
    }
}

/// The globs of items and variables that search files.
fn searched(file: &CheckFile) -> impl Iterator<Item = &Spanned<String>> {
    let items = file.sanity.iter().flatten().filter_map(|item| item.file.as_ref());
    let entries = file.perf_variables.iter().flat_map(|entries| entries.iter());
    items.chain(entries.filter_map(|(_, entry)| entry.file.as_ref()))
}

fn kept(file: &CheckFile) -> impl Iterator<Item = &Spanned<String>> {
    file.keep_files.iter().flat_map(|globs| globs.iter())
}

/// What a case keeps. What its items search must be among it, as far as a glob shows that.
pub(crate) fn kept_files(file: &CheckFile, diagnostics: &mut Vec<Diagnostic>) -> Vec<String> {
    let keep_files: Vec<String> = kept(file).map(|glob| glob.value.clone()).collect();
    // An invalid glob is reported already.
    let Ok(globs) = Globs::compile(&keep_files) else { return keep_files };
    for glob in searched(file) {
        let (message, hint) = if keep_files.is_empty() {
            let message = "`file` searches kept files, and this check keeps none".to_owned();
            (message, format!("write `keep_files: [\"{}\"]`", glob.value))
        } else if glob::is_literal(glob) && !globs.cover(glob::plain(glob)) {
            let message = format!("`{}` is not among the kept files: {}", glob.value, keep_files.join(", "));
            (message, format!("add `{}` to `keep_files`", glob.value))
        } else {
            continue;
        };
        diagnostics.push(Diagnostic::error(glob.span, message).hint(hint));
    }
    keep_files
}

/// Reports `keep_files` where the files of a job cannot be reached.
pub(crate) fn check_kept(scheduler: NamedScheduler, file: &CheckFile, diagnostics: &mut Vec<Diagnostic>) {
    if scheduler.has_files_of_jobs() {
        return;
    }
    if let Some(first) = kept(file).next() {
        let message = format!("`keep_files` cannot be fetched from `{scheduler}`, which shares no file system with the harness");
        let hint = "print the files in `postrun_cmds` and search the output; `keep_files: null` under `when` leaves it out there";
        diagnostics.push(Diagnostic::error(first.span, message).hint(hint));
    }
}

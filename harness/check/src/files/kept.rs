//! `keep_files` and `file`: what is wrong with them before anything runs.

use crate::files::{check_file::CheckFile, staging};
use muster_core::job::scheduler_kind::SchedulerKind;
use muster_text::{
    decode::Spanned,
    diagnostic::Diagnostic,
    glob::{self, Globs},
};

/// The globs of items and variables that search files.
fn searched(file: &CheckFile) -> impl Iterator<Item = &Spanned<String>> {
    let items = file.sanity.iter().flatten().filter_map(|item| item.file.as_ref());
    let entries = file.perf_variables.iter().flat_map(|entries| entries.iter());
    items.chain(entries.filter_map(|(_, entry)| entry.file.as_ref()))
}

fn kept(file: &CheckFile) -> impl Iterator<Item = &Spanned<String>> {
    file.keep_files.iter().flat_map(|globs| globs.iter())
}

/// What is wrong with the keys as such.
pub(crate) fn check(file: &CheckFile, diagnostics: &mut Vec<Diagnostic>) {
    staging::check_globs(kept(file).chain(searched(file)), diagnostics);
}

/// What a case keeps. What its items search must be among it, as far as a glob shows that.
pub(crate) fn rules(file: &CheckFile, diagnostics: &mut Vec<Diagnostic>) -> Vec<String> {
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
pub(crate) fn check_place(kind: SchedulerKind, file: &CheckFile, diagnostics: &mut Vec<Diagnostic>) {
    if kind.shares_files() {
        return;
    }
    if let Some(first) = kept(file).next() {
        let message = format!("`keep_files` cannot be fetched from `{kind}`, which shares no file system with the harness");
        let hint = "print the files in `postrun_cmds` and search the output; `keep_files: null` under `when` leaves it out there";
        diagnostics.push(Diagnostic::error(first.span, message).hint(hint));
    }
}

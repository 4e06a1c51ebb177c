//! The files that Muster writes into a stage folder.

use std::ffi::OsStr;

pub const SCRIPT_FILE: &str = "rfm_job.sh";
/// The log's name in the stage folder: standard output and standard error in order of arrival.
pub const LOG_FILE: &str = "rfm_job.out";
/// The name of the file beside the script that holds its exit status.
pub const EXIT_FILE: &str = "rfm_job.exit";
/// The line of sh that writes it, unless a scheduler has one of its own.
pub const KEEP_STATUS: &str = "echo \"$rfm_status\" > rfm_job.exit\n";
/// The line of sh after which a scheduler may put commands of its own: the process that runs the check's part passes over them.
pub const OUTER: &str = "if [ \"$1\" != rfm_part ]; then\n";
/// The name of the file beside the script that says why its program did not start. It does not exist if the program started.
pub const FAULT_FILE: &str = "rfm_job.fault";
/// The exit status in that case.
pub const FAULT_STATUS: i32 = 1;
/// The list of sections beside the stdout.
pub const SECTIONS: &str = "pods.json";
/// The list while it is written: what has the final name is whole.
pub const UNFINISHED_SECTIONS: &str = "pods.json.part";
/// The stdout while it is put together: what has the final name is whole.
pub const UNFINISHED_LOG: &str = "rfm_job.out.part";
/// The log of one section while it arrives; its number follows.
pub const SPOOL: &str = ".rfm_spool.";
/// The files that a pass keeps, beside those of `keep_files`.
pub const KEPT: [&str; 4] = [SCRIPT_FILE, LOG_FILE, EXIT_FILE, SECTIONS];

/// Returns whether a file is part of a log that was not put together.
pub fn is_unfinished(name: &OsStr) -> bool {
    name == UNFINISHED_LOG || name == UNFINISHED_SECTIONS || name.as_encoded_bytes().starts_with(SPOOL.as_bytes())
}

/// Returns whether Muster writes a file of this name into a stage folder.
pub fn is_ours(name: &OsStr) -> bool {
    // Schedulers have files of their own beside the script.
    is_unfinished(name) || name.as_encoded_bytes().starts_with(b"rfm_job.") || KEPT.iter().any(|kept| name == *kept)
}

/// Reads the content of `rfm_job.exit`; `None` while it is not completely written.
pub fn read_status(content: &str) -> Option<i32> {
    content.strip_suffix('\n')?.parse().ok()
}

//! Reads what Slurm has written at the end of a job's log, which state and status do not say. It counts only if the last line is
//! Slurm's: later output shows that the script went on, and that its status has another cause.

use muster_core::job::stage_folder::LOG_FILE;
use muster_host::files as host_files;
use std::{
    io::{Read, Seek, SeekFrom},
    path::Path,
};

/// So much of the log is looked at.
const MOST: u64 = 16 << 10;

/// What is found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LogTail {
    /// The length of the log, in bytes.
    pub bytes: u64,
    /// Slurm says that it has ended the job, or a step of it, and no task has failed before.
    pub was_ended: bool,
    pub over_memory: Option<OverMemory>,
    /// A program that srun has not started, with why: `nosuch: No such file or directory`.
    pub not_started: Option<String>,
    pub first_failed: Option<FailedTask>,
}

/// Slurm ended a job that used too much memory. Without cgroups its state does not say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverMemory {
    /// The memory that the job used, in bytes.
    pub used: u64,
    pub allowed: u64,
}

/// The task with which the last step began to fail. srun ends the others then, and its own status is theirs: that of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedTask {
    /// `task 1 on n1: Exited with exit code 7`
    pub what: String,
    /// The exit status as a shell has it.
    pub status: i32,
    /// The statuses of the tasks that srun has ended.
    pub others: Vec<i32>,
}

impl LogTail {
    /// Nothing, where there is no log.
    pub(crate) fn read(stage: &Path) -> Self {
        let tail = || {
            let mut file = host_files::open_regular(&stage.join(LOG_FILE)).ok()?;
            let size = file.metadata().ok()?.len();
            file.seek(SeekFrom::Start(size.saturating_sub(MOST))).ok()?;
            let mut tail = Vec::new();
            file.take(MOST).read_to_end(&mut tail).ok()?;
            Some(Self { bytes: size, ..Self::of(&String::from_utf8_lossy(&tail)) })
        };
        tail().unwrap_or_default()
    }

    fn of(tail: &str) -> Self {
        let lines: Vec<&str> = tail.lines().collect();
        let first_failed = FailedTask::of(&lines);
        // Whatever the program has printed when it was told to end.
        let was_ended = first_failed.is_none() && lines.iter().any(|line| is_cancelled(line));
        // The program's last line may have no end.
        if !lines.last().is_some_and(|last| last.contains("srun: ") || last.contains("slurmstepd")) {
            return Self { was_ended, ..Self::default() };
        }
        let not_started = |line: &&str| {
            let (head, what) = line.split_once("error: execve(): ")?;
            head.contains("slurmstepd").then(|| what.trim_end().to_owned())
        };
        Self {
            bytes: 0,
            was_ended,
            over_memory: lines.iter().rev().find_map(|line| OverMemory::parse(line)),
            not_started: lines.iter().rev().find_map(not_started),
            first_failed,
        }
    }
}

/// `slurmstepd-n1: error: *** JOB 12 ON n1 CANCELLED AT 2026-11-25T11:34:32 DUE TO PREEMPTION ***`
fn is_cancelled(line: &str) -> bool {
    let words = line.split_once("slurmstepd").and_then(|(_, rest)| rest.split_once("error: *** "));
    words.is_some_and(|(_, what)| (what.starts_with("JOB ") || what.starts_with("STEP ")) && what.contains(" CANCELLED AT "))
}

impl OverMemory {
    /// `slurmstepd-n1: error: StepId=1.batch exceeded memory limit (487809024 > 52428800), being killed`
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" exceeded memory limit (")?;
        let (numbers, end) = after.split_once(')')?;
        let (used, allowed) = numbers.split_once(" > ")?;
        let is_slurms = before.contains("slurmstepd") && end == ", being killed";
        is_slurms.then_some(Self { used: used.parse().ok()?, allowed: allowed.parse().ok()? })
    }
}

impl FailedTask {
    /// The last report of a task before srun ends its step.
    fn of(lines: &[&str]) -> Option<Self> {
        let end = lines.iter().rposition(|line| line.contains("srun: ") && line.contains("Terminating StepId="))?;
        let (what, status) = lines[..end].iter().rev().find_map(|line| Self::parse(line))?;
        let others = lines[end..].iter().filter_map(|line| Self::parse(line)).map(|(_, status)| status).collect();
        Some(Self { what, status, others })
    }

    /// `srun: error: n1: task 1: Exited with exit code 7`, `srun: error: n1: tasks 0,2: Segmentation fault (core dumped)`
    fn parse(line: &str) -> Option<(String, i32)> {
        let (_, report) = line.split_once("srun: error: ")?;
        let mut parts = report.splitn(3, ": ");
        let (node, task, how) = (parts.next()?, parts.next()?, parts.next()?.trim_end());
        if !task.starts_with("task") {
            return None;
        }
        let signals = [
            ("Segmentation fault", 11),
            ("Aborted", 6),
            ("Bus error", 7),
            ("Floating point exception", 8),
            ("Illegal instruction", 4),
            ("Killed", 9),
            ("Terminated", 15),
        ];
        let status = match how.strip_prefix("Exited with exit code ") {
            Some(status) => status.parse().ok()?,
            None => signals.iter().find(|(word, _)| how.starts_with(word)).map(|(_, signal)| 128 + signal)?,
        };
        Some((format!("{task} on {node}: {how}"), status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_that_failed_first_is_found() {
        let end = "\nsrun: launch/slurm: _step_signal: Terminating StepId=1.0\nslurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 1 ***\nsrun: error: n1: tasks 0,2: Terminated\n";
        let rows = [
            ("srun: error: n1: task 1: Exited with exit code 7", Some(("task 1 on n1: Exited with exit code 7", 7))),
            (
                "srun: error: n1: task 1: Segmentation fault (core dumped)",
                Some(("task 1 on n1: Segmentation fault (core dumped)", 139)),
            ),
            ("no end of line srun: error: n2: tasks 4,6: Aborted", Some(("tasks 4,6 on n2: Aborted", 134))),
            ("srun: error: n1: task 1: Out Of Memory", None),
            ("srun: error: Unable to create step", None),
            ("all is well", None),
        ];
        for (line, expected) in rows {
            let found = LogTail::of(&format!("hello\n{line}{end}")).first_failed;
            assert_eq!(found.as_ref().map(|task| (task.what.as_str(), task.status)), expected, "{line}");
        }
        let last = LogTail::of(&format!("srun: error: n1: task 1: Exited with exit code 7{end}")).first_failed;
        assert_eq!(last.map(|task| task.others), Some(vec![143]));
        let shell =
            format!("srun: error: n1: task 1: Exited with exit code 7{}", end.replace("srun: error", "Terminated\nsrun: error"));
        assert!(LogTail::of(&shell).first_failed.is_some(), "the shells of the others say how they end");
        let went_on = LogTail::of(&format!("srun: error: n1: task 1: Exited with exit code 7{end}cleaning up\n"));
        assert_eq!(went_on.first_failed, None, "the status is not that of the step");
        // Of several steps the last that was ended.
        let two =
            format!("srun: error: n1: task 0: Exited with exit code 3{end}srun: error: n3: task 5: Exited with exit code 9{end}");
        assert_eq!(LogTail::of(&two).first_failed.map(|task| task.status), Some(9));
        // Of a step that no one ended, srun has the status.
        assert_eq!(LogTail::of("srun: error: n1: task 1: Exited with exit code 7\n").first_failed, None);
    }

    #[test]
    fn a_log_says_that_slurm_has_ended_the_job() {
        let job = "slurmstepd-n1: error: *** JOB 1 ON n1 CANCELLED AT 2026-11-25T11:34:32 DUE TO PREEMPTION ***";
        let step = "slurmstepd-n2: error: *** STEP 3.0 ON n2 CANCELLED AT 2026-11-25T11:34:37 ***";
        let failed = "srun: error: n1: task 1: Exited with exit code 7\nsrun: launch/slurm: _step_signal: Terminating StepId=1.0";
        let rows = [
            (format!("at work\n{job}\n"), true),
            (format!("no end of line {step}\nthe program cleans up\n"), true),
            ("*** JOB 1 ON n1 CANCELLED AT 2026-11-25T11:34:32 ***\n".to_owned(), false),
            ("slurmstepd: error: *** JOB 7 ON n1 FAILED (non-zero exit code or other failure mode) ***\n".to_owned(), false),
            // srun has ended the other tasks, for one had failed.
            (format!("{failed}\n{step}\nsrun: error: n1: task 0: Terminated\n"), false),
        ];
        for (text, expected) in rows {
            assert_eq!(LogTail::of(&text).was_ended, expected, "{text}");
        }
    }

    #[test]
    fn a_log_says_that_memory_was_over() {
        let rows = [
            (
                "slurmstepd-n1: error: StepId=1.batch exceeded memory limit (487809024 > 52428800), being killed",
                Some((487_809_024, 52_428_800)),
            ),
            ("slurmstepd: error: StepId=7.0 exceeded memory limit (2 > 1), being killed", Some((2, 1))),
            ("my test: a job exceeded memory limit (2 > 1), being killed", None),
            ("slurmstepd: error: StepId=7.0 exceeded memory limit (a > 1), being killed", None),
            ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED ***", None),
        ];
        for (line, expected) in rows {
            let found = |text: &str| LogTail::of(text).over_memory.map(|over| (over.used, over.allowed));
            assert_eq!(found(&format!("hello\n{line}\nsrun: error: n1: task 0: Killed\n")), expected, "{line}");
            assert_eq!(found(&format!("{line}\nthe next step\n")), None, "{line}");
        }
    }

    #[test]
    fn a_log_says_what_srun_has_not_started() {
        let rows = [
            (
                "slurmstepd-n1: error: execve(): nosuch: No such file or directory\nsrun: error: n1: tasks 0-1: Exited with exit code 2",
                Some("nosuch: No such file or directory"),
            ),
            ("slurmstepd-n1: error: execve(): a: No such file\nsrun: error: n1: task 0: Exited with exit code 2\nok", None),
            ("error: execve(): a: No such file\nsrun: error: n1: task 0: Exited with exit code 2", None),
        ];
        for (text, expected) in rows {
            assert_eq!(LogTail::of(text).not_started.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_pipe_in_the_place_of_a_log_is_not_waited_for() {
        let stage = tempfile::tempdir().unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, stage.path().join(LOG_FILE), rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(LogTail::read(stage.path()), LogTail::default());
    }
}

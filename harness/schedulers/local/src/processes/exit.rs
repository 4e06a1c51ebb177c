//! The end of a process, in the trait's terms and in a sentence.

use muster_core::job::scheduler::{Ending, Exit, SectionExit, Signal};
use muster_host::process::Process;
use muster_text::time::Timestamp;
use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

/// The end of a job that is one section on one host.
pub(crate) fn ending(host: &str, started: Timestamp, ended: Timestamp, exit: Exit, cause: Option<String>) -> Ending {
    let exits = vec![SectionExit { section: host.to_owned(), node: Some(host.to_owned()), exit, ..SectionExit::default() }];
    Ending { started, ended: ended.max(started), exits, cause: cause.or_else(|| explain(exit)), ..Ending::default() }
}

/// The exit of the job's shell.
pub(crate) fn of_status(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

/// What a status usually means, where a number alone says too little. A shell reports a command that a signal ended as
/// 128 + the signal, which looks like a command that exited with this number: hence "usually".
fn explain(exit: Exit) -> Option<String> {
    match exit {
        Exit::Code(code) => {
            let is_signal = || Signal::of_status(code).map(|signal| format!("usually {signal}"));
            exit.of_shell().map(str::to_owned).or_else(is_signal)
        }
        Exit::Signal(signal) => Some(format!("{} ended the shell of the job", Signal(signal))),
        Exit::NoSuccess | Exit::Unknown => None,
    }
}

/// The line that names processes which could not be ended, and the command that tries again.
pub(crate) fn leftover(identifier: &impl std::fmt::Display, host: &str, processes: &[Process]) -> String {
    let pids = processes.iter().map(|process| process.pid.to_string()).collect::<Vec<_>>().join(" ");
    format!("processes of job {identifier} on {host} that do not end: kill -KILL {pids}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_needs_a_sentence_has_one() {
        let rows = [
            (Exit::Code(0), None),
            (Exit::Code(1), None),
            (Exit::Code(127), Some("usually a command that was not found")),
            (Exit::Code(137), Some("usually signal 9 (SIGKILL)")),
            (Exit::Code(139), Some("usually signal 11 (SIGSEGV)")),
            (Exit::Code(255), None),
            (Exit::Signal(9), Some("signal 9 (SIGKILL) ended the shell of the job")),
            (Exit::Signal(64), Some("signal 64 ended the shell of the job")),
            (Exit::Unknown, None),
        ];
        for (exit, sentence) in rows {
            assert_eq!(explain(exit).as_deref(), sentence, "{exit:?}");
        }
    }
}

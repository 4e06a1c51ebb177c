//! Marks: `RFM_ID` and `RFM_SESSION` in the environment of everything that a local job starts.
//!
//! Pids alone miss a daemon that left its session, the child of a leader that died, and a job whose harness was killed
//! before it wrote the pid down. Children inherit the mark, so one look at all environments finds them. The look takes
//! a millisecond or two and more on a busy machine: once a session and for jobs found again, never for each case.
//!
//! [`scan`] reads; the rest is functions of what it read.

use muster_core::case::{Identifier, SessionId};
use muster_host::process::{self, Process};
use std::collections::HashSet;

/// The variable that holds the job's identifier.
pub(crate) const RFM_ID: &str = "RFM_ID";
/// The variable that holds the session.
pub(crate) const RFM_SESSION: &str = "RFM_SESSION";

/// Whose a process is, by its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) identifier: Identifier,
    pub(crate) session: SessionId,
}

/// A process that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Living {
    pub(crate) process: Process,
    pub(crate) group: i32,
    /// `None`: it has none, or hides its environment, or belongs to another user.
    pub(crate) mark: Option<Mark>,
}

/// Everything that lives, but this process and the job in which it may itself be running: a check may run Muster, and
/// that inner Muster must not end the outer's jobs, itself among them.
pub(crate) fn scan() -> Vec<Living> {
    let this = Process::this();
    let above = std::env::var(RFM_ID).ok();
    let living = process::all().into_iter().filter_map(|pid| {
        let stat = process::stat(pid).filter(process::Stat::lives)?;
        let mark = mark_of(&process::environ(pid));
        Some(Living { process: Process { pid, start_time: stat.start_time }, group: stat.group, mark })
    });
    living
        .filter(|one| {
            one.process != this && one.mark.as_ref().is_none_or(|mark| Some(mark.identifier.as_str()) != above.as_deref())
        })
        .collect()
}

/// Reads the mark from an environment block.
fn mark_of(environ: &[u8]) -> Option<Mark> {
    let value = |name: &str| {
        let mut entries = environ.split(|&b| b == 0);
        let entry = entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        String::from_utf8(entry.to_vec()).ok()
    };
    Some(Mark { identifier: Identifier::parse(&value(RFM_ID)?)?, session: SessionId(value(RFM_SESSION)?) })
}

/// The processes of one job: by mark, and by process group if the group is proven ours. A group is ours while its
/// leader is the one we started, or carries the mark; or while a marked process is in the group we started, for a
/// group's number is not given away as long as it has a member.
pub(crate) fn of_job(living: &[Living], identifier: &Identifier, leader: Option<Process>) -> Vec<Process> {
    let marked = |one: &Living| one.mark.as_ref().is_some_and(|mark| mark.identifier == *identifier);
    let proves = |one: &Living| {
        let is_leader = one.process.pid == one.group && (marked(one) || leader == Some(one.process));
        is_leader || leader.is_some_and(|leader| leader.pid == one.group && marked(one))
    };
    let groups: HashSet<i32> = living.iter().filter(|one| proves(one)).map(|one| one.group).collect();
    living.iter().filter(|one| marked(one) || groups.contains(&one.group)).map(|one| one.process).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 100;

    fn identifier(letter: u8) -> Identifier {
        Identifier::from_letters([letter; 8])
    }

    fn living(pid: i32, group: i32, owner: Option<u8>) -> Living {
        let mark = owner.map(|letter| Mark { identifier: identifier(letter), session: SessionId("s".into()) });
        Living { process: Process { pid, start_time: START }, group, mark }
    }

    fn pids(processes: &[Process]) -> Vec<i32> {
        processes.iter().map(|process| process.pid).collect()
    }

    #[test]
    fn a_mark_needs_both_variables_and_an_identifier_of_ours() {
        let rows: [(&[u8], bool); 6] = [
            (b"PATH=/bin\0RFM_ID=abcdefgh\0RFM_SESSION=s1\0", true),
            (b"RFM_SESSION=s1\0RFM_ID=abcdefgh", true),
            (b"RFM_ID=abcdefgh\0", false),
            (b"RFM_ID=whatever else\0RFM_SESSION=s1\0", false),
            (b"XRFM_ID=abcdefgh\0RFM_SESSION=s1\0", false),
            (b"", false),
        ];
        for (environ, marked) in rows {
            assert_eq!(mark_of(environ).is_some(), marked, "{}", String::from_utf8_lossy(environ));
        }
    }

    #[test]
    fn a_job_is_what_carries_its_mark_and_what_is_in_a_group_proven_ours() {
        let everything = [
            living(10, 10, Some(0)), // the leader
            living(11, 10, Some(0)), // its child
            living(12, 10, None),    // its child with a hidden environment
            living(13, 13, Some(0)), // a daemon in a group of its own
            living(14, 13, None),    // and what that started
            living(20, 20, Some(1)), // another job
            living(30, 30, None),    // another program
        ];
        let found = of_job(&everything, &identifier(0), Some(Process { pid: 10, start_time: START }));
        assert_eq!(pids(&found), [10, 11, 12, 13, 14]);
        assert_eq!(pids(&of_job(&everything, &identifier(0), None)), [10, 11, 12, 13, 14]);
        assert_eq!(pids(&of_job(&everything, &identifier(1), None)), [20]);
    }

    #[test]
    fn the_group_of_a_dead_leader_is_ours_only_while_a_marked_process_is_in_it() {
        let leader = Some(Process { pid: 10, start_time: START - 1 });
        let proven = [living(11, 10, Some(0)), living(12, 10, None)];
        assert_eq!(pids(&of_job(&proven, &identifier(0), leader)), [11, 12]);
        let recycled = [living(10, 10, None), living(12, 10, None)];
        assert_eq!(pids(&of_job(&recycled, &identifier(0), leader)), Vec::<i32>::new());
    }

    #[test]
    fn a_leader_that_hides_its_environment_is_known_by_its_start_time() {
        let everything = [living(10, 10, None), living(11, 10, None)];
        let leader = Some(Process { pid: 10, start_time: START });
        assert_eq!(pids(&of_job(&everything, &identifier(0), leader)), [10, 11]);
    }
}

//! What sessions that are gone left running on this machine: for `muster sweep`, and once at the end of a session.
//!
//! ```text
//! jobs in the store --\
//!                      find(alive) -> Found ... -> end -> Swept: what was ended, what is left
//! marks in /proc -----/
//! ```
//! Whether a session is alive is the caller's to say: it has the leases. A mark may name a session that its store has
//! never heard of, for another store or another user's; "alive" is the careful answer for those.

use crate::{
    cleanup::{self, Target},
    plan::LocalHandle,
    processes::mark,
};
use muster_core::{
    case::{Identifier, SessionId},
    job::{
        scheduler::Job,
        scheduler_kind::SchedulerKind,
        stage_folder::{EXIT_FILE, read_status},
    },
};
use muster_host::process::{self, Machine, Process, Reach};
use std::{collections::BTreeMap, fs};

/// A job of an abandoned session that still has processes here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub identifier: Identifier,
    /// The abandoned session.
    pub session: SessionId,
    /// The case's name, if the store knows the job.
    pub case: Option<String>,
    /// What lives, oldest pid first.
    pub processes: Vec<Process>,
    /// The command line of each, for people.
    pub commands: Vec<String>,
    leader: Option<Process>,
}

/// What became of a job that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    pub found: Found,
    /// What of it could not be ended.
    pub left: Vec<Process>,
}

/// Everything on this machine of sessions that are not alive. `stored` are the jobs that the store knows, of any
/// scheduler, host and age. Blocking: reads `/proc`.
pub fn find<'a>(stored: impl IntoIterator<Item = &'a Job>, alive: impl Fn(&SessionId) -> bool) -> Vec<Found> {
    let here = Machine::here();
    let living = mark::scan();
    let marks = living.iter().filter_map(|one| one.mark.clone());
    let mut known: BTreeMap<Identifier, (SessionId, Option<String>, Option<Process>)> =
        marks.map(|mark| (mark.identifier, (mark.session, None, None))).collect();
    for job in stored.into_iter().filter(|job| job.scheduler == SchedulerKind::Local) {
        let Ok(handle) = LocalHandle::of(job) else { continue };
        if handle.machine.seen_from(&here) == Reach::Here {
            known.insert(job.identifier.clone(), (job.session.clone(), Some(job.case.clone()), handle.leader));
        }
    }
    let found = known.into_iter().filter(|(_, (session, ..))| !alive(session)).map(|(identifier, (session, case, leader))| {
        let mut processes = mark::of_job(&living, &identifier, leader);
        processes.sort_unstable();
        let commands = processes.iter().map(|process| process::command(process.pid)).collect();
        Found { identifier, session, case, processes, commands, leader }
    });
    found.filter(|found| !found.processes.is_empty()).collect()
}

/// Whether everything that a job may have left would have been found: it ran here, or on this machine before it was booted again.
pub fn is_seen(job: &Job) -> bool {
    let reach = LocalHandle::of(job).map(|handle| handle.machine.seen_from(&Machine::here()));
    matches!(reach, Ok(Reach::Here | Reach::RebootedSince))
}

/// Whether a job has ended by itself, whatever it has left running. Blocking.
pub fn has_ended(job: &Job) -> bool {
    fs::read_to_string(job.stage.join(EXIT_FILE)).is_ok_and(|content| read_status(&content).is_some())
}

/// Ends all of it: TERM, two seconds, KILL.
pub async fn end(found: Vec<Found>) -> Vec<Swept> {
    let targets: Vec<Target> =
        found.iter().map(|found| Target { identifier: found.identifier.clone(), leader: found.leader }).collect();
    let left = cleanup::end(&targets).await;
    found.into_iter().zip(left).map(|(found, left)| Swept { found, left }).collect()
}

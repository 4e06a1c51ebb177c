//! Jobs on this machine with a mark of ours, for `muster sweep`; at the end of a session, what its jobs have left running.
//!
//! ```text
//! jobs of the scope --\
//!                      look -> Found: a job whose processes `cleanup` ends
//! marks in /proc -----/
//! ```
//! A mark may name a session that no database here has heard of: another user's, or another database's. The caller decides.

use crate::{
    LocalScheduler, SCHEDULER,
    cleanup::{self, Target},
    plan::LocalHandle,
    processes::{exit, mark},
};
use muster_core::{
    case::SessionId,
    job::{
        handle::JobHandle,
        inventory::{Found, Inventory, JobId, Removed},
        scheduler::Job,
        stage_folder::{EXIT_FILE, read_status},
    },
};
use muster_host::process::{self, Machine, Process, Reach};
use muster_stage::blocking;
use std::{collections::BTreeMap, fs, path::PathBuf};

impl LocalScheduler {
    /// A daemon that started a session of its own outlives its job. It still carries the mark of the job, and would slow down
    /// the next one, or the users.
    pub(crate) async fn end_daemons(&self, session: &SessionId) -> Vec<Removed> {
        let (here, session) = (self.here.clone(), session.clone());
        let found = blocking(move || look(&[], &here)).await.found;
        let found: Vec<Found> = found.into_iter().filter(|found| found.job.session == session).collect();
        if found.is_empty() {
            return Vec::new();
        }
        let target = |found: &Found| Target { identifier: found.job.identifier.clone(), leader: None };
        let left = cleanup::end(&found.iter().map(target).collect::<Vec<_>>()).await;
        let line = |found: &Found, left: &[Process]| exit::leftover(&found.job.identifier, &self.here.host, left);
        let removed = |(found, left): (Found, Vec<Process>)| Removed {
            left: if left.is_empty() { Vec::new() } else { vec![line(&found, &left)] },
            found,
        };
        found.into_iter().zip(left).map(removed).collect()
    }
}

/// Everything on this machine, of whichever session. Blocking: reads `/proc`.
pub(crate) fn look(stored: &[Job], here: &Machine) -> Inventory {
    let living = mark::scan();
    let marks = living.iter().filter_map(|one| one.mark.clone());
    let mut jobs: BTreeMap<_, Job> = marks.map(|mark| (mark.identifier.clone(), unknown(mark, here))).collect();
    let mut absent: Vec<JobId> = Vec::new();
    for job in stored {
        match LocalHandle::of(job).map(|handle| handle.machine.seen_from(here)) {
            Ok(Reach::Here) => {
                absent.push(job.id());
                jobs.insert(job.identifier.clone(), job.clone());
            }
            Ok(Reach::RebootedSince) => absent.push(job.id()),
            Ok(Reach::OtherHost | Reach::OtherNamespace) | Err(_) => {}
        }
    }
    let found: Vec<Found> = jobs.into_values().filter_map(|job| found(job, &living)).collect();
    let is_found = |id: &JobId| found.iter().any(|found| found.job.id() == *id);
    let absent = absent.into_iter().filter(|id| !is_found(id)).collect();
    Inventory { found, absent, ..Inventory::default() }
}

/// What lives of a job, oldest pid first; `None`: nothing.
fn found(job: Job, living: &[mark::Living]) -> Option<Found> {
    let leader = LocalHandle::of(&job).ok().and_then(|handle| handle.leader);
    let mut processes = mark::of_job(living, &job.identifier, leader);
    processes.sort_unstable();
    let pids: Vec<String> = processes.iter().map(|process| process.pid.to_string()).collect();
    let commands: Vec<String> = processes.iter().map(|process| process::command(process.pid)).collect();
    let has_ended = fs::read_to_string(job.stage.join(EXIT_FILE)).is_ok_and(|content| read_status(&content).is_some());
    let what = format!("process {} ({})", pids.join(", "), commands.join("; "));
    (!processes.is_empty()).then(|| Found { job, what, cost: None, kept: None, place: String::new(), has_ended })
}

/// A job of which only the mark is known.
fn unknown(mark: mark::Mark, here: &Machine) -> Job {
    let mark::Mark { identifier, session } = mark;
    let handle = LocalHandle {
        script: String::new(),
        staging: None,
        pass_env: Vec::new(),
        machine: here.clone(),
        leader: None,
        started: None,
    };
    let case = "a job that no database knows".to_owned();
    Job {
        identifier,
        session,
        case,
        scheduler: SCHEDULER.own_name().into(),
        stage: PathBuf::new(),
        handle: JobHandle::of(handle),
    }
}

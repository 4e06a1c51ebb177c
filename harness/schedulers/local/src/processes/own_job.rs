//! A job that this harness started: its child, watched until the last of its group is gone.
//!
//! ```text
//!             spawned            the leader exits          group killed, leader reaped
//! Launching ----------> Running ------------------> (a zombie holds the group's number) ----------> Ended
//!     \ no room, or an error                             ^ waits out the grace of a stop, if there is one
//!      `-----------------------> Failed
//! ```
//! Between the leader's exit and its reaping the number of the group cannot be given away: that is when the rest of the
//! group is killed. One task for each job does this, whether or not a caller waits, so that no zombie stays and every
//! `wait` can be dropped.

use super::exit;
use muster_core::job::scheduler::{Ending, Exit};
use muster_host::{
    clock,
    process::{self, Process, Stat},
};
use muster_stage::blocking;
use muster_text::time::Timestamp;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid};
use std::{process::Child, sync::Arc, time::Duration};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::{Instant, sleep, timeout},
};

/// Between TERM and KILL.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// After KILL, for the kernel to take away what hangs in an I/O.
pub(crate) const KILL_WAIT: Duration = Duration::from_secs(10);
/// How often `/proc` is asked where no event shows a change.
pub(crate) const POLL: Duration = Duration::from_millis(25);

/// How far a job is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum State {
    Launching,
    Failed,
    Running { leader: Process, since: Timestamp },
    Ended { leader: Process, ending: Arc<Ending> },
}

/// A job that runs.
pub(crate) struct Spawned {
    pub(crate) child: Child,
    pub(crate) leader: Process,
    pub(crate) started: Timestamp,
}

/// One job of this harness.
#[derive(Debug)]
pub(crate) struct OwnJob {
    host: Arc<str>,
    state: watch::Sender<State>,
    /// Until it is reaped: only so long is its number its own.
    child: Mutex<Option<Child>>,
    /// Set by a stop: until then, what TERM reached may finish.
    grace_until: Mutex<Option<Instant>>,
}

impl OwnJob {
    pub(crate) fn new(host: Arc<str>) -> Self {
        Self { host, state: watch::Sender::new(State::Launching), child: Mutex::new(None), grace_until: Mutex::new(None) }
    }

    /// The state, and every later one.
    pub(crate) fn subscribe(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// The launch came to nothing.
    pub(crate) fn fail(&self) {
        self.state.send_replace(State::Failed);
    }

    /// The launch succeeded: watches the child until it has ended. Needs a runtime around it.
    pub(crate) fn begin(self: Arc<Self>, spawned: Spawned) {
        let Spawned { child, leader, started } = spawned;
        *self.child.lock() = Some(child);
        self.state.send_replace(State::Running { leader, since: started });
        tokio::spawn(self.watch(leader, started));
    }

    async fn watch(self: Arc<Self>, leader: Process, started: Timestamp) {
        let Some(group) = Pid::from_raw(leader.pid) else { return self.fail() };
        exited(group).await;
        let ended = clock::now();
        while self.grace_until.lock().is_some_and(|until| Instant::now() < until) && has_others(leader).await {
            sleep(POLL).await;
        }
        let exit = {
            let mut child = self.child.lock();
            let _ = kill_process_group(group, Signal::KILL);
            let status = child.take().and_then(|mut child| child.wait().ok());
            status.map_or(Exit::Unknown, exit::of_status)
        };
        emptied(group).await;
        let ending = Arc::new(exit::ending(&self.host, started, ended, exit, None));
        self.state.send_replace(State::Ended { leader, ending });
    }

    /// TERM, the grace, KILL. Says whether everything is gone.
    pub(crate) async fn stop(&self) -> bool {
        self.grace_until.lock().get_or_insert_with(|| Instant::now() + GRACE);
        self.signal(Signal::TERM);
        // A stopped process (it touched the terminal, say) sees TERM only when it goes on.
        self.signal(Signal::CONT);
        if timeout(GRACE, self.over()).await.is_ok() {
            return true;
        }
        self.signal(Signal::KILL);
        timeout(KILL_WAIT, self.over()).await.is_ok()
    }

    /// Until it has ended, or was never launched.
    async fn over(&self) {
        let is_over = |state: &State| matches!(state, State::Ended { .. } | State::Failed);
        // The sender is ours: the channel cannot close.
        let _ = self.subscribe().wait_for(is_over).await;
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.lock();
        let pid = child.as_ref().and_then(|child| Pid::from_raw(i32::try_from(child.id()).unwrap_or_default()));
        if let Some(group) = pid {
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Until our child `pid` is a zombie. It is not reaped here.
async fn exited(pid: Pid) {
    #[cfg(target_os = "linux")]
    if wait_pidfd(pid).await {
        return;
    }
    wait_sigchld(pid).await;
}

/// The same without a pidfd: an old kernel, a container that forbids it, another Unix. Every end of a child wakes every
/// job that waits.
async fn wait_sigchld(pid: Pid) {
    let mut children = signal(SignalKind::child()).ok();
    while let Ok(None) = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG) {
        match &mut children {
            Some(children) => drop(children.recv().await),
            None => sleep(POLL).await,
        }
    }
}

/// Until the process has exited; `false` if there are no pidfds here.
#[cfg(target_os = "linux")]
pub(crate) async fn wait_pidfd(pid: Pid) -> bool {
    use rustix::process::{PidfdFlags, pidfd_open};
    use tokio::io::{Interest, unix::AsyncFd};
    let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    #[expect(deprecated, reason = "its successor is unsafe; what that asks for, an OwnedFd that AsyncFd owns gives")]
    let Ok(fd) = AsyncFd::with_interest(fd, Interest::READABLE) else { return false };
    fd.readable().await.is_ok()
}

/// Whether a process other than the leader is left in its group.
async fn has_others(leader: Process) -> bool {
    let lives_in_group = move |stat: Stat| stat.lives() && stat.group == leader.pid;
    let look = move || process::all().into_iter().any(|pid| pid != leader.pid && process::stat(pid).is_some_and(lives_in_group));
    blocking(look).await
}

/// Until the killed group has no member: then no process writes the log. Not for ever: where no process reaps orphans
/// (a container without an init) their zombies keep the group.
async fn emptied(group: Pid) {
    for pause in [1, 2, 4, 8, 16, 32].map(Duration::from_millis) {
        if test_kill_process_group(group).is_err() {
            return;
        }
        // Orphans come to us if we are that container's first process.
        while let Ok(Some(_)) = waitid(WaitId::Pgid(Some(group)), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {}
        sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[tokio::test]
    async fn the_end_of_a_child_is_seen_with_and_without_a_pidfd() {
        for with_pidfd in [true, false] {
            let mut child = Command::new("sleep").arg("0.2").spawn().unwrap();
            let pid = Pid::from_child(&child);
            let waiting = async {
                if with_pidfd {
                    exited(pid).await;
                } else {
                    wait_sigchld(pid).await;
                }
            };
            timeout(Duration::from_secs(5), waiting).await.unwrap();
            // Neither reaps: the zombie is still there to hold the number of its group.
            assert!(child.try_wait().unwrap().is_some_and(|status| status.success()), "pidfd: {with_pidfd}");
        }
    }
}

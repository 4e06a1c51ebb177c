//! Facts about processes and the machine they run on: the only module that reads `/proc`.
//!
//! A pid alone does not identify a process for long: it is reused. With the start time, the boot and the pid namespace it names one
//! process for ever, and nothing here is signalled by less than that. Where there is no `/proc` (macOS, BSD) `ps` is
//! asked instead, at the price of a process for each question, and marks in environments cannot be read.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "other.rs"]
mod platform;
// What it reads is text: its tests need no such system.
#[cfg(test)]
#[cfg(target_os = "linux")]
#[allow(dead_code, unreachable_pub)]
mod other;

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

pub use platform::{all, command, environ, stat};

/// One process of one boot of one machine, as long as that boot lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Process {
    pub pid: i32,
    /// The start of the process, in the operating system's own unit: only good for comparing.
    pub start_time: u64,
}

/// The state of a process, as the operating system gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// `R`, `S`, `D`, `Z` ...
    pub state: u8,
    pub group: i32,
    /// See [`Process::start_time`].
    pub start_time: u64,
}

impl Stat {
    /// Returns whether the process still does something; a zombie only waits to be reaped.
    pub fn lives(&self) -> bool {
        !matches!(self.state, b'Z' | b'X')
    }
}

impl Process {
    /// This process.
    pub fn this() -> Self {
        Self::of(rustix::process::getpid().as_raw_pid())
    }

    /// The process that has this number now. The caller knows that it exists, as a parent knows of its child.
    pub fn of(pid: i32) -> Self {
        Self { pid, start_time: stat(pid).map_or(0, |stat| stat.start_time) }
    }

    /// Returns whether the process runs: neither gone, nor a zombie, nor a later process with its number.
    pub fn lives(self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.lives() && stat.start_time == self.start_time)
    }

    /// Returns [`Self::lives`], or `None` if the process may be hidden from us: `/proc` with `hidepid` hides those of other users.
    pub fn runs(self) -> Option<bool> {
        if self.lives() {
            return Some(true);
        }
        let is_hidden = stat(self.pid).is_none()
            && Pid::from_raw(self.pid).is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::PERM));
        (!is_hidden).then_some(false)
    }

    /// Signals it, and never a later process with its number. What is gone is fine.
    pub fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.pid > 1) else { return };
        // The descriptor is opened first: if the start time is still right then, it is the right process.
        #[cfg(target_os = "linux")]
        if let Ok(fd) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            if self.lives() {
                let _ = rustix::process::pidfd_send_signal(&fd, signal);
            }
            return;
        }
        if self.lives() {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// The scope of a pid: a boot of a machine, and a pid namespace of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name, for people: two containers of one machine may have two.
    pub host: String,
    pub boot_id: String,
    /// The pid namespace of that boot.
    pub pid_namespace: String,
    /// The installation, where the operating system numbers them: two machines may have one name.
    #[serde(default)]
    pub machine_id: String,
}

/// A machine in relation to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Its pids are ours.
    Here,
    /// This machine, booted again since: none of its processes lives.
    RebootedSince,
    /// Another container of this boot: its pids are not ours.
    OtherNamespace,
    /// Somewhere else.
    OtherHost,
}

impl Machine {
    pub fn here() -> Self {
        Self {
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            boot_id: platform::boot_id(),
            pid_namespace: platform::pid_namespace(),
            machine_id: platform::machine_id(),
        }
    }

    /// `self` as seen from `here`. A boot's id is unique; a host's name may change while it runs, and several machines may have it.
    pub fn seen_from(&self, here: &Self) -> Reach {
        let is_same_namespace = self.pid_namespace == here.pid_namespace;
        let is_same_machine = self.host == here.host && self.machine_id == here.machine_id;
        match (self.boot_id == here.boot_id, is_same_machine) {
            (true, _) if is_same_namespace => Reach::Here,
            (true, _) => Reach::OtherNamespace,
            // Only the machine's first namespace has the same number after each boot: what ran in a container may run elsewhere.
            (false, true) if is_same_namespace => Reach::RebootedSince,
            (false, _) => Reach::OtherHost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_known_by_its_boot_and_its_namespace() {
        let machine = |host: &str, boot: &str, namespace: &str| Machine {
            host: host.into(),
            boot_id: boot.into(),
            pid_namespace: namespace.into(),
            machine_id: "m1".into(),
        };
        let here = machine("a", "b1", "n1");
        let rows = [
            (machine("a", "b1", "n1"), Reach::Here),
            (machine("renamed", "b1", "n1"), Reach::Here),
            (machine("a", "b1", "n2"), Reach::OtherNamespace),
            (machine("a", "b0", "n1"), Reach::RebootedSince),
            (machine("other", "b9", "n1"), Reach::OtherHost),
            // Containers, or machines, that have one name.
            (machine("a", "b9", "n2"), Reach::OtherHost),
            (Machine { machine_id: "m2".into(), ..machine("a", "b9", "n1") }, Reach::OtherHost),
        ];
        for (there, reach) in rows {
            assert_eq!(there.seen_from(&here), reach, "{there:?}");
        }
    }

    #[test]
    fn this_process_lives_and_its_number_with_another_start_time_does_not() {
        let this = Process::this();
        assert!(this.lives());
        assert!(!Process { start_time: this.start_time + 1, ..this }.lives());
    }
}

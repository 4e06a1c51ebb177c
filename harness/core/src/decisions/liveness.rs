//! Decides whether the owner of a session is alive: for `attach`, `sweep`, `--restore-session`, `--resume` and `results`.
//!
//! ```text
//! process     proof, but only where its number is valid: same boot, same PID namespace, same start time
//! Leases      their age by the clock of the API server; if it sends no dates, they are watched from here
//! heartbeat   a counter in the database: its age by the clock of the server; a file has no clock, and is watched from here
//! ```
//! An owner without permission to renew its Lease, or without a connection to the server, is still alive. If its heartbeat can
//! be read, an expired Lease, or an expired age, only counts once the heartbeat has missed a beat, too.
//! Clocks of other machines and host names do not count. The caller reads, watches and waits.

use crate::{job::inventory::Lease, result::SessionState};
use std::time::Duration;

/// The interval of an owner's heartbeat, and the silence after which it counts as gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatTiming {
    pub interval: Duration,
    /// An owner that is silent for longer is gone. Three heartbeats in a row may be lost.
    pub limit: Duration,
}

impl Default for HeartbeatTiming {
    fn default() -> Self {
        Self::with_limit(Duration::from_mins(8))
    }
}

impl HeartbeatTiming {
    /// Four heartbeats within the limit.
    pub fn with_limit(limit: Duration) -> Self {
        Self { interval: limit / 4, limit }
    }
}

/// Something that an owner changes regularly: a Lease, or the counter in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// An owner that does not change it for longer is gone.
    pub limit: Duration,
    /// Time since the last change by the clock of its server; `None`: the server sends no dates.
    pub age: Option<Duration>,
    /// The time for which it has been watched from here.
    pub watched: Duration,
    /// It has changed since then.
    pub changed: bool,
}

impl Heartbeat {
    /// The heartbeat of a Lease, to one who saw it as `first` so long ago.
    pub fn of(lease: &Lease, first: &Lease, watched: Duration) -> Self {
        Self { limit: lease.limit, age: lease.age, watched, changed: lease.version != first.version }
    }

    /// How much longer to watch before a beat counts as missed; `None`: one was missed.
    fn next_beat(&self) -> Option<Duration> {
        let HeartbeatTiming { interval, .. } = HeartbeatTiming::with_limit(self.limit);
        // A quarter more for a beat that comes late.
        (interval + interval / 4).checked_sub(self.watched).filter(|left| !left.is_zero())
    }

    /// How much longer it may be silent; `None`: it has expired.
    fn left(&self) -> Option<Duration> {
        let silent = self.age.unwrap_or(self.watched);
        // Dates have whole seconds: an age equal to the limit may be a little less.
        let is_over = if self.age.is_some() { silent > self.limit } else { silent >= self.limit };
        (!is_over).then(|| self.limit.saturating_sub(silent))
    }
}

/// The facts that are known of the owner of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Its process runs; `None`: its number is not valid here.
    pub process: Option<bool>,
    /// The Leases that can be read.
    pub leases: Vec<Heartbeat>,
    /// The counter in the database.
    pub heartbeat: Option<Heartbeat>,
}

/// The state of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerState {
    Alive,
    /// Its process is gone, or it has been silent for too long.
    Gone,
    /// No heartbeat yet, and no proof.
    Silent {
        /// It is gone if it stays silent for this time.
        left: Duration,
        last: LastHeartbeat,
    },
    /// There is nothing to watch.
    Unknown,
}

impl OwnerState {
    /// The state in which its session is shown. Who takes a session over waits until that is certain.
    pub fn shown(self) -> SessionState {
        match self {
            Self::Alive | Self::Silent { last: LastHeartbeat::Recent, .. } => SessionState::Running,
            Self::Gone | Self::Silent { last: LastHeartbeat::Expired, .. } => SessionState::Interrupted,
            Self::Silent { last: LastHeartbeat::Undated, .. } | Self::Unknown => SessionState::Unknown,
        }
    }
}

/// The last heartbeat by the clock of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LastHeartbeat {
    /// No server dates it.
    Undated,
    /// Older than the limit.
    Expired,
    /// Within the limit.
    Recent,
}

/// Decides. Leases come before the heartbeat, because their server has a clock. One fresh Lease of several is enough: a
/// session may be cut off from one cluster and run on another.
pub fn owner_state(evidence: &Evidence) -> OwnerState {
    if let Some(runs) = evidence.process {
        return if runs { OwnerState::Alive } else { OwnerState::Gone };
    }
    if evidence.leases.iter().chain(&evidence.heartbeat).any(|heartbeat| heartbeat.changed) {
        return OwnerState::Alive;
    }
    let deciding: Vec<&Heartbeat> =
        if evidence.leases.is_empty() { evidence.heartbeat.iter().collect() } else { evidence.leases.iter().collect() };
    if deciding.is_empty() {
        return OwnerState::Unknown;
    }
    let dated = |heartbeat: &Heartbeat| if heartbeat.age.is_some() { LastHeartbeat::Recent } else { LastHeartbeat::Undated };
    let silent = deciding.iter().filter_map(|heartbeat| Some((heartbeat.left()?, dated(heartbeat))));
    let longest = silent.reduce(|one, other| (one.0.max(other.0), one.1.max(other.1)));
    let beat = || evidence.heartbeat.as_ref()?.next_beat().map(|left| (left, LastHeartbeat::Expired));
    // A counter that is watched from here has had its time. After a network that was down, an owner has one beat to show itself.
    let is_watched = evidence.leases.is_empty() && evidence.heartbeat.is_some_and(|heartbeat| heartbeat.age.is_none());
    longest
        .or_else(|| if is_watched { None } else { beat() })
        .map_or(OwnerState::Gone, |(left, last)| OwnerState::Silent { left, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_mins(8);

    fn dated(age: u64) -> Heartbeat {
        Heartbeat { limit: LIMIT, age: Some(Duration::from_secs(age)), watched: Duration::ZERO, changed: false }
    }

    fn watched(seconds: u64) -> Heartbeat {
        Heartbeat { limit: LIMIT, age: None, watched: Duration::from_secs(seconds), changed: false }
    }

    #[test]
    fn an_owner_is_dead_if_its_process_ended_or_it_was_silent_for_longer_than_the_limit() {
        let changed = |heartbeat: Heartbeat| Heartbeat { changed: true, ..heartbeat };
        let silent = |left, last| OwnerState::Silent { left: Duration::from_secs(left), last };
        let (recent, undated, expired) = (LastHeartbeat::Recent, LastHeartbeat::Undated, LastHeartbeat::Expired);
        //  process, Leases, heartbeat -> life
        let rows = [
            (Some(true), vec![dated(9000)], Some(watched(9000)), OwnerState::Alive),
            // Killed a moment ago: its Lease has not expired yet.
            (Some(false), vec![dated(1)], Some(changed(watched(1))), OwnerState::Gone),
            (None, vec![dated(0)], None, silent(480, recent)),
            (None, vec![dated(480)], None, silent(0, recent)),
            (None, vec![dated(481)], None, OwnerState::Gone),
            // It may only have lost the right to renew its Lease: two minutes and a half show whether its heart beats.
            (None, vec![dated(481)], Some(watched(0)), silent(150, expired)),
            (None, vec![dated(481)], Some(watched(149)), silent(1, expired)),
            (None, vec![dated(481)], Some(watched(150)), OwnerState::Gone),
            (None, vec![dated(481)], Some(changed(watched(60))), OwnerState::Alive),
            (None, vec![dated(100), dated(481)], None, silent(380, recent)),
            (None, vec![changed(dated(3))], None, OwnerState::Alive),
            (None, vec![watched(0)], None, silent(480, undated)),
            (None, vec![watched(480)], None, OwnerState::Gone),
            (None, vec![watched(479), dated(481)], Some(watched(481)), silent(1, undated)),
            (None, vec![], Some(watched(0)), silent(480, undated)),
            (None, vec![], Some(watched(479)), silent(1, undated)),
            (None, vec![], Some(dated(100)), silent(380, recent)),
            (None, vec![], Some(dated(481)), silent(150, expired)),
            (None, vec![], Some(Heartbeat { watched: Duration::from_secs(150), ..dated(481) }), OwnerState::Gone),
            (None, vec![], Some(watched(480)), OwnerState::Gone),
            (None, vec![], Some(changed(watched(480))), OwnerState::Alive),
            (None, vec![], None, OwnerState::Unknown),
        ];
        for (process, leases, heartbeat, expected) in rows {
            let evidence = Evidence { process, leases, heartbeat };
            assert_eq!(owner_state(&evidence), expected, "{evidence:?}");
        }
    }

    #[test]
    fn a_session_is_shown_as_its_owner_was_last_seen() {
        let silent = |last| OwnerState::Silent { left: LIMIT, last };
        let rows = [
            (OwnerState::Alive, SessionState::Running),
            (silent(LastHeartbeat::Recent), SessionState::Running),
            (OwnerState::Gone, SessionState::Interrupted),
            (silent(LastHeartbeat::Expired), SessionState::Interrupted),
            (silent(LastHeartbeat::Undated), SessionState::Unknown),
            (OwnerState::Unknown, SessionState::Unknown),
        ];
        for (owner, expected) in rows {
            assert_eq!(owner.shown(), expected, "{owner:?}");
        }
    }
}

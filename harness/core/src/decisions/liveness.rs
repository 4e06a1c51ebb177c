//! Whether the process that holds a session lives: the one decision of `attach`, `sweep`, `--restore-session`, `--resume` and `results`.
//!
//! ```text
//! process     proof, but only where its number means something: same boot, same PID namespace, same start time
//! Leases      changed so long ago by the clock of the server that keeps them; where it gives no dates: watched from here
//! heartbeat   a counter in the database, which has no clock: watched from here
//! ```
//! An owner that may not renew its Lease, or cannot reach the server, lives on. Where its heartbeat can be read, a Lease that has
//! expired is believed when the heartbeat has missed a beat, too.
//! No clock of any other machine counts, and no host name. Not done here: looking, and waiting.

use std::time::Duration;

/// How often an owner shows that it lives, and after which silence it counts as dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulse {
    /// Between two signs.
    pub every: Duration,
    /// Longer than that without a sign is death: three signs may be lost.
    pub limit: Duration,
}

impl Default for Pulse {
    fn default() -> Self {
        Self::lasting(Duration::from_mins(8))
    }
}

impl Pulse {
    /// A limit, and four signs within it.
    pub fn lasting(limit: Duration) -> Self {
        Self { every: limit / 4, limit }
    }
}

/// Something that an owner changes again and again while it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sign {
    /// Longer than that without a change is death.
    pub limit: Duration,
    /// How long ago it was changed, by the clock of the server that keeps it; `None`: the server does not say.
    pub age: Option<Duration>,
    /// How long it has been watched from here.
    pub watched: Duration,
    /// It has changed meanwhile.
    pub changed: bool,
}

impl Sign {
    /// How much longer it must be watched before it has missed a beat; `None`: it has missed one.
    fn next_beat(&self) -> Option<Duration> {
        let Pulse { every, .. } = Pulse::lasting(self.limit);
        // A quarter more for a beat that comes late.
        (every + every / 4).checked_sub(self.watched).filter(|left| !left.is_zero())
    }

    /// How much longer it may be silent; `None`: it has been for too long.
    fn left(&self) -> Option<Duration> {
        let silent = self.age.unwrap_or(self.watched);
        // A date has whole seconds: what is exactly as old as the limit may be a little younger.
        let is_over = if self.age.is_some() { silent > self.limit } else { silent >= self.limit };
        (!is_over).then(|| self.limit.saturating_sub(silent))
    }
}

/// What is known of the owner of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signs {
    /// Whether its process runs; `None`: its number means nothing here.
    pub process: Option<bool>,
    /// Its Leases that can be read.
    pub leases: Vec<Sign>,
    /// Its counter in the database.
    pub heartbeat: Option<Sign>,
}

/// Whether an owner lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs, or has just shown that it does.
    Alive,
    /// It is gone, or has been silent for too long.
    Dead,
    /// No sign yet, and no proof.
    Silent {
        /// It is dead if it stays silent for so long.
        left: Duration,
        /// What the clock of a server says of its last sign.
        last: LastSign,
    },
    /// There is nothing to watch.
    Unknown,
}

/// What the clock of a server says of an owner's last sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LastSign {
    /// No server keeps one with a date.
    Undated,
    /// It is older than the limit.
    Expired,
    /// It is within the limit.
    Recent,
}

/// Decides. A Lease comes before the heartbeat: its server has a clock. Of several Leases one that is fresh is enough, for a
/// session may be cut off from one cluster and live on another.
pub fn life(signs: &Signs) -> Life {
    if let Some(runs) = signs.process {
        return if runs { Life::Alive } else { Life::Dead };
    }
    if signs.leases.iter().chain(&signs.heartbeat).any(|sign| sign.changed) {
        return Life::Alive;
    }
    let deciding: Vec<&Sign> =
        if signs.leases.is_empty() { signs.heartbeat.iter().collect() } else { signs.leases.iter().collect() };
    if deciding.is_empty() {
        return Life::Unknown;
    }
    let dated = |sign: &Sign| if sign.age.is_some() { LastSign::Recent } else { LastSign::Undated };
    let silent = deciding.iter().filter_map(|sign| Some((sign.left()?, dated(sign))));
    let longest = silent.reduce(|one, other| (one.0.max(other.0), one.1.max(other.1)));
    let beat = || signs.heartbeat.as_ref()?.next_beat().map(|left| (left, LastSign::Expired));
    longest
        .or_else(|| if signs.leases.is_empty() { None } else { beat() })
        .map_or(Life::Dead, |(left, last)| Life::Silent { left, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_mins(8);

    fn dated(age: u64) -> Sign {
        Sign { limit: LIMIT, age: Some(Duration::from_secs(age)), watched: Duration::ZERO, changed: false }
    }

    fn watched(seconds: u64) -> Sign {
        Sign { limit: LIMIT, age: None, watched: Duration::from_secs(seconds), changed: false }
    }

    #[test]
    fn an_owner_is_dead_by_proof_or_by_a_silence_that_a_clock_of_its_keeper_or_a_watch_has_measured() {
        let changed = |sign: Sign| Sign { changed: true, ..sign };
        let silent = |left, last| Life::Silent { left: Duration::from_secs(left), last };
        let (recent, undated, expired) = (LastSign::Recent, LastSign::Undated, LastSign::Expired);
        //  process, Leases, heartbeat -> life
        let rows = [
            (Some(true), vec![dated(9000)], Some(watched(9000)), Life::Alive),
            // Killed a moment ago: its Lease has not expired yet.
            (Some(false), vec![dated(1)], Some(changed(watched(1))), Life::Dead),
            (None, vec![dated(0)], None, silent(480, recent)),
            (None, vec![dated(480)], None, silent(0, recent)),
            (None, vec![dated(481)], None, Life::Dead),
            // It may only have lost the right to renew its Lease: two minutes and a half show whether its heart beats.
            (None, vec![dated(481)], Some(watched(0)), silent(150, expired)),
            (None, vec![dated(481)], Some(watched(149)), silent(1, expired)),
            (None, vec![dated(481)], Some(watched(150)), Life::Dead),
            (None, vec![dated(481)], Some(changed(watched(60))), Life::Alive),
            (None, vec![dated(100), dated(481)], None, silent(380, recent)),
            (None, vec![changed(dated(3))], None, Life::Alive),
            (None, vec![watched(0)], None, silent(480, undated)),
            (None, vec![watched(480)], None, Life::Dead),
            (None, vec![watched(479), dated(481)], Some(watched(481)), silent(1, undated)),
            (None, vec![], Some(watched(0)), silent(480, undated)),
            (None, vec![], Some(watched(479)), silent(1, undated)),
            (None, vec![], Some(watched(480)), Life::Dead),
            (None, vec![], Some(changed(watched(480))), Life::Alive),
            (None, vec![], None, Life::Unknown),
        ];
        for (process, leases, heartbeat, expected) in rows {
            let signs = Signs { process, leases, heartbeat };
            assert_eq!(life(&signs), expected, "{signs:?}");
        }
    }
}

//! How many requests were sent, by kind: the measure of how well a session treats the API server.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestKind {
    /// POST of an object.
    Create,
    /// POST with `dryRun=All`.
    DryRun,
    /// GET of one object.
    Get,
    /// GET of many, a page each.
    List,
    /// A watch, opened.
    Watch,
    /// PATCH.
    Patch,
    /// PUT.
    Replace,
    /// DELETE.
    Delete,
    /// A container's log, followed or read.
    Log,
    /// What kinds the server knows.
    Discovery,
}

impl RequestKind {
    /// All of them, in the order of the counters.
    pub const ALL: [Self; 10] = [
        Self::Create,
        Self::DryRun,
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Patch,
        Self::Replace,
        Self::Delete,
        Self::Log,
        Self::Discovery,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::DryRun => "dry-run",
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Patch => "patch",
            Self::Replace => "replace",
            Self::Delete => "delete",
            Self::Log => "log",
            Self::Discovery => "discovery",
        }
    }
}

/// One counter a kind. Retries count: the server answers them too.
#[derive(Debug, Default)]
pub(crate) struct Counters([AtomicU64; RequestKind::ALL.len()]);

/// What the counters said at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests([u64; RequestKind::ALL.len()]);

impl Counters {
    pub(super) fn count(&self, kind: RequestKind) {
        self.0[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// What was sent so far.
    pub(crate) fn read(&self) -> Requests {
        Requests(std::array::from_fn(|place| self.0[place].load(Ordering::Relaxed)))
    }
}

impl Requests {
    /// Those of one kind.
    pub fn of(&self, kind: RequestKind) -> u64 {
        self.0[kind as usize]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|place| self.0[place] + other.0[place]))
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} request(s)", self.total())?;
        let sent = RequestKind::ALL.into_iter().filter(|kind| self.of(*kind) > 0);
        for (place, kind) in sent.enumerate() {
            write!(f, "{} {} {}", if place == 0 { ":" } else { "," }, self.of(kind), kind.word())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_kind() {
        let counters = Counters::default();
        for kind in [RequestKind::Create, RequestKind::Log, RequestKind::Log, RequestKind::Discovery] {
            counters.count(kind);
        }
        let requests = counters.read();
        assert_eq!((requests.of(RequestKind::Log), requests.total()), (2, 4));
        insta::assert_snapshot!(requests, @"4 request(s): 1 create, 2 log, 1 discovery");
        insta::assert_snapshot!(Requests::default(), @"0 request(s)");
    }

    #[test]
    fn every_kind_has_its_own_counter() {
        for (place, kind) in RequestKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{kind:?}");
        }
    }
}

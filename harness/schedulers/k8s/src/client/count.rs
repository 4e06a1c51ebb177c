//! Counts the requests by kind: the measure of the load that a session puts on the API server.

use parking_lot::Mutex;
use std::{collections::BTreeMap, fmt};

/// Requests by kind: a verb, `dry-run`, `log`, `discovery` or `review`. Retries count: the server answers them too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests(BTreeMap<&'static str, u64>);

#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<Requests>);

impl Counters {
    pub(super) fn count(&self, kind: &'static str) {
        *self.0.lock().0.entry(kind).or_default() += 1;
    }

    pub(super) fn read(&self) -> Requests {
        self.0.lock().clone()
    }
}

impl Requests {
    pub fn of(&self, kind: &str) -> u64 {
        self.0.get(kind).copied().unwrap_or(0)
    }

    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (kind, count) in &other.0 {
            *self.0.entry(kind).or_default() += count;
        }
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<String> = self.0.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let separator = if kinds.is_empty() { "" } else { ": " };
        write!(f, "{} request(s){separator}{}", self.total(), kinds.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_kind() {
        let counters = Counters::default();
        assert_eq!(counters.read().to_string(), "0 request(s)");
        for kind in ["create", "list", "list"] {
            counters.count(kind);
        }
        let mut requests = counters.read();
        requests.add(&counters.read());
        assert_eq!((requests.of("list"), requests.of("watch")), (4, 0));
        assert_eq!(requests.to_string(), "6 request(s): 2 create, 4 list");
    }
}

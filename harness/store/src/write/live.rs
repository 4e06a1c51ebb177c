//! The states of cases that wait to be written: of each case the last, however often it changes before the writer comes to it.

use crate::write::message::Text;
use muster_core::{
    case::CaseName,
    live::{CaseProgress, CaseState},
    result::{About, CaseResult},
};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Describes a case that may have no row yet.
pub type Describe = Arc<dyn Fn() -> About + Send + Sync>;

/// A case of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CaseKey {
    pub(crate) session: Text,
    /// The name as displayed, with its place.
    pub(crate) case: Text,
}

/// A state that is to be written.
pub(crate) struct NewState {
    /// Who it is, if it may have no row yet.
    pub(crate) case: Option<(Arc<CaseName>, Describe)>,
    pub(crate) progress: CaseProgress,
}

/// States that wait for the next transaction.
#[derive(Default)]
pub(crate) struct States(Mutex<Queued>);

#[derive(Default)]
struct Queued {
    states: HashMap<CaseKey, NewState>,
    /// The writer knows that there are some.
    is_announced: bool,
}

impl States {
    /// Puts a state in the place of an earlier one. True if the writer must be told that there are some.
    pub(crate) fn put(&self, key: CaseKey, mut new: NewState) -> bool {
        let mut queued = self.lock();
        if let Some(old) = queued.states.remove(&key) {
            if (old.progress.attempt, old.progress.state) == (new.progress.attempt, new.progress.state) {
                new.progress.since = old.progress.since;
            }
            new.case = new.case.or(old.case);
        }
        queued.states.insert(key, new);
        !std::mem::replace(&mut queued.is_announced, true)
    }

    /// Takes some of them.
    pub(crate) fn take(&self, most: usize) -> Vec<(CaseKey, NewState)> {
        let mut queued = self.lock();
        queued.is_announced = false;
        if queued.states.len() <= most {
            return queued.states.drain().collect();
        }
        queued.states.extract_if(|_, _| true).take(most).collect()
    }

    /// Puts back what could not be written, unless it was overtaken since.
    pub(crate) fn put_back(&self, states: Vec<(CaseKey, NewState)>) {
        let mut queued = self.lock();
        for (key, state) in states {
            queued.states.entry(key).or_insert(state);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().states.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Queued> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("States").field(&self.lock().states.len()).finish()
    }
}

/// A row of `live`, but for its case and its session.
pub(crate) struct LiveRow {
    /// The number of the transaction within the session.
    pub(crate) change: i64,
    pub(crate) progress: CaseProgress,
}

impl LiveRow {
    /// A case that has its result.
    pub(crate) fn ended(result: &CaseResult, change: i64) -> Self {
        let (attempt, nodes) = (result.attempt, result.nodes.clone());
        let progress = CaseProgress { attempt, state: CaseState::Ended, since: result.times.finished, note: None, nodes };
        Self { change, progress }
    }

    /// Whether a state says nothing new: that attempt has its result.
    pub(crate) fn is_end_of(&self, progress: &CaseProgress) -> bool {
        self.progress.state == CaseState::Ended && self.progress.attempt >= progress.attempt
    }

    /// The nodes as they are stored.
    pub(crate) fn nodes(&self) -> Option<String> {
        let nodes = &self.progress.nodes;
        // A list of strings has a JSON form.
        (!nodes.is_empty()).then(|| serde_json::to_string(nodes).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_text::time::Timestamp;

    fn key(case: &str) -> CaseKey {
        CaseKey { session: "s".into(), case: case.into() }
    }

    fn state(attempt: u32, state: CaseState, since: i64) -> NewState {
        let progress = CaseProgress { attempt, state, since: Timestamp(since), ..CaseProgress::default() };
        NewState { case: None, progress }
    }

    #[test]
    fn of_a_case_the_last_state_waits_and_keeps_its_beginning() {
        use CaseState::{Pending, Running, Waiting};
        let rows = [
            ((1, Waiting, 1), (1, Pending, 5), 5),
            ((1, Pending, 1), (1, Pending, 5), 1),
            ((1, Running, 1), (1, Pending, 5), 5),
            ((1, Pending, 1), (2, Pending, 5), 5),
        ];
        for (old, new, since) in rows {
            let states = States::default();
            assert!(states.put(key("a"), state(old.0, old.1, old.2)), "the writer is told once");
            assert!(!states.put(key("a"), state(new.0, new.1, new.2)));
            let [(_, taken)] = &states.take(9)[..] else { panic!("one case has one state") };
            assert_eq!((taken.progress.state, taken.progress.since), (new.1, Timestamp(since)), "{old:?} {new:?}");
            assert!(states.is_empty());
        }
    }

    #[test]
    fn some_are_taken_and_what_fails_comes_back_unless_it_was_overtaken() {
        let states = States::default();
        for case in ["a", "b", "c"] {
            states.put(key(case), state(1, CaseState::Waiting, 1));
        }
        let taken = states.take(2);
        assert_eq!(taken.len(), 2);
        let overtaken = taken[0].0.clone();
        assert!(states.put(overtaken.clone(), state(1, CaseState::Running, 2)), "the writer is told again");
        states.put_back(taken);
        let all = states.take(9);
        assert_eq!(all.len(), 3);
        let of = |key: &CaseKey| all.iter().find(|(other, _)| other == key).map(|(_, state)| state.progress.state);
        assert_eq!(of(&overtaken), Some(CaseState::Running));
    }
}

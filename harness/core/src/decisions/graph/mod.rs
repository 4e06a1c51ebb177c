//! Dependencies between the cases of a session: which case may start, which never will, and whose last user has finished.
//!
//! ```text
//!             every need passed             result
//!   Waiting -------------------> Started ------------> Finished(completion)
//!        \ a need did not pass                            ^
//!         '-----------------------------------------------'  Finished(Skipped), and so on through its users
//! ```
//! A case only needs cases that were added before it, so the graph has no cycles. It knows neither time nor slots nor
//! schedulers: the caller decides when a case that is `Ready` starts.

use crate::result::Completion;
use std::collections::HashMap;

/// A case, by the order in which it was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CaseId(u32);

/// A change of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// All that it needs has passed: it may begin.
    Ready(CaseId),
    /// It will never begin.
    Blocked {
        case: CaseId,
        /// The case that it needs and that did not pass.
        by: CaseId,
        /// The first case of the chain that did not pass.
        root: CaseId,
    },
    /// It is over, and so is the last of those that need it, if any do.
    Unused {
        case: CaseId,
        /// It passed, and not all that needed it: who looks into that, or tries again, will want what it left.
        wanted: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Started,
    Finished(Completion),
}

#[derive(Debug)]
struct Node {
    needs: Box<[CaseId]>,
    users: Vec<CaseId>,
    state: State,
    /// How many of its needs have not passed yet.
    missing: u32,
    /// How many of its users are not over.
    open: u32,
    /// Some user did not pass.
    failed_user: bool,
    /// Its last user was reported of.
    reported: bool,
    /// Why it is blocked.
    root: Option<CaseId>,
}

/// The places of a batch's cases, each after those it needs, otherwise in their order. `needs` are places too; where they
/// go in a circle, which no plan does, one of them comes first.
pub fn needs_first(needs: &[Vec<usize>]) -> Vec<usize> {
    let (mut order, mut seen) = (Vec::with_capacity(needs.len()), vec![false; needs.len()]);
    for first in 0..needs.len() {
        // A place, and how many of its needs were looked at.
        let mut trail = if seen[first] { vec![] } else { vec![(first, 0)] };
        seen[first] = true;
        while let Some((at, next)) = trail.last_mut() {
            if let Some(&need) = needs[*at].get(*next) {
                *next += 1;
                if !std::mem::replace(&mut seen[need], true) {
                    trail.push((need, 0));
                }
            } else {
                order.push(*at);
                trail.pop();
            }
        }
    }
    order
}

/// The cases of a session that are not forgotten.
#[derive(Debug, Default)]
pub struct Graph {
    added: u32,
    nodes: HashMap<CaseId, Node>,
}

impl Graph {
    /// Adds a case that needs others, each of which was added before. It is held until `settle`.
    pub fn add(&mut self, needs: &[CaseId]) -> CaseId {
        let id = CaseId(self.added);
        self.added += 1;
        let mut needs = needs.to_vec();
        needs.sort_unstable();
        needs.dedup();
        debug_assert!(needs.iter().all(|need| *need < id), "a case needs one that was added after it");
        let mut missing = 0;
        for need in &needs {
            let node = self.node_mut(*need);
            node.users.push(id);
            node.open += 1;
            node.reported = false;
            missing += u32::from(node.state != State::Finished(Completion::Passed));
        }
        let node = Node {
            needs: needs.into(),
            users: Vec::new(),
            state: State::Waiting,
            missing,
            open: 0,
            failed_user: false,
            reported: false,
            root: None,
        };
        self.nodes.insert(id, node);
        id
    }

    /// Says of cases that were added, all of a batch, which may begin and which never will.
    pub fn resolve(&mut self, batch: &[CaseId]) -> Vec<Change> {
        let mut changes = Vec::new();
        for &case in batch {
            if self.node(case).state != State::Waiting {
                continue;
            }
            let did_not_pass = |need: &&CaseId| matches!(self.node(**need).state, State::Finished(completion) if completion != Completion::Passed);
            match self.node(case).needs.iter().find(did_not_pass).copied() {
                Some(by) => {
                    self.block(case, by, &mut changes);
                    self.end(case, Completion::Skipped, &mut changes);
                }
                None if self.node(case).missing == 0 => {
                    self.node_mut(case).state = State::Started;
                    changes.push(Change::Ready(case));
                }
                None => {}
            }
        }
        changes
    }

    /// A case is over. What was over already stays as it is.
    pub fn finish(&mut self, case: CaseId, completion: Completion) -> Vec<Change> {
        let mut changes = Vec::new();
        if !self.is_finished(case) {
            self.end(case, completion, &mut changes);
        }
        changes
    }

    /// Nothing more will begin: all that is held is over, in order.
    pub fn abort_waiting(&mut self) -> (Vec<CaseId>, Vec<Change>) {
        let is_waiting = |(case, node): (&CaseId, &Node)| (node.state == State::Waiting).then_some(*case);
        let mut waiting: Vec<CaseId> = self.nodes.iter().filter_map(is_waiting).collect();
        waiting.sort_unstable();
        for case in &waiting {
            self.node_mut(*case).state = State::Finished(Completion::Aborted);
        }
        let mut changes = Vec::new();
        for case in &waiting {
            self.release_needs(*case, Completion::Aborted, &mut changes);
            self.report_if_unused(*case, &mut changes);
        }
        (waiting, changes)
    }

    /// Returns whether another case needs this one.
    pub fn is_needed(&self, case: CaseId) -> bool {
        !self.node(case).users.is_empty()
    }

    /// Returns whether it has its completion.
    pub fn is_finished(&self, case: CaseId) -> bool {
        matches!(self.node(case).state, State::Finished(_))
    }

    /// Forgets a case that is over, and all that need it, too. Nothing that is added later may need it.
    pub fn forget(&mut self, case: CaseId) -> bool {
        let is_over = self.is_finished(case) && self.node(case).open == 0;
        is_over && self.nodes.remove(&case).is_some()
    }

    /// Ends a case, and all that can no longer begin for it. A chain may be long: no recursion.
    fn end(&mut self, case: CaseId, completion: Completion, changes: &mut Vec<Change>) {
        let mut ended = vec![(case, completion)];
        while let Some((case, completion)) = ended.pop() {
            self.node_mut(case).state = State::Finished(completion);
            for user in std::mem::take(&mut self.node_mut(case).users) {
                if self.nodes.get(&user).is_some_and(|user| user.state == State::Waiting) {
                    if completion == Completion::Passed {
                        let node = self.node_mut(user);
                        node.missing -= 1;
                        if node.missing == 0 {
                            node.state = State::Started;
                            changes.push(Change::Ready(user));
                        }
                    } else {
                        self.block(user, case, changes);
                        self.node_mut(user).state = State::Finished(Completion::Skipped);
                        ended.push((user, Completion::Skipped));
                    }
                }
                self.node_mut(case).users.push(user);
            }
            self.release_needs(case, completion, changes);
            self.report_if_unused(case, changes);
        }
    }

    fn block(&mut self, case: CaseId, by: CaseId, changes: &mut Vec<Change>) {
        let root = self.node(by).root.unwrap_or(by);
        self.node_mut(case).root = Some(root);
        changes.push(Change::Blocked { case, by, root });
    }

    /// A case has no use any more for what it needs.
    fn release_needs(&mut self, case: CaseId, completion: Completion, changes: &mut Vec<Change>) {
        for need in self.node(case).needs.clone() {
            let node = self.node_mut(need);
            node.open -= 1;
            node.failed_user |= completion != Completion::Passed;
            self.report_if_unused(need, changes);
        }
    }

    fn report_if_unused(&mut self, case: CaseId, changes: &mut Vec<Change>) {
        let node = self.node_mut(case);
        if let State::Finished(completion) = node.state
            && node.open == 0
            && !node.reported
        {
            node.reported = true;
            changes.push(Change::Unused { case, wanted: completion == Completion::Passed && node.failed_user });
        }
    }

    fn node(&self, id: CaseId) -> &Node {
        &self.nodes[&id]
    }

    #[allow(clippy::expect_used, reason = "an id stands for a node until that is forgotten, and then nobody has it")]
    fn node_mut(&mut self, id: CaseId) -> &mut Node {
        self.nodes.get_mut(&id).expect("a case that is not forgotten")
    }
}

#[cfg(test)]
mod tests;

//! Which case may begin, which never will, and whose last user is over: a graph that grows in batches.
//!
//! ```text
//!          every need passed            over
//!   Held -------------------> Begun ------------> Over(verdict)
//!     \ a need did not pass                         ^
//!      '--------------------------------------------'  Over(Skipped), and so on through its users
//! ```
//! A case may only need cases that were added before it, so there are no cycles here; those of the files are told by
//! `fixtures`. Nothing is known of time, slots or schedulers: the caller begins what is `Ready` when it likes.

use crate::result::Outcome;

/// A case, by the order in which it was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CaseId(u32);

/// How a case ended, as far as those that depend on it are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// What it was to leave is there.
    Passed,
    /// It is not, or nobody can say.
    Failed,
    /// It did not run, or was expected to fail and did.
    Skipped,
    /// The session ends.
    Aborted,
}

impl Verdict {
    /// The verdict of an outcome.
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Pass | Outcome::Stopped(_) => Self::Passed,
            // As in ReFrame: after an expected failure there is nothing to build on.
            Outcome::Skip | Outcome::Xfail => Self::Skipped,
            Outcome::Abort => Self::Aborted,
            Outcome::Xpass
            | Outcome::Fail(_)
            | Outcome::Invalid(_)
            | Outcome::Timeout(_)
            | Outcome::Disrupted(_)
            | Outcome::Error(_) => Self::Failed,
        }
    }
}

/// What has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// All that it needs has passed: it may begin.
    Ready(CaseId),
    /// It will never begin.
    Blocked {
        /// The case.
        case: CaseId,
        /// What it needs and did not pass.
        by: CaseId,
        /// Why that did not: the first of the chain.
        root: CaseId,
    },
    /// It is over, and so is the last of those that need it, if any do.
    Unused {
        /// The case.
        case: CaseId,
        /// It passed, and not all that needed it: who looks into that, or tries again, will want what it left.
        wanted: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Held,
    Begun,
    Over(Verdict),
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
    /// Its last user was told of.
    told: bool,
    /// Why it is blocked.
    root: Option<CaseId>,
}

/// The places of a batch's cases, each behind those it needs, otherwise as they stand. `needs` are places too; where they
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

/// All cases of a session.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
}

impl Graph {
    /// Adds a case that needs others, each of which was added before. It is held until `settle`.
    pub fn add(&mut self, needs: &[CaseId]) -> CaseId {
        let id = CaseId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        let mut needs = needs.to_vec();
        needs.sort_unstable();
        needs.dedup();
        debug_assert!(needs.iter().all(|need| *need < id), "a case needs one that was added after it");
        let mut missing = 0;
        for need in &needs {
            let node = self.node_mut(*need);
            node.users.push(id);
            node.open += 1;
            node.told = false;
            missing += u32::from(node.state != State::Over(Verdict::Passed));
        }
        let node = Node {
            needs: needs.into(),
            users: Vec::new(),
            state: State::Held,
            missing,
            open: 0,
            failed_user: false,
            told: false,
            root: None,
        };
        self.nodes.push(node);
        id
    }

    /// Says of cases that were added, all of a batch, which may begin and which never will.
    pub fn settle(&mut self, batch: &[CaseId]) -> Vec<News> {
        let mut news = Vec::new();
        for &case in batch {
            if self.node(case).state != State::Held {
                continue;
            }
            let spoilt = |need: &&CaseId| matches!(self.node(**need).state, State::Over(verdict) if verdict != Verdict::Passed);
            match self.node(case).needs.iter().find(spoilt).copied() {
                Some(by) => {
                    self.block(case, by, &mut news);
                    self.end(case, Verdict::Skipped, &mut news);
                }
                None if self.node(case).missing == 0 => {
                    self.node_mut(case).state = State::Begun;
                    news.push(News::Ready(case));
                }
                None => {}
            }
        }
        news
    }

    /// A case is over. What was over already stays as it is.
    pub fn over(&mut self, case: CaseId, verdict: Verdict) -> Vec<News> {
        let mut news = Vec::new();
        if !self.is_over(case) {
            self.end(case, verdict, &mut news);
        }
        news
    }

    /// Nothing more will begin: all that is held is over, in order.
    pub fn abort_held(&mut self) -> (Vec<CaseId>, Vec<News>) {
        let held: Vec<CaseId> = self.ids().filter(|case| self.node(*case).state == State::Held).collect();
        for case in &held {
            self.node_mut(*case).state = State::Over(Verdict::Aborted);
        }
        let mut news = Vec::new();
        for case in &held {
            self.release_needs(*case, Verdict::Aborted, &mut news);
            self.tell_if_unused(*case, &mut news);
        }
        (held, news)
    }

    /// Whether another case needs this one.
    pub fn is_needed(&self, case: CaseId) -> bool {
        !self.node(case).users.is_empty()
    }

    /// Whether it has its verdict.
    pub fn is_over(&self, case: CaseId) -> bool {
        matches!(self.node(case).state, State::Over(_))
    }

    /// Ends a case, and all that can no longer begin for it. A chain may be long: no recursion.
    fn end(&mut self, case: CaseId, verdict: Verdict, news: &mut Vec<News>) {
        let mut ended = vec![(case, verdict)];
        while let Some((case, verdict)) = ended.pop() {
            self.node_mut(case).state = State::Over(verdict);
            for user in std::mem::take(&mut self.node_mut(case).users) {
                if self.node(user).state == State::Held {
                    if verdict == Verdict::Passed {
                        let node = self.node_mut(user);
                        node.missing -= 1;
                        if node.missing == 0 {
                            node.state = State::Begun;
                            news.push(News::Ready(user));
                        }
                    } else {
                        self.block(user, case, news);
                        self.node_mut(user).state = State::Over(Verdict::Skipped);
                        ended.push((user, Verdict::Skipped));
                    }
                }
                self.node_mut(case).users.push(user);
            }
            self.release_needs(case, verdict, news);
            self.tell_if_unused(case, news);
        }
    }

    fn block(&mut self, case: CaseId, by: CaseId, news: &mut Vec<News>) {
        let root = self.node(by).root.unwrap_or(by);
        self.node_mut(case).root = Some(root);
        news.push(News::Blocked { case, by, root });
    }

    /// A case has no use any more for what it needs.
    fn release_needs(&mut self, case: CaseId, verdict: Verdict, news: &mut Vec<News>) {
        for need in self.node(case).needs.clone() {
            let node = self.node_mut(need);
            node.open -= 1;
            node.failed_user |= verdict != Verdict::Passed;
            self.tell_if_unused(need, news);
        }
    }

    fn tell_if_unused(&mut self, case: CaseId, news: &mut Vec<News>) {
        let node = self.node_mut(case);
        if let State::Over(verdict) = node.state
            && node.open == 0
            && !node.told
        {
            node.told = true;
            news.push(News::Unused { case, wanted: verdict == Verdict::Passed && node.failed_user });
        }
    }

    fn ids(&self) -> impl Iterator<Item = CaseId> + use<> {
        (0..u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)).map(CaseId)
    }

    fn node(&self, id: CaseId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    fn node_mut(&mut self, id: CaseId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }
}

impl CaseId {
    /// Its place in the order of additions.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests;

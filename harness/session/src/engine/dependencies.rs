//! Which case has its turn, and what the others have left for it: a thin shell over `muster_core::graph`.
//!
//! A case that must wait for others is held here, outside of all queues: it has no slot until it may begin, so that
//! `max_jobs: 1` cannot lock a session up.
//!
//! ```text
//! submit --held--> Begin (with what it is given) --> a lane
//!             \--> Skip  (something it needs did not pass)
//! over ----------> Release (the last user of something is over)
//! ```

use crate::{
    case::queued_case::{Render, Turn, Work},
    engine::teardown::Remains,
    folders,
};
use muster_core::{
    case::CaseName,
    fixture::{Given, Need},
    graph::{self, CaseId, Graph, News, Verdict},
    result::{CaseResult, Outcome},
    test_case::LaunchFacts,
};
use std::{collections::HashMap, sync::Arc};
use tokio::sync::oneshot;

/// A submitted case that has not begun.
pub(crate) struct Waiting {
    pub(crate) id: CaseId,
    pub(crate) turn: Turn,
    pub(crate) answer: oneshot::Sender<Arc<CaseResult>>,
}

/// What is to be done now.
pub(crate) enum Step {
    /// It may begin.
    Begin(Waiting),
    /// It never will.
    Skip(Waiting, Blocked),
    /// Nobody needs any more what it left.
    Release(Release),
}

/// Why a case never begins.
#[derive(Debug)]
pub(crate) struct Blocked {
    /// One sentence.
    pub(crate) cause: String,
    /// The case that did not pass, the first of the chain.
    pub(crate) root: String,
}

/// What a case has left, to be torn down.
pub(crate) struct Release {
    pub(crate) id: CaseId,
    pub(crate) result: Arc<CaseResult>,
    /// Somebody may want to look at what it left: some user did not pass.
    pub(crate) wanted: bool,
}

/// All cases of a session.
#[derive(Default)]
pub(crate) struct Order {
    graph: Graph,
    entries: Vec<Entry>,
    /// The last attempt of each.
    by_name: HashMap<Arc<CaseName>, CaseId>,
}

struct Entry {
    id: CaseId,
    name: Arc<CaseName>,
    needs: Vec<(Need, CaseId)>,
    /// The attempt before this one.
    before: Option<CaseId>,
    held: Option<Box<Waiting>>,
    result: Option<Arc<CaseResult>>,
    left: Left,
}

/// How it stands with what a case left.
enum Left {
    /// It is there, as far as there is anything.
    Standing,
    /// It is being torn down, or about to be.
    Falling,
    /// Nothing more becomes of it; what could not be torn down.
    Released(Box<Remains>),
}

impl Order {
    /// Takes cases, in any order. What one needs is among them, or was taken before.
    pub(crate) fn submit(&mut self, batch: Vec<(Turn, oneshot::Sender<Arc<CaseResult>>)>) -> Vec<Step> {
        let places: HashMap<Arc<CaseName>, usize> =
            batch.iter().enumerate().map(|(at, (turn, _))| (Arc::clone(&turn.name), at)).collect();
        let needs = |turn: &Turn| turn.needs.iter().filter_map(|need| places.get(&need.case).copied()).collect();
        let needs: Vec<Vec<usize>> = batch.iter().map(|(turn, _)| needs(turn)).collect();
        let mut batch: Vec<_> = batch.into_iter().map(Some).collect();
        let mut ids = Vec::with_capacity(batch.len());
        for at in graph::needs_first(&needs) {
            if let Some((turn, answer)) = batch[at].take() {
                ids.push(self.add(turn, answer));
            }
        }
        let news = self.graph.settle(&ids);
        self.steps(news)
    }

    /// A case that ended before this session, or in another process.
    pub(crate) fn recall(&mut self, result: Arc<CaseResult>) {
        let id = self.enter(Arc::new(result.name.clone()), Vec::new());
        let stage = result.provides.as_ref().map(|provides| &*provides.stage);
        let spoilt = stage.is_some_and(|stage| !folders::is_there(stage));
        let verdict = if spoilt { Verdict::Failed } else { Verdict::of(&result.outcome) };
        // A teardown that somebody began and did not end is done again.
        if stage.is_some_and(|stage| !stage.is_dir()) {
            self.entries[id.index()].left = Left::Released(Box::default());
        }
        self.entries[id.index()].result = Some(result);
        self.graph.over(id, verdict);
    }

    /// A case has its result.
    pub(crate) fn over(&mut self, id: CaseId, result: &Arc<CaseResult>) -> Vec<Step> {
        self.entries[id.index()].result = Some(Arc::clone(result));
        let news = self.graph.over(id, Verdict::of(&result.outcome));
        self.steps(news)
    }

    /// Whether an earlier attempt at a case failed. One that never began for want of another case did not, nor did one that
    /// passed and is gone.
    pub(crate) fn had_failed(&self, case: CaseId) -> bool {
        let entry = |id: CaseId| &self.entries[id.index()];
        let before = std::iter::successors(entry(case).before, |id| entry(*id).before);
        before.filter_map(|id| entry(id).result.as_ref()).any(|result| !result.outcome.is_fine())
    }

    /// Nothing more begins: everything that is held.
    pub(crate) fn abort(&mut self) -> (Vec<Waiting>, Vec<Step>) {
        let (held, news) = self.graph.abort_held();
        let held = held.into_iter().filter_map(|id| self.entries[id.index()].held.take()).map(|waiting| *waiting).collect();
        (held, self.steps(news))
    }

    /// What is left at the end of the session, latest first: what was built last is torn down first.
    pub(crate) fn rest(&mut self) -> Vec<Release> {
        let entries = self.entries.iter_mut().rev();
        entries.filter_map(|entry| entry.release(true)).collect()
    }

    /// What was to become of what a case left, has.
    pub(crate) fn released(&mut self, case: CaseId, remains: Remains) {
        self.entries[case.index()].left = Left::Released(Box::new(remains));
    }

    /// The cases that have left something for others and whose teardown has not ended.
    pub(crate) fn standing(&self) -> Vec<Arc<CaseResult>> {
        let entries = self.entries.iter().filter(|entry| !matches!(entry.left, Left::Released(_)));
        entries.filter_map(Entry::provider).collect()
    }

    /// The cases that have left something for others, and what could not be torn down.
    pub(crate) fn released_providers(&self) -> Vec<(Arc<CaseResult>, Remains)> {
        let remains = |entry: &Entry| match &entry.left {
            Left::Released(remains) => (**remains).clone(),
            Left::Standing | Left::Falling => Remains::default(),
        };
        self.entries.iter().filter_map(|entry| Some((entry.provider()?, remains(entry)))).collect()
    }

    fn add(&mut self, mut turn: Turn, answer: oneshot::Sender<Arc<CaseResult>>) -> CaseId {
        let needs = std::mem::take(&mut turn.needs);
        let needs = needs.into_iter().map(|need| (self.known(&need.case), need)).map(|(id, need)| (need, id)).collect();
        let id = self.enter(Arc::clone(&turn.name), needs);
        self.entries[id.index()].held = Some(Box::new(Waiting { id, turn, answer }));
        id
    }

    /// A case by its name; one that nobody has submitted counts as one that did not pass.
    fn known(&mut self, name: &Arc<CaseName>) -> CaseId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = self.enter(Arc::clone(name), Vec::new());
        self.graph.over(id, Verdict::Failed);
        id
    }

    fn enter(&mut self, name: Arc<CaseName>, needs: Vec<(Need, CaseId)>) -> CaseId {
        let ids: Vec<CaseId> = needs.iter().map(|(_, id)| *id).collect();
        let id = self.graph.add(&ids);
        let before = self.by_name.insert(Arc::clone(&name), id);
        self.entries.push(Entry { id, name, needs, before, held: None, result: None, left: Left::Standing });
        id
    }

    fn steps(&mut self, news: Vec<News>) -> Vec<Step> {
        news.into_iter().filter_map(|news| self.step(news)).collect()
    }

    fn step(&mut self, news: News) -> Option<Step> {
        match news {
            News::Ready(id) => {
                let mut waiting = *self.entries[id.index()].held.take()?;
                waiting.turn.work = given_to(self.given(id), waiting.turn.work);
                Some(Step::Begin(waiting))
            }
            News::Blocked { case, by, root } => {
                let waiting = *self.entries[case.index()].held.take()?;
                Some(Step::Skip(waiting, self.blocked(by, root)))
            }
            // Whoever looks into a failure, or tries again, wants what it was given: until the end of the session.
            News::Unused { wanted: true, .. } => None,
            News::Unused { case, wanted: false } => self.entries[case.index()].release(false).map(Step::Release),
        }
    }

    fn given(&self, id: CaseId) -> Given {
        let mut given = Given { is_needed: self.graph.is_needed(id), ..Given::default() };
        for (need, id) in &self.entries[id.index()].needs {
            let result = self.entries[id.index()].result.as_ref();
            if let Some(provides) = result.and_then(|result| result.provides.as_ref()) {
                given.add(need, provides);
            }
        }
        given
    }

    fn blocked(&self, by: CaseId, root: CaseId) -> Blocked {
        let (by, root) = (&self.entries[by.index()], &self.entries[root.index()]);
        let what = match &root.result {
            None => "is not part of this session".to_owned(),
            // It passed, and yet it cannot be counted on.
            Some(result) if Verdict::of(&result.outcome) == Verdict::Passed => "is torn down already".to_owned(),
            Some(result) if result.outcome == Outcome::Skip => {
                format!("was skipped: {}", result.cause.as_deref().unwrap_or("no cause was given"))
            }
            Some(result) => format!("ended as {}", result.outcome),
        };
        let cause = if Arc::ptr_eq(&by.name, &root.name) {
            format!("it depends on {}, which {what}", root.name)
        } else {
            format!("it depends on {}, not run because {} {what}", by.name, root.name)
        };
        Blocked { cause, root: root.name.to_string() }
    }
}

impl Entry {
    /// Its result, if it has left something for others.
    fn provider(&self) -> Option<Arc<CaseResult>> {
        self.result.clone().filter(|result| result.provides.is_some())
    }

    /// What it left, once.
    fn release(&mut self, wanted: bool) -> Option<Release> {
        let result = self.result.clone().filter(|result| result.provides.is_some() && matches!(self.left, Left::Standing))?;
        self.left = Left::Falling;
        Some(Release { id: self.id, result, wanted })
    }
}

/// The same work, that knows what the cases before it have left.
fn given_to(given: Given, work: Work) -> Work {
    if given == Given::default() {
        return work;
    }
    match work {
        Work::Fresh(render) => Work::Fresh(with(given, render)),
        Work::Anew(job, render) => Work::Anew(job, with(given, render)),
        Work::Begun { begun, render } => Work::Begun { begun, render: render.map(|render| with(given, render)) },
    }
}

fn with(given: Given, render: Render) -> Render {
    Arc::new(move |facts| render(&LaunchFacts { given: given.clone(), ..facts.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::fixture::Provides;

    #[test]
    fn what_is_left_of_a_case_is_told_once() {
        let name = CaseName {
            display: "f".into(),
            check: "f".into(),
            hash: "0".into(),
            system: "s".into(),
            partition: "p".into(),
            environ: "e".into(),
            hidden: String::new(),
        };
        let mut order = Order::default();
        let folder = tempfile::tempdir().expect("a folder");
        order.recall(Arc::new(left(&name, Provides { stage: folder.path().to_owned(), ..Provides::default() })));
        assert_eq!(order.rest().len(), 1);
        assert_eq!(order.rest().len(), 0);
        let gone = folder.path().join("gone");
        order.recall(Arc::new(left(&name, Provides { stage: gone, ..Provides::default() })));
        assert_eq!(order.rest().len(), 0, "it was torn down by somebody else");
    }

    fn left(name: &CaseName, provides: Provides) -> CaseResult {
        let about = muster_core::result::About {
            descr: String::new(),
            tags: vec![],
            maintainers: vec![],
            file: String::new(),
            parameters: vec![],
            scheduler: muster_core::scheduler_kind::SchedulerKind::Fake,
            num_tasks: 1,
            on_disruption: None,
        };
        let mut record = crate::case::record::Record::of(Arc::new(name.clone()), about, 1, muster_text::time::Timestamp(0));
        record.provides = Some(Box::new(provides));
        let end = crate::case::record::End { outcome: Outcome::Pass, phase: muster_core::result::Phase::Sanity, cause: None };
        record.close(end, muster_text::time::Timestamp(1))
    }
}

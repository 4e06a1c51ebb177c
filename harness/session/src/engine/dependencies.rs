//! Decides which case may start, and which outputs of others it gets: a thin shell over `muster_core::decisions::graph`.
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
    case::{QueuedCase, Render, Work},
    engine::teardown::TeardownReport,
    folders,
};
use muster_check::cases::test_case::LaunchFacts;
use muster_core::{
    case::CaseName,
    decisions::graph::{self, CaseId, Change, Graph},
    job::outputs::{CaseInputs, Need},
    result::{CaseResult, Completion, Outcome},
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

/// A submitted case that has not started.
pub(crate) struct Waiting {
    pub(crate) id: CaseId,
    pub(crate) queued: QueuedCase,
}

/// What is to be done now.
pub(crate) enum Action {
    /// It may begin.
    Begin(Waiting),
    /// It never will.
    Skip(Waiting, Blocked),
    /// No case needs its outputs any more.
    Release(Release),
}

/// Why a case never begins.
#[derive(Debug)]
pub(crate) struct Blocked {
    pub(crate) cause: String,
    /// The case that did not pass, the first of the chain.
    pub(crate) root: String,
}

/// What a case has left, to be torn down.
pub(crate) struct Release {
    pub(crate) id: CaseId,
    pub(crate) result: Arc<CaseResult>,
    /// A case that uses it did not pass: its files stay for the user to look at.
    pub(crate) wanted: bool,
}

/// The cases of a session. Of attempts that another one has replaced, only those of which something is left.
#[derive(Default)]
pub(crate) struct Dependencies {
    graph: Graph,
    entries: BTreeMap<CaseId, Entry>,
    /// The last attempt of each.
    by_name: HashMap<Arc<CaseName>, CaseId>,
    /// Attempts before the last one, to be forgotten.
    replaced: Vec<CaseId>,
}

struct Entry {
    id: CaseId,
    name: Arc<CaseName>,
    needs: Vec<(Need, CaseId)>,
    /// It ended before, and what it needed is not known.
    is_recalled: bool,
    /// An attempt before this one failed.
    had_failed: bool,
    held: Option<Box<Waiting>>,
    result: Option<Arc<CaseResult>>,
    outputs: OutputState,
}

/// A case that ended before this session, or in another process, and what is there of what it left.
pub(crate) struct Recalled {
    result: Arc<CaseResult>,
    /// Whether others can count on it.
    completion: Completion,
    outputs: OutputState,
}

impl Recalled {
    /// Looks at its stage folder. Blocks.
    pub(crate) fn look(result: Arc<CaseResult>, keeps_stages: bool) -> Self {
        let stage = result.outputs.as_ref().map(|outputs| &*outputs.stage);
        let stage_is_gone = stage.is_some_and(|stage| !folders::is_available(stage));
        let completion = if stage_is_gone { Completion::Failed } else { result.outcome.row().completion };
        // A teardown that did not end is done again.
        let outputs = if stage.is_some_and(|stage| !stage.is_dir()) {
            OutputState::Released(Box::new(TeardownReport::default().looked(&result, keeps_stages)))
        } else {
            OutputState::Available
        };
        Self { result, completion, outputs }
    }
}

/// What became of the outputs that a case left.
enum OutputState {
    /// It is there, as far as there is anything.
    Available,
    /// It is being torn down, or about to be.
    TearingDown,
    /// Nothing more becomes of it; what could not be torn down.
    Released(Box<TeardownReport>),
}

impl Dependencies {
    /// Takes cases, in any order. What one needs is among them, or was taken before.
    pub(crate) fn submit(&mut self, batch: Vec<QueuedCase>) -> Vec<Action> {
        let folders: HashMap<Arc<CaseName>, usize> =
            batch.iter().enumerate().map(|(at, queued)| (Arc::clone(&queued.name), at)).collect();
        let needs = |queued: &QueuedCase| queued.needs.iter().filter_map(|need| folders.get(&need.case).copied()).collect();
        let needs: Vec<Vec<usize>> = batch.iter().map(needs).collect();
        let mut batch: Vec<_> = batch.into_iter().map(Some).collect();
        let mut ids = Vec::with_capacity(batch.len());
        for at in graph::needs_first(&needs) {
            if let Some(queued) = batch[at].take() {
                ids.push(self.add(queued));
            }
        }
        let news = self.graph.resolve(&ids);
        let actions = self.actions(news);
        self.forget_replaced();
        actions
    }

    /// A case that ended before this session, or in another process.
    pub(crate) fn recall(&mut self, Recalled { result, completion, outputs }: Recalled) {
        let id = self.enter(Arc::new(result.name.clone()), Vec::new());
        let entry = self.entry(id);
        (entry.outputs, entry.result, entry.is_recalled) = (outputs, Some(result), true);
        self.graph.finish(id, completion);
    }

    /// A case has its result.
    pub(crate) fn over(&mut self, id: CaseId, result: &Arc<CaseResult>) -> Vec<Action> {
        self.entry(id).result = Some(Arc::clone(result));
        let news = self.graph.finish(id, result.outcome.row().completion);
        self.actions(news)
    }

    /// Whether an earlier attempt at a case failed. One that was skipped because of another case did not, nor did one
    /// that passed and is gone.
    pub(crate) fn had_failed(&self, case: CaseId) -> bool {
        self.entries[&case].had_failed
    }

    /// Forgets the attempts that nobody asks for any more.
    fn forget_replaced(&mut self) {
        for id in std::mem::take(&mut self.replaced) {
            let Some(entry) = self.entries.get(&id) else { continue };
            if entry.result.is_none() {
                self.replaced.push(id);
            } else if entry.nothing_is_left() && self.graph.forget(id) {
                self.entries.remove(&id);
            }
        }
    }

    /// Nothing more begins: everything that is held.
    pub(crate) fn abort(&mut self) -> (Vec<Waiting>, Vec<Action>) {
        let (held, news) = self.graph.abort_waiting();
        let held = held.into_iter().filter_map(|id| self.entry(id).held.take()).map(|waiting| *waiting).collect();
        (held, self.actions(news))
    }

    /// What is left at the end of the session, in waves: what was built last is torn down first.
    pub(crate) fn rest(&mut self) -> Vec<Vec<Release>> {
        self.waves(true, |_| true)
    }

    /// What the last attempts at some cases have left, before these run again: the next attempt takes its place, also for users to look
    /// at. Not of attempts that another process has started: it did that before, and they may run. All other cases are over.
    pub(crate) fn replaced_by(&mut self, cases: &[QueuedCase]) -> Vec<Vec<Release>> {
        let new = cases.iter().filter(|case| matches!(case.work, Work::New(_)));
        let last: HashSet<CaseId> = new.filter_map(|case| self.by_name.get(&case.name).copied()).collect();
        self.waves(false, |id| last.contains(&id))
    }

    /// What some cases have left. A wave needs nothing of the waves before it.
    fn waves(&mut self, wanted: bool, is_of_it: impl Fn(CaseId) -> bool) -> Vec<Vec<Release>> {
        let (mut waves, mut first): (Vec<Vec<Release>>, HashMap<CaseId, usize>) = (Vec::new(), HashMap::new());
        let mut first_recalled = 0;
        for entry in self.entries.values_mut().rev() {
            let wave = first.get(&entry.id).copied().unwrap_or_default();
            let wave = if entry.is_recalled { wave.max(first_recalled) } else { wave };
            let release = if is_of_it(entry.id) { entry.release(wanted) } else { None };
            let next = wave + usize::from(release.is_some());
            for (_, needed) in &entry.needs {
                let first = first.entry(*needed).or_default();
                *first = next.max(*first);
            }
            if entry.is_recalled {
                first_recalled = next;
            }
            if let Some(release) = release {
                waves.resize_with(waves.len().max(wave + 1), Vec::new);
                waves[wave].push(release);
            }
        }
        waves
    }

    /// What was to become of what a case left, has.
    pub(crate) fn released(&mut self, case: CaseId, report: TeardownReport) {
        self.entry(case).outputs = OutputState::Released(Box::new(report));
    }

    /// The cases that have left something for others and whose teardown has not ended.
    pub(crate) fn not_torn_down(&self) -> Vec<Arc<CaseResult>> {
        let entries = self.entries.values().filter(|entry| !matches!(entry.outputs, OutputState::Released(_)));
        entries.filter_map(Entry::provider).collect()
    }

    /// The cases that have left something for others, and what could not be torn down.
    pub(crate) fn released_providers(&self) -> Vec<(Arc<CaseResult>, TeardownReport)> {
        let report = |entry: &Entry| match &entry.outputs {
            OutputState::Released(report) => (**report).clone(),
            OutputState::Available | OutputState::TearingDown => TeardownReport::default(),
        };
        self.entries.values().filter_map(|entry| Some((entry.provider()?, report(entry)))).collect()
    }

    fn add(&mut self, mut queued: QueuedCase) -> CaseId {
        let needs = std::mem::take(&mut queued.needs);
        let needs = needs.into_iter().map(|need| (self.known(&need.case), need)).map(|(id, need)| (need, id)).collect();
        let id = self.enter(Arc::clone(&queued.name), needs);
        self.entry(id).held = Some(Box::new(Waiting { id, queued }));
        id
    }

    /// A case by its name; one that was not submitted counts as not passed.
    fn known(&mut self, name: &Arc<CaseName>) -> CaseId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = self.enter(Arc::clone(name), Vec::new());
        self.graph.finish(id, Completion::Failed);
        id
    }

    fn enter(&mut self, name: Arc<CaseName>, needs: Vec<(Need, CaseId)>) -> CaseId {
        let ids: Vec<CaseId> = needs.iter().map(|(_, id)| *id).collect();
        let id = self.graph.add(&ids);
        let before = self.by_name.insert(Arc::clone(&name), id);
        let failed = |entry: &Entry| entry.had_failed || entry.result.as_ref().is_some_and(|result| !result.outcome.is_fine());
        let had_failed = before.and_then(|before| self.entries.get(&before)).is_some_and(failed);
        self.replaced.extend(before);
        let outputs = OutputState::Available;
        let entry = Entry { id, name, needs, is_recalled: false, had_failed, held: None, result: None, outputs };
        self.entries.insert(id, entry);
        id
    }

    #[allow(clippy::expect_used, reason = "an id stands for an entry until that is forgotten, and then nobody has it")]
    fn entry(&mut self, id: CaseId) -> &mut Entry {
        self.entries.get_mut(&id).expect("a case that is not forgotten")
    }

    fn actions(&mut self, news: Vec<Change>) -> Vec<Action> {
        news.into_iter().filter_map(|news| self.action(news)).collect()
    }

    fn action(&mut self, news: Change) -> Option<Action> {
        match news {
            Change::Ready(id) => {
                let mut waiting = *self.entry(id).held.take()?;
                waiting.queued.work = with_inputs(self.inputs(id), waiting.queued.work);
                Some(Action::Begin(waiting))
            }
            Change::Blocked { case, by, root } => {
                let waiting = *self.entry(case).held.take()?;
                Some(Action::Skip(waiting, self.blocked(by, root)))
            }
            // Users who look into a failure, and a retry, need its inputs: they stay until the end of the session.
            Change::Unused { wanted: true, .. } => None,
            Change::Unused { case, wanted: false } => self.entry(case).release(false).map(Action::Release),
        }
    }

    fn inputs(&self, id: CaseId) -> CaseInputs {
        let mut inputs = CaseInputs { is_needed: self.graph.is_needed(id), ..CaseInputs::default() };
        for (need, id) in &self.entries[&id].needs {
            let result = self.entries[id].result.as_ref();
            if let Some(outputs) = result.and_then(|result| result.outputs.as_ref()) {
                inputs.add(need, outputs);
            }
        }
        inputs
    }

    fn blocked(&self, by: CaseId, root: CaseId) -> Blocked {
        let by = &self.entries[&by];
        let root = self.entries.get(&root).unwrap_or(by);
        let what = match &root.result {
            None => "is not part of this session".to_owned(),
            // It passed, and yet it cannot be counted on.
            Some(result) if result.outcome.row().completion == Completion::Passed => "is torn down already".to_owned(),
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
    /// Whether nothing of it is to be torn down or reported at the end.
    fn nothing_is_left(&self) -> bool {
        self.provider().is_none() || matches!(&self.outputs, OutputState::Released(report) if !report.has_leftovers)
    }

    /// Its result, if it has left something for others.
    fn provider(&self) -> Option<Arc<CaseResult>> {
        self.result.clone().filter(|result| result.outputs.is_some())
    }

    /// What it left, once.
    fn release(&mut self, wanted: bool) -> Option<Release> {
        let result =
            self.result.clone().filter(|result| result.outputs.is_some() && matches!(self.outputs, OutputState::Available))?;
        self.outputs = OutputState::TearingDown;
        Some(Release { id: self.id, result, wanted })
    }
}

/// Gives the work the outputs of the cases that it depends on.
fn with_inputs(inputs: CaseInputs, work: Work) -> Work {
    if inputs == CaseInputs::default() {
        return work;
    }
    match work {
        Work::New(render) => Work::New(with(inputs, render)),
        Work::Relaunch(job, render) => Work::Relaunch(job, with(inputs, render)),
        Work::Stored { stored, render } => Work::Stored { stored, render: render.map(|render| with(inputs, render)) },
    }
}

fn with(inputs: CaseInputs, render: Render) -> Render {
    Arc::new(move |facts| render(&LaunchFacts { inputs: inputs.clone(), ..facts.clone() }))
}

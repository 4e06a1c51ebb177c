//! A case in the queue: what the engine must know before it renders the case, or what an earlier process left of it.

use muster_check::{
    cases::test_case::{LaunchFacts, Rendered, TestCase},
    selection::adjust::Adjustments,
};
use muster_core::{
    case::CaseName,
    job::{descriptor::SchedulerName, outputs::Need, scheduler::Job, workload::Limits},
    result::{About, Purpose},
    rules::Rules,
};
use muster_text::{diagnostic::Diagnostic, time::Timestamp};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::watch;

/// Describes a case without rendering it.
pub type Describe = Arc<dyn Fn() -> About + Send + Sync>;

/// Fills in what is known at launch only. Called again if the identifier is taken.
pub type Render = Arc<dyn Fn(&LaunchFacts) -> Result<Rendered, Vec<Diagnostic>> + Send + Sync>;

/// One sentence for each case that its scheduler cannot run.
pub type Refused = BTreeMap<Arc<CaseName>, String>;

/// The cases of a batch that their scheduler cannot run, once it has said so. A question that is given up refuses nothing.
pub type Answer = watch::Receiver<Option<Arc<Refused>>>;

/// A waiting case. Ten thousand of them wait at once: it is small, and holds nothing that can be made later.
pub struct QueuedCase {
    pub name: Arc<CaseName>,
    /// The last component of its folders: the check and sixteen hex digits of the case's hash.
    pub folder: String,
    /// The scheduler that runs it.
    pub scheduler: SchedulerName,
    /// The number of cases of its partition that run at once.
    pub max_jobs: usize,
    /// 1, 2, ...
    pub attempt: u32,
    pub purpose: Purpose,
    /// The cases that must have passed before. They are submitted before it or with it, or recalled.
    pub needs: Box<[Need]>,
    /// The answer of its scheduler before it is launched; `None`: it is not asked.
    pub answer: Option<Answer>,
    /// Its description if it is never rendered.
    pub about: Describe,
    /// The work that it is to run.
    pub work: Work,
}

/// The progress of a case when it gets its slot.
pub enum Work {
    /// Nothing of it exists yet.
    New(Render),
    /// Another process planned it, and perhaps launched it, and is gone.
    Stored {
        /// The case as it was stored.
        stored: Box<StoredCase>,
        /// The function that plans it again, if its check is still there.
        render: Option<Render>,
    },
    /// Another process planned it and perhaps launched it. What exists of that job is removed before the case is rendered again.
    Relaunch(Box<Job>, Render),
}

/// A case as the store remembers it.
#[derive(Debug, Clone)]
pub struct StoredCase {
    /// The job as launched if that is known, else as planned.
    pub job: Job,
    /// The rules by which it will be judged.
    pub rules: Rules,
    /// The limits of its times.
    pub limits: Limits,
    /// It is known to have been launched.
    pub launched: bool,
    /// It may have been launched, and goes on without the process that did: `launch` finds it then, by its identifier.
    pub may_run: bool,
    /// The time when its attempt began; `None`: an older muster did not write that down.
    pub started: Option<Timestamp>,
    /// The time when it was launched, if that is known.
    pub launched_at: Option<Timestamp>,
    /// `muster sweep` has removed it.
    pub swept: bool,
}

impl QueuedCase {
    /// An attempt at a case, changed as the command line says.
    pub fn of(case: &TestCase, adjustments: &Arc<Adjustments>, attempt: u32) -> Self {
        let (case, adjustments) = (case.clone(), Arc::clone(adjustments));
        let partition = &case.place.partition;
        Self {
            name: case.name.clone(),
            folder: case.folder(),
            scheduler: adjustments.scheduler(partition).as_name(),
            max_jobs: partition.max_jobs,
            attempt,
            purpose: Purpose::Run,
            needs: case.needs().into(),
            answer: None,
            about: {
                let case = case.clone();
                Arc::new(move || case.about())
            },
            work: Work::New(render(case, adjustments)),
        }
    }

    /// A case that another process planned and did not launch, as an attempt at `case` that is rendered again.
    #[must_use]
    pub fn relaunch(self, case: &TestCase, adjustments: &Arc<Adjustments>) -> Self {
        let work = match self.work {
            Work::Stored { stored, .. } => Work::Relaunch(Box::new(stored.job), render(case.clone(), Arc::clone(adjustments))),
            work => work,
        };
        Self { work, ..self }
    }

    /// Waits until its scheduler has said whether it can run.
    pub(crate) async fn answered(&mut self) {
        if let Some(answer) = &mut self.answer {
            let _ = answer.wait_for(Option::is_some).await;
        }
    }

    /// Why its scheduler cannot run it, once that is known.
    pub(crate) fn why_refused(&self) -> Option<String> {
        self.answer.as_ref()?.borrow().as_ref()?.get(&self.name).cloned()
    }

    /// Returns whether it needs no other case any more: it runs, or did.
    pub fn is_launched(&self) -> bool {
        matches!(&self.work, Work::Stored { stored, .. } if stored.launched)
    }
}

/// Returns the function that plans a case, changed as the command line says.
pub fn render(case: TestCase, adjustments: Arc<Adjustments>) -> Render {
    Arc::new(move |facts| {
        let mut rendered = case.render(facts)?;
        adjustments.apply(&case, &mut rendered);
        Ok(rendered)
    })
}

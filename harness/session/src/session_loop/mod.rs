//! The session loop: what runs next, until nothing more does.
//!
//! ```text
//! source --More(cases, items)--> relaunch: what they need is there --> engine --results--> Attempts --+
//!    ^  '--Stop(attempts, why)-----------------------------------------^ ^ preflight: answers         |
//!    | Rounds (fixed list, retries, reruns, duration), TakenOver (attach, resume)                     |
//!    '---- a case has ended, a time has come (Until), the source has news ----------------------------'
//! ```
//! `plan` is what a session begins with; `restore` and `resume` say what of earlier sessions holds.

pub mod plan;
pub mod preflight;
mod relaunch;
pub mod restore;
pub mod resume;
pub mod rounds;
pub mod source;
pub mod taken_over;

use crate::{
    case::Work,
    engine::{Ended, Engine, EngineConfig, Ownership},
    retry::SHORTEST_PAUSE,
};
use futures_util::{
    future::{BoxFuture, OptionFuture, join_all},
    stream::{FuturesUnordered, StreamExt},
};
use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments};
use muster_core::{
    decisions::attempts::Attempts,
    job::scheduler::{NodeSeen, Scheduler},
    result::Session,
};
use muster_host::clock;
use muster_store::{Seen, StoreError};
use muster_text::{Value, time::Timestamp};
use plan::SessionPlan;
use relaunch::Relaunch;
use source::{Next, SoFar, Source};
use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

/// A source that waits for a time is asked again after so long.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// How long a description of nodes may take.
const NODES_LIMIT: Duration = Duration::from_secs(5);

/// Begins a session, and stores what it is to run and what it was given of another one.
///
/// # Errors
/// The session cannot be stored.
pub async fn begin(config: EngineConfig, plan: &SessionPlan) -> Result<Engine, StoreError> {
    let (session, ownership, schedulers) = (config.session.clone(), config.ownership.clone(), config.schedulers.clone());
    let engine = Engine::begin(config).await?;
    if let Some(Ownership { store, is_new: true, .. }) = &ownership {
        if let Some(night) = &plan.night {
            store.plan(&session.id, night, plan.cases.iter().map(|case| (*case.name).clone()).collect()).await?;
            let seen = Seen { at: session.started, nodes: nodes(&schedulers, &plan.cases).await, ..Seen::default() };
            store.seen(&session.id, seen).await?;
        }
        restore::store(store, &session, &plan.attempts.kept()).await?;
    }
    Ok(engine)
}

/// What the schedulers know of the nodes of these cases. One that does not answer in time keeps no session waiting.
async fn nodes(schedulers: &BTreeMap<String, Arc<dyn Scheduler>>, cases: &[TestCase]) -> Vec<NodeSeen> {
    let partitions: BTreeMap<&str, &Value> =
        cases.iter().map(|case| &case.place.partition).map(|partition| (&*partition.name, &partition.sched_options)).collect();
    let mut asked: Vec<(&Arc<dyn Scheduler>, Vec<Value>)> = Vec::new();
    for (partition, options) in partitions {
        let Some(scheduler) = schedulers.get(partition) else { continue };
        match asked.iter_mut().find(|(known, _)| Arc::ptr_eq(known, scheduler)) {
            Some((_, known)) if known.contains(options) => {}
            Some((_, known)) => known.push(options.clone()),
            None => asked.push((scheduler, vec![options.clone()])),
        }
    }
    let answers = asked.iter().map(|(scheduler, partitions)| timeout(NODES_LIMIT, scheduler.describe_nodes(partitions)));
    let mut nodes: BTreeMap<String, NodeSeen> = BTreeMap::new();
    for answer in join_all(answers).await {
        match answer {
            Ok(Ok(described)) => nodes.extend(described.into_iter().map(|node| (node.name.clone(), node))),
            Ok(Err(error)) => tracing::debug!(%error, "nothing is known of nodes"),
            Err(_) => tracing::debug!("a scheduler does not describe its nodes in time"),
        }
    }
    nodes.into_values().collect()
}

/// Runs what `source` gives, until it gives nothing more. Returns why the source is done, if that may surprise. `adjustments`: the changes
/// of the command line to every case.
pub async fn run(
    engine: &Engine,
    source: &mut dyn Source,
    adjustments: &Arc<Adjustments>,
    attempts: &mut Attempts,
) -> Option<String> {
    let mut relaunch = Relaunch::of(&[], adjustments);
    for result in attempts.kept() {
        engine.recall(Arc::clone(result));
    }
    let (mut is_idle, mut questions) = (true, FuturesUnordered::new());
    loop {
        let is_closed = engine.is_closed();
        let until = match source.next(clock::now(), &SoFar { attempts, is_idle, is_closed }) {
            Next::More(batch) => {
                engine.open_lanes(batch.cases.iter().map(|case| &*case.place.partition));
                relaunch.learn(&batch.cases);
                let mut items = relaunch.complete(batch.items, attempts);
                if let Some(title) = batch.title {
                    engine.begin_round(&items, title).await;
                    if engine.is_closed() {
                        // No round has begun. Jobs of another process are there all the same.
                        items.retain(|item| !matches!(item.work, Work::New(_)));
                    }
                }
                questions.extend(preflight::questions(engine, &mut items, &relaunch, adjustments));
                engine.submit_all(items);
                is_idle = false;
                continue;
            }
            Next::Stop { attempts, why } => {
                let mut is_new = false;
                for (case, attempt) in attempts {
                    is_new |= engine.stop(&case, attempt, why.clone());
                }
                if is_new {
                    continue;
                }
                // A source that says it again waits for the ends.
                None
            }
            Next::Done(why) => return why,
            // Nothing is started any more: nothing can change its answer.
            Next::Wait | Next::Until(_) if is_idle && is_closed => return None,
            Next::Until(at) => Some(at),
            Next::Wait => None,
        };
        let news = news(engine, source, &mut questions, Waits { until, is_idle }).await?;
        is_idle = news.is_idle;
        news.results.into_iter().for_each(|result| attempts.add(result));
    }
}

/// The time that a source waits for, and whether anything runs.
#[derive(Clone, Copy)]
struct Waits {
    until: Option<Timestamp>,
    is_idle: bool,
}

/// Waits for what a source is asked again for: what has ended by then. Meanwhile the questions to schedulers go on. `None`: nothing will
/// come.
async fn news(
    engine: &Engine,
    source: &mut dyn Source,
    questions: &mut FuturesUnordered<BoxFuture<'_, ()>>,
    Waits { until, is_idle }: Waits,
) -> Option<Ended> {
    let news = source.news();
    if is_idle && until.is_none() && news.is_none() {
        return None;
    }
    let nothing = Ended { results: Vec::new(), is_idle };
    let mut ended = pin!(engine.ended());
    let mut news = pin!(OptionFuture::from(news));
    loop {
        // The clock of the machine may be set: a long wait is cut into short ones.
        let pause = until.map(|at| at.since(clock::now()).clamp(SHORTEST_PAUSE, LONGEST_PAUSE));
        tokio::select! {
            ended = &mut ended, if !is_idle => return Some(ended),
            Some(()) = questions.next() => {}
            Some(()) = &mut news => return Some(nothing),
            () = sleep(pause.unwrap_or_default()), if pause.is_some() => return Some(nothing),
            () = engine.closed(), if is_idle => return Some(nothing),
        }
    }
}

/// Tears down what the cases of a session have left, unless another process owns it by now. That may take minutes: this process goes
/// on to show that it lives.
///
/// # Errors
/// [`StoreError::Taken`] if another process owns it.
pub async fn tear_down(engine: &Engine, ownership: Option<&Ownership>) -> Result<(), StoreError> {
    still_held(engine, ownership).await?;
    engine.tear_down().await;
    still_held(engine, ownership).await
}

/// A database that cannot be written now says nothing.
async fn still_held(engine: &Engine, ownership: Option<&Ownership>) -> Result<(), StoreError> {
    let Some(Ownership { store, owner, .. }) = ownership else { return Ok(()) };
    match store.beat(engine.session(), owner).await {
        Err(error @ StoreError::Taken { .. }) => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Ends a session that is torn down, unless another process owns it by now.
///
/// # Errors
/// [`StoreError::Taken`] if another process owns it, or it cannot be stored.
pub async fn end(engine: &Engine, ownership: Option<Ownership>, attempts: &mut Attempts) -> Result<Session, StoreError> {
    let session = engine.end().await?;
    // Results that name what is kept.
    engine.with_leftovers().await.into_iter().for_each(|kept| attempts.replace(kept));
    if let Some(Ownership { store, .. }) = ownership {
        store.close().await?;
    }
    Ok(session)
}

//! The part of a session that stays when its process ends first.

use crate::{
    engine::{Engine, InFlight},
    folders,
};
use muster_core::result::CaseResult;
use std::{sync::Arc, thread, time::Duration};
use tokio::{sync::oneshot, time::timeout};

/// A file system that has not answered by then may never do so.
const LOOK_LIMIT: Duration = Duration::from_secs(1);

/// The part of a session that stays when its process ends.
pub struct Left {
    pub in_flight: Vec<InFlight>,
    /// The cases that have left something for others which nobody has torn down.
    pub standing: Vec<Arc<CaseResult>>,
    /// `true` for each that is whole: no teardown has begun. `None`: the file system does not answer.
    pub are_whole: Option<Vec<bool>>,
}

/// Ends the teardowns that run: they would remove what the cases of a process need that continues the session. Cases keep running,
/// and that process follows them. Returns what may be left.
pub async fn leave(engine: &Engine) -> Left {
    engine.leave().await;
    let (in_flight, standing) = (engine.in_flight(), engine.not_torn_down());
    let looked = standing.clone();
    let is_whole = |case: &Arc<CaseResult>| case.outputs.as_ref().is_some_and(|outputs| folders::is_available(&outputs.stage));
    let are_whole = within(LOOK_LIMIT, move || looked.iter().map(is_whole).collect()).await;
    Left { in_flight, standing, are_whole }
}

/// Does on a thread of its own what may never end, and waits at most so long for it.
pub async fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, done) = oneshot::channel();
    thread::spawn(move || sender.send(work()));
    timeout(limit, done).await.ok()?.ok()
}

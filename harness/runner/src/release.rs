//! The end of what a case has left for others: its stage folder goes when nobody needs it any more.

use crate::{context::Context, event::Event, order::Release};
use muster_core::{error::chain, graph::Verdict, scheduler::Scheduler};
use std::{collections::BTreeMap, path::Path, sync::Arc};
use tokio::task::spawn_blocking;

/// Removes what nobody needs any more. What fails here is told, and changes no outcome.
pub(crate) async fn release(context: &Arc<Context>, _schedulers: &BTreeMap<String, Arc<dyn Scheduler>>, release: &Release) {
    let Release { result, wanted } = release;
    let Some(provides) = &result.provides else { return };
    // What failed is kept to be looked at, and so is what somebody that failed was given.
    if Verdict::of(&result.outcome) != Verdict::Passed || *wanted {
        return;
    }
    if let Err(why) = removed(context, &provides.stage).await {
        context.emit(Event::Warning(format!("{}: {why}", result.name)));
    }
}

async fn removed(context: &Arc<Context>, folder: &Path) -> Result<(), String> {
    let (shared, folder) = (Arc::clone(context), folder.to_owned());
    match spawn_blocking(move || shared.places.remove(&folder)).await {
        Ok(removed) => removed.map_err(|error| chain(&error)),
        Err(_) => Err("removing its stage folder panicked".to_owned()),
    }
}

//! The end of an attempt: stopping what runs, and removing or keeping what is left.

use super::Attempt;
use crate::{
    case::{context::Context, record::Record},
    panics::panic_message,
    retry::Failures,
};
use futures_util::FutureExt;
use muster_core::{
    decisions::pipeline::OUTAGE_LIMIT,
    error::{Class, chain},
    job::scheduler::{Disposition, Job, Leftovers, Scheduler},
    result::Phase,
};
use muster_text::time::format_duration;
use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::time::{sleep, timeout};

impl Attempt<'_> {
    /// Ends the compute, so that the log can end.
    pub(super) async fn stop(&mut self, record: &mut Record) {
        match self.cleaned(Disposition::Stop).await {
            Ok(leftovers) if leftovers.items.is_empty() => {
                self.stopped = true;
                *self.kept = leftovers;
            }
            // The cleanup that follows tries again, and names what is left.
            Ok(_) => {}
            Err(cause) => record.result.warnings.push(format!("not stopped at once: {cause}")),
        }
    }

    /// Removes, or stops and keeps. What fails here is named in the result and changes no outcome.
    pub(crate) async fn cleanup(mut self, how: Disposition, record: &mut Record) {
        if self.may_exist && !(self.stopped && how == Disposition::Stop) {
            self.store_phase(Phase::Cleanup, record);
            self.context.phase(&self.case, Phase::Cleanup, None, None);
            match self.cleaned(how).await {
                Ok(leftovers) => *self.kept = leftovers,
                Err(cause) => {
                    *self.kept = Leftovers::default();
                    record.result.warnings.push(format!("cleanup failed: {cause}"));
                    record.result.leftovers.push(self.context.whatever_is_marked(&self.job));
                }
            }
        }
        record.result.usage.add(self.scheduler.usage(&self.job));
        let Leftovers { items, is_gone, look, delete, until } = std::mem::take(&mut *self.kept);
        record.result.leftovers.extend(items);
        record.result.look.extend(look);
        record.result.delete.extend(delete);
        if let Some(until) = until {
            record.result.warnings.push(format!("what was kept goes by itself at {until}"));
            record.result.delete.push(self.context.sweep_of_kept(&self.job));
        }
        let nothing_left = !self.may_exist || how == Disposition::Delete || is_gone;
        if nothing_left
            && record.result.leftovers.is_empty()
            && let Some(store) = &self.context.store
        {
            store.cleaned(&self.job);
        }
        self.mark_ended();
    }

    pub(super) async fn cleaned(&self, how: Disposition) -> Result<Leftovers, String> {
        cleaned(self.context, self.scheduler, &self.job, how).await
    }
}

/// Removes, or stops, with retries and within the limit, until the session waits for no server any more; whatever happens in it, the
/// caller goes on. An outage is said, and ends it after five minutes.
pub(crate) async fn cleaned(
    context: &Context,
    scheduler: &Arc<dyn Scheduler>,
    job: &Job,
    how: Disposition,
) -> Result<Leftovers, String> {
    let mut failures = Failures::default();
    let partition = context.partition_of(job);
    let last = Mutex::new(None);
    let work = async {
        loop {
            match scheduler.cleanup(job, how).await {
                Err(error) if error.class == Class::Gone => return Ok(Leftovers::default()),
                Err(error) => {
                    let why = chain(&error);
                    if error.class == Class::Outage {
                        context.not_reached(&partition, Phase::Cleanup, &why);
                    }
                    *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                    match failures.add(&error, Some(OUTAGE_LIMIT)) {
                        Some(pause) => sleep(pause).await,
                        None => return Err(error),
                    }
                }
                done => {
                    context.reached(&partition, Phase::Cleanup);
                    return done;
                }
            }
        }
    };
    // What was said last is why.
    let given_up = |when: &str| {
        let said = last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        said.map_or_else(|| format!("no answer {when}"), |why| format!("not done {when}: {why}"))
    };
    let limit = scheduler.limits().cleanup;
    let ended = tokio::select! {
        biased;
        ended = timeout(limit, AssertUnwindSafe(work).catch_unwind()) => ended,
        () = context.give_up.cancelled() => return Err(given_up("before Muster stopped waiting for the end of the session")),
    };
    match ended {
        Ok(Ok(answer)) => answer.map_err(|error| chain(&error)),
        Ok(Err(panic)) => Err(format!("panicked: {}", panic_message(&*panic))),
        Err(_) => Err(given_up(&format!("within {}", format_duration(limit)))),
    }
}

//! Judging on a blocking thread, within its limit.

use crate::{
    context::Context,
    logs::assemble,
    record::{End, Record},
    spool::Spool,
};
use muster_core::{
    judge::{Judgement, judge},
    result::Phase,
    rules::Rules,
    scheduler::Ending,
    stdout::Stdout,
    time::format_duration,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::oneshot, task::spawn_blocking, time::timeout};

/// One match cannot be interrupted: beyond the limit plus this the thread is left to itself.
const GRACE: Duration = Duration::from_secs(10);

/// Puts the stdout together, judges what ended by itself, and notes its figures.
pub(crate) async fn judged(
    context: &Arc<Context>,
    record: &mut Record,
    rules: Arc<Rules>,
    ending: Ending,
    spool: Spool,
    limit: Duration,
) -> (End, Option<Stdout>) {
    context.phase(&record.name, Phase::Sanity, None);
    let _permit = context.judges().acquire().await;
    let (assembled, stdout) = oneshot::channel();
    let thread = spawn_blocking(move || {
        let stdout = assemble(spool, &ending.exits)?;
        let _ = assembled.send(stdout.clone());
        let begun = Instant::now();
        Ok(judge(&rules, &stdout, &ending, &|| begun.elapsed() >= limit))
    });
    let within = async {
        let Ok(stdout) = stdout.await else { return (thread.await, None) };
        let Ok(judgement) = timeout(limit.saturating_add(GRACE), thread).await else {
            let limit = format_duration(limit);
            let cause = format!("judging took more than {limit} (judge_limit): one pattern takes that long");
            return (Ok(Err(End::config(Phase::Sanity, cause))), Some(stdout));
        };
        (judgement, Some(stdout))
    };
    match within.await {
        (Ok(Ok(judgement)), stdout) => {
            let Judgement { outcome, phase, cause, measurements, warnings } = judgement;
            record.measurements = measurements;
            record.warnings.extend(warnings);
            (End { outcome, phase, cause }, stdout)
        }
        (Ok(Err(end)), stdout) => (end, stdout),
        (Err(_), stdout) => (End::infra(Phase::Sanity, "judging panicked"), stdout),
    }
}

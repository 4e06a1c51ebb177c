//! Judging on a blocking thread, within its limit.

use crate::{
    context::Context,
    record::{End, Record},
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
use tokio::{task::spawn_blocking, time::timeout};

/// One match cannot be interrupted: beyond the limit plus this the thread is left to itself.
const GRACE: Duration = Duration::from_secs(10);

/// Judges what ended by itself, and notes its figures.
pub(crate) async fn judged(
    context: &Arc<Context>,
    record: &mut Record,
    rules: Arc<Rules>,
    stdout: Stdout,
    ending: Ending,
    limit: Duration,
) -> End {
    context.phase(&record.name, Phase::Sanity, None);
    let _permit = context.judges().acquire().await;
    let thread = spawn_blocking(move || {
        let begun = Instant::now();
        judge(&rules, &stdout, &ending, &|| begun.elapsed() >= limit)
    });
    match timeout(limit + GRACE, thread).await {
        Ok(Ok(judgement)) => {
            let Judgement { outcome, phase, cause, measurements, warnings } = judgement;
            record.measurements = measurements;
            record.warnings.extend(warnings);
            End { outcome, phase, cause }
        }
        Ok(Err(_)) => End::infra(Phase::Sanity, "judging panicked"),
        Err(_) => {
            let limit = format_duration(limit);
            End::config(Phase::Sanity, format!("judging took more than {limit} (judge_limit): one pattern takes that long"))
        }
    }
}

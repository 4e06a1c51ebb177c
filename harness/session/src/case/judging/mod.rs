//! Turns a log into a stdout, a judgement within its limit, and the files that are kept.
//!
//! ```text
//! spool -assemble, kept files-> Stdout -Task-> a judge (another process) -Judged-> result, files kept     pattern or expression
//!                                     '----------- here -----------------'                                 neither of them
//! ```
//! Tests and measurements may judge on a thread of their own process ([`JudgeIn::ThisProcess`]), which nothing stops.

mod judges;
mod serve;
mod task;

pub(crate) use judges::Judges;
pub use judges::{JudgeIn, JudgeProgram};
pub use serve::serve;

use crate::{
    case::{
        context::Context,
        record::{End, Record},
    },
    folders::{AttemptId, FoldersError},
    log::{
        keep_files::KeptFiles,
        spool::{Spool, is_disk_full},
        tail::{log_end, log_tail},
    },
};
use muster_core::{
    case::{CaseName, Identifier},
    error::chain,
    job::{
        scheduler::{Ending, SectionExit},
        stage_folder::LOG_FILE,
        stdout::Stdout,
    },
    judge::{Judgement, Monitor},
    result::{Invalid, LogEnd, Outcome, Phase},
    rules::Rules,
};
use std::{
    io,
    path::PathBuf,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};
use task::{Judged, Task, is_trivial, perform};
use tokio::{task::spawn_blocking, time::sleep};

/// How long judging may go on when the session is to end.
const AFTER_CANCEL: Duration = Duration::from_secs(3);

/// Where an attempt's files are, and where they will be if it passes.
pub(crate) struct AttemptFiles {
    pub(crate) name: Arc<CaseName>,
    /// The last component of its folders.
    pub(crate) folder: String,
    pub(crate) number: u32,
    pub(crate) identifier: Identifier,
    pub(crate) stage: PathBuf,
}

/// What the record keeps of a log.
struct LogSummary {
    nodes: Vec<String>,
    tail: Option<String>,
    /// More of it, for the store.
    end: Option<LogEnd>,
    /// Where it was moved.
    kept: Option<Result<PathBuf, FoldersError>>,
}

/// A log that is put together, with the files after it.
struct Assembled {
    stdout: Stdout,
    kept: KeptFiles,
    /// What came of it, where that takes no time.
    judged: Option<Judged>,
}

/// Judges what ended by itself; keeps what passed, shows the end of what did not.
pub(crate) async fn judge(
    context: &Arc<Context>,
    record: &mut Record,
    rules: Arc<Rules>,
    (ending, spool): (Ending, Spool),
    limit: Duration,
    files: AttemptFiles,
) -> End {
    context.phase(&record.name, Phase::Sanity, None, None);
    let permit = tokio::select! {
        biased;
        permit = context.judges.slots.acquire() => permit,
        () = cancelled_for_a_while(context) => {
            assemble_unjudged(record, spool, ending.exits).await;
            return stopped(context);
        }
    };
    record.has_log = true;
    let (shared, exits) = (Arc::clone(&rules), ending.clone());
    let stage = files.stage.clone();
    let Assembled { stdout, mut kept, judged } = match on_a_thread(move || assemble(&shared, &exits, spool, &stage)).await {
        Ok(assembled) => assembled,
        Err(end) => return end,
    };
    let judged = match judged {
        Some(known) => Ok(known),
        None => ask_judge(context, &rules, &ending, &stdout, &files, limit).await,
    };
    drop(permit);
    let passed = judged.as_ref().is_ok_and(|judged| matches!(judged.judgement.outcome, Outcome::Pass | Outcome::Xfail));
    let (warnings, kept_files) = (std::mem::take(&mut kept.warnings), kept.paths());
    let (shared, is_needed) = (Arc::clone(context), rules.planned_outputs.is_some());
    let text = on_a_thread(move || {
        Ok(if passed { files.kept(&shared, &stdout, &kept_files, is_needed) } else { LogSummary::of(&stdout) })
    });
    match text.await {
        Ok(summary) => summary.add_to(record),
        Err(end) => return end,
    }
    record.result.warnings.extend(warnings);
    record_judged(record, judged)
}

/// Puts a log together, with the files that its check keeps. Blocks.
fn assemble(rules: &Rules, ending: &Ending, spool: Spool, stage: &std::path::Path) -> io::Result<Assembled> {
    let full = |error: io::Error| {
        let why = || format!("the disk that holds {} is full ({error})", stage.display());
        if is_disk_full(&error) { io::Error::new(error.kind(), why()) } else { error }
    };
    let mut stdout = spool.assemble_ended(ending).map_err(full)?;
    let mut kept = KeptFiles::default();
    if !rules.keep_files.is_empty() {
        kept = KeptFiles::find(stage, &rules.keep_files);
        stdout = kept.add(stdout, stage).map_err(full)?;
    }
    let judged = is_trivial(rules).then(|| perform(rules, &stdout, ending, &Monitor::default()));
    Ok(Assembled { stdout, kept, judged })
}

/// What a judge says within the limit, while the session goes on.
async fn ask_judge(
    context: &Context,
    rules: &Arc<Rules>,
    ending: &Ending,
    stdout: &Stdout,
    files: &AttemptFiles,
    limit: Duration,
) -> Result<Judged, End> {
    let (rules, ending) = (Arc::clone(rules), ending.clone());
    let judged = async {
        let program = match &context.judges.place {
            JudgeIn::Processes(program) => program,
            JudgeIn::ThisProcess => {
                let stdout = stdout.clone();
                return on_a_thread(move || Ok(perform(&rules, &stdout, &ending, &Monitor::default()))).await;
            }
        };
        let (sections, kept) = (stdout.sections().to_vec(), stdout.files().cloned());
        let task = Task { rules, ending, log: files.stage.join(LOG_FILE), sections, files: kept };
        context.judges.judge(program, task, limit).await
    };
    tokio::select! {
        biased;
        judged = judged => judged,
        () = cancelled_for_a_while(context) => Err(stopped(context)),
    }
}

/// The time since this process first asked.
pub fn monotonic() -> Duration {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGUN.elapsed()
}

/// Adds what a judge found to the record, and says how the case ends.
fn record_judged(record: &mut Record, judged: Result<Judged, End>) -> End {
    let Judged { judgement, outputs, .. } = match judged {
        Ok(judged) => judged,
        Err(end) => return end,
    };
    let Judgement { outcome, phase, cause, measurements, warnings } = judgement;
    record.result.measurements = measurements;
    record.result.warnings.extend(warnings);
    if let Some(of_case) = &mut record.result.outputs {
        of_case.outputs = outputs;
    }
    End { outcome, phase, cause }
}

/// Work that touches files.
async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, End> {
    match spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(no_log(&error)),
        Err(_) => Err(End::infra(Phase::Sanity, "judging panicked")),
    }
}

/// The session is to end, and what was nearly done has had its time.
async fn cancelled_for_a_while(context: &Context) {
    context.cancel.cancelled().await;
    sleep(AFTER_CANCEL).await;
}

fn stopped(context: &Context) -> End {
    End::new(Outcome::Abort, Phase::Sanity, context.why_cancelled())
}

/// Puts together the log of a case that is not judged.
pub(crate) async fn assemble_unjudged(record: &mut Record, spool: Spool, exits: Vec<SectionExit>) {
    let text = spawn_blocking(move || spool.assemble(&exits).map(|stdout| LogSummary::of(&stdout)));
    match text.await {
        Ok(Ok(summary)) => {
            record.has_log = true;
            summary.add_to(record);
        }
        Ok(Err(error)) => record.result.warnings.extend(no_log(&error).cause),
        Err(_) => record.result.warnings.push("putting the log together panicked".to_owned()),
    }
}

fn no_log(error: &io::Error) -> End {
    let why = format!("the log could not be put together: {error}");
    // A job is not to blame for it, and another run may find room.
    if is_disk_full(error) { End::infra(Phase::Run, why) } else { End::new(Outcome::Invalid(Invalid::Logs), Phase::Run, why) }
}

impl AttemptFiles {
    pub(crate) fn attempt(&self) -> AttemptId<'_> {
        let Self { name, folder, number, identifier, .. } = self;
        AttemptId { case: name, folder, number: *number, identifier }
    }

    /// Others may need its stage folder: then that stays as it is until they are over.
    fn kept(&self, context: &Context, stdout: &Stdout, files: &[PathBuf], is_needed: bool) -> LogSummary {
        let (folders, attempt) = (&context.folders, self.attempt());
        let kept =
            if is_needed { folders.keep_copy(&self.stage, attempt, files) } else { folders.keep(&self.stage, attempt, files) };
        LogSummary { nodes: nodes(stdout), tail: None, end: None, kept: Some(kept) }
    }
}

impl LogSummary {
    fn of(stdout: &Stdout) -> Self {
        Self { nodes: nodes(stdout), tail: log_tail(stdout), end: log_end(stdout), kept: None }
    }

    fn add_to(self, record: &mut Record) {
        record.ran_on(self.nodes);
        record.result.log_tail = self.tail;
        record.result.log = self.end.map(Box::new);
        match self.kept {
            Some(Ok(output)) => record.result.folder = Some(output),
            Some(Err(error)) => record.result.warnings.push(chain(&error)),
            None => {}
        }
    }
}

fn nodes(stdout: &Stdout) -> Vec<String> {
    stdout.sections().iter().filter_map(|section| section.origin.node.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::result::Fault;

    #[test]
    fn a_log_for_which_the_disk_has_no_room_is_no_fault_of_its_job() {
        for (kind, outcome) in [
            (io::ErrorKind::StorageFull, Outcome::Error(Fault::Infra)),
            (io::ErrorKind::QuotaExceeded, Outcome::Error(Fault::Infra)),
            (io::ErrorKind::NotFound, Outcome::Invalid(Invalid::Logs)),
        ] {
            assert_eq!(no_log(&kind.into()).outcome, outcome, "{kind}");
        }
    }
}

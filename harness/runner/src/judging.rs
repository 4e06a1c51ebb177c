//! What a log becomes on a blocking thread: a stdout, a judgement within its limit, and what is kept of it.

use crate::{
    context::Context,
    kept::Kept,
    places::{Attempt, PlacesError},
    record::{End, Record},
    spool::Spool,
    tail::log_tail,
};
use muster_core::{
    case::{CaseName, Identifier},
    error::chain,
    fixture,
    judge::{Judgement, judge},
    result::{Invalid, Outcome, Phase},
    rules::Rules,
    scheduler::{Ending, SectionExit},
    stdout::Stdout,
    time::format_duration,
};
use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{task::spawn_blocking, time::timeout};

/// One match cannot be interrupted: beyond the limit plus this the thread is left to itself.
const GRACE: Duration = Duration::from_secs(10);

/// Where an attempt's files are, and where they will be if it passes.
pub(crate) struct Home {
    pub(crate) name: Arc<CaseName>,
    /// The last component of its folders.
    pub(crate) folder: String,
    pub(crate) number: u32,
    pub(crate) identifier: Identifier,
    pub(crate) stage: PathBuf,
}

/// What is left of a log when its thread is done.
struct Text {
    nodes: Vec<String>,
    tail: Option<String>,
    /// Where it was moved.
    kept: Option<Result<PathBuf, PlacesError>>,
}

/// Judges what ended by itself; keeps what passed, shows the end of what did not.
pub(crate) async fn judged(
    context: &Arc<Context>,
    record: &mut Record,
    rules: Arc<Rules>,
    (ending, spool): (Ending, Spool),
    limit: Duration,
    home: Home,
) -> End {
    context.phase(&record.name, Phase::Sanity, None, None);
    let _permit = context.judges().acquire().await;
    let shared = Arc::clone(context);
    let thread = spawn_blocking(move || {
        let mut stdout = spool.assemble_ended(&ending)?;
        let mut kept = Kept::default();
        if !rules.keep_files.is_empty() {
            kept = Kept::find(&home.stage, &rules.keep_files);
            stdout = kept.add(stdout, &home.stage)?;
        }
        let begun = Instant::now();
        let mut judgement = judge(&rules, &stdout, &ending, &|| begun.elapsed() >= limit);
        judgement.warnings.append(&mut kept.warnings);
        let outputs = outputs(&rules, &stdout, &mut judgement);
        let passed = matches!(judgement.outcome, Outcome::Pass | Outcome::Xfail);
        let text = if passed { home.kept(&shared, &stdout, &kept.paths(), rules.offer.is_some()) } else { Text::of(&stdout) };
        Ok((judgement, text, outputs))
    });
    record.has_log = true;
    match timeout(limit.saturating_add(GRACE), thread).await {
        Ok(Ok(Ok((judgement, text, outputs)))) => {
            let Judgement { outcome, phase, cause, measurements, warnings } = judgement;
            record.measurements = measurements;
            record.warnings.extend(warnings);
            text.told(record);
            if let Some(provides) = &mut record.provides {
                provides.outputs = outputs;
            }
            End { outcome, phase, cause }
        }
        Ok(Ok(Err(error))) => no_log(&error),
        Ok(Err(_)) => End::infra(Phase::Sanity, "judging panicked"),
        Err(_) => {
            let limit = format_duration(limit);
            End::config(Phase::Sanity, format!("judging took more than {limit} (judge_limit): one pattern takes that long"))
        }
    }
}

/// Puts together the log of a case that is not judged.
pub(crate) async fn unjudged(record: &mut Record, spool: Spool, exits: Vec<SectionExit>) {
    let text = spawn_blocking(move || spool.assemble(&exits).map(|stdout| Text::of(&stdout)));
    match text.await {
        Ok(Ok(text)) => {
            record.has_log = true;
            text.told(record);
        }
        Ok(Err(error)) => record.warnings.extend(no_log(&error).cause),
        Err(_) => record.warnings.push("putting the log together panicked".to_owned()),
    }
}

/// What a case that passed leaves for others, read from its stdout. One that does not say what it was to say has not passed.
fn outputs(rules: &Rules, stdout: &Stdout, judgement: &mut Judgement) -> BTreeMap<String, String> {
    let Some(offer) = rules.offer.as_ref().filter(|_| judgement.outcome == Outcome::Pass) else { return BTreeMap::new() };
    fixture::read_outputs(&offer.outputs, stdout).unwrap_or_else(|cause| {
        judgement.outcome = Outcome::Invalid(Invalid::Metrics);
        judgement.phase = Phase::Sanity;
        judgement.cause = Some(cause);
        BTreeMap::new()
    })
}

fn no_log(error: &io::Error) -> End {
    End::new(Outcome::Invalid(Invalid::Logs), Phase::Run, format!("the log could not be put together: {error}"))
}

impl Home {
    pub(crate) fn attempt(&self) -> Attempt<'_> {
        let Self { name, folder, number, identifier, .. } = self;
        Attempt { case: name, folder, number: *number, identifier }
    }

    /// Others may need its stage folder: then that stays as it is until they are over.
    fn kept(&self, context: &Context, stdout: &Stdout, files: &[PathBuf], is_needed: bool) -> Text {
        let (places, attempt) = (&context.places, self.attempt());
        let kept =
            if is_needed { places.keep_copy(&self.stage, attempt, files) } else { places.keep(&self.stage, attempt, files) };
        Text { nodes: nodes(stdout), tail: None, kept: Some(kept) }
    }
}

impl Text {
    fn of(stdout: &Stdout) -> Self {
        Self { nodes: nodes(stdout), tail: log_tail(stdout), kept: None }
    }

    fn told(self, record: &mut Record) {
        record.ran_on(self.nodes);
        record.log_tail = self.tail;
        match self.kept {
            Some(Ok(output)) => record.folder = Some(output),
            Some(Err(error)) => record.warnings.push(chain(&error)),
            None => {}
        }
    }
}

fn nodes(stdout: &Stdout) -> Vec<String> {
    stdout.sections().iter().filter_map(|section| section.origin.node.clone()).collect()
}

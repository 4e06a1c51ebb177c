//! `-r`: runs the selected cases, shows how it goes, and reports.
//!
//! ```text
//! select -> store -> engine <- submit all     trials wait for the results, the view prints them as they come
//!                      '-> events -> view     signals: the first cancels, the second leaves at once
//! all over -> store: end -> run report, failures, figures, summary -> exit code
//! ```

use crate::{
    args::{self, Cli, Parsed},
    commands::{daemons, list, report},
    report_files::ReportFiles,
    selection::{self, Depth, Selection},
    settings::{self, Places},
    terminal::{NoEcho, Terminal},
    view::{self, View},
    wire::{self, Wired},
};
use anyhow::Context;
use muster_core::{
    case::SessionId,
    pipeline::{EXIT_INTERRUPTED, EXIT_USAGE},
    result::{CaseResult, Counting, Session},
};
use muster_report::progress;
use muster_runner::{
    clock,
    engine::{Engine, EngineConfig, ExecPolicy, InFlight, Lease},
    identifier,
    local::owner,
    places, runtime,
    signals::Signals,
    trials::{self, Submitted},
    turn::Turn,
};
use muster_store::{Owner, Store, StoreError};
use std::{
    any::Any,
    collections::BTreeSet,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    sync::Arc,
    thread::JoinHandle,
};
use tokio::{runtime::Runtime, sync::mpsc};

/// Runs the selection. The exit code is that of design 5.
pub fn run(parsed: &Parsed, command_line: &[String], terminal: Terminal) -> anyhow::Result<u8> {
    let cli = &parsed.cli;
    let selection = selection::select(cli, Depth::Every, terminal.live)?;
    terminal.diagnostics(&selection.diagnostics, &selection.sources);
    if selection.has_errors() {
        terminal.note("nothing was launched");
        return Ok(EXIT_USAGE);
    }
    if selection.cases.is_empty() {
        return Ok(list::told_if_empty(&selection, terminal));
    }
    let session = session(&selection, command_line)?;
    let course = Course {
        heir_of: None,
        before: Vec::new(),
        wired: wire::schedulers(wire::partitions(&selection.cases))?,
        num_checks: num_checks(&selection),
        turns: selection.cases.into_iter().map(Turn::from).collect(),
        session,
    };
    self::course(cli, &runtime::build().context("start the runtime")?, course, terminal)
}

/// A session that is about to run, from its beginning or from where a process that is gone has left it.
pub(super) struct Course {
    /// Who began it, where, and how.
    pub(super) session: Session,
    /// The dead process that held it.
    pub(super) heir_of: Option<Owner>,
    /// Results that are there already.
    pub(super) before: Vec<Arc<CaseResult>>,
    /// Who launches in which partition.
    pub(super) wired: Wired,
    /// Tests: checks with their parameters, without their places.
    pub(super) num_checks: u32,
    /// What is to be done.
    pub(super) turns: Vec<Turn>,
}

/// Runs a session to its end and reports it.
pub(super) fn course(cli: &Cli, runtime: &Runtime, course: Course, terminal: Terminal) -> anyhow::Result<u8> {
    let Course { session, heir_of, before, wired, num_checks, turns } = course;
    let places = Places::of(cli);
    let folders = places::Places::open(&places.stage, &places.output)
        .context("no place for running cases: choose another with --prefix, --stage or --output")?;
    let file = ReportFiles::prepare(cli, &places, &session)?;
    let store = runtime.block_on(Store::open(&places.database)).context("no place for results: choose another with --db")?;
    for note in settings::note_on_database(cli).iter().map(String::as_str).chain(store.notes().iter().map(AsRef::as_ref)) {
        terminal.note(&format!("note: {note}"));
    }
    let header = progress::Header {
        session: &session,
        num_checks,
        stage: &places.stage.to_string_lossy(),
        output: &places.output.to_string_lossy(),
        database: &places.database.to_string_lossy(),
    };
    let view = View::new(terminal, cli.output.format.is_some(), session.num_cases);
    view.header(&header);

    let (events, receiver) = mpsc::unbounded_channel();
    let config = EngineConfig {
        session,
        places: folders,
        lease: Some(Lease { store, owner: owner::this_owner(), heir_of }),
        schedulers: wired.schedulers.clone(),
        events,
        policy: match cli.run.exec_policy {
            args::ExecPolicy::Serial => ExecPolicy::Serial,
            args::ExecPolicy::Async => ExecPolicy::Async,
        },
        maxfail: cli.run.maxfail,
    };
    let (session, results) = conduct(runtime, config, turns, cli, terminal, || view.watch(receiver))?;
    runtime.block_on(wired.close());
    runtime.block_on(daemons::end(&session.id, &results, terminal));
    report::report(cli, &file, &session, &[before, results].concat(), terminal)
}

/// From the first launch until everything is over and stored, and everything that happened is shown.
fn conduct(
    runtime: &Runtime,
    config: EngineConfig,
    turns: Vec<Turn>,
    cli: &Cli,
    terminal: Terminal,
    watch: impl FnOnce() -> JoinHandle<()>,
) -> anyhow::Result<(Session, Vec<Arc<CaseResult>>)> {
    let (begun, store) = (config.session.clone(), config.lease.as_ref().map(|lease| lease.store.clone()));
    let _guard = runtime.enter();
    let signals = Signals::listen().context("listen to signals")?;
    let engine = runtime.block_on(Engine::begin(config))?;
    let supervised = signals.supervise(engine.clone());
    let supervisor = runtime.spawn(async move { leave_at_once(&supervised.await, terminal) });
    let watching = watch();

    let submitted: Vec<Submitted> = turns.into_iter().map(|turn| submit(&engine, turn)).collect();
    run_trials(&arguments(cli, submitted.len()), submitted);
    let results = runtime.block_on(engine.finish());
    let ended = runtime.block_on(async {
        let session = engine.end().await?;
        if let Some(store) = store {
            store.close().await?;
        }
        Ok::<_, StoreError>(session)
    });
    let session = ended.unwrap_or_else(|error| {
        terminal.error(&anyhow::Error::new(error).context("the end of the session could not be stored"));
        Session { ended: Some(clock::now()), interrupted: engine.is_cancelled(), ..begun }
    });
    supervisor.abort();
    // The view ends when nobody is left who could tell it something.
    drop(engine);
    let _ = watching.join();
    Ok((session, results))
}

/// libtest's printer panics when its reader goes away (`--format json | head`). The session goes on: its results are
/// wanted all the same.
fn run_trials(arguments: &libtest_mimic::Arguments, submitted: Vec<Submitted>) {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !is_broken_pipe(panic.payload()) {
            usual(panic);
        }
    }));
    if let Err(cause) = panic::catch_unwind(AssertUnwindSafe(|| trials::run(arguments, submitted)))
        && !is_broken_pipe(&*cause)
    {
        panic::resume_unwind(cause);
    }
}

fn is_broken_pipe(panic: &(dyn Any + Send)) -> bool {
    panic.downcast_ref::<String>().is_some_and(|text| text.contains("BrokenPipe"))
}

fn submit(engine: &Engine, turn: Turn) -> Submitted {
    let (name, scheduler) = (turn.name.clone(), turn.scheduler);
    Submitted { case: (*name).clone(), scheduler, result: engine.submit(turn) }
}

/// A person reads our lines; a tool that asked for a format reads libtest's.
fn arguments(cli: &Cli, cases: usize) -> libtest_mimic::Arguments {
    use libtest_mimic::FormatSetting;
    match cli.output.format {
        None => trials::silent(),
        Some(args::TestFormat::Pretty) => trials::printing(FormatSetting::Pretty, cases),
        Some(args::TestFormat::Terse) => trials::printing(FormatSetting::Terse, cases),
        Some(args::TestFormat::Json) => trials::printing(FormatSetting::Json, cases),
    }
}

fn session(selection: &Selection, command_line: &[String]) -> anyhow::Result<Session> {
    Ok(Session {
        id: session_id()?,
        started: clock::now(),
        ended: None,
        command: command_line.to_vec(),
        system: selection.system.name.clone(),
        user: std::env::var("USER")
            .or_else(|_| std::env::var("LOGNAME"))
            .unwrap_or_else(|_| rustix::process::getuid().as_raw().to_string()),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        workdir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        num_cases: u32::try_from(selection.cases.len()).unwrap_or(u32::MAX),
        interrupted: false,
        counting: Counting::default(),
        extras: Vec::new(),
    })
}

/// `20261121-071500-kqzvwxyz`: sorts by time, reads well, fits a label of Kubernetes.
fn session_id() -> anyhow::Result<SessionId> {
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    Ok(SessionId(format!("{now}-{}", identifier::random()?)))
}

/// Tests: checks with their parameters, without their places.
fn num_checks(selection: &Selection) -> u32 {
    let names: BTreeSet<&str> = selection.cases.iter().map(|case| case.name.display.as_str()).collect();
    u32::try_from(names.len()).unwrap_or(u32::MAX)
}

/// The second signal: says what may be left and ends the process.
fn leave_at_once(left: &[InFlight], terminal: Terminal) {
    view::take_down();
    terminal.note("second signal: leaving at once");
    for flight in left {
        terminal.note(&format!("may be left: {} ({}), in {}", flight.case, flight.job.identifier, flight.job.stage.display()));
    }
    if !left.is_empty() {
        terminal.note("end what is left with: muster sweep");
    }
    NoEcho::end();
    std::process::exit(EXIT_INTERRUPTED.into());
}

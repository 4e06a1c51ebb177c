//! A session as users see it: signals, events, libtest's trials, and the reports at the end. What runs next is decided by
//! `muster_session::session_loop`.
//!
//! ```text
//! plan -> session_loop -> engine -> events -> view, on a thread of its own
//!              '-> results -> frontend: libtest's harness, one trial a case
//! teardowns -> schedulers are closed, daemons ended -> store: end -> reports -> exit code
//! ```
//! The heartbeat goes on until the end is stored: from then on another process may own the session, and nothing of it is touched.
//! The first signal cancels the session, the second one ends the process at once, until the reports are written. Before the session
//! has begun, the first one does ([`early`]).

pub mod early;
pub mod leave;

use crate::{
    args::{self, Cli, TestFormat},
    exit,
    reports::{files::ReportFiles, session},
    session::early::Early,
    settings::{self, Places},
    terminal::{self, NoEcho, Terminal, unwritten::EXIT_UNWRITTEN, view::View},
    wiring::{self, Wired, database, secrets},
};
use anyhow::Context;
use libtest_mimic::FormatSetting;
use muster_core::{
    decisions::{
        attempts::Attempts,
        pipeline::{EXIT_INTERRUPTED, Skips},
    },
    job::inventory::Removed,
    result::Session,
};
use muster_host::{clock, owner};
use muster_report::progress;
use muster_session::{
    case::judging::JudgeIn,
    engine::{Engine, EngineConfig, ExecPolicy, Ownership},
    folders::Folders,
    front::{
        libtest::{self, Frontend},
        signals::{ONE_MORE, Signals},
    },
    ownership::heartbeat::SignOfLife,
    session_loop::{self, plan::SessionPlan},
};
use muster_store::StoreError;
use std::{panic, thread};
use tokio::{
    runtime::{Builder, Runtime},
    sync::{mpsc, oneshot},
};

fn places(cli: &Cli, is_rehearsal: bool) -> Places {
    let places = Places::of(cli);
    if is_rehearsal { places.of_a_rehearsal() } else { places }
}

/// The folders of a session that is about to be this process's own.
pub fn folders(cli: &Cli, is_rehearsal: bool) -> anyhow::Result<Folders> {
    let places = places(cli, is_rehearsal);
    let folders = Folders::open(&places.stage, &places.output)
        .context("no place for running cases: choose another with --prefix, --stage or --output")?;
    Ok(folders.keeping_stages(cli.rounds.keep_stage_files))
}

/// So many batches of lines wait for the view; what is more is left out.
const LISTENED: usize = 64;

/// The parts of a session that this process holds before the session begins.
pub struct Held {
    pub folders: Folders,
    /// The sign of life of a session which was taken over.
    pub heartbeat: Option<SignOfLife>,
}

/// Runs a session to its end and reports it. Returns the exit code. `early` ends when the session has begun.
pub fn run(
    cli: &Cli,
    runtime: &Runtime,
    early: &Early,
    mut plan: SessionPlan,
    held: Held,
    wired: &Wired,
    terminal: Terminal,
) -> anyhow::Result<u8> {
    let Held { folders, heartbeat } = held;
    let places = places(cli, plan.is_rehearsal());
    let reports = ReportFiles::prepare(cli, &places, &plan.session)?;
    let store = match &plan.taken_over {
        Some(store) => Some(store.clone()),
        None if plan.is_rehearsal() => None,
        None => Some(database::open(cli, &places, runtime, terminal)?),
    };
    for expired in plan.quarantine.expired(&plan.cases.iter().map(|case| &*case.name).collect::<Vec<_>>()) {
        terminal.note(&format!("note: {expired}"));
    }
    let view = view(cli, &plan, terminal);
    view.header(&progress::Header {
        session: &plan.session,
        num_checks: plan.num_checks(),
        stage: &places.stage.to_string_lossy(),
        output: &places.output.to_string_lossy(),
        database: &if store.is_some() { places.database.display().to_string() } else { "none: a rehearsal is not stored".into() },
    });

    let (events, receiver) = mpsc::unbounded_channel();
    let (lines, written) = mpsc::channel(LISTENED);
    let config = EngineConfig {
        session: plan.session.clone(),
        folders,
        ownership: store.map(|store| Ownership { store, owner: owner::this_owner(), is_new: plan.taken_over.is_none() }),
        schedulers: wired.schedulers.clone(),
        events,
        lines: view.is_live().then_some(lines),
        policy: match cli.run.exec_policy {
            args::ExecPolicy::Serial => ExecPolicy::Serial,
            args::ExecPolicy::Async => ExecPolicy::Async,
        },
        maxfail: cli.run.maxfail,
        quarantine: plan.quarantine.clone(),
        judge: JudgeIn::Processes(wiring::judge_program().context("find this program, which judges in processes of its own")?),
        sweep: settings::on_this_database(cli, "sweep"),
        secrets: secrets::of(cli),
    };
    let begun = Begun::of(runtime, early, config, &plan, heartbeat, terminal)?;
    let watch = |frontend| view.watch(receiver, written, frontend);
    let conducted = conduct(runtime, begun, &mut plan, cli, wired, terminal, watch)?;
    let code = session::report(cli, &reports, &conducted.session, &plan.attempts, terminal);
    report_daemons(&conducted.removed, &plan.attempts, cli, terminal);
    if conducted.num_not_stored > 0 {
        let (count, database) = (conducted.num_not_stored, places.database.display());
        terminal.note(&format!("error: {count} result(s) of this session are not in the results database {database}"));
    }
    Ok(if code == 0 && !conducted.is_stored() { EXIT_UNWRITTEN } else { code })
}

/// A session that is over.
struct Conducted {
    session: Session,
    /// What jobs had left running.
    removed: Vec<Removed>,
    num_not_stored: u32,
    end_is_stored: bool,
}

impl Conducted {
    fn is_stored(&self) -> bool {
        self.num_not_stored == 0 && self.end_is_stored
    }
}

fn view(cli: &Cli, plan: &SessionPlan, terminal: Terminal) -> View {
    let to_relaunch = plan.to_relaunch();
    let num_ended = plan.attempts.last().count().saturating_sub(to_relaunch.len());
    View::new(terminal, cli.output.format.is_some(), plan.session.num_cases, num_ended, secrets::of(cli))
        .planned(plan.remaining().into_iter().chain(&to_relaunch))
}

/// A session that this process owns, and shows that it does.
struct Begun {
    signals: Signals,
    engine: Engine,
    session: Session,
    ownership: Option<Ownership>,
    heartbeat: Option<SignOfLife>,
}

impl Begun {
    fn of(
        runtime: &Runtime,
        early: &Early,
        config: EngineConfig,
        plan: &SessionPlan,
        heartbeat: Option<SignOfLife>,
        terminal: Terminal,
    ) -> anyhow::Result<Self> {
        let _guard = runtime.enter();
        let (session, ownership) = (config.session.clone(), config.ownership.clone());
        // Both listen until it has begun: no signal is lost.
        let signals = Signals::listen().context("listen to signals")?;
        let engine = runtime.block_on(session_loop::begin(config, plan))?;
        early.end();
        let taken = leave::taken(session.id.clone(), terminal);
        let start = |ownership: &Ownership| SignOfLife::start(&ownership.store, &session.id, taken);
        let heartbeat = heartbeat.or_else(|| ownership.as_ref().map(start));
        Ok(Self { signals, engine, session, ownership, heartbeat })
    }
}

/// Runs from the first launch until everything has ended, is stored and shown.
fn conduct(
    runtime: &Runtime,
    begun: Begun,
    plan: &mut SessionPlan,
    cli: &Cli,
    wired: &Wired,
    terminal: Terminal,
    watch: impl FnOnce(Frontend) -> thread::JoinHandle<()>,
) -> anyhow::Result<Conducted> {
    let Begun { signals, engine, session: started, ownership, heartbeat } = begun;
    let (is_running, end_of_session) = oneshot::channel::<()>();
    // On a thread of its own: the threads of the runtime may all wait for a file system that does not answer.
    let supervisor = Builder::new_current_thread().enable_all().build().context("start a thread for signals")?;
    let supervised = supervise(signals, engine.clone(), end_of_session, cli.clone(), terminal);
    thread::spawn(move || supervisor.block_on(supervised));

    let (frontend, waiting) = Frontend::of(plan.policy, plan.schedulers_to_run().into_iter());
    let watching = watch(frontend);
    let arguments = libtest_arguments(cli, waiting.len());
    let skips = if plan.session.fail_on_skip { Skips::Refused } else { Skips::Accepted };
    let trials = thread::spawn(move || {
        terminal::guarded(|| {
            let _ = libtest::run(&arguments, waiting, skips);
        });
    });
    let mut source = plan.source();
    let why = runtime.block_on(session_loop::run(&engine, &mut source, &plan.adjustments, &mut plan.attempts));
    if let Some(why) = why {
        terminal.note(&format!("note: {why}"));
    }
    let (mut removed, mut end_is_stored) = (Vec::new(), true);
    let session = match runtime.block_on(end(&engine, ownership, heartbeat, &mut plan.attempts, wired, &mut removed, terminal)) {
        Ok(session) => session,
        Err(StoreError::Taken { .. }) => runtime.block_on(leave::taken(started.id, terminal)),
        Err(error) => {
            end_is_stored = false;
            terminal.error(&anyhow::Error::new(error).context("the end of the session could not be stored"));
            Session { ended: Some(clock::now()), interrupted: engine.is_cancelled(), ..started }
        }
    };
    let num_not_stored = engine.num_not_stored();
    // The view ends when no sender of events is left, and the trials with it.
    drop((is_running, engine));
    let _ = watching.join();
    if let Err(panic) = trials.join() {
        panic::resume_unwind(panic);
    }
    Ok(Conducted { session, removed, num_not_stored, end_is_stored })
}

/// Tears down, ends what jobs had left running, and stores the end. `removed`: what was ended.
async fn end(
    engine: &Engine,
    ownership: Option<Ownership>,
    heartbeat: Option<SignOfLife>,
    attempts: &mut Attempts,
    wired: &Wired,
    removed: &mut Vec<Removed>,
    terminal: Terminal,
) -> Result<Session, StoreError> {
    session_loop::tear_down(engine, ownership.as_ref()).await?;
    *removed = wired.close(Some(engine.session()), engine.end_is_due(), terminal).await;
    // An ended session has no heart.
    drop(heartbeat);
    session_loop::end(engine, ownership, attempts).await
}

/// Without `--format` a person reads the lines of Muster, and libtest prints nothing.
fn libtest_arguments(cli: &Cli, cases: usize) -> libtest_mimic::Arguments {
    if let Some(arguments) = &cli.output.libtest {
        let test_threads = arguments.test_threads.or_else(|| Some(libtest::threads(cases)));
        return libtest_mimic::Arguments { test_threads, ..arguments.clone() };
    }
    let format = match cli.output.format {
        None => return libtest::silent(),
        Some(TestFormat::Pretty) => FormatSetting::Pretty,
        Some(TestFormat::Terse) => FormatSetting::Terse,
        Some(TestFormat::Json) => FormatSetting::Json,
    };
    libtest::printing(format, cases)
}

/// What jobs had left running: a check must not slow down the next one, or the users.
fn report_daemons(removed: &[Removed], attempts: &Attempts, cli: &Cli, terminal: Terminal) {
    for Removed { found, left } in removed {
        let identifier = &found.job.identifier;
        let case = attempts.kept().into_iter().find(|case| case.identifier.as_ref() == Some(identifier));
        let case = case.map_or_else(|| format!("job {identifier}"), |case| case.name.to_string());
        let again = || format!("could not end it; try `{}`", settings::on_this_database(cli, "sweep"));
        let end = if left.is_empty() { "ended it".to_owned() } else { again() };
        terminal.note(&format!("warning: {case} left a process running: {}: {end}", found.what));
    }
}

/// Cancels the session at the first signal, and ends the process at the second one, also while the session is reported: nobody may
/// read what is printed.
async fn supervise(mut signals: Signals, engine: Engine, end_of_session: oneshot::Receiver<()>, cli: Cli, terminal: Terminal) {
    tokio::select! {
        () = signals.supervise(&engine) => leave::at_once(&engine, &cli, terminal).await,
        _ = end_of_session => {}
    }
    let is_first = !engine.is_cancelled();
    drop(engine);
    if is_first {
        let name = signals.next().await;
        leave::print(terminal, format!("interrupted by {name}: the session has ended, its reports are written; {ONE_MORE}"))
            .await;
    }
    signals.second().await;
    NoEcho::end();
    exit::at_once(EXIT_INTERRUPTED)
}

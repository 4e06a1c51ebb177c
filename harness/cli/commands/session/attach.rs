//! `muster attach`: continues a session whose process is gone, and finishes it.
//!
//! ```text
//! owner gone -> Leases and row taken over, by compare-and-swap
//! store: session, results, started cases --+--> what runs is followed, what may have been launched is relaunched
//! its command line, read again -> selection -+--> cases that never started are run
//! all over -> one report of the whole session, each case once
//! ```
//! The judging rules of a case are stored with its plan: files that have changed since affect only cases that have not started.

use crate::{
    args::{self, Cli, Parsed},
    commands::session::{cases, command_line::unmasked},
    inputs::{
        modes, quarantine,
        selection::{self, Depth},
    },
    session::{
        self, Held,
        early::{self, Early},
        leave,
    },
    settings::{self, Places},
    terminal::Terminal,
    wiring::{
        self, Wired,
        database::{self, LATEST},
        owners, scope, secrets,
    },
};
use anyhow::{Context, bail};
use muster_check::{
    cases::test_case::TestCase,
    selection::adjust::Adjustments,
    site::{System, quarantine::List},
};
use muster_core::{
    case::{CaseName, SessionId},
    decisions::{attempts::Attempts, rounds::Policy},
    result::Session,
};
use muster_host::owner;
use muster_session::{
    ownership::takeover::{OwnedSession, PreviousOwner},
    runtime,
    session_loop::{plan::SessionPlan, rounds::Rounds, taken_over::Continued},
};
use muster_store::{JobRow, Location, Reader, SessionRow, SessionState, Store};
use std::{collections::BTreeSet, env, ffi::OsString, sync::Arc};
use tokio::runtime::Runtime;

/// Takes a session over and finishes it. The exit code is that of the whole session.
pub fn attach(cli: &Cli, session: &str, terminal: Terminal) -> anyhow::Result<u8> {
    let runtime = runtime::build().context("start the runtime")?;
    let early = Early::listen(&runtime, early::NOTHING_LAUNCHED, terminal)?;
    let reader = runtime.block_on(database::reader_of_writer(&Places::of(cli).database))?;
    let row = runtime.block_on(named(cli, &reader, session, terminal))?;
    let id = &row.session.id;
    match row.state {
        SessionState::Interrupted | SessionState::Unknown => {}
        SessionState::Ended if row.session.interrupted => {
            bail!("session {id} has ended, because it was interrupted by a signal: `-r --restore-session={id}` runs what is left")
        }
        SessionState::Ended => {
            let show = settings::on_this_database(cli, &format!("results show {id}"));
            bail!("session {id} has ended: `{show}` shows it")
        }
        SessionState::Running => return Err(owners::still_runs(&row)),
    }
    let unfinished = Unfinished::of(cli, row)?;
    let previous = runtime.block_on(gone_owner(&unfinished.parsed.cli, &reader, &unfinished.row, terminal))?;
    let previous = previous.ok_or_else(|| owners::still_runs(&unfinished.row))?;
    unfinished.load(&runtime, terminal)?.finish(previous, &runtime, &early)
}

/// The owner of an unfinished session, if it is gone. Waits until that is certain.
pub async fn gone_owner(
    cli: &Cli,
    reader: &Reader,
    row: &SessionRow,
    terminal: Terminal,
) -> anyhow::Result<Option<PreviousOwner>> {
    let started = reader.unfinished(&row.session.id).await?;
    let schedulers = scope::in_scope(cli, started.iter().map(|row| &row.job)).schedulers;
    Ok(PreviousOwner::find(schedulers, reader, row, &owners::told(terminal)).await)
}

/// A session that another process has left unfinished.
pub struct Unfinished {
    row: SessionRow,
    /// Its flags. This process is in its folder.
    parsed: Parsed,
}

impl Unfinished {
    /// Reads how the session was called. The working folder becomes that of the session.
    pub fn of(cli: &Cli, row: SessionRow) -> anyhow::Result<Self> {
        let database = Places::of(cli).database.absolute();
        let attach = settings::attach(cli, &row.session.id);
        let mut parsed = as_it_was_called(cli, &row.session, database, &attach)?;
        parsed.cli.reports.lay_under(&cli.reports);
        parsed.cli.run.file_mode = cli.run.file_mode.or(parsed.cli.run.file_mode);
        Ok(Self { row, parsed })
    }

    /// The flags of a command line that do not hold for it.
    pub fn ignored(&self, cli: &Cli) -> Vec<String> {
        let mut own = cli.clone();
        own.reports = self.parsed.cli.reports.clone();
        // What is set is the same, or this session would not be continued: perhaps from another source, and in another order.
        own.files.setvar.clone_from(&self.parsed.cli.files.setvar);
        own.files.parameterize.clone_from(&self.parsed.cli.files.parameterize);
        own.rounds.job_option.clone_from(&self.parsed.cli.rounds.job_option);
        let output = &self.parsed.cli.output;
        // These hold for what this process prints.
        (own.output.verbose, own.output.quiet, own.output.nocolor) = (output.verbose, output.quiet, output.nocolor);
        own.rounds.resume = self.parsed.cli.rounds.resume;
        settings::differing(&own, &self.parsed.cli)
    }

    /// Reads the files that it was started with. It is not touched yet.
    pub fn load(self, runtime: &Runtime, terminal: Terminal) -> anyhow::Result<LoadedSession> {
        let Self { row, parsed } = self;
        let cli = &parsed.cli;
        let terminal = Terminal { aside: args::takes_stdout(cli)?, ..terminal };
        let policy = match &row.session.source {
            Some(source) => Rounds::policy_of(source).with_context(|| format!("session {}", row.session.id))?,
            None => cli.rounds.policy()?,
        };
        let adjustments = Arc::new(cases::adjustments(cli)?);
        let mut selection = selection::select(cli, Depth::Every, terminal.live)?;
        settings::use_file_mode(cli, Some(&selection.system));
        terminal.diagnostics(&selection.diagnostics, &selection.sources);
        let quarantine = quarantine::list(&cli.rounds.quarantine, &selection, row.session.started)?;
        let cases = if selection.has_errors() {
            terminal.note("the check files have mistakes: only cases that have started are finished");
            Vec::new()
        } else {
            cases::arrange(cli, std::mem::take(&mut selection.cases), &adjustments, &row.session.id, runtime, terminal)?
        };
        Ok(LoadedSession { row, system: selection.system, parsed, policy, adjustments, quarantine, cases, terminal })
    }
}

/// An unfinished session with its files read: what is left to run.
pub struct LoadedSession {
    row: SessionRow,
    parsed: Parsed,
    system: Arc<System>,
    policy: Policy,
    adjustments: Arc<Adjustments>,
    quarantine: List,
    cases: Vec<TestCase>,
    terminal: Terminal,
}

impl LoadedSession {
    /// Takes it over and finishes it.
    pub fn finish(self, previous: PreviousOwner, runtime: &Runtime, early: &Early) -> anyhow::Result<u8> {
        let Self { row, parsed, system, policy, adjustments, quarantine, cases, terminal } = self;
        let cli = &parsed.cli;
        // Before it is taken over: who then finds it running must find its folders in use, too.
        let folders = session::folders(cli, false)?;
        let places = Places::of(cli);
        let store = database::open(cli, &places, runtime, terminal)?;
        let taken = runtime.block_on(async {
            let reader = Reader::of_writer(&places.database).await?.knowing(secrets::of(cli));
            let taken = leave::taken(row.session.id.clone(), terminal);
            anyhow::Ok(previous.take_over(&reader, store, &row, taken).await?)
        })?;
        terminal.note(&summary(&row.session, &taken, &cases));
        let OwnedSession { store, heartbeat, schedulers, results, started, teardowns } = taken;
        let partitions = wiring::partitions(started.iter().chain(&teardowns), &cli.files.schedulers);
        let wired = wiring::schedulers_with(schedulers, partitions.chain(cases::partitions(&cases, &adjustments)))?;
        runtime.block_on(end_teardowns(&teardowns, &wired, &store, &row.session.id, terminal))?;
        let continued = Continued {
            cases: &cases,
            system: &system,
            adjustments: &adjustments,
            has_secret: !secrets::of(cli).is_empty(),
            schedulers: &cli.files.schedulers,
        };
        let started = started.into_iter().map(|row| continued.queued(row)).collect();
        let plan = SessionPlan {
            attempts: Attempts::of(row.session.counting, results),
            session: Session { ended: None, interrupted: false, ..row.session },
            night: None,
            taken_over: Some(store),
            started,
            cases: cases.into(),
            policy,
            quarantine,
            adjustments,
        };
        session::run(cli, runtime, early, plan, Held { folders, heartbeat: Some(heartbeat) }, &wired, terminal)
    }
}

/// Ends the teardowns that the previous owner has started: they would remove what the remaining cases need. They run again at the
/// end.
async fn end_teardowns(
    teardowns: &[JobRow],
    wired: &Wired,
    store: &Store,
    session: &SessionId,
    terminal: Terminal,
) -> anyhow::Result<()> {
    let left = wired.end(teardowns, store).await;
    if left.is_empty() {
        return Ok(());
    }
    wired.close(None, None, terminal).await;
    let left = left.iter().map(|(row, why)| format!("{} ({why})", row.name)).collect::<Vec<_>>().join("; ");
    bail!(
        "session {session} was tearing down {left}, which may go on and would remove what cases need: end that and attach again, or \
         begin another session with --restore-session={session}"
    )
}

/// How many cases have ended, are taken up, and are run now.
fn summary(session: &Session, past: &OwnedSession, cases: &[TestCase]) -> String {
    let known: BTreeSet<&CaseName> = past.results.iter().map(|result| &result.name).collect();
    let ended = known.len();
    let known: BTreeSet<&CaseName> = known.into_iter().chain(past.started.iter().map(|row| &row.name)).collect();
    format!(
        "session {}: of {} case(s) {ended} have ended, {} are continued, and {} start now",
        session.id,
        session.num_cases,
        past.started.len(),
        cases.iter().filter(|case| !known.contains(&*case.name)).count()
    )
}

async fn named(cli: &Cli, reader: &Reader, session: &str, terminal: Terminal) -> anyhow::Result<SessionRow> {
    if session != LATEST {
        return database::session_named(cli, reader, session, terminal).await;
    }
    let is_left = |row: &SessionRow| matches!(row.state, SessionState::Interrupted | SessionState::Unknown);
    let found = reader.sessions(100, &owner::is_alive).await?.into_iter().find(is_left);
    if let Some(row) = &found {
        database::tell_of_latest(&cli.files, &row.session, terminal);
    }
    found.with_context(|| {
        let path = reader.database().display();
        format!("no session in {path} was left by a process that is gone: `-r --restore-session` goes on with one that was interrupted")
    })
}

/// The flags of the session, in its folder. What came from the environment then comes from the environment now.
fn as_it_was_called(cli: &Cli, session: &Session, database: Location, attach: &str) -> anyhow::Result<Parsed> {
    env::set_current_dir(&session.workdir)
        .with_context(|| format!("the folder {} in which session {} was started", session.workdir.display(), session.id))?;
    let given = cli.settings().map(|(long, mut settings)| {
        let listed = env::var(args::variable(long)).unwrap_or_default();
        settings.extend(args::listed(long, &listed).map(str::to_owned));
        (long, settings)
    });
    let command =
        unmasked(&session.command, &given, attach).with_context(|| format!("session {} cannot be continued", session.id))?;
    let argv: Vec<OsString> = command.iter().map(OsString::from).collect();
    let parsed = modes::parse(&argv, &cli.files.schedulers, &|name| env::var(name).ok());
    let mut parsed = parsed.with_context(|| {
        format!("the command line of session {} is not understood any more: {}", session.id, session.command.join(" "))
    })?;
    parsed.cli.run.db = Some(database);
    Ok(parsed)
}

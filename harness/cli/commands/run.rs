//! `-r`: runs the selected cases, shows how it goes, and reports.
//!
//! ```text
//! select -> store -> engine <- submit all     trials wait for the results, the view prints them as they come
//!                      '-> events -> view     signals: the first cancels, the second leaves at once
//! all over -> store: end -> run report, failures, figures, summary -> exit code
//! ```

use crate::{
    args::{self, Cli, Parsed},
    commands::list,
    selection::{self, Depth, Selection},
    settings::Places,
    terminal::Terminal,
    view::View,
    wire,
};
use anyhow::Context;
use muster_core::{
    case::SessionId,
    pipeline::{self, EXIT_INTERRUPTED, EXIT_USAGE},
    result::{CaseResult, Session},
};
use muster_report::{Results, failure, json, performance, progress, summary};
use muster_runner::{
    clock,
    engine::{Engine, EngineConfig, ExecPolicy, InFlight, Lease},
    identifier,
    local::owner,
    places,
    signals::Signals,
    trials::{self, Submitted},
};
use muster_store::Store;
use std::{collections::BTreeSet, fs, path::PathBuf, sync::Arc};
use tokio::sync::mpsc;

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
    let schedulers = wire::schedulers(&selection.cases)?;
    let places = Places::of(cli);
    let session = session(&selection, command_line)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start the runtime")?;

    let folders = places::Places::open(&places.stage, &places.output, &session.id)?;
    let store = runtime.block_on(Store::open(&places.database))?;
    for note in store.notes() {
        terminal.note(&format!("note: {note}"));
    }
    let header = progress::Header {
        session: &session,
        num_checks: num_checks(&selection),
        stage: &places.stage.to_string_lossy(),
        output: &places.output.to_string_lossy(),
        database: &places.database.to_string_lossy(),
    };
    let view = View::new(terminal, cli.output.format.is_some(), session.num_cases);
    view.header(&header);

    let (events, receiver) = mpsc::unbounded_channel();
    let _guard = runtime.enter();
    let signals = Signals::listen().context("listen to signals")?;
    let engine = runtime.block_on(Engine::begin(EngineConfig {
        session: session.clone(),
        places: folders,
        lease: Some(Lease { store: store.clone(), owner: owner::this_owner() }),
        schedulers,
        events,
        policy: match cli.run.exec_policy {
            args::ExecPolicy::Serial => ExecPolicy::Serial,
            args::ExecPolicy::Async => ExecPolicy::Async,
        },
        maxfail: cli.run.maxfail,
    }))?;
    let at_once = terminal;
    let supervised = signals.supervise(engine.clone());
    let supervisor = runtime.spawn(async move { leave_at_once(&supervised.await, at_once) });
    let watching = view.watch(receiver);

    let submitted: Vec<Submitted> = selection.cases.into_iter().map(|case| submit(&engine, case)).collect();
    trials::run(&arguments(cli, submitted.len()), submitted);
    let results = runtime.block_on(engine.finish());
    let ended = runtime.block_on(async {
        let session = engine.end().await?;
        store.close().await.map(|()| session)
    });
    let session = ended.unwrap_or_else(|error| {
        terminal.error(&anyhow::Error::new(error).context("the end of the session could not be stored"));
        Session { ended: Some(clock::now()), interrupted: engine.is_cancelled(), ..session }
    });
    supervisor.abort();
    drop(engine);
    let _ = watching.join();
    report(cli, &places, &session, &results, &selection.sites, terminal)
}

fn submit(engine: &Engine, case: muster_core::test_case::TestCase) -> Submitted {
    let (name, scheduler) = (case.name.clone(), case.place.partition.scheduler);
    Submitted { case: (*name).clone(), scheduler, result: engine.submit(case) }
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
    terminal.note("second signal: leaving at once");
    for flight in left {
        terminal.note(&format!("may be left: {} ({}), in {}", flight.case, flight.job.identifier, flight.job.stage.display()));
    }
    if !left.is_empty() {
        terminal.note("end what is left with: muster sweep");
    }
    std::process::exit(EXIT_INTERRUPTED.into());
}

fn report(
    cli: &Cli,
    places: &Places,
    session: &Session,
    cases: &[Arc<CaseResult>],
    sites: &[String],
    terminal: Terminal,
) -> anyhow::Result<u8> {
    let results = Results::new(session, cases.iter().map(Arc::as_ref));
    let code = pipeline::exit_code(cases.iter().map(|case| &case.outcome), session.interrupted);
    let file = write_report(cli, places, session, &json::report(&results, None)?);
    // With libtest's lines on stdout nothing else belongs there.
    if cli.output.format.is_none() {
        let screen = terminal.screen();
        let rerun: Vec<String> = rerun_options(cli, sites);
        let mut text = String::new();
        if terminal.level > -1 {
            text += &progress::ended(&results, session.ended.unwrap_or_default(), &screen);
        }
        let failures = failure::report(&results, &rerun, &screen);
        if !failures.is_empty() {
            text += "\n";
            text += &failures;
        }
        if let Some(format) = cli.output.performance_report {
            text += "\n";
            text += &performance::report(&results, table_format(format), &screen)?;
        }
        text += &summary::leftovers(&results, &screen);
        if terminal.level > -2 {
            text += "\n";
            text += &summary::summary(&results, session.ended.unwrap_or_default());
        }
        terminal.print(&text);
    }
    match file {
        Ok(path) if terminal.level > -1 && cli.output.format.is_none() => {
            terminal.print(&format!("Run report: {}\n", path.display()));
        }
        Ok(_) => {}
        Err(error) => terminal.error(&error),
    }
    Ok(code)
}

/// The options that find the same sites and checks again.
fn rerun_options(cli: &Cli, _sites: &[String]) -> Vec<String> {
    let pair = |flag: &str, value: &str| [flag.to_owned(), value.to_owned()];
    let config = cli.files.config_file.iter().flat_map(|path| pair("-C", &path.to_string_lossy()));
    let set = cli.files.setvar.iter().flat_map(|set| pair("-S", set));
    config.chain(set).collect()
}

fn table_format(format: args::TableFormat) -> performance::Format {
    match format {
        args::TableFormat::Pretty => performance::Format::Pretty,
        args::TableFormat::Plain => performance::Format::Plain,
        args::TableFormat::Csv => performance::Format::Csv,
    }
}

/// Writes the run report aside and renames it: a reader never sees half of one.
fn write_report(cli: &Cli, places: &Places, session: &Session, text: &str) -> anyhow::Result<PathBuf> {
    let default = || places.reports.join("run-{sessionid}.json");
    let path = cli.output.report_file.clone().unwrap_or_else(default);
    let path = PathBuf::from(path.to_string_lossy().replace("{sessionid}", &session.id.0));
    let failed = || format!("the run report {} could not be written", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(failed)?;
    }
    let aside = path.with_extension(format!("{}.part", session.id));
    fs::write(&aside, text).and_then(|()| fs::rename(&aside, &path)).with_context(failed)?;
    Ok(path)
}

//! `-r`: from the options to a session that is about to run.
//!
//! ```text
//! select -> order, share, copies -> (restored results) -> course
//! ```

use crate::{
    args::{Cli, Parsed},
    commands::{
        inspect::list,
        k8s,
        session::{
            distribute,
            resume::{self, Resumed},
        },
    },
    inputs::{
        quarantine, rehearse,
        selection::{self, Depth, Selection},
    },
    session_loop::{self, Course, restore},
    settings,
    terminal::Terminal,
    wiring,
};
use anyhow::Context;
use muster_check::{
    cases::test_case::TestCase,
    selection::{adjust::Adjustments, order::Order},
};
use muster_core::{
    case::{self, CaseName, SessionId},
    decisions::{
        pipeline::{EXIT_INTERRUPTED, EXIT_USAGE},
        rounds::Policy,
    },
    job::scheduler_kind::SchedulerKind,
    result::Session,
    secret::Secrets,
};
use muster_host::clock;
use muster_report::secret::{masked_setting, masked_words, secret_of};
use muster_session::{identifier, runtime};
use std::{collections::HashMap, path::PathBuf, sync::Arc};
use tokio::runtime::Runtime;

/// Runs the selection. The exit code is that of [`muster_core::decisions::rounds::exit_code`].
pub fn run(parsed: &Parsed, command_line: &[String], terminal: Terminal) -> anyhow::Result<u8> {
    let cli = &parsed.cli;
    let selection = selection::select(cli, Depth::Every, terminal.live)?;
    selected(parsed, selection, command_line, terminal)
}

/// Runs what is selected already; with `--resume` sweeps then, unless a signal wants the process to end.
pub fn selected(parsed: &Parsed, selection: Selection, command_line: &[String], terminal: Terminal) -> anyhow::Result<u8> {
    let runtime = runtime::build().context("start the runtime")?;
    let code = within(&runtime, &parsed.cli, selection, command_line, terminal)?;
    if parsed.cli.rounds.resume && code != EXIT_INTERRUPTED && code != EXIT_USAGE {
        resume::sweep_after(&parsed.cli, &runtime, terminal);
    }
    Ok(code)
}

fn within(
    runtime: &Runtime,
    cli: &Cli,
    mut selection: Selection,
    command_line: &[String],
    terminal: Terminal,
) -> anyhow::Result<u8> {
    let policy = cli.rounds.policy()?;
    let adjustments = Arc::new(adjustments(cli)?);
    terminal.diagnostics(&selection.diagnostics, &selection.sources);
    if selection.has_errors() {
        terminal.note("nothing was launched");
        return Ok(EXIT_USAGE);
    }
    if selection.cases.is_empty() {
        return Ok(list::told_if_empty(&selection, terminal));
    }
    let mistakes = if adjustments.play.is_none() { k8s::mistakes(&selection.cases)? } else { Vec::new() };
    if !mistakes.is_empty() {
        terminal.diagnostics(&mistakes, &selection.sources);
        terminal.note("nothing was launched");
        return Ok(EXIT_USAGE);
    }
    settings::use_file_mode(cli, Some(&selection.system));
    let mut session = session(cli, policy, &selection, command_line)?;
    let quarantine = quarantine::list(&cli.rounds.quarantine, &selection, session.started)?;
    let mut cases = lined_up(cli, std::mem::take(&mut selection.cases), &session.id, runtime)?;
    session.selection = case::selection(cases.iter().map(|case| &*case.name), &settings::that_change_what_runs(cli));
    if cases.is_empty() {
        terminal.note("nothing to do: no selected case is in this share (--shard)");
    }
    let resumed = if cli.rounds.resume { resume::resume(cli, &session, runtime, terminal)? } else { Resumed::Nothing };
    if let Resumed::Finished(code) = resumed {
        return Ok(code);
    }
    let before = match &cli.rounds.restore_session {
        Some(named) => restore::restore(cli, named, &mut cases, runtime, terminal)?,
        None => Vec::new(),
    };
    session.num_cases = u32::try_from(cases.len() + before.len()).unwrap_or(u32::MAX);
    let course = Course {
        session,
        taken: None,
        is_beside_another: matches!(resumed, Resumed::Lost),
        before: before.into_iter().map(Arc::new).collect(),
        begun: Vec::new(),
        wired: wiring::schedulers(partitions(&cases, &adjustments).into_iter())?,
        cases,
        policy,
        quarantine,
        adjustments,
    };
    session_loop::course(cli, runtime, course, terminal)
}

/// What the command line changes of every case.
pub fn adjustments(cli: &Cli) -> anyhow::Result<Adjustments> {
    Ok(Adjustments {
        skip_sanity: cli.rounds.skip_sanity_check,
        skip_performance: cli.rounds.skip_performance_check,
        sched_options: cli.rounds.job_option.clone(),
        play: cli.rounds.rehearse.as_deref().map(rehearse::play).transpose()?,
    })
}

/// The partitions of cases, each with its scheduler; a rehearsal needs no other than the fake.
pub fn partitions(cases: &[TestCase], adjustments: &Adjustments) -> Vec<(String, SchedulerKind)> {
    let kind = |kind| if adjustments.play.is_some() { SchedulerKind::Fake } else { kind };
    wiring::partitions(cases).map(|(name, scheduler)| (name, kind(scheduler))).collect()
}

/// This invocation's share of the cases, copied and in order.
///
/// # Errors
/// Nodes that nobody can name.
pub fn lined_up(cli: &Cli, mut cases: Vec<TestCase>, session: &SessionId, runtime: &Runtime) -> anyhow::Result<Vec<TestCase>> {
    if let Some(shard) = cli.rounds.shard {
        let names: Vec<_> = cases.iter().map(|case| &*case.name).collect();
        let mut takes = shard.takes(&names, &together(&cases)).into_iter();
        cases.retain(|_| takes.next().unwrap_or(false));
    }
    if let Some(wanted) = &cli.rounds.distribute {
        cases = distribute::distributed(&cases, wanted, runtime)?;
    }
    if let Some(copies) = cli.rounds.repeat {
        cases = distribute::repeated(&cases, copies);
    }
    if let Some(order) = cli.rounds.exec_order {
        Order::from(order).sort(&mut cases, &session.0);
    }
    Ok(cases)
}

/// The places of cases and of those that they need: a share holds both or neither.
fn together(cases: &[TestCase]) -> Vec<(usize, usize)> {
    let places: HashMap<&CaseName, usize> = cases.iter().enumerate().map(|(at, case)| (&*case.name, at)).collect();
    let of = |(at, case): (usize, &TestCase)| {
        let needs = case.needs().iter().filter_map(|need| places.get(&*need.case));
        needs.map(|need| (at, *need)).collect::<Vec<_>>()
    };
    cases.iter().enumerate().flat_map(of).collect()
}

fn session(cli: &Cli, policy: Policy, selection: &Selection, command_line: &[String]) -> anyhow::Result<Session> {
    Ok(Session {
        id: session_id()?,
        started: clock::now(),
        ended: None,
        command: masked_words(command_line),
        system: selection.system.name.clone(),
        user: std::env::var("USER")
            .or_else(|_| std::env::var("LOGNAME"))
            .unwrap_or_else(|_| rustix::process::getuid().as_raw().to_string()),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        workdir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        num_cases: 0,
        interrupted: false,
        counting: policy.counting(),
        extras: cli.rounds.session_extras.iter().map(without_secret).collect(),
        selection: String::new(),
    })
}

/// A fact about the session as it is stored and reported.
fn without_secret((name, value): &(String, String)) -> (String, String) {
    let shown = masked_setting(&format!("{name}={value}")).into_owned();
    (name.clone(), shown.strip_prefix(&format!("{name}=")).unwrap_or(&shown).to_owned())
}

/// The values that the command line sets and that are stored nowhere.
pub fn secrets(cli: &Cli) -> Secrets {
    Secrets::new(cli.files.setvar.iter().filter_map(|set| secret_of(set)))
}

/// `20261121-071500-kqzvwxyz`: sorts by time, reads well, fits a label of Kubernetes.
fn session_id() -> anyhow::Result<SessionId> {
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    Ok(SessionId(format!("{now}-{}", identifier::random()?)))
}

//! `-r`: from the options to a session that is about to run.
//!
//! ```text
//! select -> order, share, copies -> (restored results) -> session
//! ```

use crate::{
    args::{Cli, Parsed, PerformanceReport},
    commands::session::{
        cases, command_line,
        plan::{self, Plan, Purpose},
        resume::{self, Resumed},
    },
    inputs::{
        expansion,
        selection::{self, Depth, Selection},
    },
    reports::stored,
    session::{
        self, Held,
        early::{self, Early},
    },
    settings,
    terminal::Terminal,
    wiring::{self, budget, plans},
};
use anyhow::Context;
use muster_core::{
    decisions::{
        attempts::Attempts,
        pipeline::{EXIT_INTERRUPTED, EXIT_USAGE},
    },
    result::Session,
};
use muster_host::{account, clock};
use muster_report::secret::masked_setting;
use muster_session::{
    runtime,
    session_loop::{plan::SessionPlan, rounds::Rounds},
};
use std::{collections::BTreeMap, path::PathBuf};
use tokio::runtime::Runtime;

/// Runs the selection. The exit code is that of [`muster_core::decisions::rounds::end`].
pub fn run(parsed: &Parsed, command_line: &[String], terminal: Terminal) -> anyhow::Result<u8> {
    let cli = &parsed.cli;
    let selection = selection::select(cli, Depth::Every, terminal.live)?;
    selected(parsed, selection, command_line, terminal)
}

/// Runs a selection. With `--resume` it sweeps afterwards, unless a signal has interrupted the session.
pub fn selected(parsed: &Parsed, selection: Selection, command_line: &[String], terminal: Terminal) -> anyhow::Result<u8> {
    let runtime = runtime::build().context("start the runtime")?;
    let early = Early::listen(&runtime, early::NOTHING_LAUNCHED, terminal)?;
    let code = within(&runtime, &early, &parsed.cli, selection, command_line::stored(parsed, command_line), terminal)?;
    if parsed.cli.rounds.resume && code != EXIT_INTERRUPTED && code != EXIT_USAGE {
        resume::sweep_after(&parsed.cli, &runtime, terminal);
    }
    Ok(code)
}

fn within(
    runtime: &Runtime,
    early: &Early,
    cli: &Cli,
    selection: Selection,
    command: Vec<String>,
    terminal: Terminal,
) -> anyhow::Result<u8> {
    terminal.diagnostics(&selection.diagnostics, &selection.sources);
    if selection.has_errors() {
        terminal.note("nothing was launched");
        return Ok(EXIT_USAGE);
    }
    if selection.cases.is_empty() {
        return Ok(selection.report_if_empty(terminal));
    }
    settings::use_file_mode(cli, Some(&selection.system));
    let mut begun = begun(cli, &selection, command)?;
    let night = selection.system.nights.night_of(begun.started);
    begun.night = Some(night.date);
    let mistakes = plans::mistakes(&selection.cases, &plan::adjustments(cli, &selection, terminal)?)?;
    terminal.diagnostics(&mistakes, &selection.sources);
    if expansion::errors(&mistakes) > 0 {
        terminal.note("nothing was launched");
        return Ok(EXIT_USAGE);
    }
    let Some(plan) = plan::plan(cli, selection, Purpose::Run(early), &begun.id, runtime, terminal)? else { return Ok(0) };
    let Plan { selection: Selection { cases, .. }, restored, policy, adjustments, fingerprint, quarantine } = plan;
    begun.selection = fingerprint.unwrap_or_default();
    if budget::is_exceeded(cli.rounds.budget(), &cases, &adjustments, policy, terminal)? {
        terminal.note("nothing was launched");
        return Ok(EXIT_USAGE);
    }
    if let Some(PerformanceReport::Compared(with)) = &cli.output.performance_report
        && let Err(error) = stored::check(cli, with, &begun, &cases, terminal)
    {
        terminal.error(&error);
        terminal.note("nothing was launched");
        return Ok(EXIT_USAGE);
    }
    let resumed = if cli.rounds.resume { resume::resume(cli, &begun, runtime, early, terminal)? } else { Resumed::Nothing };
    if let Resumed::Finished(code) = resumed {
        return Ok(code);
    }
    begun.num_cases = u32::try_from(cases.len() + restored.len()).unwrap_or(u32::MAX);
    let wired = wiring::schedulers(cases::partitions(&cases, &adjustments).into_iter())?;
    let plan = SessionPlan {
        session: begun,
        night: Some(night),
        taken_over: None,
        attempts: Attempts::of(policy.counting(), restored),
        started: Vec::new(),
        cases: cases.into(),
        policy,
        quarantine,
        adjustments,
    };
    let folders = session::folders(cli, plan.is_rehearsal())?.beside_another(matches!(resumed, Resumed::TakenByOther));
    session::run(cli, runtime, early, plan, Held { folders, heartbeat: None }, &wired, terminal)
}

/// A session that begins now.
fn begun(cli: &Cli, selection: &Selection, command: Vec<String>) -> anyhow::Result<Session> {
    let policy = cli.rounds.policy()?;
    Ok(Session {
        id: plan::session_id(),
        started: clock::now(),
        ended: None,
        command,
        system: selection.system.name.clone(),
        user: account::this_user(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        workdir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        num_cases: 0,
        interrupted: false,
        counting: policy.counting(),
        fail_on_skip: cli.rounds.fail_on_skip,
        extras: cli.rounds.session_extras.iter().map(without_secret).collect(),
        facts: site_hash(selection),
        source: Some(Rounds::definition(policy)),
        ..Session::default()
    })
}

/// What the site file says, as a digest; the built-in system has no file.
fn site_hash(selection: &Selection) -> BTreeMap<String, String> {
    selection.site_hash.iter().map(|hash| ("site_hash".to_owned(), hash.clone())).collect()
}

/// A fact about the session as it is stored and reported.
fn without_secret((name, value): &(String, String)) -> (String, String) {
    let shown = masked_setting(&format!("{name}={value}")).into_owned();
    (name.clone(), shown.strip_prefix(&format!("{name}=")).unwrap_or(&shown).to_owned())
}

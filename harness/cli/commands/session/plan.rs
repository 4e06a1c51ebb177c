//! The plan of an invocation: shown by `-l`, `--describe` and `--dry-run`, run by `-r`.
//!
//! ```text
//! selection -> share (--shard) -> copies (--distribute, --repeat) -> order (--exec-order) -> those that --restore-session leaves
//! ```

use crate::{
    args::Cli,
    commands::session::{cases, restore},
    inputs::{quarantine, selection::Selection},
    session::early::Early,
    settings,
    terminal::Terminal,
    wiring::secrets,
};
use anyhow::bail;
use muster_check::{
    cases::test_case::{Rendered, TestCase},
    selection::adjust::Adjustments,
    site::quarantine::List,
};
use muster_core::{
    case::{self, SessionId},
    decisions::rounds::Policy,
    result::CaseResult,
};
use muster_host::clock;
use muster_session::identifier;
use muster_text::diagnostic;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// The cases of an invocation, and how they run.
pub struct Plan {
    /// The `cases` are those that run, in order.
    pub selection: Selection,
    /// The results of earlier sessions that hold.
    pub restored: Vec<CaseResult>,
    pub policy: Policy,
    /// The changes of the command line to every case.
    pub adjustments: Arc<Adjustments>,
    /// The fingerprint of these cases with those of `restored`, see [`case::selection`]. `None`: nothing runs.
    pub fingerprint: Option<String>,
    /// The cases whose outcomes do not count.
    pub quarantine: List,
}

/// The purpose of a plan.
#[derive(Clone, Copy)]
pub enum Purpose<'a> {
    /// Nothing is changed.
    Show,
    /// Jobs that an abandoned session has left are ended.
    Run(&'a Early),
}

/// Makes the plan of a selection for a session. `None`: the share of this invocation is empty, and that was said.
pub fn plan(
    cli: &Cli,
    mut selection: Selection,
    purpose: Purpose<'_>,
    session: &SessionId,
    runtime: &Runtime,
    terminal: Terminal,
) -> anyhow::Result<Option<Plan>> {
    let policy = cli.rounds.policy()?;
    let adjustments = Arc::new(adjustments(cli, &selection, terminal)?);
    let quarantine = quarantine::list(&cli.rounds.quarantine, &selection, clock::now())?;
    let was_empty = selection.cases.is_empty();
    selection.cases = cases::arrange(cli, std::mem::take(&mut selection.cases), &adjustments, session, runtime, terminal)?;
    if selection.cases.is_empty() && !was_empty {
        terminal.note("nothing to do: no selected case is in this share (--shard)");
        return Ok(None);
    }
    let fingerprint = || {
        let settings = settings::that_change_what_runs(cli);
        case::selection(selection.cases.iter().map(|case| &*case.name), &settings)
    };
    // It costs as much as a fifth of a listing.
    let fingerprint = matches!(purpose, Purpose::Run(_)).then(fingerprint);
    let restored = match &cli.rounds.restore_session {
        Some(named) => restore::restore(cli, named, &mut selection, purpose, runtime, terminal)?,
        None => Vec::new(),
    };
    Ok(Some(Plan { selection, restored, policy, adjustments, fingerprint, quarantine }))
}

/// Returns the changes of the command line to every case of a selection.
///
/// # Errors
/// An option of `-J` that no scheduler of these cases has, or that one of them refuses.
pub fn adjustments(cli: &Cli, selection: &Selection, terminal: Terminal) -> anyhow::Result<Adjustments> {
    let adjustments = cases::adjustments(cli)?;
    if let Err(mistake) = adjustments.check_options(&selection.partitions()) {
        let mut text = diagnostic::render(&[mistake], &selection.sources, terminal.live).trim_end().to_owned();
        secrets::of(cli).hide(&mut text);
        bail!("{text}");
    }
    Ok(adjustments)
}

impl Plan {
    /// See [`Adjustments::rehearsed`].
    pub fn rendered(&self, case: &TestCase) -> Option<Rendered> {
        self.adjustments.rehearsed(case)
    }
}

/// `20261121-071500-kqzvwxyz`: sorts by time, reads well, fits a label of Kubernetes.
pub fn session_id() -> SessionId {
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    SessionId(format!("{now}-{}", identifier::random()))
}

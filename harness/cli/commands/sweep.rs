//! `muster sweep`: stops and removes what abandoned sessions left, wherever the schedulers find it.

use crate::{
    args::{Cli, SweepArgs},
    inputs::selection,
    session::early::Early,
    settings::{self, Places},
    terminal::Terminal,
    wiring::{
        database, owners,
        scope::{self, Scoped},
    },
};
use muster_core::{
    case::SessionId,
    decisions::sweep::Stays,
    error::{SchedulerError, chain},
    job::inventory::Removed,
};
use muster_session::{
    ownership::{
        Owners, Wait,
        claims::Claims,
        sweep::{self, SweepOrder, Swept},
    },
    runtime,
};
use muster_store::Reader;
use std::{collections::BTreeSet, fmt::Write};

/// Removes what is left, or only lists it.
pub fn sweep(cli: &Cli, args: &SweepArgs, terminal: Terminal) -> anyhow::Result<u8> {
    let runtime = runtime::build()?;
    let early = Early::listen(&runtime, "the sweep has not ended, and leftovers may stay", terminal)?;
    let sweep = async |claims: &mut Claims| swept(cli, args, &BTreeSet::new(), Wait::UnlessDated, claims, terminal).await;
    let swept = runtime.block_on(early.holding(sweep))?;
    terminal.print(&swept.text);
    Ok(u8::from(!swept.is_all))
}

pub struct Summary {
    pub text: String,
    /// Everything was looked at, and nothing is left that should be removed.
    is_all: bool,
}

/// Sweeps, except for the sessions in `spared`: another command may still finish them. If this is dropped, `claims` are to be given
/// back.
pub async fn swept(
    cli: &Cli,
    args: &SweepArgs,
    spared: &BTreeSet<SessionId>,
    wait: Wait,
    claims: &mut Claims,
    terminal: Terminal,
) -> anyhow::Result<Summary> {
    let database = Places::of(cli).database;
    let reader = match (muster_store::exists(&database)?, args.dry_run) {
        (false, _) => None,
        (true, true) => Some(Reader::open(&database).await?),
        (true, false) => Some(database::reader_of_writer(&database).await?),
    };
    let open = match &reader {
        Some(reader) => reader.open_jobs().await?,
        None => Vec::new(),
    };
    // Who names a system does not want another one swept.
    let (site, broken) = selection::site_without_broken_files(&cli.files, terminal.live)?;
    if let Some(mistakes) = &broken {
        terminal.note(&format!("warning: a site file has mistakes, and its system is not swept:\n{}", mistakes.trim_end()));
    }
    let Scoped { schedulers, unreachable } = scope::in_scope_of(cli, Some(&site), &open);
    let remove_in = (!args.dry_run).then_some(&database);
    let order = SweepOrder { open: &open, spared, kept: args.kept, ids: &args.id, wait, remove_in };
    let owners = Owners { reader: reader.as_ref(), schedulers: &schedulers, tell: &owners::told(terminal) };
    let swept = sweep::sweep(&owners, order, claims).await?;
    let is_all = swept.is_all() && unreachable.is_empty() && broken.is_none();
    Ok(Summary { text: text(&swept, &unreachable, args.dry_run, cli), is_all })
}

fn text(swept: &Swept, unreachable: &[SchedulerError], is_dry_run: bool, cli: &Cli) -> String {
    let mut text = String::new();
    for note in swept.inventories.iter().flat_map(|inventory| &inventory.notes) {
        let _ = writeln!(text, "note: {note}");
    }
    for error in swept.inventories.iter().flat_map(|inventory| &inventory.blind).chain(unreachable) {
        let _ = writeln!(text, "not swept: {}", chain(error));
    }
    for (session, error) in &swept.unclaimed {
        let _ = writeln!(text, "error: {}: {}", owners::unclaimed(session), chain(error));
    }
    for id in &swept.not_found {
        let _ = writeln!(text, "nothing that was found has the identifier `{id}`: `muster sweep --dry-run --kept` lists all");
    }
    for (found, why) in &swept.stays {
        let why = match why {
            Stays::Kept => "it is kept, and only `--kept` removes it",
            Stays::Owned => "its session runs",
            Stays::Uncertain => "it is not certain that its session has ended",
        };
        let _ = writeln!(text, "not removed: {}: {why}", found.line());
    }
    report_removed(&swept.removed, is_dry_run, &mut text);
    for session in &swept.unfinished {
        let attach = settings::attach(cli, session);
        let _ = if is_dry_run {
            writeln!(text, "note: session {session} is not finished: `{attach}` continues it with all that still runs")
        } else {
            writeln!(text, "note: session {session} is not finished: `{attach}` runs the rest of it")
        };
    }
    if let Some(error) = &swept.unclosed {
        let _ = writeln!(text, "error: {}", chain(error));
    }
    text
}

fn report_removed(removed: &[Removed], is_dry_run: bool, text: &mut String) {
    for Removed { found, left } in removed {
        let word = match (left.is_empty(), is_dry_run) {
            (true, true) => "would remove",
            (true, false) => "removed",
            (false, _) => "could not remove",
        };
        let _ = writeln!(text, "{word} {}", found.line());
        for line in left {
            let _ = writeln!(text, "  {line}");
        }
    }
    let left = removed.iter().filter(|removed| !removed.left.is_empty()).count();
    let not = if left > 0 { format!(", {left} could not be removed") } else { String::new() };
    let _ = if is_dry_run {
        writeln!(text, "{} job(s) would be removed", removed.len())
    } else {
        writeln!(text, "{} job(s) removed{not}", removed.len() - left)
    };
}

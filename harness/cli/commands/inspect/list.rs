//! `-l`, `-L`, `--describe`, `--list-tags`: what would run.

use crate::{
    args::{Cli, Listing},
    inputs::selection::{self, Depth, Selection},
    terminal::Terminal,
};
use muster_check::cases::dependencies::Edge;
use muster_core::{decisions::pipeline::EXIT_USAGE, job::outputs::Binding};
use muster_report::{
    Paint,
    listing::{self, ListedCase, ListedNeed},
};

/// Lists the selection. Mistakes end with 2, but what is right is listed first.
pub fn list(cli: &Cli, terminal: Terminal) -> anyhow::Result<u8> {
    let selection = selection::select(cli, Depth::Sample, terminal.live)?;
    let action = &cli.action;
    let is_detailed = action.list_detailed.is_some() || action.describe;
    let paint = Paint { color: terminal.color };
    let listed: Vec<ListedCase> = (0..selection.cases.len()).map(|at| listed(&selection, at, is_detailed)).collect();
    let text = match (action.list, action.list_detailed) {
        (Some(Listing::T), _) => listing::checks(&listed, false, paint),
        (Some(Listing::C), _) => listing::cases(&listed, false, paint),
        (None, Some(Listing::T)) => listing::checks(&listed, true, paint),
        (None, Some(Listing::C)) => listing::cases(&listed, true, paint),
        (None, None) if action.list_tags => listing::tags(&listed, paint),
        (None, None) => listing::describe(&listed)?,
    };
    terminal.print(&text);
    terminal.diagnostics(&selection.diagnostics, &selection.sources);
    Ok(if selection.has_errors() { EXIT_USAGE } else { selection.report_if_empty(terminal) })
}

/// A case as listings want it. What a check says of itself may hold placeholders, so details need rendering.
fn listed(selection: &Selection, at: usize, is_detailed: bool) -> ListedCase {
    let case = &selection.cases[at];
    let rendered = is_detailed.then(|| case.render(&case.rehearsal()).ok()).flatten();
    let need = |edge: &Edge| ListedNeed {
        at: edge.at,
        fixture: match &edge.binding {
            Binding::Fixture(name) => Some(name.to_string()),
            Binding::Check(_) => None,
        },
    };
    ListedCase {
        name: (*case.name).clone(),
        about: rendered.map_or_else(|| case.about(), |rendered| rendered.about),
        is_fixture: case.is_fixture(),
        needs: selection.needs[at].iter().map(need).collect(),
    }
}

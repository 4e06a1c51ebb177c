//! `-l`, `-L`, `--describe`, `--list-tags`: what would run.

use crate::{
    args::{Cli, Listing},
    commands::session::plan::{self, Plan, Purpose},
    inputs::{
        expansion,
        selection::{self, Depth},
    },
    terminal::Terminal,
    wiring::{plans, secrets},
};
use anyhow::Context;
use muster_check::cases::test_case::TestCase;
use muster_core::{
    case::CaseName,
    decisions::pipeline::EXIT_USAGE,
    job::outputs::{Binding, Need},
};
use muster_report::{
    Paint,
    listing::{self, ListedCase, ListedNeed},
};
use muster_session::runtime;
use std::collections::{HashMap, HashSet};

/// Lists what the same command line with `-r` would run. Mistakes end with 2, as they do there: what is right is listed first, and a
/// check with a mistake is in no list.
pub fn list(cli: &Cli, terminal: Terminal) -> anyhow::Result<u8> {
    let selection = selection::select(cli, Depth::Sample, terminal.live)?;
    let runtime = runtime::build().context("start the runtime")?;
    let plan = plan::plan(cli, selection, Purpose::Show, &plan::session_id(), &runtime, terminal)?;
    let Some(plan) = plan else { return Ok(0) };
    let action = &cli.action;
    let is_rendered = action.list_detailed.is_some() || action.describe || action.list == Some(Listing::C);
    let paint = Paint { color: terminal.color };
    let is_sound = |case: &&TestCase| !plan.selection.unsound.contains(&case.check.name);
    let cases: Vec<&TestCase> = plan.selection.cases.iter().filter(is_sound).collect();
    let places: HashMap<&CaseName, usize> = if cases.iter().all(|case| case.needs().is_empty()) {
        HashMap::new()
    } else {
        cases.iter().enumerate().map(|(at, case)| (&*case.name, at)).collect()
    };
    let mut listed: Vec<ListedCase> = cases.iter().map(|case| listed(&plan, case, &places, is_rendered)).collect();
    let secrets = secrets::of(cli);
    if !secrets.is_empty() {
        for case in &mut listed {
            case.about.hide(&secrets);
        }
    }
    let text = match (action.list, action.list_detailed) {
        (Some(Listing::T), _) => listing::checks(&listed, false, paint),
        (Some(Listing::C), _) => listing::cases(&listed, false, paint),
        (None, Some(Listing::T)) => listing::checks(&listed, true, paint),
        (None, Some(Listing::C)) => listing::cases(&listed, true, paint),
        (None, None) if action.list_tags => listing::tags(&listed, paint),
        (None, None) => listing::describe(&listed)?,
    };
    terminal.print(&text);
    let selection = &plan.selection;
    terminal.diagnostics(&selection.diagnostics, &selection.sources);
    let mistakes = if selection.has_errors() { Vec::new() } else { plans::mistakes(&samples(&cases), &plan.adjustments)? };
    terminal.diagnostics(&mistakes, &selection.sources);
    let is_restored = !plan.restored.is_empty();
    Ok(if selection.has_errors() || expansion::errors(&mistakes) > 0 {
        EXIT_USAGE
    } else if is_restored {
        0
    } else {
        selection.report_if_empty(terminal)
    })
}

/// One case of each check on each partition: a mistake in its plan, such as a context that the kubeconfig does not have, is in
/// those of the others, and ten thousand plans take longer than their list.
fn samples(cases: &[&TestCase]) -> Vec<TestCase> {
    let mut seen = HashSet::new();
    cases.iter().filter(|case| seen.insert((&*case.name.check, &*case.name.partition))).map(|case| (*case).clone()).collect()
}

/// A case as listings want it. Its details, and whether it will run, need rendering, which takes longer than a list of names.
fn listed(plan: &Plan, case: &TestCase, places: &HashMap<&CaseName, usize>, is_rendered: bool) -> ListedCase {
    let rendered = is_rendered.then(|| plan.rendered(case)).flatten();
    // What has its result from an earlier session does not run.
    let need = |need: &Need| {
        let fixture = match &need.binding {
            Binding::Fixture(name) => Some(name.to_string()),
            Binding::Check(_) => None,
        };
        Some(ListedNeed { at: *places.get(&*need.case)?, fixture })
    };
    let (about, skip) = rendered.map_or_else(|| (case.about(), None), |rendered| (rendered.about, rendered.skip));
    ListedCase {
        name: (*case.name).clone(),
        about,
        skip,
        is_fixture: case.is_fixture(),
        needs: case.needs().iter().filter_map(need).collect(),
    }
}

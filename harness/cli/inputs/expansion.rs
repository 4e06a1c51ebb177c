//! Expands checks to cases and looks for mistakes in each: the loops around `muster_check::cases`.

use muster_check::{
    cases::{
        check::Check,
        dependencies::{self, Library, Planned, Rehearsal},
        test_case::{LaunchFacts, TestCase},
    },
    files::needs,
    site::facts::SystemFacts,
};
use muster_text::diagnostic::{Diagnostic, Severity};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

/// The depth to which the selected cases are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// One case of every check on every partition and environment: a listing has to be quick.
    Sample,
    /// Every case, since any of them may be launched.
    Every,
}

/// All cases of a system, before any filter, each once for every variant of its fixtures. Checks with mistakes join `unsound`.
pub fn expand(
    checks: &[Arc<Check>],
    facts: &SystemFacts,
    unsound: &mut BTreeSet<Arc<str>>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<TestCase> {
    let before = errors(diagnostics);
    needs::check(checks.iter().map(|check| (&*check.name, &check.needs)), diagnostics);
    let can_fork = errors(diagnostics) == before;
    let fixtures = needs::used_as_fixtures(checks.iter().map(|check| &check.needs));
    let mut library = Library::new(checks.iter(), facts);
    let mut all = Vec::new();
    for check in checks {
        if fixtures.contains(&*check.name) && !check.runs_by_itself() {
            continue;
        }
        let before = errors(diagnostics);
        for case in check.cases(facts, diagnostics) {
            if can_fork {
                all.extend(library.fork(case, diagnostics));
            } else if !check.needs.any() {
                all.push(case);
            }
        }
        if errors(diagnostics) > before {
            unsound.insert(check.name.clone());
        }
    }
    all
}

/// Renders cases for their mistakes, with stand-ins for what others leave; these are given back where there are any. Checks with
/// mistakes join `unsound`.
pub fn look_at(
    planned: &[Planned],
    unsound: &mut BTreeSet<Arc<str>>,
    depth: Depth,
    diagnostics: &mut Vec<Diagnostic>,
) -> HashMap<usize, LaunchFacts> {
    let needed = dependencies::needed(planned);
    let (mut rehearsal, mut all_facts, mut seen) = (Rehearsal::default(), HashMap::new(), HashSet::new());
    let mut wrong = BTreeSet::new();
    for (at, Planned { case, needs }) in planned.iter().enumerate() {
        let is_new = seen.insert((Arc::as_ptr(&case.check), Arc::as_ptr(&case.place)));
        // A mistake in the check itself would be reported again for each of its cases.
        if unsound.contains(&case.check.name) || (depth == Depth::Sample && !is_new && !needed[at]) {
            continue;
        }
        let Some(facts) = rehearsal.facts(planned, at, needed[at]) else { continue };
        match case.render(&facts) {
            Ok(rendered) => rehearsal.leaves(at, &rendered),
            Err(mistakes) => {
                wrong.insert(case.check.name.clone());
                add_new(mistakes, case, diagnostics);
            }
        }
        if needed[at] || !needs.is_empty() {
            all_facts.insert(at, facts);
        }
        // A thousand cases with the same mistake are one mistake; what differs with a parameter shows in a few.
        if errors(diagnostics) > 100 {
            break;
        }
    }
    unsound.append(&mut wrong);
    all_facts
}

fn add_new(mut mistakes: Vec<Diagnostic>, case: &TestCase, diagnostics: &mut Vec<Diagnostic>) {
    // What fails for one case and not for the one before it, fails because of its parameters or its place.
    for mistake in mistakes.iter_mut().filter(|mistake| mistake.hint.is_none()) {
        mistake.hint = Some(format!("it is so for {}", case.name));
    }
    let is_known =
        |mistake: &Diagnostic| diagnostics.iter().any(|known| known.span == mistake.span && known.message == mistake.message);
    mistakes.retain(|mistake| !is_known(mistake));
    diagnostics.append(&mut mistakes);
}

/// Returns the number of errors.
pub fn errors(diagnostics: &[Diagnostic]) -> usize {
    diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count()
}

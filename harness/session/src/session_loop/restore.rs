//! `--restore-session`: which cases run again, and which results of earlier sessions hold.

use crate::session_loop::relaunch::Relaunch;
use muster_check::{cases::test_case::TestCase, selection::adjust::Adjustments};
use muster_core::{
    case::CaseName,
    decisions::{attempts::Attempts, rounds},
    result::{CaseResult, Counting, Session},
};
use muster_store::{Store, StoreError};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};
use tokio::task::JoinSet;

/// So many restored results are written at once: the store commits what has queued.
const AT_ONCE: usize = 256;

/// Leaves in `cases` those that run, and returns the results that hold. Of several sessions the later ones take precedence, and what
/// any of them can give does not run. `failed`: only what did not succeed runs.
pub fn divide(cases: &mut Vec<TestCase>, past: &[(Session, Vec<CaseResult>)], failed: bool) -> Vec<CaseResult> {
    let selected: Vec<&CaseName> = cases.iter().map(|case| &*case.name).collect();
    let mut taken: BTreeMap<CaseName, CaseResult> = BTreeMap::new();
    let mut again: Option<BTreeSet<CaseName>> = None;
    for (session, results) in past {
        let restored = rounds::restore(&selected, session, results, failed);
        taken.extend(restored.results.into_iter().map(|result| (result.name.clone(), result)));
        again = Some(match again {
            None => restored.again,
            Some(before) => &restored.again & &before,
        });
    }
    let mut again = again.unwrap_or_default();
    let gone = {
        let run = cases.iter().filter(|case| again.contains(&*case.name)).map(|case| (&*case.name, case.needs()));
        let known = Attempts::of(Counting::Last, taken.values().cloned());
        Relaunch::of(cases, &Arc::new(Adjustments::default())).names(&run.collect(), &known)
    };
    again.extend(gone);
    taken.retain(|name, _| !again.contains(name));
    cases.retain(|case| again.contains(&case.name));
    taken.into_values().collect()
}

/// The name of a case without what distinguishes its copies.
pub fn plain(name: &CaseName) -> CaseName {
    CaseName { hidden: String::new(), ..name.clone() }
}

/// Returns the cases that no other one needs: an earlier session has to have one of them, to be continued. Others may share needs.
pub fn wanted(cases: &[TestCase]) -> BTreeSet<CaseName> {
    let needed: BTreeSet<&CaseName> = cases.iter().flat_map(TestCase::needs).map(|need| &*need.case).collect();
    cases.iter().filter(|case| !needed.contains(&*case.name)).map(|case| plain(&case.name)).collect()
}

/// The cases as earlier sessions had copied them (`--repeat`, `--distribute`), where this invocation copies none. `past`: their
/// cases.
pub fn as_copied<'a>(cases: &[TestCase], past: impl Iterator<Item = &'a CaseName>) -> Vec<TestCase> {
    if cases.iter().any(|case| !case.name.hidden.is_empty()) {
        return cases.to_vec();
    }
    let once = TestCase::once(cases);
    let mut known: BTreeMap<CaseName, BTreeSet<&str>> = BTreeMap::new();
    for name in past {
        known.entry(plain(name)).or_default().insert(&name.hidden);
    }
    // A copy needs copies of what it needs, and these of what they need, in whatever order they are.
    let mut has_grown = true;
    while std::mem::take(&mut has_grown) {
        for case in cases.iter().rev().filter(|case| !once.contains(&case.name)) {
            let copies = known.entry((*case.name).clone()).or_insert_with(|| BTreeSet::from([""])).clone();
            for need in case.needs() {
                let of_need = known.entry((*need.case).clone()).or_default();
                let before = of_need.len();
                of_need.extend(&copies);
                has_grown |= of_need.len() > before;
            }
        }
    }
    let copies = |case: &TestCase| -> Vec<TestCase> {
        let Some(copies) = known.get(&*case.name).filter(|_| !once.contains(&case.name)) else { return vec![case.clone()] };
        copies.iter().map(|hidden| copy(case, hidden, &once)).collect()
    };
    cases.iter().flat_map(copies).collect()
}

/// The copy with this text in its name: `%.nid=node-1 %.repeat_no=0`.
fn copy(case: &TestCase, hidden: &str, once: &HashSet<Arc<CaseName>>) -> TestCase {
    hidden.split(' ').filter(|word| !word.is_empty()).fold(case.clone(), |case, word| match word.strip_prefix("%.nid=") {
        Some(node) => case.on(node, once),
        None => case.copy(word, once),
    })
}

/// Stores restored results as this session's: its report is one for the whole, today and when it is shown again.
pub(crate) async fn store(store: &Store, session: &Session, restored: &[&Arc<CaseResult>]) -> Result<(), StoreError> {
    for some in restored.chunks(AT_ONCE) {
        let mut written = JoinSet::new();
        for result in some {
            let (store, session, result) = (store.clone(), session.id.clone(), Arc::clone(result));
            written.spawn(async move { store.finished(&session, &result).await });
        }
        while let Some(written) = written.join_next().await {
            written.unwrap_or(Ok(()))?;
        }
    }
    Ok(())
}

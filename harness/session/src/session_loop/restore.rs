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
    collections::{BTreeMap, BTreeSet},
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
        Relaunch::new(cases, &Arc::new(Adjustments::default())).names(&run.collect(), &known)
    };
    again.extend(gone);
    taken.retain(|name, _| !again.contains(name));
    cases.retain(|case| again.contains(&case.name));
    taken.into_values().collect()
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

//! The files that a command has to name to run one case alone.

use super::{check::Check, dependencies::Planned};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The files other than its own that have to be named so that a case is found, and its file is read without a mistake, for each
/// case: every check of a file that is named has to find what it needs.
pub fn other_files(planned: &[Planned], checks: &[Arc<Check>]) -> Vec<Vec<Arc<str>>> {
    let by_name: BTreeMap<&str, &Check> = checks.iter().map(|check| (&*check.name, &**check)).collect();
    let mut next: BTreeMap<&str, BTreeSet<&Arc<str>>> = BTreeMap::new();
    for check in checks {
        let needed = check.needs.checks().filter_map(|name| by_name.get(&*name.value)).map(|needed| &needed.path);
        next.entry(&check.path).or_default().extend(needed);
    }
    // The others are found by the path that a check writes.
    let named: BTreeSet<&str> = checks.iter().filter(|check| !check.is_imported).map(|check| &*check.path).collect();
    let mut known: BTreeMap<&str, Vec<Arc<str>>> = BTreeMap::new();
    let others = |own: &Arc<str>| -> Vec<Arc<str>> {
        let mut found = BTreeSet::from([own]);
        let mut new = vec![own];
        while let Some(file) = new.pop() {
            new.extend(next.get(&**file).into_iter().flatten().copied().filter(|needed| found.insert(needed)));
        }
        found.into_iter().filter(|file| *file != own && named.contains(&***file)).cloned().collect()
    };
    for Planned { case, .. } in planned {
        known.entry(&case.check.path).or_insert_with(|| others(&case.check.path));
    }
    planned.iter().map(|planned| known.get(&*planned.case.check.path).cloned().unwrap_or_default()).collect()
}

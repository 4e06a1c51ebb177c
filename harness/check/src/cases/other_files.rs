//! The files that a command has to name to run one case alone.

use super::dependencies::Planned;
use std::{collections::BTreeSet, sync::Arc};

/// The files other than its own that have to be named so that a case finds what it needs, for each case.
pub fn other_files(all: &[Planned]) -> Vec<Vec<Arc<str>>> {
    let mut files: Vec<BTreeSet<Arc<str>>> = Vec::with_capacity(all.len());
    for Planned { needs, .. } in all {
        let mut found = BTreeSet::new();
        for edge in needs {
            let check = &all[edge.at].case.check;
            // The others are found by the path that the check writes.
            if !check.is_imported {
                found.insert(Arc::clone(&check.path));
            }
            found.extend(files[edge.at].iter().cloned());
        }
        files.push(found);
    }
    let others = |(Planned { case, .. }, files): (&Planned, BTreeSet<Arc<str>>)| {
        files.into_iter().filter(|file| *file != case.check.path).collect()
    };
    all.iter().zip(files).map(others).collect()
}

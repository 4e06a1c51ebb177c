//! Tests of what the engine keeps of cases that have ended.

use crate::engine::dependencies::{Dependencies, Recalled};
use muster_core::{
    case::CaseName,
    job::outputs::CaseOutputs,
    result::{CaseResult, Outcome},
};
use std::sync::Arc;

#[test]
fn what_is_left_of_a_case_is_told_once() {
    let name = CaseName {
        display: "f".into(),
        check: "f".into(),
        hash: "0".into(),
        system: "s".into(),
        partition: "p".into(),
        environ: "e".into(),
        hidden: String::new(),
    };
    let mut order = Dependencies::default();
    let folder = tempfile::tempdir().expect("a folder");
    let recalled = |stage| {
        let outputs = CaseOutputs { stage, ..CaseOutputs::default() };
        Recalled::look(Arc::new(left(&name, outputs)), false)
    };
    order.recall(recalled(folder.path().to_owned()));
    assert_eq!(order.rest().len(), 1);
    assert_eq!(order.rest().len(), 0);
    let gone = folder.path().join("gone");
    order.recall(recalled(gone));
    assert_eq!(order.rest().len(), 0, "another process tore it down");
}

fn left(name: &CaseName, outputs: CaseOutputs) -> CaseResult {
    let about = muster_core::result::About {
        descr: String::new(),
        tags: vec![],
        maintainers: vec![],
        file: String::new(),
        other_files: Vec::new(),
        parameters: vec![],
        scheduler: "fake".into(),
        num_tasks: 1,
        ..muster_core::result::About::default()
    };
    let mut record = crate::case::record::Record::of(Arc::new(name.clone()), about, 1, muster_text::time::Timestamp(0));
    record.result.outputs = Some(Box::new(outputs));
    let end = crate::case::record::End { outcome: Outcome::Pass, phase: muster_core::result::Phase::Sanity, cause: None };
    record.close(end, muster_text::time::Timestamp(1))
}

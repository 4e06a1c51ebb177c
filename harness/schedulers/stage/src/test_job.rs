//! A job with an empty stage folder, for tests.

use muster_core::{
    case::{Identifier, SessionId},
    job::{handle::JobHandle, scheduler::Job},
};
use tempfile::TempDir;

pub(crate) fn job() -> (TempDir, Job) {
    let folder = tempfile::tempdir().unwrap();
    let job = Job {
        identifier: Identifier::parse("aotugiob").unwrap(),
        session: SessionId("s1".into()),
        case: String::new(),
        scheduler: "local".into(),
        stage: folder.path().to_owned(),
        handle: JobHandle::of(()),
    };
    (folder, job)
}

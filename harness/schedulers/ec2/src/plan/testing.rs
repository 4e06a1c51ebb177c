//! Workloads of tests.

use super::{CONFIG, NAME};
use muster_core::{
    case::{CaseName, Identifier, SessionId},
    job::workload::{Limits, Program, Workload},
};
use muster_text::Value;
use serde_json::json;
use std::time::Duration;

pub(crate) fn workload(config: Value, options: Value) -> Workload {
    Workload {
        identifier: Identifier::parse("aotugiob").unwrap(),
        session: SessionId("20261125-120000-abcdefgh".into()),
        case: CaseName {
            display: "stream".into(),
            check: "stream triad".into(),
            system: "aws".into(),
            partition: "c7i".into(),
            ..CaseName::default()
        },
        stage: "/stage".into(),
        staging: None,
        keep_files: Vec::new(),
        program: Program::Script { text: "#!/bin/sh\n./triad\n".to_owned(), pass_env: Vec::new() },
        scheduler: NAME.into(),
        own: serde_json::Map::from_iter([(CONFIG.to_owned(), config)]),
        shared: serde_json::Map::new(),
        num_tasks: 1,
        sched_options: options,
        limits: Limits { pending: None, run: Some(Duration::from_mins(20)), judge: Duration::ZERO },
        keep_failed: None,
    }
}

pub(crate) fn site() -> Value {
    json!({ "region": "eu-west-1", "bucket": "s3://bench/ci", "subnets": ["subnet-0a1b2c3d", "subnet-1b2c3d4e"] })
}

pub(crate) fn plain() -> Value {
    json!({ "ami": "ami-0abc1234def567890", "instance_type": "c7i.8xlarge" })
}

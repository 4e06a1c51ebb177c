//! The fixture by itself.

use super::cloud::Cloud;
use serde_json::json;
use std::{env, path::Path, process::Command};

/// Its own tests are in Python: they call it as any client of EC2 does.
pub(crate) fn the_fixture_keeps_its_promises() {
    let python = env::var_os("MUSTER_EC2_PYTHON").expect("the tests run within tests/ec2/run");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ec2");
    let ended = Command::new(python)
        .args(["-m", "unittest", "discover", "--pattern", "test_*.py", "--start-directory"])
        .arg(tests)
        .output()
        .expect("Python");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

pub(crate) fn a_cloud_answers_who_asks_it() {
    let cloud = Cloud::start();
    assert_eq!(cloud.region, "eu-west-1");
    assert_eq!(cloud.ask("calls", json!({}))["calls"], json!({}));
    assert!(cloud.instances().is_empty());
    let error = std::panic::catch_unwind(|| Cloud::start().ask("set", json!({ "visibel": 5 }))).expect_err("no such switch");
    let error = error.downcast_ref::<String>().map(String::as_str).unwrap_or_default();
    assert!(error.contains("there is no switch visibel"), "{error}");
}

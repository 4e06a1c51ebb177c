use super::*;
use crate::testing::schedulers;
use std::path::Path;

/// Compares a schema with its file at the root of the repository; with `MUSTER_UPDATE=1` it writes the file first.
pub(crate) fn assert_fresh(file: &str, schema: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let text = serde_json::to_string_pretty(schema).unwrap() + "\n";
    if std::env::var_os("MUSTER_UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "{file} differs from the key table; run: MUSTER_UPDATE=1 cargo test -p muster-check");
}

#[test]
fn the_schema_in_the_repository_follows_the_key_table() {
    assert_fresh("check.schema.json", &schema(&schedulers()));
    assert_fresh("references.schema.json", &references_schema());
}

//! docs/reference.md is generated from the key tables; `MUSTER_UPDATE=1` writes it.

mod reference;
mod schedulers;

use std::path::Path;

#[test]
fn the_reference_page_follows_the_schemas() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    let page = reference::page(&schedulers::schedulers());
    if std::env::var_os("MUSTER_UPDATE").is_some() {
        std::fs::write(&path, &page).expect("written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let update = "MUSTER_UPDATE=1 cargo test -p muster-check";
    assert!(written == page, "docs/reference.md differs from the key tables; run: {update}");
}

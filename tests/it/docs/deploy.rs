//! deploy/: what its recipe says of the workspace holds. The image itself is built by tests/container/run.

use std::{fs, path::Path};

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_containerfile_has_the_toolchain_of_the_workspace_and_is_given_the_manifest_of_every_crate() {
    let recipe = read("deploy/Containerfile");
    let toolchain = read("rust-toolchain.toml");
    let channel = toolchain.split("channel = \"").nth(1).and_then(|rest| rest.split('"').next()).expect("a channel");
    assert!(
        recipe.contains(&format!("rust:{channel}-slim")),
        "deploy/Containerfile builds with another toolchain than {channel}"
    );
    let ignored = read(".containerignore");
    assert!(
        recipe.contains("! -path ./.cargo/config.toml") && ignored.contains("\n!.cargo/config.toml\n"),
        "the dependencies are built without .cargo/config.toml"
    );
    // The recipe finds every manifest in what it is given.
    let workspace = read("Cargo.toml");
    let members = workspace.split("members = [").nth(1).and_then(|rest| rest.split(']').next()).expect("members");
    for member in members.split('"').skip(1).step_by(2) {
        let (folder, name) = member.split_once('/').expect("a folder");
        let is_given = ignored.contains(&format!("\n!{folder}\n"));
        assert!(is_given, ".containerignore leaves out the manifest of {folder}/{name}");
    }
}

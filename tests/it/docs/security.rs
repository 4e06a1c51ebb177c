//! docs/security.md: who only looks at a check runs nothing of it.

use crate::sandbox::Sandbox;

const HOSTILE: &str = "name: hostile
valid_systems: ['*']
variables: { x: '$(touch pwned)' }
env_vars: { A: '$(touch pwned)' }
prerun_cmds: touch pwned
executable: touch pwned && echo ${{ x }}
sanity: [{ found: pwned }]
";

#[test]
fn to_list_lint_format_or_dry_run_a_check_runs_no_command_of_it() {
    let sandbox = Sandbox::with_check(&HOSTILE.replace("pwned", &sandbox_path()));
    let looks: [&[&str]; 8] = [
        &["-l"],
        &["-L"],
        &["--describe"],
        &["--list-tags"],
        &["--dry-run"],
        &["--ci-generate", "pipeline.yml"],
        &["check", "lint", "check.yaml"],
        &["check", "fmt", "--diff", "check.yaml"],
    ];
    let marker = std::path::PathBuf::from(sandbox_path());
    for look in looks {
        sandbox.muster(&[&["-c", "check.yaml"], look].concat());
        assert!(!marker.exists(), "{look:?} ran a command of the check");
    }
    // The marker is one that a run leaves.
    sandbox.muster(&["-c", "check.yaml", "--system", "local", "-r"]);
    assert!(marker.exists(), "the check does not do what it says");
    std::fs::remove_file(marker).expect("the marker");
}

/// A file outside of what a run keeps.
fn sandbox_path() -> String {
    std::env::temp_dir().join(format!("muster-it-hostile-{}", std::process::id())).to_string_lossy().into_owned()
}

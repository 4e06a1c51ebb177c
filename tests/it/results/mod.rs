//! Questions to stored results, on forty nights of data.sql.

mod bad_input;
mod nights;
mod questions;
mod references;
mod reframe;
mod server;
mod sessions;

use crate::sandbox::Sandbox;
use std::fs;

/// A folder whose `r.db` has forty nights of one system.
pub(crate) fn forty_nights() -> Sandbox {
    let sandbox = Sandbox::new();
    empty(&sandbox, "r.db");
    let forty = sandbox.path("r.db");
    muster_test_database::create(&forty, include_str!("data.sql")).expect("forty nights");
    sandbox
}

/// A database without a session.
fn empty(sandbox: &Sandbox, name: &str) {
    fs::write(sandbox.path(name), "").expect("a file");
    let made = sandbox.muster(&["results", "migrate", "--db", name]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
}

/// What a command on it prints; its exit code must be this one.
fn asked(sandbox: &Sandbox, args: &[&str], code: i32) -> String {
    let ended = sandbox.muster(&[&["results"], args, &["--db", "r.db"]].concat());
    assert_eq!(ended.code, Some(code), "{args:?}\n{}{}", ended.stdout, ended.stderr);
    ended.stdout + &ended.stderr
}

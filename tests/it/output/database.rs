//! The database of a team: where its URL is taken from, and that its password is shown nowhere.

use crate::sandbox::{Ended, Sandbox};
use muster_test_database::server::Server;
use std::{fs, path::Path};

const CHECK: &str = "name: a\nvalid_systems: ['*']\nexecutable: exit 1\nsanity: []\n";

/// Nobody listens there.
const URL: &str = "postgres://ada:s3cret@127.0.0.1:1/muster";

fn with_url(sandbox: &Sandbox, url: &str, args: &[&str]) -> Ended {
    let ended = sandbox.ended(&sandbox.command(args).env("MUSTER_DB", url).output().expect("runs"));
    for text in [&ended.stdout, &ended.stderr] {
        assert!(!text.contains("s3c"), "{args:?} shows the password: {text}");
    }
    ended
}

/// Whether a file of a folder, or of one in it, contains a text.
fn contains(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).any(|path| {
        if path.is_dir() {
            contains(&path, text)
        } else {
            fs::read(&path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text))
        }
    })
}

#[test]
fn a_password_on_the_command_line_is_refused() {
    let sandbox = Sandbox::with_check(CHECK);
    let urls = ["postgres://ada:s3cret@db/muster", "postgresql://db/muster?user=ada&password=s3cret"];
    for args in urls.map(|url| ["results", "list", "--db", url]) {
        let ended = sandbox.muster(&args);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
        assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
        insta::allow_duplicates! {
            insta::assert_snapshot!(ended.stderr.lines().next().unwrap_or_default(), @"error: the URL of --db contains a password, which other users can read on a command line: put the URL into MUSTER_DB, or the password into ~/.pgpass or the file that `?passfile=` names");
        }
    }
}

#[test]
fn the_password_of_a_url_is_shown_nowhere() {
    let sandbox = Sandbox::with_check(CHECK);
    let shown = with_url(&sandbox, URL, &["config", "show"]);
    let row = shown.stdout.lines().find(|line| line.trim_start().starts_with("db ")).expect("a row");
    let row: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(row, ["db", "postgres://ada:***@127.0.0.1:1/muster", "environment", "MUSTER_DB"]);
    for args in [&["--help"][..], &["results", "list", "--help"], &["results", "--db"], &["-c", "check.yaml", "--no-such-flag"]] {
        with_url(&sandbox, URL, args);
    }
    for args in
        [&["results", "list"][..], &["results", "migrate"], &["sweep"], &["top"], &["attach"], &["-c", "check.yaml", "-r"]]
    {
        let ended = with_url(&sandbox, URL, args);
        assert_eq!(ended.code, Some(2), "{args:?}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("postgres://ada:***@127.0.0.1:1/muster"), "{args:?}: {}", ended.stderr);
    }
    let escaped = with_url(&sandbox, "postgres://ada:s3c/ret@db/muster", &["results", "list"]);
    assert!(escaped.stderr.contains("its URL is not valid: invalid port number"), "{}", escaped.stderr);
    sandbox.write("muster.yaml", "db: postgres://ada:s3cret@127.0.0.1:1/muster\n");
    let of_file = sandbox.muster(&["config", "show"]);
    assert!(
        of_file.stdout.contains("postgres://ada:***@127.0.0.1:1/muster") && !of_file.stdout.contains("s3c"),
        "{}",
        of_file.stdout
    );
}

#[test]
fn what_a_session_writes_has_no_password() {
    let Some(server) = Server::start(&[]) else { return };
    server.make_schema("muster");
    let sandbox = Sandbox::with_check(CHECK);
    let url = server.url("muster").replace("admin@", "admin:s3cret@");
    let reports = ["--report-html=r.html", "--report-junit=r.xml", "--report-markdown=r.md"];
    let ended = with_url(&sandbox, &url, &[&["-c", "check.yaml", "-r"], &reports[..]].concat());
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("postgres://admin:***@"), "{}", ended.stdout);
    assert!(!contains(&sandbox.path(""), "s3cret"), "a file has the password");
    let listed = with_url(&sandbox, &url, &["results", "list"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let shown = with_url(&sandbox, &url, &["results", "show", "latest"]);
    assert_eq!(shown.code, Some(0), "{}{}", shown.stdout, shown.stderr);
    assert_eq!(with_url(&sandbox, &url, &["sweep"]).code, Some(0));
}

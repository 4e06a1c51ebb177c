//! What `-c` and `-C` may be given: folders, links, and files that are none.

use crate::sandbox::Sandbox;
use insta::assert_snapshot;
use std::{
    ffi::OsStr,
    fmt::Write,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
};

const GOOD: &str = "name: good\nvalid_systems: ['*']\nexecutable: echo hello\nsanity: [{ found: hello }]\n";

#[test]
fn one_file_by_many_names_is_one_set_of_checks() {
    let sandbox = Sandbox::new();
    sandbox.write("checks/check.yaml", GOOD);
    symlink(".", sandbox.path("checks/loop")).expect("a link");
    symlink("check.yaml", sandbox.path("checks/also.check.yaml")).expect("a link");
    symlink("nowhere", sandbox.path("checks/notes.txt")).expect("a link");
    let ended = sandbox.muster(&["-c", "checks", "-c", "./checks/check.yaml", "-c", "checks", "-l"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert!(ended.stdout.contains("Found 1 check(s)"), "{}", ended.stdout);
}

#[test]
fn marks_line_ends_and_names_of_other_worlds_are_read() {
    let sandbox = Sandbox::with_check(&format!("\u{feff}{}", GOOD.replace('\n', "\r\n")));
    let folder = sandbox.path("odd");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join(OsStr::from_bytes(b"\xff.check.yaml")), GOOD.replace("good", "odd")).expect("a file");
    let ended = sandbox.muster(&["-c", ".", "-r", "--db", "r.db"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("2 pass"), "{}", ended.stdout);
}

#[test]
fn a_path_that_is_of_no_use_is_named() {
    let sandbox = Sandbox::with_check(GOOD);
    fs::create_dir_all(sandbox.path("folder/check.yaml")).expect("a folder");
    fs::create_dir(sandbox.path("links")).expect("a folder");
    symlink("gone.yaml", sandbox.path("links/check.yaml")).expect("a link");
    fs::write(sandbox.path("binary.yaml"), b"name: \xff\n").expect("a file");
    sandbox.write("empty.yaml", "").write("comment.yaml", "# name: x\n").write("abstract.yaml", "name: a\nabstract: true\n");
    sandbox.write("none.yaml", "name: none\npartitions: []\nenvironments: []\n");
    let rows: [&[&str]; 9] = [
        &["-c", "folder", "-l"],
        &["-c", "folder/check.yaml", "-l"],
        &["-c", "links", "-l"],
        &["-c", "binary.yaml", "-l"],
        &["-c", "empty.yaml", "-c", "comment.yaml", "-l"],
        &["-c", "abstract.yaml", "-l"],
        &["-c", "check.yaml", "-C", "empty.yaml", "-l"],
        &["-c", "check.yaml", "-C", "folder", "-l"],
        &["-c", "check.yaml", "-C", "none.yaml", "--system", "none", "-l"],
    ];
    let mut text = String::new();
    for args in rows {
        let ended = sandbox.muster(args);
        let _ = writeln!(text, "$ muster {}\n[{}] {}", args.join(" "), ended.code.unwrap_or(-1), ended.stderr);
    }
    assert_snapshot!(text);
}

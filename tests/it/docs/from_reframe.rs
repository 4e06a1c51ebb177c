//! docs/from-reframe.md: every flag that it names exists or is refused, and every item of its table of functions is read.

use crate::{sandbox::Sandbox, walked::page};
use std::collections::BTreeSet;

/// The rows of the table below a heading, as cells.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, after) = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let lines = after.lines().skip_while(|line| !line.starts_with('|')).skip(2).take_while(|line| line.starts_with('|'));
    lines.map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// The texts between single backticks.
fn spans(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The flags in a cell: `-c`, `--tag`.
fn flags(cell: &str) -> BTreeSet<String> {
    let words = spans(cell).flat_map(str::split_whitespace);
    let flag = |word: &str| {
        let name = word.split(['=', '[']).next().unwrap_or_default();
        let is_flag = name.strip_prefix('-').is_some_and(|rest| rest.trim_start_matches('-').starts_with(char::is_alphabetic));
        is_flag.then(|| name.to_owned())
    };
    words.filter_map(flag).collect()
}

/// The flags of a help page.
fn of_help(help: &str) -> BTreeSet<String> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let names = lines.flat_map(|line| line.split("  ").next().unwrap_or_default().split([' ', ',', '[', '=']));
    names.filter(|name| name.starts_with('-')).map(str::to_owned).collect()
}

/// The flags of the program and of its commands.
fn known(sandbox: &Sandbox) -> BTreeSet<String> {
    let commands: [&[&str]; 6] = [
        &["--help"],
        &["results", "show", "--help"],
        &["check", "lint", "--help"],
        &["sweep", "--help"],
        &["top", "--help"],
        &["convert", "--help"],
    ];
    commands.iter().flat_map(|args| of_help(&sandbox.muster(args).stdout)).collect()
}

#[test]
fn every_flag_of_the_page_exists_or_is_refused_with_a_hint() {
    let (sandbox, page) = (Sandbox::new(), page("docs/from-reframe.md"));
    let known = known(&sandbox);
    let mut listed = BTreeSet::new();
    for row in rows(&page, "## Command line") {
        let [reframe, ours, remarks] = &row[..] else { panic!("{row:?}") };
        listed.extend(flags(reframe));
        for flag in flags(reframe) {
            if remarks.starts_with("refused") {
                let ended = sandbox.muster(&[&flag, "-l"]);
                let is_told = ended.code == Some(2) && ended.stderr.contains(&format!("`{flag}` is ReFrame's: "));
                assert!(is_told, "{flag}: {:?} {}", ended.code, ended.stderr);
            } else {
                assert!(known.contains(&flag) && ours.starts_with("the same"), "{flag} is no flag, or has another name");
            }
        }
        for flag in flags(ours).union(&flags(remarks)) {
            assert!(known.contains(flag), "{flag} is no flag");
        }
    }
    // What the program refuses as ReFrame's is on the page.
    let source = self::page("harness/cli/args/foreign.rs");
    let table = source.split("const INSTEAD").nth(1).and_then(|rest| rest.split("];").next()).expect("the table");
    let refused = table.split("(\"-").skip(1).filter_map(|row| row.split('"').next()).map(|name| format!("-{name}"));
    let missing: Vec<String> = refused.filter(|name| !listed.contains(name)).collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
}

#[test]
fn every_item_of_the_table_of_functions_is_read() {
    let items: Vec<String> = rows(&page("docs/from-reframe.md"), "## Functions")
        .iter()
        .flat_map(|row| spans(&row[1]).filter(|span| span.starts_with("- ")).map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert!(items.len() >= 15, "{items:?}");
    for item in items {
        let check = format!("name: a\nvalid_systems: ['*']\nexecutable: echo\nkeep_files: [out.txt, f]\nsanity:\n  {item}\n");
        let listed = Sandbox::with_check(&check).muster(&["-c", ".", "-l", "--nocolor"]);
        assert_eq!((listed.code, &*listed.stderr), (Some(0), ""), "{item}");
    }
}

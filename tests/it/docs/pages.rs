//! The documentation: its form, its links, and the table of outcomes against the program.

use crate::sandbox::Sandbox;
use muster_core::{
    decisions::{
        pipeline,
        rounds::{Policy, Threshold, is_settled},
    },
    job::{
        scheduler::{Disposition, Disruption},
        workload::Clock,
    },
    result::{CaseResult, Failure, Fault, Invalid, OnDisruption, Outcome, Phase},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The most characters of a line, and the most lines of a paragraph.
const WIDTH: usize = 120;
const PARAGRAPH: usize = 5;

/// Words of which a reader has to guess the meaning.
const WORDS: [&str; 30] = [
    "airborne",
    "anew",
    "begun",
    "bury",
    "by heart",
    "census",
    "doomed",
    "for ever",
    "for want of",
    "goes on with",
    "gone on with",
    "good-bye",
    "heir",
    "heirs",
    "in vain",
    "is no fact",
    "is no option",
    "is no share",
    "lent",
    "nobody's",
    "rooms",
    "seat belt",
    "somebody else's",
    "take no offence",
    "tenant",
    "tenants",
    "told",
    "took off",
    "whence",
    "whoever",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of a folder and of the folders in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Texts by their paths from the root: these files, and the files of these folders.
fn texts(names: &[&str], folders: &[&str]) -> BTreeMap<String, String> {
    let mut paths: Vec<PathBuf> = names.iter().map(|name| root().join(name)).collect();
    paths.extend(folders.iter().flat_map(|folder| files(&root().join(folder))));
    let name = |path: &Path| path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
    paths.iter().filter_map(|path| Some((name(path), fs::read_to_string(path).ok()?))).collect()
}

/// Every page for people.
fn pages() -> BTreeMap<String, String> {
    let pages = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "tests/cluster/README.md",
        "tests/fuzz/README.md",
        "tests/slurm/README.md",
    ];
    let is_page = |name: &String| Path::new(name).extension().is_some_and(|extension| extension == "md");
    texts(&pages, &["docs"]).into_iter().filter(|(name, _)| is_page(name)).collect()
}

/// Files with comments for people.
fn commented() -> BTreeMap<String, String> {
    texts(&["Cargo.toml", "clippy.toml", "deny.toml", "justfile", ".ci/run"], &["checks", "site-config", "deploy"])
}

/// The lines of a page with their numbers, without blocks of code.
fn prose(page: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let lines = page.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines
        .filter(|(_, line)| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            !is_code && !is_fence
        })
        .collect()
}

/// Whether a line begins a paragraph or an item of a list.
fn begins(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("- ") || line.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(". ")
}

/// The page is written from a table of tests: a scheduler of the program alone would be missing.
#[test]
fn the_reference_has_every_scheduler_of_the_program() {
    let page = fs::read_to_string(root().join("docs/reference.md")).expect("the page of keys");
    let heads: Vec<&str> = page.lines().filter(|line| line.starts_with("**`")).collect();
    for name in muster::SCHEDULERS.iter().flat_map(|scheduler| scheduler.names) {
        assert!(heads.iter().any(|head| head.contains(&format!("`{name}`"))), "docs/reference.md has no scheduler `{name}`");
    }
}

#[test]
fn the_index_names_every_page() {
    let index = fs::read_to_string(root().join("docs/README.md")).expect("the index");
    let names: Vec<String> = pages().into_keys().filter_map(|name| name.strip_prefix("docs/").map(str::to_owned)).collect();
    let missing: Vec<&String> =
        names.iter().filter(|name| *name != "README.md" && !index.contains(&format!("({name})"))).collect();
    assert!(missing.is_empty(), "docs/README.md does not name {missing:?}");
}

#[test]
fn lines_and_paragraphs_are_short() {
    let mut long = Vec::new();
    for (name, page) in &pages() {
        for (index, line) in page.lines().enumerate() {
            let width = line.chars().count();
            if width > WIDTH && !line.starts_with('|') {
                long.push(format!("{name}:{}: {width} characters", index + 1));
            }
        }
        let mut lines = 0;
        for (number, line) in prose(page) {
            lines = match line.chars().next() {
                None | Some('#' | '|') => 0,
                _ if begins(line) => 1,
                _ => lines + 1,
            };
            if lines == PARAGRAPH + 1 {
                long.push(format!("{name}:{number}: a paragraph of more than {PARAGRAPH} lines"));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn words_are_plain() {
    let mut found = Vec::new();
    for (name, text) in pages().iter().chain(&commented()) {
        for (number, line) in prose(text) {
            let line = line.to_lowercase();
            let whole = |word: &&&str| {
                line.match_indices(**word).any(|(start, _)| {
                    let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '-');
                    edge(line[..start].chars().next_back()) && edge(line[start + word.len()..].chars().next())
                })
            };
            found.extend(WORDS.iter().filter(whole).map(|word| format!("{name}:{number}: {word}")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The anchor that a page of Markdown gives a heading.
fn anchor(heading: &str) -> String {
    let kept =
        heading.trim().to_lowercase().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_')).collect::<String>();
    kept.replace(' ', "-")
}

fn anchors(page: &str) -> BTreeSet<String> {
    let headings = prose(page).into_iter().filter_map(|(_, line)| line.strip_prefix('#'));
    headings.map(|heading| anchor(heading.trim_start_matches('#'))).collect()
}

/// The targets of `[text](target)`, with the line where the target begins.
fn links(page: &str) -> Vec<(usize, &str)> {
    let in_line = |(number, line): (usize, _)| {
        let after = str::split(line, "](").skip(1);
        after.filter_map(move |rest: &str| Some((number, rest.split_once(')')?.0))).collect::<Vec<_>>()
    };
    prose(page).into_iter().flat_map(in_line).collect()
}

#[test]
fn links_between_pages_and_their_anchors_resolve() {
    let pages = pages();
    let mut broken = Vec::new();
    for (name, page) in &pages {
        let folder = root().join(name).parent().expect("a folder").to_owned();
        for (number, target) in links(page).into_iter().filter(|(_, target)| !target.contains("://")) {
            let (path, fragment) = target.split_once('#').map_or((target, None), |(path, fragment)| (path, Some(fragment)));
            let linked = if path.is_empty() { root().join(name) } else { folder.join(path) };
            let is_there = match fragment {
                None => linked.exists(),
                Some(fragment) => fs::read_to_string(&linked).is_ok_and(|text| anchors(&text).contains(fragment)),
            };
            if !is_there {
                broken.push(format!("{name}:{number}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Every outcome that the program can print. The match makes a new one an error here.
fn outcomes() -> Vec<Outcome> {
    let mut all = vec![Outcome::Pass, Outcome::Skip, Outcome::Xfail, Outcome::Xpass];
    all.extend([Failure::Sanity, Failure::Performance, Failure::Workload].map(Outcome::Fail));
    all.extend([Invalid::Logs, Invalid::Metrics, Invalid::Validity].map(Outcome::Invalid));
    all.extend([Clock::Pending, Clock::Run].map(Outcome::Timeout));
    all.extend([Disruption::Preempted, Disruption::Evicted, Disruption::Node, Disruption::Deleted].map(Outcome::Disrupted));
    all.extend([Fault::Config, Fault::Infra].map(Outcome::Error));
    all.extend([Outcome::Abort, Outcome::Stopped("RULE".into())]);
    for outcome in &all {
        match outcome {
            Outcome::Pass
            | Outcome::Skip
            | Outcome::Xfail
            | Outcome::Xpass
            | Outcome::Abort
            | Outcome::Stopped(_)
            | Outcome::Fail(Failure::Sanity | Failure::Performance | Failure::Workload)
            | Outcome::Invalid(Invalid::Logs | Invalid::Metrics | Invalid::Validity)
            | Outcome::Timeout(Clock::Pending | Clock::Run)
            | Outcome::Disrupted(Disruption::Preempted | Disruption::Evicted | Disruption::Node | Disruption::Deleted)
            | Outcome::Error(Fault::Config | Fault::Infra) => {}
        }
    }
    all
}

#[test]
fn every_page_that_names_an_outcome_links_the_table() {
    let details: Vec<String> =
        outcomes().iter().filter(|outcome| outcome.detail().is_some()).map(|name| format!("`{name}`")).collect();
    let is_linked = |name: &str, page: &str| name.ends_with("outcomes.md") || page.contains("outcomes.md");
    for (name, page) in &pages() {
        let first = details.iter().find(|outcome| page.contains(*outcome));
        assert!(
            first.is_none() || is_linked(name, page),
            "{name} names {} and does not link docs/outcomes.md",
            first.unwrap_or(name)
        );
    }
}

/// The rows of the table of outcomes: the outcome, and the cells after it.
fn table() -> Vec<(String, Vec<String>)> {
    let page = fs::read_to_string(root().join("docs/outcomes.md")).expect("the page of outcomes");
    let rows = page.lines().skip_while(|line| !line.starts_with("| outcome |")).skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split(" | ").map(|cell| cell.trim().replace('`', ""));
        (cells.next().unwrap_or_default(), cells.collect())
    })
    .collect()
}

/// The first attempt of a case with this outcome, of a check that says nothing of disruptions.
fn result(outcome: &Outcome, on_disruption: Option<OnDisruption>) -> CaseResult {
    let text = serde_json::json!({
        "name": { "check": "a", "display": "a", "hash": "0", "system": "s", "partition": "p", "environ": "e" },
        "about": {
            "descr": "", "tags": [], "maintainers": [], "file": "", "parameters": [], "scheduler": "local", "num_tasks": 1,
            "on_disruption": on_disruption,
        },
        "identifier": null, "attempt": 1, "outcome": outcome, "phase": "run", "cause": null, "warnings": [], "nodes": [],
        "exits": [], "measurements": [],
        "times": { "begun": 0, "launched": null, "started": null, "ended": null, "finished": 0 },
        "folder": null, "log_tail": null, "look": [], "delete": [], "leftovers": [], "flaky": false, "quarantine": null,
        "restored_from": null,
    });
    serde_json::from_value(text).expect("a result")
}

#[test]
fn the_table_of_outcomes_is_what_the_program_does() {
    let table = table();
    let listed: Vec<&str> = table.iter().map(|(outcome, _)| outcome.as_str()).collect();
    let known: Vec<String> = outcomes().iter().map(Outcome::to_string).collect();
    assert_eq!(listed, known);
    let once = Policy::Retry { max: 1, threshold: Threshold::Percent(100) };
    for (outcome, (word, cells)) in outcomes().iter().zip(&table) {
        let [line, phases, _, exit, retried, objects, counted] = &cells[..] else { panic!("{word}: {cells:?}") };
        assert_eq!(exit, &outcome.row().exit_code.to_string(), "{word}: the exit code");
        assert_eq!(outcome.is_fine(), exit == "0", "{word}: fine");
        let kept = if pipeline::cleanup_after(outcome) == Disposition::Delete { "deleted" } else { "kept" };
        assert_eq!(objects, kept, "{word}: the objects");
        let is_retried = |on_disruption| !is_settled(once, &result(outcome, on_disruption));
        let again = match [None, Some(OnDisruption::Fail)].map(is_retried) {
            [true, true] => "yes",
            [true, false] => "see below",
            _ => "no",
        };
        assert_eq!(retried, again, "{word}: retried");
        let known = [Phase::Plan, Phase::Stage, Phase::Launch, Phase::Run, Phase::Sanity, Phase::Performance].map(Phase::as_str);
        assert!(phases.split(", ").all(|phase| known.contains(&phase)), "{word}: the phases {phases}");
        assert_eq!(line, outcome.row().bracket, "{word}: the progress line");
        let schema = fs::read_to_string(root().join("docs/run-report.schema.json")).expect("the schema");
        assert!(schema.contains(&format!("\"{counted}\"")), "{word}: no {counted} in the JSON report");
    }
}

#[test]
fn the_failure_block_beside_the_table_is_what_the_program_prints() {
    let page = fs::read_to_string(root().join("docs/outcomes.md")).expect("the page of outcomes");
    let quoted = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block");
    let sandbox = Sandbox::with_check("name: a\nvalid_systems: ['*']\nexecutable: echo\nsanity: [{ found: '^converged$' }]\n");
    let run = sandbox.muster(&["-c", ".", "-r", "--nocolor"]);
    assert!(run.stdout.contains(quoted), "{quoted}\n{}", run.stdout);
}

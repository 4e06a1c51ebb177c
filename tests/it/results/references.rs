//! `muster results suggest-references` beside `muster night`, and the commands that questions tell their readers to run.

use super::{asked, forty_nights};
use crate::sandbox::Sandbox;
use std::fs;

const SUGGEST: [&str; 3] = ["suggest-references", "--period", "2026-10-01..2026-11-24"];

/// Has the nights judged, after their figures were written.
pub(super) fn judge(sandbox: &Sandbox) {
    asked(sandbox, &["rebuild"], 0);
    let judged = sandbox.muster(&["night", "--db", "r.db"]);
    assert_eq!(judged.code, Some(0), "{}", judged.stderr);
}

#[test]
fn variables_are_chosen_by_name_and_why_nothing_is_suggested_is_said() {
    let sandbox = forty_nights();
    judge(&sandbox);
    let of = |args: &[&str], code| asked(&sandbox, &[&SUGGEST[..], args].concat(), code);
    let both = of(&["--var", "flops", "--var", "bandwidth"], 0);
    assert!(both.contains("flops: [") && both.contains("bandwidth: ["), "{both}");
    assert!(!of(&["--var", "flops"], 0).contains("bandwidth"));
    let unknown = of(&["--var", "flops", "--var", "bandwith"], 2);
    assert_eq!(unknown, "error: `2026-10-01..2026-11-24` has no variable `bandwith`: it has bandwidth, flops\n");
    for (value, why) in [("0", "7 runs, all of 0,"), ("1 + night % 3", "7 runs, which vary so much that")] {
        let other = format!("UPDATE run_figure SET value = {value} WHERE metric = 4");
        muster_test_database::create(&sandbox.path("r.db"), &other).expect("other figures");
        let said = of(&["hpcg"], 2);
        assert!(said.starts_with(&format!("no reference for hpcg @eidf:gpu+default flops: {why}")), "{said}");
    }
}

#[test]
fn runs_of_a_regression_are_left_out_until_a_person_accepts_it() {
    let sandbox = forty_nights();
    let of = || asked(&sandbox, &[&SUGGEST[..], &["size=2G"]].concat(), 0);
    let unjudged = of();
    assert!(unjudged.contains("# 40 runs") && unjudged.contains("note: not all of these nights of `eidf` are"), "{unjudged}");
    judge(&sandbox);
    let judged = of();
    assert!(judged.contains("# left out, regressed (2@2026-11-15): 12 run(s) of 2026-11-13..2026-11-24\n"), "{judged}");
    assert!(judged.contains("# 28 runs of 28 nights") && !judged.contains("note:"), "{judged}");
    let too_few = asked(&sandbox, &["suggest-references", "size=2G", "--period", "2026-11-11..2026-11-24"], 2);
    assert!(too_few.contains("2 runs, 5 needed, 3 missing; left out, regressed ("), "{too_few}");
    asked(&sandbox, &["annotate", "triad", "--kind", "accept", "--from", "2026-11-14", "--reason", "new driver"], 0);
    assert!(of().contains("note: not all of these nights"), "{}", of());
    judge(&sandbox);
    let accepted = of();
    assert!(accepted.contains("# left out, accepted (2@2026-11-15): ") && !accepted.contains("28 nights"), "{accepted}");
    assert!(accepted.contains("[874, "), "{accepted}");
}

/// Multiplies the figures of `triad %size=1G` in these of the forty nights, has all nights judged, and asks for its reference.
fn with_level(sandbox: &Sandbox, nights: std::ops::Range<u32>, factor: f64) -> String {
    let (first, end) = (nights.start * 10, nights.end * 10);
    let other =
        format!("UPDATE measurement SET value = value * {factor} WHERE attempt % 10 = 1 AND attempt BETWEEN {first} AND {end}");
    muster_test_database::create(&sandbox.path("r.db"), &other).expect("another level");
    judge(sandbox);
    asked(sandbox, &[&SUGGEST[..], &["size=1G"]].concat(), 0)
}

#[test]
fn only_runs_of_the_present_level_count() {
    let improved = with_level(&forty_nights(), 25..40, 1.2);
    assert!(improved.contains("# left out, improved (1@") && improved.contains("[1091."), "{improved}");
    let sandbox = forty_nights();
    let recovered = with_level(&sandbox, 20..25, 0.9);
    assert!(recovered.contains("# left out, regressed (1@") && recovered.contains("[910"), "{recovered}");
    let until = ["annotate", "triad", "--kind", "dismiss", "--from", "2026-11-05", "--until", "2026-12-20", "--reason", "a fan"];
    asked(&sandbox, &until, 0);
    judge(&sandbox);
    let dismissed = asked(&sandbox, &[&SUGGEST[..], &["size=1G"]].concat(), 0);
    let said = "# left out, dismissed (1@";
    assert!(dismissed.contains(said) && dismissed.contains("..2026-11-09\n"), "{dismissed}");
    assert_eq!(
        dismissed.split(said).nth(1).map(|said| &said[10..]),
        recovered.split("regressed (1@").nth(1).map(|said| &said[10..])
    );
}

#[test]
fn nights_that_people_leave_out_are_named() {
    let sandbox = forty_nights();
    let say = |kind: &str, from: &str, until: &str| {
        asked(&sandbox, &["annotate", "hpcg", "--kind", kind, "--from", from, "--until", until, "--reason", "new fans"], 0)
    };
    say("known", "2026-11-20", "2026-11-21");
    judge(&sandbox);
    let of = |code| asked(&sandbox, &[&SUGGEST[..], &["hpcg"]].concat(), code);
    assert!(of(0).contains("# left out, known: 2 run(s) of 2026-11-20..2026-11-21\n"), "{}", of(0));
    say("maintenance", "2026-11-01", "2026-11-30");
    judge(&sandbox);
    let said = "no reference for hpcg @eidf:gpu+default flops: 0 runs, 5 needed, 5 missing; \
                left out, maintenance: 7 run(s) of 2026-11-18..2026-11-24\n";
    assert!(of(2).starts_with(said), "{}", of(2));
}

#[test]
fn a_file_of_references_names_what_has_none_and_others_may_read_it() {
    let sandbox = forty_nights();
    judge(&sandbox);
    let write = |path: &str, code| asked(&sandbox, &[&SUGGEST[..], &["--min-runs", "9", "--write", path]].concat(), code);
    write("refs.yaml", 0);
    let file = sandbox.read("refs.yaml");
    assert!(file.ends_with("# no reference for hpcg @eidf:gpu+default flops: 7 runs, 9 needed, 2 missing\n"), "{file}");
    sandbox.write("usual", "");
    let mode = |name: &str| fs::metadata(sandbox.path(name)).expect("a file").permissions();
    assert_eq!(mode("refs.yaml"), mode("usual"));
    let refused = write("a#b.yaml", 2);
    assert_eq!(refused, "error: a#b.yaml: a check reads `#` as the end of a file name: choose another name\n");
    assert!(write("-", 0).contains("\ntriad:\n") && !fs::exists(sandbox.path("-")).expect("a folder"));
}

/// The commands that a text tells its reader to run on what is stored.
fn commands(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2).filter(|part| part.starts_with("muster ") && *part != "muster -r");
    let lines = text.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| line.starts_with("muster "));
    quoted.chain(lines).collect()
}

#[test]
fn every_command_that_is_printed_runs_when_it_is_pasted() {
    let sandbox = forty_nights();
    fs::create_dir_all(sandbox.path("my nights/it's")).expect("a folder");
    let database = "my nights/it's/r.db";
    fs::rename(sandbox.path("r.db"), sandbox.path(database)).expect("the database");
    let unplaced = "UPDATE session SET night = NULL";
    let rows: [(&str, &[&str], usize); 10] = [
        ("", &["results", "suggest-references", "--period", "20261001:20261130"], 1),
        ("", &["results", "history", "ior"], 1),
        ("", &["night", "explain", "999"], 1),
        ("", &["night", "why", "x"], 1),
        (unplaced, &["results", "suggest-references", "--period", "20261001:20261130"], 1),
        (unplaced, &["results", "history", ".", "--period", "20261001:20261130"], 1),
        (unplaced, &["results", "causes", "latest"], 1),
        (unplaced, &["results", "compare", "20261101-220000-abcdefgh", "latest"], 1),
        ("DELETE FROM night", &["night"], 1),
        ("", &["results", "demo", "my nights/year.db", "--systems", "1", "--nights", "30"], 2),
    ];
    for (sql, question, count) in rows {
        muster_test_database::create(&sandbox.path(database), sql).expect("the database");
        // The database of `demo` is named as its reader has named it, others can be asked in any folder.
        let (of, folder) =
            if question[1..].starts_with(&["demo"]) { (None, "") } else { (Some(["--db", database]), "my nights") };
        let ended = sandbox.muster(&[question, of.as_ref().map_or(&[][..], |of| of)].concat());
        let text = ended.stdout + &ended.stderr;
        assert_eq!(commands(&text).len(), count, "{question:?}: {text}");
        for command in commands(&text) {
            let pasted = sandbox.paste(command, folder);
            assert_eq!(pasted.code, Some(0), "{command}\n{}", pasted.stderr);
        }
    }
}

//! Rules with `file` look at kept files, all others at the logs.

use super::*;
use crate::{
    job::stdout::{Files, Section},
    result::Outcome,
};
use std::sync::Arc;

/// A log, and kept files after it.
fn with_files(log: &str, kept: &[(&str, &str)], unread: &[&str]) -> Stdout {
    let mut text = log.to_owned();
    let log = Section::new(origin("host", Some("host")), 0, log.len() as u64);
    let mut files = Files { sections: vec![], unread: unread.iter().map(|&name| name.to_owned()).collect() };
    for (path, content) in kept {
        let origin = origin(path, Some("host"));
        files.sections.push(Section { is_file: true, ..Section::new(origin, text.len() as u64, content.len() as u64) });
        text.push_str(content);
    }
    Stdout::new(Arc::new(text.into_bytes()), [log]).with_files(files)
}

fn of(file: &str, item: Assertion) -> Assertion {
    Assertion { file: Some(file.to_owned()), ..item }
}

fn read_from(file: &str, variable: PerfVariable) -> PerfVariable {
    PerfVariable { file: Some(file.to_owned()), ..variable }
}

const KEPT: [(&str, &str); 3] = [("a.csv", "speed 3\nERROR\n"), ("d/b.csv", "speed 4\n"), ("notes.txt", "done")];

#[test]
fn a_rule_sees_the_logs_or_the_files_that_it_names_and_never_both() {
    let stdout = with_files("speed 1\n", &KEPT, &[]);
    let assert = |text: &str| item(Claim::Assert { expression: text.to_owned() });
    let rows = [
        vec![count("speed", 1), of("**/*.csv", count("speed", 2)), of("d", count("speed", 1)), of("notes.txt", found("^done$"))],
        vec![not_found("ERROR"), of("notes.txt", not_found("ERROR"))],
        vec![of("**/*.csv", assert("sum(extractall(r'speed (\\d)')) == 7.0")), assert("count('speed') == 1")],
        vec![found("done")],
        vec![of("d/*", found("done"))],
        vec![of("*.csv", not_found("ERROR"))],
        vec![of("**/*.csv", count("speed", 3))],
    ];
    let sentences: Vec<_> = rows.into_iter().map(|items| say(&judge_stdout(&sanity(items), &stdout))).collect();
    insta::assert_snapshot!(sentences.join("\n"), @r"
    pass
    pass
    pass
    fail{sanity}: `done` not found
    fail{sanity}: `done` not found in `d/*`
    fail{sanity}: `ERROR` found in a.csv on host, line 2: `ERROR`
    fail{sanity}: `speed` found 2 times, expected 3 in `**/*.csv`
    ");
}

#[test]
fn a_glob_that_no_file_fits_says_what_was_there() {
    let none = with_files("", &[], &[]);
    let some = with_files("", &KEPT, &["core.1 (binary)"]);
    let assert = item(Claim::Assert { expression: "count('x') == 0".to_owned() });
    let optional = PerfVariable { optional: true, ..first("speed", r"speed (\d)") };
    let rules = [
        sanity([of("out.txt", found("x"))]),
        sanity([of("core.*", not_found("x"))]),
        sanity([of("*.log", assert)]),
        perf([read_from("*.log", first("speed", r"speed (\d)")), first("other", "(x)")]),
        perf([read_from("*.log", variable("count", "x", "", Pick::Reduce(Reduce::Count)))]),
        perf([read_from("*.log", optional)]),
    ];
    let sentences = rules.iter().flat_map(|rules| [say(&judge_stdout(rules, &none)), say(&judge_stdout(rules, &some))]);
    insta::assert_snapshot!(sentences.collect::<Vec<_>>().join("\n"), @r"
    fail{sanity}: `x` could not be looked for: no file fits `out.txt`: none was kept
    fail{sanity}: `x` could not be looked for: no text file fits `out.txt`: kept were a.csv, d/b.csv, notes.txt, core.1 (binary)
    fail{sanity}: `x` could not be looked for: no file fits `core.*`: none was kept
    fail{sanity}: `x` could not be looked for: no text file fits `core.*`: kept were a.csv, d/b.csv, notes.txt, core.1 (binary)
    fail{sanity}: `count('x') == 0`: no file fits `*.log`: none was kept
    fail{sanity}: `count('x') == 0`: no text file fits `*.log`: kept were a.csv, d/b.csv, notes.txt, core.1 (binary)
    invalid{metrics}: `speed`: no file fits `*.log`: none was kept; nothing found for `other`
    invalid{metrics}: `speed`: no text file fits `*.log`: kept were a.csv, d/b.csv, notes.txt, core.1 (binary); nothing found for `other`
    invalid{metrics}: `count`: no file fits `*.log`: none was kept
    invalid{metrics}: `count`: no text file fits `*.log`: kept were a.csv, d/b.csv, notes.txt, core.1 (binary)
    pass
    warning: `speed` is left out: no file fits `*.log`: none was kept
    pass
    warning: `speed` is left out: no text file fits `*.log`: kept were a.csv, d/b.csv, notes.txt, core.1 (binary)
    ");
}

#[test]
fn a_figure_of_a_file_may_be_one_a_file() {
    let stdout = with_files("speed 1\n", &KEPT, &[]);
    let one_a_file = PerfVariable { per_section: true, ..read_from("**/*.csv", first("speed", r"speed (\d)")) };
    let total = PerfVariable { source: Source::Value("perf['speed@a.csv'] + perf['log']".to_owned()), ..first("total", "") };
    let mut rules = perf([first("log", r"speed (\d)"), one_a_file, total]);
    rules.references = vec![row("speed", 4.0, 0.0, None)];
    let judgement = judge_stdout(&rules, &stdout);
    let figures: Vec<_> = judgement.measurements.iter().map(|m| (m.section.as_deref(), m.value)).collect();
    assert_eq!(figures, [(None, 1.0), (Some("a.csv"), 3.0), (Some("d/b.csv"), 4.0), (None, 4.0)]);
    insta::assert_snapshot!(say(&judgement), @"fail{performance}: failed to meet reference(s): speed=3 GB/s in a.csv on host, expected 4 (l=4)");
}

#[test]
fn files_are_searched_in_blocks_like_logs() {
    let long = format!("{}\nspeed 7\n", "filler line\n".repeat(3 * search::BLOCK / 12));
    let stdout = with_files("", &[("big", &long)], &[]);
    let rules = Rules {
        sanity: vec![of("big", count("filler", (3 * search::BLOCK / 12) as u64))],
        ..perf([read_from("big", first("s", r"speed (\d)"))])
    };
    let judgement = judge_in_blocks(&rules, &stdout, &ended(Exit::Code(0)), &Monitor::default(), 100);
    assert_eq!((judgement.outcome, judgement.measurements[0].value), (Outcome::Pass, 7.0));
}

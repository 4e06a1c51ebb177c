//! A stdout of several sections: assembled without losing a byte, and judged as the whole texts say, however small the
//! blocks in which it is read.

#![no_main]

use libfuzzer_sys::{arbitrary, fuzz_target};
use muster_core::{judge::{self, Monitor}, case::Identifier, rules::{Rules, perf::{PerfVariable, Pick, Reduce, Source}, sanity::{Assertion, Claim}}, result::Outcome, job::{scheduler::Ending, stdout::{SectionOrigin, Stdout}}};
use muster_text::{pattern::{Haystack, Pattern}, time::Timestamp};

#[derive(Debug, arbitrary::Arbitrary)]
struct Run<'a> {
    pattern: &'a str,
    logs: Vec<&'a [u8]>,
    block: u8,
}

fuzz_target!(|run: Run<'_>| {
    let logs: Vec<_> = run.logs.iter().take(8).enumerate().map(|(index, log)| (origin(index), log.to_vec())).collect();
    let stdout = Stdout::assemble(&Identifier::from_letters(*b"abcdefgh"), logs);
    let sections: Vec<&[u8]> = stdout.sections().iter().map(|section| stdout.section(section)).collect();
    assert_eq!(sections, run.logs.iter().take(8).copied().collect::<Vec<_>>());

    let Ok(pattern) = Pattern::compile(run.pattern) else { return };
    // The same as in the text in which carriage returns are newlines.
    let count = |section: &&[u8]| pattern.regex().find_iter(&Haystack::of(section).between(0, section.len())).count();
    let found: usize = sections.iter().map(count).sum();
    let claim = Claim::Found { pattern: run.pattern.to_owned(), count: Some(found as u64) };
    let source = Source::Pattern { pattern: run.pattern.to_owned(), tag: Some("0".into()), pick: Pick::Reduce(Reduce::Count) };
    let rules = Rules {
        sanity: vec![Assertion { claim, file: None, msg: None }],
        perf_variables: vec![PerfVariable {
            name: "n".into(),
            unit: String::new(),
            source,
            file: None,
            per_section: false,
            optional: true,
            direction: None,
        }],
        ..Rules::default()
    };
    let ending = Ending { ended: Timestamp(1), ..Ending::default() };
    let whole = judge::judge(&rules, &stdout, &ending, &Monitor::default());
    let in_blocks = judge::judge_in_blocks(&rules, &stdout, &ending, &Monitor::default(), usize::from(run.block).max(1));
    assert_eq!(format!("{whole:?}"), format!("{in_blocks:?}"));
    let miscounted = whole.outcome != Outcome::Pass && whole.cause.as_deref().is_some_and(|cause| cause.contains("found"));
    assert!(!miscounted, "{found} matches of {:?}: {whole:?}", run.pattern);
});

fn origin(index: usize) -> SectionOrigin {
    SectionOrigin { index: u32::try_from(index).unwrap_or(u32::MAX), ..SectionOrigin::new(format!("pod-{index}")) }
}

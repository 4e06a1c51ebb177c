//! Judges one file with three sanity and three performance patterns, and says what it found: the program that
//! `tests/bench/judge.sh` measures.
//!
//!     cargo run --release -p muster-session --example judge -- FILE COUNT|asserts
//!
//! COUNT is how often the first pattern is to be found; `asserts` looks at three asserts instead, over every match of one pattern.

use memmap2::Mmap;
use muster_core::{
    job::{
        scheduler::Ending,
        stdout::{Section, Stdout},
    },
    judge::{Monitor, judge},
    rules::{
        Rules,
        perf::{PerfVariable, Pick, Reduce, Source},
        sanity::{Assertion, Claim},
    },
};
use std::{env, fs::File, io, process::ExitCode, sync::Arc};

/// The same as in `judge.sh`, which gives them to ripgrep.
const FOUND: &str = "double-precision GFLOP/s";
const NOT_FOUND: [&str; 2] = ["CUDA error|Xid|ECC", "loss (nan|inf)"];
const FIGURES: [(&str, &str, &str, Reduce); 3] = [
    ("flops", r"= (\d+\.\d+) double-precision GFLOP/s", "GFLOP/s", Reduce::Mean),
    ("error", r"err = ([0-9.e-]+)", "", Reduce::Max),
    ("read", r"READ[\s\S]*?(?P<value>[\d.]+) (?P<unit>[KMGT]B/s)", "GB/s", Reduce::Mean),
];

const ASSERTS: [&str; 3] = [
    r"sum(extractall(r'loss (\d+\.\d+)')) > 0",
    r"extractall(r'loss (\d+\.\d+)').all(x, x > 0)",
    r"max(extractall(r'step (\d+)')) == count(r'^step ')",
];

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    let (path, what) = (args.next(), args.next());
    let rules = match what.as_deref() {
        Some("asserts") => Some(asserts()),
        what => what.and_then(|count| count.parse().ok()).map(rules),
    };
    let (Some(path), Some(rules)) = (path, rules) else {
        eprintln!("usage: judge FILE COUNT|asserts");
        return ExitCode::from(2);
    };
    match run(&path, &rules) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(path: &str, rules: &Rules) -> io::Result<()> {
    let text = map(&File::open(path)?)?;
    let origin = Stdout::of("").sections()[0].origin.clone();
    let section = Section::new(origin, 0, text.len() as u64);
    let stdout = Stdout::new(Arc::new(text), [section]);
    let ending = Ending::default();
    let judgement = judge(rules, &stdout, &ending, &Monitor::default());
    println!("{} {}", judgement.outcome, judgement.cause.unwrap_or_default());
    for figure in judgement.measurements {
        println!("{} {} {}", figure.label(), figure.value, figure.unit);
    }
    Ok(())
}

fn item(claim: Claim) -> Assertion {
    Assertion { claim, file: None, msg: None }
}

fn asserts() -> Rules {
    let assert = |expression: &str| item(Claim::Assert { expression: expression.into() });
    Rules { sanity: ASSERTS.map(assert).into(), ..Rules::default() }
}

fn rules(count: u64) -> Rules {
    // A count, and things that are not there: none of them may stop early.
    let found = Claim::Found { pattern: FOUND.into(), count: Some(count) };
    let not_found = NOT_FOUND.map(|pattern| item(Claim::NotFound { pattern: pattern.into() }));
    let figures = FIGURES.map(|(name, pattern, unit, reduce)| PerfVariable {
        name: name.into(),
        unit: unit.into(),
        source: Source::Pattern { pattern: pattern.into(), tag: None, pick: Pick::Reduce(reduce) },
        file: None,
        per_section: false,
        optional: false,
        direction: None,
    });
    Rules { sanity: [item(found)].into_iter().chain(not_found).collect(), perf_variables: figures.into(), ..Rules::default() }
}

#[allow(unsafe_code, reason = "the only way to map a file; see SAFETY")]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: sound as long as nobody writes the file; it is the user's own and finished log.
    unsafe { Mmap::map(file) }
}

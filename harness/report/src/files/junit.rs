//! `--report-junit`: what CI systems read. The file keeps to the widely used schema of Jenkins' xUnit plugin
//! (junit-10.xsd), which a test holds it against.
//!
//! ```text
//! suite     a partition with an environment            properties: the session, the counts
//! pass, stopped           nothing                      attempts before it: flakyFailure, flakyError
//! fail, xpass, invalid, timeout{run}     failure       attempts before it: rerunFailure, rerunError
//! error, disrupted, timeout{pending}, abort    error   nothing was judged
//! skip, xfail, what is in quarantine           skipped, its type says which
//! skip in a session that fails for it          error   nothing ran, or --fail-on-skip
//! system-out              figures, nodes, warnings, commands, the end of the log
//! ```

use crate::{
    RenderError,
    counts::{Results, history, is_excused},
    text::{
        command,
        secret::masked,
        style::{Paint, one_line, sanitize},
        time::utc,
        words::{Origins, figure, what_happened},
    },
};
use muster_core::{
    decisions::pipeline::{self, EXIT_LOST, Skips},
    result::{CaseResult, Completion, Counting, Outcome},
};
use muster_text::shell;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};
use std::{collections::BTreeMap, fmt::Write};

/// The report of a session. `rerun_options` as in [`command::rerun`].
pub fn report(results: &Results<'_>, rerun_options: &[String]) -> Result<String, RenderError> {
    let session = results.session;
    let mut suites: BTreeMap<String, Vec<TestCase>> = BTreeMap::new();
    let rerun = |case: &CaseResult| command::rerun_in(session, case, rerun_options);
    let of_every = results.session.counting == Counting::Every;
    let skips = results.skips();
    for attempts in history(results) {
        // Of a session that was run several times every attempt is a test of its own.
        let tests: Vec<_> = if of_every { attempts.chunks(1).collect() } else { vec![attempts.as_slice()] };
        for (last, before) in tests.into_iter().filter_map(<[_]>::split_last) {
            suites.entry(last.name.place()).or_default().push(test_case(last, before, (of_every, skips), &rerun));
        }
    }
    let mut report = Report::new(xml(&format!("muster {}", session.id)));
    if let Some(ended) = session.ended {
        report.set_time(ended.since(session.started));
    }
    for (place, cases) in suites {
        let mut suite = TestSuite::new(xml(&place));
        let own: std::time::Duration = cases.iter().filter_map(|case| case.time).sum();
        suite.set_time(own).add_test_cases(cases);
        suite.extra.insert("timestamp".into(), xml(&utc(session.started)).into());
        suite.extra.insert("hostname".into(), xml(&session.host).into());
        for (name, value) in properties(results) {
            suite.add_property((xml(name).as_str(), xml(&value).as_str()));
        }
        report.add_test_suite(suite);
    }
    let skipped = report.skipped;
    let text = report.to_string().map_err(RenderError::of("write the XML"))?;
    // The schema knows the number of skipped cases of a suite, not of the whole. In the first tag nothing else can read
    // so: a quotation mark within a name is escaped.
    Ok(text.replacen(&format!(" skipped=\"{skipped}\""), "", 1))
}

/// The properties of the session. The command line is as it was typed, without what looks like a secret.
fn properties(results: &Results<'_>) -> Vec<(&'static str, String)> {
    let session = results.session;
    let counts = results.counts();
    let command: Vec<_> = session.command.iter().map(|word| shell::quote(word)).collect();
    vec![
        ("session", session.id.0.clone()),
        ("system", session.system.clone()),
        ("user", session.user.clone()),
        ("version", session.version.clone()),
        ("command", command.join(" ")),
        ("interrupted", session.interrupted.to_string()),
        ("not_run", counts.not_run.to_string()),
    ]
}

fn test_case(
    last: &CaseResult,
    before: &[&CaseResult],
    (of_every, skips): (bool, Skips),
    rerun_with: &dyn Fn(&CaseResult) -> String,
) -> TestCase {
    let mut status = status(last, skips, rerun_with);
    let reruns = before.iter().filter(|case| !case.outcome.is_fine()).map(|case| rerun(case));
    if !matches!(status, TestCaseStatus::Skipped { .. }) {
        status.add_reruns(reruns);
    }
    let run = if of_every { format!(" (run {})", last.attempt) } else { String::new() };
    let mut case = TestCase::new(xml(&format!("{}{run}", last.name)), status);
    case.set_classname(xml(&last.name.check)).set_time(last.times.total());
    case.set_system_out(xml(&output(last)));
    case
}

fn status(case: &CaseResult, skips: Skips, rerun_with: &dyn Fn(&CaseResult) -> String) -> TestCaseStatus {
    let why = one_line(case.cause.as_deref().unwrap_or("no cause was given"));
    if let (true, Some(quarantine)) = (is_excused(case), &case.quarantine) {
        let mut status = TestCaseStatus::skipped();
        let until = format!("in quarantine until {}, {}: {}: {why}", quarantine.until, quarantine.reason, case.outcome);
        status.set_type("quarantine").set_message(xml(&one_line(&until)));
        return status;
    }
    let mut status = match case.outcome.row().completion {
        Completion::Passed => return TestCaseStatus::success(),
        Completion::Skipped if pipeline::fails(case, skips) => TestCaseStatus::non_success(NonSuccessKind::Error),
        Completion::Skipped => {
            let mut status = TestCaseStatus::skipped();
            status.set_type(case.outcome.row().word).set_message(xml(&why));
            return status;
        }
        Completion::Failed | Completion::Aborted => TestCaseStatus::non_success(kind(&case.outcome)),
    };
    status.set_type(xml(&case.outcome.to_string())).set_message(xml(&why));
    let rerun = rerun_with(case);
    status.set_description(xml(&format!("{}: {why}\nrerun with: {rerun}\n", what_happened(case))));
    status
}

/// How it did not pass.
fn kind(outcome: &Outcome) -> NonSuccessKind {
    if outcome.row().exit_code == EXIT_LOST { NonSuccessKind::Error } else { NonSuccessKind::Failure }
}

/// An attempt that did not count, for a later one was made.
fn rerun(case: &CaseResult) -> TestRerun {
    let mut rerun = TestRerun::new(kind(&case.outcome));
    let why = one_line(case.cause.as_deref().unwrap_or("no cause was given"));
    rerun.set_type(xml(&case.outcome.to_string())).set_message(xml(&why));
    rerun.set_description(xml(&format!("attempt {}: {}: {why}\n", case.attempt, what_happened(case))));
    rerun.set_system_out(xml(&output(case)));
    rerun
}

/// What a person wants to read beside the verdict.
fn output(case: &CaseResult) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "{label}: {}", one_line(value));
        }
    };
    line("file", &case.about.file);
    line("identifier", case.identifier.as_ref().map_or("", |identifier| identifier.as_str()));
    line("nodes", &case.nodes.join(", "));
    line("folder", &case.folder.as_ref().map_or_else(String::new, |folder| folder.to_string_lossy().into_owned()));
    line("usage", &if case.usage.is_empty() { String::new() } else { case.usage.to_string() });
    case.warnings.iter().for_each(|warning| line("warning", warning));
    case.look.iter().for_each(|command| line("look further", command));
    case.delete.iter().for_each(|command| line("delete what was kept", command));
    case.leftovers.iter().for_each(|left| line("left behind", left));
    let origins = Origins::of(&case.measurements);
    text.extend(case.measurements.iter().map(|one| figure(one, origins.text(one), Paint::OFF)));
    if let Some(log) = &case.log_tail {
        let _ = write!(text, "last lines of the log:\n{}", sanitize(log));
    }
    text
}

/// What XML 1.0 can hold of a text (its production 2, `Char`), without control characters.
pub(crate) fn xml(text: &str) -> String {
    let text = sanitize(text);
    masked(&text).chars().map(|c| if matches!(c, '\u{fffe}' | '\u{ffff}') { '\u{fffd}' } else { c }).collect()
}

//! The lines of a session that runs: its header, a line when a case begins, a few when it is over, the last line.
//! The brackets and their texts are ReFrame's.

use crate::{
    counts::{Counts, Results},
    text::{
        style::{Paint, Screen, Tone, one_line},
        time::local,
        words::{Origins, figure, titled, what_happened},
    },
};
use muster_core::{
    case::CaseName,
    result::{CaseResult, Outcome, Session},
};
use muster_text::{
    shell,
    time::{Timestamp, format_duration},
};
use std::fmt::Write;

/// The input of the header.
#[derive(Debug, Clone)]
pub struct Header<'a> {
    pub session: &'a Session,
    /// Checks (with their parameters) selected.
    pub num_checks: u32,
    pub stage: &'a str,
    /// The folder for what passing cases leave.
    pub output: &'a str,
    pub database: &'a str,
}

/// Everything before the first case.
pub fn header(header: &Header<'_>, screen: &Screen) -> String {
    let session = header.session;
    let mut text = setup(session, screen.paint);
    row(&mut text, "stage directory", header.stage);
    row(&mut text, "output directory", header.output);
    row(&mut text, "results database", header.database);
    let line = |content: String| format!("{} {content}\n", framing("==========", screen.paint));
    text.push('\n');
    text += &line(format!("Running {} check(s), {} test case(s)", header.num_checks, session.num_cases));
    text += &line(format!("Started on {}", local(session.started, &screen.zone)));
    let _ = write!(text, "\n{} start processing checks\n", framing("----------", screen.paint));
    text
}

/// Who started which session where, also for sessions of the past.
pub(crate) fn setup(session: &Session, paint: Paint) -> String {
    let mut text = format!("{}\n", paint.apply(Tone::Strong, "[Muster Setup]"));
    let command: Vec<_> = session.command.iter().map(|word| shell::quote(word)).collect();
    row(&mut text, "version", &session.version);
    row(&mut text, "command", &command.join(" "));
    row(&mut text, "launched by", &format!("{}@{}", session.user, session.host));
    row(&mut text, "working directory", &session.workdir.to_string_lossy());
    row(&mut text, "system", &session.system);
    row(&mut text, "session", &session.id.0);
    text
}

fn row(text: &mut String, label: &str, value: &str) {
    let _ = writeln!(text, "  {:<19}{}", format!("{label}:"), one_line(value));
}

/// Another round begins: `[==========] Retrying 2 failed case(s) (retry 1/3)`.
pub fn round(why: &str, paint: Paint) -> String {
    format!("\n{} {}\n", framing("==========", paint), one_line(why))
}

/// A case has started.
pub fn started(name: &CaseName, paint: Paint) -> String {
    format!("[ {} ] {}\n", paint.apply(Tone::Faint, "RUN     "), titled(name))
}

/// A case is over, the `done`-th of `total`: its line, its figures, its warnings, and what to know of it if it is
/// not fine.
pub fn finished(case: &CaseResult, done: u32, total: u32, paint: Paint) -> String {
    let word = paint.apply(case.outcome.row().grade.into(), format!("{:>9}", case.outcome.row().bracket));
    let mut text = format!("[{word} ] ({done}/{total}) {}", titled(&case.name));
    if case.attempt > 1 {
        let _ = write!(text, " (attempt {})", case.attempt);
    }
    if case.outcome != Outcome::Skip {
        let _ = write!(text, " ({})", format_duration(case.times.total()));
    }
    text.push('\n');
    let origins = Origins::of(&case.measurements);
    text.extend(case.measurements.iter().map(|measurement| figure(measurement, origins.text(measurement), paint)));
    for warning in &case.warnings {
        let _ = writeln!(text, "{} {}", paint.apply(Tone::Odd, "W:"), one_line(warning));
    }
    if case.outcome != Outcome::Pass {
        let reason = case.cause.as_deref().map_or_else(String::new, |cause| format!(": {}", one_line(cause)));
        let _ = writeln!(text, "==> {}{reason}", what_happened(case));
    }
    if let (false, Some(folder)) = (case.outcome.is_fine(), &case.folder) {
        let _ = writeln!(text, "==> kept in {}", one_line(&folder.to_string_lossy()));
    }
    if let Some(quarantine) = &case.quarantine {
        let _ = writeln!(text, "==> in quarantine until {}: {}", quarantine.until, one_line(&quarantine.reason));
    }
    if let Some(session) = &case.restored_from {
        let _ = writeln!(text, "==> restored from session {}", one_line(&session.0));
    }
    for item in &case.leftovers {
        let _ = writeln!(text, "{} left behind: {}", paint.apply(Tone::Bad, "==>"), one_line(item));
    }
    text
}

/// Everything after the last case. `at` is when that was.
pub fn ended(results: &Results<'_>, at: Timestamp, screen: &Screen) -> String {
    let took = format_duration(at.since(results.session.started));
    let mut text = format!("{} all spawned checks have finished\n\n", framing("----------", screen.paint));
    text += &verdict_line(&results.counts(), results.session.interrupted, screen.paint);
    let _ = writeln!(text, "{} Finished on {} ({took})", framing("==========", screen.paint), local(at, &screen.zone));
    text
}

/// `[  PASSED  ] Ran 9/9 test case(s) from 9 check(s) (0 failure(s), ...)`: ReFrame's line, to which are added how many
/// were stopped by a rule or never started, if there are any. It never says PASSED for less than a whole session.
pub fn verdict_line(counts: &Counts, interrupted: bool, paint: Paint) -> String {
    let is_fine = counts.is_fine() && !interrupted;
    let (word, tone) = if is_fine { ("  PASSED  ", Tone::Good) } else { ("  FAILED  ", Tone::Bad) };
    let mut parts = vec![
        format!("{} failure(s)", counts.failed),
        format!("{} expected failure(s)", counts.expected),
        format!("{} skipped", counts.skipped),
        format!("{} aborted", counts.aborted),
    ];
    for (count, what) in [(counts.quarantined, "in quarantine"), (counts.stopped, "stopped"), (counts.not_run, "not run")] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    if interrupted {
        parts.push("interrupted".to_owned());
    }
    let (ran, total, checks) = (counts.ran(), counts.total, counts.checks);
    let parts = parts.join(", ");
    format!("[{}] Ran {ran}/{total} test case(s) from {checks} check(s) ({parts})\n", paint.apply(tone, word))
}

fn framing(line: &str, paint: Paint) -> String {
    format!("[{}]", paint.apply(Tone::Good, line))
}

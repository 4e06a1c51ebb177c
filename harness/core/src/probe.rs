//! The questions of `muster doctor` and its findings: of this machine, and of a scheduler through [`Scheduler::probes`].
//!
//! [`Scheduler::probes`]: crate::job::scheduler::Scheduler::probes

use muster_text::{time::format_duration, words};
use std::{future::Future, pin::Pin, time::Duration};

/// The longest time of a question, `preflight` among them: then it is given up.
pub const EACH: Duration = Duration::from_secs(10);
/// The longest time of a part that the other parts do without: below [`EACH`], so that their findings are reported.
pub const PART: Duration = Duration::from_secs(8);
/// The longest time of all questions together.
pub const WHOLE: Duration = Duration::from_mins(1);

/// A difference of clocks that whole seconds and the way of an answer explain.
const CLOCK_WARNING: Duration = Duration::from_secs(5);
/// What has just been issued to a clock that is as far off is refused.
const CLOCK_ERROR: Duration = Duration::from_mins(5);

/// So many cases are named in a sentence.
const NAMED: usize = 3;

words! {
    /// The weight of a finding.
    pub enum Level {
        Fine = "ok",
        /// Cases run, but something deserves a look.
        Warning = "warning",
        /// Cases do not run, or their results are lost.
        Error = "error",
    }
}

/// One finding: a line of `muster doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// The thing that was looked at, in one or two words: `rights`.
    pub topic: &'static str,
    pub level: Level,
    /// The finding, as one sentence without its full stop.
    pub what: String,
    /// A suggestion of what to do. A finding that is no [`Level::Fine`] without one says it in its sentence.
    pub hint: Option<String>,
}

impl Probed {
    pub fn fine(topic: &'static str, what: impl Into<String>) -> Self {
        Self { topic, level: Level::Fine, what: what.into(), hint: None }
    }

    pub fn warning(topic: &'static str, what: impl Into<String>, hint: Option<String>) -> Self {
        Self { topic, level: Level::Warning, what: what.into(), hint }
    }

    pub fn error(topic: &'static str, what: impl Into<String>, hint: Option<String>) -> Self {
        Self { topic, level: Level::Error, what: what.into(), hint }
    }

    /// The finding, but no worse than this.
    #[must_use]
    pub fn at_most(self, level: Level) -> Self {
        Self { level: self.level.min(level), ..self }
    }
}

/// A question. It changes nothing, and may be dropped at any point.
pub struct Probe<'a> {
    /// The name in one or two words, for who waits for the answer.
    pub name: &'static str,
    /// The file, folder or database that it is about, for who gets no answer.
    pub of: Option<String>,
    pub answer: Pin<Box<dyn Future<Output = Vec<Probed>> + Send + 'a>>,
}

impl<'a> Probe<'a> {
    pub fn new(name: &'static str, answer: impl Future<Output = Vec<Probed>> + Send + 'a) -> Self {
        Self { name, of: None, answer: Box::pin(answer) }
    }

    #[must_use]
    pub fn of(self, what: impl Into<String>) -> Self {
        Self { of: Some(what.into()), ..self }
    }
}

/// A length of time to the second: `8 s`, `10m`.
pub fn seconds(length: Duration) -> String {
    if length < Duration::from_mins(1) { format!("{} s", length.as_secs()) } else { format_duration(length) }
}

/// Compares a server's clock, which is `ahead` of this machine's by these seconds; `None`: it gives no time. `refused`: the things
/// that a server refuses which is far off.
pub fn clock(ahead: Option<i64>, server: &str, refused: &str) -> Probed {
    let Some(ahead) = ahead else {
        return Probed::warning("clock", format!("{server} does not say its time: not compared"), None);
    };
    let (off, way) = (Duration::from_secs(ahead.unsigned_abs()), if ahead < 0 { "ahead of" } else { "behind" });
    if off <= CLOCK_WARNING {
        return Probed::fine("clock", format!("within {} of that of {server}", seconds(CLOCK_WARNING)));
    }
    let what = format!("this machine is {} {way} {server}", seconds(off));
    let hint = Some("synchronise both with NTP".to_owned());
    if off < CLOCK_ERROR {
        Probed::warning("clock", what, hint)
    } else {
        Probed::error("clock", format!("{what}: {refused} may be refused"), hint)
    }
}

/// The cases at some positions, each once: `pod, large and 4 more`.
pub fn named(names: &[String], positions: &[usize]) -> String {
    let mut all: Vec<&str> = Vec::new();
    for name in positions.iter().filter_map(|at| names.get(*at)) {
        if !all.contains(&name.as_str()) {
            all.push(name);
        }
    }
    let more = all.len().saturating_sub(NAMED);
    let shown = all[..all.len() - more].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_compared_in_steps() {
        let rows = [
            (None, "warning: the server does not say its time: not compared"),
            (Some(0), "ok: within 5 s of that of the server"),
            (Some(-5), "ok: within 5 s of that of the server"),
            (Some(6), "warning: this machine is 6 s behind the server"),
            (Some(-299), "warning: this machine is 4m59s ahead of the server"),
            (Some(300), "error: this machine is 5m behind the server: tokens may be refused"),
            (Some(i64::MIN), "error: this machine is 106751991167300d15h30m8s ahead of the server: tokens may be refused"),
        ];
        for (ahead, expected) in rows {
            let Probed { level, what, .. } = clock(ahead, "the server", "tokens");
            assert_eq!(format!("{level}: {what}"), expected, "{ahead:?}");
        }
    }

    #[test]
    fn a_sentence_names_few_cases_and_each_once() {
        let names = ["a", "b", "a", "c", "d", "e"].map(str::to_owned);
        let rows: [(&[usize], &str); 4] =
            [(&[], ""), (&[0, 2], "a"), (&[0, 1, 3], "a, b, c"), (&[0, 1, 2, 3, 4, 5, 9], "a, b, c and 2 more")];
        for (positions, expected) in rows {
            assert_eq!(named(&names, positions), expected, "{positions:?}");
        }
    }
}

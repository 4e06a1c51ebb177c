//! The format of the scenarios that the scheduler `fake` follows, and their mistakes.
//!
//! ```yaml
//! launch:   { delay_ms: 20, taken: 1, not_now: [{ why: quota, retry_after_ms: 500 }], error: { class: infra, message: no route } }
//! statuses:                                     # each from `after_ms` on, counted from the launch, until the next
//!   - { after_ms: 0, state: pending, why: image pull }
//!   - { after_ms: 300, state: running, nodes: [node-1] }
//!   - { after_ms: 350, error: { class: infra, message: connection reset, times: 2 } }
//!   - { after_ms: 900, state: ended, exit: 1 }  # or signal: 9, with cause: and disruption: evicted
//! logs:                                         # in the order in which they are sent
//!   - { after_ms: 310, section: pod-0, node: node-1, text: "hello\n" }
//!   - { after_ms: 320, section: pod-0, gap: the kubelet rotated the log }
//!   - { after_ms: 330, section: pod-0, error: { class: infra, message: stream reset } }
//!   - { after_ms: 335 }                         # nothing new, but the log is still being read
//!   - { section: pod-0, endless: true }         # a log that does not end with its job
//! files:    { "out.csv": "1,2\n" }               # what the job leaves in its stage folder
//! cleanup:  { delay_ms: 10, error: { class: infra, message: busy, times: 9 }, leftovers: [a volume] }
//! ```
//! Everything may be left out. A job with an empty scenario runs at once, exits with 0 and has an empty log.

use muster_core::{
    error::{Class, SchedulerError},
    job::scheduler::{Disruption, Exit},
};
use muster_text::{Value, diagnostic::Diagnostic, glob::Globs};
use serde::Deserialize;
use std::{collections::BTreeMap, time::Duration};

/// One job's scenario.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Scenario {
    pub(super) launch: LaunchSpec,
    pub(super) statuses: Vec<StatusSpec>,
    pub(super) logs: Vec<LogSpec>,
    /// By path within the stage folder, each with its text.
    pub(super) files: BTreeMap<String, String>,
    pub(super) cleanup: CleanupSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LaunchSpec {
    pub(super) delay_ms: u64,
    /// How many identifiers of this case are taken.
    pub(super) taken: u32,
    /// One a launch, before anything else.
    pub(super) not_now: Vec<NotNowSpec>,
    /// After them.
    pub(super) error: Option<ErrorSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NotNowSpec {
    pub(super) why: String,
    #[serde(default)]
    pub(super) retry_after_ms: u64,
    /// A part of it is there all the same.
    #[serde(default)]
    pub(super) created: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorSpec {
    pub(super) class: Class,
    pub(super) message: String,
    /// How often it happens.
    #[serde(default = "once")]
    pub(super) times: u32,
    /// The object is there although the launch failed: its answer was lost.
    #[serde(default)]
    pub(super) created: bool,
    pub(super) retry_after_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StatusSpec {
    pub(super) after_ms: u64,
    pub(super) state: Option<State>,
    pub(super) error: Option<ErrorSpec>,
    /// Of a pending or gone job.
    pub(super) why: String,
    pub(super) nodes: Vec<String>,
    exit: Option<i32>,
    signal: Option<i32>,
    pub(super) cause: Option<String>,
    /// How the site ended it, if it did not end by itself.
    pub(super) disruption: Option<Disruption>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    NotSeen,
    Pending,
    Running,
    Ended,
    Gone,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LogSpec {
    pub(super) after_ms: u64,
    #[serde(default = "default_section")]
    pub(super) section: String,
    pub(super) node: Option<String>,
    pub(super) text: String,
    pub(super) gap: Option<String>,
    pub(super) error: Option<ErrorSpec>,
    pub(super) endless: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CleanupSpec {
    pub(super) delay_ms: u64,
    pub(super) error: Option<ErrorSpec>,
    pub(super) leftovers: Vec<String>,
}

fn once() -> u32 {
    1
}

/// The section of a log that names none.
pub(super) fn default_section() -> String {
    "fake".to_owned()
}

impl LogSpec {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.gap.is_none() && self.error.is_none() && !self.endless
    }
}

impl State {
    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Gone)
    }
}

impl StatusSpec {
    pub(super) fn exit(&self) -> Exit {
        self.signal.map_or_else(|| Exit::Code(self.exit.unwrap_or(0)), Exit::Signal)
    }
}

impl ErrorSpec {
    /// The error, at its `nth` occurrence, from 0; `None` once it is over.
    pub(super) fn at(&self, nth: u32) -> Option<SchedulerError> {
        let retry_after = self.retry_after_ms.map(Duration::from_millis);
        (nth < self.times).then(|| SchedulerError { retry_after, ..SchedulerError::plain(self.class, self.message.clone()) })
    }
}

/// Reads a scenario.
///
/// # Errors
/// Every mistake in it; only the first if its shape is wrong.
pub(super) fn read(scenario: &Value) -> Result<Scenario, Vec<Diagnostic>> {
    if scenario.is_null() {
        return Ok(Scenario::default());
    }
    let shape = |error: serde_json::Error| vec![Diagnostic::general(format!("the scenario cannot be read: {error}"))];
    let scenario = Scenario::deserialize(scenario).map_err(shape)?;
    let mistakes: Vec<_> = mistakes(&scenario).into_iter().map(Diagnostic::general).collect();
    if mistakes.is_empty() { Ok(scenario) } else { Err(mistakes) }
}

fn mistakes(scenario: &Scenario) -> Vec<String> {
    let mut mistakes = Vec::new();
    for (n, pair) in scenario.statuses.windows(2).enumerate() {
        let [one, next] = pair else { continue };
        if next.after_ms < one.after_ms {
            mistakes.push(format!("statuses[{}] of the scenario comes before statuses[{n}]: sort them by after_ms", n + 1));
        }
        if one.state.is_some_and(State::is_over) {
            mistakes.push(format!("statuses[{}] of the scenario follows the job's end", n + 1));
        }
    }
    for (n, status) in scenario.statuses.iter().enumerate() {
        if status.state.is_some() == status.error.is_some() {
            mistakes.push(format!("statuses[{n}] of the scenario needs a state or an error, and not both"));
        }
        if status.state == Some(State::Gone) && status.disruption.is_none() {
            mistakes.push(format!("statuses[{n}] of the scenario is gone without a disruption"));
        }
        if status.exit.is_some() && status.signal.is_some() {
            mistakes.push(format!("statuses[{n}] of the scenario has an exit and a signal"));
        }
    }
    for (n, pair) in scenario.logs.windows(2).enumerate() {
        if pair[1].after_ms < pair[0].after_ms && !pair[1].endless {
            mistakes.push(format!("logs[{}] of the scenario comes before logs[{n}]: sort them by after_ms", n + 1));
        }
    }
    for path in scenario.files.keys().filter(|path| Globs::compile(&[path]).is_err()) {
        mistakes.push(format!("`{path}` among the files of the scenario is not a path within the stage folder"));
    }
    mistakes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wrong(scenario: &Value) -> String {
        match read(scenario) {
            Ok(scenario) => format!("{scenario:?}"),
            Err(mistakes) => mistakes.into_iter().map(|mistake| mistake.message).collect::<Vec<_>>().join("\n"),
        }
    }

    #[test]
    fn a_scenario_may_be_empty() {
        assert!(read(&Value::Null).is_ok());
        assert!(read(&json!({})).is_ok());
    }

    #[test]
    fn every_mistake_of_a_scenario_is_named() {
        let scenario = json!({
            "statuses": [
                { "after_ms": 5, "state": "ended", "exit": 1, "signal": 9 },
                { "after_ms": 1, "state": "gone" },
                { "after_ms": 9 },
            ],
            "logs": [{ "after_ms": 5 }, { "after_ms": 4 }],
            "files": { "../up": "", "fine/a": "" },
        });
        insta::assert_snapshot!(wrong(&scenario), @r"
statuses[1] of the scenario comes before statuses[0]: sort them by after_ms
statuses[1] of the scenario follows the job's end
statuses[2] of the scenario follows the job's end
statuses[0] of the scenario has an exit and a signal
statuses[1] of the scenario is gone without a disruption
statuses[2] of the scenario needs a state or an error, and not both
logs[1] of the scenario comes before logs[0]: sort them by after_ms
`../up` among the files of the scenario is not a path within the stage folder
");
        insta::assert_snapshot!(wrong(&json!({ "status": [] })), @"the scenario cannot be read: unknown field `status`, expected one of `launch`, `statuses`, `logs`, `files`, `cleanup`");
        insta::assert_snapshot!(wrong(&json!({ "statuses": [{ "state": "done" }] })), @"the scenario cannot be read: unknown variant `done`, expected one of `not_seen`, `pending`, `running`, `ended`, `gone`");
    }
}

//! What the `fake` scheduler plays: the format, and what is wrong with one.
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
//! Everything may be left out. An empty play runs at once, exits 0 and has an empty log.

use muster_core::{
    error::{Class, SchedulerError},
    scheduler::{Disruption, Exit},
};
use muster_text::{Value, diagnostic::Diagnostic, glob::Globs};
use serde::Deserialize;
use std::{collections::BTreeMap, time::Duration};

/// One job's play.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Play {
    pub(super) launch: LaunchPlay,
    pub(super) statuses: Vec<StatusPlay>,
    pub(super) logs: Vec<LogPlay>,
    /// By path within the stage folder, each with its text.
    pub(super) files: BTreeMap<String, String>,
    pub(super) cleanup: CleanupPlay,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LaunchPlay {
    pub(super) delay_ms: u64,
    /// So many identifiers of this case are somebody else's.
    pub(super) taken: u32,
    /// One a launch, before anything else.
    pub(super) not_now: Vec<NotNowPlay>,
    /// After them.
    pub(super) error: Option<ErrorPlay>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NotNowPlay {
    pub(super) why: String,
    #[serde(default)]
    pub(super) retry_after_ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorPlay {
    pub(super) class: ClassPlay,
    pub(super) message: String,
    /// How often it happens.
    #[serde(default = "once")]
    pub(super) times: u32,
    /// The object is there although the launch failed: its answer was lost.
    #[serde(default)]
    pub(super) created: bool,
    pub(super) retry_after_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClassPlay {
    Config,
    Infra,
    Outage,
    Gone,
    Unsupported,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusPlay {
    #[serde(default)]
    pub(super) after_ms: u64,
    pub(super) state: Option<StatePlay>,
    pub(super) error: Option<ErrorPlay>,
    /// Of a pending or gone job.
    #[serde(default)]
    pub(super) why: String,
    #[serde(default)]
    pub(super) nodes: Vec<String>,
    exit: Option<i32>,
    signal: Option<i32>,
    pub(super) cause: Option<String>,
    /// Who took it away, if it did not end by itself.
    pub(super) disruption: Option<Disruption>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StatePlay {
    NotSeen,
    Pending,
    Running,
    Ended,
    Gone,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogPlay {
    #[serde(default)]
    pub(super) after_ms: u64,
    #[serde(default = "default_section")]
    pub(super) section: String,
    pub(super) node: Option<String>,
    #[serde(default)]
    pub(super) text: String,
    pub(super) gap: Option<String>,
    pub(super) error: Option<ErrorPlay>,
    #[serde(default)]
    pub(super) endless: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CleanupPlay {
    pub(super) delay_ms: u64,
    pub(super) error: Option<ErrorPlay>,
    pub(super) leftovers: Vec<String>,
}

fn once() -> u32 {
    1
}

/// The section of a log that names none.
pub(super) fn default_section() -> String {
    "fake".to_owned()
}

impl LogPlay {
    pub(super) fn says_nothing(&self) -> bool {
        self.text.is_empty() && self.gap.is_none() && self.error.is_none() && !self.endless
    }
}

impl StatePlay {
    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Gone)
    }
}

impl StatusPlay {
    pub(super) fn exit(&self) -> Exit {
        self.signal.map_or_else(|| Exit::Code(self.exit.unwrap_or(0)), Exit::Signal)
    }
}

impl ErrorPlay {
    /// The error, at its `nth` occasion, from 0; `None` once it is over.
    pub(super) fn at(&self, nth: u32) -> Option<SchedulerError> {
        let class = match self.class {
            ClassPlay::Config => Class::Config,
            ClassPlay::Infra => Class::Infra,
            ClassPlay::Outage => Class::Outage,
            ClassPlay::Gone => Class::Gone,
            ClassPlay::Unsupported => Class::Unsupported,
        };
        let retry_after = self.retry_after_ms.map(Duration::from_millis);
        (nth < self.times).then(|| SchedulerError { retry_after, ..SchedulerError::plain(class, self.message.clone()) })
    }
}

/// Reads a play.
///
/// # Errors
/// Every mistake in it; only the first if its shape is wrong.
pub(super) fn read(play: &Value) -> Result<Play, Vec<Diagnostic>> {
    if play.is_null() {
        return Ok(Play::default());
    }
    let shape = |error: serde_json::Error| vec![Diagnostic::general(format!("the play cannot be read: {error}"))];
    let play = Play::deserialize(play).map_err(shape)?;
    let mistakes: Vec<_> = mistakes(&play).into_iter().map(Diagnostic::general).collect();
    if mistakes.is_empty() { Ok(play) } else { Err(mistakes) }
}

fn mistakes(play: &Play) -> Vec<String> {
    let mut mistakes = Vec::new();
    for (n, pair) in play.statuses.windows(2).enumerate() {
        let [one, next] = pair else { continue };
        if next.after_ms < one.after_ms {
            mistakes.push(format!("statuses[{}] of the play comes before statuses[{n}]: sort them by after_ms", n + 1));
        }
        if one.state.is_some_and(StatePlay::is_over) {
            mistakes.push(format!("statuses[{}] of the play follows the job's end", n + 1));
        }
    }
    for (n, status) in play.statuses.iter().enumerate() {
        if status.state.is_some() == status.error.is_some() {
            mistakes.push(format!("statuses[{n}] of the play needs a state or an error, and not both"));
        }
        if status.state == Some(StatePlay::Gone) && status.disruption.is_none() {
            mistakes.push(format!("statuses[{n}] of the play is gone without a disruption"));
        }
        if status.exit.is_some() && status.signal.is_some() {
            mistakes.push(format!("statuses[{n}] of the play has an exit and a signal"));
        }
    }
    for (n, pair) in play.logs.windows(2).enumerate() {
        if pair[1].after_ms < pair[0].after_ms && !pair[1].endless {
            mistakes.push(format!("logs[{}] of the play comes before logs[{n}]: sort them by after_ms", n + 1));
        }
    }
    for path in play.files.keys().filter(|path| Globs::compile(&[path]).is_err()) {
        mistakes.push(format!("`{path}` among the files of the play is no path within the stage folder"));
    }
    mistakes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wrong(play: &Value) -> String {
        match read(play) {
            Ok(play) => format!("{play:?}"),
            Err(mistakes) => mistakes.into_iter().map(|mistake| mistake.message).collect::<Vec<_>>().join("\n"),
        }
    }

    #[test]
    fn a_play_may_be_empty() {
        assert!(read(&Value::Null).is_ok());
        assert!(read(&json!({})).is_ok());
    }

    #[test]
    fn every_mistake_of_a_play_is_named() {
        let play = json!({
            "statuses": [
                { "after_ms": 5, "state": "ended", "exit": 1, "signal": 9 },
                { "after_ms": 1, "state": "gone" },
                { "after_ms": 9 },
            ],
            "logs": [{ "after_ms": 5 }, { "after_ms": 4 }],
            "files": { "../up": "", "fine/a": "" },
        });
        insta::assert_snapshot!(wrong(&play), @r"
statuses[1] of the play comes before statuses[0]: sort them by after_ms
statuses[1] of the play follows the job's end
statuses[2] of the play follows the job's end
statuses[0] of the play has an exit and a signal
statuses[1] of the play is gone without a disruption
statuses[2] of the play needs a state or an error, and not both
logs[1] of the play comes before logs[0]: sort them by after_ms
`../up` among the files of the play is no path within the stage folder
");
        insta::assert_snapshot!(wrong(&json!({ "status": [] })), @"the play cannot be read: unknown field `status`, expected one of `launch`, `statuses`, `logs`, `files`, `cleanup`");
        insta::assert_snapshot!(wrong(&json!({ "statuses": [{ "state": "done" }] })), @"the play cannot be read: unknown variant `done`, expected one of `not_seen`, `pending`, `running`, `ended`, `gone`");
    }
}

//! The facts that EC2 and its agent have given about one instance.

use muster_core::job::scheduler::NodeSeen;
use serde::Deserialize;

/// All that is known of one instance of a job.
#[derive(Debug, Clone, Default)]
pub(crate) struct Member {
    pub rank: u32,
    pub id: String,
    pub state: State,
    /// `StateReason.Code` and its message, of an instance that has ended.
    pub reason: Option<(String, String)>,
    /// The last status of its agent.
    pub said: Option<Said>,
    pub console: Console,
}

/// The states of EC2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Pending,
    Running,
    /// Shutting down, stopping, stopped or terminated.
    Ended,
}

/// What the console of an instance has. It is asked only when it is needed, and lags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Console {
    #[default]
    NotRead,
    /// The exit status that the agent left there, with the end of the log.
    Exit(i32),
    /// The agent left nothing: the last lines.
    Lines(String),
}

/// The object `status` of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Said {
    /// The instance's own id. Empty: it could not find out.
    #[serde(default)]
    pub instance: String,
    pub state: Phase,
    pub exit: Option<i32>,
    #[serde(default)]
    pub ip: String,
    /// The public key with which it is a host, and a user of the others. Empty: it lets nobody in.
    #[serde(default)]
    pub key: String,
    #[serde(default, rename = "type")]
    pub instance_type: String,
    #[serde(default)]
    pub zone: String,
    /// The kernel that runs, and the microcode of its first processor. Empty: it does not say.
    #[serde(default)]
    pub kernel: String,
    #[serde(default)]
    pub microcode: String,
    /// Seconds since the Unix epoch: by the clock of the instance, and after `by_clock` by that of S3.
    pub started: Option<i64>,
    /// The time when the script ended.
    #[serde(default)]
    pub ended: Option<i64>,
    /// The length of the log then; while the script runs, the length that was sent.
    #[serde(default)]
    pub log_bytes: u64,
    /// The state of the files that the script has left.
    #[serde(default)]
    pub outputs: Outputs,
    pub t: i64,
}

impl Said {
    /// Its line of the object `go`.
    pub(super) fn host(&self) -> String {
        format!("{}\n", format!("{} {}", self.ip, self.key).trim_end())
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outputs {
    /// They were not asked for, or the script still runs.
    #[default]
    None,
    Sent,
    /// They are more than an agent sends.
    Large,
    Lost,
}

/// What an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    Booted,
    Ready,
    Running,
    /// The script has ended, and what it leaves is on its way.
    Sending,
    /// The disk is full, and took the end of the log or of the script with it.
    Full,
    /// The spot notice came, and the log is sent.
    Interrupted,
    /// The instance booted a second time.
    Rebooted,
    /// It could not begin.
    Failed,
    Timeout,
    /// Others have ended the job.
    Stopped,
    Done,
}

impl Phase {
    /// The agent has said its last word.
    pub(super) fn is_last(self) -> bool {
        match self {
            Self::Booted | Self::Ready | Self::Running | Self::Sending => false,
            Self::Full | Self::Interrupted | Self::Rebooted | Self::Failed | Self::Timeout | Self::Stopped | Self::Done => true,
        }
    }
}

impl Member {
    pub(super) fn phase(&self) -> Option<Phase> {
        self.said.as_ref().map(|said| said.state)
    }

    /// The exit of its script: as the agent said it, else as the console has it.
    pub(crate) fn exit(&self) -> Option<i32> {
        let said = self.said.as_ref().filter(|said| said.state.is_last()).and_then(|said| said.exit);
        said.or(match &self.console {
            Console::Exit(exit) => Some(*exit),
            Console::NotRead | Console::Lines(_) => None,
        })
    }

    /// `i-0abc (c7i.large, eu-west-1a)`
    pub(crate) fn node(&self) -> String {
        let Some(Said { instance_type, zone, .. }) = &self.said else { return self.id.clone() };
        format!("{} ({instance_type}, {zone})", self.id)
    }

    /// What is known of it beside its name.
    pub(super) fn described(&self) -> Option<NodeSeen> {
        let Said { instance_type, zone, kernel, microcode, .. } = self.said.as_ref()?;
        let facts = [("zone", zone), ("kernel", kernel), ("microcode", microcode)].into_iter();
        let facts = facts.filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name.to_owned(), value.clone()));
        Some(NodeSeen { name: self.node(), uid: self.id.clone(), class: instance_type.clone(), facts: facts.collect() })
    }

    pub(super) fn has_ended_silently(&self) -> bool {
        self.state == State::Ended && self.exit().is_none() && !self.phase().is_some_and(Phase::is_last)
    }
}

//! The workload of a case, with nothing left to fill in: input of a scheduler's `plan`.

use crate::{
    case::{CaseName, Identifier, SessionId},
    job::descriptor::SchedulerName,
};
use muster_text::{Value, words};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use std::{path::PathBuf, time::Duration};

/// A rendered case, ready to be planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Marks everything that this attempt creates.
    pub identifier: Identifier,
    pub session: SessionId,
    pub case: CaseName,
    /// The folder of this attempt: the script, the log and what the job leaves. It exists before `launch`.
    pub stage: PathBuf,
    /// The files that are put into that folder before anything runs; `None`: none.
    pub staging: Option<Staging>,
    /// The globs of `keep_files`: a scheduler that does not share the folder brings back what they name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep_files: Vec<String>,
    pub program: Program,
    /// The name of its scheduler in the site file.
    #[serde(default)]
    pub scheduler: SchedulerName,
    /// The check's values of the scheduler's own keys, rendered.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub own: Map<String, Value>,
    /// The values of keys that several schedulers have, of those that this one takes: the partition's, the check's over them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub shared: Map<String, Value>,
    /// Completions, instances or ranks; 1 when nothing says more.
    pub num_tasks: u32,
    /// The partition's options, the system's under them, the check's over them.
    pub sched_options: Value,
    pub limits: Limits,
    /// The time for which failed jobs are kept; `None`: that of the scheduler's own rule.
    pub keep_failed: Option<Duration>,
}

/// The program, in a form that belongs to no scheduler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// A POSIX sh script, complete.
    Script {
        text: String,
        /// Variables that are taken over from the harness' own environment, if set there.
        pass_env: Vec<String>,
    },
    /// A script or a command in a container of `image`.
    Container {
        image: String,
        /// `command`, an argv with nothing to do before or after it; `None`: the script.
        command: Option<Vec<String>>,
        script: String,
        /// The container's environment, which the script exports itself.
        env_vars: Vec<(String, String)>,
    },
    /// The scheduler's own keys hold the program: [`Workload::own`].
    #[serde(alias = "play")]
    Own {
        /// Set in everything that runs and does not set them itself.
        #[serde(default)]
        env_vars: Vec<(String, String)>,
    },
}

/// Files to copy before the script runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staging {
    /// The folder; until it is resolved, relative to the working directory.
    pub folder: PathBuf,
    /// Globs within it: these files are linked instead of copied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readonly_files: Vec<String>,
    /// The longest time of staging from its turn on; `None`: no limit.
    #[serde(default = "Staging::usual_limit")]
    pub limit: Option<Duration>,
}

impl Staging {
    /// The default of `stage_limit`.
    pub const LIMIT: Duration = Duration::from_mins(10);

    #[expect(clippy::unnecessary_wraps, reason = "it stands for the field")]
    fn usual_limit() -> Option<Duration> {
        Some(Self::LIMIT)
    }
}

words! {
    /// The limit that was reached.
    pub enum Clock {
        /// `max_pending_time`
        Pending = "pending",
        /// `time_limit`
        Run = "run",
    }
}

impl Clock {
    /// The key that sets its limit.
    pub fn key(self) -> &'static str {
        match self {
            Self::Pending => "max_pending_time",
            Self::Run => "time_limit",
        }
    }
}

/// The limits of waiting, running and being judged. Two clocks, never one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The time from the launch to the first container running; `None`: no limit.
    pub pending: Option<Duration>,
    /// The time from the first container running to the end; `None`: no limit.
    pub run: Option<Duration>,
    /// The time for sanity and performance together.
    pub judge: Duration,
}

impl Limits {
    /// `judge_limit` without the key.
    pub const JUDGE: Duration = Duration::from_mins(5);

    /// The limit of a clock; `None`: it may run for ever.
    pub fn of(&self, clock: Clock) -> Option<Duration> {
        match clock {
            Clock::Pending => self.pending,
            Clock::Run => self.run,
        }
    }
}

//! The places where checks run: a system, its partitions and environments, validated. The file format is in `file`.

pub mod facts;
pub mod file;
pub mod modules;
pub mod platform;
pub mod quarantine;
pub mod scheduler_keys;
pub mod selector;

use crate::site::{
    modules::{Module, ModulesSystem},
    platform::Platform,
};
use muster_core::{job::descriptor::NamedScheduler, night::NightRules, result::OnDisruption, rules::LogAction};
use muster_text::{Value, diagnostic::Span, file_mode::FileMode};
use serde::Serialize;
use serde_json::Map;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// A machine, a cluster or a cloud account that checks run on.
#[derive(Debug, Clone)]
pub struct System {
    /// `eidf`
    pub name: String,
    pub descr: String,
    /// Host name patterns by which it is recognised.
    pub hostnames: Vec<String>,
    /// Its parts.
    pub partitions: Vec<Arc<Partition>>,
    /// Facts that expressions see as `system.extras`.
    pub extras: BTreeMap<String, Value>,
    /// Bundles of options, `--mode`.
    pub modes: Vec<Mode>,
    /// Cases whose outcome does not count.
    pub quarantine: Vec<quarantine::Entry>,
    /// The mode of the files that Muster creates; `None`: not set.
    pub file_mode: Option<FileMode>,
    /// Its nights.
    pub nights: NightRules,
    /// The place of its definition; `None` for the built-in one.
    pub span: Option<Span>,
}

/// Options of the command line under one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mode {
    /// `nightly`
    pub name: String,
    /// Each as it would be typed, shell quoting and variables included.
    pub options: Vec<String>,
}

/// A part of a system with one scheduler.
#[derive(Debug, Clone)]
pub struct Partition {
    /// `gpu-service`
    pub name: String,
    pub descr: String,
    /// The scheduler that launches here.
    pub scheduler: NamedScheduler,
    /// The environments a check may run in here.
    pub environs: Vec<Arc<Environment>>,
    /// The number of cases that run at once.
    pub max_jobs: usize,
    /// `[gpu, a100]`: `+gpu` in `valid_systems`.
    pub features: Vec<String>,
    /// `{ gpu: a100 }`: `%gpu=a100` in `valid_systems`.
    pub extras: BTreeMap<String, Value>,
    /// The longest time from the first container running; `None`: no limit of the partition.
    pub time_limit: Option<Duration>,
    /// Queue, quota, scheduling, image pull.
    pub max_pending_time: Option<Duration>,
    /// The longest time of staging, if the check sets no limit; `None`: no limit of the partition.
    pub stage_limit: Option<Duration>,
    /// The most bytes of a log that are kept, all sections together; `None`: no limit of the partition.
    pub max_log: Option<u64>,
    /// The action for a case whose log is longer.
    pub max_log_action: LogAction,
    /// The action for a case that the site takes away, if its check does not set it.
    pub on_disruption: Option<OnDisruption>,
    /// The program that loads modules here; `None`: not set.
    pub modules_system: Option<ModulesSystem>,
    /// Loaded before every job script: the system's, then its own.
    pub modules: Vec<Module>,
    /// The programs that run containers here.
    pub container_platforms: Vec<ContainerPlatform>,
    /// Exported before every job script.
    pub env_vars: Vec<(String, String)>,
    /// Run before `prerun_cmds`.
    pub prepare_cmds: Vec<String>,
    /// Names of variables that a local job inherits from the harness.
    pub pass_env: Vec<String>,
    /// The scheduler's own options, the system's under the partition's.
    pub sched_options: Value,
    /// The values of keys that several schedulers have, of those that its scheduler takes.
    pub shared: Map<String, Value>,
    /// Facts of its processors, in ReFrame's words; `local` fills in what it detects.
    pub processor: BTreeMap<String, Value>,
    pub devices: Vec<Device>,
    /// The place of its definition; `None` for the built-in one.
    pub span: Option<Span>,
}

/// Something that runs containers, and what it needs.
#[derive(Debug, Clone)]
pub struct ContainerPlatform {
    pub platform: Platform,
    /// Loaded before the check's.
    pub modules: Vec<Module>,
    /// Exported before the check's.
    pub env_vars: Vec<(String, String)>,
    /// It runs the containers of checks that name none.
    pub is_default: bool,
}

impl Partition {
    /// Returns the program that runs the container of a check that names none.
    pub fn default_platform(&self) -> Option<Platform> {
        let chosen = self.container_platforms.iter().find(|one| one.is_default).or(self.container_platforms.first());
        chosen.map(|one| one.platform)
    }
}

/// One kind of device in every node of a partition. Serialized: what expressions see of it.
#[derive(Debug, Clone, Serialize)]
pub struct Device {
    /// `gpu`
    #[serde(skip)]
    pub kind: String,
    /// `sm_80`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// `A100-SXM4-40GB`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The number in a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_devices: Option<u64>,
}

/// A setting that a check runs in: variables, features, facts.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `default`
    pub name: String,
    pub descr: String,
    /// Loaded after the partition's.
    pub modules: Vec<Module>,
    /// Exported after the partition's.
    pub env_vars: Vec<(String, String)>,
    /// Run after the partition's.
    pub prepare_cmds: Vec<String>,
    /// `+cuda` in `valid_prog_environs`.
    pub features: Vec<String>,
    /// `%compiler=gcc` in `valid_prog_environs`, and `environ.extras` in expressions.
    pub extras: BTreeMap<String, Value>,
    /// Values of resources by their names, under `extra_resources` of checks.
    pub resources: Map<String, Value>,
}

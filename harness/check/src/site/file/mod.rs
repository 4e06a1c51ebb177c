//! The site file format, one system a file, and how a system is picked.
//!
//! ReFrame's words with one difference: what a scheduler or a manifest says is not said again here. Site files have
//! no placeholders.

mod build;
mod pick;

pub use build::read;
pub use pick::{built_in_local, duplicates, pick};

use crate::site::{
    modules::{Module, ModulesSystem},
    platform::Platform,
    quarantine::QuarantineFile,
};
use muster_core::{job::scheduler_kind::SchedulerKind, result::OnDisruption, rules::LogAction};
use muster_text::{
    Value,
    decode::{Keyed, Limit, Mapping, Name, OneOrMany, Ordered, Spanned, Within},
    file_mode::FileMode,
    keys,
    size::Size,
    yaml::Node,
};
use serde_json::{Map, json};
use std::{num::NonZeroU32, time::Duration};

keys! {
    /// A site file as written.
    pub struct SiteFile ("a site file") {
        /// Name of the system, as in `--system` and `valid_systems`.
        @required name: Spanned<Name>,
        /// One sentence for people.
        descr: String,
        /// Regexes for host names, matched from their first letter: on these machines the system is taken without `--system`.
        hostnames: OneOrMany<Spanned<String>>,
        /// Facts by name, `${{ system.extras.name }}` in checks.
        extras: Ordered<Node>,
        /// The parts of the system, each with one scheduler.
        @required partitions: Vec<PartitionFile>,
        /// The settings that checks run in. Default: one, `default`, that sets nothing.
        environments: Vec<EnvironmentFile>,
        /// What loads modules: `lmod`, `tmod` (`envmod` or `tmod4` from version 4 on), `spack`, or `nomod` where what modules would
        /// bring is there without them. Without this key, checks that load modules are skipped.
        modules_system: ModulesSystem,
        /// Modules that every job loads first: a name, or `{ name, collection, path }`. One, or a list.
        modules: OneOrMany<Module>,
        /// Environment variables of every job; a partition's lie over them.
        env_vars: Ordered<String>,
        /// Names of environment variables that local jobs inherit from Muster, beside PATH, HOME, USER, LANG and TMPDIR.
        pass_env: OneOrMany<String>,
        /// Options of the schedulers; a partition's are laid over them.
        sched_options: Mapping,
        /// Bundles of options of the command line, each under a name: `--mode nightly`.
        modes: Vec<ModeFile>,
        /// Cases whose failure is known and does not fail a session, each with a reason and a last day.
        quarantine: Vec<QuarantineFile>,
        /// Who beside their owner reads the files that Muster creates: `0640` for the group. Folders get `x` where files get `r`.
        /// `--file-mode` overrides it. Default: 0600.
        file_mode: FileMode,
    }
    instead {
        "systems" => "one file is one system: write its keys at the top of the file",
        "description" => "write `descr`",
        "prefix" => "say it with `--prefix`",
        "stagedir" => "say it with `--stage`",
        "outputdir" => "say it with `--output`",
        "resourcesdir" => "name the path in a variable of the check",
        "max_local_jobs" => "write `max_jobs` in a partition",
        "logging" => "say it with `-v` and the report options",
        "general" => "every setting has an option or a `MUSTER_` variable",
        "storage" => "results are always stored, in `MUSTER_DB`",
    }
}

keys! {
    /// One entry of `modes`.
    pub struct ModeFile ("a mode") {
        /// Name of the mode, as in `--mode`.
        @required name: Spanned<Name>,
        /// Options, as they would be typed: `-t nightly --max-retries=1`. One, or a list. What is typed beside `--mode` comes
        /// after them. No actions (`-r`, `-l`), and not `-C`, `--system` and `--mode`.
        @required options: OneOrMany<String>,
    }
    instead {
        "target_systems" => "one file is one system: its modes are for it alone",
        "systems" => "one file is one system: its modes are for it alone",
    }
}

keys! {
    /// A partition as written.
    pub struct PartitionFile ("a partition") {
        /// Name of the partition, as in `valid_systems: system:partition`.
        @required name: Spanned<Name>,
        /// One sentence for people.
        descr: String,
        /// Who launches here: k8s, ipu, ec2, local or fake.
        @required scheduler: SchedulerKind,
        /// The environments that checks may run in here. Default: `default`.
        environs: OneOrMany<Spanned<String>>,
        /// How many cases run or wait in the scheduler at once. Default: 8.
        max_jobs: NonZeroU32,
        /// What it has, `+name` in `valid_systems`.
        features: OneOrMany<String>,
        /// Facts by name: `%name=value` in `valid_systems`, `${{ partition.extras.name }}` in checks.
        extras: Ordered<Node>,
        /// How long a job may run if its check does not say: `1h30m`. Default: no limit, as is null.
        time_limit: Limit<Duration>,
        /// How long a job may wait if its check does not say: `2h`. Default: 12h; null: no limit.
        max_pending_time: Limit<Duration>,
        /// How long `sourcesdir` may take to be staged if the check does not say: `30m`. Default: 10m; null: no limit.
        stage_limit: Limit<Within>,
        /// How much of a log is kept if its check does not say, all pods together: `500MB`, or a number of bytes. Default: 2GiB;
        /// null: no limit.
        max_log: Limit<Size>,
        /// What becomes of a case whose log is longer if its check does not say: `invalid` or `warn`. Default: `invalid`.
        max_log_action: LogAction,
        /// Modules that every job loads after the system's: a name, or `{ name, collection, path }`. One, or a list.
        modules: OneOrMany<Module>,
        /// What runs the containers of `container_platform`; the first one, or the one with `default: true`, where a check does
        /// not say which.
        container_platforms: Vec<ContainerPlatformFile>,
        /// Environment variables of every job; an environment's and a check's lie over them.
        env_vars: Ordered<String>,
        /// Lines of sh before everything else in the job script, modules and variables too. One, or a list.
        prepare_cmds: OneOrMany<String>,
        /// Names of environment variables that local jobs inherit from Muster.
        pass_env: OneOrMany<String>,
        /// What becomes of a case that the site takes away (preempted, evicted, its node lost) if its check does not say: `fail`,
        /// or `retry`. Default: it is a failure like any other, retried with `--max-retries`.
        on_disruption: OnDisruption,
        /// Options of the scheduler: for k8s `context`, `namespace`, `labels`.
        sched_options: Mapping,
        /// What its processors are. `local` detects it.
        processor: ProcessorFile,
        /// What devices its nodes have.
        devices: Vec<DeviceFile>,
    }
    instead {
        "description" => "write `descr`",
        "resources" => "the scheduler or manifest says this",
        "access" => "the scheduler or manifest says this",
        "launcher" => "the scheduler or manifest says this",
        "namespace" => "write it in `sched_options`",
        "context" => "write it in `sched_options`",
        "environments" => "write `environs`: names of the file's `environments`",
    }
}

keys! {
    /// One entry of `container_platforms`.
    pub struct ContainerPlatformFile ("a container platform of a partition") {
        /// docker, podman, singularity, apptainer, sarus or shifter.
        @required platform: Platform as "type",
        /// Modules to load where it is used. One, or a list.
        modules: OneOrMany<Module>,
        /// Environment variables where it is used.
        env_vars: Ordered<String>,
        /// Whether it runs the containers of checks that do not say which. Default: the first of the list does.
        default: bool,
    }
    instead {
        "name" => "write `type`",
        "variables" => "write `env_vars`",
    }
}

keys! {
    /// An environment as written.
    pub struct EnvironmentFile ("an environment") {
        /// Name of the environment, as in `environs` and `valid_prog_environs`.
        @required name: Spanned<Name>,
        /// One sentence for people.
        descr: String,
        /// Modules that its jobs load after the partition's: a name, or `{ name, collection, path }`. One, or a list.
        modules: OneOrMany<Module>,
        /// Environment variables of its jobs; a check's lie over them.
        env_vars: Ordered<String>,
        /// What it has, `+name` in `valid_prog_environs`.
        features: OneOrMany<String>,
        /// Facts by name: `%name=value` in `valid_prog_environs`, `${{ environ.extras.name }}` in checks.
        extras: Ordered<Node>,
        /// Lines of sh after all that the partition prepares. One, or a list.
        prepare_cmds: OneOrMany<String>,
    }
    instead {
        "target_systems" => "one file is one system: its environments are for it alone",
        "resources" => "the scheduler or manifest says this",
        "cc" => "write it in `env_vars`",
        "cxx" => "write it in `env_vars`",
        "ftn" => "write it in `env_vars`",
        "cflags" => "write it in `env_vars`",
        "cxxflags" => "write it in `env_vars`",
        "fflags" => "write it in `env_vars`",
        "ldflags" => "write it in `env_vars`",
    }
}

keys! {
    /// `processor`: facts of one node. Checks read them as `${{ partition.processor.num_cores }}`.
    pub struct ProcessorFile ("a processor") {
        /// Microarchitecture: `zen3`.
        arch: String,
        /// What the maker calls it.
        model: String,
        /// Instruction set: `x86_64`, `aarch64`.
        platform: String,
        /// Logical processors of a node.
        num_cpus: u64,
        /// Logical processors of a core.
        num_cpus_per_core: u64,
        /// Logical processors of a socket.
        num_cpus_per_socket: u64,
        /// Cores of a node.
        num_cores: u64,
        /// Sockets of a node.
        num_sockets: u64,
    }
    instead {
        "num_cores_per_socket" => "write `num_cores` and `num_sockets`",
        "topology" => "write what checks need in `extras`",
    }
}

keys! {
    /// One entry of `devices`. Checks read it as `${{ partition.devices.gpu.num_devices }}`.
    pub struct DeviceFile ("a device") {
        /// What it is, and its name in checks: `gpu`.
        @required kind: Spanned<Name> as "type",
        /// Architecture: `sm_80`.
        arch: String,
        /// What the maker calls it: `A100-SXM4-40GB`.
        model: String,
        /// How many a node has.
        num_devices: u64,
    }
}

/// The JSON schema of a site file, for editors and other tools.
pub fn schema() -> Value {
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("$id".to_owned(), "site.schema.json".into());
    schema.insert("title".to_owned(), "Muster site".into());
    if let Value::Object(table) = SiteFile::TABLE.schema() {
        schema.extend(table);
    }
    let none = json!({ "not": {}, "$comment": "site files have no placeholders" });
    schema.insert("$defs".to_owned(), json!({ "placeholder": none }));
    Value::Object(schema)
}

#[cfg(test)]
mod tests;

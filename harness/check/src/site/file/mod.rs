//! The site file format, one system a file, and how a system is picked.
//!
//! ReFrame's words with one difference: settings of a scheduler or manifest are not repeated here. Site files have
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
use muster_core::{
    job::descriptor::Schedulers,
    night::{Cutoff, FalseAlarms, Share, ZoneName},
    result::OnDisruption,
    rules::LogAction,
};
use muster_text::{
    Value,
    decode::{Keyed, Limit, Mapping, Name, OneOrMany, Ordered, Spanned, Within},
    file_mode::FileMode,
    keys,
    size::Size,
    yaml::Node,
};
use serde_json::json;
use std::{num::NonZeroU32, time::Duration};

keys! {
    /// A site file as written.
    pub struct SiteFile ("a site file") {
        /// Name of the system, as in `--system` and `valid_systems`.
        @required name: Spanned<Name>,
        /// One sentence for people.
        descr: String,
        /// Regexes for host names, matched from the first letter on: on these machines the system is used without `--system`.
        hostnames: OneOrMany<Spanned<String>>,
        /// Facts by name, `${{ system.extras.name }}` in checks.
        extras: Ordered<Node>,
        /// The parts of the system, each with one scheduler.
        @required partitions: Vec<PartitionFile>,
        /// The settings that checks run in. Default: one, `default`, that sets nothing.
        environments: Vec<EnvironmentFile>,
        /// What loads modules: `lmod`, `tmod` (`envmod` or `tmod4` from version 4 on), `spack`, or `nomod` if everything is there
        /// without modules. Without this key, checks that load modules are skipped.
        modules_system: ModulesSystem,
        /// Modules that every job loads first: a name, or `{ name, collection, path }`. One, or a list.
        modules: OneOrMany<Module>,
        /// Environment variables of every job. Those of a partition override them.
        env_vars: Ordered<String>,
        /// Names of environment variables that jobs on `local`, `slurm` and `ec2` inherit from Muster, on `local` and `slurm` in
        /// addition to PATH, HOME, USER, LANG and TMPDIR.
        pass_env: OneOrMany<String>,
        /// Options of the schedulers. Those of a partition override them.
        sched_options: Mapping,
        /// Options of the command line, stored under a name: `--mode nightly`.
        modes: Vec<ModeFile>,
        /// Cases whose failure is known and does not fail a session, each with a reason and a last day.
        quarantine: Vec<QuarantineFile>,
        /// The mode of the files that Muster creates: `0640` lets the group read them. Folders get `x` where files get `r`.
        /// `--file-mode` overrides it. Default: 0600.
        file_mode: FileMode,
        /// The nights of the system: what is compared from one to the next.
        nights: NightsFile,
    }
    instead {
        "systems" => "one file is one system: write its keys at the top of the file",
        "description" => "write `descr`",
        "prefix" => "use `--prefix`",
        "stagedir" => "use `--stage`",
        "outputdir" => "use `--output`",
        "resourcesdir" => "name the path in a variable of the check",
        "max_local_jobs" => "write `max_jobs` in a partition",
        "logging" => "use `-v` and the report options",
        "general" => "every setting has an option or a `MUSTER_` variable",
        "storage" => "results are always stored, in `MUSTER_DB`",
    }
}

keys! {
    /// `nights`: when a night ends, and how its verdict is made.
    pub struct NightsFile ("`nights`") {
        /// The time zone of the system, by its name: `Europe/London`. Default: UTC.
        time_zone: ZoneName,
        /// When one night ends and the next begins: `12:00`. A session belongs to the night in which it starts, and a night has the
        /// date of its evening. Default: 12:00.
        cutoff: Cutoff,
        /// How many changes may be reported wrongly a night, over all metrics of the system. Default: 0.04, one in 25 nights.
        false_alarms: FalseAlarms,
        /// The share of what was planned that has to be measured, or the night is incomplete: `90%`. Default: 90%.
        min_coverage: Share,
    }
    instead {
        "timezone" | "tz" => "write `time_zone`",
        "cut_off" => "write `cutoff`",
    }
}

keys! {
    /// One entry of `modes`.
    pub struct ModeFile ("a mode") {
        /// Name of the mode, as in `--mode`.
        @required name: Spanned<Name>,
        /// Options, as on the command line: `-t nightly --max-retries=1`. One, or a list. Options of the command line come after
        /// them. Actions (`-r`, `-l`), `-C`, `--system` and `--mode` are not allowed.
        @required options: OneOrMany<String>,
    }
    instead {
        "target_systems" | "systems" => "one file is one system: its modes are for it alone",
    }
}

keys! {
    /// A partition as written.
    pub struct PartitionFile ("a partition") {
        /// Name of the partition, as in `valid_systems: system:partition`.
        @required name: Spanned<Name>,
        /// One sentence for people.
        descr: String,
        /// The scheduler, which runs the cases.
        @required scheduler: Node,
        /// The environments that checks may run in here. Default: `default`.
        environs: OneOrMany<Spanned<String>>,
        /// How many cases may run or wait in the scheduler at the same time. Default: 8.
        max_jobs: NonZeroU32,
        /// Features, selected by `+name` in `valid_systems`.
        features: OneOrMany<String>,
        /// Facts by name: `%name=value` in `valid_systems`, `${{ partition.extras.name }}` in checks.
        extras: Ordered<Node>,
        /// How long a job may run if its check sets no limit: `1h30m`. Default and null: no limit.
        time_limit: Limit<Duration>,
        /// How long a job may wait if its check sets no limit: `2h`. Default: 12h; null: no limit.
        max_pending_time: Limit<Duration>,
        /// How long copying `sourcesdir` may take if the check sets no limit: `30m`. Default: 10m; null: no limit.
        stage_limit: Limit<Within>,
        /// How much of a log is kept if its check sets no limit, all pods together: `500MB`, or a number of bytes. Default: 2GiB;
        /// null: no limit.
        max_log: Limit<Size>,
        /// What to do with a case whose log is longer if its check does not set it: `invalid` or `warn`. Default: `invalid`.
        max_log_action: LogAction,
        /// Modules that every job loads after the system's: a name, or `{ name, collection, path }`. One, or a list.
        modules: OneOrMany<Module>,
        /// Programs that run the containers of `container_platform`. Checks that name none use the one with `default: true`, else
        /// the first one.
        container_platforms: Vec<ContainerPlatformFile>,
        /// Environment variables of every job. Those of environment and check override them.
        env_vars: Ordered<String>,
        /// Lines of sh before everything else in the job script, modules and variables included. One, or a list.
        prepare_cmds: OneOrMany<String>,
        /// Names of environment variables that jobs on `local`, `slurm` and `ec2` inherit from Muster.
        pass_env: OneOrMany<String>,
        /// What to do if the site takes a case away (preempted, evicted, node failed) and its check does not set it: `fail`, or
        /// `retry`. Default: it is retried like any failure, with `--max-retries`.
        on_disruption: OnDisruption,
        /// Options of the scheduler: for k8s `context`, `namespace`, `labels`.
        sched_options: Mapping,
        /// Options that every job is submitted with, where the scheduler has such: `--account=a`. One, or a list.
        @shared access: OneOrMany<String>,
        /// What `extra_resources` of checks name, where the scheduler has such.
        @shared resources: Vec<ResourceFile>,
        /// What starts the tasks if the check names nothing, where the scheduler has such programs: `srun`, `mpirun`.
        @shared launcher: String,
        /// Its processors. `local` detects them.
        processor: ProcessorFile,
        /// The devices of its nodes.
        devices: Vec<DeviceFile>,
    }
    instead {
        "description" => "write `descr`",
        "namespace" | "context" => "write it in `sched_options`",
        "environments" => "write `environs`: names of the file's `environments`",
    }
}

keys! {
    /// One entry of `resources`.
    pub struct ResourceFile ("a resource") {
        /// Name of the resource, as in `extra_resources`.
        @required name: Spanned<Name>,
        /// The options that ask for it, with the names of values in braces: `--gres=gpu:{num}`.
        options: OneOrMany<String>,
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
        /// Whether checks that name no platform use it. Default: they use the first of the list.
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
        /// Environment variables of its jobs. Those of a check override them.
        env_vars: Ordered<String>,
        /// Features, selected by `+name` in `valid_prog_environs`.
        features: OneOrMany<String>,
        /// Facts by name: `%name=value` in `valid_prog_environs`, `${{ environ.extras.name }}` in checks.
        extras: Ordered<Node>,
        /// Lines of sh after everything that the partition prepares. One, or a list.
        prepare_cmds: OneOrMany<String>,
        /// Resources that its jobs ask for, by the name that the partition's `resources` give them, with values for their options.
        /// `extra_resources` of a check override them. No effect where the partition has no resource of the name.
        resources: Ordered<Ordered<String>>,
    }
    instead {
        "target_systems" => "one file is one system: its environments are for it alone",
        "cc" | "cxx" | "ftn" | "cflags" | "cxxflags" | "fflags" | "ldflags" => "write it in `env_vars`",
    }
}

keys! {
    /// `processor`: facts of one node. Checks read them as `${{ partition.processor.num_cores }}`.
    pub struct ProcessorFile ("a processor") {
        /// Microarchitecture: `zen3`.
        arch: String,
        /// The maker's name of the model.
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
        /// The type, and the name in checks: `gpu`.
        @required kind: Spanned<Name> as "type",
        /// Architecture: `sm_80`.
        arch: String,
        /// The maker's name of the model: `A100-SXM4-40GB`.
        model: String,
        /// How many a node has.
        num_devices: u64,
    }
}

/// The JSON schema of a site file, for editors and other tools.
pub fn schema(schedulers: &Schedulers) -> Value {
    let mut schema = SiteFile::TABLE.file_schema("site.schema.json", "Muster site", &[]);
    let names: Vec<&str> = schedulers.named().map(|scheduler| scheduler.name).collect();
    schema["properties"]["partitions"]["anyOf"][0]["items"]["properties"]["scheduler"]["enum"] = json!(names);
    let none = json!({ "not": {}, "$comment": "site files have no placeholders" });
    schema["$defs"] = json!({ "placeholder": none });
    schema
}

#[cfg(test)]
mod tests;

//! The check file format: one table of keys that is struct, decoder, hints and JSON schema at once.
//!
//! A tree is decoded twice: as it was read, when placeholders still wait (their keys are `None`), and rendered, when
//! nothing waits. The tree stays the truth in between; what lies in these structs is never written back. What keys
//! mean together (a reference and its variable's unit, a system's name) is judged elsewhere.

mod arguments;
mod container;
mod fixture;
mod judging;
mod reference;
mod when;

pub use arguments::{Arguments, is_shell_line};
pub use container::{ContainerEntry, MountPoint};
pub use fixture::{Dependency, FixtureAction, FixtureEntry, FixtureScope, How, LongDependency};
pub use judging::{NightEntry, PerFigure, PerfEntry, SanityItem};
pub use reference::{Band, ReferenceBlock, ReferenceEntry, ReferenceRule, references_schema};
pub use when::{When, WhenRule};

use crate::site::modules::Module;
use muster_core::{job::descriptor::Schedulers, result::OnDisruption, rules::LogAction};
use muster_text::{
    Value,
    decode::{
        Context, Decode, Keyed, Limit, Mapping, MoreKeys, Name, OneOrMany, Ordered, Placeholders, Spanned, Within, derived,
        object,
    },
    diagnostic::{Diagnostic, Span},
    keys,
    size::Size,
    yaml::Node,
};
use serde_json::json;
use std::{num::NonZeroU32, time::Duration};

keys! {
    /// A check as written.
    pub struct CheckFile ("a check") {
        /// Name of the check, unique in a session: letters, digits, `_`, `-` and `.`. With the parameters it names the cases,
        /// their folders and their history.
        @required name: Spanned<Name>,
        /// One sentence for people: what the check proves. Shown in lists and failure reports.
        descr: String,
        /// Words to select checks by: `-t gpu`. One, or a list.
        tags: OneOrMany<String>,
        /// Contacts for a failure. One, or a list; shown in failure reports.
        maintainers: OneOrMany<String>,
        /// `true` for a check that is only a base for `extends` and never runs. Default: false.
        r#abstract: bool as "abstract",
        /// The checks that this one starts from: `base.yaml#name`, `#name` in this file, or a list of them, where later ones
        /// override earlier ones. Mappings merge, lists replace, `key+: [..]` appends.
        extends: OneOrMany<Spanned<String>>,
        /// Where the check may run: `eidf`, `eidf:gpu-service`, `*`, `+feature`, `-feature`, `%extra=value`. All words of an
        /// entry must hold (`+gpu -arm`), and at least one entry. Mandatory, except for a fixture and an abstract check.
        valid_systems: OneOrMany<Spanned<String>>,
        /// In which environments the check may run: a name, `*`, `+feature`, `-feature`, `%extra=value`. Default: all of them.
        valid_prog_environs: OneOrMany<Spanned<String>>,
        /// Lists of values by name; the check runs once for every combination. A value is text, a number, a boolean, or a mapping
        /// with a `name`. `${{ name }}` is the value, `${{ name.field }}` a field of it.
        parameters: Ordered<Node>,
        /// Values by name: `-S name=value` sets one, `${{ name }}` reads it. They may be computed from parameters, facts of the
        /// partition and each other, in any order.
        variables: Ordered<Node>,
        /// Combinations of parameter values to leave out: `{ tile: 4, ranks: [1, 2] }`. A combination is left out if it matches
        /// all values of one entry.
        exclude: Vec<Ordered<Node>>,
        /// Checks that run first and leave something for this one, by name: `{ build: { check: build_ior, scope: environment }
        /// }`. Their results are `fixtures.build.stagedir`, `fixtures.build.outputs.dir`, and their parameters and variables by
        /// name.
        fixtures: Ordered<FixtureEntry>,
        /// Checks that must have passed before this one: a name, or `{ check: name, how: by_part }`. The results of such a case
        /// are `deps.name.stagedir`, `deps.name.outputs.dir`, and its parameters and variables by name.
        depends_on: OneOrMany<Dependency>,
        /// Values that dependent cases read from the output of this one, by name: a regex each, whose first match counts.
        outputs: Ordered<Spanned<String>>,
        /// Lines of sh that run in its stage folder when the last case that depends on it is over. One, or a list.
        teardown_cmds: OneOrMany<String>,
        /// How long the job may run, from its first container running: `1h30m`, or a number of seconds. Default: the partition's;
        /// null: no limit. A job on Kubernetes without a limit ends after `sched_options.max_lifetime`, 24h.
        time_limit: Limit<Duration>,
        /// How long the job may wait for queue, quota, scheduling and image pull: `2h`, or a number of seconds. Default: the
        /// partition's; null: no limit.
        max_pending_time: Limit<Duration>,
        /// How long sanity and performance may take to read the output: `5m`, or a number of seconds. Default: 5m.
        judge_limit: Duration,
        /// How long copying `sourcesdir` may take: `30m`, or a number of seconds. It is neither waiting nor running time.
        /// Default: the partition's, else 10m; null: no limit.
        stage_limit: Limit<Within>,
        /// How much of the log is kept, all pods together: `2GiB`, or a number of bytes. At the limit Muster stops reading, and
        /// the job continues. Default: the partition's; null: no limit.
        max_log: Limit<Size>,
        /// What to do with a case whose log is longer than `max_log`: `invalid` (the outcome is `invalid{logs}`), or `warn`
        /// (judge what was kept). Default: the partition's.
        max_log_action: LogAction,
        /// A folder, relative to this file, that is copied into the stage folder before the script runs, without the files that
        /// its `.gitignore` names. Null: none. Default: `src`, if there is one, but not on k8s. On k8s it is sent to the pod of a
        /// check with an `image`.
        sourcesdir: Spanned<String>,
        /// Globs within `sourcesdir`: files to link into the stage folder instead of copying them. For large files that the job
        /// only reads.
        readonly_files: OneOrMany<Spanned<String>>,
        /// The program of the job script. Together with `executable_opts` it becomes one line of sh, which the shell expands.
        executable: String,
        /// Options of `executable`, joined by blanks. Quote them for the shell if necessary. One, or a list.
        executable_opts: OneOrMany<String>,
        /// A program and its arguments, run without a shell and without expansion.
        command: Arguments,
        /// Lines of sh before the executable. One, or a list.
        prerun_cmds: OneOrMany<String>,
        /// Lines of sh after the executable. One, or a list.
        postrun_cmds: OneOrMany<String>,
        /// Modules that the job loads before its commands, after those of system, partition and environment: a name, or `{ name,
        /// collection, path }`. One, or a list. If a module does not load, the case ends.
        modules: OneOrMany<Module>,
        /// A container to run in instead of `executable`, on `local` and `slurm`: podman, docker, apptainer, singularity, sarus or
        /// shifter.
        container_platform: ContainerEntry,
        /// Globs of files in the stage folder to keep when the check passes. Text files can be searched with `file: glob` in
        /// `sanity` and `perf_variables`. Not on k8s.
        keep_files: OneOrMany<Spanned<String>>,
        /// Environment variables of the job, `$` in them expands. They override those of the partition and the environment. On
        /// k8s they are set in every primary container that does not set them itself.
        env_vars: Ordered<String>,
        /// Number of tasks: completions of a Job, instances, ranks. Default: that of the manifest, else 1.
        num_tasks: NonZeroU32,
        /// Number of nodes, where the scheduler chooses them. Default: as many as the tasks need.
        @shared num_nodes: NonZeroU32,
        /// Tasks on each node, where the scheduler places them.
        @shared num_tasks_per_node: NonZeroU32,
        /// Tasks on each socket, where the scheduler places them.
        @shared num_tasks_per_socket: NonZeroU32,
        /// Tasks on each core, where the scheduler places them.
        @shared num_tasks_per_core: NonZeroU32,
        /// Processors for each task, where the scheduler assigns them.
        @shared num_cpus_per_task: NonZeroU32,
        /// GPUs on each node, where the scheduler assigns them.
        @shared num_gpus_per_node: u32,
        /// Whether no other job may run on its nodes, where the scheduler can arrange that.
        @shared exclusive_access: bool,
        /// Whether tasks use all hardware threads of a core, where the scheduler can arrange that.
        @shared use_multithreading: bool,
        /// Resources by the name that the partition's `resources` give them, with values for their options.
        @shared extra_resources: Ordered<Ordered<String>>,
        /// What starts the tasks, where the scheduler has such programs: `srun`, `mpirun`. Default: the partition's.
        @shared launcher: String,
        /// Options of the launcher for this check, after its own. One, or a list.
        @shared launcher_options: OneOrMany<String>,
        /// What starts the launcher itself: a debugger or a profiler with its options.
        @shared launcher_modifier: String,
        /// Container image that `executable` or `command` runs in, where jobs are containers: on k8s if there is no `k8s_config`.
        image: String,
        /// Options of the scheduler for this check. They override those of the partition. Options of other schedulers have no
        /// effect.
        sched_options: Mapping,
        /// Settings that override the check where their selectors hold, in order: `system`, `environ`, `with`, `if`. `skip:
        /// reason` skips the case, `xfail: reason` expects it to fail.
        when: Vec<When>,
        /// What the output must and must not contain; all items must hold. `[]` accepts the exit status alone.
        sanity: Vec<SanityItem>,
        /// The figures of the check, by name.
        perf_variables: Ordered<PerfEntry>,
        /// What the figures should be: `{ "sys:part": { name: [value, lower, upper, unit] } }`, a list with selectors, or the path
        /// of a file that holds one of these, relative to this file: `refs.yaml`, or `refs.yaml#name` for one key of it.
        reference: ReferenceBlock,
        /// How `muster night` judges the figures from one night to the next: `{ min_effect: 5%, limit: 40%, ignore: warmup }`.
        night: NightEntry,
        /// Whether a missed reference fails the case. Default: true.
        strict_check: bool,
        /// Whether a figure without a reference fails the case. Default: false.
        require_reference: bool,
        /// Why the case is expected to fail. A failure then counts as a success, and a success as a failure.
        xfail: String,
        /// What to do if the site takes the case away (preempted, evicted, node failed): `fail`, or `retry`, up to twice even
        /// without `--max-retries`. Default: the partition's, else it is retried like any failure.
        on_disruption: OnDisruption,
        /// How long the objects of a failed case are kept: `24h`. Default: the scheduler's (k8s 24h, an EC2 instance 30m).
        keep_failed: Duration,
    }
    later ["build"]
    instead {
        "description" | "title" => "write `descr`",
        "timeout" => "write `time_limit`",
        "nights" => "write `night`: `nights` is a key of site files",
        "systems" => "write `valid_systems`",
        "environment" => "write `env_vars` for variables of the job, `valid_prog_environs` for environments of the site file",
        "env" => "write `env_vars`",
        "args" => "write `executable_opts`, or `k8s_patch` for the arguments of a container",
        "options" => "write `executable_opts`",
        "manifest" => "write `k8s_config`",
        "sanity_patterns" => "write `sanity`: a list of `found`, `not_found`, `assert` and `exit`",
        "perf_patterns" => "write `perf_variables` with a `pattern` each",
        "trap_job_errors" => "the exit status is always judged; `sanity: [{ exit: any }]` accepts every one",
        "sourcepath" | "build_system" | "build_locally" | "build_time_limit" | "prebuild_cmds" | "postbuild_cmds"
            => "write a fixture whose script builds",
        "pre_run" => "write `prerun_cmds`",
        "post_run" => "write `postrun_cmds`",
        "container" => "write `container_platform` for a container on `local` or `slurm`, `image` for one on Kubernetes",
        "local" => "write `valid_systems` of a partition whose scheduler is `local`",
        "skip" => "write it in an entry of `when`",
        "skip_if" => "write `when: [{ if: .., skip: reason }]`",
    }
    open true;
    decode read;
}

impl CheckFile {
    /// Decodes a tree that may have the `more` keys of schedulers, and adds the mistakes in it to the others.
    pub(crate) fn of(
        tree: &Node,
        more: &MoreKeys,
        placeholders: Placeholders,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let mut context = Context::with(placeholders, more.clone());
        let file = Self::decode(tree, &mut context);
        for node in layers(tree).filter_map(|layer| layer.get("num_tasks")).filter(|node| is_flexible(node)) {
            let own = context.diagnostics.iter_mut().filter(|diagnostic| diagnostic.span == Some(node.span));
            own.for_each(|diagnostic| diagnostic.hint = Some(FLEXIBLE.to_owned()));
        }
        diagnostics.append(&mut context.diagnostics);
        file
    }
}

const FLEXIBLE: &str = "write how many; `--distribute` runs a check on each node, in place of ReFrame's flexible allocation";

/// In ReFrame a number below 1 means as many as there are nodes.
fn is_flexible(num_tasks: &Node) -> bool {
    num_tasks.plain().and_then(|text| text.parse::<i64>().ok()).is_some_and(|number| number < 1)
}

/// A check with `extends` may append to the lists of its base, and a base to those of the bases before it.
fn read(node: &Node, context: &mut Context) -> Option<CheckFile> {
    let is_derived = node.get("extends").is_some_and(|extends| !extends.is_null());
    if is_derived || is_abstract(node) { derived(node, context) } else { object(node, context) }
}

/// The check itself and its `when` entries, as written.
pub(crate) fn layers(check: &Node) -> impl Iterator<Item = &Node> {
    std::iter::once(check).chain(check.get("when").map(Node::items).unwrap_or_default())
}

/// The texts of a key with their places, in the check itself and under `when`. What waits for a case is not among them.
pub(crate) fn texts<'n>(check: &'n Node, key: &'static str) -> impl Iterator<Item = (&'n str, Span)> + use<'n> {
    let nodes = layers(check).filter_map(move |layer| layer.get(key));
    nodes.filter(|node| !node.is_null() && !node.has_placeholder()).filter_map(|node| Some((node.text()?, node.span)))
}

/// Returns whether a check is only a base.
pub fn is_abstract(check: &Node) -> bool {
    check.get("abstract").and_then(Node::plain).is_some_and(|word| word.eq_ignore_ascii_case("true"))
}

/// The JSON schema of one document of a check file, for editors and other tools.
pub fn schema(schedulers: &Schedulers) -> Value {
    let more = schedulers.own_keys();
    let mut schema = CheckFile::TABLE.file_schema("check.schema.json", "Muster check", more);
    for key in more.iter() {
        let reference = json!({ "$ref": format!("#/properties/{}", key.name) });
        let of_when = &mut schema["properties"]["when"]["anyOf"][0]["items"]["properties"];
        of_when[format!("{}+", key.name)] = reference.clone();
        of_when[key.name] = reference;
    }
    // Every key also as `key+`, for checks with `extends`.
    let list = json!({ "anyOf": [{ "type": "array" }, { "$ref": "#/$defs/placeholder" }] });
    schema["patternProperties"] = json!({ r"^[a-z_0-9]+\+$": list });
    schema["$defs"] = json!({ "placeholder": placeholder() });
    schema
}

/// The schema of a scalar whose type is only known once it is rendered.
fn placeholder() -> Value {
    json!({ "type": "string", "pattern": r"\$\{\{", "description": "`${{ expression }}`, in CEL" })
}

#[cfg(test)]
pub(crate) mod tests;

//! `sched_options` of a Slurm partition, the check's over them. Longer than other files: half of it is the table of options.
//!
//! An option is called as sbatch calls it, and its value is what stands after the `=`; `true` sets one that has no value. What a
//! site's plugins add to sbatch stands in `options`, verbatim.

use super::{Place, Policy, access};
use muster_core::job::descriptor::{NODE, WrongOption};
use muster_text::{
    Value,
    decode::{Key, Mapping, OneOrMany},
    diagnostic::{Diagnostic, did_you_mean},
    time::parse_duration,
    yaml::Node,
};
use regex::Regex;
use std::time::Duration;

macro_rules! options {
    ($($name:literal $doc:literal,)*) => {
        /// The keys of `sched_options`.
        pub(crate) const OPTIONS: &[Key<()>] = &[
            $(Key::of::<Node>($name, $doc),)*
            Key::of::<String>(NODE, "The only node that a job may run on: `--nodelist` with `--nodes=1`."),
            Key::of::<OneOrMany<String>>("options", "Further options of sbatch, verbatim: `--uenv=prgenv`. Those of a check and of `-J` are added."),
            Key::of::<Mapping>(
                "policy",
                "Only in the site file: `poll_min`, `poll_max`, `file_latency`, `requeue`, `never`, `via`, `cluster`.",
            ),
            Key::of::<bool>("use_nodes_option", "Whether `--nodes` is added: tasks divided by tasks per node. Default: false."),
            Key::of::<Duration>("job_submit_timeout", "How long one sbatch may take. Default, and the most: 60s."),
            Key::of::<OneOrMany<String>>(
                "resubmit_on_errors",
                "Regular expressions: if sbatch says such a thing, the job is submitted again later.",
            ),
        ];
        /// Those that sbatch knows.
        pub(super) const SBATCH: &[&str] = &[$($name,)*];
    };
}

options! {
    "account" "The account that the job is charged to.",
    "acctg-freq" "How often the accounting samples a job.",
    "bb" "The burst buffer.",
    "bbf" "A file that describes the burst buffer.",
    "begin" "The job does not start before.",
    "cluster-constraint" "Features of the cluster, in a federation.",
    "comment" "The comment of the job, in place of Muster's own.",
    "constraint" "Features of the nodes: `a100`. Those of all places have to hold together.",
    "container" "An OCI bundle to run in.",
    "contiguous" "Nodes without gaps between them.",
    "core-spec" "Cores for the system, on each node.",
    "cores-per-socket" "Nodes with at least so many cores a socket.",
    "cpu-freq" "The frequency of the processors.",
    "cpus-per-gpu" "Processors for each GPU.",
    "deadline" "The job is removed if it cannot end before.",
    "delay-boot" "How long rebooting nodes for features is put off.",
    "distribution" "How tasks are distributed over nodes and sockets.",
    "exclude" "Nodes that the job must not run on. All lists count.",
    "exclusive" "No other job on its nodes: `true`, `user`, `mcs`. A check writes `exclusive_access`.",
    "extra-node-info" "Nodes with at least so many sockets, cores and threads.",
    "get-user-env" "The environment of the user's login.",
    "gpu-bind" "How tasks are bound to GPUs.",
    "gpu-freq" "The frequency of the GPUs.",
    "gpus" "GPUs of the whole job.",
    "gpus-per-node" "GPUs on each node. A check writes `num_gpus_per_node`.",
    "gpus-per-socket" "GPUs on each socket.",
    "gpus-per-task" "GPUs of each task.",
    "gres" "Generic resources on each node: `gpu:2`.",
    "gres-flags" "How generic resources are assigned.",
    "hint" "How tasks are bound: `nomultithread`. A check writes `use_multithreading`.",
    "ignore-pbs" "`#PBS` lines are ignored.",
    "kill-on-invalid-dep" "Whether a job ends that can never start.",
    "licenses" "Licences of the job.",
    "mail-type" "When Slurm sends mail.",
    "mail-user" "To whom.",
    "mcs-label" "The label of multi-category security.",
    "mem" "Memory on each node: `4G`; 0 is all of it.",
    "mem-bind" "How tasks are bound to memory.",
    "mem-per-cpu" "Memory for each processor.",
    "mem-per-gpu" "Memory for each GPU.",
    "mincpus" "The least number of processors of a node.",
    "network" "Options of the interconnect.",
    "nice" "How much the priority is lowered.",
    "no-kill" "The job goes on if one of its nodes fails.",
    "nodefile" "A file with the nodes of the job.",
    "nodelist" "Nodes that the job has to have.",
    "nodes" "The number of nodes: `2`, `2-4`.",
    "ntasks-per-core" "Tasks on each core, at most.",
    "ntasks-per-gpu" "Tasks for each GPU.",
    "ntasks-per-socket" "Tasks on each socket, at most.",
    "overcommit" "More tasks than processors.",
    "oversubscribe" "Others may share its nodes.",
    "partition" "The partition, or several with commas between them.",
    "power" "Options of the power management.",
    "prefer" "Features of nodes that are taken if they are free.",
    "priority" "The priority, for those who may set it.",
    "profile" "What is profiled.",
    "propagate" "Limits that the job takes over.",
    "qos" "The quality of service.",
    "reboot" "The nodes are rebooted first.",
    "reservation" "The reservation.",
    "signal" "A signal before the time limit.",
    "sockets-per-node" "Nodes with at least so many sockets.",
    "spread-job" "As many nodes as possible.",
    "switches" "The most switches between its nodes.",
    "thread-spec" "Threads for the system, on each node.",
    "threads-per-core" "Nodes with at least so many threads a core.",
    "tmp" "Temporary disk on each node.",
    "tres-bind" "How tasks are bound to resources.",
    "tres-per-task" "Resources of each task.",
    "use-min-nodes" "The fewest nodes, of a range.",
    "wait-all-nodes" "Whether the job waits until all its nodes are up.",
    "wckey" "The key of the workload.",
}

/// What Muster sets itself, cannot follow, or does not need. Keys of ReFrame's that have no meaning here are among them.
pub(crate) const REFUSED: &[(&str, &str)] = &[
    ("array", "a case is one job: write `parameters`, or `--repeat`"),
    ("chdir", "a job runs in its stage folder"),
    ("clusters", "a site writes `policy: { cluster: NAME }`"),
    ("cpus-per-task", "write `num_cpus_per_task` in the check"),
    ("dependency", "write `depends_on` in the check"),
    ("error", "standard error joins the log"),
    ("export", "write `env_vars` in the check, or `pass_env` in the partition"),
    ("export-file", "write `env_vars` in the check, or `pass_env` in the partition"),
    ("gid", "a job is the user's who submits it"),
    ("hold", "a job that is held never starts"),
    ("input", "a job has no input"),
    ("job-name", "the name finds the job again: it has the check's name and the identifier"),
    ("no-requeue", "it is so unless a site writes `policy: { requeue: true }`"),
    ("ntasks", "write `num_tasks` in the check"),
    ("ntasks-per-node", "write `num_tasks_per_node` in the check"),
    ("open-mode", "the log is appended to"),
    ("output", "the log is `rfm_job.out` in the stage folder"),
    ("parsable", "it is always set"),
    ("quiet", "what sbatch says is needed"),
    ("requeue", "a site writes `policy: { requeue: true }`"),
    ("share", "write `oversubscribe`"),
    ("test-only", "use --dry-run=server"),
    ("time", "write `time_limit` in the check or the partition"),
    ("time-min", "write `time_limit` in the check or the partition"),
    ("uid", "a job is the user's who submits it"),
    ("verbose", "what sbatch says is needed"),
    ("wait", "Muster waits itself"),
    ("wrap", "write `executable` or `command` in the check"),
    ("ignore_reqnodenotavail", "leave it out: a job that waits for a node that is away is waited for, and the node is named"),
    ("slurm_job_cancel_reasons", "leave it out; a site adds reasons of its own to `policy: { never: [..] }`"),
    ("slurm_pending_job_reason_poll_freq", "leave it out: the reason comes with the state"),
    ("max_sacct_failures", "leave it out: states do not come from sacct"),
    ("sched_access_in_submit", "leave it out: options stand in the script"),
    ("slurm_envvar_whitelist", "write `pass_env` in the partition"),
    ("slurm_multi_cluster_mode", "a site writes `policy: { cluster: NAME }`"),
];

/// Lists to which those of a check, and of `-J`, are added.
pub(crate) const JOINED: &[&str] = &["constraint", "exclude", "options"];

/// The most that one sbatch may take: a launch is tried again, and has a limit itself.
const SUBMIT_LIMIT: Duration = Duration::from_mins(1);

const POLICY: [&str; 7] = ["poll_min", "poll_max", "file_latency", "requeue", "never", "via", "cluster"];

/// An option as it stands in the script: a long name without dashes and its value, if it has one.
pub(super) type Flag = (String, Option<String>);

/// The options that a plan reads.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// The flags, in the order in which they were written.
    pub flags: Vec<Flag>,
    pub verbatim: Vec<String>,
    pub node: Option<String>,
    pub use_nodes_option: bool,
    pub place: Place,
    pub policy: Policy,
}

impl Options {
    /// Reads them, or every mistake in them.
    pub(super) fn read(options: &Value) -> Result<Self, Vec<Diagnostic>> {
        let (read, wrong) = look_at(options);
        if wrong.is_empty() { Ok(read) } else { Err(wrong.into_iter().map(|wrong| wrong.mistake).collect()) }
    }
}

/// See [`Descriptor::wrong_options`](muster_core::job::descriptor::Descriptor::wrong_options).
pub(crate) fn wrong_options(options: &Value) -> Vec<WrongOption> {
    look_at(options).1
}

fn look_at(options: &Value) -> (Options, Vec<WrongOption>) {
    let mut reader = Reader { options, wrong: Vec::new() };
    let (place, policy) = reader.policy();
    let mut read = Options { place, policy, node: reader.text(NODE), ..Options::default() };
    read.use_nodes_option = options["use_nodes_option"].as_bool().unwrap_or_default();
    if let Some(limit) = reader.duration("job_submit_timeout", &options["job_submit_timeout"]) {
        if limit > SUBMIT_LIMIT {
            reader.refuse("job_submit_timeout", "the most is 60s", "write less, or leave it out: 60s");
        }
        read.policy.submit_limit = limit.min(SUBMIT_LIMIT);
    }
    read.policy.resubmit = reader.regexes("resubmit_on_errors");
    let further = reader.list("options", &options["options"]);
    match access::read("sched_options.options", further.iter().map(String::as_str)) {
        Ok(further) => (read.flags, read.verbatim) = (further.flags, further.verbatim),
        Err(mistakes) => reader.wrong.extend(mistakes.into_iter().map(|mistake| WrongOption { name: "options", mistake })),
    }
    for (name, value) in options.as_object().into_iter().flatten() {
        let Some(name) = SBATCH.iter().find(|known| *known == name) else { continue };
        // Each is a constraint of its own.
        let values = if *name == "constraint" { value.as_array().map(Vec::as_slice) } else { None };
        for value in values.unwrap_or(std::slice::from_ref(value)) {
            read.flags.extend(reader.flag(name, value).map(|value| ((*name).to_owned(), value)));
        }
    }
    (read, reader.wrong)
}

struct Reader<'a> {
    options: &'a Value,
    wrong: Vec<WrongOption>,
}

impl Reader<'_> {
    fn refuse(&mut self, name: &'static str, what: &str, hint: &str) {
        let mistake = Diagnostic::general(format!("`sched_options.{name}`: {what}")).hint(hint);
        self.wrong.push(WrongOption { name, mistake });
    }

    /// What stands after the `=`. `None`: it is not set.
    #[expect(clippy::option_option, reason = "an option without a value is set, too")]
    fn flag(&mut self, name: &'static str, value: &Value) -> Option<Option<String>> {
        let text = match value {
            Value::Null | Value::Bool(false) => return None,
            Value::Bool(true) => return Some(None),
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            Value::Array(items) if items.is_empty() => return None,
            Value::Array(items) if matches!(name, "exclude" | "nodelist" | "licenses") => {
                items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
            }
            Value::Array(_) | Value::Object(_) => {
                self.refuse(name, "it has one value", "write it as it stands after the `=` of sbatch's option");
                return None;
            }
        };
        if text.contains(char::is_control) {
            self.refuse(name, "it has a control character", "write it in one line");
            return None;
        }
        if let Some(variable) = access::variable(&text) {
            self.refuse(name, &format!("sbatch does not expand `{variable}`"), "write the value");
            return None;
        }
        Some(Some(text))
    }

    fn text(&mut self, name: &'static str) -> Option<String> {
        self.flag(name, &self.options[name])?
    }

    fn list(&mut self, name: &'static str, value: &Value) -> Vec<String> {
        match value {
            Value::Null => Vec::new(),
            Value::String(text) => vec![text.clone()],
            Value::Array(items) if items.iter().all(Value::is_string) => {
                items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
            }
            _ => {
                self.refuse(name, "it is a list of texts", "write `[a, b]`");
                Vec::new()
            }
        }
    }

    fn regexes(&mut self, name: &'static str) -> Vec<String> {
        let list = self.list(name, &self.options[name]);
        for text in &list {
            if let Err(error) = Regex::new(text) {
                self.refuse(name, &format!("`{text}` is not a regular expression"), &error.to_string());
            }
        }
        list
    }

    fn duration(&mut self, name: &'static str, value: &Value) -> Option<Duration> {
        let text = match value {
            Value::Null => return None,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        parse_duration(&text).map_err(|error| self.refuse(name, &error.clone(), "write a duration: `10s`")).ok()
    }

    fn policy(&mut self) -> (Place, Policy) {
        let (mut place, mut policy) = (Place::default(), Policy::default());
        let own = &self.options["policy"];
        let Some(map) = own.as_object() else {
            if !own.is_null() {
                self.refuse("policy", "it is a map", "write `policy: { poll_max: 10s }`");
            }
            return (place, policy);
        };
        for key in map.keys().filter(|key| !POLICY.contains(&key.as_str())) {
            let hint = did_you_mean(key, POLICY).unwrap_or_else(|| format!("its keys are {}", POLICY.join(", ")));
            self.refuse("policy", &format!("there is no `{key}`"), &hint);
        }
        for (key, field) in
            [("poll_min", &mut policy.poll_min), ("poll_max", &mut policy.poll_max), ("file_latency", &mut policy.file_latency)]
        {
            if let Some(duration) = self.duration("policy", &own[key]) {
                *field = duration;
            }
        }
        if policy.poll_min.is_zero() || policy.poll_max < policy.poll_min {
            self.refuse("policy", "`poll_min` is above 0, and `poll_max` is not less", "leave them out: 1s and 10s");
        }
        match &own["requeue"] {
            Value::Null => {}
            Value::Bool(requeue) => policy.requeue = *requeue,
            _ => self.refuse("policy", "`requeue` is true or false", "write `requeue: true`"),
        }
        policy.never = self.list("policy", &own["never"]);
        place.via = self.list("policy", &own["via"]);
        match &own["cluster"] {
            Value::Null => {}
            Value::String(name) => place.cluster = Some(name.clone()),
            _ => self.refuse("policy", "`cluster` is a name", "write a name of `sacctmgr show cluster`"),
        }
        (place, policy)
    }
}

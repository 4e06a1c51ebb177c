//! The facts about a scheduler that need no connection: static data in its crate. Files, command line and session read them
//! through [`Schedulers`], and compare no names.

use crate::{
    job::{scheduler::Scheduler, stage_folder},
    launcher::Launchers,
};
use muster_text::{
    Value,
    decode::{Key, MoreKeys},
    diagnostic::Diagnostic,
    yaml,
};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, collections::BTreeMap, error::Error, fmt, ops::Deref, path::PathBuf, sync::Arc, time::Duration};

/// A scheduler: what it is called, what it runs, which keys it has, and how to connect to it.
#[expect(clippy::struct_excessive_bools, reason = "facts that do not exclude each other")]
pub struct Descriptor {
    /// The values of a partition's `scheduler`. Jobs are stored under the first; the others are aliases.
    pub names: &'static [&'static str],
    /// One sentence: what its jobs are.
    pub descr: &'static str,
    /// The forms that it runs: the first that a check has. Never empty.
    pub forms: &'static [Form],
    /// The keys of a check that are its own. Their values reach it as [`Workload::own`](crate::job::workload::Workload::own).
    pub own_keys: &'static [Key<()>],
    /// The own keys without which it cannot run a check.
    pub required: &'static [&'static str],
    /// The own keys whose text is the path of a YAML file. They reach the scheduler as a list of rendered documents.
    pub documents: &'static [&'static str],
    /// The fields of its own keys that take text alone: numbers and booleans in them become text.
    pub is_text: yaml::IsText,
    /// The own keys that are options: they override `sched_options`.
    pub own_options: &'static [&'static str],
    /// The keys of `sched_options`. One is called [`NODE`] if it can run a job on a chosen node: `--distribute` sets it.
    pub options: &'static [Key<()>],
    /// The keys that look like options and are none, each with what to do instead.
    pub refused_options: &'static [(&'static str, &'static str)],
    /// The options that a check cannot set, each with a hint.
    pub site_options: &'static [(&'static str, &'static str)],
    /// The options that are lists: items of check and `-J` are added to the partition's. A value that is no list is one item.
    pub joined_options: &'static [&'static str],
    /// Finds options whose values cannot be meant. It is asked before anything is launched or listed: of the options of a partition,
    /// with those of a check or of `-J` over them.
    pub wrong_options: FindWrongOptions,
    /// Finds values of a partition's shared keys (`access`, `resources`) that cannot be meant, by the name of the key. It is asked when
    /// the site file is read.
    pub wrong_shared: FindWrongOptions,
    /// Its attitude to the keys that several schedulers have; it refuses those that are not listed.
    pub shared_keys: &'static [(&'static str, SharedKey)],
    /// The commands that start the tasks of a script, if it takes `launcher`.
    pub launchers: Launchers,
    /// The lines of sh with which a script that does not run in a container keeps its exit status, `$rfm_status`, for whoever comes later.
    pub keep_status: &'static str,
    /// The text that `muster check new` writes between head and end of an example, for each name: YAML with `NAME` for the check.
    pub starters: &'static [(&'static str, &'static str)],
    /// The options of a partition on this machine, if that has what this scheduler needs. For `muster init`; it asks no server.
    pub found: fn() -> Option<Vec<(&'static str, String)>>,
    /// The keys of a handle in which no secret is masked before it is stored, as paths: `objects.*.name`. By them a job that runs is
    /// found, watched and removed; all others are what a later launch needs.
    pub never_masked: &'static [&'static str],
    pub files: Files,
    /// All its jobs are containers, so a check cannot start one more.
    pub in_containers: bool,
    /// Its jobs take machines that others wait for: the lint `no-time-limit` looks at them.
    pub is_cluster: bool,
    /// Its jobs continue when the process that launched them ends.
    pub outlives_harness: bool,
    /// Its `launch` finds a job that a process which is gone has launched, by its identifier. Without that, what may run of such a job
    /// is removed before it is launched again.
    pub finds_launched: bool,
    /// The states of nodes for `--distribute`, as its users know them: `idle`. `all` is every node, and `avail`, the default, those
    /// that take jobs. None: it cannot name nodes.
    pub node_states: &'static [&'static str],
    /// Completes the `processor` of a partition with what it sees.
    pub complete_processor: Option<CompleteFacts>,
    /// Set if it is the scheduler of `--rehearse`.
    pub rehearses: Option<Rehearses>,
    /// The rows of `config show` for a partition with these options, beside its keys.
    pub settings: fn(&Value) -> Vec<Setting>,
    /// Connects; once in a process.
    ///
    /// # Errors
    /// One sentence that says what is missing on this machine.
    pub connect: Connect,
    /// Connects to look and to launch nothing, perhaps without anything to launch on. `None`: it cannot be asked.
    pub look: Option<Connect>,
    /// Makes a planner from files alone. Mistakes in plans then end an invocation before anything is launched. `None`: a plan
    /// depends on more than files, so that its mistakes are those of one case.
    pub planner: Option<Connect>,
    /// Its jobs are on this machine: it is asked what there is even if nothing is known of it.
    pub is_here: bool,
}

/// The way in which a scheduler follows a scenario in place of a check's workload.
#[derive(Debug, Clone, Copy)]
pub struct Rehearses {
    /// The own key that holds it.
    pub key: &'static str,
    /// Finds its mistakes.
    pub check: CheckScenario,
}

/// The option that holds the only node on which a job may run.
pub const NODE: &str = "node";

pub type Connect = fn(&Harness) -> Result<Arc<dyn Scheduler>, ConnectError>;

pub type CheckScenario = fn(&Value) -> Result<(), Vec<Diagnostic>>;

pub type CompleteFacts = fn(&BTreeMap<String, Value>) -> BTreeMap<String, Value>;

pub type ConnectError = Box<dyn Error + Send + Sync>;

pub type FindWrongOptions = fn(&Value) -> Vec<WrongOption>;

/// An option whose value cannot be meant.
#[derive(Debug, Clone, PartialEq)]
pub struct WrongOption {
    pub name: &'static str,
    /// The mistake without a place: the caller knows where the option is written.
    pub mistake: Diagnostic,
}

/// A form in which a check may say what runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// This own key.
    Own(&'static str),
    /// `image`, with an `executable` or a `command`.
    Image,
    /// A script of `executable`, `command` or `container_platform`.
    Script,
    /// Nothing is needed.
    Anything,
}

/// The treatment of a key that several schedulers have: `launcher`, `num_tasks_per_node`, ...
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedKey {
    /// Its value reaches the scheduler as [`Workload::shared`](crate::job::workload::Workload::shared).
    Takes,
    /// It has no effect here.
    Ignores,
    /// The key is a mistake here, with what to do instead.
    Refuses(&'static str),
}

/// The ways in which a job reaches files of the harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// It sees the same folders.
    Shared,
    /// It reads none.
    Unused,
    /// It does not see them: what is staged is sent to where it runs, and what it leaves comes back.
    Sent,
    /// It does not see them: what a check with an `image` names as its `sourcesdir` is sent to where it runs. With what others do
    /// instead of staging.
    SentWithImage(&'static str),
    /// It does not see them. With what to do instead of staging.
    Elsewhere(&'static str),
}

/// A row of `config show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub name: &'static str,
    pub value: String,
    /// The origin of the value; `None`: the options.
    pub source: Option<String>,
}

/// The facts about the program that a scheduler may use.
#[derive(Debug, Clone, Default)]
pub struct Harness {
    /// Its path: jobs on this machine find it as `$MUSTER`.
    pub program: Option<PathBuf>,
    /// The most files that this process may have open; 0: unknown.
    pub open_files: u64,
    /// A session that shows no sign of life for longer is gone.
    pub heartbeat_limit: Duration,
}

impl Descriptor {
    /// A scheduler that takes and does nothing: what others need not set.
    pub const NONE: Self = Self {
        names: &[],
        descr: "",
        forms: &[],
        own_keys: &[],
        required: &[],
        documents: &[],
        is_text: |_| false,
        own_options: &[],
        options: &[],
        refused_options: &[],
        site_options: &[],
        joined_options: &[],
        wrong_options: |_| Vec::new(),
        wrong_shared: |_| Vec::new(),
        shared_keys: &[],
        launchers: Launchers::NONE,
        keep_status: stage_folder::KEEP_STATUS,
        starters: &[],
        found: || None,
        never_masked: &[],
        files: Files::Unused,
        in_containers: false,
        is_cluster: false,
        outlives_harness: true,
        finds_launched: true,
        node_states: &[],
        complete_processor: None,
        rehearses: None,
        settings: |_| Vec::new(),
        connect: |_| Err("nothing can be launched on it".into()),
        look: None,
        planner: None,
        is_here: false,
    };

    /// Returns the treatment of a shared key.
    pub fn shared_key(&self, key: &str) -> SharedKey {
        let listed = self.shared_keys.iter().find(|(name, _)| *name == key);
        listed.map_or(SharedKey::Refuses("leave it out, or set it for another partition under `when`"), |(_, does)| *does)
    }

    /// Returns whether its jobs use, or need not use, the harness' own files.
    pub fn shares_files(&self) -> bool {
        matches!(self.files, Files::Shared | Files::Unused)
    }

    /// Returns whether the harness has the files that a job leaves.
    pub fn has_files_of_jobs(&self) -> bool {
        self.shares_files() || self.files == Files::Sent
    }

    /// Its own name, which it shares with no alias.
    pub fn own_name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    pub fn option_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.options.iter().map(|option| option.name)
    }
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.own_name(), f)
    }
}

/// A name of a scheduler, as files, jobs and results have it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SchedulerName(Cow<'static, str>);

impl From<&'static str> for SchedulerName {
    fn from(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }
}

/// A name that was stored or imported.
impl From<String> for SchedulerName {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

impl Deref for SchedulerName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SchedulerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// A scheduler under one of its names: what the `scheduler` of a partition is.
#[derive(Clone, Copy)]
pub struct NamedScheduler {
    pub name: &'static str,
    descriptor: &'static Descriptor,
}

impl NamedScheduler {
    /// A scheduler under its own name.
    pub fn of(descriptor: &'static Descriptor) -> Self {
        Self { name: descriptor.own_name(), descriptor }
    }

    /// The descriptor, which lives as long as the program.
    pub fn descriptor(self) -> &'static Descriptor {
        self.descriptor
    }

    /// The name as results have it.
    pub fn as_name(self) -> SchedulerName {
        self.name.into()
    }
}

impl PartialEq for NamedScheduler {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Deref for NamedScheduler {
    type Target = Descriptor;

    fn deref(&self) -> &Descriptor {
        self.descriptor
    }
}

impl fmt::Debug for NamedScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name, f)
    }
}

impl fmt::Display for NamedScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The schedulers of a program, in the order of its documentation.
#[derive(Debug, Clone, Default)]
pub struct Schedulers {
    all: &'static [&'static Descriptor],
    own_keys: MoreKeys,
}

impl Schedulers {
    pub fn new(all: &'static [&'static Descriptor]) -> Self {
        Self { all, own_keys: all.iter().flat_map(|scheduler| scheduler.own_keys).collect() }
    }

    pub fn all(&self) -> &'static [&'static Descriptor] {
        self.all
    }

    /// Each with every name that it has.
    pub fn named(&self) -> impl Iterator<Item = NamedScheduler> + Clone + use<> {
        self.all.iter().flat_map(|descriptor| descriptor.names.iter().map(|name| NamedScheduler { name, descriptor }))
    }

    pub fn find(&self, name: &str) -> Option<NamedScheduler> {
        self.named().find(|scheduler| scheduler.name == name)
    }

    /// Returns whether a job of this scheduler ends with the process that launched it.
    pub fn dies_with_the_harness(&self, name: &str) -> bool {
        self.find(name).is_some_and(|scheduler| !scheduler.outlives_harness)
    }

    /// Returns whether a job whose launch was not stored continues, and the next launch finds it.
    pub fn finds_launched(&self, name: &str) -> bool {
        self.find(name).is_none_or(|scheduler| scheduler.outlives_harness && scheduler.finds_launched)
    }

    /// The scheduler of `--rehearse`.
    pub fn rehearsing(&self) -> Option<(NamedScheduler, Rehearses)> {
        self.all.iter().find_map(|descriptor| Some((NamedScheduler::of(descriptor), descriptor.rehearses?)))
    }

    /// The own keys of all schedulers: a check may have keys for several.
    pub fn own_keys(&self) -> &MoreKeys {
        &self.own_keys
    }

    /// The own keys whose text is the path of a YAML file.
    pub fn documents(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.all.iter().flat_map(|descriptor| descriptor.documents.iter().copied())
    }
}

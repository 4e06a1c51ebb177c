//! A site configuration: each system becomes a file.
//!
//! ReFrame's keys are Muster's where both have them. Which keys, options and launchers a partition may have, the descriptor of its
//! scheduler says; what it does not take is a line of the report.

use crate::{
    interp::shortened,
    python::{Expr, ExprKind, StmtKind},
    report::{Level, Refusal},
    value::Value,
    world::File,
};
use muster_core::job::descriptor::{NamedScheduler, Schedulers, SharedKey};
use muster_text::{Value as Json, diagnostic::did_you_mean, yaml::Node};

/// A system's file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Site {
    /// The system.
    pub name: String,
    /// Its keys.
    pub entries: Vec<(String, Value)>,
}

/// Where a configuration is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    /// As Python.
    Python(&'a Expr),
    /// As YAML: a tree, and the text that its spans count in.
    Yaml(&'a Node, &'a str),
}

/// A step from a value to what is in it.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(String),
    At(usize),
}

/// Converts a configuration: its value, where it stands, and the file.
pub(crate) fn sites(
    config: &Value,
    schedulers: &Schedulers,
    place: Option<Place<'_>>,
    file: &File,
    refusals: &mut Vec<Refusal>,
) -> Vec<Site> {
    let mut reader = Reader { schedulers, place, file, refusals, system: String::new() };
    for key in ["logging", "general", "modes", "storage", "autodetect_methods"] {
        if get(config, key).is_some() {
            let instead = "settings of the program are options of the command line and `MUSTER_` variables";
            reader.tell(&[Step::Key(key.to_owned())], Level::Dropped, format!("`{key}` is ReFrame's own"), instead);
        }
    }
    let systems = get(config, "systems").map(items).unwrap_or_default();
    (0..).zip(systems).filter_map(|(at, system)| reader.site(config, at, system)).collect()
}

/// Where `site_configuration` is assigned.
pub(crate) fn assigned(file: &File) -> Option<Place<'_>> {
    file.module.body.iter().rev().find_map(|stmt| match &stmt.kind {
        StmtKind::Assign(targets, value)
            if targets.iter().any(|target| target.dotted().as_deref() == Some("site_configuration")) =>
        {
            Some(Place::Python(value))
        }
        _ => None,
    })
}

struct Reader<'a> {
    schedulers: &'a Schedulers,
    place: Option<Place<'a>>,
    file: &'a File,
    refusals: &'a mut Vec<Refusal>,
    system: String,
}

impl Reader<'_> {
    fn tell(&mut self, path: &[Step], level: Level, why: String, instead: &str) {
        let line = self.place.map_or(1, |place| place.line_at(path));
        let what = shortened(self.file.line(line));
        self.refusals.push(Refusal { file: self.file.path.clone(), line, level, what, why, instead: Some(instead.to_owned()) });
    }

    fn site(&mut self, config: &Value, at: usize, system: &Value) -> Option<Site> {
        let name = text(system, "name")?;
        self.system.clone_from(&name);
        let path = [Step::Key("systems".to_owned()), Step::At(at)];
        let mut entries = vec![("name".to_owned(), Value::text(&*name))];
        entries.extend(copied(system, &["descr", "hostnames", "extras"]));
        entries.extend(copied(system, &["modules_system", "modules"]));
        self.drop_all(system, &path, &SYSTEM);
        if let Some(variables) = env_vars(system) {
            entries.push(("env_vars".to_owned(), variables));
        }
        let mut partitions = Vec::new();
        let mut environs = Vec::new();
        for (index, partition) in (0..).zip(get(system, "partitions").map(items).unwrap_or_default()) {
            let path = [&path[..], &[Step::Key("partitions".to_owned()), Step::At(index)]].concat();
            environs.extend(get(partition, "environs").map(items).unwrap_or_default().iter().filter_map(Value::shown));
            partitions.extend(self.partition(partition, &path));
        }
        entries.push(("partitions".to_owned(), Value::List(partitions)));
        let environments = self.environments(config, &environs);
        if !environments.is_empty() {
            entries.push(("environments".to_owned(), Value::List(environments)));
        }
        // By default, ReFrame loads nothing.
        if entries.iter().all(|(key, _)| key != "modules_system") && entries.iter().any(|(key, value)| names_modules(key, value))
        {
            entries.insert(1, ("modules_system".to_owned(), Value::text("nomod")));
        }
        Some(Site { name, entries })
    }

    fn partition(&mut self, partition: &Value, path: &[Step]) -> Option<Value> {
        let name = text(partition, "name")?;
        let scheduler = text(partition, "scheduler")?;
        let at = |key: &str| [path, &[Step::Key(key.to_owned())]].concat();
        let Some(known) = self.schedulers.find(&scheduler) else {
            let why = format!("Muster has no scheduler `{scheduler}`, so the partition `{name}` is left out");
            // Not the one of rehearsals, which runs nothing.
            let real = self.schedulers.all().iter().filter(|known| known.rehearses.is_none());
            let names: Vec<&str> = real.map(|known| known.own_name()).collect();
            self.tell(&at("scheduler"), Level::Refused, why, &format!("describe it with one of {}", names.join(", ")));
            return None;
        };
        let mut entries = vec![("name".to_owned(), Value::Str(name))];
        entries.extend(copied(partition, &["descr"]));
        entries.push(("scheduler".to_owned(), Value::Str(scheduler)));
        for key in ["launcher", "access", "resources"] {
            entries.extend(self.shared(partition, path, key, known));
        }
        entries.extend(self.sched_options(partition, path, known));
        self.unknown_keys(partition, path);
        self.refused_values(&entries, path, known);
        entries
            .extend(copied(partition, &["environs", "max_jobs", "time_limit", "features", "extras", "prepare_cmds", "modules"]));
        if let Some(variables) = env_vars(partition) {
            entries.push(("env_vars".to_owned(), variables));
        }
        let platforms: Vec<Value> =
            get(partition, "container_platforms").map(items).unwrap_or_default().iter().map(platform).collect();
        if !platforms.is_empty() {
            entries.push(("container_platforms".to_owned(), Value::List(platforms)));
        }
        if let Some(processor) = get(partition, "processor").and_then(processor) {
            entries.push(("processor".to_owned(), processor));
        }
        if let Some(devices) = get(partition, "devices") {
            let device = |device: &Value| as_map(copied(device, &["type", "arch", "model", "num_devices"]));
            entries.push(("devices".to_owned(), Value::List(items(devices).iter().map(device).collect())));
        }
        Some(as_map(entries))
    }

    /// A key that some schedulers take, if this one does.
    fn shared(
        &mut self,
        partition: &Value,
        path: &[Step],
        key: &'static str,
        scheduler: NamedScheduler,
    ) -> Option<(String, Value)> {
        let is_said = get(partition, key).is_some_and(|value| value.truth() != Some(false));
        if !is_said {
            return None;
        }
        let launcher = text(partition, key).filter(|_| key == "launcher");
        let instead = match (scheduler.shared_key(key), &launcher) {
            (SharedKey::Ignores, _) => return None,
            (SharedKey::Takes, None) => return copied(partition, &[key]).pop(),
            (SharedKey::Takes, Some(launcher)) => match scheduler.launchers.line(Some(launcher), |_| Some(String::new())) {
                Ok(_) => return copied(partition, &[key]).pop(),
                Err(unknown) => unknown.hint.unwrap_or_default(),
            },
            // A launcher that is called like a scheduler starts nothing.
            (SharedKey::Refuses(_), Some(launcher)) if self.schedulers.find(launcher).is_some() => return None,
            (SharedKey::Refuses(instead), _) => instead.to_owned(),
        };
        let what = launcher.map_or_else(|| format!("`{key}`"), |launcher| format!("the launcher `{launcher}`"));
        let path = [path, &[Step::Key(key.to_owned())]].concat();
        self.tell(&path, Level::Dropped, format!("{what} is not carried over"), &instead);
        None
    }

    /// Keys that ReFrame does not have either: it refuses them, too, but a file may be converted that was never loaded.
    fn unknown_keys(&mut self, partition: &Value, path: &[Step]) {
        let Value::Dict(entries) = partition else { return };
        for key in entries.iter().filter_map(|(key, _)| key.as_str()).filter(|key| !PARTITION.contains(key)) {
            let path = [path, &[Step::Key(key.to_owned())]].concat();
            let instead = did_you_mean(key, PARTITION).unwrap_or_else(|| "a partition has no such key".to_owned());
            self.tell(&path, Level::Dropped, format!("`{key}` is not carried over"), &instead);
        }
    }

    /// Values that are carried over, though the scheduler refuses them.
    fn refused_values(&mut self, entries: &[(String, Value)], path: &[Step], scheduler: NamedScheduler) {
        let shared = Json::Object(entries.iter().map(|(key, value)| (key.clone(), json(value))).collect());
        let shared_path = |name: &str| vec![Step::Key(name.to_owned())];
        let option_path = |name: &str| vec![Step::Key("sched_options".to_owned()), Step::Key(name.to_owned())];
        let wrong = (scheduler.wrong_shared)(&shared).into_iter().map(|wrong| (shared_path(wrong.name), wrong.mistake));
        let wrong_options = (scheduler.wrong_options)(&shared["sched_options"]).into_iter();
        for (at, mistake) in wrong.chain(wrong_options.map(|wrong| (option_path(wrong.name), wrong.mistake))) {
            let why = format!("{}, and Muster refuses the site file until it is changed", mistake.message);
            self.tell(&[path, &at].concat(), Level::Note, why, &mistake.hint.unwrap_or_default());
        }
    }

    /// The options that the scheduler has under the same name.
    fn sched_options(&mut self, partition: &Value, path: &[Step], scheduler: NamedScheduler) -> Option<(String, Value)> {
        let Some(Value::Dict(options)) = get(partition, "sched_options") else { return None };
        let mut kept = Vec::new();
        for (name, value) in options {
            let Some(name) = name.as_str() else { continue };
            if scheduler.option_names().any(|known| known == name) {
                kept.extend(crate::check::plain(value, true).ok().map(|value| (name.to_owned(), value)));
                continue;
            }
            let instead = scheduler.refused_options.iter().find(|(refused, _)| *refused == name).map(|(_, instead)| *instead);
            let path = [path, &[Step::Key("sched_options".to_owned())]].concat();
            let instead = instead.unwrap_or("`sched_options` are those of Muster's own schedulers");
            self.tell(&path, Level::Dropped, format!("the option `{name}` is not carried over"), instead);
        }
        (!kept.is_empty()).then(|| ("sched_options".to_owned(), as_map(kept)))
    }

    /// The environments that the partitions name, the most specific of each name.
    fn environments(&self, config: &Value, wanted: &[String]) -> Vec<Value> {
        let all = get(config, "environments").map(items).unwrap_or_default();
        let mut made = Vec::new();
        let mut names: Vec<&String> = Vec::new();
        for name in wanted {
            if names.contains(&name) {
                continue;
            }
            names.push(name);
            let mut fitting: Vec<(usize, usize, &Value)> = Vec::new();
            for (at, environment) in
                all.iter().enumerate().filter(|(_, environment)| text(environment, "name").as_ref() == Some(name))
            {
                fitting.extend(self.rank(environment).map(|rank| (rank, at, environment)));
            }
            let best = fitting.iter().max_by_key(|(rank, at, _)| (*rank, usize::MAX - at));
            match best {
                Some((_, _, found)) => made.push(environment(found)),
                None => made.push(as_map(vec![("name".to_owned(), Value::text(&**name))])),
            }
        }
        made
    }

    /// How well an environment fits the system; `None` if it is for others.
    fn rank(&self, environment: &Value) -> Option<usize> {
        let Some(targets) = get(environment, "target_systems") else { return Some(0) };
        let rank = |target: &Value| match target.as_str()? {
            "*" => Some(0),
            target if target == self.system => Some(1),
            target if target.split(':').next() == Some(&*self.system) => Some(2),
            _ => None,
        };
        items(targets).iter().filter_map(rank).max()
    }

    fn drop_all(&mut self, of: &Value, path: &[Step], keys: &[(&'static str, &str)]) {
        for (key, instead) in keys {
            let is_said = get(of, key).is_some_and(|value| value.truth() != Some(false));
            if is_said {
                let path = [path, &[Step::Key((*key).to_owned())]].concat();
                self.tell(&path, Level::Dropped, format!("`{key}` is not carried over"), instead);
            }
        }
    }
}

/// Whether something of the site loads modules.
fn names_modules(key: &str, value: &Value) -> bool {
    let within = |value: &Value| match value {
        Value::Dict(entries) => entries.iter().any(|(key, value)| names_modules(key.as_str().unwrap_or_default(), value)),
        _ => false,
    };
    key == "modules" || within(value) || value.items().is_some_and(|items| items.iter().any(within))
}

/// One of `environments`.
fn environment(environment: &Value) -> Value {
    let mut entries = copied(environment, &["name", "descr"]);
    let mut variables = match env_vars(environment) {
        Some(Value::Dict(variables)) => variables,
        _ => vec![],
    };
    for (key, variable) in COMPILERS {
        let value = match get(environment, key) {
            Some(Value::Str(value)) if !value.is_empty() => value.clone(),
            Some(Value::List(flags)) if !flags.is_empty() => flags.iter().filter_map(Value::shown).collect::<Vec<_>>().join(" "),
            _ => continue,
        };
        if variables.iter().all(|(known, _)| known.as_str() != Some(variable)) {
            variables.push((Value::text(variable), Value::Str(value)));
        }
    }
    entries.extend(copied(environment, &["features", "extras", "prepare_cmds", "modules", "resources"]));
    if !variables.is_empty() {
        entries.push(("env_vars".to_owned(), Value::Dict(variables)));
    }
    as_map(entries)
}

/// One of `container_platforms`.
fn platform(of: &Value) -> Value {
    let mut entries = Vec::new();
    entries.extend(text(of, "type").map(|name| ("type".to_owned(), Value::Str(name.to_lowercase()))));
    entries.extend(copied(of, &["modules"]));
    entries.extend(env_vars(of).map(|variables| ("env_vars".to_owned(), variables)));
    entries.extend(copied(of, &["default"]));
    as_map(entries)
}

/// A value as the descriptor of a scheduler reads it.
fn json(value: &Value) -> Json {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Str(text) => text.as_str().into(),
        Value::List(items) | Value::Tuple(items) => items.iter().map(json).collect(),
        Value::Dict(entries) => {
            let entry = |(key, value): &(Value, Value)| Some((key.as_str()?.to_owned(), json(value)));
            Json::Object(entries.iter().filter_map(entry).collect())
        }
        _ => Json::Null,
    }
}

/// ReFrame's keys of a partition.
const PARTITION: [&str; 19] = [
    "name",
    "descr",
    "scheduler",
    "launcher",
    "access",
    "resources",
    "sched_options",
    "environs",
    "max_jobs",
    "time_limit",
    "features",
    "extras",
    "prepare_cmds",
    "modules",
    "env_vars",
    "variables",
    "container_platforms",
    "processor",
    "devices",
];

const SYSTEM: [(&str, &str); 7] = [
    ("prefix", "use `--prefix`"),
    ("stagedir", "use `--stage`"),
    ("outputdir", "use `--output`"),
    ("resourcesdir", "name the path in a variable of the check"),
    ("max_local_jobs", "write `max_jobs` in a partition"),
    ("sched_options", "`sched_options` are those of Muster's own schedulers"),
    ("prepare_cmds", "write `prepare_cmds` in the partitions"),
];

/// Compilers and flags as the variables that builds read.
const COMPILERS: [(&str, &str); 9] = [
    ("cc", "CC"),
    ("cxx", "CXX"),
    ("ftn", "FC"),
    ("nvcc", "NVCC"),
    ("cppflags", "CPPFLAGS"),
    ("cflags", "CFLAGS"),
    ("cxxflags", "CXXFLAGS"),
    ("fflags", "FFLAGS"),
    ("ldflags", "LDFLAGS"),
];

fn get<'a>(of: &'a Value, key: &str) -> Option<&'a Value> {
    let Value::Dict(entries) = of else { return None };
    entries.iter().find(|(known, _)| known.as_str() == Some(key)).map(|(_, value)| value).filter(|value| **value != Value::None)
}

fn text(of: &Value, key: &str) -> Option<String> {
    get(of, key)?.as_str().map(str::to_owned)
}

fn items(of: &Value) -> &[Value] {
    of.items().unwrap_or_default()
}

fn copied(of: &Value, keys: &[&str]) -> Vec<(String, Value)> {
    // What was computed while ReFrame loaded it was reported already.
    let plain =
        |value: &Value| crate::check::plain(value, true).ok().filter(|made| made == value || *made != Value::List(vec![]));
    keys.iter().filter_map(|key| Some(((*key).to_owned(), plain(get(of, key)?)?))).collect()
}

fn as_map(entries: Vec<(String, Value)>) -> Value {
    Value::Dict(entries.into_iter().map(|(key, value)| (Value::Str(key), value)).collect())
}

/// `[['NAME', 'value']]` or a mapping, and ReFrame's old word for it.
fn env_vars(of: &Value) -> Option<Value> {
    let pair = |pair: &Value| match pair.items()? {
        [name, value] => Some((Value::Str(name.shown()?), Value::Str(value.shown()?))),
        _ => None,
    };
    let pairs: Vec<_> = match get(of, "env_vars").or_else(|| get(of, "variables"))? {
        Value::Dict(entries) => {
            entries.iter().filter_map(|(name, value)| Some((name.clone(), Value::Str(value.shown()?)))).collect()
        }
        list => items(list).iter().filter_map(pair).collect(),
    };
    (!pairs.is_empty()).then_some(Value::Dict(pairs))
}

/// The processor, with the number of cores that ReFrame derives.
fn processor(of: &Value) -> Option<Value> {
    let keys = ["arch", "model", "platform", "num_cpus", "num_cpus_per_core", "num_cpus_per_socket", "num_sockets"];
    let mut entries = copied(of, &keys);
    if let (Some(Value::Int(cpus)), Some(Value::Int(per_core))) = (get(of, "num_cpus"), get(of, "num_cpus_per_core"))
        && let Some(cores) = cpus.checked_div(*per_core)
    {
        entries.push(("num_cores".to_owned(), Value::Int(cores)));
    }
    (!entries.is_empty()).then(|| as_map(entries))
}

impl Place<'_> {
    /// The line of what a path leads to, or of the last thing on the way that is written there.
    fn line_at(self, path: &[Step]) -> u32 {
        match self {
            Self::Python(place) => python_line(place, path),
            Self::Yaml(place, text) => yaml_line(place, text, path),
        }
    }
}

fn python_line(mut place: &Expr, path: &[Step]) -> u32 {
    let mut line = place.line;
    for step in path {
        let next = match (step, &place.kind) {
            (Step::Key(key), ExprKind::Dict(entries)) => entries.iter().find_map(|(name, value)| {
                let name = name.as_ref()?;
                (name.kind == ExprKind::Str(key.clone())).then_some((name.line, value))
            }),
            (Step::At(at), ExprKind::List(items)) => items.get(*at).map(|item| (item.line, item)),
            _ => None,
        };
        let Some((at, next)) = next else { break };
        (line, place) = (at, next);
    }
    line
}

fn yaml_line(mut place: &Node, text: &str, path: &[Step]) -> u32 {
    let mut start = place.span.start;
    for step in path {
        let next = match step {
            Step::Key(key) => place.entry(key).map(|(name, value)| (name.span.start, value)),
            Step::At(at) => place.items().get(*at).map(|item| (item.span.start, item)),
        };
        let Some((at, next)) = next else { break };
        (start, place) = (at, next);
    }
    let before = usize::try_from(start).ok().and_then(|start| text.get(..start)).unwrap_or_default();
    u32::try_from(before.matches('\n').count() + 1).unwrap_or(u32::MAX)
}

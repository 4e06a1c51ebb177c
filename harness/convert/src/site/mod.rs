//! A site configuration: each system becomes a file.
//!
//! ReFrame's keys are Muster's where both have them. Which keys, options and launchers a partition may have, the descriptor of its
//! scheduler says; what it does not take is a line of the report.

mod environments;
mod place;
mod values;

pub(crate) use place::Place;

use crate::{
    interp::shortened,
    loaded::{self, Step},
    python::StmtKind,
    report::{Level, Refusal},
    value::Value,
    world::File,
    yaml::emit,
};
use muster_core::job::descriptor::{NamedScheduler, Schedulers, SharedKey};

/// A system's file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Site {
    /// The system.
    pub name: String,
    /// Its keys.
    pub entries: Vec<(String, Value)>,
}

/// Converts a configuration: its value, where it stands, and the file.
pub(crate) fn sites(
    config: &Value,
    schedulers: &Schedulers,
    place: Option<Place<'_>>,
    file: &File,
    refusals: &mut Vec<Refusal>,
) -> Vec<Site> {
    let mut reader = Reader { schedulers, place, file, refusals, system: String::new(), used: vec![] };
    for key in ["logging", "general", "storage", "autodetect_methods"] {
        if get(config, key).is_some() {
            let instead = "settings of the program are options of the command line and `MUSTER_` variables";
            reader.tell(&[Step::Key(key.to_owned())], Level::Dropped, format!("`{key}` is ReFrame's own"), instead);
        }
    }
    if get(config, "modes").is_some() {
        let instead = "write them in the site file of their system: options of Muster under a name";
        reader.tell(&[Step::Key("modes".to_owned())], Level::Refused, "`modes` are not converted".to_owned(), instead);
    }
    reader.unknown_keys(config, &[], "a configuration", &CONFIGURATION);
    let systems = reader.items(config, &[], "systems");
    let site = |(at, system)| {
        let site = reader.site(config, at, system)?;
        reader.loaded(config, (at, system), site)
    };
    let sites = (0..).zip(systems).filter_map(site).collect();
    reader.unused_environments(config);
    sites
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
    /// The environments that some system has.
    used: Vec<usize>,
}

impl Reader<'_> {
    fn tell(&mut self, path: &[Step], level: Level, why: String, instead: &str) {
        let line = self.place.map_or(1, |place| place.line_at(path));
        let what = shortened(self.file.line(line));
        let instead = Some(instead.to_owned()).filter(|instead| !instead.is_empty());
        self.refusals.push(Refusal { file: self.file.path.clone(), line, level, what, why, instead });
    }

    fn site(&mut self, config: &Value, at: usize, system: &Value) -> Option<Site> {
        let path = [Step::Key("systems".to_owned()), Step::At(at)];
        let name = self.named(system, &path, "name")?;
        self.system.clone_from(&name);
        let mut entries = vec![("name".to_owned(), Value::text(&*name))];
        entries.extend(self.carried(system, &path, &["descr", "hostnames", "extras", "modules_system", "modules"]));
        self.drop_all(system, &path, &SYSTEM);
        let own = ["name", "descr", "hostnames", "extras", "modules_system", "modules", "env_vars", "variables", "partitions"];
        let known: Vec<&str> = own.into_iter().chain(SYSTEM.iter().map(|(key, _)| *key)).collect();
        self.unknown_keys(system, &path, "a system", &known);
        entries.extend(self.env_vars(system, &path));
        let mut partitions = Vec::new();
        let mut environs = Vec::new();
        for (index, partition) in (0..).zip(self.items(system, &path, "partitions")) {
            let path = [&path[..], &[Step::Key("partitions".to_owned()), Step::At(index)]].concat();
            let made = self.partition(partition, &path);
            let named = made.as_ref().and_then(|made| get(made, "environs")).map(items).unwrap_or_default();
            environs.extend(named.iter().filter_map(Value::shown));
            partitions.extend(made);
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
        let name = self.named(partition, path, "name")?;
        let scheduler = self.named(partition, path, "scheduler")?;
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
        entries.extend(self.carried(partition, path, &["descr"]));
        entries.push(("scheduler".to_owned(), Value::Str(scheduler)));
        for key in ["launcher", "access", "resources"] {
            entries.extend(self.shared(partition, path, key, known));
        }
        entries.extend(self.sched_options(partition, path, known));
        self.unknown_keys(partition, path, "a partition", &PARTITION);
        let keys = ["environs", "max_jobs", "time_limit", "features", "extras", "prepare_cmds", "modules"];
        entries.extend(self.carried(partition, path, &keys));
        entries.extend(self.env_vars(partition, path));
        entries.extend(self.each(partition, path, "container_platforms", Self::platform));
        if let Some(of) = get(partition, "processor") {
            entries.extend(self.processor(of, &at("processor")).map(|processor| ("processor".to_owned(), processor)));
        }
        entries.extend(self.each(partition, path, "devices", |reader, device, path| {
            reader.unknown_keys(device, path, "a device", &DEVICE);
            as_map(reader.carried(device, path, &DEVICE))
        }));
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
            (SharedKey::Ignores, _) => "it has no effect on this scheduler".to_owned(),
            (SharedKey::Takes, None) => return self.carried(partition, path, &[key]).pop(),
            (SharedKey::Takes, Some(launcher)) => match scheduler.launchers.line(Some(launcher), |_| Some(String::new())) {
                Ok(_) => return self.carried(partition, path, &[key]).pop(),
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

    /// What Muster's loader takes of a site.
    fn loaded(&mut self, config: &Value, system: (usize, &Value), mut site: Site) -> Option<Site> {
        loop {
            let misfits = loaded::in_site(&emit::document("ReFrame", &[], &site.entries), self.schedulers);
            if misfits.is_empty() {
                return Some(site);
            }
            for misfit in misfits {
                let path = self.origin(config, system, &site, &misfit.path);
                self.tell(&path, Level::Refused, misfit.why, &misfit.instead.unwrap_or_default());
                if !loaded::take_out(&mut site.entries, &[&misfit.unit]) {
                    return None;
                }
            }
        }
    }

    /// The path in the configuration to a part of a site. Partitions and environments are found by their names.
    fn origin(&self, config: &Value, (at, system): (usize, &Value), site: &Site, path: &[Step]) -> Vec<Step> {
        let above = [Step::Key("systems".to_owned()), Step::At(at)];
        let [Step::Key(key), Step::At(index), rest @ ..] = path else { return [&above[..], path].concat() };
        let is_environment = key == "environments";
        let (above, of) = if is_environment { (&[][..], config) } else { (&above[..], system) };
        let list = site.entries.iter().find(|(known, _)| known == key);
        let name = list.and_then(|(_, list)| text(items(list).get(*index)?, "name"));
        let all = get(of, key).map(items).unwrap_or_default().iter().enumerate();
        let is_it = |(at, one): &(usize, &Value)| text(one, "name") == name && (!is_environment || self.used.contains(at));
        let at = all.clone().find(is_it).map(|(at, _)| Step::At(at));
        [above, &[Step::Key(key.clone())], at.as_slice(), rest].concat()
    }

    /// The options that the scheduler has under the same name.
    fn sched_options(&mut self, partition: &Value, path: &[Step], scheduler: NamedScheduler) -> Option<(String, Value)> {
        let path = [path, &[Step::Key("sched_options".to_owned())]].concat();
        let Value::Dict(options) = get(partition, "sched_options")? else {
            let why = "`sched_options` is left out: it is no mapping that is written out".to_owned();
            self.tell(&path, Level::Refused, why, "write it out");
            return None;
        };
        let mut kept = Vec::new();
        for (name, value) in options {
            let shown = name.shown().unwrap_or_default();
            let name = shown.as_str();
            if scheduler.option_names().any(|known| known == name) {
                let at = [&path[..], &[Step::Key(name.to_owned())]].concat();
                kept.extend(self.value(name, value, &at).map(|value| (name.to_owned(), value)));
                continue;
            }
            let instead = scheduler.refused_options.iter().find(|(refused, _)| *refused == name).map(|(_, instead)| *instead);
            let instead = instead.unwrap_or("`sched_options` are those of Muster's own schedulers");
            self.tell(&path, Level::Dropped, format!("the option `{name}` is not carried over"), instead);
        }
        (!kept.is_empty()).then(|| ("sched_options".to_owned(), as_map(kept)))
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

    /// One of `container_platforms`.
    fn platform(&mut self, of: &Value, path: &[Step]) -> Value {
        self.unknown_keys(of, path, "a container platform", &["type", "modules", "env_vars", "variables", "default"]);
        let mut entries = self.carried(of, path, &["type"]);
        for (_, name) in &mut entries {
            if let Value::Str(name) = name {
                *name = name.to_lowercase();
            }
        }
        entries.extend(self.carried(of, path, &["modules"]));
        entries.extend(self.env_vars(of, path));
        entries.extend(self.carried(of, path, &["default"]));
        as_map(entries)
    }

    /// The processor, with the number of cores that ReFrame derives.
    fn processor(&mut self, of: &Value, path: &[Step]) -> Option<Value> {
        if !matches!(of, Value::Dict(_)) {
            let why = "`processor` is left out: it is no mapping that is written out".to_owned();
            self.tell(path, Level::Refused, why, "write it out");
            return None;
        }
        self.unknown_keys(of, path, "a processor", &PROCESSOR);
        let mut entries = self.carried(of, path, &PROCESSOR);
        if let (None, Some(Value::Int(cpus)), Some(Value::Int(per_core))) =
            (get(of, "num_cores"), get(of, "num_cpus"), get(of, "num_cpus_per_core"))
            && let Some(cores) = cpus.checked_div(*per_core)
        {
            entries.push(("num_cores".to_owned(), Value::Int(cores)));
        }
        (!entries.is_empty()).then(|| as_map(entries))
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

/// ReFrame's keys of a configuration.
const CONFIGURATION: [&str; 7] = ["systems", "environments", "modes", "logging", "general", "storage", "autodetect_methods"];

const PROCESSOR: [&str; 8] =
    ["arch", "model", "platform", "num_cpus", "num_cpus_per_core", "num_cpus_per_socket", "num_sockets", "num_cores"];

const DEVICE: [&str; 4] = ["type", "arch", "model", "num_devices"];

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

fn as_map(entries: Vec<(String, Value)>) -> Value {
    Value::Dict(entries.into_iter().map(|(key, value)| (Value::Str(key), value)).collect())
}

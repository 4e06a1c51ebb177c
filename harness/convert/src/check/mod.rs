//! A reading as a check: which attribute becomes which key, in the order in which people read them. Longer than other files: the tables of
//! keys stand beside what reads them.

mod document;
mod surroundings;
mod verdict;

use crate::{
    build::{build, executable},
    judged::{figure, reference_key, references, sanity},
    reading::Reading,
    report::{Level, Refusal},
    settle::{Setting, entries, settle},
    value::{Declared, Piece, Thing, Value, cel::Cel, cond::Cond},
    world::Root,
};
pub(crate) use document::Document;
use muster_check::files::named_as_keys::{FIXED, is_key};

/// Keys that are carried over as they are, in their order; whether the shell expands them.
const KEYS: [(&str, bool); 32] = [
    ("descr", false),
    ("tags", false),
    ("maintainers", false),
    ("valid_systems", false),
    ("valid_prog_environs", false),
    ("time_limit", false),
    ("max_pending_time", false),
    ("depends_on", false),
    ("num_tasks", false),
    ("num_tasks_per_node", false),
    ("num_tasks_per_socket", false),
    ("num_tasks_per_core", false),
    ("num_cpus_per_task", false),
    ("num_gpus_per_node", false),
    ("use_multithreading", false),
    ("exclusive_access", false),
    ("extra_resources", false),
    ("env_vars", true),
    ("k8s_config", false),
    ("namespace", false),
    ("context", false),
    ("k8s_resource", false),
    ("prerun_cmds", true),
    ("executable", true),
    ("executable_opts", true),
    ("postrun_cmds", true),
    ("strict_check", false),
    ("require_reference", false),
    ("keep_files", false),
    ("modules", false),
    ("container_platform", true),
    ("readonly_files", false),
];

/// The shape of a job, which a manifest has itself.
const SHAPE: [&str; 8] = [
    "num_tasks_per_node",
    "num_tasks_per_socket",
    "num_tasks_per_core",
    "num_cpus_per_task",
    "num_gpus_per_node",
    "use_multithreading",
    "exclusive_access",
    "extra_resources",
];

/// Attributes that a scheduler or launcher needs, with what says the same here.
const DROPPED: [(&str, &str); 3] = [
    ("local", "write `valid_systems` of a partition whose scheduler is `local`"),
    ("build_locally", "a build runs where its check runs"),
    ("build_time_limit", "write `time_limit` in the check that builds"),
];

/// Attributes without a counterpart of that name.
const REFUSED: [(&str, &str); 1] = [("ci_extras", "write the CI job by hand")];

/// What a check is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It is listed and runs.
    Test,
    /// Others derive from it.
    Base,
    /// Others need it: it runs where they do.
    Fixture,
}

/// Makes a check of a reading. What a base leaves to others is left out of it.
pub(crate) fn document(reading: &mut Reading, purpose: Purpose) -> Document {
    let name = reading.id.1.clone();
    let is_base = purpose != Purpose::Test;
    let mut making = Making { entries: vec![], settings: vec![], is_base };
    making.put("name", Value::text(&*name));
    Making::tasks(reading);
    Making::gather_container(reading);
    for (key, _) in &KEYS[..8] {
        making.key(reading, key);
    }
    making.parameters(reading);
    for (key, _) in &KEYS[8..] {
        making.key(reading, key);
    }
    making.container(reading);
    making.manifest_patch(reading);
    making.fixtures(reading);
    making.build(reading);
    making.left_out(reading);
    making.skips(reading);
    making.sanity(reading);
    let units = making.figures(reading);
    making.searched_files();
    making.references(reading, &units);
    making.variables(reading);
    making.completeness(reading);
    making.named_as_keys(reading);
    if purpose == Purpose::Fixture {
        making.leave(&["valid_systems", "valid_prog_environs"]);
    }
    making.paths(&reading.interp.world.files[reading.id.0].way);
    let when = entries(&making.settings);
    if !when.is_empty() {
        making.put("when", Value::List(when));
    }
    let mut entries = making.entries;
    entries.sort_by_key(|(key, _)| place(key));
    let missing = reading.interp.refusals.iter().filter(|refusal| refusal.level.is_missing());
    let mut comments: Vec<String> = missing.map(comment).collect();
    comments.dedup();
    let mut lines = reading.interp.lines.clone();
    lines.insert("name".to_owned(), (reading.id.0, reading.class.line));
    Document { id: reading.id.clone(), name, comments, entries, lines, sets: reading.interp.sets.clone() }
}

/// A refusal as a line above a check.
pub(crate) fn comment(refusal: &Refusal) -> String {
    let file = refusal.file.rsplit('/').next().unwrap_or(&refusal.file);
    format!("{file}:{}: {}", refusal.line, refusal.why)
}

/// Where a key stands in a check.
fn place(key: &str) -> usize {
    const ORDER: [&str; 38] = [
        "name",
        "extends",
        "abstract",
        "descr",
        "tags",
        "maintainers",
        "valid_systems",
        "valid_prog_environs",
        "time_limit",
        "max_pending_time",
        "fixtures",
        "depends_on",
        "parameters",
        "variables",
        "num_tasks",
        "env_vars",
        "sourcesdir",
        "readonly_files",
        "modules",
        "container_platform",
        "namespace",
        "context",
        "k8s_resource",
        "k8s_config",
        "k8s_patch",
        "prerun_cmds",
        "executable",
        "executable_opts",
        "postrun_cmds",
        "keep_files",
        "when",
        "sanity",
        "perf_variables",
        "reference",
        "strict_check",
        "require_reference",
        "xfail",
        "outputs",
    ];
    let plain = key.trim_end_matches('+');
    ORDER.iter().position(|known| *known == plain).unwrap_or(ORDER.len())
}

struct Making {
    entries: Vec<(String, Value)>,
    settings: Vec<Setting>,
    is_base: bool,
}

impl Making {
    fn put(&mut self, key: &str, value: Value) {
        self.entries.retain(|(known, _)| known != key);
        self.entries.push((key.to_owned(), value));
    }

    fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(known, _)| known == key)
            || self.settings.iter().any(|setting| setting.key.trim_end_matches('+') == key)
    }

    /// `num_tasks` of one says nothing; `None` and 0 are the scheduler's choice.
    fn tasks(reading: &mut Reading) {
        if let Some(Value::Int(tasks)) = reading.attr("num_tasks")
            && *tasks < 1
        {
            let why = "as many tasks as there are nodes is the scheduler's choice";
            reading.tell_of("num_tasks", Level::Dropped, why, Some("write how many, or make a parameter of it"));
            crate::interp::set(&mut reading.interp.state.attrs, "num_tasks", Value::None);
        }
    }

    /// Carries an attribute over.
    fn key(&mut self, reading: &mut Reading, key: &str) {
        let Some(value) = reading.attr(key).cloned() else { return self.described(reading, key) };
        let is_nothing = |value: &Value| match value {
            Value::None | Value::Absent => true,
            Value::List(items) => items.is_empty() && key != "valid_systems",
            Value::Dict(entries) => entries.is_empty(),
            Value::Str(text) => text.is_empty(),
            Value::Int(1) => key == "num_tasks",
            Value::Bool(value) => *value == (key == "strict_check") && matches!(key, "strict_check" | "require_reference"),
            _ => false,
        };
        if is_nothing(&value) {
            return self.described(reading, key);
        }
        if value.is_unknown() && !matches!(value, Value::Dict(_) | Value::List(_)) {
            return;
        }
        let shell = KEYS.iter().any(|(known, shell)| *known == key && *shell);
        let settled = settle(key, &listed(key, value));
        let base = settled.base.filter(|base| !is_nothing(base));
        let mut is_whole = base.is_none_or(|base| self.write(reading, key, &base, shell, None));
        for setting in settled.settings {
            is_whole &= self.write(reading, &setting.key, &setting.value, shell, Some(&setting.cond));
        }
        // No other branch stands in for one that is lost.
        if !is_whole {
            self.leave(&[key]);
        }
    }

    /// A class without `descr` is described by its docstring.
    fn described(&mut self, reading: &Reading, key: &str) {
        let doc = reading.class.doc.as_deref().and_then(|doc| doc.trim().lines().next()).map(str::trim);
        if let (true, Some(doc)) = (key == "descr", doc.filter(|doc| !doc.is_empty() && !doc.contains("${{"))) {
            self.put(key, Value::text(doc));
        }
    }

    /// Puts a value where it belongs, or reports why it has no place; whether it has one.
    fn write(&mut self, reading: &mut Reading, key: &str, value: &Value, shell: bool, cond: Option<&Cond>) -> bool {
        let made = plain(value, shell);
        let is_made = made.is_ok();
        match made {
            Ok(value) => match cond {
                None => self.put(key, value),
                Some(cond) => self.settings.push(Setting { cond: cond.clone(), key: key.to_owned(), value }),
            },
            Err("") => {}
            Err(why) => {
                let name = key.trim_end_matches('+').to_owned();
                reading.tell_of(&name, Level::Refused, format!("`{name}`: {why}"), None);
            }
        }
        is_made
    }

    fn parameters(&mut self, reading: &mut Reading) {
        let mut parameters = Vec::new();
        for param in reading.interp.test.params.clone() {
            if param.is_abstract {
                if !self.is_base {
                    let why = format!("the parameter `{}` has no values, so ReFrame has no case of this test", param.name);
                    reading.tell_of(&param.name, Level::Defect, why, None);
                }
                continue;
            }
            if FIXED.contains(&&*param.name) {
                let why = format!("no parameter may be called `{}`, which is a key of a check", param.name);
                reading.tell_of(&param.name, Level::Refused, why, Some("rename it"));
                continue;
            }
            let value = |(value, shown): (&Value, &String)| {
                if !param.is_wrapped {
                    return value.clone();
                }
                Value::Dict(vec![(Value::text("name"), Value::text(&**shown)), (Value::text("value"), value.clone())])
            };
            let values: Vec<Value> = param.values.iter().zip(&param.shown).map(value).collect();
            match plain(&Value::List(values), false) {
                Ok(values) => parameters.push((Value::text(&*param.name), values)),
                Err(why) => reading.tell_of(&param.name, Level::Refused, format!("parameter `{}`: {why}", param.name), None),
            }
        }
        if !parameters.is_empty() {
            self.put("parameters", Value::Dict(parameters));
        }
    }

    /// A parameter with the name of a key of ReFrame sets it. With another key's name it is a label, and would set the key here.
    fn named_as_keys(&mut self, reading: &mut Reading) {
        for param in reading.interp.test.params.clone() {
            let is_written = self.entries.iter().any(|(key, _)| key.trim_end_matches('+') == param.name);
            if is_written || param.is_abstract || !is_key(&param.name, &reading.interp.world.keys) {
                continue;
            }
            match KEYS.iter().find(|(key, _)| *key == param.name) {
                Some((key, shell)) if reading.attr(key).is_none() => {
                    self.write(reading, key, &param.value(), *shell, None);
                }
                Some(_) | None => self.put(&param.name, Value::None),
            }
        }
    }

    /// Only variables that something reads: setting the others would have no effect.
    fn variables(&mut self, reading: &mut Reading) {
        let mut variables = Vec::new();
        for name in reading.variables.clone() {
            let is_stable = reading.interp.test.stable.contains(&name);
            let is_read = reading.interp.test.read.contains(&name);
            let value = reading.attr(&name).cloned();
            match value {
                Some(value) if is_stable && (is_read || self.is_base) => variables.push((Value::text(&*name), value)),
                Some(Value::Unknown) | None => {}
                Some(_) if is_stable => {}
                Some(_) => {
                    let why = format!("the variable `{name}` is written out where it is used: `-S {name}=..` has no effect");
                    reading.tell_of(&name, Level::Note, why, None);
                }
            }
        }
        if !variables.is_empty() {
            self.put("variables", Value::Dict(variables));
        }
    }

    /// A manifest that was read and changed: the file, and what lies over it.
    fn manifest_patch(&mut self, reading: &mut Reading) {
        let Some(Value::Thing(Thing::Manifest(manifest))) = reading.attr("k8s_config").cloned() else { return };
        self.put("k8s_config", Value::text(&*manifest.path));
        if manifest.patch != Value::Dict(vec![]) {
            self.write(reading, "k8s_patch", &manifest.patch, false, None);
        }
    }

    fn skips(&mut self, reading: &mut Reading) {
        for (cond, msg, _) in std::mem::take(&mut reading.interp.skips) {
            let Some(pieces) = msg.pieces() else { continue };
            if cond == Cond::Always(false) {
                continue;
            }
            self.settings.push(Setting { cond, key: "skip".to_owned(), value: Value::joined(pieces) });
        }
    }

    /// What a check must have.
    fn completeness(&mut self, reading: &mut Reading) {
        if self.is_base {
            return;
        }
        if !self.has("valid_systems") && !matches!(reading.attr("valid_systems"), Some(Value::Unknown)) {
            reading.tell_of("valid_systems", Level::Defect, "the test has no `valid_systems`", None);
        }
        if !self.has("executable")
            && !self.has("k8s_config")
            && !self.has("container_platform")
            && reading.root == Root::RunOnly
            && !matches!(reading.attr("executable"), Some(Value::Unknown))
        {
            reading.tell_of("executable", Level::Defect, "the test has nothing to run", None);
        }
    }
}

/// One text where Muster wants a list is fine there too; tuples are lists.
fn listed(key: &str, value: Value) -> Value {
    match value {
        Value::Tuple(items) if key != "reference" => Value::List(items),
        other => other,
    }
}

/// A value as YAML; the reason why not is empty if it was reported before.
pub(crate) fn plain(value: &Value, shell: bool) -> Result<Value, &'static str> {
    const PLACEHOLDER: &str = "`${{` would be a placeholder";
    Ok(match value {
        Value::Str(text) if text.contains("${{") => return Err(PLACEHOLDER),
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) | Value::Cel(_) => value.clone(),
        Value::Text(pieces) => {
            for piece in pieces {
                match piece {
                    Piece::Text(text) if text.contains("${{") => return Err(PLACEHOLDER),
                    Piece::Shell(_) if !shell => return Err("the environment is read by the job's shell, not here"),
                    _ => {}
                }
            }
            value.clone()
        }
        Value::List(items) | Value::Tuple(items) => {
            if items.contains(&Value::Unknown) {
                return Err("a part of it was not carried over");
            }
            Value::List(items.iter().map(|item| plain(item, shell)).collect::<Result<_, _>>()?)
        }
        Value::Dict(entries) => {
            let known = entries.iter().filter(|(_, value)| *value != Value::Unknown && *value != Value::Absent);
            let entry = |(key, value): &(Value, Value)| {
                let name = key.shown().ok_or("a key that is known only when it runs")?;
                Ok((Value::Str(name), plain(value, shell)?))
            };
            Value::Dict(known.map(entry).collect::<Result<_, &'static str>>()?)
        }
        Value::Items(_) | Value::Choice(_) | Value::Test(_) => Value::Cel(
            match value {
                Value::Items(choice) => Cel::of(&Value::Choice(choice.clone())),
                other => Cel::of(other),
            }
            .ok_or("what this depends on is known only when it runs")?,
        ),
        Value::Thing(Thing::Manifest(manifest)) => Value::text(&*manifest.path),
        Value::Judge(_) | Value::Figure(_) => return Err("the output is known only afterwards"),
        Value::Unknown | Value::Absent => return Err(""),
        Value::Thing(_) => return Err("this is no data"),
    })
}

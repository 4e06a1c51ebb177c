//! The environments of a system.

use super::{Reader, as_map, get, items, text};
use crate::{
    loaded::Step,
    report::Level,
    value::{Piece, Value},
};

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

impl Reader<'_> {
    /// The environments that the partitions name, the most specific of each name.
    pub(super) fn environments(&mut self, config: &Value, wanted: &[String]) -> Vec<Value> {
        let all = self.items(config, &[], "environments");
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
                Some((_, at, found)) => {
                    self.used.push(*at);
                    made.push(self.environment(found, &[Step::Key("environments".to_owned()), Step::At(*at)]));
                }
                None => made.push(as_map(vec![("name".to_owned(), Value::text(&**name))])),
            }
        }
        made
    }

    /// Environments that are in no file.
    pub(super) fn unused_environments(&mut self, config: &Value) {
        for (at, environment) in get(config, "environments").map(items).unwrap_or_default().iter().enumerate() {
            let path = [Step::Key("environments".to_owned()), Step::At(at)];
            if *environment != Value::Unknown && !self.used.contains(&at) {
                let name = text(environment, "name").unwrap_or_default();
                let why = format!("no partition uses the environment `{name}`, so it is left out");
                self.tell(&path, Level::Dropped, why, "name it in `environs` of a partition");
            }
        }
    }

    /// How well an environment fits the system; `None` if it is for others.
    pub(super) fn rank(&self, environment: &Value) -> Option<usize> {
        let Some(targets) = get(environment, "target_systems") else { return Some(0) };
        let rank = |target: &Value| match target.as_str()? {
            "*" => Some(0),
            target if target == self.system => Some(1),
            target if target.split(':').next() == Some(&*self.system) => Some(2),
            _ => None,
        };
        items(targets).iter().filter_map(rank).max()
    }

    /// One of `environments`.
    pub(super) fn environment(&mut self, environment: &Value, path: &[Step]) -> Value {
        let own = ["name", "descr", "target_systems", "env_vars", "variables"];
        let keys = ["features", "extras", "prepare_cmds", "modules", "resources"];
        let known: Vec<&str> = own.into_iter().chain(keys).chain(COMPILERS.iter().map(|(key, _)| *key)).collect();
        self.unknown_keys(environment, path, "an environment", &known);
        let mut entries = self.carried(environment, path, &["name", "descr"]);
        let mut variables = match self.env_vars(environment, path) {
            Some((_, Value::Dict(variables))) => variables,
            _ => vec![],
        };
        for (key, variable) in COMPILERS {
            let path = [path, &[Step::Key(key.to_owned())]].concat();
            let Some(value) = get(environment, key).filter(|value| value.truth() != Some(false)) else { continue };
            let words = value.items().unwrap_or(std::slice::from_ref(value));
            let pieces: Option<Vec<Vec<Piece>>> = words.iter().map(Value::pieces).collect();
            let Some(pieces) = pieces.filter(|_| crate::check::plain(value, true).is_ok()) else {
                let why = format!("`{key}` is left out: a part of it was not carried over");
                self.tell(&path, Level::Refused, why, &format!("write `{variable}` in `env_vars`"));
                continue;
            };
            if variables.iter().any(|(known, _)| known.as_str() == Some(variable)) {
                let why = format!("`{key}` is not carried over: `env_vars` sets `{variable}`");
                self.tell(&path, Level::Dropped, why, "write one of them");
                continue;
            }
            let value = Value::joined(pieces.join(&Piece::Text(" ".to_owned())));
            self.expanded(&value, &path);
            variables.push((Value::text(variable), value));
        }
        entries.extend(self.carried(environment, path, &keys));
        if !variables.is_empty() {
            entries.push(("env_vars".to_owned(), Value::Dict(variables)));
        }
        as_map(entries)
    }
}

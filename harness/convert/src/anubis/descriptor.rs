//! A descriptor as leaves: what each key says, and where. Who uses a leaf takes it; what is left is refused.

use super::refusal;
use crate::{Level, Refusal, Source, value::Value};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// A value that is no table.
#[derive(Debug)]
struct Leaf {
    /// `data.sources.0.src`
    path: String,
    value: Value,
    line: u32,
    is_taken: bool,
}

/// What a key says, and the line that it stands in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Said<T = Value> {
    pub value: T,
    pub line: u32,
}

pub(super) struct Descriptor<'a> {
    source: &'a Source,
    leaves: Vec<Leaf>,
    refusals: Vec<Refusal>,
}

/// What has no counterpart: the beginning of its path, why, and what to write instead.
const WITHOUT_COUNTERPART: [(&str, &str, &str); 11] = [
    ("info.labels", "a check has no labels", "write `tags`, or `labels` in the `sched_options` of the site file"),
    ("hardware.aws_zone_id", "a check does not choose its zone", "name a subnet of that zone in the site file"),
    ("hardware.availability_zone", "a check does not choose its zone", "name a subnet of that zone in the site file"),
    ("server", "a server beside the benchmark is not carried over", "write a pod with both containers as `k8s_config`"),
    ("custom_params.hyper_params", "parameters of a program are part of its command", "write `parameters` and `executable_opts`"),
    ("custom_params", "dashboards and regions are not a check's business", "the region is in the site file"),
    ("notification", "Muster sends no messages", "see docs/reports.md for what it can write"),
    ("ml.framework", "only SageMaker reads it", "leave it out"),
    ("ml.data", "a script that downloads the data is not carried over", "write it into `prerun_cmds`"),
    ("ml.params", "parameters of a program are part of its command", "write `executable_opts`"),
    ("data.id", "it only names the data", "leave it out"),
];

impl<'a> Descriptor<'a> {
    /// `None`, with a refusal, if the file is no descriptor.
    pub(super) fn parse(source: &'a Source, refusals: &mut Vec<Refusal>) -> Option<Self> {
        let table = match DeTable::parse(&source.text) {
            Ok(table) => table,
            Err(error) => {
                let line = line_at(&source.text, error.span().map_or(0, |span| span.start));
                let why = format!("this is no TOML: {}", error.message());
                refusals.push(refusal(source, line, Level::Refused, why, None));
                return None;
            }
        };
        let mut descriptor = Self { source, leaves: Vec::new(), refusals: Vec::new() };
        descriptor.add("", &DeValue::Table(table.into_inner()), 0);
        descriptor.leaves.sort_by_key(|leaf| leaf.line);
        if !["hardware.", "env.", "ml."].iter().any(|section| descriptor.has(section)) {
            let why = "this is no descriptor of Anubis: it has neither `[hardware]` nor `[env]` nor `[ml]`".to_owned();
            refusals.push(refusal(source, 1, Level::Refused, why, None));
            return None;
        }
        Some(descriptor)
    }

    fn add(&mut self, path: &str, value: &DeValue<'_>, at: usize) {
        let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        match value {
            DeValue::Table(table) => {
                for (key, value) in table {
                    self.add(&below(key.get_ref()), value.get_ref(), key.span().start);
                }
            }
            DeValue::Array(items) if items.iter().any(|item| matches!(item.get_ref(), DeValue::Table(_))) => {
                for (number, item) in items.iter().enumerate() {
                    self.add(&below(&number.to_string()), item.get_ref(), item.span().start);
                }
            }
            value => {
                let line = line_at(&self.source.text, at);
                self.leaves.push(Leaf { path: path.to_owned(), value: plain(value), line, is_taken: false });
            }
        }
    }

    /// Whether there is anything below a path that nobody has taken yet.
    pub(super) fn has(&self, path: &str) -> bool {
        self.leaves.iter().any(|leaf| !leaf.is_taken && leaf.path.starts_with(path))
    }

    pub(super) fn take(&mut self, path: &str) -> Option<Said> {
        let leaf = self.leaves.iter_mut().find(|leaf| !leaf.is_taken && leaf.path == path)?;
        leaf.is_taken = true;
        Some(Said { value: leaf.value.clone(), line: leaf.line })
    }

    /// A text. Another type is refused.
    pub(super) fn text(&mut self, path: &str) -> Option<Said<String>> {
        let Said { value, line } = self.take(path)?;
        match value {
            Value::Str(value) if !value.trim().is_empty() => Some(Said { value, line }),
            // As if it were not there, as Anubis takes it.
            Value::Str(_) => None,
            _ => {
                self.say(line, Level::Defect, format!("`{path}` is a text"), None);
                None
            }
        }
    }

    /// A flag.
    pub(super) fn flag(&mut self, path: &str) -> Option<Said<bool>> {
        let Said { value, line } = self.take(path)?;
        if let Value::Bool(value) = value {
            return Some(Said { value, line });
        }
        self.say(line, Level::Defect, format!("`{path}` is true or false"), None);
        None
    }

    /// A whole number, which may stand in quotes.
    pub(super) fn number(&mut self, path: &str) -> Option<Said<i64>> {
        let Said { value, line } = self.take(path)?;
        let number = match &value {
            Value::Int(number) => Some(*number),
            Value::Str(text) => text.trim().parse().ok(),
            _ => None,
        };
        if let Some(value) = number.filter(|number| *number > 0) {
            return Some(Said { value, line });
        }
        self.say(line, Level::Defect, format!("`{path}` is a whole number above 0"), None);
        None
    }

    /// What lies directly below a path, with the names there.
    pub(super) fn below(&mut self, path: &str) -> Vec<(String, Said)> {
        let prefix = format!("{path}.");
        let of = |leaf: &mut Leaf| {
            let name = leaf.path.strip_prefix(&prefix).filter(|name| !leaf.is_taken && !name.contains('.'))?.to_owned();
            leaf.is_taken = true;
            Some((name, Said { value: leaf.value.clone(), line: leaf.line }))
        };
        self.leaves.iter_mut().filter_map(of).collect()
    }

    /// The line of the first key below a path.
    pub(super) fn line_of(&self, path: &str) -> u32 {
        self.leaves.iter().find(|leaf| leaf.path.starts_with(path)).map_or(1, |leaf| leaf.line)
    }

    pub(super) fn say(&mut self, line: u32, level: Level, why: String, instead: Option<&str>) {
        self.refusals.push(refusal(self.source, line, level, why, instead.map(str::to_owned)));
    }

    /// The stem of the file, for a check that has no other name.
    pub(super) fn stem(&self) -> String {
        let path = std::path::Path::new(&self.source.path);
        path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Says of everything that nobody has taken why it is not in the result.
    pub(super) fn refuse_rest(&mut self) {
        for at in 0..self.leaves.len() {
            let Leaf { path, line, is_taken: false, .. } = &self.leaves[at] else { continue };
            let (path, line) = (path.clone(), *line);
            let is_within = |name: &str| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            match WITHOUT_COUNTERPART.iter().find(|(name, ..)| is_within(name)) {
                Some((_, why, instead)) => self.say(line, Level::Dropped, (*why).to_owned(), Some(instead)),
                None => self.say(line, Level::Refused, format!("`{path}` is no key that Muster knows of Anubis"), None),
            }
        }
    }

    pub(super) fn into_refusals(self) -> Vec<Refusal> {
        self.refusals
    }
}

fn line_at(text: &str, at: usize) -> u32 {
    let before = text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count();
    u32::try_from(before + 1).unwrap_or(u32::MAX)
}

fn plain(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::Str(text.to_string()),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or_else(|_| Value::Str(number.to_string()), Value::Int)
        }
        DeValue::Float(number) => number.as_str().parse().map_or_else(|_| Value::Str(number.to_string()), Value::Float),
        DeValue::Datetime(time) => Value::Str(time.to_string()),
        DeValue::Array(items) => Value::List(items.iter().map(|item: &Spanned<DeValue<'_>>| plain(item.get_ref())).collect()),
        DeValue::Table(table) => {
            let entry = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
                (Value::Str(key.get_ref().to_string()), plain(value.get_ref()))
            };
            Value::Dict(table.iter().map(entry).collect())
        }
    }
}

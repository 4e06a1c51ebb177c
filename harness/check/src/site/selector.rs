//! `valid_systems` and `valid_prog_environs`: which partitions and environments a check may run in.
//!
//! A list of entries is an OR; the blank-separated terms of one entry are an AND:
//! `*`, `sys`, `sys:part`, `*:part`, `+feature`, `-feature`, `%key=value`.

use crate::site::{Environment, Partition, System};
use muster_text::Value;
use std::collections::BTreeMap;

/// A list of entries, any of which may hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector(Vec<Entry>);

/// Terms that must all hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry(Vec<Term>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    Any,
    Name { system: Option<String>, partition: Option<String> },
    Feature { name: String, wanted: bool },
    Fact { key: String, value: String },
}

/// The width of an entry: a partition is narrower than a system, that than features and facts, those than `*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// `*`
    Any,
    /// Features and facts.
    Property,
    /// `sys`
    System,
    /// `sys:part`
    Partition,
}

impl Entry {
    /// Reads one entry.
    ///
    /// # Errors
    /// A lower-case fragment that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let terms: Vec<Term> = text.split_whitespace().map(Term::parse).collect::<Result<_, _>>()?;
        if terms.is_empty() {
            Err("an empty selector matches nothing; `*` matches everything".to_owned())
        } else {
            Ok(Self(terms))
        }
    }

    /// Returns whether a partition satisfies every term.
    pub fn admits(&self, system: &System, partition: &Partition) -> bool {
        self.0.iter().all(|term| term.admits(system, partition))
    }

    fn admits_environment(&self, environ: &Environment) -> bool {
        self.0.iter().all(|term| match term {
            Term::Any => true,
            Term::Name { system, partition } => partition.is_none() && system.as_deref().is_none_or(|name| name == environ.name),
            Term::Feature { name, wanted } => (environ.features.contains(name) || environ.extras.contains_key(name)) == *wanted,
            Term::Fact { key, value } => environ.extras.get(key).is_some_and(|fact| is_fact(fact, value)),
        })
    }

    /// Returns the width of its narrowest term.
    pub fn width(&self) -> Width {
        let width = |term: &Term| match term {
            Term::Name { partition: Some(_), .. } => Width::Partition,
            Term::Name { system: Some(_), .. } => Width::System,
            Term::Any | Term::Name { .. } => Width::Any,
            Term::Feature { .. } | Term::Fact { .. } => Width::Property,
        };
        self.0.iter().map(width).max().unwrap_or(Width::Any)
    }

    /// The systems and partitions it names: `(system, partition)`.
    pub fn names(&self) -> impl Iterator<Item = (Option<&str>, Option<&str>)> {
        self.0.iter().filter_map(|term| match term {
            Term::Name { system, partition } => Some((system.as_deref(), partition.as_deref())),
            _ => None,
        })
    }
}

impl Selector {
    /// A selector that admits everything.
    pub fn any() -> Self {
        Self(vec![Entry(vec![Term::Any])])
    }

    /// A selector of several entries.
    pub fn of(entries: Vec<Entry>) -> Self {
        Self(entries)
    }

    /// Returns whether one entry admits the partition.
    pub fn admits(&self, system: &System, partition: &Partition) -> bool {
        self.0.iter().any(|entry| entry.admits(system, partition))
    }

    /// Returns whether one entry admits the environment.
    pub fn admits_environment(&self, environ: &Environment) -> bool {
        self.0.iter().any(|entry| entry.admits_environment(environ))
    }

    /// Returns the width of the narrowest entry that admits this partition.
    pub fn width_for(&self, system: &System, partition: &Partition) -> Option<Width> {
        self.0.iter().filter(|entry| entry.admits(system, partition)).map(Entry::width).max()
    }

    /// Returns whether it asks for nothing but the system's name, so that no partition is needed to decide.
    pub fn reads_only_the_system(&self) -> bool {
        let plain = |term: &Term| matches!(term, Term::Any | Term::Name { partition: None, .. });
        self.0.iter().all(|entry| entry.0.iter().all(plain))
    }

    /// Returns whether one entry admits the system as such. Works only for selectors that read nothing else.
    pub fn admits_system(&self, name: &str) -> bool {
        let holds = |term: &Term| match term {
            Term::Name { system, .. } => system.as_deref().is_none_or(|wanted| wanted == name),
            Term::Any | Term::Feature { .. } | Term::Fact { .. } => true,
        };
        self.0.iter().any(|entry| entry.0.iter().all(holds))
    }
}

impl Term {
    fn parse(text: &str) -> Result<Self, String> {
        let named = |name: &str| if name.is_empty() { Err(format!("`{text}` has no name")) } else { Ok(name.to_owned()) };
        if text == "*" {
            return Ok(Self::Any);
        }
        if let Some(name) = text.strip_prefix('+') {
            return Ok(Self::Feature { name: named(name)?, wanted: true });
        }
        if let Some(name) = text.strip_prefix('-') {
            return Ok(Self::Feature { name: named(name)?, wanted: false });
        }
        if let Some(fact) = text.strip_prefix('%') {
            let (key, value) = fact.split_once('=').ok_or_else(|| format!("`{text}` has no value: write %key=value"))?;
            return Ok(Self::Fact { key: named(key)?, value: value.to_owned() });
        }
        let open = |part: &str| if part == "*" { Ok(None) } else { named(part).map(Some) };
        match text.split_once(':') {
            None => Ok(Self::Name { system: open(text)?, partition: None }),
            Some((system, partition)) => Ok(Self::Name { system: open(system)?, partition: open(partition)? }),
        }
    }

    fn admits(&self, system: &System, partition: &Partition) -> bool {
        match self {
            Self::Any => true,
            Self::Name { system: wanted, partition: part } => {
                wanted.as_deref().is_none_or(|name| name == system.name)
                    && part.as_deref().is_none_or(|name| name == partition.name)
            }
            Self::Feature { name, wanted } => {
                (partition.features.contains(name) || partition.extras.contains_key(name)) == *wanted
            }
            Self::Fact { key, value } => fact(partition, key, value),
        }
    }
}

/// `%arch=zen3` looks in extras, then processor, then devices; the first that knows the key decides.
/// `%scheduler=local` asks for the partition's scheduler, as in ReFrame.
fn fact(partition: &Partition, key: &str, value: &str) -> bool {
    if key == "scheduler" {
        return partition.scheduler.name == value;
    }
    let lookup = |facts: &BTreeMap<String, Value>| facts.get(key).map(|fact| is_fact(fact, value));
    lookup(&partition.extras).or_else(|| lookup(&partition.processor)).unwrap_or_else(|| {
        partition.devices.iter().any(|device| match key {
            "type" => device.kind == value,
            "arch" => device.arch.as_deref() == Some(value),
            "num_devices" => device.num_devices.is_some_and(|count| count.to_string() == value),
            kind => device.kind == kind && device.arch.as_deref() == Some(value),
        })
    })
}

/// Whether a fact has the value of a term. Booleans are compared as booleans: `%secure=false` never selects `secure: true`.
fn is_fact(fact: &Value, text: &str) -> bool {
    match fact {
        Value::Bool(fact) => text.eq_ignore_ascii_case(if *fact { "true" } else { "false" }),
        Value::String(fact) => fact == text,
        Value::Number(fact) => fact.to_string() == text || fact.as_f64().is_some_and(|fact| text.parse() == Ok(fact)),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::Device;
    use crate::testing::schedulers;
    use muster_core::rules::LogAction;
    use std::sync::Arc;

    fn partition() -> Partition {
        Partition {
            name: "gpu".into(),
            descr: String::new(),
            scheduler: schedulers().find("k8s").unwrap(),
            shared: serde_json::Map::new(),
            environs: vec![],
            max_jobs: 8,
            features: vec!["gpu".into(), "a100".into()],
            extras: BTreeMap::from([("secure".into(), true.into()), ("cores".into(), 64.into())]),
            time_limit: None,
            max_pending_time: None,
            stage_limit: None,
            max_log: None,
            max_log_action: LogAction::default(),
            on_disruption: None,
            modules_system: None,
            modules: vec![],
            container_platforms: vec![],
            env_vars: vec![],
            prepare_cmds: vec![],
            pass_env: vec![],
            sched_options: Value::Null,
            processor: BTreeMap::from([("arch".into(), "zen3".into())]),
            devices: vec![Device { kind: "gpu".into(), arch: Some("sm_80".into()), model: None, num_devices: Some(8) }],
            span: None,
        }
    }

    fn system() -> System {
        let partitions = vec![Arc::new(partition())];
        System {
            name: "eidf".into(),
            descr: String::new(),
            hostnames: vec![],
            partitions,
            extras: BTreeMap::new(),
            modes: vec![],
            quarantine: vec![],
            file_mode: None,
            nights: muster_core::night::NightRules::default(),
            span: None,
        }
    }

    #[test]
    fn the_whole_grammar_of_valid_systems_is_understood() {
        let rows = [
            ("*", true),
            ("eidf", true),
            ("other", false),
            ("eidf:gpu", true),
            ("eidf:cpu", false),
            ("*:gpu", true),
            ("eidf:*", true),
            ("+gpu", true),
            ("+gpu +a100", true),
            ("+gpu +h100", false),
            ("-arm", true),
            ("-gpu", false),
            ("+cores", true),
            ("%cores=64", true),
            ("%secure=true", true),
            ("%secure=false", false),
            ("%arch=zen3", true),
            ("%arch=sm_80", false),
            ("%gpu=sm_80", true),
            ("%missing=1", false),
            ("%scheduler=k8s", true),
            ("%scheduler=local", false),
            ("+gpu %arch=zen3", true),
        ];
        for (text, admitted) in rows {
            let entry = Entry::parse(text).expect(text);
            assert_eq!(entry.admits(&system(), &partition()), admitted, "{text}");
        }
    }

    #[test]
    fn half_written_terms_are_refused() {
        for text in ["", "+", "%key", "%=v", ":part", "sys:"] {
            assert!(Entry::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn environments_are_selected_by_name_feature_and_fact() {
        let environ = Environment {
            name: "gnu".into(),
            features: vec!["mpi".into()],
            extras: BTreeMap::from([("compiler".into(), "gcc".into())]),
            ..Environment::default()
        };
        for (text, admitted) in
            [("*", true), ("gnu", true), ("+mpi", true), ("%compiler=gcc", true), ("-mpi", false), ("intel", false)]
        {
            assert_eq!(Selector::of(vec![Entry::parse(text).expect(text)]).admits_environment(&environ), admitted, "{text}");
        }
    }

    #[test]
    fn a_partition_is_narrower_than_a_system_and_that_than_a_feature() {
        let width = |text| Entry::parse(text).expect(text).width();
        assert!(width("eidf:gpu") > width("eidf") && width("eidf") > width("+gpu") && width("+gpu") > width("*"));
    }
}

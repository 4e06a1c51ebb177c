//! The changes of a command line to every rendered case: nothing of them is written in a check.

use crate::{
    cases::test_case::{Rendered, TestCase},
    site::{Partition, scheduler_keys},
};
use muster_core::job::{descriptor::NamedScheduler, workload::Program};
use muster_text::{Value, diagnostic::Diagnostic};
use serde_json::Map;
use std::fmt;

/// Changes to rendered cases.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Adjustments {
    /// `--skip-sanity-check`: the output may hold what it likes. The exit status is judged all the same.
    pub skip_sanity: bool,
    /// `--skip-performance-check`: no figure is looked for.
    pub skip_performance: bool,
    /// `-J`
    pub sched_options: Vec<SchedOption>,
    /// `--rehearse`
    pub rehearsal: Option<Rehearsal>,
}

/// The scenario that runs in the place of every workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Rehearsal {
    pub scheduler: NamedScheduler,
    /// The scheduler's own key for the scenario.
    pub key: &'static str,
    pub scenario: Value,
}

/// `-J labels.team=hpc`: an option of the scheduler, which overrides that of the check, or is added to its list.
#[derive(Debug, Clone, PartialEq)]
pub struct SchedOption {
    key: String,
    /// The key within it, if it is a mapping.
    inner: Option<String>,
    value: Value,
}

impl SchedOption {
    /// Reads `key=value` or `key.inner=value`. Only the first point divides: `labels.kueue.x-k8s.io/queue-name=q`.
    ///
    /// # Errors
    /// A lower-case fragment that says what is wrong with `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid option `{text}`: write KEY=VALUE or KEY.INNER=VALUE, as under `sched_options`");
        let (path, value) = text.split_once('=').ok_or_else(wrong)?;
        let (key, inner) = path.split_once('.').map_or((path, None), |(key, inner)| (key, Some(inner.to_owned())));
        if key.is_empty() || inner.as_deref() == Some("") {
            return Err(wrong());
        }
        // Text within a mapping: labels and annotations are nothing else.
        let value = if inner.is_some() { Value::from(value) } else { scalar(value) };
        Ok(Self { key: key.to_owned(), inner, value })
    }

    /// What it sets, without the value: `labels.team`.
    fn path(&self) -> String {
        self.inner.iter().fold(self.key.clone(), |key, inner| format!("{key}.{inner}"))
    }

    /// Options of other schedulers have no effect.
    fn is_of(&self, scheduler: NamedScheduler) -> bool {
        scheduler.option_names().any(|option| option == self.key)
    }

    /// `lists`: options that are joined.
    fn set_in(&self, options: &mut Value, lists: &[&str]) {
        let outer = mapping(options);
        match &self.inner {
            None if lists.contains(&&*self.key) => {
                let known = outer.remove(&self.key).unwrap_or_default();
                outer.insert(self.key.clone(), scheduler_keys::joined(known, self.value.clone()));
            }
            None => _ = outer.insert(self.key.clone(), self.value.clone()),
            Some(inner) => {
                let within = outer.entry(self.key.clone()).or_insert_with(|| Value::Object(Map::new()));
                mapping(within).insert(inner.clone(), self.value.clone());
            }
        }
    }
}

/// As it was typed.
impl fmt::Display for SchedOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::String(text) => write!(f, "{}={text}", self.path()),
            value => write!(f, "{}={value}", self.path()),
        }
    }
}

/// A number, a boolean, or text.
fn scalar(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Bool(_) | Value::Number(_))) => value,
        _ => Value::from(text),
    }
}

/// A value as a mapping, whatever it was.
fn mapping(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("it was made a mapping above"),
    }
}

impl Adjustments {
    /// A case as it would be launched, with stand-ins for what is known only then. `None`: it has mistakes, which were found when it
    /// was selected.
    pub fn rehearsed(&self, case: &TestCase) -> Option<Rendered> {
        let mut rendered = case.render(&case.rehearsal()).ok()?;
        self.apply(case, &mut rendered);
        Some(rendered)
    }

    /// Changes a case.
    pub fn apply(&self, case: &TestCase, rendered: &mut Rendered) {
        if self.skip_sanity {
            rendered.rules.sanity.clear();
        }
        if self.skip_performance {
            rendered.rules.perf_variables.clear();
            rendered.rules.references.clear();
        }
        let scheduler = case.place.partition.scheduler;
        for option in self.sched_options.iter().filter(|option| option.is_of(scheduler)) {
            option.set_in(&mut rendered.workload.sched_options, scheduler.joined_options);
        }
        if let Some(Rehearsal { scheduler, key, scenario }) = &self.rehearsal {
            rendered.workload.program = Program::Own { env_vars: Vec::new() };
            rendered.workload.scheduler = scheduler.as_name();
            rendered.workload.own = Map::from_iter([((*key).to_owned(), scenario.clone())]);
            rendered.workload.shared = Map::new();
            rendered.about.scheduler = scheduler.as_name();
        }
    }

    /// Returns whether `-J` sets an option.
    pub fn sets(&self, option: &str) -> bool {
        self.sched_options.iter().any(|set| set.key == option)
    }

    /// The scheduler that runs the cases of a partition.
    pub fn scheduler(&self, partition: &Partition) -> NamedScheduler {
        self.rehearsal.as_ref().map_or(partition.scheduler, |rehearsal| rehearsal.scheduler)
    }

    /// Looks for options that no scheduler of the session has, and for values that one of them refuses.
    ///
    /// # Errors
    /// The first of them, with a hint.
    pub fn check_options(&self, partitions: &[&Partition]) -> Result<(), Diagnostic> {
        let schedulers: Vec<NamedScheduler> = partitions.iter().map(|partition| partition.scheduler).collect();
        self.check_names(&schedulers)?;
        self.refuse_site_options(&schedulers)?;
        if self.rehearsal.is_some() {
            return Ok(());
        }
        let wrong = partitions.iter().find_map(|partition| self.wrong_value(partition));
        wrong.map_or(Ok(()), Err)
    }

    /// A value that the scheduler of a partition refuses, among the partition's options.
    fn wrong_value(&self, partition: &Partition) -> Option<Diagnostic> {
        let mut options = partition.sched_options.clone();
        let own = || self.sched_options.iter().filter(|option| option.is_of(partition.scheduler));
        own().for_each(|option| option.set_in(&mut options, partition.scheduler.joined_options));
        let mut wrong = (partition.scheduler.wrong_options)(&options).into_iter();
        wrong.find_map(|wrong| {
            let option = own().find(|option| option.key == wrong.name)?;
            // Without its value: that may be a secret. What the scheduler says of it is masked by whoever prints it.
            Some(Diagnostic { message: format!("-J {}: {}", option.path(), wrong.mistake.message), ..wrong.mistake })
        })
    }

    /// What a site decides for all jobs is set in its file only, as in checks.
    fn refuse_site_options(&self, schedulers: &[NamedScheduler]) -> Result<(), Diagnostic> {
        for option in &self.sched_options {
            let of_site = schedulers.iter().flat_map(|scheduler| scheduler.site_options);
            if let Some((_, hint)) = of_site.into_iter().find(|(key, _)| *key == option.key) {
                let message = format!("-J {}: `{}` belongs to the site file", option.path(), option.key);
                return Err(Diagnostic::general(message).hint(*hint));
            }
        }
        Ok(())
    }

    fn check_names(&self, schedulers: &[NamedScheduler]) -> Result<(), Diagnostic> {
        let known = || schedulers.iter().flat_map(|scheduler| scheduler.options);
        let unknown = self.sched_options.iter().find(|option| !known().any(|known| known.name == option.key));
        let Some(option) = unknown.filter(|_| !schedulers.is_empty()) else { return Ok(()) };
        // Without its value: that may be a secret.
        let message = format!("-J {}: {}", option.path(), scheduler_keys::unknown(&option.key, schedulers));
        Err(Diagnostic::general(message).hint(scheduler_keys::names(&option.key, known())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_option_of_the_scheduler_overrides_the_checks() {
        let mut options = json!({ "namespace": "a", "labels": { "team": "hpc" }, "exclude": "n1" });
        for text in [
            "exclude=n2",
            "exclude=n3",
            "only=a",
            "namespace=b",
            "labels.kueue.x-k8s.io/queue-name=q",
            "labels.year=2026",
            "priority=5",
            "annotations.a=b=c",
        ] {
            SchedOption::parse(text).unwrap().set_in(&mut options, &["exclude", "only"]);
        }
        assert_eq!(
            options,
            json!({
                "namespace": "b",
                "labels": { "team": "hpc", "kueue.x-k8s.io/queue-name": "q", "year": "2026" },
                "priority": 5,
                "annotations": { "a": "b=c" },
                "exclude": ["n1", "n2", "n3"],
                "only": ["a"],
            })
        );
        for text in ["", "namespace", "=x", "labels.=x"] {
            assert!(SchedOption::parse(text).is_err(), "{text}");
        }
    }
}

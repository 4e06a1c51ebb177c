//! `sched_options` of a Kubernetes partition, the check's over them, as `plan` reads them.

use super::adapt::MAX_LIFETIME;
use crate::{api::Quantity, job::LogRotation, kind::Kinds, plan::policy::Policy};
use muster_core::job::descriptor::WrongOption;
use muster_text::{Value, diagnostic::Diagnostic, time::parse_duration};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Who repairs a cluster by hand, or adds a node, has done so by then.
const HOPELESS_AFTER: Duration = Duration::from_mins(15);

/// The options that a plan reads. Others are the client's.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) context: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) k8s_resource: Option<String>,
    /// The only node that its pods may run on.
    pub(super) node: Option<String>,
    /// For the workload's own metadata.
    pub(super) labels: Vec<(String, String)>,
    /// The same.
    pub(super) annotations: Vec<(String, String)>,
    /// Rules of kinds, the site's before the check's.
    pub(super) k8s_workloads: Vec<Value>,
    pub(super) policy: Policy,
    /// The site's patch for every pod.
    pub(super) pod_patch: Option<Value>,
    pub(super) log_rotation: LogRotation,
    /// The nodes' `containerLogMaxSize`, in bytes.
    pub(super) log_file: Option<u64>,
    /// Of the container that is made from `image`.
    pub(super) resources: Option<Value>,
    /// Containers that decide how a pod ended, where its kind's rule does not say.
    pub(super) primary_containers: Vec<String>,
    /// How long the cluster lets a workload without a time limit live.
    pub(super) max_lifetime: Option<Duration>,
    /// How long a cause is waited out that cannot change by itself.
    pub(super) hopeless_after: Option<Duration>,
}

impl Options {
    /// Reads them, or every mistake in them.
    pub(super) fn read(options: &Value) -> Result<Self, Vec<Diagnostic>> {
        let (read, wrong) = Self::look_at(options);
        if wrong.is_empty() { Ok(read) } else { Err(wrong.into_iter().map(|wrong| wrong.mistake).collect()) }
    }

    /// What can be read of them, and what cannot.
    fn look_at(options: &Value) -> (Self, Vec<WrongOption>) {
        let mut reader = Reader { options, wrong: Vec::new() };
        let read = Self {
            context: reader.read("context", "a name"),
            namespace: reader.read("namespace", "a name"),
            k8s_resource: reader.read("k8s_resource", "a name, for example `ipujob`"),
            node: reader.read("node", "the name of a node"),
            labels: reader.texts("labels"),
            annotations: reader.texts("annotations"),
            k8s_workloads: reader.read("k8s_workloads", "a list of rules, each with a `match`").unwrap_or_default(),
            policy: reader.read("policy", POLICY).unwrap_or_default(),
            pod_patch: reader.pod_patch(),
            log_rotation: reader.read("log_rotation", "`invalid` or `warn`").unwrap_or_default(),
            log_file: reader.log_file(),
            resources: reader.read("resources", "a map"),
            primary_containers: reader.read("primary_containers", "a list of names").unwrap_or_default(),
            max_lifetime: reader.lifetime(),
            hopeless_after: reader.limit("hopeless_after", HOPELESS_AFTER),
        };
        (read, reader.wrong)
    }
}

/// Every mistake in the values of options.
pub(crate) fn wrong(options: &Value) -> Vec<WrongOption> {
    let (read, mut wrong) = Options::look_at(options);
    let rules = Kinds::known().with(&read.k8s_workloads).err().unwrap_or_default();
    wrong.extend(rules.into_iter().map(|mistake| WrongOption { name: "k8s_workloads", mistake }));
    wrong
}

const POLICY: &str = "a map of namespaces, contexts, kinds, service_accounts, deny and max_pods";

struct Reader<'a> {
    options: &'a Value,
    wrong: Vec<WrongOption>,
}

impl Reader<'_> {
    fn refuse(&mut self, name: &'static str, mistake: Diagnostic) {
        self.wrong.push(WrongOption { name, mistake });
    }

    fn read<T: DeserializeOwned>(&mut self, key: &'static str, wanted: &str) -> Option<T> {
        let value = self.options.get(key).filter(|value| !value.is_null())?;
        let wrong = |error| Diagnostic::general(format!("`sched_options.{key}`: {error}")).hint(format!("write {wanted}"));
        serde_json::from_value(value.clone()).map_err(|error| self.refuse(key, wrong(error))).ok()
    }

    fn log_file(&mut self) -> Option<u64> {
        const KEY: &str = "container_log_max_size";
        let text: String = self.read(KEY, "a quantity: `2Mi`")?;
        let bytes = text.parse().map_or(0, |size: Quantity| size.holds(Quantity::whole(1)));
        if bytes == 0 {
            let mistake = Diagnostic::general(format!("`sched_options.{KEY}`: `{text}` is no size of a file"));
            self.refuse(KEY, mistake.hint("write a quantity: `2Mi`"));
        }
        Some(bytes)
    }

    /// A map of what a pod has at its top.
    fn pod_patch(&mut self) -> Option<Value> {
        let map: serde_json::Map<String, Value> =
            self.read("pod_patch", "a map of `metadata` and `spec`, as in a pod template")?;
        for key in map.keys().filter(|key| !["metadata", "spec"].contains(&key.as_str())) {
            let message = format!("`sched_options.pod_patch.{key}`: a pod template has `metadata` and `spec`, and no `{key}`");
            self.refuse("pod_patch", Diagnostic::general(message).hint("write `pod_patch: { spec: { .. } }`"));
        }
        Some(Value::Object(map))
    }

    /// No workload can live for no time at all.
    fn lifetime(&mut self) -> Option<Duration> {
        let limit = self.limit("max_lifetime", MAX_LIFETIME);
        if limit == Some(Duration::ZERO) {
            let mistake = Diagnostic::general("`sched_options.max_lifetime`: 0 would end every workload at once");
            self.refuse("max_lifetime", mistake.hint("write null for no limit"));
        }
        limit
    }

    /// A duration; null is none at all.
    fn limit(&mut self, key: &'static str, default: Duration) -> Option<Duration> {
        let text = match self.options.get(key) {
            None => return Some(default),
            Some(Value::Null) => return None,
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let wrong = |error| Diagnostic::general(format!("`sched_options.{key}`: {error}")).hint("write null for no limit");
        parse_duration(&text).map_err(|error| self.refuse(key, wrong(error))).ok()
    }

    /// A map of texts. A number is taken as the text it shows, as a placeholder leaves one; null takes a key of the site back.
    fn texts(&mut self, key: &'static str) -> Vec<(String, String)> {
        let map: serde_json::Map<String, Value> = self.read(key, "a map of texts").unwrap_or_default();
        let text = |(name, value): (String, Value)| match value {
            Value::Null => None,
            Value::String(text) => Some((name, text)),
            Value::Number(_) | Value::Bool(_) => Some((name, value.to_string())),
            Value::Array(_) | Value::Object(_) => {
                self.refuse(key, Diagnostic::general(format!("`sched_options.{key}.{name}` must be text")));
                None
            }
        };
        map.into_iter().filter_map(text).collect()
    }
}
